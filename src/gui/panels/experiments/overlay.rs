//! How the trainings of several chosen cells go, in one plot.

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::Ui;

use super::{course, csv};
use crate::figure::Figure;
use crate::gui::context::Cx;
use crate::gui::course_controls;
use crate::gui::plot::{About, Board};
use crate::gui::session::runs::RunView;
use crate::gui::widgets::{heading, hint};
use crate::run::monitor::{CELL_QUANTITIES, CellChoice, CellCourse, ColourBy, Over, cells_picture, common_axes};
use crate::worker::runs::COURSES;

/// Seconds between two pictures of cells that go on.
const EVERY: f64 = 0.3;

/// The plot from frame to frame.
#[derive(Default)]
pub struct Overlay {
    kept: Option<Kept>,
    board: Board,
}

/// A figure and what it was made of.
struct Kept {
    folder: PathBuf,
    cells: Vec<String>,
    choice: CellChoice,
    revision: u64,
    /// When it was made, seconds.
    made: f64,
    /// What these cells can be drawn over.
    axes: &'static [Over],
    /// Cells of which no step is known.
    without: usize,
    figure: Arc<Figure>,
}

impl Overlay {
    /// The plot of the chosen cells, in the order of the plan.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, run: &RunView, choice: &mut CellChoice) {
        heading(ui, "Training of the chosen cells", None);
        let planned = run.found().map_or(&[][..], |found| &found.cells);
        let chosen = planned.iter().map(|cell| &cell.planned.id).filter(|id| cx.view.cells.contains(id));
        let cells: Vec<String> = chosen.take(COURSES).cloned().collect();
        self.refresh(ui, run, cells, choice);
        let Some(kept) = &self.kept else { return };
        ui.horizontal_wrapped(|ui| {
            course_controls::quantity(ui, "Figure of the cells", &mut choice.quantity, &CELL_QUANTITIES);
            course::axes(ui, choice, kept.axes);
        });
        ui.horizontal_wrapped(|ui| {
            course_controls::smoothing(ui, &mut choice.smoothing);
            let about = "Cells that agree in this have one colour";
            let all = &ColourBy::ALL[..if choice.over_seeds { ColourBy::ALL.len() - 1 } else { ColourBy::ALL.len() }];
            course_controls::choose(ui, ("Colour the cells by", about), &mut choice.colour, all, ColourBy::name);
            let about = "Cells that differ by their seed alone become one line: their mean with Student's 95 % interval over the seeds";
            ui.checkbox(&mut choice.over_seeds, "Means over seeds").on_hover_text(about);
        });
        if kept.figure.series.is_empty() {
            hint(ui, "No chosen cell says this yet: choose another figure, or wait for its first steps.");
        } else {
            let about = About { name: Some("Training of the chosen cells"), height: 260.0, ..About::default() };
            self.board.show_shared(ui, cx, &kept.figure, &about);
            hint(ui, kept.figure.caption.clone());
        }
        let (chosen, without) = (cx.view.cells.len(), kept.without);
        if chosen > COURSES {
            hint(ui, format!("Of {chosen} chosen cells the first {COURSES} are drawn."));
        }
        if without > 0 {
            hint(ui, format!("Of {without} of the chosen cells no step is known yet."));
        }
    }

    /// Makes the figure again where the choice has changed, and now and then where the run has.
    fn refresh(&mut self, ui: &Ui, run: &RunView, cells: Vec<String>, choice: &CellChoice) {
        let now = ui.input(|input| input.time);
        let same = |kept: &&Kept| (&kept.folder, &kept.cells, &kept.choice) == (&run.folder, &cells, choice);
        if let Some(kept) = self.kept.as_ref().filter(same) {
            let left = kept.made + EVERY - now;
            if kept.revision == run.revision {
                return;
            }
            if left > 0.0 {
                return ui.ctx().request_repaint_after_secs(left as f32);
            }
        }
        let courses: Vec<CellCourse> = cells.iter().filter_map(|id| run.course_of(id)).collect();
        let known: Vec<&CellCourse> = courses.iter().filter(|one| one.is_known()).collect();
        let mut provenance = csv::origin(&[run]);
        provenance.push(("cells".into(), known.iter().map(|one| one.label()).collect::<Vec<_>>().join("; ")));
        self.kept = Some(Kept {
            folder: run.folder.clone(),
            choice: *choice,
            revision: run.revision,
            made: now,
            axes: common_axes(&courses),
            without: cells.len() - known.len(),
            figure: Arc::new(Figure { provenance, ..cells_picture(&known, choice) }),
            cells,
        });
    }
}
