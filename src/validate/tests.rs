//! A world beside its own samples, which are real images it describes perfectly, and beside others.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use burn::tensor::Device;

use super::copies::Near;
use super::generated::Generated;
use super::*;
use crate::data::{Split, write_png, write_png_of_world};
use crate::error::Error;
use crate::flow::Precision;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::folder::{self, Oracle};
use crate::oracle::train::Form;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::Seed;

fn mnist() -> Oracle {
    folder::open("mnist", &Device::flex(), Precision::F32, 32).unwrap()
}

/// Folders of pictures that the world itself draws, every value changed by `change`.
fn pictures(oracle: &Oracle, place: &Path, n: [usize; 2], change: fn(u8) -> u8) {
    let world = &oracle.world;
    let settings = Settings::default_for(10);
    for (split, (n, seed)) in [Split::Train, Split::Test].into_iter().zip(n.into_iter().zip([1, 2])) {
        let spec = SampleSpec::new(n, Seed(seed));
        let samples = world.sample_indices(&spec, &settings, &(0..n).collect::<Vec<_>>()).unwrap();
        for sample in samples {
            let folder = place.join(split.to_string()).join(sample.source.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            let pixels: Vec<u8> = world.flow().pixels().picture(&sample.x).into_iter().map(change).collect();
            write_png(&folder.join(format!("{:04}.png", sample.index)), world.shape(), &pixels).unwrap();
        }
    }
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

pub(super) fn spec(data: &Path, images: usize) -> ValidateSpec {
    ValidateSpec {
        oracle: "mnist".into(),
        data: data.to_owned(),
        images,
        limit: None,
        settings: Settings::default_for(10),
        precision: Precision::F32,
        features: FeatureChoice::OnTheSpot(OnTheSpot {
            architecture: crate::classifier::Architecture::Convnet,
            epochs: 2,
            images: 300,
        }),
        two_sample: TwoSampleSpec { images: 60, epochs: 2, ..TwoSampleSpec::default() },
        real_statistics: None,
        threshold: None,
        seed: Seed(5),
    }
}

fn run(oracle: &Oracle, spec: &ValidateSpec, folder: Option<&Path>) -> Result<(Validation, Option<Pairs>)> {
    validate(&oracle.world, &oracle.info, spec, &Device::flex(), folder, &mut crate::events::silent())
}

#[test]
fn a_world_is_like_its_own_samples_and_unlike_their_negatives() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    let (own, negative) = (place.path().join("own"), place.path().join("negative"));
    pictures(&oracle, &own, [300, 200], |p| p);
    pictures(&oracle, &negative, [300, 200], |p| 255 - p);
    let thorough = |data| ValidateSpec { two_sample: TwoSampleSpec::default(), ..spec(data, 200) };
    let (found, pairs) = run(&oracle, &thorough(&own), None).unwrap();
    // A hundred images of each side, half of them tested: within four standard errors of ½.
    let told = found.two_sample.as_ref().unwrap();
    assert_eq!((told.images, told.tested), (100, 100));
    let [made, real] = [told.right.generated.value, told.right.held_out.value];
    assert!((made - 0.5).abs() < 0.2 && (real - 0.5).abs() < 0.2, "{told:?}");
    let like = found.fidelity.as_ref().unwrap();
    assert_eq!((like.n, found.corpus.of_the_oracle), ([300, 200, 200], Some(false)));
    let farther = like.near.memory.ranks.farther;
    assert!((0.35..0.65).contains(&farther.value), "{farther:?}");
    assert!((like.coverage.share.value - 0.9).abs() < 0.12, "{:?}", like.coverage);
    let (made, real) = (&like.fid.generated.plain, &like.fid.held_out.plain);
    assert!((made.value / real.value).ln().abs() < 0.7, "{made:?} {real:?}");
    let within = |e: Option<crate::measure::Estimate>| e.is_none_or(|e| (0.3..3.0).contains(&e.value));
    assert!(like.texture.as_ref().unwrap().iter().all(|t| within(t.within.generated) && within(t.whole.held_out)));
    // A pair is an image and the training image that the distance says.
    let pairs = pairs.unwrap();
    assert_eq!(pairs.pairs.generated.len(), 48);
    assert!(pairs.pairs.generated.is_sorted_by(|a, b| a.distance <= b.distance));
    assert!(found.round_trip.largest_levels < 1.0 && found.stability.as_ref().unwrap().stability.kl.value < 1e-2);

    // Of unequal sets FID compares equal numbers: half of the held-out images fit worse than all.
    let (found, _) = run(&oracle, &spec(&own, 100), None).unwrap();
    let fewer = found.fidelity.unwrap();
    assert!((fewer.plain_fid.generated / fewer.fid.generated.plain.value - 1.0).abs() < 1e-6, "{:?}", fewer.plain_fid);
    assert!(fewer.plain_fid.held_out > 1.05 * fewer.fid.held_out.plain.value, "{:?}", fewer.plain_fid);

    let (found, _) = run(&oracle, &thorough(&negative), None).unwrap();
    let told = &found.two_sample.as_ref().unwrap().right;
    assert!(told.generated.interval.low > 0.8 && told.held_out.value < 0.7, "{told:?}");
    let unlike = found.fidelity.unwrap();
    assert!(unlike.fid.generated.plain.value > 5.0 * unlike.fid.held_out.plain.value);
    assert!(unlike.coverage.share.value < 0.2 && unlike.near.memory.ranks.farther.value > 0.95);
    assert!(unlike.precision.generated.precision.value < unlike.precision.held_out.precision.value);
}

#[test]
fn a_stopped_validation_goes_on_to_the_same_figures() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    let (own, folder) = (place.path().join("own"), place.path().join("validation"));
    pictures(&oracle, &own, [120, 60], |p| p);
    let spec = spec(&own, 300);
    let whole = run(&oracle, &spec, None).unwrap();
    let stages = [
        Stage::Exactness,
        Stage::Drawing,
        Stage::TwoSample,
        Stage::FeatureNet,
        Stage::Embedding,
        Stage::Nearest,
        Stage::Measuring,
    ];
    for stage in stages {
        // The second word of a stage: within it, something is done already.
        let mut heard = 0;
        let mut stop = |event: ValidateEvent| {
            heard += usize::from(event.stage == stage);
            if heard > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = validate(&oracle.world, &oracle.info, &spec, &Device::flex(), Some(&folder), &mut stop);
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stage:?}");
    }
    let (found, pairs) = run(&oracle, &spec, Some(&folder)).unwrap();
    assert_eq!(serde_json::to_string(&found).unwrap(), serde_json::to_string(&whole.0).unwrap());
    assert_eq!(pairs, whole.1);
    let exact = ValidateSpec { precision: Precision::F64, ..spec.clone() };
    assert!(run(&oracle, &exact, Some(&folder)).unwrap_err().to_string().contains("spec.precision"));
    let other = ValidateSpec { seed: Seed(6), ..spec };
    assert!(run(&oracle, &other, Some(&folder)).unwrap_err().to_string().contains("another validation"));

    let written = write_report(&folder, &found, pairs.as_ref()).unwrap();
    let page = std::fs::read_to_string(written.last().unwrap()).unwrap();
    for name in ["validate-distances.svg", "pairs-generated.png", "weights SHA-256", "in all 9 forms"] {
        assert!(page.contains(name), "{name}");
    }
    for (_, name) in page.match_indices("](").map(|(at, _)| (at, page[at + 2..].split(')').next().unwrap())) {
        assert!(folder.join(name).is_file(), "{name} is shown and not there");
    }
}

#[test]
fn a_corpus_that_changes_after_a_stop_is_not_mixed_with_what_it_was() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    let (own, folder) = (place.path().join("own"), place.path().join("validation"));
    pictures(&oracle, &own, [80, 60], |p| p);
    let spec = spec(&own, 60);
    // Everything but the figures is kept by now.
    let mut stop = |event: ValidateEvent| match event.stage {
        Stage::Measuring => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let stopped = validate(&oracle.world, &oracle.info, &spec, &Device::flex(), Some(&folder), &mut stop);
    assert!(matches!(stopped, Err(Error::Cancelled)));
    pictures(&oracle, &own, [80, 60], |p| 255 - p);
    let resumed = run(&oracle, &spec, Some(&folder)).unwrap().0;
    let anew = run(&oracle, &spec, None).unwrap().0;
    assert_eq!(serde_json::to_string(&resumed).unwrap(), serde_json::to_string(&anew).unwrap());
}

#[test]
fn a_test_part_without_a_class_keeps_the_numbers_of_the_others() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    let own = place.path().join("own");
    pictures(&oracle, &own, [100, 100], |p| p);
    std::fs::remove_dir_all(own.join("test/4")).unwrap();
    for images in [0, 60] {
        let spec = spec(&own, images);
        let store = pieces::begin(None, &spec, "weights").unwrap();
        let work = Work { spec: &spec, world: &oracle.world, info: &oracle.info, device: &Device::flex(), store };
        let real = Real::open(&work).unwrap();
        let labels = real.held_out.labels.unwrap();
        assert!(labels.contains(&9) && !labels.contains(&4));
        for (id, label) in real.held_out.ids.iter().zip(labels) {
            assert!(id.starts_with(&format!("{label}/")), "{id} has label {label}");
        }
        assert_eq!(real.corpus.notes, ["test: of these classes of the oracle there is no image: 4"]);
    }
}

#[test]
fn pictures_that_hold_the_noise_of_the_world_get_none_a_second_time() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    pictures(&oracle, place.path(), [60, 60], |p| p);
    let spec = spec(place.path(), 60);
    let look = || {
        let store = pieces::begin(None, &spec, "weights").unwrap();
        let work = Work { spec: &spec, world: &oracle.world, info: &oracle.info, device: &Device::flex(), store };
        let real = Real::open(&work).unwrap();
        let noisy = real.noisy(&work).unwrap();
        let kept = [noisy.train.pixels == real.train.pixels, noisy.held_out.pixels == real.held_out.pixels];
        let nll = work.likelihood(&real, &mut crate::events::silent()).unwrap().unwrap().nll_nats;
        (kept, nll, real.corpus.notes)
    };
    let (kept, twice, notes) = look();
    assert!(kept == [false; 2] && notes.is_empty(), "{notes:?}");
    let (shape, held) = (oracle.world.shape(), oracle.world.held_noise().unwrap());
    let pixels = |file: &Path| image::open(file).unwrap().to_luma8().into_raw();
    let all = files(place.path());
    all.iter().for_each(|file| write_png_of_world(file, shape, &pixels(file), &held).unwrap());
    let (kept, once, notes) = look();
    // Half a nat of every pixel that has more noise than the world.
    assert!(kept == [true; 2] && once + 20.0 < twice, "{once} {twice}");
    let said = |note: &str, part: &str| note.starts_with(part) && note.contains("that hold the world's noise");
    assert!(notes.len() == 2 && said(&notes[0], "train: ") && said(&notes[1], "test: "), "{notes:?}");
    // One among them that says nothing.
    let test = all.iter().find(|file| file.starts_with(place.path().join("test"))).unwrap();
    write_png(test, shape, &pixels(test)).unwrap();
    let (kept, mixed, notes) = look();
    assert!(kept == [true, false] && mixed == twice && notes[1].starts_with("test: 59 of 60 pictures"), "{notes:?}");
}

#[test]
fn a_corpus_without_a_test_part_is_told_where_nothing_is_compared() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    let (own, report) = (place.path().join("own"), place.path().join("report"));
    pictures(&oracle, &own, [12, 4], |p| p);
    let found = run(&oracle, &spec(&own.join("train"), 0), None).unwrap().0;
    write_report(&report, &found, None).unwrap();
    let page = std::fs::read_to_string(report.join("validation.md")).unwrap();
    assert!(page.contains("* the corpus has no test part and was taken whole"), "{page}");
    // This oracle has a record; nobody looked for its images.
    assert!(page.contains("were not read") && !page.contains("no record"), "{page}");
    let found = run(&oracle, &spec(&own, 0), None).unwrap().0;
    assert!(!found.corpus.notes.iter().any(|note| note.contains("test part")), "{:?}", found.corpus);
    // The caption names the arithmetic that was asked for.
    for (precision, words) in [(Precision::F32, "in 32 bits. "), (Precision::F64, "in 64 bits, ")] {
        let asked = ValidateSpec { precision, ..found.spec.clone() };
        let table = &tables(&Validation { spec: asked, ..found.clone() })[0];
        assert!(table.caption.contains(&format!("image → noise → image {words}")), "{}", table.caption);
    }
}

#[test]
fn what_is_held_out_of_the_oracles_own_images_is_said_to_be_theirs() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    let data = place.path().join("train");
    pictures(&oracle, place.path(), [300, 4], |p| p);
    let spec = spec(&data, 60);
    let open = |info: &OracleInfo| {
        let store = pieces::begin(None, &spec, "weights").unwrap();
        let work = Work { spec: &spec, world: &oracle.world, info, device: &Device::flex(), store };
        Real::open(&work).unwrap().corpus
    };
    let said = |corpus: &Corpus, words: &str| corpus.notes.iter().any(|note| note.ends_with(words));
    let others = open(&oracle.info);
    assert!(others.of_the_oracle == Some(false) && said(&others, "may have been trained on"), "{others:?}");
    let mut info = oracle.info.clone();
    let record = info.training.as_mut().unwrap();
    record.spec.data = toml::from_str("path = 'wherever'\nheld_out = 10").unwrap();
    record.pixels_sha256 = crate::oracle::train::training_images(&record.spec, &data).unwrap().1;
    let own = open(&info);
    assert!(own.of_the_oracle == Some(true) && said(&own, "the oracle was trained on"), "{own:?}");
}

/// How near images are to training images, in the features of a network that looks at whole pictures.
fn near(work: &Work<'_>, (real, alike): (&Real, &Real), made: &Generated) -> Near {
    let embedded = embedded::embed(work, alike, made, &mut crate::events::silent()).unwrap();
    copies::nearest(work, (real, alike), made, &embedded, &mut crate::events::silent()).unwrap().0
}

#[test]
fn copies_are_caught_in_every_form_that_training_showed_and_real_images_are_none() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    pictures(&oracle, place.path(), [120, 160], |p| p);
    let architecture = crate::classifier::Architecture::Mlp500;
    let features = FeatureChoice::OnTheSpot(OnTheSpot { architecture, epochs: 1, images: 120 });
    let spec = ValidateSpec { features, ..spec(place.path(), 100) };
    let device = Device::flex();
    let turned = [(false, 1), (true, 2), (false, 3), (true, 1)].map(|(mirrored, turns)| Form {
        mirrored,
        turns,
        ..Form::default()
    });
    let moved = [[2, -2], [-2, 2], [2, 2], [-2, -2]].map(|moved| Form { moved, ..Form::default() });
    for (shift, turn, shown, forms) in [(0, true, turned, 8), (2, false, moved, 25)] {
        let mut info = oracle.info.clone();
        let data = &mut info.training.as_mut().unwrap().spec.data;
        (data.shift, data.mirror, data.turn) = (shift, turn, turn);
        let with = |info| {
            let store = pieces::begin(None, &spec, "weights").unwrap();
            Work { spec: &spec, world: &oracle.world, info, device: &device, store }
        };
        let work = with(&info);
        let real = Real::open(&work).unwrap();
        let alike = real.noisy(&work).unwrap();
        // Every training image in one of its forms, twice, under noise of its own: C_T counts classes of 20 images and more.
        let form = |i: usize| shown[i % shown.len()];
        let copied: Vec<u8> = (0..real.train.len())
            .flat_map(|i| form(i).of(real.train.image(i), real.train.shape).into_owned())
            .collect();
        let pixels = real::noised(&oracle.world, &copied.repeat(2), 0, Dequantisation::Seeded(Seed(77))).unwrap();
        let copier = Generated { pixels, labels: real.train.labels.as_ref().unwrap().repeat(2) };
        let found = near(&work, (&real, &alike), &copier);
        assert_eq!(found.forms, forms);
        assert!(found.memory.rate.generated.value > 0.9, "{:?}", found.memory);
        assert!(found.memory.ranks.farther.interval.high < 0.1, "{:?}", found.memory);
        let copying = found.copying.unwrap();
        assert!(copying.c_t.is_some_and(|c_t| c_t < -3.0), "{copying:?}");
        let source = |close: &Close| close.image % real.train.len();
        let own = |close: &&Close| (close.neighbour, close.form) == (source(close), form(source(close)));
        assert!(found.closest.generated.iter().filter(own).count() > 45, "{:?}", found.closest.generated);

        // Compared as they are, hardly one of them is found.
        let unknown = OracleInfo { training: None, ..info.clone() };
        let found = near(&with(&unknown), (&real, &alike), &copier);
        assert!(found.forms == 1 && found.forms_from.contains("no record"), "{}", found.forms_from);
        assert!(found.memory.rate.generated.value < 0.1, "{:?}", found.memory);

        // Other real images in the place of the copies.
        let half = |first| alike.held_out.subset((first..alike.held_out.len()).step_by(2)).unwrap();
        let (other, held_out) = (half(1), half(0));
        let honest = Generated { pixels: other.pixels, labels: other.labels.unwrap() };
        let alike = Real { held_out, ..alike };
        let found = near(&work, (&real, &alike), &honest);
        assert!((0.3..0.7).contains(&found.memory.ranks.farther.value), "{:?}", found.memory);
        assert!(found.memory.rate.generated.value < 0.1, "{:?}", found.memory);
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let (oracle, place) = (mnist(), tempfile::tempdir().unwrap());
    let own = place.path().join("own");
    pictures(&oracle, &own, [60, 20], |p| p);
    let complaint = |spec: &ValidateSpec| run(&oracle, spec, None).unwrap_err().to_string();
    assert!(complaint(&spec(&own, 10)).contains("too few"));
    assert!(complaint(&spec(&own, 60)).contains("20 held-out images"));
    // It is read again for the pass in 64 bits.
    let replaced = ValidateSpec { oracle: "mnist@9b44f254".into(), ..spec(&own, 0) };
    assert!(complaint(&replaced).contains("is another world than the one that was opened"));
    std::fs::rename(own.join("test"), place.path().join("elsewhere")).unwrap();
    let statistics = place.path().join("mu.npz");
    let no_file = ValidateSpec { real_statistics: Some(statistics.clone()), ..spec(&own, 60) };
    assert!(complaint(&no_file).contains("training images; 50"), "{}", complaint(&no_file));
    let cold = Settings { tau: crate::units::Tau::new(0.0).unwrap(), ..Settings::default_for(10) };
    assert!(complaint(&ValidateSpec { settings: cold, ..spec(&own, 60) }).contains("τ = 0"));
}
