//! How the training of a cell goes: its loss, the watched test images, and the floor below which no loss can lie.

use std::path::PathBuf;

use eframe::egui::{self, Align2, Ui};
use egui_plot::{HLine, HoverPosition, Line, LineStyle, PlotPoint, PlotPoints, PlotUi, Points, Text};

use super::super::Cx;
use super::super::bayes::axis::Scale;
use super::csv;
use super::decimate::decimate;
use crate::classifier::Labels;
use crate::gui::command::Command;
use crate::gui::format;
use crate::gui::runs::RunCommand;
use crate::gui::session::runs::{CourseView, RunView};
use crate::gui::theme::Theme;
use crate::gui::widgets::{heading, hint, still_plot, swatch};

/// Names of the curves of the watched test images.
const TEST: &str = "test cross-entropy";
const KL: &str = "its epistemic KL";

/// What the plot shows. A course may be long: it is put together and thinned again only when something of it has changed.
#[derive(Default)]
pub struct Course {
    log: bool,
    kept: Option<Kept>,
}

/// A course and what it was made of.
struct Kept {
    folder: PathBuf,
    revision: u64,
    chosen: Option<String>,
    columns: usize,
    course: CourseView,
    /// Its training curve, thinned to the columns.
    train: Vec<[f64; 2]>,
}

impl Course {
    /// The course of a cell as it is now, for a plot of so many columns.
    fn of(&mut self, run: &RunView, chosen: Option<&str>, columns: usize) -> Option<&Kept> {
        let fresh = |kept: &Kept| {
            let place = (kept.folder.as_path(), kept.chosen.as_deref()) == (run.folder.as_path(), chosen);
            place && (kept.revision, kept.columns) == (run.revision, columns)
        };
        if !self.kept.as_ref().is_some_and(fresh) {
            let course = run.course(chosen);
            self.kept = course.map(|course| Kept {
                folder: run.folder.clone(),
                revision: run.revision,
                chosen: chosen.map(str::to_owned),
                columns,
                train: decimate(&course.train, columns),
                course,
            });
        }
        self.kept.as_ref()
    }

    /// The plot, or what to wait for.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, run: &RunView) {
        heading(ui, "Training of one cell", None);
        let columns = ui.available_width().max(1.0) as usize;
        let mut log = self.log;
        let Some(kept) = self.of(run, cx.view.cell.as_deref(), columns) else {
            hint(ui, "No cell has begun: its loss appears here step by step.");
            return;
        };
        let course = &kept.course;
        ui.horizontal_wrapped(|ui| {
            ui.label(course.cell.label());
            ui.checkbox(&mut log, "log loss");
            if csv::button(ui, "Save the course of the training as CSV") {
                let text = csv::course(run, course);
                cx.commands.push(Command::Run(RunCommand::SavePoints(text, "training.csv")));
            }
            if course.train.is_empty() {
                hint(ui, "No step has been written down yet.");
            }
        });
        let of_run = run.found().and_then(|found| found.results.summary.aleatoric);
        let floor = course.watched.last().map(|watched| watched.aleatoric).or(of_run.map(|a| a.value));
        plot(ui, kept, floor, Scale::new(log));
        self.log = log;
    }
}

fn plot(ui: &mut Ui, Kept { course, train, .. }: &Kept, floor: Option<f64>, y: Scale) {
    let theme = Theme::of(ui);
    let label = move |at: &HoverPosition<'_>| match at {
        HoverPosition::NearDataPoint { plot_name, position, .. } => {
            let (step, nats) = (position.x, format::sig4(y.value(position.y)));
            Some(format!("{plot_name}\nstep {step:.0}\n{nats} nats"))
        }
        HoverPosition::Elsewhere { .. } => None,
    };
    let place = |points: Vec<[f64; 2]>| -> Vec<[f64; 2]> {
        points.into_iter().map(|[x, v]| [x, y.place(v.max(1e-12))]).collect()
    };
    let train = place(train.clone());
    let watched = |value: fn(&crate::experiment::Watched) -> f64| {
        place(course.watched.iter().map(|w| [w.step as f64, value(w)]).collect())
    };
    let (test, kl) = (watched(|w| w.cross_entropy), watched(|w| w.epistemic));
    let told = match course.cell.labels {
        Labels::Drawn => "training cross-entropy",
        _ => "training cross-entropy, as told",
    };
    ui.horizontal_wrapped(|ui| {
        for (i, name) in [told, TEST, KL].into_iter().enumerate() {
            swatch(ui, theme.curve(i));
            ui.label(name);
        }
    });
    let plot = still_plot(("course", y == Scale::Log), theme)
        .height(210.0)
        .x_axis_label("optimisation step")
        .y_axis_label("nats per image")
        .x_grid_spacer(|input| Scale::Linear.marks(&input))
        .x_axis_formatter(|mark, _| format::count(mark.value.max(0.0) as usize))
        .y_grid_spacer(move |input| y.marks(&input))
        .y_axis_formatter(move |mark, _| y.label(&mark))
        .label_formatter(label);
    let plot = if y == Scale::Linear { plot.include_y(0.0) } else { plot };
    let shown = plot.show(ui, |plot| {
        let line = |name: &str, points: Vec<[f64; 2]>| Line::new(name.to_owned(), PlotPoints::from(points));
        plot.line(line(told, train).color(theme.curve(0).gamma_multiply(0.55)).width(1.0));
        plot.line(line(TEST, test.clone()).color(theme.curve(1)).width(2.0));
        let marks = Points::new(TEST, PlotPoints::from(test));
        plot.points(marks.color(theme.curve(1)).radius(2.5).allow_hover(false));
        plot.line(line(KL, kl.clone()).color(theme.curve(2)).width(2.0));
        let marks = Points::new(KL, PlotPoints::from(kl));
        plot.points(marks.color(theme.curve(2)).radius(2.5).allow_hover(false));
        if let Some(floor) = floor.filter(|floor| *floor > 0.0) {
            floor_line(plot, floor, y, theme);
        }
    });
    let name = format!("Training of {}", course.cell.label());
    shown.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, name.as_str()));
}

/// What no loss on the test images can fall below, with its name on it.
fn floor_line(plot: &mut PlotUi<'_>, floor: f64, y: Scale, theme: Theme) {
    let (at, colour) = (y.place(floor), theme.mismatch());
    let line = HLine::new("aleatoric floor", at).color(colour).width(1.5);
    plot.hline(line.style(LineStyle::dashed_loose()).allow_hover(false));
    let text = egui::RichText::new(format!("aleatoric floor A = {} nats", format::sig4(floor))).small();
    // At the left: training begins high above.
    let text = Text::new("aleatoric floor", PlotPoint::new(0.0, at), text).color(colour);
    plot.text(text.anchor(Align2::LEFT_TOP).allow_hover(false));
}
