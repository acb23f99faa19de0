//! How well a finished classifier is calibrated: against drawn labels, and against the exact
//! posterior.

use eframe::egui::{RichText, Ui};

use super::{cell_images, csv};
use crate::experiment::CellResult;
use crate::figure::{Axis, Figure, Point, Series, Style};
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::plot::{About, Board};
use crate::gui::session::runs::RunView;
use crate::gui::theme::Badge;
use crate::gui::widgets::{fact, facts, heading};
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
pub fn show(ui: &mut Ui, cx: &mut Cx, run: &RunView, result: &CellResult, board: &mut Board) {
    let about = "Each figure with its 95 % interval over the test images.";
    heading(ui, "Reliability", Some((Badge::Estimated, about)));
    ui.horizontal_wrapped(|ui| {
        ui.label(format!("{}, {} test images", result.cell.label(), format::count(result.measured.n)));
        cell_images::buttons(ui, cx, run, result);
        if csv::button(ui, "Save the reliability diagram as CSV") {
            let text = csv::reliability(run, result);
            cx.commands.push(Command::Run(RunCommand::SavePoints(text, "reliability.csv")));
        }
    });
    cell_images::trouble(ui, cx, run, &result.id);
    ui.horizontal_top(|ui| {
        ui.vertical(|ui| diagram(ui, cx, run, result, board));
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

fn diagram(ui: &mut Ui, cx: &mut Cx, run: &RunView, result: &CellResult, board: &mut Board) {
    let width = (ui.available_width() * 0.6).clamp(280.0, 420.0);
    ui.set_max_width(width);
    let numbers = || csv::reliability(run, result);
    let about = About {
        name: Some("Reliability diagram"),
        height: 250.0,
        width: Some(width),
        numbers: Some(("reliability diagram", "reliability.csv", &numbers)),
        ..About::default()
    };
    board.show(ui, cx, &figure(run, result), &about);
}

fn figure(run: &RunView, result: &CellResult) -> Figure {
    let bins = &result.measured.reliability.bins;
    let drawn = bins.iter().map(|bin| {
        let (rate, words) = (bin.hit_rate, format!("{} images", format::count(bin.count)));
        let point = Point::new(bin.mean_confidence, rate.value).within(rate.interval.low, rate.interval.high);
        Point { label: Some(words), ..point }
    });
    let exact = bins.iter().map(|bin| Point::new(bin.mean_confidence, bin.exact_rate)).collect();
    let even = vec![Point::new(0.0, 0.0), Point::new(1.0, 1.0)];
    let series =
        |name: &str, style, colour, points| Series { name: name.into(), style, colour, points, ..Series::default() };
    let unit = |title: &str| Axis { range: Some([-0.02, 1.02]), ..Axis::linear(title) };
    let mut provenance = csv::origin(&[run]);
    provenance.push(("cell".into(), format!("{}, {} test images", result.cell.label(), result.measured.n)));
    Figure {
        id: "reliability".into(),
        title: "Reliability diagram".into(),
        caption: "Share of right decisions over the confidence, in bins of equal width: of the drawn labels with its 95 % interval, and \
                  as the exact posterior has it."
            .into(),
        provenance,
        x: unit("confidence max q(y|x)"),
        y: unit("share of right decisions"),
        series: vec![
            Series { dashed: true, ..series("calibrated", Style::Line, 6, even) },
            series("drawn labels", Style::Points, 0, drawn.collect()),
            series("exact posterior", Style::LinePoints, 1, exact),
        ],
        ..Figure::default()
    }
}
