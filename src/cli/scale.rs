//! `bayescope posterior --out`.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::args::{Compute, DeviceArg, PosteriorArgs};
use super::open::{Opened, open_silently, suits, with_oracle};
use super::output::print_json;
use super::progress::{Bar, duration};
use crate::device::{DeviceChoice, OpenDevice, choose};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::flow::Precision;
use crate::oracle::scale::{
    self, Computer, Estimate, Images, Opened as Found, Outcome, POSTERIORS, Running, ScaleEvent, ScaleSpec,
};

/// Where nobody watches a bar, a line about the progress is written this often.
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
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// Goes on with the job in `folder`, or begins it.
pub fn run(args: &PosteriorArgs, folder: &Path) -> Result<()> {
    let scale = &args.scale;
    let Some(device) = args.device.devices.one() else { return on_several(args, folder) };
    let compute = Compute { device: DeviceArg { device }, precision: args.precision };
    with_oracle(&args.oracle, &compute, |opened, _| {
        let spec = spec(args, opened, (scale.shard.unwrap_or(0), scale.of.unwrap_or(1)))?;
        let (started, mut watch) = (Instant::now(), Watch::new());
        let outcome = scale::run(&computer(args, opened), &images(args, opened)?, &spec, folder, &mut watch)?;
        tell((args, folder), (spec.shard, spec.shards), (watch, started), &outcome)
    })
}

/// The whole job, a shard at a time, on several devices.
fn on_several(args: &PosteriorArgs, folder: &Path) -> Result<()> {
    if args.scale.shard.is_some() {
        return Err(Error::input(
            "several devices take shards of their own accord: leave --shard and --of out, or name one device",
        ));
    }
    let devices = args.device.devices.choose()?;
    let precision = Precision::from(args.precision);
    devices.iter().try_for_each(|chosen| suits(chosen, precision))?;
    let shards = scale::shards_for(folder, devices.len());
    // What is asked for is looked at once, before the threads begin.
    let first = devices.first().cloned().ok_or_else(|| Error::input("no device"))?;
    let spec = spec(args, &open_silently(&args.oracle, first, precision)?, (0, shards))?;
    let on = |chosen: &OpenDevice, work: &mut dyn FnMut(&Computer<'_>, &Images) -> Result<()>| {
        let opened = open_silently(&args.oracle, chosen.clone(), precision)?;
        work(&computer(args, &opened), &images(args, &opened)?)
    };
    let (started, mut watch) = (Instant::now(), Watch::new());
    let outcome = match scale::run_on(devices, &on, &spec, folder, &mut watch) {
        // All of them: what is there is there, and `auto` ends at the CPU.
        Err(loss @ Error::DeviceLost { .. }) => {
            watch.bar.line(&format!("{loss}. No device is left of those named; going on with another"));
            scale::run_on(vec![choose(DeviceChoice::Auto)?], &on, &spec, folder, &mut watch)?
        }
        done => done?,
    };
    tell((args, folder), (0, shards), (watch, started), &outcome)
}

fn images(args: &PosteriorArgs, opened: &Opened) -> Result<Images> {
    let how = args.dequantise.single("a job of --out")?;
    Images::open(&args.input, how, &opened.world)
}

fn spec(args: &PosteriorArgs, opened: &Opened, (shard, shards): (usize, usize)) -> Result<ScaleSpec> {
    let settings = args.world.settings(opened.world.class_names().len())?;
    let (class_batch, image_batch, compare) = (args.scale.class_batch, args.scale.image_batch, !args.scale.no_compare);
    Ok(ScaleSpec { settings, shard, shards, class_batch, image_batch, compare })
}

fn computer<'a>(args: &PosteriorArgs, opened: &'a Opened) -> Computer<'a> {
    Computer {
        info: &opened.info,
        oracle: &opened.name,
        world: &opened.world,
        precision: Precision::from(args.precision),
        device: &opened.device,
    }
}

fn tell(
    (args, folder): (&PosteriorArgs, &Path),
    (shard, of): (usize, usize),
    (watch, started): (Watch, Instant),
    outcome: &Outcome,
) -> Result<()> {
    let Watch { opened, estimate, bar, .. } = watch;
    drop(bar);
    let file = outcome.report.is_some().then(|| folder.join(POSTERIORS).display().to_string());
    let seconds = started.elapsed().as_secs_f64();
    let report = Report { folder: folder.display().to_string(), shard, of, opened, estimate, seconds, file, outcome };
    if args.json {
        return print_json(&report);
    }
    print(&report);
    Ok(())
}

fn print(report: &Report<'_>) {
    let Some(result) = &report.outcome.report else {
        let waiting: Vec<String> = report.outcome.waiting_for.iter().map(usize::to_string).collect();
        println!(
            "{}: shard {} of {} is done; {POSTERIORS} is written when these are too: {}",
            report.folder,
            report.shard,
            report.of,
            waiting.join(", ")
        );
        return;
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
    if let Some(precision) = &result.precision {
        println!("{precision}");
    }
}

/// Follows a job on stderr.
struct Watch {
    bar: Bar,
    told: Instant,
    opened: Option<Found>,
    estimate: Option<Estimate>,
}

impl Watch {
    fn new() -> Self {
        Self { bar: Bar::new("scoring"), told: Instant::now(), opened: None, estimate: None }
    }

    fn opened(&mut self, opened: Found) {
        if opened.dropped_bytes > 0 {
            let bytes = opened.dropped_bytes;
            self.bar.line(&format!("{bytes} bytes of a write that was cut off were dropped; they are computed again"));
        }
        if opened.pairs.done > 0 {
            let (done, total) = (opened.pairs.done, opened.pairs.total);
            self.bar.line(&format!("going on: {done} of {total} likelihoods of this shard are there"));
        }
        self.opened = Some(opened);
    }

    fn estimated(&mut self, estimate: Estimate) {
        let Estimate { passes, images_per_pass, classes_per_pass, seconds, image_batch, class_batch, .. } = &estimate;
        self.bar.line(&format!(
            "about {}: {passes} passes of {images_per_pass} images under {classes_per_pass} class{}, {:.3} s each ({}); written every {image_batch} images × {class_batch} classes",
            duration(*seconds),
            if *classes_per_pass == 1 { "" } else { "es" },
            estimate.pass_secs,
            estimate.basis,
        ));
        self.estimate = Some(estimate);
    }

    fn computed(&mut self, running: &Running) {
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
            self.bar.line(&format!("{share:.1} %: {note}"));
        }
        self.bar.set(running.pairs, note);
    }
}

impl Events<ScaleEvent> for Watch {
    fn emit(&mut self, event: ScaleEvent) -> ControlFlow<()> {
        match event {
            ScaleEvent::Opened(opened) => self.opened(opened),
            ScaleEvent::Estimated(estimate) => self.estimated(estimate),
            ScaleEvent::Computed(running) => self.computed(&running),
            ScaleEvent::Writing(progress) => self.bar.set(progress, "writing".into()),
        }
        ControlFlow::Continue(())
    }
}
