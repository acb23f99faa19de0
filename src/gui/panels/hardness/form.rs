//! What a new ranking is told.

use std::path::PathBuf;

use eframe::egui::{self, Label, RichText, TextEdit, Ui};

use super::super::fields::{self, called, number, path, preset, spec_file, together};
use super::super::spec_file::SpecReader;
use crate::data::dataset_formats;
use crate::error::Result;
use crate::experiment::hardness::{Corpus, LAMBDAS};
use crate::experiment::{HARDNESS_PRESETS, HardnessSpec};
use crate::gui::background::{Field, Takes};
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::kept_path;
use crate::gui::primary_action::primary_button;
use crate::gui::runs::default_folder;
use crate::gui::theme::Theme;
use crate::gui::widgets::hint;
use crate::run::Share;
use crate::run::hardness::RankCorpora;

/// The spec file.
const SPEC: Field = Field::new("ranking spec", Takes::Spec);
/// Where it goes.
pub const FOLDER: Field = Field::new("ranking folder", Takes::Folder);
/// The images of a corpus, by its place in the list.
const CORPUS: Field = Field::new("ranked corpus", Takes::Folder);

/// The fields, as they are being edited.
#[derive(Default)]
pub struct Form {
    /// What the fields say, but for the paths; nothing before the first frame.
    spec: Option<HardnessSpec>,
    /// Path of each corpus.
    paths: Vec<String>,
    start: String,
    file: String,
    reading: SpecReader<HardnessSpec>,
    /// The folder somebody typed; empty for the usual one.
    folder: String,
    complaint: Option<String>,
}

impl Form {
    /// Takes a path that came from the desktop's dialog, or was dropped. Returns whether there was one of its own.
    pub fn picked(&mut self, ctx: &egui::Context, picked: &mut Option<(Field, PathBuf)>) -> bool {
        let Some((field, path)) = picked.take() else { return false };
        let text = path.display().to_string();
        match field {
            SPEC => {
                self.file = text;
                self.load_file(ctx);
            }
            FOLDER => self.folder = text,
            Field { name, place, .. } if name == CORPUS.name && place < self.paths.len() => self.paths[place] = text,
            other => {
                *picked = Some((other, path));
                return false;
            }
        }
        true
    }

    fn load(&mut self, start: &str, spec: Result<HardnessSpec>) {
        match spec {
            Ok(spec) => {
                self.paths = spec.corpora.iter().map(|corpus| corpus.data.display().to_string()).collect();
                self.start = start.into();
                self.spec = Some(spec);
                self.complaint = None;
            }
            Err(error) => self.complaint = Some(error.to_string()),
        }
    }

    fn load_file(&mut self, ctx: &egui::Context) {
        self.reading.start(ctx, &self.file, HardnessSpec::read);
    }

    /// Shows the fields and the buttons.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        if let (None, Some(preset)) = (&self.spec, HARDNESS_PRESETS.first()) {
            self.load(preset.name, preset.hardness());
        }
        self.source(ui, cx);
        if let Some(spec) = &mut self.spec {
            corpora(ui, cx, spec, &mut self.paths);
            numbers(ui, spec);
        }
        ui.horizontal_wrapped(|ui| path(ui, cx, "Folder of the ranking", &mut self.folder, FOLDER));
        hint(
            ui,
            format!("{} where nothing is given. A ranking that lies there already goes on.", self.place(cx).display()),
        );
        self.buttons(ui, cx);
        if let Some(complaint) = &self.complaint {
            ui.colored_label(Theme::of(ui).error(), complaint);
        }
    }

    /// Where the list comes from at first.
    fn source(&mut self, ui: &mut Ui, cx: &mut Cx) {
        hint(
            ui,
            "Dataset hardness: a Glow is trained on every corpus; the Bayes error of its world at τ = 1, an integral, ranks them, beside \
             the NLL of images it has not seen (EBO table 1). Which classes of one world are hard, the panel Bayes error says.",
        );
        ui.horizontal_wrapped(|ui| {
            let chosen = preset(ui, "Preset of rankings", &self.start, HARDNESS_PRESETS.iter(), |preset| preset.name);
            if let Some(preset) = chosen {
                // In place of a spec that is being read.
                self.reading = SpecReader::default();
                self.load(preset.name, preset.hardness());
            }
            if let Some(spec) = &mut self.spec {
                called(ui, "Name of the ranking", &mut spec.name);
            }
        });
        if spec_file(ui, cx, "Ranking spec (.toml)", &mut self.file, SPEC, "Load ranking spec") {
            self.load_file(ui.ctx());
        }
        if let Some((file, spec)) = self.reading.show(ui) {
            self.load(&file, spec);
        }
    }

    /// The folder of the run.
    fn place(&self, cx: &Cx) -> PathBuf {
        match self.folder.trim() {
            "" => default_folder(self.spec.as_ref().map_or("hardness", |spec| &spec.name), &cx.prefs.runs),
            typed => kept_path::typed(typed),
        }
    }

    /// The spec of the fields, or what is wrong with them.
    fn ready(&self) -> std::result::Result<HardnessSpec, String> {
        let mut spec = self.spec.clone().ok_or("Choose a preset or load a spec first.")?;
        for (corpus, path) in spec.corpora.iter_mut().zip(&self.paths) {
            corpus.data = kept_path::typed(path);
        }
        spec.validate().map_err(|error| error.to_string())?;
        Ok(spec)
    }

    fn buttons(&self, ui: &mut Ui, cx: &mut Cx) {
        let running = cx.session.tasks.get::<RankCorpora>().is_some_and(|view| view.under_way());
        let (ready, folder) = (self.ready(), self.place(cx));
        let why = match (&ready, running) {
            (_, true) => "A ranking is going on: cancel it first, or wait.".to_owned(),
            (Err(why), _) => why.clone(),
            _ => String::new(),
        };
        ui.horizontal_wrapped(|ui| {
            let start = primary_button(ui, &mut cx.view.primary, "Start ranking", "", &why);
            if let (true, Ok(spec)) = (start, &ready) {
                cx.commands.push(Command::task(RankCorpora {
                    spec: Some(spec.clone()),
                    folder: folder.clone(),
                    share: Share::ALL,
                }));
            }
            let given = !self.folder.trim().is_empty() && !running;
            let go_on = ui.add_enabled(given, egui::Button::new("Continue the ranking in this folder"));
            let about = "With the spec in its run.toml, whatever the fields say";
            if go_on.on_hover_text(about).on_disabled_hover_text("Give its folder; one ranking at a time.").clicked() {
                cx.commands.push(Command::task(RankCorpora { spec: None, folder: folder.clone(), share: Share::ALL }));
            }
            let copy = ui.add_enabled(ready.is_ok(), egui::Button::new("Copy ranking as command"));
            if let (true, Ok(spec)) = (copy.on_hover_text("Its spec is written to the folder first").clicked(), ready) {
                cx.commands.push(Command::Run(RunCommand::CopyRanking(Box::new(spec), folder)));
            }
            if !why.is_empty() {
                ui.colored_label(Theme::of(ui).warning(), &why);
            }
        });
    }
}

/// The list of corpora: name and folder of each.
fn corpora(ui: &mut Ui, cx: &mut Cx, spec: &mut HardnessSpec, paths: &mut Vec<String>) {
    ui.add_space(6.0);
    let mut gone = None;
    for (i, (corpus, place)) in spec.corpora.iter_mut().zip(paths.iter_mut()).enumerate() {
        let n = i + 1;
        ui.horizontal_wrapped(|ui| {
            let label =
                ui.label(format!("Corpus {n}")).on_hover_text("One of EBO's eleven is shown beside EBO's numbers");
            ui.add(TextEdit::singleline(&mut corpus.name).desired_width(130.0)).labelled_by(label.id);
            together(ui, 320.0);
            path(ui, cx, &format!("Folder {n}"), place, CORPUS.at(i));
            if ui.button("Remove").accessible_name(format!("Remove corpus {n}")).clicked() {
                gone = Some(i);
            }
            // Last: it is as long as the spec makes it, and the buttons stay below one another.
            if !corpus.classes.is_empty() {
                let classes = RichText::new(format!("only {}", corpus.classes.join(", "))).small();
                ui.add(Label::new(classes).extend()).on_hover_text("Classes, as the spec says");
            }
        });
    }
    if let Some(i) = gone {
        spec.corpora.remove(i);
        paths.remove(i);
    }
    if ui.button("Add corpus").clicked() {
        spec.corpora.push(Corpus::default());
        paths.push(String::new());
    }
    hint(
        ui,
        format!("{} files, or a folder with a folder of pictures for every class; with labels.", dataset_formats()),
    );
}

/// The main numbers of the Glow and its training.
fn numbers(ui: &mut Ui, spec: &mut HardnessSpec) {
    let HardnessSpec { images, model, training: t, seed, repeat, .. } = spec;
    egui::Grid::new("ranking numbers").num_columns(4).spacing([12.0, 4.0]).show(ui, |ui| {
        number(ui, "Hidden", &mut model.hidden, " channels", 1.0, "Of the coupling networks (EBO: 512).");
        number(ui, "Levels", &mut model.levels, " levels", 0.1, "The image side is a multiple of 2^levels (EBO: 3).");
        ui.end_row();
        number(ui, "Flow steps", &mut model.steps, " per level", 0.1, "Steps of each level (EBO: 16).");
        number(ui, "Class loss λ", &mut t.lambda, "", 0.1, "Weight of the classification loss (EBO: 0.01 to 10).");
        ui.end_row();
        number(ui, "Epochs", &mut t.epochs, " epochs", 0.2, "Passes over the training images of each corpus.");
        number(ui, "Batch", &mut t.batch, " images", 1.0, "Images in one step.");
        ui.end_row();
        number(ui, "Learning rate", &mut t.learning_rate, "", 1e-5, "Peak; warm-up, then a cosine.");
        number(ui, "Held out", &mut images.held_out, " images", 10.0, "Set apart to choose the best epoch by.");
        ui.end_row();
        number(ui, "Image side", &mut images.pad_to, " px", 1.0, "Images are padded to this with zeros (EBO: 32).");
        fields::seed(ui, "Seed", seed, 1.0, "Of everything random.");
        ui.end_row();
        let worlds = "Flows of each corpus with seeds of their own: how far do their Bayes errors differ?";
        number(ui, "Worlds", &mut repeat.worlds, " a corpus", 0.1, worlds);
        ui.end_row();
    });
    let mut several = !repeat.lambdas.is_empty();
    let about = "Trains with each of these λ and keeps the flow of least NLL on held-out images (EBO 4.1); \"Class loss λ\" does not count then.";
    let these = if several { repeat.lambdas.as_slice() } else { LAMBDAS.as_slice() };
    let these = these.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
    if ui.checkbox(&mut several, format!("Choose λ among {these}")).on_hover_text(about).changed() {
        repeat.lambdas = if several { LAMBDAS.to_vec() } else { Vec::new() };
    }
    let about = "Worlds after the first see images drawn with replacement; takes three worlds or more.";
    ui.checkbox(&mut repeat.bootstrap, "Draw their images with replacement").on_hover_text(about);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_form_holds_a_list_and_says_what_is_missing() {
        let (ctx, mut form) = (egui::Context::default(), Form::default());
        assert!(form.ready().unwrap_err().contains("preset"));
        form.load("quick", HARDNESS_PRESETS[0].hardness());
        let spec = form.ready().unwrap();
        assert!(spec.corpora.len() == 3 && spec.corpora.iter().all(|corpus| corpus.data.is_absolute()));
        form.picked(&ctx, &mut Some((CORPUS.at(1), "/data/mine".into())));
        assert_eq!(form.ready().unwrap().corpora[1].data, Path::new("/data/mine"));
        form.paths[0].clear();
        assert!(form.ready().unwrap_err().contains("has no data"));
        form.picked(&ctx, &mut Some((SPEC, "/nowhere/spec.toml".into())));
        assert!(form.file == "/nowhere/spec.toml" && form.reading.waiting());
        let mut others = Some((CORPUS.at(9), PathBuf::from("/x")));
        let mine = form.picked(&ctx, &mut others);
        assert!(others.is_some() && !mine, "what is not its own is left to others");
    }
}
