//! The command line: the same functions the explorer calls. One JSON document or a short report on
//! stdout, progress on stderr. Exit codes: 0 done, 1 failed, 2 usage, 75 (EX_TEMPFAIL) stopped by a
//! signal after a checkpoint: start it again.

/// A line on stdout. The standard one panics on a closed pipe (`| head`) and on a full disk.
macro_rules! println {
    ($($line:tt)*) => { $crate::cli::output::say(&format!($($line)*)) };
}

/// A line on stderr. The standard one panics where stderr cannot be written (`2>&1 | head`, a log on a full disk).
macro_rules! eprintln {
    ($($line:tt)*) => { $crate::cli::output::note(&format!($($line)*)) };
}

mod args;
mod bayes;
mod bench;
mod bought;
mod doctor;
mod evaluate;
mod evidence;
mod export;
mod external;
mod fetch;
mod follow;
mod hardness;
mod laws;
mod notes;
mod open;
mod oracle;
mod output;
mod pictures;
mod place;
mod plan;
mod posterior;
mod program;
mod progress;
mod run;
mod sample;
mod sampling;
mod scale;
mod serve;
mod slurm;
mod spec;
mod target;
mod task;
mod told;
mod typicality;
mod uncertainty;
mod validate;
mod verify;
mod version;
mod walk;
mod watch;
mod words;
mod worst;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use crate::device::explain;
use crate::error::{Error, Result, shown};
use args::{BenchTask, Cli, Command, Explore};
use open::REPRODUCIBLE;
use output::UNSAID;
pub use program::Start;

/// Exit code of what failed.
const FAILED: u8 = 1;
/// Exit code of words that cannot be meant, as clap has it.
const USAGE: u8 = 2;

/// Parses the arguments and does what they say.
pub fn main() -> ExitCode {
    ExitCode::from(main_of(std::env::args_os(), None))
}

/// [`main`] of given arguments, the name of the program first, and of what starts it where that is not the file that runs;
/// returns its exit code. Ends the process where the arguments cannot be used, or ask for help.
pub fn main_of(args: impl IntoIterator<Item = OsString>, start: Option<Start>) -> u8 {
    if let Some(start) = start {
        program::is_started_by(start);
    }
    crate::device::memory::keep_freed();
    crate::error::leave_caught_panics_untold();
    let cli = match words::arranged(args.into_iter().collect()).and_then(|words| words::parsed(&words)) {
        Ok(cli) => cli,
        Err(error) => {
            eprintln!("bayescope: {}", shown(&error.to_string()));
            return USAGE;
        }
    };
    place::FORCE.store(cli.force, Ordering::Relaxed);
    let filter = tracing_subscriber::EnvFilter::try_from_env("BAYESCOPE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("bayescope=warn,error"));
    // A warning that cannot be written is left out: to say so, the subscriber would print it on the same stderr and panic.
    let warnings =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    // A file of what was said gets no signs of colour.
    if std::io::stderr().is_terminal() {
        warnings.init()
    } else {
        warnings.with_ansi(false).init()
    }
    #[cfg(unix)]
    outlive_file_limits();
    crate::verify::recall();
    let done = settle_instructions(cli.reproducible).and_then(|()| dispatch(cli));
    match done {
        Ok(()) if UNSAID.load(Ordering::Relaxed) => FAILED,
        Ok(()) => 0,
        Err(error) => {
            let error = explain(error, None);
            eprintln!("bayescope: {}", shown(&error.to_string()));
            match error {
                Error::Stopped(_) => crate::run::slurm::STOPPED,
                _ => FAILED,
            }
        }
    }
}

/// Catches the signal that ends a program whose file outgrows `ulimit -f`: writing then fails, and the error names the file.
#[cfg(unix)]
fn outlive_file_limits() {
    let caught = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, caught) {
        tracing::warn!("a file that outgrows `ulimit -f` will end this program: {error}");
    }
}

/// Settles what the kernels of the host compute with, before anything computes.
///
/// # Errors
/// When BAYESCOPE_SIMD asks for an unknown instruction set: the figures would be those of another.
pub fn settle_instructions(reproducible: bool) -> Result<()> {
    if let Some(asked) = crate::kernels::unknown_request() {
        return Err(Error::input(format!("BAYESCOPE_SIMD={asked} is not known; give avx2, portable or nothing")));
    }
    if reproducible {
        crate::kernels::settle_on_portable();
        REPRODUCIBLE.store(true, Ordering::Relaxed);
    }
    Ok(())
}

fn dispatch(cli: Cli) -> Result<()> {
    match cli.command {
        None => explore(cli.explore),
        Some(Command::Doctor { device, output }) => doctor::run(device.device, output),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Bench { task: Some(BenchTask::BayesError { runs }), .. }) => bench::bayes_error(runs),
        Some(Command::Bench { task: Some(BenchTask::Sampling { oracle, images, device, runs }), .. }) => {
            bench::sampling(&oracle, images, device.device, runs)
        }
        Some(Command::Bench {
            task: Some(BenchTask::Train { architectures, side, batch, shards, device, runs }),
            ..
        }) => bench::training(&architectures, [side, batch, shards], device.device, runs),
        Some(Command::Bench { task: Some(BenchTask::TrainOracle { oracles, batch, device, runs }), .. }) => {
            bench::training_of_oracles(&oracles, batch, device.device, runs)
        }
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
        Some(Command::External { command }) => external::run(&command),
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
        Some(Command::Notes(args)) => notes::run(&args),
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
    // `bayescope cells` means the world of that name, where no file has it.
    let mut named = None;
    args.files.retain(|file| {
        let bundled = file.to_str().and_then(crate::oracle::library::find).filter(|_| !file.exists());
        named = named.or(bundled.map(|bundled| bundled.name));
        bundled.is_none()
    });
    use clap::CommandFactory;
    let command = Cli::command();
    let commands = || command.get_subcommands().map(clap::Command::get_name);
    args.files.iter().try_for_each(|file| words::exists(file, commands()))?;
    crate::gui::run(crate::gui::Options {
        device: args.device.device,
        oracle: args.oracle.unwrap_or_else(|| named.unwrap_or_default().into()),
        open: args.files,
        screenshot: args.screenshot,
        frame_log: args.frame_log,
        measure_frames: args.measure_frames,
        theme: args.theme.map(|theme| match theme {
            args::Theme::Light => crate::gui::ThemePreference::Light,
            args::Theme::Dark => crate::gui::ThemePreference::Dark,
        }),
        no_tour: args.no_tour,
        quit_after_secs: args.quit_after,
        lose_device_after_secs: args.lose_device_after,
    })
}
