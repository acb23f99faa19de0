//! The panel *Export*: the world of the card as a dataset with exact posteriors, to be taken away.

use std::path::Path;

use eframe::egui::{self, Ui};

use super::fields::{NUMBER, StartWords, number, path_row, seed, start_row, together};
use super::task_panel::TaskPanel;
use crate::data::Split;
use crate::experiment::form::typed_path;
use crate::export::{ExportDataset, ExportSpec, Format, Manifest, SplitRecord};
use crate::flow::Precision;
use crate::gui::background::{Field, Takes};
use crate::gui::command::{Command, export_command};
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::session::tasks::TaskView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{fact, facts, heading, hint};
use crate::measure::Estimate;
use crate::units::Seed;

/// Where it goes.
const FOLDER: Field = Field::new("export folder", Takes::Folder);

pub const ID: &str = "export";

const WORDS: StartWords = StartWords {
    start: "Start export",
    about: "Made in pieces: cancelled or killed, it goes on from the last one when it is started again",
    copy: Some("Copy export as command"),
    busy: "An export is going on: cancel it first, or wait.",
};

/// The form's fields.
pub struct ExportPanel {
    train: usize,
    test: usize,
    seed: u64,
    formats: Vec<Format>,
    folder: String,
}

impl Default for ExportPanel {
    fn default() -> Self {
        Self { train: 10_000, test: 2_000, seed: 0, formats: vec![Format::Npz], folder: String::new() }
    }
}

impl TaskPanel for ExportPanel {
    type Task = ExportDataset;
    const EMPTY: [&'static str; 2] = [
        "No dataset made yet",
        "Give a new folder above and press 'Start export': images, labels and exact posteriors\nare written there, with \
                     a card that says what they are.",
    ];

    fn form(&mut self, ui: &mut Ui, cx: &mut Cx) {
        heading(ui, "A dataset of this world", None);
        hint(
            ui,
            "Images of the world of the card on the left, at its τ, T and π, with the exact posterior of each: train any classifier on \
             them, in any framework, and bring its predictions back.",
        );
        ui.horizontal_wrapped(|ui| {
            number(ui, "Train", &mut self.train, " images", 100.0, "Training images.");
            together(ui, NUMBER);
            let about = "Test images: they share nothing with those to train on.";
            number(ui, "Test", &mut self.test, " images", 100.0, about);
            together(ui, NUMBER);
            let about = "The same seed on the same device gives the same bytes.";
            seed(ui, "Export seed", &mut self.seed, 1.0, about);
        });
        ui.horizontal_wrapped(|ui| {
            ui.label("Formats");
            for (one, label, about) in FORMATS {
                let mut on = self.formats.contains(&one);
                if ui.checkbox(&mut on, label).on_hover_text(about).changed() {
                    self.formats = Format::ALL
                        .into_iter()
                        .filter(|f| if *f == one { on } else { self.formats.contains(f) })
                        .collect();
                }
            }
        });
        let bytes = self.bytes(cx);
        hint(ui, format!("About {} on the disk.", size(bytes)));
        path_row(ui, cx, "Folder of the dataset", &mut self.folder, FOLDER);
        start_row(ui, cx, self.ready(cx), &WORDS, |task| export_command(&task.spec, &task.folder));
    }

    fn words(&self, view: &TaskView<'_, ExportDataset>) -> [String; 2] {
        let place = view.task.folder.display().to_string();
        let stopped = format!("{place} is not complete: start the same export again, and it goes on.");
        [place, stopped]
    }

    fn report(&mut self, ui: &mut Ui, cx: &mut Cx, view: &TaskView<'_, ExportDataset>, manifest: &Manifest) {
        let folder = &view.task.folder;
        made(ui, manifest, folder);
        ui.add_space(8.0);
        let judge = ui.button("Judge a classifier on it");
        if judge.on_hover_text("Opens the panel My classifier with this dataset").clicked() {
            cx.view.picked = Some((super::judge::DATA, folder.clone()));
            cx.commands.push(Command::ShowPanel(super::judge::ID));
        }
    }
}

impl ExportPanel {
    /// Bytes on the disk: float images, PNG of about half a byte a value, 16 bits uncompressed.
    fn bytes(&self, cx: &Cx) -> f64 {
        let dims = cx.session.oracle.as_ref().map_or(0, |info| info.architecture.shape().dims()) as f64;
        let each = |format: &Format| match format {
            Format::Npz => 4.0 * dims,
            Format::Png => 0.5 * dims,
            Format::Png16 | Format::Parquet => 2.0 * dims,
        };
        (self.train + self.test) as f64 * self.formats.iter().map(each).sum::<f64>()
    }

    /// Returns the task of the fields, or what is wrong with them.
    fn ready(&self, cx: &Cx) -> Result<ExportDataset, String> {
        if cx.session.oracle.is_none() {
            return Err("Open an oracle first.".into());
        }
        let spec = ExportSpec {
            oracle: cx.session.oracle_name.clone(),
            train: self.train,
            test: self.test,
            settings: cx.prefs.settings(),
            precision: Precision::F32,
            seed: Seed(self.seed),
            formats: self.formats.clone(),
        };
        spec.validate().map_err(|error| error.to_string())?;
        match self.folder.trim() {
            "" => Err("Give the folder it is to go to: a new one.".into()),
            folder => Ok(ExportDataset { spec, folder: typed_path(folder)?, remembers: true }),
        }
    }
}

/// Formats, their names and what they are.
const FORMATS: [(Format, &str, &str); 4] = [
    (Format::Npz, "npz", "float32 arrays: the only images whose posteriors are exact"),
    (
        Format::Png16,
        "PNG, 16 bits",
        "Folders of pictures as torchvision's ImageFolder reads them, with 16 bits a value: they keep the posteriors",
    ),
    (
        Format::Parquet,
        "parquet",
        "Pictures as Hugging Face's datasets reads them: 16 bits a value, unless PNG of 8 bits alone is chosen beside it",
    ),
    (
        Format::Png,
        "PNG, 8 bits",
        "As every viewer reads them. In some worlds 8 bits lose the posterior: the manifest then says that the pictures' Bayes \
         error is unknown",
    ),
];

fn made(ui: &mut Ui, manifest: &Manifest, folder: &Path) {
    let exact = "Exact for the float32 images of the npz files; pictures have the posteriors of the rounded images";
    heading(ui, "Made", Some((Badge::Exact, exact)));
    for sentence in manifest.rounding_remedy().map(str::to_owned).into_iter().chain(manifest.picture_sentences()) {
        hint(ui, sentence);
    }
    hint(ui, format!("{}: {} files, their SHA-256 in dataset.json", folder.display(), manifest.files.len()));
    let error = &manifest.world.truth.bayes_error;
    facts(ui, "exported world", |ui| {
        let (low, high) = error.interval;
        let shown = format::estimate(100.0 * error.value, (100.0 * low, 100.0 * high), "%");
        fact(ui, "Bayes error of the world", shown, &manifest.world.truth.how);
        let entropy = &manifest.world.aleatoric_nats;
        let shown = format::estimate(entropy.value, entropy.interval, "nats");
        fact(ui, "Aleatoric uncertainty", shown, "E[H(p(y|x))]");
    });
    for split in [Split::Train, Split::Test] {
        if let Some(record) = manifest.splits.get(&split.to_string()) {
            split_facts(ui, split, record);
        }
    }
}

fn split_facts(ui: &mut Ui, split: Split, record: &SplitRecord) {
    let shown = |e: &Estimate, times: f64, unit: &str| {
        format::estimate(times * e.value, (times * e.interval.low, times * e.interval.high), unit)
    };
    ui.add_space(6.0);
    ui.label(egui::RichText::new(format!("{split}: {} images", format::count(record.images))).strong());
    facts(ui, &format!("exported {split}"), |ui| {
        let error = &record.bayes_error;
        let about = "Mean of 1 − max p over these images; the interval is that of the world it estimates";
        fact(ui, "Bayes error of the images", shown(error, 100.0, "%"), about);
        let entropy = &record.aleatoric_nats;
        fact(ui, "Mean H(p)", shown(entropy, 1.0, "nats"), "Likewise");
        for (bits, cost) in &record.pictures {
            let kl = shown(&cost.kl_nats, 1.0, "nats");
            let about = "Mean KL of the exact posterior from that of the picture";
            fact(ui, &format!("KL of {bits}-bit posteriors"), kl, about);
            let changed = shown(&cost.decisions_changed, 100.0, "%");
            let about = "Share of the images whose most probable class is another one";
            fact(ui, &format!("Bayes decisions changed by {bits} bits"), changed, about);
        }
    });
    if let Some(caveat) = record.rounding.describe() {
        ui.add(egui::Label::new(egui::RichText::new(caveat).color(Theme::of(ui).warning())).wrap());
    }
}

/// Bytes in words.
fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1e6 => format!("{:.0} kB", (b / 1e3).ceil()),
        b if b < 1e9 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}
