//! Everything a user can do, its keys, and the same as a command line.

mod entries;
mod execute;
mod keys;
mod lines;
mod menu;
mod outside;
mod run;
mod save;

use std::path::{Path, PathBuf};

use crate::data::{Fit, is_image_name};
use crate::device::DeviceChoice;
use crate::oracle::folder::{DESCRIPTION, FLOWS};
use crate::run::hardness::HardnessFolder;
use crate::run::{AnyRun, SPEC};
use crate::task::Task;
use crate::worker::fetch::FetchRequest;
use crate::worker::judged_images::WorstBy;
use crate::worker::protocol::{Job, JobId, Pasted};

use super::background::Purpose;
use super::prefs::ThemePreference;
use super::selection::{Source, Step};

pub use entries::{Entry, palette};
pub use keys::{Binding, GESTURES, Reach, bindings, shortcut};
pub use lines::{
    bayes_error_command, evaluate_command, export_command, knobs, posterior_command, quote, reality_command,
    sample_command, tau_command, validate_command,
};
pub use menu::{Line, Needs, menus};
pub use run::RunCommand;

/// A page of the window Help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Page {
    /// Every key.
    #[default]
    Shortcuts,
    /// Every word.
    Glossary,
}

/// A user's action.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Open the list of commands.
    Palette,
    /// Ask what to open.
    Open,
    /// Open oracles, classify images.
    OpenPaths(Vec<PathBuf>),
    /// Map a picture from the clipboard into the world.
    Paste(Pasted),
    /// Bring an image from outside, by its place, into the world's shape in this way.
    Fit(usize, Fit),
    OpenOracle(String),
    /// Ask where to save.
    Save,
    Undo,
    Redo,
    /// Other latents, classes and labels.
    NewSamples,
    Fullscreen,
    /// Frame times.
    Overlay,
    /// Show or hide the exactness ledger.
    Ledger,
    /// Show or hide the page Precision.
    Precision,
    /// Show or hide the page Verify this device.
    Verify,
    /// Show a page of the window Help, or close it.
    Help(Page),
    /// Show the page of bundled worlds, recent oracles and runs.
    StartPage,
    StartTour,
    LeaveTour,
    Larger,
    Smaller,
    /// Everything as large, per cent.
    Scale(u16),
    /// Close what is on top.
    Escape,
    /// Walk the gallery; extending the selection or not.
    Walk(Step, bool),
    /// Show the image under the cursor in the inspector.
    Inspect,
    SelectAll,
    SelectNone,
    /// Press the button that the panel in front is for.
    Start,
    ShowPanel(&'static str),
    /// The keyboard enters the panel in front.
    EnterPanel,
    Theme(ThemePreference),
    ToggleWorldCard,
    ToggleInspector,
    ResetLayout,
    /// τ = 1, T = 1, uniform π.
    ResetKnobs,
    UniformPrior,
    /// Linear or logarithmic posterior bars.
    ToggleLogBars,
    UseDevice(DeviceChoice),
    /// Open the window that connects to another machine.
    ShowConnect,
    /// Connect to another machine's device, also where it is the one that was asked for before.
    Connect(DeviceChoice),
    /// World samples or images from outside.
    ShowSource(Source),
    /// Open the best epoch so far of the run in a folder.
    UseCheckpoint(PathBuf),
    /// Ask for a path in the desktop's own dialog.
    Browse(Purpose),
    /// Paths were typed or chosen for a purpose.
    TakePaths(Purpose, Vec<PathBuf>),
    /// The same where something lies already, which may be replaced.
    Replace(Purpose, PathBuf),
    Cancel(JobId),
    /// Stop drawing samples, or go on.
    Halt(bool),
    SetPaused(JobId, bool),
    CancelAll,
    ClearJobs,
    /// The gallery as a command line, to the clipboard.
    CopyCommandLine,
    /// The inspected image's figures, to the clipboard.
    CopyValues,
    CopyText(String),
    /// Set τ by a Bayes error, a fraction.
    Target(f64),
    /// Sample the Bayes error of a world whose map depends on the class.
    Survey,
    CompareMethods,
    /// Redraw EBO's Figure 1.
    Figure1,
    /// The Bayes error with its provenance, to the clipboard.
    CopyBayesError,
    CopyBayesCommandLine,
    CopyTauCommandLine,
    /// The curve E(τ) as CSV, to the clipboard.
    CopyCurve,
    /// Ask where to save the curve E(τ).
    SaveCurve,
    /// Ask where to save the walk.
    SaveWalk,
    /// The images of the walk become those from outside.
    SendWalk,
    /// Ask where to save the drawing.
    SaveSketch,
    /// The drawing becomes the image from outside.
    SendSketch,
    Run(RunCommand),
    /// Open the window in which corpora are fetched, on one where it is named.
    ShowFetch(Option<&'static str>),
    Fetch(FetchRequest),
    /// Put a folder of images into the form of a training run.
    TrainOn(PathBuf),
    /// Show the worst images of a judged model, by its place in the report, in the gallery.
    ShowJudged(usize, WorstBy),
    Submit(Box<Job>),
    ClearLog,
    Quit,
}

impl Command {
    /// Has the engine carry a task out.
    pub fn task(task: impl Task) -> Self {
        Self::Submit(Box::new(Job::task(task)))
    }
}

/// What dropped, typed or chosen paths stand for.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// The folder of a run for the panel Experiments.
    Run(PathBuf),
    /// The folder of a ranking.
    Ranking(PathBuf),
    /// A folder or checkpoint to open as an oracle.
    Oracle(PathBuf),
    Images(Vec<PathBuf>),
}

/// Runs and an oracle among the paths go first; the rest are images. Asks the disk.
pub fn sort_paths(paths: Vec<PathBuf>) -> Vec<Opened> {
    // Thousands of pictures may be dropped at once, and a look at each of them on a slow disk takes long.
    let of = |is: fn(&Path) -> bool| move |path: &PathBuf| !is_image_name(path) && is(path);
    let (runs, paths): (Vec<_>, Vec<_>) = paths.into_iter().map(described).partition(of(AnyRun::is));
    let (oracles, images): (Vec<_>, Vec<_>) = paths.into_iter().partition(of(is_oracle));
    let mut opened: Vec<Opened> = runs.into_iter().map(run_at).collect();
    opened.extend(oracles.into_iter().take(1).map(Opened::Oracle));
    if !images.is_empty() {
        opened.push(Opened::Images(images));
    }
    opened
}

/// Which run lies in a folder; one that cannot be read is for the panel Experiments, which says why. Asks the disk.
pub fn run_at(folder: PathBuf) -> Opened {
    if HardnessFolder::is(&folder) { Opened::Ranking(folder) } else { Opened::Run(folder) }
}

/// The folder in place of the file that describes it: desktops open files.
fn described(path: PathBuf) -> PathBuf {
    let describes = path.file_name().is_some_and(|name| name == DESCRIPTION || name == FLOWS || name == SPEC);
    match path.parent() {
        Some(folder) if describes && path.is_file() && folder == Path::new("") => ".".into(),
        Some(folder) if describes && path.is_file() => folder.into(),
        _ => path,
    }
}

fn is_oracle(path: &Path) -> bool {
    let extension = path.extension().map(|e| e.to_ascii_lowercase());
    let checkpoint = ["pth", "pt", "tar", "safetensors"].iter().any(|e| extension.as_deref() == Some((*e).as_ref()));
    checkpoint || path.join(DESCRIPTION).is_file() || path.join(FLOWS).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart_by_what_they_are() {
        let opened = sort_paths(["a.png", "glow.pth.tar", "b.safetensors"].map(PathBuf::from).into());
        assert_eq!(opened, [Opened::Oracle("glow.pth.tar".into()), Opened::Images(vec!["a.png".into()])]);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(sort_paths(vec![folder.path().into()]), [Opened::Images(vec![folder.path().into()])]);
        // A world of one flow per class is described by another file.
        for description in ["oracle.json", "flows.json"] {
            let file = folder.path().join(description);
            std::fs::write(&file, "{}").unwrap();
            assert_eq!(sort_paths(vec![folder.path().into()]), [Opened::Oracle(folder.path().into())]);
            assert_eq!(sort_paths(vec![file.clone()]), [Opened::Oracle(folder.path().into())]);
            std::fs::remove_file(file).unwrap();
        }
    }
}
