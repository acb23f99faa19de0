//! A device that is taken away, and one that is too small, provoked on the first adapter there is (software Vulkan will do). Where
//! there is none, these tests say so and pass.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bayescope::classifier::{Architecture, ClassifierConfig, StepLoss, Trainee, TrainingSpec};
use bayescope::data::ImageShape;
use bayescope::device::{
    DeviceChoice, OpenDevice, bounded, candidates, choose, fault_injection, notes, on_device, to_host,
};
use bayescope::error::Error;
use bayescope::events::silent;
use bayescope::experiment::{CellEvent, ExperimentSpec, Summary};
use bayescope::flow::Precision;
use bayescope::flow::base::latents;
use bayescope::oracle::export::save_samples;
use bayescope::oracle::folder;
use bayescope::oracle::pictures::Fits;
use bayescope::oracle::posterior::Posterior;
use bayescope::oracle::scale::{self, Images, ScaleEvent, ScaleSpec};
use bayescope::oracle::world::{SampleSpec, Settings, World};
use bayescope::run::{RunContext, RunEvent, RunExperiment, RunFolder, RunSettings, Share, execute};
use bayescope::units::Seed;
use bayescope::worker::protocol::{Event, GalleryRequest, Job, Outcome};

use burn::tensor::{Device, Tensor};

use super::Bench;
use super::common::reference::path;

/// Samples of the job that is disturbed: several passes.
const IMAGES: usize = 200;

/// The adapter, and the right to take it away: a fault of one test is none of another's.
struct Adapter {
    choice: DeviceChoice,
    _alone: MutexGuard<'static, ()>,
}

fn adapter() -> Option<Adapter> {
    static ALONE: Mutex<()> = Mutex::new(());
    let found = candidates().into_iter().map(|candidate| candidate.choice);
    let Some(choice) = found.into_iter().find(|choice| matches!(choice, DeviceChoice::Wgpu(_))) else {
        eprintln!("skipped: no adapter to take away");
        return None;
    };
    Some(Adapter { choice, _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner) })
}

impl Adapter {
    fn index(&self) -> usize {
        let DeviceChoice::Wgpu(Some(index)) = self.choice else { panic!("{}", self.choice) };
        index
    }

    fn chosen(&self) -> OpenDevice {
        choose(self.choice).unwrap()
    }

    /// From now on its devices take buffers of so many bytes.
    fn confine(&self, bytes: Option<u64>) {
        fault_injection::confine(self.index(), bytes);
        fault_injection::lose(self.choice);
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.confine(None);
    }
}

/// A small Glow: 4 classes, grey 8×8 images.
fn oracle() -> String {
    path("glow/config1_best.pth.tar").display().to_string()
}

fn settings() -> Settings {
    Settings::default_for(4)
}

fn world_on(chosen: &OpenDevice) -> World {
    folder::open(&oracle(), &chosen.device, Precision::F32, chosen.batch).unwrap().world
}

/// World-space images to be scored, drawn on the CPU.
fn input(folder: &Path) -> PathBuf {
    let file = folder.join("x.npz");
    let spec = SampleSpec::new(IMAGES, Seed(1));
    let world = world_on(&choose(DeviceChoice::Cpu).unwrap());
    save_samples(&world, &spec, &[], &settings(), &file, &mut silent()).unwrap();
    file
}

/// The posterior job on a device; `after` is told after every write, and whether the job began with nothing.
fn posteriors(
    input: &Path,
    out: &Path,
    chosen: &OpenDevice,
    after: &mut dyn FnMut(usize),
) -> bayescope::error::Result<()> {
    let (info, weights) = folder::read(&oracle())?;
    let world = info.clone().build(weights, &chosen.device, Precision::F32, chosen.batch)?.world;
    let images = Images::open(&[input.to_owned()], &Fits::default(), None, &world)?;
    let spec = ScaleSpec {
        settings: settings(),
        shard: 0,
        shards: 1,
        class_batch: None,
        image_batch: Some(1),
        compare: false,
    };
    let (device, oracle) = (chosen.report.used.label(), oracle());
    let computer =
        scale::Computer { info: &info, oracle: &oracle, world: &world, precision: Precision::F32, device: &device };
    let mut watch = |event: ScaleEvent| {
        match event {
            ScaleEvent::Opened(opened) => after(opened.pairs.done),
            ScaleEvent::Computed(running) => after(running.pairs.done),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    scale::run(&computer, &images, &spec, out, &mut watch).map(drop)
}

#[test]
fn a_posterior_job_goes_on_after_its_device_was_lost() {
    let Some(adapter) = adapter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path().join(name));
    let input = input(folder.path());
    posteriors(&input, &whole, &adapter.chosen(), &mut |_| {}).unwrap();
    notes();
    let (mut lost, mut opened_with) = (false, Vec::new());
    on_device(adapter.chosen(), |chosen| {
        let mut first = true;
        posteriors(&input, &broken, chosen, &mut |done| {
            if std::mem::take(&mut first) {
                opened_with.push(done);
            } else if !std::mem::replace(&mut lost, true) {
                assert!(fault_injection::lose(adapter.choice));
            }
        })
    })
    .unwrap();
    // The second sitting found what the first had written.
    assert!(opened_with.len() == 2 && opened_with[0] == 0 && opened_with[1] > 0, "{opened_with:?}");
    let told = notes();
    assert!(told.len() == 1 && told[0].contains("was lost") && told[0].contains("a new device"), "{told:?}");
    let file = |folder: &Path| std::fs::read(folder.join(scale::POSTERIORS)).unwrap();
    assert!(file(&whole) == file(&broken), "the loss changed the posteriors");
}

fn grid(train_size: usize, epochs: usize) -> ExperimentSpec {
    let text = format!(
        "name = 'lost'\n[world]\noracle = '{}'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [{train_size}]\n\
         seeds = [0, 1]\n[test]\nimages = 64\nwatched = 32\n[training]\nepochs = {epochs}\nbatch = 16\n",
        oracle()
    );
    toml::from_str(&text).unwrap()
}

/// The grid of classifiers in a folder; a checkpoint after every step.
fn train(path: &Path, chosen: &OpenDevice, told: &mut dyn FnMut(&CellEvent)) -> bayescope::error::Result<Summary> {
    let (spec, world) = (grid(64, 2), world_on(chosen));
    let run = RunFolder::create(path, &spec, &folder::read(&oracle())?.0.world_id(), None)?;
    let context = RunContext { every: Duration::ZERO, ..RunContext::new(&world, settings(), &chosen.device) };
    execute(&run, Share::ALL, &context, &mut |event: RunEvent| {
        if let RunEvent::Cell { said, .. } = &event {
            told(said);
        }
        ControlFlow::Continue(())
    })
}

fn summary(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("summary.json")).unwrap()
}

#[test]
fn a_training_goes_on_from_its_checkpoint_after_its_device_was_lost() {
    let Some(adapter) = adapter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path().join(name));
    train(&whole, &adapter.chosen(), &mut |_| {}).unwrap();
    let (mut lost, mut resumed) = (false, Vec::new());
    let summed = on_device(adapter.chosen(), |chosen| {
        train(&broken, chosen, &mut |said| match said {
            CellEvent::Started { resumed_at, .. } => resumed.push(*resumed_at),
            CellEvent::Checkpoint { step: 3 } if !std::mem::replace(&mut lost, true) => {
                assert!(fault_injection::lose(adapter.choice));
            }
            _ => {}
        })
    });
    assert_eq!(summed.unwrap().finished, 2);
    assert_eq!(resumed, [0, 3, 0], "the first cell goes on at its checkpoint");
    assert!(summary(&whole) == summary(&broken), "the loss changed the figures");
}

/// Samples of a gallery: so many that the first of them are shown long before the last are made.
const SHOWN: usize = 400;

fn gallery(generation: u64) -> GalleryRequest {
    let spec = SampleSpec::new(SHOWN, Seed(4));
    GalleryRequest { generation, spec, settings: settings(), first: Vec::new(), look: None, halted: false }
}

/// The posteriors of a gallery, by the number of the sample; `disturb` is called after its first tiles.
fn shown(bench: &mut Bench, generation: u64, mut disturb: impl FnMut()) -> Vec<Posterior> {
    bench.worker.show(gallery(generation));
    let mut tiles = std::collections::BTreeMap::new();
    let mut complete = false;
    while !complete {
        let update = bench.wait(|bench| bench.worker.take_gallery());
        if update.generation == generation {
            complete = update.progress.done == update.progress.total;
            tiles.extend(update.tiles.into_iter().map(|tile| (tile.index, (*tile.posterior).clone())));
            disturb();
        }
    }
    tiles.into_values().collect()
}

fn noted(bench: &mut Bench, holds: impl Fn(&str) -> bool) {
    let found = |event: &Event| matches!(event, Event::Note(text) if holds(text)).then_some(());
    if bench.seen.iter().find_map(found).is_none() {
        bench.until(found);
    }
}

#[test]
fn an_open_gallery_and_a_job_go_on_after_their_device_was_lost() {
    let Some(adapter) = adapter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path().join(name));
    let mut bench = Bench::at(adapter.choice, &oracle());
    // Of a worker of its own: what one has shown it keeps. It stays at the device, and whichever of the two notices the loss first
    // takes another one for both.
    let mut other = Bench::at(adapter.choice, &oracle());
    let undisturbed = shown(&mut other, 1, || {});
    let mut lost = false;
    let disturbed = shown(&mut bench, 2, || {
        if !std::mem::replace(&mut lost, true) {
            fault_injection::lose(adapter.choice);
        }
    });
    assert!(undisturbed.len() == SHOWN && disturbed.len() == SHOWN);
    let apart = undisturbed.iter().zip(&disturbed).map(|(a, b)| a.distance(b)).fold(0.0, f64::max);
    assert!(apart < 1e-5, "the loss moved a posterior by {apart:e}");
    noted(&mut bench, |text| text.contains("was lost") && text.contains("a new device"));
    assert_eq!(shown(&mut other, 2, || {}).len(), SHOWN);
    let job = |folder: &Path| {
        Job::task(RunExperiment {
            spec: Some(grid(128, 3)),
            folder: folder.to_owned(),
            settings: RunSettings::default(),
        })
    };
    let first = bench.worker.submit(job(&whole));
    assert!(matches!(bench.outcome(first), Outcome::Done(_)));
    bench.seen.clear();
    let second = bench.worker.submit(job(&broken));
    let stepped = |event: &RunEvent| matches!(event, RunEvent::Cell { said: CellEvent::Step { step: 2.., .. }, .. });
    bench.until(|event| match event {
        Event::Task { news, .. } => news.event::<RunExperiment>().filter(|event| stepped(event)).map(drop),
        _ => None,
    });
    fault_injection::lose(adapter.choice);
    let outcome = bench.outcome(second);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    noted(&mut bench, |text| text.contains("was lost"));
    assert!(bench.seen.iter().any(|event| matches!(event, Event::Device(_))), "the device was not told");
    assert!(summary(&whole) == summary(&broken), "the loss changed the figures");
}

/// The least that burn itself allocates at once: what a small device takes.
const SMALL: u64 = 8 << 20;

/// log p(x|y) of digits on a device, all at once.
fn scored(chosen: &OpenDevice, x: &[f32]) -> Vec<f64> {
    let world = folder::open("mnist", &chosen.device, Precision::F32, DIGITS).unwrap().world;
    let scores = world.score(x, &mut silent()).unwrap();
    (0..scores.len()).flat_map(|i| scores.log_likelihoods(i, settings().tau)).collect()
}

/// Digits scored at once: their hidden layers are three times as large as a buffer of the small device.
const DIGITS: usize = 400;

/// Digits, drawn on the CPU.
fn digits() -> Vec<f32> {
    let cpu = choose(DeviceChoice::Cpu).unwrap();
    let world = folder::open("mnist", &cpu.device, Precision::F32, 32).unwrap().world;
    let spec = SampleSpec::new(DIGITS, Seed(1));
    let samples = world.sample_indices(&spec, &Settings::default_for(10), &(0..DIGITS).collect::<Vec<_>>()).unwrap();
    samples.into_iter().flat_map(|sample| sample.x).collect()
}

/// No pass begins with an array larger than a buffer of the device: burn does not hear of every one, and what depends on it would come
/// out wrong without a word.
#[test]
fn a_small_device_scores_as_a_large_one() {
    let Some(adapter) = adapter() else { return };
    let x = digits();
    let whole = scored(&adapter.chosen(), &x);
    adapter.confine(Some(SMALL));
    let small = scored(&adapter.chosen(), &x);
    adapter.confine(None);
    let worst = whole.iter().zip(&small).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
    assert!(worst < 1e-6, "fewer images at once moved log p by {worst:e} of itself");
}

const SHAPE: ImageShape = ImageShape { channels: 1, height: 8, width: 8 };

/// The first steps of a classifier on so many images at once, and what it says of them then.
fn steps(chosen: &OpenDevice, architecture: Architecture, batch: usize) -> (Vec<StepLoss>, Vec<f64>) {
    let config = ClassifierConfig { architecture, shape: SHAPE, classes: 4, resize: None };
    let mut trainee = Trainee::new(&config, &TrainingSpec::default(), Seed(3), &chosen.device).unwrap();
    let x = latents(Seed(5), 0, batch, SHAPE.dims());
    let targets: Vec<f32> = (0..batch).flat_map(|i| (0..4).map(move |k| f32::from(u8::from(i % 4 == k)))).collect();
    let losses = (0..2).map(|step| trainee.step(&x, &targets, 1e-3, step).unwrap()).collect();
    (losses, trainee.classifier().logits(&x, batch).unwrap())
}

#[test]
fn a_small_device_trains_in_smaller_pieces() {
    let Some(adapter) = adapter() else { return };
    // The images alone are too large; the hidden layers of five tokens.
    for (architecture, batch) in [(Architecture::Linear, 65_536), (Architecture::VitSmall, 600)] {
        let (whole, answers) = steps(&adapter.chosen(), architecture, batch);
        notes();
        adapter.confine(Some(SMALL));
        let (halved, fewer) = steps(&adapter.chosen(), architecture, batch);
        let told = notes();
        adapter.confine(None);
        let of = |what: &str| told.iter().any(|told| told.contains(what) && told.contains(&format!("{batch} images")));
        assert!(told.len() == 2 && of("steps of ") && of("answers of "), "{told:?}");
        for (a, b) in whole.iter().zip(&halved) {
            assert!((a.cross_entropy - b.cross_entropy).abs() < 1e-5, "{a:?} {b:?}");
            assert!((a.grad_norm - b.grad_norm).abs() < 1e-4 * a.grad_norm, "{a:?} {b:?}");
        }
        let apart = answers.iter().zip(&fewer).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(answers.len() == 4 * batch && apart < 1e-3, "{architecture:?}: answers {apart:e} apart");
    }
}

/// Cubecl forgets that an array has no memory once it is joined with one that has: what is read then is wrong, and only we know.
#[test]
fn an_array_that_is_too_large_is_heard_of_wherever_it_went() {
    let Some(adapter) = adapter() else { return };
    let joined = |device: &Device| {
        let [column, row] = [[4096, 1], [1, 1024]].map(|shape| Tensor::<2>::ones(shape, device));
        let sums = bounded(column.matmul(row)).sum_dim(1).reshape([4096]);
        to_host(Tensor::cat(vec![sums, Tensor::ones([4096], device)], 0).sum())
    };
    let sum = joined(&adapter.chosen().device).unwrap()[0];
    assert_eq!(sum, 4096.0 * 1025.0);
    adapter.confine(Some(SMALL));
    let small = joined(&adapter.chosen().device);
    adapter.confine(None);
    assert!(matches!(small, Err(Error::OutOfMemory { .. })), "{small:?}");
}
