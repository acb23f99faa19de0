//! The list of commands: every command by its name.

use eframe::egui::KeyboardShortcut;

use super::keys::shortcut;
use super::{Command, Page, RunCommand};
use crate::data::fetch::catalogue;
use crate::device::DeviceChoice;
use crate::experiment::PRESETS;
use crate::gui::prefs::ThemePreference;
use crate::gui::selection::Source;
use crate::run::EXAMPLES;

/// A line of the palette.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it does.
    pub title: String,
    pub shortcut: Option<KeyboardShortcut>,
    pub command: Command,
}

/// Everything the palette offers now.
pub fn palette(panels: &[(&'static str, &'static str)], devices: &[DeviceChoice]) -> Vec<Entry> {
    let mut all: Vec<(String, Command)> =
        doing().into_iter().chain(looking()).map(|(title, command)| (title.to_owned(), command)).collect();
    all.extend(panels.iter().map(|(id, title)| (format!("Show panel: {title}"), Command::ShowPanel(id))));
    let corpora = catalogue().iter().map(|corpus| corpus.name);
    all.extend(corpora.map(|name| (format!("Fetch corpus: {name}…"), Command::ShowFetch(Some(name)))));
    let bundled = crate::oracle::library::names();
    all.extend(bundled.iter().map(|name| (format!("Open oracle: {name}"), Command::OpenOracle((*name).into()))));
    all.extend(
        PRESETS
            .iter()
            .map(|preset| (format!("New experiment: {}", preset.name), Command::Run(RunCommand::New(preset.name)))),
    );
    all.extend(EXAMPLES.iter().map(|example| {
        (format!("Open finished run: {}", example.name), Command::Run(RunCommand::OpenExample(example.name)))
    }));
    all.extend(devices.iter().map(|choice| (format!("Compute on: {choice}"), Command::UseDevice(*choice))));
    let entry = |(title, command)| Entry { title, shortcut: shortcut(&command), command };
    all.into_iter().map(entry).collect()
}

/// What does something with the world and its figures.
fn doing() -> Vec<(&'static str, Command)> {
    vec![
        ("Open images or an oracle…", Command::Open),
        ("Save samples…", Command::Save),
        ("Fetch a corpus…", Command::ShowFetch(None)),
        ("New samples", Command::NewSamples),
        ("Start what the panel in front says", Command::Start),
        ("Enter the panel in front by keyboard", Command::EnterPanel),
        ("Reset τ, T and prior", Command::ResetKnobs),
        ("Uniform class prior", Command::UniformPrior),
        ("Undo", Command::Undo),
        ("Redo", Command::Redo),
        ("Select all shown images", Command::SelectAll),
        ("Select nothing", Command::SelectNone),
        ("Inspect the chosen image", Command::Inspect),
        ("Show world samples", Command::ShowSource(Source::World)),
        ("Show images from outside", Command::ShowSource(Source::Outside)),
        ("Switch between linear and logarithmic bars", Command::ToggleLogBars),
        ("Copy as command", Command::CopyCommandLine),
        ("Copy the Bayes error with its provenance", Command::CopyBayesError),
        ("Copy the Bayes error as a command", Command::CopyBayesCommandLine),
        ("Copy the curve of Bayes errors as CSV", Command::CopyCurve),
        ("Save the curve of Bayes errors…", Command::SaveCurve),
        ("Compare all methods for the Bayes error", Command::CompareMethods),
        ("Sample the Bayes error over τ", Command::Survey),
        ("Redraw Figure 1 of EBO (self-test)", Command::Figure1),
        ("Save the walk…", Command::SaveWalk),
        ("Send the walk to the gallery", Command::SendWalk),
        ("Save the drawing…", Command::SaveSketch),
        ("Send the drawing to the gallery", Command::SendSketch),
        ("Copy values of the inspected image", Command::CopyValues),
        ("Compute on another machine…", Command::ShowConnect),
        ("Stop drawing samples", Command::Halt(true)),
        ("Go on drawing samples", Command::Halt(false)),
        ("Cancel all jobs", Command::CancelAll),
        ("Clear finished jobs", Command::ClearJobs),
        ("Clear the log", Command::ClearLog),
        ("Quit", Command::Quit),
    ]
}

/// What changes the window.
fn looking() -> Vec<(&'static str, Command)> {
    vec![
        ("Show or hide the world card", Command::ToggleWorldCard),
        ("Show or hide the inspector", Command::ToggleInspector),
        ("Theme: as the desktop", Command::Theme(ThemePreference::System)),
        ("Theme: light", Command::Theme(ThemePreference::Light)),
        ("Theme: dark", Command::Theme(ThemePreference::Dark)),
        ("Fullscreen", Command::Fullscreen),
        ("Frame times", Command::Overlay),
        ("Exactness ledger", Command::Ledger),
        ("Precision: 32 bits beside 64", Command::Precision),
        ("Verify this device", Command::Verify),
        ("Reset the layout", Command::ResetLayout),
        ("Start page", Command::StartPage),
        ("Take the tour", Command::StartTour),
        ("Leave the tour", Command::LeaveTour),
        ("Keyboard shortcuts", Command::Help(Page::Shortcuts)),
        ("Glossary: every word with its formula", Command::Help(Page::Glossary)),
        ("Size: larger", Command::Larger),
        ("Size: smaller", Command::Smaller),
        ("Size: 100 %", Command::Scale(100)),
        ("Size: 125 %", Command::Scale(125)),
        ("Size: 150 %", Command::Scale(150)),
        ("Size: 175 %", Command::Scale(175)),
        ("Size: 200 %", Command::Scale(200)),
    ]
}
