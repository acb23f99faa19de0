//! The panel *My classifier*: predictions or networks against the Bayes limit of a dataset.

mod headline;

use std::path::Path;

use eframe::egui::{Button, ComboBox, Label, RichText, TextEdit, Ui};

use super::experiments::findings::{all, grid};
use super::fields::{StartWords, path, path_row, start_row};
use super::task_panel::TaskPanel;
use crate::classifier::onnx::{Normalisation, OnnxOptions};
use crate::classifier::{Architecture, CheckpointOptions};
use crate::data::Split;
use crate::experiment::form::typed_path;
use crate::figure::Illustrated;
use crate::gui::background::{Field, Purpose, Takes};
use crate::gui::command::{Command, evaluate_command};
use crate::gui::context::Cx;
use crate::gui::failures;
use crate::gui::glossary;
use crate::gui::kept_path;
use crate::gui::plot::Boards;
use crate::gui::session::tasks::TaskView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{heading, hint, said};
use crate::judge::{Candidate, ReadOptions, Report};
use crate::run::JudgeModels;
use crate::units::Seed;
use crate::worker::judged_images::WorstBy;

/// The dataset.
pub const DATA: Field = Field::new("judged dataset", Takes::Folder);
/// A model, by its place in the list.
const MODEL: Field = Field::new("judged model", Takes::Model);
/// Where the report goes.
const REPORT: Field = Field::new("report folder", Takes::Folder);

/// What stands in a field that a file's own word fills.
const AS_SAID: &str = "as its file says";
pub const ID: &str = "judge";

const WORDS: StartWords = StartWords {
    start: "Judge",
    about: "",
    copy: Some("Copy judgement as command"),
    busy: "A judgement is on its way.",
};

/// The form's fields, and the figures as they were painted last.
#[derive(Default)]
pub struct JudgePanel {
    dataset: String,
    /// Files of predictions or networks.
    models: Vec<String>,
    normalisation: String,
    /// Of checkpoints that do not say it.
    architecture: Option<Architecture>,
    side: String,
    report: String,
    boards: Boards,
}

impl TaskPanel for JudgePanel {
    type Task = JudgeModels;
    const EMPTY: [&'static str; 2] = [
        "Nothing judged yet",
        "Export a dataset (panel Export), train on its train.npz, write what your model says of\nthe images in test.npz \
                     (logits or probabilities, a row an image), and give both here.",
    ];

    fn form(&mut self, ui: &mut Ui, cx: &mut Cx) {
        if self.models.is_empty() {
            self.models.push(String::new());
        }
        heading(ui, "Against the Bayes limit", None);
        path_row(ui, cx, "Exported dataset", &mut self.dataset, DATA);
        let mut gone = None;
        for (i, model) in self.models.iter_mut().enumerate() {
            ui.horizontal_wrapped(|ui| {
                path(ui, cx, &format!("Model {}", i + 1), model, MODEL.at(i));
                if i > 0 && ui.button("Remove").accessible_name(format!("Remove model {}", i + 1)).clicked() {
                    gone = Some(i);
                }
            });
        }
        if let Some(i) = gone {
            self.models.remove(i);
        }
        if ui.button("Add model").on_hover_text("Several are compared, image by image").clicked() {
            self.models.push(String::new());
        }
        hint(
            ui,
            "Predictions as .npz, .npy, .csv or .parquet (logits or probabilities, by ids or in order); a network as .onnx; a trained \
             classifier of the zoo as .safetensors or .pth, or the folder of a run or of one of its cells. On the command line: \
             `bayescope evaluate`.",
        );
        self.networks(ui);
        start_row(ui, cx, self.ready(), &WORDS, evaluate_command);
    }

    fn words(&self, _: &TaskView<'_, JudgeModels>) -> [String; 2] {
        ["Pause and cancel below, in the list of jobs.", "Stopped: press 'Judge' again."].map(str::to_owned)
    }

    fn report(&mut self, ui: &mut Ui, cx: &mut Cx, _: &TaskView<'_, JudgeModels>, report: &Illustrated<Report>) {
        let about = "Posteriors are exact; figures of the test images have 95 % intervals over these";
        heading(ui, "The Bayes gap", Some((Badge::Estimated, about)));
        judged(ui, &report.found);
        alarms(ui, &report.found);
        report.found.models.iter().for_each(|model| headline::show(ui, model));
        typicality(ui, &report.found);
        worst(ui, cx, &report.found);
        ui.horizontal_wrapped(|ui| {
            path(ui, cx, "Folder of the report", &mut self.report, REPORT);
            let write = ui.add_enabled(!self.report.trim().is_empty(), Button::new("Write report"));
            let about = "A page, every figure as SVG and CSV, every table, and everything as JSON";
            let write = write.on_hover_text(about).on_disabled_hover_text("Give the folder of the report first.");
            if write.clicked() {
                cx.commands.push(Command::TakePaths(Purpose::SaveReport, vec![kept_path::typed(&self.report)]));
            }
        });
        all(ui, cx, &report.figures, &mut self.boards);
        report.tables.iter().for_each(|table| grid(ui, table));
    }
}

impl JudgePanel {
    /// What a file of a network may leave open.
    fn networks(&mut self, ui: &mut Ui) {
        let checkpoint = self.models.iter().any(|model| is_checkpoint(model));
        if !checkpoint && !self.models.iter().any(|model| is_onnx(model)) {
            return;
        }
        ui.horizontal_wrapped(|ui| {
            let label = glossary::label(ui, "Normalisation".into());
            let field = TextEdit::singleline(&mut self.normalisation).hint_text(AS_SAID).desired_width(200.0);
            let about = "How a network wants its images scaled: as-is, zero-to-one, minus-one-to-one, bytes, imagenet, or \
                         mean=0.5;std=0.5";
            ui.add(field).labelled_by(label.id).on_hover_text(about);
            if !checkpoint {
                return;
            }
            let label = glossary::label(ui, "Architecture".into());
            let chosen = self.architecture.map_or(AS_SAID, Architecture::label);
            let combo = ComboBox::from_id_salt("judged architecture").width(150.0).selected_text(chosen).show_ui(ui, |ui| {
                ui.selectable_value(&mut self.architecture, None, AS_SAID);
                for architecture in Architecture::ALL {
                    ui.selectable_value(&mut self.architecture, Some(architecture), architecture.label());
                }
            });
            combo.response.labelled_by(label.id);
        });
        if !checkpoint {
            return;
        }
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Scaled to side (px)");
            let field = TextEdit::singleline(&mut self.side).hint_text("as they are").desired_width(80.0);
            let about = "To which a network wants images enlarged first, such as 224";
            ui.add(field).labelled_by(label.id).on_hover_text(about);
        });
        hint(ui, "Cells of our runs say all this themselves; a state dict of PyTorch does not.");
    }

    /// What these fields say of checkpoints.
    fn options(&self, normalisation: &Option<Normalisation>) -> Result<CheckpointOptions, String> {
        let side = match self.side.trim() {
            "" => None,
            text => Some(text.parse().map_err(|_| format!("The side {text} is no number of pixels."))?),
        };
        Ok(CheckpointOptions { architecture: self.architecture, normalisation: normalisation.clone(), side })
    }

    /// Returns the task of the fields, or what is wrong with them.
    fn ready(&self) -> Result<JudgeModels, String> {
        if self.dataset.trim().is_empty() {
            return Err("Give the folder of an exported dataset.".into());
        }
        let how: Option<Normalisation> = match self.normalisation.trim() {
            "" => None,
            text => Some(text.parse().map_err(|error: crate::error::Error| error.to_string())?),
        };
        let given = self.models.iter().map(|model| model.trim()).filter(|model| !model.is_empty());
        let candidate = |model: &str| {
            let path = typed_path(model)?;
            Ok(match (is_onnx(model), is_checkpoint(model)) {
                (true, _) => {
                    Candidate::Onnx { path, options: OnnxOptions { input: how.clone(), ..OnnxOptions::default() } }
                }
                (_, true) => Candidate::Checkpoint { path, options: self.options(&how)? },
                _ => Candidate::Predictions { path, options: ReadOptions::default() },
            })
        };
        let candidates = given.map(candidate).collect::<Result<Vec<_>, String>>()?;
        if candidates.is_empty() {
            return Err("Give a file of predictions or a network.".into());
        }
        Ok(JudgeModels { dataset: typed_path(&self.dataset)?, split: Split::Test, candidates, seed: Seed(0) })
    }
}

fn is_onnx(path: &str) -> bool {
    Path::new(path.trim()).extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx"))
}

/// A state dict; what has no extension is taken for the folder of a run or a cell.
fn is_checkpoint(path: &str) -> bool {
    let path = Path::new(path.trim());
    let known = ["safetensors", "pth", "pt", "ckpt", "tar"];
    match path.extension() {
        Some(extension) => known.iter().any(|known| extension.eq_ignore_ascii_case(known)),
        None => path.file_name().is_some(),
    }
}

/// Buttons that show the images a model is worst on.
fn worst(ui: &mut Ui, cx: &mut Cx, report: &Report) {
    let images = cx.session.exchange.images.as_ref();
    let waits = images.is_some_and(|(job, _)| cx.session.jobs.active().any(|active| active.id == *job));
    for (model, verdict) in report.models.iter().enumerate() {
        ui.horizontal_wrapped(|ui| {
            ui.label(format!("Worst images of {} in the gallery", verdict.name));
            let ways = [
                (WorstBy::Kl, "By KL", "The images with the largest KL(p || q)"),
                (WorstBy::Gap, "By gap", "The images with the largest max p - p(decision)"),
            ];
            for (by, text, about) in ways {
                let name = format!("Worst images of {} {}", verdict.name, text.to_lowercase());
                let button = ui.add_enabled(!waits, Button::new(text)).on_hover_text(about);
                if button.on_disabled_hover_text("They are being read.").accessible_name(name).clicked() {
                    cx.commands.push(Command::ShowJudged(model, by));
                }
            }
        });
    }
    if let Some((job, Some(why))) = images {
        let told = ui.add(Label::new(RichText::new(why).color(Theme::of(ui).warning())).wrap());
        failures::seen(&told, *job);
    }
}

/// Which images were judged: the form may say something else by now.
fn judged(ui: &mut Ui, report: &Report) {
    let Some(model) = report.models.first() else { return };
    hint(ui, format!("Judged: all {} {} images of {}.", model.measured.n, report.origin.split, report.origin.path));
}

/// Whether the judged images are such as the world makes.
fn typicality(ui: &mut Ui, report: &Report) {
    let Some(census) = report.typicality() else { return };
    let text = format!("{}.", census.describe());
    match census.far_outside {
        0 => hint(ui, text),
        _ => said(ui, text, Theme::of(ui).warning()),
    }
}

/// Alarms about models, and what was corrected in their files.
fn alarms(ui: &mut Ui, report: &Report) {
    for model in &report.models {
        for alarm in model.alarms() {
            let text = format!("Alarm, {}: {}", model.name, alarm.message);
            ui.add(Label::new(RichText::new(text).color(Theme::of(ui).error()).strong()).wrap());
        }
        for note in &model.notes {
            hint(ui, format!("{}: {note}", model.name));
        }
    }
}
