//! The panel *Validation*: the oracle of the card beside the real images it was trained on.

mod depth;
mod form;
mod pairs;
mod reality;

use eframe::egui::{self, Label, RichText, Ui};

use super::experiments::findings::{all, grid};
use super::task_panel::TaskPanel;
use crate::figure::{Illustrated, Table};
use crate::gui::context::Cx;
use crate::gui::glossary;
use crate::gui::plot::Boards;
use crate::gui::session::tasks::TaskView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{heading, hint};
use crate::validate::{Pairs, READING, ValidateOracle, Validation};
use depth::DepthSection;
use form::Form;
use pairs::PairViewer;
use reality::RealitySection;

/// What a validation comes to.
type Found = Illustrated<(Validation, Option<Pairs>)>;

/// Width of a sentence below a name, points.
const SENTENCE: f32 = 250.0;

pub const ID: &str = "validate";

/// The form, the pairs on show, and the figures as they were painted last.
#[derive(Default)]
pub struct ValidatePanel {
    form: Form,
    pairs: PairViewer,
    depth: DepthSection,
    reality: RealitySection,
    boards: Boards,
}

impl TaskPanel for ValidatePanel {
    type Task = ValidateOracle;
    const EMPTY: [&'static str; 2] = [
        "Nothing validated yet",
        "Give the folder of the real images and press 'Validate': samples of the world are compared with them.\nPosteriors \
                     are exact for the world in any case; this tells how much the world resembles nature.",
    ];

    fn form(&mut self, ui: &mut Ui, cx: &mut Cx) {
        self.depth.show(ui, cx);
        ui.add_space(12.0);
        self.reality.show(ui, cx);
        ui.add_space(12.0);
        self.form.show(ui, cx);
    }

    fn words(&self, view: &TaskView<'_, ValidateOracle>) -> [String; 2] {
        let more = "Pause and cancel below, in the list of jobs; what is computed is kept in the folder.";
        let stopped = format!("{} is not complete: start the same validation again, and it goes on.", place(view));
        [more.to_owned(), stopped]
    }

    fn report(&mut self, ui: &mut Ui, cx: &mut Cx, view: &TaskView<'_, ValidateOracle>, report: &Found) {
        let Illustrated { found: (found, pairs), figures, tables } = report;
        let about = "Figures have 95 % intervals over images; the feature net is taken as it is";
        heading(ui, "The world beside its real images", Some((Badge::Estimated, about)));
        let corpus = &found.corpus;
        let own = corpus.sentence();
        hint(ui, format!("{} of {}. {own} Report: {}", found.spec.oracle, corpus.name, place(view)));
        for note in &corpus.notes {
            hint(ui, note.clone());
        }
        if let (Some(table), Some(fidelity)) = (tables.first(), &found.fidelity) {
            hint(ui, format!("Copies: training images are compared {}.", fidelity.near.forms_from));
            beside(ui, table);
        }
        all(ui, cx, figures, &mut self.boards);
        if let Some(pairs) = pairs {
            self.pairs.show(ui, view.job, pairs);
        }
        let shown = usize::from(found.fidelity.is_some());
        tables.iter().skip(shown).for_each(|table| grid(ui, table));
    }
}

/// The folder of a validation, empty where it has none.
fn place(view: &TaskView<'_, ValidateOracle>) -> String {
    view.task.folder.as_ref().map_or_else(String::new, |folder| folder.display().to_string())
}

/// Shows the table of figures; how to read one stands below its name.
fn beside(ui: &mut Ui, table: &Table) {
    ui.add_space(8.0);
    ui.label(RichText::new(&table.title).strong());
    let weak = Theme::of(ui).weak();
    let columns = table.columns.iter().filter(|column| column.title != READING);
    egui::Grid::new(&table.id).num_columns(columns.clone().count()).striped(true).spacing([14.0, 3.0]).show(ui, |ui| {
        for column in columns {
            glossary::label(ui, RichText::new(column.heading()).small().color(weak));
        }
        ui.end_row();
        for row in table.shown() {
            let (readings, shown): (Vec<_>, Vec<_>) =
                table.columns.iter().zip(&row).partition(|(column, _)| column.title == READING);
            for (i, (_, text)) in shown.into_iter().enumerate() {
                let label = |ui: &mut Ui| ui.add(Label::new(text).wrap_mode(egui::TextWrapMode::Extend));
                if i > 0 {
                    label(ui);
                    continue;
                }
                ui.vertical(|ui| {
                    ui.spacing_mut().item_spacing.y = 0.0;
                    glossary::explain(label(ui), text);
                    ui.set_max_width(SENTENCE);
                    for (_, reading) in &readings {
                        ui.add(Label::new(RichText::new(*reading).small().color(weak)).wrap());
                    }
                });
            }
            ui.end_row();
        }
    });
    hint(ui, table.caption.clone());
}
