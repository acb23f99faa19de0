//! How well a finished classifier is calibrated: against drawn labels, and against the exact
//! posterior.

use eframe::egui::{self, RichText, Ui};
use egui_plot::{
    Corner, GridInput, GridMark, HoverPosition, Legend, Line, LineStyle, MarkerShape, PlotBounds, PlotPoints, Points,
};

use super::{cell_images, csv};
use crate::experiment::CellResult;
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::session::runs::RunView;
use crate::gui::table_window;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{fact, facts, heading, still_plot};
use crate::measure::Estimate;
use crate::worker::runs::Found;

/// The finished cell that is shown: the chosen one, or the last of the plan.
pub fn chosen<'a>(found: &'a Found, id: Option<&str>) -> Option<&'a CellResult> {
    match id {
        Some(id) => super::cells::result(found, id),
        None => found.results.summary.cells.last(),
    }
}

/// A number with its interval.
fn estimate(value: Estimate, unit: &str) -> String {
    let scale = if unit == "%" { 100.0 } else { 1.0 };
    let [at, low, high] = [value.value, value.interval.low, value.interval.high].map(|x| scale * x);
    let digits = if unit == "%" { 1 } else { 3 };
    format!("{at:.digits$} {unit} [{low:.digits$}, {high:.digits$}]")
}

/// The diagram and the figures of a cell.
pub fn show(ui: &mut Ui, cx: &mut Cx, run: &RunView, result: &CellResult) {
    let about = "Each figure with its 95 % interval over the test images.";
    heading(ui, "Reliability", Some((Badge::Estimated, about)));
    ui.horizontal_wrapped(|ui| {
        ui.label(format!("{}, {} test images", result.cell.label(), format::count(result.measured.n)));
        cell_images::buttons(ui, cx, run, result);
        if csv::button(ui, "Save the reliability diagram as CSV") {
            let text = csv::reliability(run, result);
            cx.commands.push(Command::Run(RunCommand::SavePoints(text, "reliability.csv")));
        }
        let numbers = || csv::reliability(run, result);
        table_window::button(ui, cx.view, "reliability diagram", "reliability.csv", numbers);
    });
    cell_images::trouble(ui, cx, run, &result.id);
    ui.horizontal_top(|ui| {
        diagram(ui, result);
        ui.vertical(|ui| figures(ui, result));
    });
}

fn figures(ui: &mut Ui, result: &CellResult) {
    let m = &result.measured;
    ui.label(RichText::new("Figures of this cell").strong());
    facts(ui, "cell facts", |ui| {
        fact(ui, "Cross-entropy L", estimate(m.cross_entropy, "nats"), "Mean -Σ p(y|x) log q(y|x).");
        fact(ui, "Aleatoric A", estimate(m.aleatoric, "nats"), "Mean entropy of the exact posterior: unavoidable.");
        fact(ui, "Epistemic KL", estimate(m.epistemic, "nats"), "Mean KL(p || q): what it has yet to learn.");
        fact(ui, "Expected accuracy", estimate(m.expected_accuracy, "%"), "Mean p(argmax q).");
        fact(ui, "Bayes accuracy", estimate(m.bayes_accuracy, "%"), "Mean max p, of the same images.");
        fact(ui, "ECE", estimate(m.ece, "%"), "Against drawn labels, 15 bins of equal width.");
        let about = "The same bins with the exact posterior in place of the drawn labels.";
        fact(ui, "Exact calibr. error", estimate(m.exact_calibration_error, "%"), about);
    });
}

/// Grid lines from 0 to 1. The step is overstated: the plot would leave out their short labels
/// otherwise.
fn fifths(_: GridInput) -> Vec<GridMark> {
    (0..=5).map(|i| GridMark { value: 0.2 * f64::from(i), step_size: 0.5 }).collect()
}

fn diagram(ui: &mut Ui, result: &CellResult) {
    let theme = Theme::of(ui);
    let bins = &result.measured.reliability.bins;
    let texts: Vec<(f64, String)> = bins
        .iter()
        .map(|bin| {
            let text = format!(
                "confidence {:.3}, {} images\ndrawn labels: {:.3} right [{:.3}, {:.3}]\nexact posterior: {:.3}",
                bin.mean_confidence,
                format::count(bin.count),
                bin.hit_rate.value,
                bin.hit_rate.interval.low,
                bin.hit_rate.interval.high,
                bin.exact_rate
            );
            (bin.mean_confidence, text)
        })
        .collect();
    let label = move |at: &HoverPosition<'_>| {
        let HoverPosition::NearDataPoint { position, .. } = at else { return None };
        let off = |text: &&(f64, String)| (text.0 - position.x).abs();
        texts.iter().min_by(|a, b| off(a).total_cmp(&off(b))).map(|(_, text)| text.clone())
    };
    let side = (ui.available_width() * 0.5).clamp(240.0, 300.0);
    let plot = still_plot("reliability", theme)
        .width(side)
        .height(side * 0.9)
        .legend(Legend::default().position(Corner::LeftTop))
        .x_axis_label("confidence max q(y|x)")
        .y_axis_label("share of right decisions")
        .x_grid_spacer(fifths)
        .y_grid_spacer(fifths)
        .x_axis_formatter(|mark, _| format!("{:.1}", mark.value))
        .y_axis_formatter(|mark, _| format!("{:.1}", mark.value))
        .label_formatter(label);
    let shown = plot.show(ui, |plot| {
        plot.set_plot_bounds(PlotBounds::from_min_max([-0.02, -0.02], [1.02, 1.02]));
        let even = Line::new("calibrated", PlotPoints::from(vec![[0.0, 0.0], [1.0, 1.0]]));
        plot.line(even.color(theme.weak()).style(LineStyle::dashed_dense()).allow_hover(false));
        let drawn: Vec<[f64; 2]> = bins.iter().map(|bin| [bin.mean_confidence, bin.hit_rate.value]).collect();
        let exact: Vec<[f64; 2]> = bins.iter().map(|bin| [bin.mean_confidence, bin.exact_rate]).collect();
        for bin in bins {
            let (x, ends) = (bin.mean_confidence, bin.hit_rate.interval);
            let whisker = PlotPoints::from(vec![[x, ends.low], [x, ends.high]]);
            plot.line(Line::new("drawn labels", whisker).color(theme.curve(0)).width(1.0).allow_hover(false));
        }
        plot.points(Points::new("drawn labels", PlotPoints::from(drawn)).color(theme.curve(0)).radius(3.5));
        let line = Line::new("exact posterior", PlotPoints::from(exact.clone())).color(theme.curve(1)).width(1.5);
        plot.line(line.allow_hover(false));
        let marks = Points::new("exact posterior", PlotPoints::from(exact)).shape(MarkerShape::Diamond);
        plot.points(marks.color(theme.curve(1)).radius(4.0));
    });
    shown.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "Reliability diagram"));
}
