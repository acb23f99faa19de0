//! The form of a new training run.

use eframe::egui::{self, DragValue, TextEdit, Ui};

use super::super::fields::{StartWords, number, path, path_row, preset, spec_file, start_row, take_picked};
use super::super::spec_file::SpecReader;
use crate::data::dataset_formats;
use crate::error::Result;
use crate::flow::preprocess::Preprocessing;
use crate::gui::background::{Field, Takes};
use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::glossary;
use crate::gui::kept_path;
use crate::gui::theme::Theme;
use crate::gui::widgets::{heading, hint};
use crate::oracle::train::{ModelSpec, PRESETS, TarFlowSpec, TrainSpec};
use crate::run::TrainOracle;

/// The spec file.
const SPEC: Field = Field::new("training spec", Takes::Spec);
/// Where it goes.
const FOLDER: Field = Field::new("training folder", Takes::Folder);
/// The images.
pub const DATA: Field = Field::new("training images", Takes::Folder);
/// The folder of a run to go on with.
const AGAIN: Field = Field::new("training to go on with", Takes::Folder);

/// σ of a TarFlow's noise after a switch from uniform: as BLC's ImageNet-64.
const USUAL_NOISE: f64 = 0.05;
/// Images of a part of a corpus, unless another number is given.
const USUAL_PART: usize = 2000;

const WORDS: StartWords =
    StartWords { start: "Start training", about: "", copy: None, busy: "A run is going on: cancel it first, or wait." };

/// The fields, as they are being edited.
#[derive(Default)]
pub struct Form {
    /// What the fields say; the family that is not chosen waits in `tarflow`.
    spec: Option<TrainSpec>,
    tarflow: TarFlowSpec,
    start: String,
    data: String,
    classes: String,
    folder: String,
    file: String,
    reading: SpecReader<TrainSpec>,
    again: String,
    /// The spec of the run to go on with.
    going_on: SpecReader<TrainSpec>,
    complaint: Option<String>,
}

impl Form {
    /// Loads the first preset once, and takes a folder of images that was chosen elsewhere. To be
    /// called in every frame, also while the form is closed.
    pub fn prepare(&mut self, cx: &mut Cx) {
        if let (None, None, Some(preset)) = (&self.spec, &self.complaint, PRESETS.first()) {
            self.load(preset.name, preset.spec());
        }
        take_picked(cx, DATA, &mut self.data);
    }

    /// Fills the fields.
    fn load(&mut self, start: &str, spec: Result<TrainSpec>) {
        match spec {
            Ok(spec) => {
                if !spec.data.path.as_os_str().is_empty() {
                    self.data = spec.data.path.display().to_string();
                }
                self.classes = spec.data.classes.join(", ");
                self.tarflow = spec.tarflow.unwrap_or(self.tarflow);
                self.start = start.into();
                self.spec = Some(spec);
                self.complaint = None;
            }
            Err(error) => self.complaint = Some(error.to_string()),
        }
    }

    /// Fills the fields with those of a preset, in place of a spec that is being read.
    fn take_preset(&mut self, name: &str, spec: Result<TrainSpec>) {
        self.reading = SpecReader::default();
        self.load(name, spec);
    }

    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        self.source(ui, cx);
        if let Some(spec) = &mut self.spec {
            numbers(ui, spec, &mut self.tarflow);
        }
        self.places(ui, cx);
        let folder = kept_path::typed(&self.folder);
        let ready = self.ready().map(|spec| TrainOracle { spec, folder });
        let running = cx.session.tasks.get::<TrainOracle>().is_some_and(|view| view.under_way());
        start_row(ui, cx, ready, &WORDS, |_| String::new());
        self.go_on(ui, cx, running);
        if let Some(complaint) = &self.complaint {
            ui.colored_label(Theme::of(ui).error(), complaint);
        }
    }

    /// Where the numbers come from at first.
    fn source(&mut self, ui: &mut Ui, cx: &mut Cx) {
        hint(
            ui,
            "Training fits a flow to images by maximum likelihood. Start from a preset or a spec file and change what should be \
             other; the spec is kept in the folder of the run.",
        );
        ui.horizontal_wrapped(|ui| {
            let chosen = preset(ui, "Start from", &self.start, PRESETS.iter(), |preset| preset.name);
            if let Some(preset) = chosen {
                self.take_preset(preset.name, preset.spec());
            }
        });
        if spec_file(ui, cx, "Spec file (.toml)", &mut self.file, SPEC, "Load spec") {
            self.reading.start(ui.ctx(), &self.file, TrainSpec::read);
        }
        if let Some((file, spec)) = self.reading.show(ui) {
            self.load(&file, spec);
        }
    }

    fn places(&mut self, ui: &mut Ui, cx: &mut Cx) {
        ui.add_space(6.0);
        path_row(ui, cx, "Folder of images", &mut self.data, DATA);
        ui.horizontal_wrapped(|ui| {
            hint(ui, format!("{} files, or a folder with a folder of pictures for every class.", dataset_formats()));
            if ui.small_button("Fetch a corpus…").on_hover_text("MNIST, CIFAR-10 and others, by name").clicked() {
                cx.commands.push(Command::ShowFetch(None));
            }
        });
        path_row(ui, cx, "Folder of the run", &mut self.folder, FOLDER);
        hint(ui, "Checkpoints come here, the finished oracle in its subfolder oracle.");
    }

    /// Returns the spec of the fields, or what is wrong with them.
    fn ready(&self) -> std::result::Result<TrainSpec, String> {
        let mut spec = self.spec.clone().ok_or("Choose a preset or load a spec first.")?;
        spec.data.path = kept_path::typed(&self.data);
        spec.data.classes =
            self.classes.split(',').map(str::trim).filter(|c| !c.is_empty()).map(String::from).collect();
        // Fields of the family that is not chosen may be of the preset before.
        let spec = spec.effective();
        spec.validate().map_err(|error| error.to_string())?;
        if self.data.trim().is_empty() {
            return Err("Give the folder of images.".into());
        }
        if self.folder.trim().is_empty() {
            return Err("Give a folder for the run.".into());
        }
        Ok(spec)
    }

    /// A run that was stopped goes on with its own spec.
    fn go_on(&mut self, ui: &mut Ui, cx: &mut Cx, running: bool) {
        heading(ui, "Continue a run", None);
        ui.horizontal_wrapped(|ui| {
            path(ui, cx, "Folder of a stopped run", &mut self.again, AGAIN);
            let given = !self.again.trim().is_empty() && !running && !self.going_on.waiting();
            let button = ui.add_enabled(given, egui::Button::new("Continue this run"));
            let about = "Goes on where it stopped, with the spec in its train.toml";
            if button.on_hover_text(about).on_disabled_hover_text("Give the folder; one run at a time.").clicked() {
                self.going_on.start(ui.ctx(), &self.again, TrainSpec::of_run);
            }
        });
        match self.going_on.show(ui) {
            None => {}
            // Another one was started meanwhile.
            Some(_) if running => self.complaint = Some(WORDS.busy.into()),
            Some((folder, Ok(spec))) => {
                self.complaint = None;
                cx.commands.push(Command::task(TrainOracle { spec, folder: kept_path::typed(&folder) }));
            }
            Some((_, Err(error))) => self.complaint = Some(error.to_string()),
        }
        if let (Some(spec), false) = (&self.spec, self.classes.is_empty()) {
            hint(ui, format!("{} trains on the classes {} only.", spec.name, self.classes));
        }
    }
}

/// The main numbers of a spec.
fn numbers(ui: &mut Ui, spec: &mut TrainSpec, waiting: &mut TarFlowSpec) {
    ui.add_space(4.0);
    ui.horizontal_wrapped(|ui| {
        ui.label("Family").on_hover_text("Glow: one map for all classes. TarFlow: the map depends on the class.");
        if glossary::explain(ui.selectable_label(spec.tarflow.is_none(), "Glow"), "Glow").clicked() {
            *waiting = spec.tarflow.take().unwrap_or(*waiting);
        }
        if glossary::explain(ui.selectable_label(spec.tarflow.is_some(), "TarFlow"), "TarFlow").clicked() {
            spec.tarflow.get_or_insert(*waiting);
        }
        let label = ui.label("Name");
        ui.add(TextEdit::singleline(&mut spec.name).desired_width(120.0)).labelled_by(label.id);
    });
    egui::Grid::new("training numbers").num_columns(4).spacing([12.0, 4.0]).show(ui, |ui| {
        match &mut spec.tarflow {
            Some(flow) => tarflow_numbers(ui, flow),
            None => glow_numbers(ui, &mut spec.model, &mut spec.training.lambda),
        }
        let TrainSpec { data, training: t, .. } = spec;
        number(ui, "Epochs", &mut t.epochs, " epochs", 0.2, "Passes over the training images.");
        number(ui, "Batch", &mut t.batch, " images", 1.0, "Images in one step.");
        ui.end_row();
        number(ui, "Learning rate", &mut t.learning_rate, "", 1e-5, "Peak; warm-up, then a cosine.");
        number(ui, "Warm-up", &mut t.warm_up_images, " images", 100.0, "Over which the rate rises.");
        ui.end_row();
        number(ui, "Image side", &mut data.pad_to, " px", 1.0, "Images are padded to this with zeros.");
        number(ui, "Held out", &mut data.held_out, " images", 10.0, "Set apart to choose the best epoch by.");
        ui.end_row();
    });
    ui.horizontal_wrapped(|ui| {
        ui.checkbox(&mut spec.data.mirror, "Mirror at random")
            .on_hover_text("Each image left to right or not, anew in every epoch");
        let mut shrinks = spec.data.resize.is_some();
        let about = "Larger image files are scaled down to the image side while they are read, the middle kept";
        if ui.checkbox(&mut shrinks, "Scale large images down").on_hover_text(about).changed() {
            spec.data.resize = shrinks.then_some(spec.data.pad_to);
        }
        if let Some(flow) = &mut spec.tarflow {
            ui.checkbox(&mut flow.volume_preserving, "Volume-preserving").on_hover_text("Blocks only shift (VP)");
        }
    });
    ui.horizontal_wrapped(|ui| which(ui, spec));
}

/// Which images are taken, and by which numbers they and the weights are drawn.
fn which(ui: &mut Ui, spec: &mut TrainSpec) {
    let mut few = spec.data.limit.is_some();
    let about = "The first images of the corpus, or evenly from all of it where its images come class by class";
    if ui.checkbox(&mut few, "A part of the images").on_hover_text(about).changed() {
        spec.data.limit = few.then_some(USUAL_PART);
    }
    if let Some(limit) = &mut spec.data.limit {
        let field = DragValue::new(limit).suffix(" images").speed(10.0).range(1..=usize::MAX);
        let field = ui.add(field.update_while_editing(false)).accessible_name("Images taken");
        field.on_hover_text("Images that are read, at most");
    }
    let label = ui.label("Seed of the training");
    let field = DragValue::new(&mut spec.training.seed.0).speed(0.1).update_while_editing(false);
    let about = "Draws first weights, the order of the images and their noise: the same seed gives the same oracle";
    ui.add(field).labelled_by(label.id).on_hover_text(about);
}

/// Size and noise of a TarFlow.
fn tarflow_numbers(ui: &mut Ui, flow: &mut TarFlowSpec) {
    number(ui, "Patch side", &mut flow.patch, " px", 1.0, "Divides the side of the images.");
    number(ui, "Width", &mut flow.channels, " channels", 64.0, "Of the Transformers; a multiple of 64.");
    ui.end_row();
    number(ui, "Blocks", &mut flow.blocks, " blocks", 0.1, "Autoregressive blocks (BLC: 8).");
    number(ui, "Layers", &mut flow.layers, " per block", 0.1, "Transformer layers of each block (BLC: 8).");
    ui.end_row();
    noise(ui, &mut flow.pixels);
    // A map that all classes share is given no label.
    if !flow.shared_map {
        let mut percent = 100.0 * flow.label_dropout;
        let meaning = "Share of images whose label is dropped (BLC: 10 %).";
        if number(ui, "Label dropout", &mut percent, " %", 0.5, meaning) {
            flow.label_dropout = percent / 100.0;
        }
    }
    ui.end_row();
}

/// Size of a Glow, and the weight of its classification loss.
fn glow_numbers(ui: &mut Ui, model: &mut ModelSpec, lambda: &mut f64) {
    number(ui, "Hidden", &mut model.hidden, " channels", 1.0, "Of the coupling networks (EBO: 512).");
    let meaning = "The side of the images is a multiple of 2^levels (EBO: 3).";
    number(ui, "Levels", &mut model.levels, " levels", 0.1, meaning);
    ui.end_row();
    number(ui, "Flow steps", &mut model.steps, " per level", 0.1, "Steps of each level (EBO: 16).");
    let meaning = "Weight of the classification loss beside the NLL (EBO: 0.01 to 10).";
    number(ui, "Class loss λ", lambda, "", 0.1, meaning);
    ui.end_row();
}

/// How pixels become real numbers.
fn noise(ui: &mut Ui, pixels: &mut Preprocessing) {
    let meaning = "Gaussian noise of this standard deviation in units of x, pixels being -1 to 1 (BLC: 0.07 for AFHQ, 0.05 for \
                   ImageNet-64); uniform is dequantisation alone.";
    let label = ui.label("Noise").on_hover_text(meaning);
    ui.horizontal(|ui| {
        let gaussian = matches!(pixels, Preprocessing::Gaussian { .. });
        if ui.selectable_label(gaussian, "σ").on_hover_text(meaning).clicked() && !gaussian {
            *pixels = Preprocessing::Gaussian { std: USUAL_NOISE };
        }
        if let Preprocessing::Gaussian { std } = pixels {
            let field = DragValue::new(std).suffix(" of x").speed(1e-3).range(1e-4..=1.0).max_decimals(4);
            ui.add(field.update_while_editing(false)).labelled_by(label.id);
        }
        if ui.selectable_label(!gaussian, "uniform").on_hover_text(meaning).clicked() {
            *pixels = Preprocessing::UniformSymmetric;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_form_says_what_is_missing_and_keeps_what_was_edited() {
        let mut form = Form::default();
        form.load(PRESETS[0].name, PRESETS[0].spec());
        assert!(form.ready().unwrap_err().contains("folder of images"));
        form.data = "/data".into();
        form.folder = "/run".into();
        assert_eq!(form.ready().unwrap().data.path, Path::new("/data"));
        let animals = PRESETS.iter().find(|preset| preset.name.starts_with("animals")).unwrap();
        form.load("animals", animals.spec());
        let spec = form.ready().unwrap();
        assert!(spec.tarflow.is_some() && spec.data.classes == ["cat", "dog", "horse"]);
        assert_eq!(spec.data.path, Path::new("/data"), "the place of the data stays");
        if let Some(spec) = &mut form.spec {
            spec.tarflow = spec.tarflow.map(|flow| TarFlowSpec { channels: 100, ..flow });
        }
        assert!(form.ready().unwrap_err().contains("multiple of 64"));
        // What the Glow's preset sets and a TarFlow does not read stays behind.
        form.load(PRESETS[0].name, PRESETS[0].spec());
        if let Some(spec) = &mut form.spec {
            spec.tarflow = Some(TarFlowSpec::default());
        }
        form.ready().unwrap().check_read().unwrap();
    }
}
