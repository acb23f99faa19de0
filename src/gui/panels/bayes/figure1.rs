//! EBO's Figure 1, redrawn live: the self-test of the integrators where the truth is a formula.

use eframe::egui::{self, Ui};

use crate::bayes::Method;
use crate::figure::{Axis, Figure, Point, Records, Series, Style};
use crate::gui::bayes_error_view::half_width;
use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::plot::{About, Board};
use crate::gui::theme::Theme;
use crate::gui::widgets::{grid_head, heading, hint};
use crate::worker::bayes::protocol::Figure1Point;

/// Range of the logarithmic axis of errors, per cent.
const LOG_RANGE: [f64; 2] = [1e-12, 150.0];
const ABOUT: &str = "Two Gaussian classes in 784 dimensions, means two random unit vectors, Σ = τ²I (EBO, Figure 1). The line is \
                     the exact error Φ(-|μ₁ - μ₂| / 2τ); each integrator runs on the same problem without knowing it.";

pub fn show(ui: &mut Ui, cx: &mut Cx, board: &mut Board) {
    heading(ui, "Self-test: Figure 1 of EBO", None);
    hint(ui, ABOUT);
    let figure = &cx.session.bayes.figure1;
    ui.horizontal_wrapped(|ui| {
        let text = if figure.asked() { "Draw again" } else { "Draw Figure 1" };
        if ui.add_enabled(!figure.running, egui::Button::new(text)).clicked() {
            cx.commands.push(Command::Figure1);
        }
        let axis = ui.checkbox(&mut cx.prefs.log_error, "log E, here and above");
        axis.on_hover_text("Bayes errors on a logarithmic axis");
        if figure.running {
            hint(ui, format!("{} points so far…", figure.value.len()));
        }
        if let Some(why) = &figure.trouble {
            ui.colored_label(Theme::of(ui).error(), why);
        }
    });
    if figure.value.is_empty() {
        return;
    }
    plot(ui, cx, &figure.value, board);
    verdict(ui, &figure.value);
}

/// The points as comma-separated values.
fn csv(points: &[Figure1Point]) -> String {
    let lines = Records::of(points)
        .field("method", |point| point.method.map_or("exact", |method| method.name()))
        .field("tau", |point| point.tau)
        .field("bayes_error", |point| point.estimate.figure.value)
        .field("low_95", |point| point.estimate.figure.interval.0)
        .field("high_95", |point| point.estimate.figure.interval.1)
        .field("points", |point| point.estimate.samples)
        .field("seconds", |point| point.estimate.seconds);
    "# plot: two Gaussian classes in 784 dimensions (EBO, Figure 1)\n".to_owned() + &lines.text()
}

fn plot(ui: &mut Ui, cx: &mut Cx, points: &[Figure1Point], board: &mut Board) {
    let (drawn, numbers) = (figure(points, cx.prefs.log_error), || csv(points));
    let about = About {
        name: Some("Figure 1 of EBO"),
        height: 250.0,
        numbers: Some(("Figure 1 of EBO", "figure-1.csv", &numbers)),
        ..About::default()
    };
    board.show(ui, cx, &drawn, &about);
}

fn figure(points: &[Figure1Point], log: bool) -> Figure {
    let of = |method: Option<Method>| {
        let of = points.iter().filter(move |point| point.method == method);
        of.map(move |Figure1Point { tau, estimate, .. }| {
            let (low, high) = estimate.figure.interval;
            let point = Point::new(*tau, 100.0 * estimate.figure.value);
            if method.is_none() { point } else { point.within(100.0 * low, 100.0 * high) }
        })
    };
    let exact = Series { name: "exact".into(), colour: EXACT, points: of(None).collect(), ..Series::default() };
    let methods = METHODS.into_iter().enumerate().map(|(i, method)| Series {
        name: method.name().into(),
        style: Style::Points,
        colour: i,
        points: of(Some(method)).collect(),
        // Side by side: at the same τ they would hide each other.
        aside: ASIDE * (i as f64 - 1.5),
        ..Series::default()
    });
    let y =
        if log { Axis { range: Some(LOG_RANGE), ..Axis::log10("Bayes error") } } else { Axis::linear("Bayes error") };
    Figure {
        id: "figure-1".into(),
        title: "Two Gaussian classes in 784 dimensions (EBO, Figure 1)".into(),
        caption: ABOUT.into(),
        provenance: vec![("program".into(), format!("bayescope {}", env!("CARGO_PKG_VERSION")))],
        x: Axis { range: Some([0.09, 11.0]), ..Axis::log10("temperature τ, Σ = τ²I") },
        y: y.in_unit("%"),
        series: std::iter::once(exact).chain(methods).collect(),
        ..Figure::default()
    }
}

/// Place in the palette of the exact curve: ink, which no method has.
const EXACT: usize = 6;
/// Distance of one method's marks from the next's, log₁₀ of τ.
const ASIDE: f64 = 0.012;

const METHODS: [Method; 4] = [Method::Sov, Method::Pair, Method::Hdr, Method::Mc];

/// How each method did against the exact curve.
fn verdict(ui: &mut Ui, points: &[Figure1Point]) {
    egui::Grid::new("figure 1 verdict").num_columns(5).striped(true).spacing(egui::vec2(12.0, 3.0)).show(ui, |ui| {
        grid_head(ui, &["method", "points", "intervals that hold the exact value", "median relative error", "time"]);
        for method in METHODS {
            let of: Vec<&Figure1Point> = points.iter().filter(|point| point.method == Some(method)).collect();
            if of.is_empty() {
                continue;
            }
            let judged: Vec<(bool, f64)> = of.iter().filter_map(|point| judge(points, point)).collect();
            let held = judged.iter().filter(|(held, _)| *held).count();
            let mut errors: Vec<f64> = judged.iter().map(|(_, error)| *error).collect();
            errors.sort_by(f64::total_cmp);
            let median = errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN);
            let seconds: f64 = of.iter().map(|point| point.estimate.seconds).sum();
            glossary::label(ui, method.name().into());
            ui.label(of.len().to_string());
            ui.label(format!("{held} of {}", judged.len()));
            ui.label(if median == 0.0 { "0".into() } else { format!("{median:.1e}") });
            ui.label(format::short_time(seconds));
            ui.end_row();
        }
    });
}

/// Returns whether a point's interval holds the exact value at its τ, and its relative error.
fn judge(points: &[Figure1Point], point: &Figure1Point) -> Option<(bool, f64)> {
    let same = |other: &&Figure1Point| other.method.is_none() && (other.tau / point.tau - 1.0).abs() < 1e-9;
    let exact = points.iter().find(same)?.estimate.figure.value;
    let off = (point.estimate.figure.value - exact).abs();
    let (low, high) = point.estimate.figure.interval;
    let held = (low <= exact && exact <= high) || off <= half_width(&point.estimate.figure);
    Some((held, off / exact))
}
