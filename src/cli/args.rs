//! The arguments, as clap sees them.

mod bayes;
mod bench;
mod common;
mod evaluate;
mod evidence;
mod export;
mod external;
mod look;
mod numbers;
mod pictures;
mod run;
mod sampling;
mod scale;
mod serve;
mod target;
mod validate;
mod verify;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::output::Output;
use crate::data::dataset_formats;
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::flow::preprocess::Dequantisation;
use crate::measure::typicality::SAMPLES;
pub use bayes::{BayesErrorArgs, CheckArgs, HardnessArgs, ProblemArgs, TauArgs};
pub use bench::BenchTask;
pub use common::{Compute, DeviceArg, DevicesArg, PrecisionArg, Runs, WorldArgs, prior};
pub use evaluate::EvaluateArgs;
pub use evidence::EvidenceArgs;
pub use export::ExportArgs;
pub use external::{ExternalCommand, ExternalStartArgs, ExternalWorstArgs};
pub use look::LookArgs;
pub use numbers::{count, number};
pub use pictures::FitArgs;
pub use run::{CopiesArgs, NotesArgs, PlanArgs, ResumeArgs, RunArgs, SlurmArgs, SummaryArgs, WatchArgs};
pub use sampling::SamplingArgs;
pub use scale::{ScaleArgs, WalkArgs};
pub use serve::ServeArgs;
pub use target::TargetArgs;
pub use validate::{RealityArgs, ValidateArgs};
pub use verify::VerifyArgs;

/// Explore worlds in which the truth is known: samples of a frozen conditional flow at any temperature, and their exact
/// posteriors.
#[derive(Debug, Parser)]
#[command(name = "bayescope", version = super::version::VERSION.as_str(), args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; without one, open the explorer.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// With --device cpu: the same bytes on every processor of a kind (x86-64, arm64), by kernels without vector instructions, which are
    /// slower. For sample, posterior, walk and evidence; other devices are refused. The last bit of e^x and log is the C library's.
    #[arg(long, global = true)]
    pub reproducible: bool,
    /// Write over files that are there: of sample, walk, evidence, and of the options --report, --figures and --png.
    #[arg(long, global = true)]
    pub force: bool,
    /// What to open the explorer on.
    #[command(flatten)]
    pub explore: Explore,
}

/// Opening the explorer.
#[derive(Debug, Args)]
pub struct Explore {
    /// An oracle by its bundled name, its folder or its checkpoint; images, or a folder of images.
    pub files: Vec<PathBuf>,
    /// Oracle to open: a bundled name, an oracle folder, or a public checkpoint file.
    #[arg(long)]
    pub oracle: Option<String>,
    #[command(flatten)]
    pub device: DeviceArg,
    /// Colours of the window; as last time (at first, the system's) if not given.
    #[arg(long, value_enum)]
    pub theme: Option<Theme>,
    /// Save a picture of the window once the gallery shows samples, then close it.
    #[arg(long, value_name = "FILE.png")]
    pub screenshot: Option<PathBuf>,
    /// Write statistics of the frames to this file on closing.
    #[arg(long, value_name = "FILE.json")]
    pub frame_log: Option<PathBuf>,
    /// Do not offer the tour of the first time.
    #[arg(long)]
    pub no_tour: bool,
    /// Paint without pause for five seconds at rest, for twenty while τ moves as under a hand and for five while a pen draws, then close.
    #[arg(long, requires = "frame_log", conflicts_with = "screenshot")]
    pub measure_frames: bool,
    /// Close the window after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub quit_after: Option<f64>,
    /// Drill: after so many seconds the window's graphics device is taken away.
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub lose_device_after: Option<f64>,
}

/// Colours of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Theme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// What the command line can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show devices, drivers and folders, what will be used and why.
    Doctor {
        #[command(flatten)]
        device: DeviceArg,
        #[command(flatten)]
        output: Output,
    },
    /// Compute reference cases on a device and tell whether each is within its bound of what is right.
    Verify(VerifyArgs),
    /// List, describe, train or validate oracles.
    Oracle {
        /// Which of these.
        #[command(subcommand)]
        command: OracleCommand,
    },
    /// Measure how fast a world answers, and how far that is from what the device can do.
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        /// What to measure alone; everything if not given.
        #[command(subcommand)]
        task: Option<BenchTask>,
        /// Bundled name, oracle folder, or checkpoint file whose likelihoods and samples are timed; `mnist` and `cells` if not given.
        oracle: Option<String>,
        #[command(flatten)]
        device: DeviceArg,
        #[command(flatten)]
        runs: Runs,
    },
    /// Compute the Bayes error of a world or of a class problem, with its interval.
    BayesError(BayesErrorArgs),
    /// Find the base temperature at which a world has a given Bayes error.
    Tau(TauArgs),
    /// Rank the classes of a world by how hard they are to tell from the rest, and from each other.
    Hardness(HardnessArgs),
    /// Tell whether published figures about one world can all be true.
    Check(CheckArgs),
    /// Draw samples from an oracle's world.
    Sample(SampleArgs),
    /// Make a dataset of a world with exact posteriors, to be taken away.
    Export(ExportArgs),
    /// Let a training in any language be watched: folders for its predictions on test images of a world.
    External {
        /// Which of these.
        #[command(subcommand)]
        command: ExternalCommand,
    },
    /// Judge classifiers of any framework against the Bayes limit of an exported dataset.
    Evaluate(EvaluateArgs),
    /// Download a dataset by name, or list those there are.
    Fetch(FetchArgs),
    /// Compute exact posteriors of images in an oracle's world; of very many with --out.
    Posterior(PosteriorArgs),
    /// Walk from an image to another or towards a class, to the image at which two classes are equally probable.
    Walk(WalkArgs),
    /// Show where in an image the evidence for one class and against another lies.
    Evidence(EvidenceArgs),
    /// Train classifiers on a world and take their loss apart into aleatoric and epistemic parts, as a spec says.
    Run(RunArgs),
    /// Go on with a run that was stopped or killed.
    Resume(ResumeArgs),
    /// Show the cells of a run or a spec, and how long they will take.
    Plan(PlanArgs),
    /// Tell what a run's finished cells say.
    Summary(SummaryArgs),
    /// Follow a run that another process or machine works on.
    Watch(WatchArgs),
    /// Name runs, tag them and write notes on them; without any of these, tell what is said of them.
    Notes(NotesArgs),
    /// Print a script that carries out a planned run as a job array of Slurm, for `sbatch`.
    Slurm(SlurmArgs),
    /// Lend this machine's device to Bayescope on another machine.
    Serve(ServeArgs),
}

/// What can be done with oracles.
#[derive(Debug, Subcommand)]
pub enum OracleCommand {
    /// List the bundled oracles.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Describe one oracle.
    Info {
        /// Bundled name, oracle folder, or checkpoint file.
        oracle: String,
        #[command(flatten)]
        output: Output,
    },
    /// Train a conditional Glow or a TarFlow on a dataset; goes on where a stopped or killed run was.
    Train {
        /// What to train: a TOML file (see assets/specs/oracle-mnist.toml).
        spec: PathBuf,
        /// Folder of the run; the finished oracle is its subfolder `oracle`.
        #[arg(long)]
        out: PathBuf,
        #[command(flatten)]
        device: DeviceArg,
        /// Print every event as a line of JSON on stdout.
        #[arg(long)]
        json: bool,
    },
    /// Compare an oracle with real images: likelihood, exactness, and with --images FID, coverage, memorisation and kin.
    Validate(Box<ValidateArgs>),
    /// Hold an oracle's decisions against the labels of real images: a bound of nature's Bayes error, and calibration.
    Reality(RealityArgs),
    /// Compare an oracle on a device with itself in 64 bits on the CPU: posterior, log-likelihood and Bayes decision.
    Precision {
        /// Samples to compare.
        #[arg(long, default_value_t = crate::validate::IMAGES, value_name = "N", value_parser = count, allow_negative_numbers = true)]
        images: usize,
        #[command(flatten)]
        samples: SamplesArgs,
    },
    /// Measure what pictures of 4 to 16 bits a value keep of the posteriors of a world's samples.
    Depth {
        /// Samples to compare.
        #[arg(long = "samples", id = "samples", default_value_t = 1000, value_name = "N", value_parser = count, allow_negative_numbers = true)]
        n: usize,
        #[command(flatten)]
        samples: SamplesArgs,
    },
}

/// Samples of an oracle on a device.
#[derive(Debug, Args)]
pub struct SamplesArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    #[command(flatten)]
    pub world: WorldArgs,
    /// Seed of the samples.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub device: DeviceArg,
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Which dataset; without one, they are listed.
    pub name: Option<String>,
    /// Folder that gets a folder of the dataset's name.
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub out: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `sample`.
#[derive(Debug, Args)]
pub struct SampleArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    /// Number of images.
    #[arg(long, default_value_t = 64, value_parser = count, allow_negative_numbers = true)]
    pub n: usize,
    /// Instead of drawing: standard normal noise `x` [N, C, H, W] and classes `y` [N] of an npz file.
    #[arg(long, value_name = "FILE.npz", conflicts_with_all = ["n", "class", "seed", "guidance", "guide", "annealed", "attention_temperature", "denoise"])]
    pub latents: Option<PathBuf>,
    /// Only this class: its name or number.
    #[arg(long)]
    pub class: Option<String>,
    /// Seed: the same seed on the same device gives the same bytes.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub world: WorldArgs,
    #[command(flatten)]
    pub compute: Compute,
    /// Format of the matrix products that draw the images, where device and oracle have it (TarFlow); densities stay in 32 bits.
    #[arg(long, value_parser = products, default_value = "f32", value_name = "f32|bf16|f16", conflicts_with_all = ["latents", "guidance", "guide", "annealed", "attention_temperature", "denoise"])]
    pub products: MatmulPrecision,
    #[command(flatten)]
    pub look: LookArgs,
    /// `.npz` (x, y, posterior, logp, aleatoric), `.png` (a contact sheet, of --n 1 the image itself) or a folder (PNG files by label).
    /// With a look (--guidance, --denoise) pictures only.
    #[arg(long, value_name = "FILE.npz|FILE.png|DIR")]
    pub out: PathBuf,
    /// Also of one image a contact sheet, enlarged for the eye, which no command reads back as the image.
    #[arg(long)]
    pub sheet: bool,
    /// Print one JSON document about what was written.
    #[arg(long)]
    pub json: bool,
}

fn products(name: &str) -> Result<MatmulPrecision> {
    let known = [MatmulPrecision::F32, MatmulPrecision::Bf16, MatmulPrecision::F16];
    let found = known.into_iter().find(|products| products.name() == name);
    found.ok_or_else(|| Error::input(format!("{name} is none of f32, bf16, f16")))
}

/// What a command that reads images takes.
fn input_help() -> String {
    format!("Image files, a folder, or {} files; `x` of an .npz is in world space", dataset_formats())
}

/// Arguments of `posterior`.
#[derive(Debug, Args)]
pub struct PosteriorArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    #[arg(required = true, help = input_help())]
    pub input: Vec<PathBuf>,
    #[command(flatten)]
    pub pictures: FitArgs,
    #[command(flatten)]
    pub world: WorldArgs,
    #[command(flatten)]
    pub device: DevicesArg,
    /// Arithmetic of the flow; sums over dimensions are 64-bit in both.
    #[arg(long, value_enum, default_value = "f32")]
    pub precision: PrecisionArg,
    /// How 8-bit images become real numbers: with the world's noise of a seed, at the mid-point of their pixels, within their levels
    /// (of pictures that hold the noise already), or the mean density over R draws of that noise, an estimate for the pixels
    /// themselves. By itself seed:0, and levels for pictures of a world's images that this program wrote.
    #[arg(long, value_name = "seed:N|midpoint|levels|mean:R")]
    pub dequantise: Option<Dequantisation>,
    /// Hold log p(x) against so many samples of the world, with a two-sided p-value (at least 39, 0: not at all): does this
    /// world make such images? They are drawn once for a world, τ and prior, and kept. Not with --out.
    #[arg(long, value_name = "N", default_value_t = SAMPLES, value_parser = count, allow_negative_numbers = true, conflicts_with = "out")]
    pub typicality: usize,
    #[command(flatten)]
    pub scale: ScaleArgs,
    #[command(flatten)]
    pub output: Output,
}
