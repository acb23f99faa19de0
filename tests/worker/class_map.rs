//! A class-map world at the worker, and evidence maps of both families.

use bayescope::device::{DeviceChoice, choose};
use bayescope::flow::Precision;
use bayescope::flow::sampling::{Guidance, Guided, SamplerOptions};
use bayescope::oracle::folder;
use bayescope::oracle::look::save_pictures_with;
use bayescope::oracle::world::{SampleSpec, Settings, World};
use bayescope::units::{Seed, Tau};
use bayescope::worker::protocol::{EvidenceRequest, GalleryRequest, InspectRequest, Job, Outcome, Subject};
use bayescope::worker::save::SaveSamples;

use super::common::reference::path;
use super::{Bench, adds_up};

/// The public file of three classes, 1×8×8.
fn tarflow() -> String {
    path("tarflow/afhq_model_2_64_2_2_0.07.pth").display().to_string()
}

fn world(oracle: &str, precision: Precision) -> World {
    let chosen = choose(DeviceChoice::Cpu).unwrap();
    folder::open(oracle, &chosen.device, precision, 16).unwrap().world
}

fn at(tau: f64, classes: usize) -> Settings {
    Settings { tau: Tau::new(tau).unwrap(), ..Settings::default_for(classes) }
}

fn spec(n: usize) -> SampleSpec {
    SampleSpec::new(n, Seed(4))
}

fn guided(scale: f64) -> SamplerOptions {
    let guidance = Guidance { scale, what: Guided::Ab, annealed: true, attention_temperature: 1.0 };
    SamplerOptions { guidance: Some(guidance), denoise: false }
}

#[test]
fn the_cells_of_an_evidence_map_add_up_to_its_total() {
    for (oracle, precision) in [
        ("mnist".to_owned(), Precision::F32),
        ("mnist".to_owned(), Precision::F64),
        (tarflow(), Precision::F32),
        (tarflow(), Precision::F64),
    ] {
        let world = world(&oracle, precision);
        let classes = world.class_names().len();
        let samples = world.sample_indices(&spec(3), &at(1.0, classes), &[0, 1, 2]).unwrap();
        for (sample, tau) in samples.iter().flat_map(|sample| [0.5, 1.0, 2.0].map(|tau| (sample, tau))) {
            let tau = Tau::new(tau).unwrap();
            let scores = world.flow().score(&sample.x).unwrap().log_likelihoods(0, tau);
            for (a, b) in [(0, 1), (1, 2), (classes - 1, 0), (1, 1)] {
                let map = world.evidence(&sample.x, a, b, tau).unwrap();
                assert_eq!(map.cells.len(), map.rows * map.columns);
                // Sums over dimensions are f64 in both precisions, and cells and total come from equal passes: the same
                // tolerance holds for both.
                assert!(adds_up(&map), "{oracle} {precision:?} {tau:?} {a}-{b}: {} ≠ {}", map.sum(), map.total);
                // What differs between passes in f32 is how they are batched: 1e-6 of log p, some nats in ten thousand.
                let scale = scores[a].abs() + scores[b].abs();
                let posterior = scores[a] - scores[b];
                assert!((map.total - posterior).abs() <= 1e-9 * scale + 1e-9, "{oracle}: {} ≠ {posterior}", map.total);
            }
        }
        let zero = world.evidence(&samples[0].x, 0, 1, Tau::new(0.0).unwrap());
        assert!(zero.unwrap_err().to_string().contains("τ"));
        assert!(world.evidence(&samples[0].x, 0, classes, Tau::ONE).is_err());
        let maps = [world.evidence(&samples[0].x, 0, 1, Tau::ONE).unwrap()];
        let (shape, pixels) = world.evidence_sheet(&samples[0].x, &maps).unwrap();
        assert_eq!((shape.channels, pixels.len()), (3, shape.dims()));
    }
}

#[test]
fn an_evidence_map_comes_by_the_newest_wins_lane() {
    let mut bench = Bench::on(&tarflow());
    let subject = Subject::Sample { spec: spec(10), index: 3 };
    for generation in 1..=20 {
        let (subject, settings) = (subject.clone(), at(1.0, 3));
        bench.worker.explain(EvidenceRequest { generation, subject, settings, a: 0, b: 2 });
    }
    let mut answers = 0;
    let map = bench.wait(|bench| {
        let map = bench.worker.take_evidence()?;
        answers += 1;
        (map.request.generation == 20).then_some(map)
    });
    assert!(answers <= 20);
    assert_eq!((map.evidence.rows, map.evidence.columns), (4, 4));
    assert!(adds_up(&map.evidence));
}

#[test]
fn interrupted_pieces_of_a_slow_gallery_are_not_lost() {
    let mut bench = Bench::on(&tarflow());
    let request = GalleryRequest {
        generation: 1,
        spec: spec(48),
        settings: at(1.0, 3),
        first: vec![40],
        look: None,
        halted: false,
    };
    bench.worker.show(request);
    let mut seen = Vec::new();
    let (mut asked, mut answered) = (0, 0);
    while seen.len() < 48 {
        let (tiles, inspected) = bench.wait(|bench| {
            let (update, inspection) = (bench.worker.take_gallery(), bench.worker.take_inspection());
            (update.is_some() || inspection.is_some()).then_some((update, inspection))
        });
        answered += usize::from(inspected.is_some_and(|inspection| inspection.missing == 0));
        if let Some(update) = tiles {
            assert_eq!(update.generation, 1);
            assert!(update.drafts.iter().all(|draft| draft.pixels.bytes().is_some_and(|bytes| bytes.len() == 64) && draft.blocks.total == 2));
            seen.extend(update.tiles.iter().map(|tile| tile.index));
        }
        if asked < 5 {
            asked += 1;
            let subject = Subject::Sample { spec: spec(48), index: asked };
            let (settings, taus) = (at(1.0, 3), vec![Tau::new(0.5).unwrap()]);
            bench.worker.inspect(InspectRequest { generation: asked as u64, subject, settings, taus, look: None });
        }
    }
    assert!(answered > 0, "the inspector was served while the gallery filled");
    assert!(seen[..8].contains(&40), "what is in view is in the first piece: {seen:?}");
    seen.sort_unstable();
    assert_eq!(seen, (0..48).collect::<Vec<_>>(), "every sample once");
}

#[test]
fn a_look_changes_the_picture_and_not_the_figures() {
    let mut bench = Bench::on(&tarflow());
    let show = |look| GalleryRequest {
        generation: 1,
        spec: spec(6),
        settings: at(1.0, 3),
        first: vec![],
        look,
        halted: false,
    };
    bench.worker.show(show(None));
    let mut plain: Vec<_> = bench.gallery(1).into_iter().flat_map(|update| update.tiles).collect();
    bench.worker.show(GalleryRequest { generation: 2, ..show(Some(guided(3.0))) });
    let mut looked: Vec<_> = bench.gallery(2).into_iter().flat_map(|update| update.tiles).collect();
    plain.sort_by_key(|tile| tile.index);
    looked.sort_by_key(|tile| tile.index);
    assert_eq!(looked.len(), 6);
    for (plain, looked) in plain.iter().zip(&looked) {
        assert!(plain.look.is_none());
        assert_eq!((&plain.pixels, &plain.posterior), (&looked.pixels, &looked.posterior));
        let picture = looked.look.as_ref().expect("the picture with the look");
        assert_eq!(picture.look, guided(3.0));
        assert_ne!(picture.pixels, looked.pixels);
    }
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str| {
        Job::task(SaveSamples {
            spec: spec(4),
            indices: vec![],
            settings: at(1.0, 3),
            look: Some(guided(3.0)),
            sheet: false,
            path: folder.path().join(name),
        })
    };
    let job = bench.worker.submit(save("guided.npz"));
    let Outcome::Failed(why) = bench.outcome(job) else { panic!("guided pictures were saved with posteriors") };
    assert!(why.contains("guided.npz") && why.contains("left the world"), "{why}");
    let job = bench.worker.submit(save("guided.png"));
    assert!(matches!(bench.outcome(job), Outcome::Done(text) if text.contains("illustrative")));
}

#[test]
fn a_shared_map_world_refuses_looks() {
    let world = world("mnist", Precision::F32);
    let path = std::path::Path::new("never.png");
    let mut events = bayescope::events::silent();
    for look in [guided(1.0), SamplerOptions { guidance: None, denoise: true }] {
        let refused = save_pictures_with(&world, &spec(1), &[], &at(1.0, 10), &look, path, &mut events);
        assert!(refused.unwrap_err().to_string().contains("TarFlow"));
    }
}
