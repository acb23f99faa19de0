//! What a user does with runs of experiments.

use std::path::PathBuf;

use crate::experiment::{ExperimentSpec, HardnessSpec};
use crate::figure::Figure;
use crate::run::RunNotes;
use crate::worker::cell_images::CellImages;

/// Something about a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunCommand {
    /// Carry an experiment out in a folder.
    Start(Box<ExperimentSpec>, PathBuf),
    /// Resume a run.
    Resume(PathBuf),
    /// A ranking as a command line, to the clipboard; its spec goes to the folder first.
    CopyRanking(Box<HardnessSpec>, PathBuf),
    /// Show the run in a folder.
    Open(PathBuf),
    /// Show a finished run that comes with the program.
    OpenExample(&'static str),
    /// Show it no longer; the folder stays.
    Forget(PathBuf),
    /// Ask whether to delete the folder.
    AskToDelete(PathBuf),
    Delete(PathBuf),
    /// The experiment as a command line, to the clipboard; its spec goes to the folder first.
    CopyCommand(Box<ExperimentSpec>, PathBuf),
    /// Show images of a cell in the gallery.
    ShowCell(CellImages, PathBuf, String),
    /// Show images of a cell, once the oracle of that name is open.
    ShowCellIn(String, CellImages, PathBuf, String),
    /// Write into its folder what is said of a run.
    Notes(PathBuf, RunNotes),
    /// Fill the form with a preset.
    New(&'static str),
    /// Ask where to save the points of a plot: the file's text, and what it would be called.
    SavePoints(String, &'static str),
    /// Ask where to save a figure, and in which look.
    SaveFigure(Box<Figure>),
    /// A picture of a figure, to the clipboard.
    CopyPicture(Box<Figure>),
    /// Ask into which folder all figures and tables of a run go.
    SaveFigures(PathBuf),
}
