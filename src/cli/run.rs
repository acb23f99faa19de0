//! `bayescope run|resume|summary`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::args::{CopiesArgs, DeviceArg, DevicesArg, ResumeArgs, RunArgs, SummaryArgs};
use super::follow::Follower;
use super::laws::law_text;
use super::open::{Opened, open_on, open_silently};
use super::output::{Output, print_text, tell_written};
use super::place::is_free;
use super::progress::Bar;
use super::spec::{Spec, read_spec};
use super::task::run_task_for;
use super::{external, hardness, notes};
use crate::classifier::Labels;
use crate::device::{DeviceChoice, OpenDevice, choose, on_device};
use crate::error::{Error, Result, did_you_mean, in_line};
use crate::experiment::{CellResult, Data, ExperimentSpec, Summary};
use crate::flow::Precision;
use crate::run::{
    AnyRun, EXAMPLES, Example, Run, RunContext, RunExperiment, RunFolder, RunSettings, Share, execute_on, with_tau,
    write_figures,
};

/// How a share of a run is run.
pub(super) struct RunOptions<'a> {
    pub share: Share,
    /// Time between checkpoints.
    every: Duration,
    pub copies: &'a CopiesArgs,
    pub device: &'a DevicesArg,
    pub json: bool,
    /// Raised by a signal, from the first moment on: opening a large oracle takes a while.
    pub stop: Arc<AtomicBool>,
}

impl RunOptions<'_> {
    /// What a run came to; a stop by a signal says how to go on.
    pub fn ended<T>(&self, run: &Path, done: Result<T>) -> Result<T> {
        match done {
            Err(Error::Cancelled) if self.stop.load(Ordering::Relaxed) => {
                Err(Error::Stopped(format!("stopped; `bayescope resume {}` goes on from here", run.display())))
            }
            done => done,
        }
    }
}

/// `bayescope run`.
pub fn run(args: &RunArgs) -> Result<()> {
    let RunArgs { copies, device, json, .. } = args;
    let (share, every) = (args.share.share()?, args.share.every()?);
    let options = RunOptions { share, every, copies, device, json: *json, stop: stop_signal()? };
    match (&args.spec, &args.out, &args.plan) {
        (Some(spec), Some(out), _) => {
            let spec = match read_spec(spec)? {
                Spec::Grid(spec) => spec,
                Spec::Hardness(spec) => return hardness::run(&spec, out, &options),
            };
            start_or_resume(out, &spec, &options)
        }
        (_, _, Some(plan)) => resume_in(plan, &options),
        _ => Err(Error::input("a spec needs --out, the folder of the run")),
    }
}

/// `bayescope resume`.
pub fn resume(args: &ResumeArgs) -> Result<()> {
    let ResumeArgs { copies, device, json, .. } = args;
    let (share, every) = (args.share.share()?, args.share.every()?);
    let options = RunOptions { share, every, copies, device, json: *json, stop: stop_signal()? };
    resume_in(&args.run, &options)
}

fn resume_in(run: &Path, options: &RunOptions<'_>) -> Result<()> {
    let folder = match AnyRun::open(run)? {
        AnyRun::Grid(folder) => folder,
        AnyRun::Hardness(folder) => return hardness::resume(&folder, options),
        AnyRun::External(folder) => return Err(AnyRun::external_refusal(&folder)),
    };
    // Nothing to compute: neither oracle nor device is needed.
    if folder.open(options.share).is_empty() {
        let summary = folder.write_summary()?;
        Output { json: options.json }.print(&summary, tell)?;
        return summary.damage().map_or(Ok(()), |why| Err(Error::Numeric(why)));
    }
    start_or_resume(run, &folder.spec, options)
}

/// Writes the plan, or finds it, and runs what is left; on another device where the first is lost.
fn start_or_resume(run: &Path, spec: &ExperimentSpec, options: &RunOptions<'_>) -> Result<()> {
    let mut chosen = options.device.devices.choose()?;
    let alone = match chosen.len() {
        1 => chosen.remove(0),
        _ => match on_several(run, spec, options, chosen) {
            // All of them: what is there is there, and `auto` ends at the CPU.
            Err(loss @ Error::DeviceLost { .. }) => {
                tracing::warn!("{loss}. No device is left of those named; going on with another");
                choose(DeviceChoice::Auto)?
            }
            done => return done,
        },
    };
    let RunOptions { share, every, copies, .. } = options;
    let settings =
        RunSettings { share: *share, every: *every, stage: copies.stage.clone(), oracle: copies.oracle.clone() };
    let task = RunExperiment { spec: Some(spec.clone()), folder: run.to_owned(), settings };
    on_device(alone, |chosen| {
        let opened = open_on(&oracle_of(run, spec, options), chosen.clone(), Precision::F32)?;
        let done = run_task_for(&task, Some(&opened), chosen, &mut Follower::new(&spec.name, &options.stop));
        Output { json: options.json }.print(&options.ended(run, done)?, tell)
    })
}

/// What opens the oracle of a run: what was asked for, that of the plan where one is there, or the spec's.
fn oracle_of(run: &Path, spec: &ExperimentSpec, options: &RunOptions<'_>) -> String {
    let planned_on = || RunFolder::open(run).map_or_else(|_| spec.world.oracle.clone(), |folder| folder.oracle());
    options.copies.oracle.clone().unwrap_or_else(planned_on)
}

/// Every device takes the next cell.
fn on_several(run: &Path, spec: &ExperimentSpec, options: &RunOptions<'_>, devices: Vec<OpenDevice>) -> Result<()> {
    let first = devices.first().cloned().ok_or_else(|| Error::input("no device"))?;
    let oracle = oracle_of(run, spec, options);
    let (folder, _) = plan_in(run, spec, &open_on(&oracle, first, Precision::F32)?)?;
    let on = |chosen: &OpenDevice, work: &mut dyn FnMut(&RunContext<'_>) -> Result<()>| {
        let opened = open_silently(&oracle, chosen.clone(), Precision::F32)?;
        let spec = &folder.spec;
        let (data, settings) = (open_data(spec, &opened)?, spec.world.settings(opened.world.class_names().len())?);
        let (every, stage) = (options.every, options.copies.stage.clone());
        let weights_sha256 = Some(opened.info.weights_sha256.as_str());
        let context = RunContext::new(&opened.world, settings, &chosen.device);
        work(&RunContext { weights_sha256, data, every, stage, ..context })
    };
    let done = execute_on(&folder, options.share, devices, &on, &mut Follower::new(&folder.spec.name, &options.stop));
    Output { json: options.json }.print(&options.ended(&folder.path, done)?, tell)
}

/// Plans a run, with the dataset of its spec if it names one, or finds its plan.
pub(super) fn plan_in(path: &Path, spec: &ExperimentSpec, opened: &Opened) -> Result<(RunFolder, Option<Data>)> {
    let (world_id, device) = (&opened.info.world_id(), &opened.device);
    let spec = &with_tau(path, spec, &opened.world, (world_id, device), &mut Bar::new("tau"))?;
    let data = open_data(spec, opened)?;
    Ok((RunFolder::create(path, spec, world_id, data.as_ref())?, data))
}

pub(super) fn open_data(spec: &ExperimentSpec, opened: &Opened) -> Result<Option<Data>> {
    Data::open(spec, &opened.world)
}

/// Opens the oracle of a spec, or a copy of it.
pub(super) fn open_world(spec: &ExperimentSpec, device: &DeviceArg) -> Result<(Opened, burn::tensor::Device)> {
    let chosen = choose(device.device)?;
    let device = chosen.device.clone();
    Ok((open_on(&spec.world.oracle, chosen, Precision::F32)?, device))
}

/// A flag that the usual signals raise: to checkpoint and end. A second Ctrl+C ends at once.
pub(super) fn stop_signal() -> Result<Arc<AtomicBool>> {
    use signal_hook::{consts, flag};
    let stop = Arc::new(AtomicBool::new(false));
    let failed = |e: std::io::Error| Error::io("signals", e);
    flag::register_conditional_default(consts::SIGINT, Arc::clone(&stop)).map_err(failed)?;
    let mut signals = vec![consts::SIGINT, consts::SIGTERM];
    #[cfg(unix)]
    signals.extend([consts::SIGUSR1, consts::SIGUSR2]);
    for signal in signals {
        flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
    }
    Ok(stop)
}

/// `bayescope summary`.
pub fn summary(args: &SummaryArgs) -> Result<()> {
    [&args.figures, &args.png].into_iter().flatten().try_for_each(|place| is_free(place))?;
    let [run] = &args.runs[..] else { return external::law(args) };
    // The name of an example stands for its folder, unless such a folder is there.
    let unpacked = match run.to_str().and_then(Example::find).filter(|_| !run.exists()) {
        Some(example) => {
            let place = tempfile::tempdir().map_err(|e| Error::io(std::env::temp_dir(), e))?;
            example.unpack(place.path())?;
            Some(place)
        }
        None => None,
    };
    let run = unpacked.as_ref().map_or(run.as_path(), |place| place.path());
    if !run.exists() {
        let near = did_you_mean(&run.display().to_string(), EXAMPLES.iter().map(|example| example.name));
        return Err(Error::file(run, format!("there is no such run{near}")));
    }
    let opened = AnyRun::open(run)?;
    let plain = !args.json && !args.csv && args.worst.is_none() && args.bought.is_none() && args.figures.is_none();
    if plain {
        print_text(&notes::heading(run))?;
    }
    let folder = match opened {
        AnyRun::Grid(folder) => folder,
        AnyRun::Hardness(folder) => return hardness::summary(&folder, args),
        AnyRun::External(folder) => return external::summary(&folder, args),
    };
    if let Some(cell) = &args.worst {
        return super::worst::worst(&folder, cell, args.json);
    }
    if let Some(cell) = &args.bought {
        return super::bought::bought(&folder, cell, args.png.as_deref(), args.json);
    }
    let summary = folder.summary()?;
    if args.csv || args.figures.is_some() {
        // Neither tables nor figures name the cells that they lack.
        summary.damaged.iter().for_each(|cell| eprintln!("warning: {}", in_line(&cell.warning())));
    }
    if let Some(place) = &args.figures {
        let figures = folder.figures(&summary, folder.world_sha256().as_deref());
        let written = write_figures(&figures, &summary.tables(), place, &folder.spec.name)?;
        return tell_written(&written, args.json);
    }
    if args.csv { print_text(&summary.csv()) } else { Output { json: args.json }.print(&summary, tell) }
}

fn tell(summary: &Summary) -> Result<()> {
    let mut text = format!("{}: {} of {} cells finished\n", summary.name, summary.finished, summary.planned);
    for cell in &summary.damaged {
        text += &format!("warning: {}\n", cell.warning());
    }
    // Worlds of several temperatures have a floor each.
    let one_world = summary.cells.iter().all(|result| Some(result.measured.aleatoric) == summary.aleatoric);
    if let (Some(aleatoric), Some(bayes), true) = (summary.aleatoric, summary.bayes_accuracy, one_world) {
        text += &format!(
            "floor of every classifier: {:.4} [{:.4}, {:.4}] nats, {:.2} % right at most\n\n",
            aleatoric.value,
            aleatoric.interval.low,
            aleatoric.interval.high,
            100.0 * bayes.value
        );
    }
    for caveat in summary.caveats() {
        text += &format!("{caveat}\n\n");
    }
    text += &format!(
        "{:20} {:>7} {:>5}  {:>8} {:>9} [{:>7}, {:>7}]  {:>7} {:>6} {:>6}\n",
        "classifier", "N", "seed", "L nats", "KL nats", "95 %", "", "right %", "gap %", "ECE"
    );
    let mut under = None;
    for CellResult { cell, measured: m, .. } in &summary.cells {
        if let Some(name) = summary.conditions.get(cell.condition).filter(|name| under != Some(*name)) {
            text += &format!("{name}\n");
            under = Some(name);
        }
        let told = if cell.labels == Labels::Drawn { "" } else { cell.labels.name() };
        text += &format!(
            "{:20} {:>7} {:>5}  {:>8.4} {:>9.5} [{:>7.5}, {:>7.5}]  {:>7.2} {:>6.2} {:>6.4}\n",
            format!("{} {told}", cell.architecture.label()),
            cell.train_size,
            cell.seed,
            m.cross_entropy.value,
            m.epistemic.value,
            m.epistemic.interval.low,
            m.epistemic.interval.high,
            100.0 * m.expected_accuracy.value,
            100.0 * m.gap.value,
            m.ece.value
        );
    }
    text.push('\n');
    summary.laws.iter().for_each(|law| text += &law_text(law));
    if summary.analysis.is_some() {
        summary.tables().iter().for_each(|table| text += &format!("{}\n", table.text()));
    }
    print_text(&text)
}
