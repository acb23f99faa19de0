//! The command line: the same functions the explorer calls. One JSON document or a short report on stdout, progress on
//! stderr. Exit codes: 0 done, 1 failed, 2 usage, 75 (EX_TEMPFAIL) stopped by a signal after a checkpoint: start it again.

/// A line on stdout. The standard one panics where the reader has seen enough (`| head`), and on a full disk.
macro_rules! println {
    ($($line:tt)*) => { $crate::cli::say(&format!($($line)*)) };
}

mod args;
mod bayes;
mod bench;
mod bought;
mod doctor;
mod evaluate;
mod evidence;
mod export;
mod fetch;
mod hardness;
mod look;
mod oracle;
mod plan;
mod posterior;
mod progress;
mod run;
mod sample;
mod scale;
mod serve;
mod slurm;
mod spec;
mod validate;
mod verify;
mod walk;
mod watch;
mod worst;

use std::io::Write;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use serde::Serialize;

use crate::device::{Chosen, DeviceChoice, choose, explain, on_device};
use crate::error::{Error, Result, shown};
use crate::flow::Precision;
use crate::flow::weights::Weights;
use crate::oracle::folder::{self, OracleInfo};
use crate::oracle::provenance::Machine;
use crate::oracle::strategies;
use crate::oracle::world::World;
use args::{BenchTask, Cli, Command, Compute, Explore};
use progress::Bar;

/// Version, and the devices this build can compute on, as `--version` prints them.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (features: {})", env!("CARGO_PKG_VERSION"), features().join(", ")));

/// The parts of the program that were compiled in, by their names in `Cargo.toml`.
fn features() -> Vec<&'static str> {
    let all = [
        ("gui", cfg!(feature = "gui")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("cuda", cfg!(feature = "cuda")),
        ("remote", cfg!(feature = "remote")),
    ];
    all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()
}

/// Parses the arguments and does what they say.
pub fn main() -> ExitCode {
    crate::device::memory::keep_freed();
    crate::error::leave_caught_panics_untold();
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_env("BAYESCOPE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("bayescope=warn,error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let done = settle_instructions(cli.reproducible).and_then(|()| carry_out(cli));
    match done {
        Ok(()) if UNSAID.load(Ordering::Relaxed) => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = explain(error, None);
            eprintln!("bayescope: {}", shown(&error.to_string()));
            match error {
                Error::Stopped(_) => ExitCode::from(crate::run::slurm::STOPPED),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Instructions that this program does not know are refused, so that nobody takes other figures for theirs.
fn settle_instructions(reproducible: bool) -> Result<()> {
    if let Some(asked) = crate::kernels::unknown_request() {
        return Err(Error::input(format!("BAYESCOPE_SIMD={asked} is not known; give avx2, portable or nothing")));
    }
    if reproducible {
        crate::kernels::settle_on_portable();
        REPRODUCIBLE.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether `--reproducible` was given.
static REPRODUCIBLE: AtomicBool = AtomicBool::new(false);

fn reproducible() -> bool {
    REPRODUCIBLE.load(Ordering::Relaxed)
}

/// Whether what `--reproducible` promises holds on a device.
fn keeps_promise(chosen: &Chosen) -> Result<()> {
    if !reproducible() {
        return Ok(());
    }
    if chosen.report.used.choice != DeviceChoice::Cpu {
        return Err(Error::input("--reproducible needs --device cpu: other devices add in an order of their own"));
    }
    Ok(())
}

fn carry_out(cli: Cli) -> Result<()> {
    match cli.command {
        None => explore(cli.explore),
        Some(Command::Doctor { device, json }) => doctor::run(device.device, json),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Bench { task: Some(BenchTask::BayesError { runs }), .. }) => bench::bayes_error(runs),
        Some(Command::Bench { task: Some(BenchTask::Sampling { oracle, images, device, runs }), .. }) => {
            bench::sampling(&oracle, images, device.device, runs)
        }
        Some(Command::Bench {
            task: Some(BenchTask::Train { architectures, side, batch, shards, device, runs }),
            ..
        }) => bench::training(&architectures, [side, batch, shards], device.device, runs),
        Some(Command::Bench { task: Some(BenchTask::Posterior { oracle, device, runs }), .. }) => {
            bench::run(&oracle, device.device, runs)
        }
        #[cfg(all(feature = "gui", feature = "wgpu"))]
        Some(Command::Bench { task: Some(BenchTask::Paint { oracle, device, runs }), .. }) => {
            bench::paint(&oracle, device, runs)
        }
        Some(Command::Bench { oracle, device, runs, .. }) => bench::all(oracle.as_deref(), device.device, runs),
        Some(Command::BayesError(args)) => bayes::error(&args),
        Some(Command::Tau(args)) => bayes::tau(&args),
        Some(Command::Hardness(args)) => bayes::hardness(&args),
        Some(Command::Check(args)) => bayes::check(&args),
        Some(Command::Oracle { command }) => oracle::run(command),
        Some(Command::Sample(args)) => sample::run(&args),
        Some(Command::Export(args)) => export::run(&args),
        Some(Command::Evaluate(args)) => evaluate::run(&args),
        Some(Command::Fetch(args)) => fetch::run(&args),
        Some(Command::Posterior(args)) => posterior::run(args),
        Some(Command::Walk(args)) => walk::run(&args),
        Some(Command::Evidence(args)) => evidence::run(&args),
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Resume(args)) => run::resume(&args),
        Some(Command::Plan(args)) => plan::plan(&args),
        Some(Command::Summary(args)) => run::summary(&args),
        Some(Command::Watch(args)) => watch::run(&args),
        Some(Command::Slurm(args)) => slurm::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
    }
}

#[cfg(not(feature = "gui"))]
fn explore(_: Explore) -> Result<()> {
    Err(Error::input(
        "this build has no window (feature `gui` is off); try `bayescope sample mnist --n 64 --out digits.png` or `bayescope --help`",
    ))
}

#[cfg(feature = "gui")]
fn explore(mut args: Explore) -> Result<()> {
    // `bayescope animals` means the world of that name, where no file has it.
    let mut named = None;
    args.files.retain(|file| {
        let bundled = file.to_str().and_then(crate::oracle::library::find).filter(|_| !file.exists());
        named = named.or(bundled.map(|bundled| bundled.name));
        bundled.is_none()
    });
    crate::gui::run(crate::gui::Options {
        device: args.device.device,
        oracle: args.oracle.unwrap_or_else(|| named.unwrap_or_default().into()),
        open: args.files,
        screenshot: args.screenshot,
        frame_log: args.frame_log,
        measure_frames: args.measure_frames,
        theme: args.theme.map(|theme| match theme {
            args::Theme::Light => crate::gui::Look::Light,
            args::Theme::Dark => crate::gui::Look::Dark,
        }),
        no_tour: args.no_tour,
        quit_after_secs: args.quit_after,
        lose_device_after_secs: args.lose_device_after,
    })
}

/// An oracle opened for a command.
struct Opened {
    /// As it was asked for: whoever needs the weights again reads them again.
    name: String,
    info: OracleInfo,
    world: World,
    /// What computes, in words.
    device: String,
    /// What computes, as records name it.
    machine: Machine,
}

/// Opens an oracle where and as exactly as asked.
fn open(oracle: &str, compute: &Compute) -> Result<Opened> {
    let (chosen, precision) = suited(compute)?;
    open_on(oracle, chosen, precision)
}

/// `work` with an oracle opened where and as exactly as asked; where that device is lost, once more on the next.
fn with_oracle<T>(oracle: &str, compute: &Compute, mut work: impl FnMut(&Opened, &Chosen) -> Result<T>) -> Result<T> {
    let (chosen, precision) = suited(compute)?;
    on_device(chosen, |chosen| work(&open_on(oracle, chosen.clone(), precision)?, chosen))
}

/// The device and the arithmetic that are asked for.
fn suited(compute: &Compute) -> Result<(Chosen, Precision)> {
    let chosen = choose(compute.device.device)?;
    let precision = Precision::from(compute.precision);
    suits(&chosen, precision)?;
    Ok((chosen, precision))
}

fn suits(chosen: &Chosen, precision: Precision) -> Result<()> {
    if precision == Precision::F64 && chosen.report.used.choice != DeviceChoice::Cpu {
        return Err(Error::input(
            "--precision f64 needs --device cpu: adapters differ in what 64-bit arithmetic they have",
        ));
    }
    Ok(())
}

/// Opens an oracle on a device that is chosen already.
fn open_on(oracle: &str, chosen: Chosen, precision: Precision) -> Result<Opened> {
    let read = folder::read_watched(oracle, &mut Bar::new("reading"))?;
    open_read(oracle, read, &chosen, precision)
}

/// [`open_on`] on one of several devices: it tells of no progress, as several bars at once are none.
fn open_silently(oracle: &str, chosen: Chosen, precision: Precision) -> Result<Opened> {
    open_read(oracle, folder::read(oracle)?, &chosen, precision)
}

fn open_read(
    oracle: &str,
    (info, weights): (OracleInfo, Weights),
    chosen: &Chosen,
    precision: Precision,
) -> Result<Opened> {
    keeps_promise(chosen)?;
    let world = info.clone().build(weights, &chosen.device, precision, chosen.batch)?.world;
    let device = chosen.report.used.label();
    if !reproducible() {
        strategies::recall(world.flow(), &info.weights_sha256, &device, world.batch().next_power_of_two());
    }
    let machine = Machine::with(&chosen.report.used);
    Ok(Opened { name: oracle.to_owned(), info, world, device, machine })
}

/// One JSON document on stdout.
fn print_json(value: &impl Serialize) -> Result<()> {
    print(serde_json::to_string_pretty(value))
}

/// One line of JSON on stdout.
fn print_json_line(value: &impl Serialize) -> Result<()> {
    print(serde_json::to_string(value))
}

fn print(text: serde_json::Result<String>) -> Result<()> {
    match text {
        Ok(text) => print_text(&(text + "\n")),
        Err(error) => Err(Error::io("standard output", error.into())),
    }
}

/// Whether a line could not be written to stdout, other than for want of a reader.
static UNSAID: AtomicBool = AtomicBool::new(false);

/// A line on stdout; the first that cannot be written is told on stderr, and makes the command fail once it has done its work.
fn say(line: &str) {
    if let Err(error) = print_text(&format!("{line}\n"))
        && !UNSAID.swap(true, Ordering::Relaxed)
    {
        eprintln!("bayescope: {error}");
    }
}

/// Text on stdout, without signs that would command a terminal: names in it come from files.
fn print_text(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(shown(text).as_bytes()).and_then(|()| out.flush()) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io("standard output", error)),
        _ => Ok(()),
    }
}
