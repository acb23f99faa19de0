//! Which images an experiment trains on: the world's own, or those of a dataset.

use std::path::Path;

use eframe::egui::{ComboBox, TextEdit, Ui};

use super::path;
use crate::experiment::form::typed_path;
use crate::experiment::{DataSpec, ExperimentSpec};
use crate::flow::preprocess::Dequantisation;
use crate::gui::background::{Field, Takes};
use crate::gui::context::Cx;
use crate::gui::widgets::hint;

/// The images.
pub(super) const DATA: Field = Field::new("experiment images", Takes::Folder);
/// The test images.
const TEST_DATA: Field = Field::new("experiment test images", Takes::Folder);

/// The paths, as they are being edited.
#[derive(Default)]
pub struct DataFields {
    /// The training images.
    pub train: String,
    /// The test images; empty for what is usual.
    test: String,
    /// How 8-bit images become real numbers; empty for what is usual.
    dequantise: String,
}

impl DataFields {
    /// Those of a spec.
    pub fn of(spec: &ExperimentSpec) -> Self {
        let text = |path: &Path| path.display().to_string();
        let data = spec.data.as_ref();
        let test = data.and_then(|data| data.test.as_deref()).map(text);
        Self {
            train: data.map(|data| text(&data.train)).unwrap_or_default(),
            test: test.unwrap_or_default(),
            dequantise: data.and_then(|data| data.dequantise).map(|how| how.to_string()).unwrap_or_default(),
        }
    }

    /// The fields. The spec says whether there is a dataset; [`Self::ready`] reads the paths.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, spec: &mut ExperimentSpec) {
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Training images").on_hover_text("What the classifiers learn from.");
            let words = ["this world", "a dataset…"];
            let combo =
                ComboBox::from_id_salt("training images").selected_text(words[usize::from(spec.data.is_some())]);
            let shown = combo.show_ui(ui, |ui| {
                if ui.selectable_label(spec.data.is_none(), words[0]).clicked() {
                    spec.data = None;
                }
                if ui.selectable_label(spec.data.is_some(), words[1]).clicked() {
                    spec.data.get_or_insert_with(DataSpec::default);
                }
            });
            shown.response.labelled_by(label.id);
        });
        if spec.data.is_none() {
            return;
        }
        ui.horizontal_wrapped(|ui| path(ui, cx, "Dataset (folder or .npz)", &mut self.train, DATA));
        ui.horizontal_wrapped(|ui| path(ui, cx, "Test images (may be empty)", &mut self.test, TEST_DATA));
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Dequantise").on_hover_text(
                "How 8-bit images become real numbers: seed:N (the world's noise), midpoint, levels (pictures that hold the noise \
                 already), or mean:R (posteriors from the mean density of R draws; a classifier sees the first). Where this is empty \
                 seed:0, and levels for pictures of a world's images that this program wrote.",
            );
            ui.add(TextEdit::singleline(&mut self.dequantise).hint_text("seed:0").desired_width(90.0))
                .labelled_by(label.id);
        });
        hint(
            ui,
            "Labels are the dataset's, posteriors the world's opinion of its images. Without test images: its test split, or \
             samples of the world.",
        );
    }

    /// Puts a path that came from the desktop's dialog into its field.
    pub fn picked(&mut self, field: Field, path: &Path) -> bool {
        let text = match field {
            DATA => &mut self.train,
            TEST_DATA => &mut self.test,
            _ => return false,
        };
        *text = path.display().to_string();
        true
    }

    /// The paths as a spec has them, or what is missing.
    pub fn ready(&self) -> Result<DataSpec, String> {
        if self.train.trim().is_empty() {
            return Err("Name the dataset, or take this world's own images.".into());
        }
        let test = Some(self.test.trim()).filter(|test| !test.is_empty()).map(typed_path).transpose()?;
        let dequantise = match self.dequantise.trim() {
            "" => None,
            text => Some(text.parse::<Dequantisation>().map_err(|e| e.to_string())?),
        };
        Ok(DataSpec { train: typed_path(&self.train)?, test, dequantise })
    }
}
