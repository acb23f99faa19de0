//! Runs of experiments in the window: background work, default folders, command lines.

use std::path::{Path, PathBuf};
use std::time::Instant;

use eframe::egui::ColorImage;

use super::background::{Asked, BackgroundTask, Purpose};
use super::command::{Opened, quote};
use super::prefs::Prefs;
use super::session::runs::RunView;
use crate::data::Taken;
use crate::device::DeviceChoice;
use crate::experiment::WORST;
use crate::figure::Figure;
use crate::run::RunNotes;
use crate::worker::cell_images::{CellImages, CellImagesRequest};

/// What came back from a thread.
pub(super) enum Done {
    Written(String),
    Unpacked(PathBuf),
    /// What paths stand for that are to be opened.
    Found(Vec<Opened>),
    /// A path that was given to be opened, at which there is nothing.
    Missing(Purpose, PathBuf),
    /// The oracle of the last time, which is not there any more.
    Gone(String),
    Deleted(PathBuf),
    Noted(PathBuf, RunNotes),
    Picture(ColorImage),
}

/// Where something is to be saved.
#[derive(Debug, Clone)]
pub struct Place {
    /// What is saved there.
    pub purpose: Purpose,
    /// Where.
    pub path: PathBuf,
    /// Who asked whether what lies there may be replaced.
    pub asked: Asked,
}

/// A place and what lies there, or why nothing can be saved there.
pub type LookedAt = std::result::Result<(Place, Option<Taken>), String>;

/// Errands under way and the question that is open.
#[derive(Default)]
pub struct RunDialog {
    pub(super) background: Vec<BackgroundTask<std::result::Result<Done, String>>>,
    /// Where something is to be saved, while a thread looks what lies there: one place at most, the last.
    pub(super) place: Vec<BackgroundTask<LookedAt>>,
    pub(super) asked: Option<PathBuf>,
    /// Points of a plot, while it is asked where they go.
    pub(super) points: Option<String>,
    /// A figure, while it is asked where it goes.
    pub(super) figure: Option<Box<Figure>>,
    /// The run whose figures are saved, while it is asked where they go.
    pub(super) figures_of: Option<PathBuf>,
    /// The oracle that is being opened, and which images of what run and cell are shown then.
    pub(super) cell_images_next: Option<(String, CellImages, PathBuf, String)>,
}

impl RunDialog {
    /// Returns whether a question is open.
    pub fn asks(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns whether an answer of a thread is still to come.
    pub fn waits(&self) -> bool {
        !(self.background.is_empty() && self.place.is_empty())
    }

    /// What is waited for longer than a user waits without a word.
    pub(super) fn late(&self, now: Instant) -> Option<&str> {
        let place = self.place.iter().filter_map(|task| task.late(now));
        self.background.iter().filter_map(|task| task.late(now)).chain(place).next()
    }
}

/// Where the window keeps its own: beside its settings.
fn data_folder() -> PathBuf {
    directories::ProjectDirs::from("", "", "bayescope").map(|dirs| dirs.data_dir().to_owned()).unwrap_or_default()
}

/// Folder of a run that comes with the program.
pub fn example_folder(name: &str) -> PathBuf {
    data_folder().join("examples").join(name)
}

/// Default folder of a run of that name.
pub fn default_folder(name: &str, taken: &[PathBuf]) -> PathBuf {
    let runs = data_folder().join("runs");
    let free = |folder: &PathBuf| !taken.contains(folder);
    let numbered = (2..).map(|i| runs.join(format!("{name}-{i}")));
    std::iter::once(runs.join(name)).chain(numbered).find(free).unwrap_or(runs)
}

/// The command that goes on with a run.
pub fn resume_command(folder: &Path, prefs: &Prefs) -> String {
    format!("bayescope resume {}{}", quote(&folder.display().to_string()), device(prefs.device))
}

/// The command that goes on with a run, or follows one that another program carries out.
pub fn carry_on_command(run: &RunView, prefs: &Prefs) -> String {
    match run.external() {
        Some(_) => format!("bayescope watch {}", quote(&run.folder.display().to_string())),
        None => resume_command(&run.folder, prefs),
    }
}

/// The command that lists images of a cell.
pub fn cell_images_command(request: &CellImagesRequest) -> String {
    let CellImagesRequest { which, folder, cell, .. } = request;
    let (folder, cell) = (quote(&folder.display().to_string()), quote(cell));
    match which {
        CellImages::Worst => format!("bayescope summary {folder} --worst {cell}"),
        CellImages::Bought => format!("bayescope summary {folder} --bought {cell}"),
        CellImages::AtStep(step) => format!("bayescope external worst {folder} --step {step} --count {WORST}"),
    }
}

/// The command that carries a spec out in a folder.
pub fn run_command(spec: &str, folder: &Path, choice: DeviceChoice) -> String {
    format!("bayescope run {} --out {}{}", quote(spec), quote(&folder.display().to_string()), device(choice))
}

fn device(choice: DeviceChoice) -> String {
    if choice == DeviceChoice::Auto { String::new() } else { format!(" --device {choice}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_gets_a_folder_of_its_own() {
        let first = default_folder("scaling", &[]);
        assert!(first.ends_with("runs/scaling"));
        assert!(default_folder("scaling", &[first]).ends_with("runs/scaling-2"));
    }

    #[test]
    fn commands_name_what_they_need() {
        let prefs = Prefs { device: DeviceChoice::Cpu, ..Prefs::default() };
        assert_eq!(resume_command(Path::new("/my runs/a"), &prefs), "bayescope resume '/my runs/a' --device cpu");
        assert_eq!(run_command("scaling", Path::new("/a"), DeviceChoice::Auto), "bayescope run scaling --out /a");
    }
}
