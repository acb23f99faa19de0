//! Arguments of `run`, `plan`, `resume`, `summary`, `watch`, `notes` and `slurm`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{DeviceArg, DevicesArg, Output, count};
use crate::error::{Error, Result};
use crate::run::Share;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What to run: a TOML file, or the name of a spec that comes with the program (`bayescope
    /// plan` lists them).
    #[arg(required_unless_present = "plan", conflicts_with = "plan")]
    pub spec: Option<PathBuf>,
    /// Folder of the run. A run of the same spec in it goes on.
    #[arg(long, value_name = "RUN", required_unless_present = "plan", conflicts_with = "plan")]
    pub out: Option<PathBuf>,
    /// Carry out (a share of) a run that is planned already.
    #[arg(long, value_name = "RUN")]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub share: ShareArgs,
    #[command(flatten)]
    pub copies: CopiesArgs,
    #[command(flatten)]
    pub device: DevicesArg,
    /// Print the summary as one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Folder of the run.
    pub run: PathBuf,
    #[command(flatten)]
    pub share: ShareArgs,
    #[command(flatten)]
    pub copies: CopiesArgs,
    #[command(flatten)]
    pub device: DevicesArg,
    /// Print the summary as one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Which cells a process takes, and how safely.
#[derive(Debug, Clone, Copy, Args)]
pub struct ShareArgs {
    /// Seconds, at least, between two checkpoints of a cell: what a kill -9 costs at most.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub checkpoint_every: f64,
    /// Take only every N-th cell, beginning with cell I, counted from 0.
    #[arg(long, value_name = "I", requires = "of")]
    pub task: Option<usize>,
    /// Number of processes that share the run.
    #[arg(long, value_name = "N", requires = "task")]
    pub of: Option<usize>,
}

/// Where the machine that computes has things at hand.
#[derive(Debug, Clone, Default, Args)]
pub struct CopiesArgs {
    /// Keep copies of the run's images in this folder, on a disk of the machine's own, and read
    /// them there.
    #[arg(long, value_name = "DIR")]
    pub stage: Option<PathBuf>,
    /// Read the oracle here and not where the spec says; it must be the same one.
    #[arg(long, value_name = "ORACLE")]
    pub oracle: Option<String>,
}

impl ShareArgs {
    /// Time between checkpoints.
    ///
    /// # Errors
    /// When it is no time.
    pub fn every(self) -> Result<Duration> {
        Duration::try_from_secs_f64(self.checkpoint_every)
            .map_err(|_| Error::input("--checkpoint-every takes a number of seconds ≥ 0"))
    }

    /// The share.
    ///
    /// # Errors
    /// When there is no such task.
    pub fn share(self) -> Result<Share> {
        match (self.task, self.of) {
            (Some(task), Some(of)) if task < of => Ok(Share { task, of }),
            (Some(task), Some(of)) => Err(Error::input(format!("there is no task {task} of {of}: tasks count from 0"))),
            _ => Ok(Share::ALL),
        }
    }
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// A run folder, a spec file or the name of a spec; without one, the specs that come with the
    /// program are listed.
    pub what: Option<PathBuf>,
    /// Folder in which to lay down the plan of a spec.
    #[arg(long, value_name = "RUN")]
    pub out: Option<PathBuf>,
    /// Time a few steps of every architecture and tell how long the run will take.
    #[arg(long)]
    pub estimate: bool,
    #[command(flatten)]
    pub device: DeviceArg,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `summary`.
#[derive(Debug, Args)]
pub struct SummaryArgs {
    /// Folder of the run, or the name of a finished one that comes with the program (`bayescope plan` lists them). Several external
    /// runs on the same test images give the law of KL over their numbers of training images.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Print one JSON document.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print one line of comma-separated values a cell.
    #[arg(long)]
    pub csv: bool,
    /// Write the run's figures (SVG, PNG, CSV) and tables (CSV, Markdown) into this folder, as far
    /// as its cells are finished.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["csv", "worst"])]
    pub figures: Option<PathBuf>,
    /// List the test images on which this cell's classifier is farthest from the truth: their
    /// running numbers, KL(p‖q), p and q. `bayescope plan RUN` lists the cells.
    #[arg(long, value_name = "CELL_ID", conflicts_with = "csv")]
    pub worst: Option<String>,
    /// List what this cell of active learning bought: its rounds, and the images whose labels it
    /// chose first.
    #[arg(long, value_name = "CELL_ID", conflicts_with_all = ["csv", "worst"])]
    pub bought: Option<String>,
    /// Draw those images on a contact sheet, in the order in which they were bought.
    // What another option rules out is not required: these are named besides.
    #[arg(long, value_name = "FILE.png", requires = "bought", conflicts_with_all = ["csv", "worst"])]
    pub png: Option<PathBuf>,
}

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Folder of the run; another process or machine may be working on it.
    pub run: PathBuf,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 2.0)]
    pub every: f64,
    /// Look once.
    #[arg(long)]
    pub once: bool,
    /// Print every look as a line of JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `notes`.
#[derive(Debug, Args)]
pub struct NotesArgs {
    /// Folders of runs, those of other programs among them.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// What lists and legends call the run, in place of its folder and spec; "" takes the name back.
    #[arg(long)]
    pub name: Option<String>,
    /// Words to find the runs by, in place of those they have; "" takes them back.
    #[arg(long, value_name = "WORD,…")]
    pub tags: Option<String>,
    /// Anything else that is worth remembering; "" takes it back.
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `slurm`.
#[derive(Debug, Args)]
pub struct SlurmArgs {
    /// Folder of the run, on a file system that all nodes see.
    pub run: PathBuf,
    /// Elements of the array; few and long ones if not given: as many as cells, at most 8.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub tasks: Option<usize>,
    /// Time of an element at a stretch; it goes on in another when it is over. The cluster's
    /// default if not given.
    #[arg(long, value_name = "HH:MM:SS")]
    pub time: Option<String>,
    /// Partition; the cluster's default if not given.
    #[arg(long)]
    pub partition: Option<String>,
    /// Generic resources of an element, such as gpu:1.
    #[arg(long)]
    pub gres: Option<String>,
    /// Processors of an element.
    #[arg(long, value_name = "N")]
    pub cpus: Option<usize>,
    /// Memory of an element, such as 16G.
    #[arg(long)]
    pub mem: Option<String>,
    /// Account that pays.
    #[arg(long)]
    pub account: Option<String>,
    /// The program on the nodes; this one if not given.
    #[arg(long, value_name = "PATH")]
    pub bayescope: Option<PathBuf>,
    /// Folder of a node's own disk for copies of what is read often; `none` for no copies.
    /// $SLURM_TMPDIR or $TMPDIR, where a node has one, if not given.
    #[arg(long, value_name = "DIR|none")]
    pub stage: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArg,
}
