//! How the training of a cell goes: its loss, the watched test images, and the floor of any loss.

use std::path::PathBuf;

use eframe::egui::{self, Align2, Color32, Ui};
use egui_plot::{FilledArea, HLine, HoverPosition, Line, LineStyle, PlotPoint, PlotPoints, PlotUi, Points, Text};

use super::super::bayes::axis::{Scale, counted};
use super::csv;
use super::decimate::decimate;
use crate::classifier::Labels;
use crate::experiment::Watched;
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::session::runs::{CourseView, RunView};
use crate::gui::table_window;
use crate::gui::theme::Theme;
use crate::gui::widgets::{heading, hint, still_plot, swatch};
use crate::measure::Estimate;

/// Names of the curves of the watched test images.
const TEST: &str = "test cross-entropy";
const KL: &str = "its epistemic KL";
/// A band is drawn down to this share of its curve on a logarithmic scale.
const LEAST_SHARE: f64 = 0.05;

/// A number and its 95 % interval, where that is known.
type Figure = (f64, Option<[f64; 2]>);

/// What the plot shows. A long course is put together and thinned again only when it has changed.
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
        if course.train.is_empty() && course.watched.is_empty() {
            ui.label(&course.label);
            hint(ui, "No step has been written down yet.");
            return;
        }
        ui.horizontal_wrapped(|ui| {
            ui.label(&course.label);
            ui.checkbox(&mut log, "log loss");
            if csv::button(ui, "Save the course of the training as CSV") {
                let text = csv::course(run, course);
                cx.commands.push(Command::Run(RunCommand::SavePoints(text, "training.csv")));
            }
            table_window::button(ui, cx.view, "training of one cell", "training.csv", || csv::course(run, course));
        });
        let of_run = run.found().and_then(|found| found.results.summary.aleatoric);
        let of_run = of_run.map(|Estimate { value, interval }| (value, Some([interval.low, interval.high])));
        let of_watched = course.watched.last().map(Watched::aleatoric).map(|figure| (figure, "watched"));
        let floor = of_watched.or(of_run.map(|figure| (figure, "test")));
        plot(ui, kept, floor, Scale::new(log));
        self.log = log;
    }
}

fn plot(ui: &mut Ui, Kept { course, train, .. }: &Kept, floor: Option<(Figure, &str)>, y: Scale) {
    let theme = Theme::of(ui);
    let label = move |at: &HoverPosition<'_>| match at {
        HoverPosition::NearDataPoint { plot_name, position, .. } => {
            let (step, nats) = (position.x, format::sig4(y.value(position.y)));
            Some(format!("{plot_name}\nstep {step:.0}\n{nats} nats"))
        }
        HoverPosition::Elsewhere { .. } => None,
    };
    let train: Vec<[f64; 2]> = train.iter().map(|[x, v]| [*x, placed(y, *v)]).collect();
    let curves = [Curve::new(TEST, course, Watched::cross_entropy, y), Curve::new(KL, course, Watched::epistemic, y)];
    let told = match course.cell.labels {
        Labels::Drawn => "training cross-entropy",
        _ => "training cross-entropy, as told",
    };
    ui.horizontal_wrapped(|ui| {
        for (i, name) in [told, TEST, KL].into_iter().enumerate() {
            swatch(ui, theme.curve(i));
            glossary::label(ui, name.into());
        }
        if course.watched.iter().any(|watched| watched.half_widths.is_some()) {
            hint(ui, "bands: 95 % intervals");
        }
    });
    let plot = still_plot(("course", y == Scale::Log), theme)
        .height(210.0)
        .x_axis_label("optimisation step")
        .y_axis_label("nats per image")
        .x_grid_spacer(|input| counted(&input))
        .x_axis_formatter(|mark, _| format::count(mark.value as usize))
        .y_grid_spacer(move |input| y.marks(&input))
        .y_axis_formatter(move |mark, _| y.label(&mark))
        .label_formatter(label);
    let plot = if y == Scale::Linear { plot.include_y(0.0) } else { plot };
    let shown = plot.show(ui, |plot| {
        let line = Line::new(told, PlotPoints::from(train));
        plot.line(line.color(theme.curve(0).gamma_multiply(0.55)).width(1.0));
        for (curve, colour) in curves.into_iter().zip([theme.curve(1), theme.curve(2)]) {
            curve.draw(plot, colour);
        }
        if let Some(floor) = floor.filter(|((value, _), _)| *value > 0.0) {
            floor_line(plot, floor, y, theme);
        }
    });
    let name = format!("Training of {}", course.label);
    shown.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, name.as_str()));
}

/// Where a value stands; a logarithm has no place for 0.
fn placed(y: Scale, value: f64) -> f64 {
    y.place(value.max(1e-12))
}

/// A curve of the watched images and its band.
struct Curve {
    name: &'static str,
    line: Vec<[f64; 2]>,
    /// Steps, and the ends of the intervals there.
    band: [Vec<f64>; 3],
}

impl Curve {
    fn new(name: &'static str, course: &CourseView, value: fn(&Watched) -> Figure, y: Scale) -> Self {
        let mut curve = Self { name, line: Vec::new(), band: Default::default() };
        for watched in &course.watched {
            let (step, (value, interval)) = (watched.step as f64, value(watched));
            curve.line.push([step, placed(y, value)]);
            if let Some([low, high]) = interval {
                let [steps, lows, highs] = &mut curve.band;
                steps.push(step);
                // On a logarithmic scale a band down to 0 would press all curves to the top.
                lows.push(placed(y, if y == Scale::Log { low.max(LEAST_SHARE * value) } else { low }));
                highs.push(placed(y, high));
            }
        }
        curve
    }

    fn draw(self, plot: &mut PlotUi<'_>, colour: Color32) {
        let Self { name, line, band: [steps, lows, highs] } = self;
        if steps.len() > 1 {
            let band = FilledArea::new(format!("{name}, band"), &steps, &lows, &highs);
            plot.add(band.fill_color(colour.gamma_multiply(0.22)).allow_hover(false));
        }
        plot.line(Line::new(name, PlotPoints::from(line.clone())).color(colour).width(2.0));
        plot.points(Points::new(name, PlotPoints::from(line)).color(colour).radius(2.5).allow_hover(false));
    }
}

/// What no loss on these images can fall below, with its name on it. It is a mean over them: over
/// others it is a little different.
fn floor_line(plot: &mut PlotUi<'_>, ((floor, interval), images): (Figure, &str), y: Scale, theme: Theme) {
    let (at, colour) = (y.place(floor), theme.mismatch());
    let line = HLine::new("aleatoric floor", at).color(colour).width(1.5);
    plot.hline(line.style(LineStyle::dashed_loose()).allow_hover(false));
    let interval = interval.map_or_else(String::new, |ends| {
        let [low, high] = ends.map(format::sig4);
        format!(" [{low}, {high}]")
    });
    let text = egui::RichText::new(format!(
        "aleatoric floor A = {}{interval} nats, mean over the {images} images",
        format::sig4(floor)
    ))
    .small();
    // At the left: training begins high above.
    let text = Text::new("aleatoric floor", PlotPoint::new(0.0, at), text).color(colour);
    plot.text(text.anchor(Align2::LEFT_TOP).allow_hover(false));
}
