//! How the training of a cell goes: its loss, the watched test images, and the floor of any loss.

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::Ui;

use super::csv;
use crate::classifier::Labels;
use crate::experiment::Watched;
use crate::figure::{Axis, Figure, Point, Rule, Scale, Series, Style, Way};
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::plot::{About, Board};
use crate::gui::session::runs::{CourseView, RunView};
use crate::gui::widgets::{heading, hint};
use crate::measure::Estimate;

/// Names of the curves of the watched test images.
const TEST: &str = "test cross-entropy";
const KL: &str = "its epistemic KL";

/// A number and its 95 % interval, where that is known.
type Number = (f64, Option<[f64; 2]>);

/// What the plot shows. A long course is put together again only when it has changed.
#[derive(Default)]
pub struct Course {
    log: bool,
    kept: Option<Kept>,
    board: Board,
}

/// A course and what it was made of.
struct Kept {
    folder: PathBuf,
    revision: u64,
    chosen: Option<String>,
    log: bool,
    course: CourseView,
    figure: Arc<Figure>,
}

impl Course {
    /// The course of a cell as it is now.
    fn refresh(&mut self, run: &RunView, chosen: Option<&str>) {
        let log = self.log;
        let fresh = |kept: &Kept| {
            let place = (kept.folder.as_path(), kept.chosen.as_deref()) == (run.folder.as_path(), chosen);
            place && (kept.revision, kept.log) == (run.revision, log)
        };
        if !self.kept.as_ref().is_some_and(fresh) {
            self.kept = run.course(chosen).map(|course| Kept {
                folder: run.folder.clone(),
                revision: run.revision,
                chosen: chosen.map(str::to_owned),
                log,
                figure: Arc::new(figure(run, &course, log)),
                course,
            });
        }
    }

    /// The plot, or what to wait for.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, run: &RunView) {
        heading(ui, "Training of one cell", None);
        self.refresh(run, cx.view.cell.as_deref());
        let Self { log, kept, board } = self;
        let Some(Kept { course, figure, .. }) = kept else {
            return hint(ui, "No cell has begun: its loss appears here step by step.");
        };
        if course.train.is_empty() && course.watched.is_empty() {
            ui.label(&course.label);
            return hint(ui, "No step has been written down yet.");
        }
        ui.horizontal_wrapped(|ui| {
            ui.label(&course.label);
            ui.checkbox(log, "log loss");
            if csv::button(ui, "Save the course of the training as CSV") {
                let text = csv::course(run, course);
                cx.commands.push(Command::Run(RunCommand::SavePoints(text, "training.csv")));
            }
            if course.watched.iter().any(|watched| watched.half_widths.is_some()) {
                hint(ui, "bands: 95 % intervals");
            }
        });
        let (name, numbers) = (format!("Training of {}", course.label), || csv::course(run, course));
        let about = About {
            name: Some(&name),
            height: 210.0,
            numbers: Some(("training of one cell", "training.csv", &numbers)),
            ..About::default()
        };
        board.show_shared(ui, cx, figure, &about);
    }
}

fn figure(run: &RunView, course: &CourseView, log: bool) -> Figure {
    let told = match course.cell.labels {
        Labels::Drawn => "training cross-entropy",
        _ => "training cross-entropy, as told",
    };
    let train = course.train.iter().map(|[step, loss]| Point::new(*step, *loss)).collect();
    let mut provenance = csv::origin(&[run]);
    provenance.push(("cell".into(), course.label.clone()));
    let y = Axis { scale: if log { Scale::Log10 } else { Scale::Linear }, ..Axis::linear("loss") };
    Figure {
        id: "training".into(),
        title: format!("Training of {}", course.label),
        caption: "Cross-entropy over the optimisation steps: the mean over the steps between two points, and that of the watched \
                  test images with its epistemic part (bands: 95 % intervals). No loss on these images falls below the floor A for long."
            .into(),
        provenance,
        x: Axis::linear("optimisation step"),
        y: y.in_unit("nats per image"),
        series: vec![
            Series { name: told.into(), colour: 5, points: train, ..Series::default() },
            watched(TEST, 1, course, Watched::cross_entropy),
            watched(KL, 2, course, Watched::epistemic),
        ],
        rules: floor(run, course).into_iter().collect(),
    }
}

/// A curve of the watched images and its band.
fn watched(name: &str, colour: usize, course: &CourseView, value: fn(&Watched) -> Number) -> Series {
    let point = |watched: &Watched| {
        let (at, interval) = value(watched);
        let point = Point::new(watched.step as f64, at);
        interval.map_or(point.clone(), |[low, high]| point.within(low, high))
    };
    let points = course.watched.iter().map(point).collect();
    Series { name: name.into(), style: Style::LinePoints, colour, points, band: true, ..Series::default() }
}

/// What no loss on these images can fall below. It is a mean over them: over others it is a little different.
fn floor(run: &RunView, course: &CourseView) -> Option<Rule> {
    let of_run = run.found().and_then(|found| found.results.summary.aleatoric);
    let of_run = of_run.map(|Estimate { value, interval }| ((value, Some([interval.low, interval.high])), "test"));
    let of_watched = course.watched.last().map(|watched| (watched.aleatoric(), "watched"));
    let ((at, interval), images) = of_watched.or(of_run).filter(|((value, _), _)| *value > 0.0)?;
    let [low, high] = [0, 1].map(|end| interval.map(|ends| ends[end]));
    let label = format!("aleatoric floor A, mean over the {images} images");
    Some(Rule { way: Way::Horizontal, at, low, high, label })
}
