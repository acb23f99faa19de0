//! EBO's Figure 1, redrawn live: the self-test of the integrators where the truth is a formula.

use eframe::egui::{self, Ui};
use egui_plot::{Corner, HoverPosition, Legend, Line, MarkerShape, PlotBounds, PlotPoints, Points};

use super::axis::Scale;
use crate::bayes::Method;
use crate::figure::Records;
use crate::gui::bayes_error_view::half_width;
use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::table_window;
use crate::gui::theme::Theme;
use crate::gui::widgets::{grid_head, heading, hint, still_plot};
use crate::worker::bayes::protocol::Figure1Point;

/// Range of the logarithmic axis of errors, log₁₀ of per cent.
const LOG_RANGE: [f64; 2] = [-12.0, 2.2];
const ABOUT: &str = "Two Gaussian classes in 784 dimensions, means two random unit vectors, Σ = τ²I (EBO, Figure 1). The line is \
                     the exact error Φ(-|μ₁ - μ₂| / 2τ); each integrator runs on the same problem without knowing it.";

pub fn show(ui: &mut Ui, cx: &mut Cx) {
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
        if !figure.value.is_empty() {
            table_window::button(ui, cx.view, "Figure 1 of EBO", "figure-1.csv", || csv(&figure.value));
        }
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
    plot(ui, cx, &figure.value);
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

fn plot(ui: &mut Ui, cx: &Cx, points: &[Figure1Point]) {
    let theme = Theme::of(ui);
    let y = Scale::new(cx.prefs.log_error);
    let label = move |at: &HoverPosition<'_>| match at {
        HoverPosition::NearDataPoint { plot_name, position, .. } => Some(format!(
            "{plot_name}\nτ = {}\nE = {} %",
            format::sig4(10f64.powf(position.x)),
            format::sig4(y.value(position.y))
        )),
        HoverPosition::Elsewhere { .. } => None,
    };
    let plot = still_plot("figure 1", theme)
        .height(250.0)
        .legend(Legend::default().position(if y == Scale::Log { Corner::RightBottom } else { Corner::LeftTop }))
        .x_axis_label("temperature τ, Σ = τ²I (logarithmic)")
        .y_axis_label("Bayes error (%)")
        .x_grid_spacer(|input| Scale::Log.marks(&input))
        .x_axis_formatter(|mark, _| Scale::Log.label(&mark))
        .y_grid_spacer(move |input| y.marks(&input))
        .y_axis_formatter(move |mark, _| y.label(&mark))
        .label_formatter(label);
    let [bottom, top] = if y == Scale::Log { LOG_RANGE } else { [-3.0, 54.0] };
    let shown = plot.show(ui, |plot| {
        plot.set_plot_bounds(PlotBounds::from_min_max([-1.05, bottom], [1.05, top]));
        let exact: Vec<[f64; 2]> = points
            .iter()
            .filter(|point| point.method.is_none())
            .map(|point| [point.tau.log10(), y.place(100.0 * point.estimate.figure.value).max(bottom)])
            .collect();
        plot.line(Line::new("exact", PlotPoints::from(exact)).color(theme.curve(EXACT)).width(2.0));
        for (i, (method, shape, radius)) in METHODS.into_iter().enumerate() {
            let of = points.iter().filter(|point| point.method == Some(method));
            let colour = theme.curve(i);
            let mut places = Vec::new();
            for Figure1Point { tau, estimate, .. } in of {
                let x = tau.log10();
                let (low, high) = estimate.figure.interval;
                let ends = [low, high].map(|end| y.place(100.0 * end).max(bottom));
                let bar = PlotPoints::from(ends.map(|end| [x, end]).to_vec());
                plot.line(Line::new(method.name(), bar).color(colour).width(1.5).allow_hover(false));
                places.push([x, y.place(100.0 * estimate.figure.value)]);
            }
            // What was never seen has no place on a logarithmic axis: its interval still has.
            places.retain(|place| place[1] >= bottom);
            let marks = Points::new(method.name(), PlotPoints::from(places));
            plot.points(marks.color(colour).radius(radius).shape(shape).filled(i > 1));
        }
    });
    shown.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "Figure 1 of EBO"));
}

/// Place in the palette of the exact curve: ink, which no method has.
const EXACT: usize = 6;

/// One around the other: at the same τ they would hide each other.
const METHODS: [(Method, MarkerShape, f32); 4] = [
    (Method::Sov, MarkerShape::Circle, 8.0),
    (Method::Pair, MarkerShape::Diamond, 6.0),
    (Method::Hdr, MarkerShape::Up, 4.0),
    (Method::Mc, MarkerShape::Square, 2.0),
];

/// How each method did against the exact curve.
fn verdict(ui: &mut Ui, points: &[Figure1Point]) {
    egui::Grid::new("figure 1 verdict").num_columns(5).striped(true).spacing(egui::vec2(12.0, 3.0)).show(ui, |ui| {
        grid_head(ui, &["method", "points", "intervals that hold the exact value", "median relative error", "time"]);
        for (method, ..) in METHODS {
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
