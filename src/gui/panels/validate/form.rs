//! The form of a validation.

use std::path::Path;

use eframe::egui::{ComboBox, Ui};

use super::super::fields::{NUMBER, StartWords, number, path_row, seed, start_row, together};
use crate::experiment::form::typed_path;
use crate::flow::Precision;
use crate::gui::background::{Field, Takes};
use crate::gui::command::validate_command;
use crate::gui::context::Cx;
use crate::gui::glossary;
use crate::gui::widgets::{heading, hint};
use crate::units::Seed;
use crate::validate::{FeatureChoice, OnTheSpot, TwoSampleSpec, ValidateOracle, ValidateSpec};

/// The images.
const DATA: Field = Field::new("validation images", Takes::Folder);
/// Where it goes.
const FOLDER: Field = Field::new("validation folder", Takes::Folder);
/// Weights of a feature net.
const WEIGHTS: Field = Field::new("feature net", Takes::Arrays);
/// Statistics that FID compares with.
const STATISTICS: Field = Field::new("FID statistics", Takes::Arrays);

const WORDS: StartWords = StartWords {
    start: "Validate",
    about: "",
    copy: Some("Copy validation as command"),
    busy: "A validation is on its way.",
};

/// The fields.
pub struct Form {
    data: String,
    folder: String,
    images: usize,
    /// Training images at most; 0 for all.
    limit: usize,
    epochs: usize,
    seed: u64,
    /// Whether features come from a file.
    from_file: bool,
    weights: String,
    statistics: String,
}

impl Default for Form {
    fn default() -> Self {
        let (data, folder, weights, statistics) = Default::default();
        let epochs = OnTheSpot::default().epochs;
        Self { data, folder, images: 2000, limit: 0, epochs, seed: 0, from_file: false, weights, statistics }
    }
}

impl Form {
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        heading(ui, "The oracle beside real images", None);
        hint(
            ui,
            "Samples of the world of the card on the left, at its τ and π, beside the images it was trained on and images it never saw: \
             a two-sample test, FID, KID, precision, coverage, copies, diversity, texture.",
        );
        path_row(ui, cx, "Real images", &mut self.data, DATA);
        path_row(ui, cx, "Folder of the validation", &mut self.folder, FOLDER);
        ui.horizontal_wrapped(|ui| {
            number(
                ui,
                "Draw",
                &mut self.images,
                " images",
                50.0,
                "Samples compared with the real images; 0: likelihood only.",
            );
            let about = "Real training images that samples are compared with, evenly spread over all; 0: all of them.";
            let unit = if self.limit == 0 { " (all)" } else { " at most" };
            together(ui, NUMBER);
            number(ui, "Training images", &mut self.limit, unit, 100.0, about);
            together(ui, NUMBER);
            seed(ui, "Seed", &mut self.seed, 1.0, "Of samples, noise and resampling.");
        });
        self.features(ui, cx);
        start_row(ui, cx, self.ready(cx), &WORDS, |task| {
            validate_command(&task.spec, task.folder.as_deref().unwrap_or_else(|| Path::new("")))
        });
    }

    fn features(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let names = ["ResNet-18 trained on the spot", "weights from a file"];
        ui.horizontal_wrapped(|ui| {
            let label = glossary::label(ui, "Features".into());
            let combo =
                ComboBox::from_id_salt("feature net").width(220.0).selected_text(names[usize::from(self.from_file)]);
            let shown = combo.show_ui(ui, |ui| {
                for (from_file, name) in [false, true].into_iter().zip(names) {
                    ui.selectable_value(&mut self.from_file, from_file, name);
                }
            });
            shown.response.labelled_by(label.id);
            if !self.from_file {
                number(ui, "Epochs", &mut self.epochs, "", 0.1, "Passes over at most 10,000 of the training images.");
            }
        });
        if self.from_file {
            path_row(ui, cx, "Weights", &mut self.weights, WEIGHTS);
            hint(
                ui,
                "Inception-v3 of pytorch-fid or torchvision, or torchvision's ResNet-18 or ResNet-50 (.pth, .safetensors).",
            );
            path_row(ui, cx, "FID statistics", &mut self.statistics, STATISTICS);
            hint(ui, "Optional: mu and sigma of pytorch-fid (.npz), in place of those of the training images.");
        } else {
            hint(ui, "Figures by such features compare worlds with each other here, and with no published ones.");
        }
    }

    /// Returns the task of the fields, or what is wrong with them.
    fn ready(&self, cx: &Cx) -> Result<ValidateOracle, String> {
        let given = |text: &str| (!text.trim().is_empty()).then(|| typed_path(text)).transpose();
        if cx.session.oracle.is_none() {
            return Err("Open an oracle first.".into());
        }
        let data = given(&self.data)?.ok_or("Give the folder of the real images.")?;
        let folder = given(&self.folder)?.ok_or("Give a new folder for the validation.")?;
        let features = match self.from_file {
            true => FeatureChoice::Weights(given(&self.weights)?.ok_or("Give the weights of the feature net.")?),
            false => FeatureChoice::OnTheSpot(OnTheSpot { epochs: self.epochs, ..OnTheSpot::default() }),
        };
        let spec = ValidateSpec {
            oracle: cx.session.oracle_name.clone(),
            data,
            images: self.images,
            limit: (self.limit > 0).then_some(self.limit),
            settings: cx.prefs.settings(),
            precision: Precision::F32,
            features,
            two_sample: TwoSampleSpec::default(),
            real_statistics: if self.from_file { given(&self.statistics)? } else { None },
            threshold: None,
            seed: Seed(self.seed),
        };
        spec.validate().map_err(|error| error.to_string())?;
        Ok(ValidateOracle { spec, folder: Some(folder) })
    }
}
