//! `bayescope posterior --out`.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::args::{Compute, DeviceArg, PosteriorArgs};
use super::open::{Opened, open_silently, suits, with_oracle};
use super::pictures;
use super::progress::Bar;
use super::task::{Watched, run_watched};
use crate::amounts::duration;
use crate::data::left_unread;
use crate::device::{DeviceChoice, OpenDevice, choose};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::pictures::Fits;
use crate::oracle::scale::{
    self, Computer, Estimate, Images, LONGEST, Opened as Found, Outcome, POSTERIORS, Running, ScaleEvent, ScaleSpec,
};
use crate::task::{Done, OpenOracle, Task, TaskContext};

/// Where stderr is no terminal, a line about the progress is written this often.
const LINES: Duration = Duration::from_secs(30);

#[derive(Serialize)]
struct Report<'a> {
    folder: String,
    shard: usize,
    of: usize,
    opened: Option<Found>,
    estimate: Option<Estimate>,
    seconds: f64,
    /// Present once the result is.
    file: Option<String>,
    /// Of images that were not read, as on stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// Posteriors of many images in a folder: begins the job there, or resumes it.
#[derive(Debug, PartialEq)]
struct ScorePosteriors {
    oracle: String,
    input: Vec<PathBuf>,
    fits: Fits,
    /// What was asked for, if anything.
    dequantise: Option<Dequantisation>,
    precision: Precision,
    spec: ScaleSpec,
    folder: PathBuf,
    /// Devices that take shards of their own accord; the device in use computes the shard of `spec`
    /// where there are none.
    devices: Vec<DeviceChoice>,
}

impl Task for ScorePosteriors {
    type Event = ScaleEvent;
    type Live = ();
    type Report = Outcome;

    fn title(&self) -> String {
        format!("Posteriors in {}", self.folder.display())
    }

    fn run(&self, cx: &mut TaskContext<'_, ScaleEvent>) -> Result<Done<Outcome>> {
        let (spec, folder) = (&self.spec, &self.folder);
        let outcome = if self.devices.is_empty() {
            let OpenOracle { name, info, world } = cx.oracle()?;
            let device = cx.chosen.report.used.label();
            let computer = Computer { info, oracle: name, world, precision: self.precision, device: &device };
            let images = Images::open(&self.input, &self.fits, self.dequantise, world)?;
            scale::run(&computer, &images, spec, folder, &mut |event| tell(cx, event))?
        } else {
            let on = |chosen: &OpenDevice, work: &mut dyn FnMut(&Computer<'_>, &Images) -> Result<()>| {
                let Opened { name, info, world, device, .. } =
                    open_silently(&self.oracle, chosen.clone(), self.precision)?;
                let computer =
                    Computer { info: &info, oracle: &name, world: &world, precision: self.precision, device: &device };
                work(&computer, &Images::open(&self.input, &self.fits, self.dequantise, &world)?)
            };
            let devices = self.devices.iter().map(|choice| choose(*choice)).collect::<Result<_>>()?;
            scale::run_on(devices, &on, spec, folder, &mut |event| tell(cx, event))?
        };
        Ok(Done::new(outcome, format!("posteriors are in {}", folder.display())))
    }
}

fn tell(cx: &mut TaskContext<'_, ScaleEvent>, event: ScaleEvent) -> ControlFlow<()> {
    cx.event(event);
    cx.check()
}

impl ScorePosteriors {
    fn new(args: &PosteriorArgs, opened: &Opened, (shard, shards): (usize, usize), folder: &Path) -> Result<Self> {
        let settings = args.world.settings(opened.world.class_names().len())?;
        let (class_batch, image_batch) = (args.scale.class_batch, args.scale.image_batch);
        Ok(Self {
            oracle: args.oracle.clone(),
            input: args.input.clone(),
            fits: args.pictures.fits()?,
            dequantise: args.dequantise.map(|how| how.single("a job of --out")).transpose()?,
            precision: args.precision.into(),
            spec: ScaleSpec { settings, shard, shards, class_batch, image_batch, compare: !args.scale.no_compare },
            folder: folder.to_owned(),
            devices: Vec::new(),
        })
    }
}

/// Resumes the job in `folder`, or begins it.
pub fn run(args: &PosteriorArgs, folder: &Path) -> Result<()> {
    let scale = &args.scale;
    let Some(device) = args.device.devices.one() else { return on_several(args, folder) };
    let compute = Compute { device: DeviceArg { device }, precision: args.precision };
    with_oracle(&args.oracle, &compute, |opened, chosen| {
        let shard = (scale.shard.unwrap_or(0), scale.of.unwrap_or(1));
        let task = ScorePosteriors::new(args, opened, shard, folder)?;
        let mut watch = Watch::new();
        let outcome = watch.run(&task, Some(opened), chosen)?;
        watch.print(args, &task, &outcome)
    })
}

/// The whole job, a shard at a time, on several devices.
fn on_several(args: &PosteriorArgs, folder: &Path) -> Result<()> {
    if args.scale.shard.is_some() {
        return Err(Error::input(
            "several devices divide the work into shards themselves: leave --shard and --of out, or name one device",
        ));
    }
    let devices = args.device.devices.choose()?;
    let precision = Precision::from(args.precision);
    devices.iter().try_for_each(|chosen| suits(chosen, precision))?;
    let first = devices.first().cloned().ok_or_else(|| Error::input("no device"))?;
    // What is asked for is looked at once, before the threads begin.
    let opened = open_silently(&args.oracle, first.clone(), precision)?;
    let mut task = ScorePosteriors::new(args, &opened, (0, scale::shards_for(folder, devices.len())), folder)?;
    drop(opened);
    task.devices = devices.iter().map(|chosen| chosen.report.used.choice).collect();
    let mut watch = Watch::new();
    let outcome = match watch.run(&task, None, &first) {
        // All of them: what is there is there, and `auto` ends at the CPU.
        Err(loss @ Error::DeviceLost { .. }) => {
            eprintln!("{loss}. No device is left of those named; going on with another");
            task.devices = vec![DeviceChoice::Auto];
            watch.run(&task, None, &first)?
        }
        done => done?,
    };
    watch.print(args, &task, &outcome)
}

fn print(report: &Report<'_>) -> Result<()> {
    let Some(result) = &report.outcome.report else {
        let waiting: Vec<String> = report.outcome.waiting_for.iter().map(usize::to_string).collect();
        println!(
            "{}: shard {} of {} is done; {POSTERIORS} is written when these are too: {}",
            report.folder,
            report.shard,
            report.of,
            waiting.join(", ")
        );
        return Ok(());
    };
    println!(
        "{}/{POSTERIORS}: {} images × {} classes of {} at {}, mean entropy {:.4e} nats; exact for {}",
        report.folder,
        result.input.images,
        result.classes,
        result.oracle,
        result.settings.describe(),
        result.mean_aleatoric_nats,
        result.exact_for
    );
    if let Some(done) = &result.input.fitted {
        println!("{done}");
    }
    if let Some(precision) = &result.precision {
        println!("{precision}");
    }
    Ok(())
}

/// Follows a job on stderr.
struct Watch {
    started: Instant,
    told: Instant,
    opened: Option<Found>,
    estimate: Option<Estimate>,
}

impl Watch {
    fn new() -> Self {
        let now = Instant::now();
        Self { started: now, told: now, opened: None, estimate: None }
    }

    fn run(&mut self, task: &ScorePosteriors, opened: Option<&Opened>, chosen: &OpenDevice) -> Result<Outcome> {
        let bar = Bar::new("scoring");
        let mut tell = |bar: &Bar, event: &ScaleEvent| {
            match event {
                ScaleEvent::Opened(opened) => self.opened(bar, *opened),
                ScaleEvent::Estimated(estimate) => self.estimated(bar, estimate),
                ScaleEvent::Computed(running) => self.computed(bar, running),
                ScaleEvent::Writing(progress) => bar.set(*progress, "writing".into()),
            }
            Ok(())
        };
        run_watched(task, opened, chosen, Watched { bar: &bar, images: &[], tell: &mut tell })
    }

    fn print(self, args: &PosteriorArgs, task: &ScorePosteriors, outcome: &Outcome) -> Result<()> {
        let Self { started, opened, estimate, .. } = self;
        let note = match &task.input[..] {
            [path] => left_unread(path)?,
            _ => None,
        };
        let report = Report {
            folder: task.folder.display().to_string(),
            shard: task.spec.shard,
            of: task.spec.shards,
            opened,
            estimate,
            seconds: started.elapsed().as_secs_f64(),
            file: outcome.report.is_some().then(|| task.folder.join(POSTERIORS).display().to_string()),
            note,
            outcome,
        };
        args.output.print(&report, print)?;
        pictures::tell(report.note.as_ref());
        Ok(())
    }

    fn opened(&mut self, bar: &Bar, opened: Found) {
        if opened.dropped_bytes > 0 {
            let bytes = opened.dropped_bytes;
            bar.line(&format!("{bytes} bytes of a write that was cut off were dropped; they are computed again"));
        }
        if opened.pairs.done > 0 {
            let (done, total) = (opened.pairs.done, opened.pairs.total);
            bar.line(&format!("going on: {done} of {total} likelihoods of this shard are there"));
        }
        self.opened = Some(opened);
    }

    fn estimated(&mut self, bar: &Bar, estimate: &Estimate) {
        let Estimate { passes, images_per_pass, classes_per_pass, seconds, image_batch, class_batch, .. } = estimate;
        bar.line(&format!(
            "about {}: {passes} passes of {images_per_pass} images under {classes_per_pass} class{}, {:.3} s each ({}); written every {image_batch} images × {class_batch} classes, or after {} s",
            duration(*seconds),
            if *classes_per_pass == 1 { "" } else { "es" },
            estimate.pass_secs,
            estimate.basis,
            LONGEST.as_secs(),
        ));
        self.estimate = Some(estimate.clone());
    }

    fn computed(&mut self, bar: &Bar, running: &Running) {
        let mean = running.leaders.iter().map(|(_, share)| share).sum::<f64>() / running.leaders.len().max(1) as f64;
        let left = match running.classes.total - running.classes.done {
            0 => String::new(),
            _ => format!(", leaders at most {mean:.3}, {:.0} % of the prior to come", 100.0 * running.prior_left),
        };
        let note = format!(
            "images {}–{}, {} of {} classes{left}; {} left",
            running.images.start,
            running.images.end.saturating_sub(1),
            running.classes.done,
            running.classes.total,
            duration(running.seconds_left)
        );
        if !std::io::stderr().is_terminal() && self.told.elapsed() > LINES {
            self.told = Instant::now();
            let share = 100.0 * running.pairs.done as f64 / running.pairs.total as f64;
            bar.line(&format!("{share:.1} %: {note}"));
        }
        bar.set(running.pairs, note);
    }
}
