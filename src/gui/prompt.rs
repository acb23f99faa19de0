//! Asks for a path: a text field, and the desktop's dialog where there is one.

use std::path::PathBuf;

use eframe::egui::{self, Event, Id, Key, Modal, TextEdit};

use super::background::Purpose;
use super::command::Command;
use super::kept_path;
use super::prefs::OnPaper;
use super::save_figure;
use super::theme::Theme;
use super::widgets::hint;
use crate::data::{Taken, dataset_formats};

/// A question that is open.
pub struct Prompt {
    purpose: Purpose,
    text: String,
    fresh: bool,
    /// A path at which something lies already.
    taken: Option<(PathBuf, Taken)>,
    /// A path at which there is nothing to open.
    missing: Option<PathBuf>,
}

impl Prompt {
    /// A prompt for a path, filled in with the usual name for `purpose`.
    pub fn new(purpose: Purpose) -> Self {
        let text = match purpose {
            Purpose::Save { look: true, .. } => "pictures.png".into(),
            Purpose::Save { .. } => "samples.npz".into(),
            Purpose::SaveCurve => "bayes-error.csv".into(),
            Purpose::SaveWalk => "walk.npz".into(),
            Purpose::SaveSketch => "drawing.png".into(),
            Purpose::SavePoints(name) => name.into(),
            _ => String::new(),
        };
        Self::named(purpose, text)
    }

    /// Asks, with a path that is likely the answer.
    pub fn named(purpose: Purpose, text: String) -> Self {
        Self { purpose, text, fresh: true, taken: None, missing: None }
    }

    /// Asks for another path, or whether what lies at this one may be replaced.
    pub fn taken(purpose: Purpose, path: PathBuf, taken: Taken) -> Self {
        let text = path.display().to_string();
        Self { taken: Some((path, taken)), ..Self::named(purpose, text) }
    }

    /// Asks for another path than this one, at which there is nothing to open.
    pub fn missing(purpose: Purpose, path: PathBuf) -> Self {
        let text = path.display().to_string();
        Self { missing: Some(path), ..Self::named(purpose, text) }
    }

    /// Shows it; `false` when it is answered or closed. `look` is that of figures.
    pub fn show(
        &mut self,
        ctx: &egui::Context,
        waiting: bool,
        look: &mut OnPaper,
        commands: &mut Vec<Command>,
    ) -> bool {
        let mut open = true;
        let modal = Modal::new(Id::unique("prompt")).show(ctx, |ui| {
            ui.set_width(520.0);
            let (title, about, verb) = self.words();
            ui.heading(&title);
            hint(ui, about);
            let label = ui.label("Path");
            let field = TextEdit::singleline(&mut self.text).desired_width(f32::INFINITY);
            let field = ui.add(field.hint_text("/path/to/file or folder")).labelled_by(label.id);
            // A key that is held down answers one question, and not the next one whether something is replaced.
            let held = ui.input(|input| input.events.iter().any(repeats_enter));
            let enter = field.lost_focus() && !held && ui.input(|input| input.key_pressed(Key::Enter));
            if std::mem::take(&mut self.fresh) || (field.lost_focus() && held) {
                field.request_focus();
            }
            if self.purpose == Purpose::SaveFigure {
                save_figure::rows(ui, &mut self.text, look);
            }
            let taken = self.is_taken();
            if let Some(taken) = taken {
                ui.colored_label(Theme::of(ui).warning(), refusal(taken));
            }
            let whole = self.path().display().to_string();
            if !(self.text.trim().is_empty() || self.text.contains(&whole)) {
                hint(ui, format!("In full: {whole}"));
            }
            if self.missing.as_ref().is_some_and(|missing| *missing == self.path()) {
                ui.colored_label(Theme::of(ui).error(), "There is no file or folder of this name.");
            }
            let verb = taken.map_or(verb, replacing);
            ui.horizontal(|ui| {
                let given = !self.text.trim().is_empty();
                if (ui.add_enabled(given, egui::Button::new(verb)).clicked() || enter) && given {
                    commands.push(self.answer());
                    open = false;
                }
                self.browse(ui, waiting, commands);
                if ui.button("Close").clicked() {
                    open = false;
                }
            });
        });
        open && !modal.should_close()
    }

    fn browse(&self, ui: &mut egui::Ui, waiting: bool, commands: &mut Vec<Command>) {
        let choices: &[(&str, Purpose)] = match self.purpose {
            Purpose::Open => &[("Browse files…", Purpose::Open), ("Browse folders…", Purpose::OpenFolder)],
            purpose => &[("Browse…", purpose)],
        };
        for (text, purpose) in choices {
            let button = ui.add_enabled(!waiting, egui::Button::new(*text));
            let button = button.on_hover_text("The desktop's own dialog. Where none opens, type the path above.");
            if button.clicked() {
                commands.push(Command::Browse(*purpose));
            }
        }
    }

    fn words(&self) -> (String, String, &'static str) {
        match self.purpose {
            Purpose::Open | Purpose::OpenFolder | Purpose::Field(_) => (
                "Open".into(),
                format!(
                    "An oracle folder or checkpoint (.safetensors, .pth, .pth.tar) is opened as the world, the folder of a \
                     run in the panel Experiments. Pictures of any size, a folder of them, {} files are mapped into the open world and \
                     get their posteriors. Files can also be dropped on the window.",
                    dataset_formats()
                ),
                "Open",
            ),
            Purpose::Save { images, look: true } => (
                format!("Save {images} pictures"),
                "With the look that is on: .png is a contact sheet, a folder gets one PNG an image. They have left the world, so \
                 there is no .npz; switch the look off to save samples with their exact posteriors.".into(),
                "Save",
            ),
            Purpose::Save { images, .. } => (
                format!("Save {images} samples"),
                ".npz holds float images, labels and exact posteriors; .png is a contact sheet; a folder gets one PNG \
                 an image.".into(),
                "Save",
            ),
            Purpose::SaveCurve => (
                "Save the curve of Bayes errors".into(),
                "Comma-separated: τ, E, its 95 % interval, ln E, method.".into(),
                "Save",
            ),
            Purpose::SavePoints(_) => (
                "Save the points of the plot".into(),
                "Comma-separated, a line for every point with its 95 % interval; lines that begin with # say of which run, spec \
                 and world.".into(),
                "Save",
            ),
            Purpose::SaveSketch => (
                "Save the drawing".into(),
                ".png holds its 8-bit levels. Opened again, a drawing on an empty image has the posterior it has now; of one on another \
                 image the float values below the ink are not kept.".into(),
                "Save",
            ),
            Purpose::SaveWalk => (
                "Save the walk".into(),
                ".npz holds world-space float images, positions and exact posteriors; .png is a contact sheet for the \
                 eye. The 50/50 point comes last in both.".into(),
                "Save",
            ),
            Purpose::SaveReport => (
                "Write the report".into(),
                "Into this folder: report.md, a page with all figures and tables, each as a file, and everything as JSON.".into(),
                "Save",
            ),
            Purpose::SaveFigure | Purpose::SaveFigures => self.words_of_figures(),
        }
    }

    /// Of figures and tables.
    fn words_of_figures(&self) -> (String, String, &'static str) {
        match self.purpose {
            Purpose::SaveFigure => (
                "Save the figure".into(),
                "As it is shown: without what was hidden, and with the axes that are in view. Drawn by the code of the files of \
                 summary --figures; where the numbers come from stands in the file in any case.".into(),
                "Save",
            ),
            _ => (
                "Save all figures and tables".into(),
                "Into this folder: every figure as SVG, PNG and CSV, every table as CSV, and figures.md, a page with all of them.".into(),
                "Save",
            ),
        }
    }

    /// The path that was typed.
    fn path(&self) -> PathBuf {
        let text = self.text.trim();
        let text = text.strip_prefix("file://").unwrap_or(text).trim_matches(['"', '\'']);
        kept_path::typed(text)
    }

    /// What lies at the path, where it is the one that was taken.
    fn is_taken(&self) -> Option<Taken> {
        self.taken.as_ref().filter(|(path, _)| *path == self.path()).map(|(_, taken)| *taken)
    }

    fn answer(&self) -> Command {
        match self.is_taken() {
            Some(_) => Command::Replace(self.purpose, self.path()),
            None => Command::TakePaths(self.purpose, vec![self.path()]),
        }
    }
}

fn repeats_enter(event: &Event) -> bool {
    matches!(event, Event::Key { key: Key::Enter, pressed: true, repeat: true, .. })
}

fn refusal(taken: Taken) -> &'static str {
    match taken {
        Taken::File => "A file of this name is there already: replace it, or give another name.",
        Taken::Folder => {
            "This folder is not empty: write into it, where files of the same names are replaced, or give another."
        }
    }
}

fn replacing(taken: Taken) -> &'static str {
    match taken {
        Taken::File => "Replace",
        Taken::Folder => "Write into it",
    }
}
