//! How the training of a cell goes: its loss, the watched test images, and the floor of any loss.

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::Ui;

use super::csv;
use super::overlay::Overlay;
use crate::classifier::Labels;
use crate::figure::{Axis, Figure, Rule, Scale, Series, Style, Way};
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::course_controls;
use crate::gui::plot::{About, Board};
use crate::gui::session::runs::RunView;
use crate::gui::widgets::{heading, hint};
use crate::measure::Estimate;
use crate::run::monitor::{CellChoice, CellCourse, Over, Quantity, smooth_line};

/// What the plots show. A long course is put together again only when it has changed.
#[derive(Default)]
pub struct Course {
    choice: CellChoice,
    kept: Option<Kept>,
    board: Board,
    overlay: Overlay,
}

/// A course and what it was made of.
struct Kept {
    folder: PathBuf,
    revision: u64,
    chosen: Option<String>,
    choice: CellChoice,
    course: CellCourse,
    figure: Arc<Figure>,
}

/// Said of a run whose courses were left out, as of one that came with the program.
const OVER: &str = "All cells are finished. How their losses fell is not in this folder.";

impl Course {
    /// The course of a cell as it is now.
    fn refresh(&mut self, run: &RunView, chosen: Option<&str>) {
        let choice = self.choice;
        let fresh = |kept: &Kept| {
            let place = (kept.folder.as_path(), kept.chosen.as_deref()) == (run.folder.as_path(), chosen);
            place && (kept.revision, kept.choice) == (run.revision, choice)
        };
        if !self.kept.as_ref().is_some_and(fresh) {
            self.kept = run.course(chosen).map(|course| Kept {
                folder: run.folder.clone(),
                revision: run.revision,
                chosen: chosen.map(str::to_owned),
                choice,
                figure: Arc::new(figure(run, &course, &choice)),
                course,
            });
        }
    }

    /// The plot of the chosen cell or of the chosen cells, or what to wait for.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, run: &RunView) {
        if cx.view.cells.len() > 1 {
            return self.overlay.show(ui, cx, run, &mut self.choice);
        }
        heading(ui, "Training of one cell", None);
        self.refresh(run, cx.view.cells.cursor());
        let Self { choice, kept, board, .. } = self;
        let Some(Kept { course, figure, .. }) = kept else {
            let over = run.found().is_some_and(|found| found.is_over());
            return hint(ui, if over { OVER } else { "No cell has begun: its loss appears here step by step." });
        };
        if !course.is_known() {
            ui.label(course.label());
            return hint(ui, "No step has been written down yet.");
        }
        ui.horizontal_wrapped(|ui| {
            ui.label(course.label());
            axes(ui, choice, course.axes());
            course_controls::smoothing(ui, &mut choice.smoothing);
            if csv::button(ui, "Save the course of the training as CSV") {
                let text = csv::course(run, course);
                cx.commands.push(Command::Run(RunCommand::SavePoints(text, "training.csv")));
            }
            if course.watched.iter().any(|watched| watched.intervals.is_some()) {
                hint(ui, "bands: 95 % intervals");
            }
        });
        let (name, numbers) = (format!("Training of {}", course.label()), || csv::course(run, course));
        let about = About {
            name: Some(&name),
            height: 210.0,
            numbers: Some(("training of one cell", "training.csv", &numbers)),
            ..About::default()
        };
        board.show_shared(ui, cx, figure, &about);
        hint(ui, "Ctrl+click and Shift+click in the list of cells: the courses of several in one plot.");
    }
}

/// Over what courses are drawn, of what they can be drawn over, and on which axes. A choice that cells do not have stays for
/// those that do.
pub fn axes(ui: &mut Ui, choice: &mut CellChoice, offered: &[Over]) {
    let about =
        "Epochs and images are counted from the steps of cells that are one training; cells record no times of steps";
    let shown = if offered.contains(&choice.over) { choice.over } else { Over::Steps };
    let mut over = shown;
    course_controls::axes(ui, ("Axis of the cells", about), &mut over, offered, &mut choice.log);
    if over != shown {
        choice.over = over;
    }
}

fn figure(run: &RunView, course: &CellCourse, choice: &CellChoice) -> Figure {
    let told = match course.cell.labels {
        Labels::Drawn => "training cross-entropy",
        _ => "training cross-entropy, as told",
    };
    let over = if course.axes().contains(&choice.over) { choice.over } else { Over::Steps };
    let mut provenance = csv::origin(&[run]);
    provenance.push(("cell".into(), course.label()));
    let scale = |log: bool| if log { Scale::Log10 } else { Scale::Linear };
    let y = Axis { scale: scale(choice.log[1]), ..Axis::linear("loss") };
    let points = course.points(Quantity::TrainLoss, over);
    let mut series =
        smooth_line(Series { name: told.into(), colour: 5, points, ..Series::default() }, choice.smoothing);
    let watched = [("test cross-entropy", Quantity::CrossEntropy), ("its epistemic KL", Quantity::Epistemic)];
    series.extend(watched.into_iter().zip([1, 2]).map(|((name, quantity), colour)| {
        let points = course.points(quantity, over);
        Series { name: name.into(), style: Style::LinePoints, colour, points, band: true, ..Series::default() }
    }));
    Figure {
        id: "training".into(),
        title: format!("Training of {}", course.label()),
        caption: "Cross-entropy in the course of the training: the mean over the steps between two points, and that of the watched \
                  test images with its epistemic part (bands: 95 % intervals). No loss on these images falls below the floor A for long."
            .into(),
        provenance,
        x: Axis { scale: scale(choice.log[0]), ..Axis::linear(over.name()) },
        y: y.in_unit("nats per image"),
        series,
        rules: floor(run, course).into_iter().collect(),
        ..Figure::default()
    }
}

/// What no loss on these images can fall below. It is a mean over them: over others it is a little different.
fn floor(run: &RunView, course: &CellCourse) -> Option<Rule> {
    let of_run = run.found().and_then(|found| found.results.summary.aleatoric);
    let of_run = of_run.map(|Estimate { value, interval }| ((value, Some([interval.low, interval.high])), "test"));
    let of_watched = course.watched.last().map(|watched| (watched.aleatoric(), "watched"));
    let ((at, interval), images) = of_watched.or(of_run).filter(|((value, _), _)| *value > 0.0)?;
    let [low, high] = [0, 1].map(|end| interval.map(|ends| ends[end]));
    let label = format!("aleatoric floor A, mean over the {images} images");
    Some(Rule { way: Way::Horizontal, at, low, high, label })
}
