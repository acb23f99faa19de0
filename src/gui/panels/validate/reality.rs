//! The world's decisions on real images: a bound of nature's Bayes error.

use eframe::egui::{TextEdit, Ui};

use super::super::experiments::findings::{all, grid};
use super::super::fields::{StartWords, number, path_row, side_row, together};
use crate::experiment::form::typed_path;
use crate::gui::background::{Field, Takes};
use crate::gui::command::reality_command;
use crate::gui::context::Cx;
use crate::gui::plot::Boards;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{heading, hint, said, standing};
use crate::units::Seed;
use crate::validate::{MeasureReality, Published, RealitySpec, SOMEBODY};

/// The images.
const DATA: Field = Field::new("labelled test images", Takes::Folder);

const WORDS: StartWords = StartWords {
    start: "Hold against labels",
    about: "Decides on every test image by the exact posterior at τ = 1, and counts the errors.",
    copy: Some("Copy reality as command"),
    busy: "Decisions are on their way.",
};

/// The fields, and the figure as it was painted last.
pub struct RealitySection {
    data: String,
    /// Per cent; 0 where there is nothing to compare with.
    published: f64,
    name: String,
    boards: Boards,
}

impl Default for RealitySection {
    fn default() -> Self {
        Self { data: String::new(), published: 0.0, name: SOMEBODY.to_owned(), boards: Boards::default() }
    }
}

impl RealitySection {
    /// Paints the form and what came of it.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        heading(ui, "Nature's Bayes error", None);
        hint(
            ui,
            "E of the world is the Bayes error of the world, not of nature. What the world's own decision errs on real test images bounds \
             nature's from above: no rule errs less than the best one.",
        );
        path_row(ui, cx, "Test images", &mut self.data, DATA);
        ui.horizontal_wrapped(|ui| {
            let about = "Error of a classifier on the same kind of real images, to compare; 0: none.";
            number(ui, "Published error", &mut self.published, " %", 0.01, about);
            together(ui, 290.0);
            let label = ui.label("Published by").on_hover_text("What the classifier is called in the report.");
            ui.add(TextEdit::singleline(&mut self.name).desired_width(180.0)).labelled_by(label.id);
        });
        side_row(ui, cx, self.ready(cx), &WORDS, |task| reality_command(&task.spec));
        let session = cx.session;
        let Some(view) = session.tasks.get::<MeasureReality>() else { return };
        standing(ui, session, &view, "Pause and cancel below, in the list of jobs.", "It was stopped.");
        let Some(report) = &view.report else { return };
        let found = &report.found;
        let about = "95 % intervals over real images";
        heading(ui, "The world's decisions on real images", Some((Badge::Estimated, about)));
        found.notes.iter().for_each(|note| hint(ui, note.clone()));
        let (usual, warning) = (ui.visuals().text_color(), Theme::of(ui).warning());
        for finding in &found.findings {
            said(ui, &finding.sentence, if finding.kind.contradicts() { warning } else { usual });
        }
        report.tables.iter().for_each(|table| grid(ui, table));
        all(ui, cx, &report.figures, &mut self.boards);
    }

    /// Returns the task of the fields, or what is wrong with them.
    fn ready(&self, cx: &Cx) -> Result<MeasureReality, String> {
        if cx.session.oracle.is_none() {
            return Err("Open an oracle first.".into());
        }
        let data = match self.data.trim() {
            "" => return Err("Give the labelled test images.".into()),
            given => typed_path(given)?,
        };
        let published =
            (self.published > 0.0).then(|| Published { name: self.name.clone(), error: self.published / 100.0 });
        let oracle = cx.session.oracle_name.clone();
        let spec = RealitySpec { oracle, data, prior: cx.prefs.settings().prior, published, seed: Seed(0) };
        spec.validate().map_err(|error| error.to_string())?;
        Ok(MeasureReality { spec })
    }
}
