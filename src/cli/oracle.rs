//! `bayescope oracle list|info|train`, and what the other subcommands lead to.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::args::{Compute, DeviceArg, OracleCommand, PrecisionArg};
use super::open::open;
use super::output::{Output, print_json_line};
use super::progress::{Bar, Refining};
use super::run::stop_signal;
use super::task::{Watched, run_watched};
use super::validate;
use crate::amounts::duration;
use crate::bayes::{Estimate, GaussianClasses, Information, Spec, bayes_error, information};
use crate::device::{DeviceChoice, OpenDevice, choose, on_device};
use crate::error::{Error, Result};
use crate::measure::{Interval, student_half, wilson};
use crate::oracle::evaluate::Evaluation;
use crate::oracle::folder::OracleInfo;
use crate::oracle::library;
use crate::oracle::posterior::Prior;
use crate::oracle::train::{Measured, Measurement, ORACLE, TrainEvent, TrainSpec};
use crate::run::TrainOracle;
use crate::stats::Z95;
use crate::units::Tau;

/// Does what the subcommand says.
pub fn run(command: OracleCommand) -> Result<()> {
    match command {
        OracleCommand::List { output } => list(output),
        OracleCommand::Info { oracle, output } => output.print(&Described::read(&oracle)?, Described::tell),
        OracleCommand::Train { spec, out, device, json } => {
            let task = TrainOracle { spec: TrainSpec::read(&spec)?, folder: out };
            // One for all devices: what was asked for while one of them was lost is not forgotten on the next.
            let stop = stop_signal()?;
            on_device(choose(device.device)?, |chosen| train(&task, &stop, chosen, json))
        }
        OracleCommand::Validate(args) => validate::run(&args),
        OracleCommand::Reality(args) => validate::reality(&args),
        OracleCommand::Precision { images, samples } => validate::precision(images, samples),
        OracleCommand::Depth { n, samples } => validate::depth(n, samples),
    }
}

fn list(output: Output) -> Result<()> {
    let bundled = library::names().into_iter().filter_map(library::find);
    let infos: Vec<OracleInfo> = bundled.map(library::Bundled::info).collect::<Result<_>>()?;
    output.print(&infos, |infos| {
        for info in infos {
            let figures = info.training.as_ref().and_then(|t| t.test.as_ref()).map(figures).unwrap_or_default();
            println!(
                "{:16} {} · {} classes · {}  {figures}",
                info.name,
                info.family,
                info.class_names.len(),
                info.architecture.shape()
            );
        }
        println!("Intervals are of 95 %, over the images.");
        Ok(())
    })
}

/// With 95 % intervals over the images; the NLL of one image has none.
fn figures(e: &Evaluation) -> String {
    let Interval { low, high } = wilson(e.right(), e.images);
    let half = Some(student_half(e.nll_std_error, e.images)).filter(|half| half.is_finite());
    format!(
        "NLL {:.1}{} nats ({:.3} bits/dim), {:.2} % [{:.2}, {:.2}] right on {} images",
        e.nll_nats,
        half.map_or_else(String::new, |half| format!(" ± {half:.1}")),
        e.bits_per_dim,
        100.0 * e.accuracy,
        100.0 * low,
        100.0 * high,
        e.images
    )
}

/// An oracle with the figures of its world at τ = 1 and a uniform prior, where classes share a map.
#[derive(Serialize)]
struct Described {
    #[serde(flatten)]
    info: OracleInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<Figures>,
}

#[derive(Serialize)]
struct Figures {
    tau: f64,
    /// Dimensions in which the classes differ.
    rank: usize,
    bayes_error: Estimate,
    information: Information,
}

impl Described {
    fn read(oracle: &str) -> Result<Self> {
        let device = DeviceArg { device: DeviceChoice::Cpu };
        let opened = open(oracle, &Compute { device, precision: PrecisionArg::F32 })?;
        let figures = |base| -> Result<Figures> {
            let classes = GaussianClasses::of_base(base, &Prior::uniform(opened.world.class_names().len()))?;
            let bayes_error = bayes_error(&classes, Tau::ONE, &Spec::default(), &mut Refining::new("bayes-error"))?;
            let spec = Spec { tolerance: 1e-3, ..Spec::default() };
            let information = information(&classes, Tau::ONE, &spec, &mut Refining::new("information"))?;
            Ok(Figures { tau: 1.0, rank: classes.rank(), bayes_error, information })
        };
        let world = opened.world.flow().shared_base().map(figures).transpose()?;
        Ok(Self { info: opened.info, world })
    }

    fn tell(&self) -> Result<()> {
        describe(&self.info)?;
        if let Some(Figures { bayes_error, information, rank, .. }) = &self.world {
            let (error, aleatoric) = (bayes_error.figure, information.aleatoric_nats);
            println!(
                "world:         at τ = 1 Bayes error {:.4} ± {:.4} % ({} in {rank} dimensions), A = {:.5} ± {:.5} nats",
                100.0 * error.value,
                100.0 * Z95 * error.std_error,
                bayes_error.method.name(),
                aleatoric.value,
                Z95 * aleatoric.std_error
            );
        }
        println!("intervals:     95 %");
        Ok(())
    }
}

fn describe(info: &OracleInfo) -> Result<()> {
    let a = &info.architecture;
    println!("{}: {} of {} images, {} classes", info.name, info.family, a.shape(), info.class_names.len());
    println!("classes:       {}", info.class_names.join(", "));
    println!("architecture:  {}", a.describe());
    println!("preprocessing: {}", info.preprocessing);
    println!("weights:       {}, SHA-256 {}", info.storage, info.weights_sha256);
    if let Some(notice) = info.notice() {
        println!("notice:        {notice}");
    }
    for sentence in info.inferred.iter().flatten() {
        println!("inferred:      {sentence}");
    }
    if let Some(t) = &info.training {
        println!("trained on:    {} images of {}, seed {}", t.images, t.data, t.spec.training.seed.0);
        println!("               {} on {}, epoch {} kept, {}", duration(t.seconds), t.device, t.epoch, t.finished);
        if let Some(history) = &t.history {
            println!("               {history}");
        }
        println!("held out:      {}", figures(&t.held_out));
        if let Some(test) = &t.test {
            println!("test:          {}", figures(test));
        }
        if let Some(d) = &t.storage_drift {
            println!(
                "stored as f16: posteriors move by {:.1e} on average and {:.1e} at most, {} of {} decisions change",
                d.mean_posterior, d.max_posterior, d.decisions_changed, d.images
            );
        }
    }
    Ok(())
}

fn train(task: &TrainOracle, stop: &AtomicBool, chosen: &OpenDevice, json: bool) -> Result<()> {
    let bar = Bar::new("training");
    bar.line(&format!("training {} on {} ({})", task.spec.name, chosen.report.used.name, chosen.report.reason));
    let mut waits = false;
    let mut tell = |bar: &Bar, event: &TrainEvent| {
        tell(bar, event);
        if json {
            print_json_line(event)?;
        }
        if !stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        // The epoch is told before the end, as it is on disk before it.
        let TrainEvent::Measuring(Measurement { what: Measured::HeldOut, epoch, .. }) = event else {
            return Err(stopped(&task.folder));
        };
        if !std::mem::replace(&mut waits, true) {
            bar.line(&format!(
                "stops when the images held out are measured: epoch {epoch} is on disk then (once more: at once, and from the last checkpoint)"
            ));
        }
        Ok(())
    };
    let info = run_watched(task, None, chosen, Watched { bar: &bar, images: &[], tell: &mut tell })?;
    if json { print_json_line(&info) } else { describe(&info) }?;
    bar.line(&format!("the oracle is in {}", task.folder.join(ORACLE).display()));
    Ok(())
}

fn stopped(folder: &Path) -> Error {
    Error::Stopped(format!("stopped; the same command goes on from here: what was trained is in {}", folder.display()))
}

/// Where a training of so many epochs goes on.
fn next(resumed_at: usize, steps_done: usize, epochs: usize) -> String {
    let next = format!("epoch {} of {epochs} is next", resumed_at + 1);
    match (resumed_at >= epochs, steps_done) {
        (true, _) if epochs == 1 => "its one epoch is trained".into(),
        (true, _) => format!("all {epochs} epochs are trained"),
        (false, 0) => next,
        (false, steps) => format!("{next}, {steps} steps of which are done"),
    }
}

fn tell(bar: &Bar, event: &TrainEvent) {
    match event {
        TrainEvent::Started { images, held_out, parameters, resumed_at, steps_done, epochs, .. } => bar.line(&format!(
            "{images} images, {held_out} held out, {parameters} parameters; {}",
            next(*resumed_at, *steps_done, *epochs)
        )),
        TrainEvent::Unrecorded(missing) => bar.line(&missing.to_string()),
        TrainEvent::LongWarmUp(long) => bar.line(&long.to_string()),
        TrainEvent::WidePadding(wide) => bar.line(&wide.to_string()),
        TrainEvent::AsRead(read) => bar.line(&read.to_string()),
        TrainEvent::SecondNoise(noise) => bar.line(&noise.to_string()),
        TrainEvent::Skipped { epoch, step } => bar.line(&format!("epoch {epoch}, step {step}: not finite, skipped")),
        TrainEvent::RolledBack { epoch, rate_scale } => bar.line(&format!(
            "epoch {epoch} diverged: back to the last epoch on disk, or the beginning, with {rate_scale} of the learning rate"
        )),
        TrainEvent::Epoch { epoch, epochs, train_nll, held_out, best, seconds } => bar.line(&format!(
            "epoch {epoch}/{epochs}: training NLL {train_nll:.1} nats · held out: {}{} · {seconds:.0} s",
            figures(held_out),
            if *best { " · best" } else { "" },
        )),
        TrainEvent::NoSamples { epoch, why } => bar.line(&format!("epoch {epoch}: no samples to show ({why})")),
        // How far it is stands in the job's own progress.
        TrainEvent::Step { .. } | TrainEvent::Measuring(_) | TrainEvent::Samples { .. } => {}
    }
}
