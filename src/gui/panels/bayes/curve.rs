//! The curve E(τ) with its marker.

use eframe::egui::{self, Ui};
use egui_plot::{
    Corner, FilledArea, HLine, HoverPosition, Legend, Line, LineStyle, MarkerShape, PlotBounds, PlotPoints, PlotUi,
    Points, VLine,
};

use super::axis::Scale;
use crate::bayes::Estimate;
use crate::gui::bayes_error_view;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::sampled_error;
use crate::gui::theme::Theme;
use crate::gui::widgets::still_plot;
use crate::worker::sampling::FindTau;

/// Smallest Bayes error of the logarithmic axis, per cent, unless the marker is below.
const FLOOR: f64 = 1e-4;

/// Everything the plot shows, in places on its axes.
struct Drawing {
    x: Scale,
    y: Scale,
    /// τ of the points.
    taus: Vec<f64>,
    middle: Vec<[f64; 2]>,
    low: Vec<f64>,
    high: Vec<f64>,
    texts: Vec<String>,
    bounds: PlotBounds,
    tau: f64,
    now: Option<f64>,
    guess: f64,
    target: Option<f64>,
    theme: Theme,
}

/// ln E as a place, also where E is below what floats hold.
fn place(scale: Scale, estimate: &Estimate) -> f64 {
    match scale {
        Scale::Linear => 100.0 * estimate.figure.value,
        Scale::Log => estimate.log_value / std::f64::consts::LN_10 + 2.0,
    }
}

/// The plot; dragging in it moves τ.
pub fn show(ui: &mut Ui, cx: &mut Cx) {
    let drawing = draw(ui, cx);
    let (x, y) = (drawing.x, drawing.y);
    let points: Vec<(f64, String)> = drawing.taus.iter().copied().zip(drawing.texts.clone()).collect();
    // The nearest point of the curve: the whole height of the plot can be dragged in.
    let label = move |at: &HoverPosition<'_>| {
        let (HoverPosition::NearDataPoint { position, .. } | HoverPosition::Elsewhere { position }) = at;
        let off = |point: &&(f64, String)| (point.0 - position.x).abs();
        points.iter().min_by(|a, b| off(a).total_cmp(&off(b))).map(|(_, text)| text.clone())
    };
    let plot = still_plot("bayes error over tau", drawing.theme)
        .height(270.0)
        .legend(Legend::default().position(Corner::LeftTop))
        .x_axis_label("base temperature τ (× std)")
        .y_axis_label("Bayes error E (%)")
        .x_grid_spacer(move |input| x.marks(&input))
        .y_grid_spacer(move |input| y.marks(&input))
        .x_axis_formatter(move |mark, _| x.label(&mark))
        .y_axis_formatter(move |mark, _| y.label(&mark))
        .label_formatter(label);
    let shown = plot.show(ui, |plot| {
        paint(plot, drawing);
        plot.pointer_coordinate().filter(|_| plot.response().dragged() || plot.response().clicked())
    });
    let response = shown.response.on_hover_cursor(egui::CursorIcon::ResizeHorizontal);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "Bayes error over τ"));
    if let Some(to) = shown.inner {
        let [low, high] = cx.prefs.tau_range;
        cx.prefs.tau = (x.value(to.x).clamp(low, high) * 1e3).round() / 1e3;
    }
}

fn draw(ui: &Ui, cx: &Cx) -> Drawing {
    let (x, y) = (Scale::new(cx.prefs.log_tau), Scale::new(cx.prefs.log_error));
    let figures = &cx.session.bayes;
    let curve = figures.curve_shown();
    let known: Vec<(f64, &Estimate)> =
        curve.known().filter(|(_, e)| y == Scale::Linear || e.log_value.is_finite()).collect();
    let band =
        |share: f64, fallback: f64| if share > 0.0 || y == Scale::Linear { y.place(100.0 * share) } else { fallback };
    let middle: Vec<[f64; 2]> = known.iter().map(|(tau, e)| [x.place(*tau), place(y, e)]).collect();
    let ends = |pick: fn(&Estimate) -> f64| -> Vec<f64> {
        known.iter().zip(&middle).map(|((_, e), at)| band(pick(e), at[1])).collect()
    };
    let texts =
        known.iter().map(|(tau, e)| format!("τ = {}\nE = {}", format::sig4(*tau), bayes_error_view::percent(e)));
    let now = match figures.must_be_sampled() {
        Some(true) => sampled_error::readout(cx).map(|figure| y.place(100.0 * figure.value)),
        _ => figures.readout.get().and_then(|readout| Some(place(y, readout.outcome.as_ref().ok()?))),
    };
    let now = now.filter(|place| place.is_finite());
    // Where nothing is sampled yet, those of the knobs: guessing needs no draws.
    let law = curve.law.clone().unwrap_or_else(|| cx.prefs.settings().label_law());
    let guess = 100.0 * law.guessing_error();
    let [first, last] = cx.prefs.tau_range.map(|tau| x.place(tau));
    let (bottom, top) = match y {
        Scale::Linear => (-0.03 * guess.max(1e-3), 1.08 * guess.max(1e-3)),
        Scale::Log => {
            let least = middle.first().map_or(f64::NEG_INFINITY, |at| at[1]).max(FLOOR.log10());
            let top = guess.max(1e-3).log10();
            let bottom = least.min(now.map_or(least, |now| now - 1.0)).min(top - 1.0);
            (bottom - 0.04 * (top - bottom), top + 0.04 * (top - bottom))
        }
    };
    Drawing {
        x,
        y,
        taus: known.iter().map(|(tau, _)| x.place(*tau)).collect(),
        low: ends(|e| e.figure.interval.0),
        high: ends(|e| e.figure.interval.1),
        texts: texts.collect(),
        middle,
        bounds: PlotBounds::from_min_max([first, bottom], [last, top]),
        tau: cx.prefs.tau,
        now,
        guess,
        target: match figures.must_be_sampled() {
            Some(true) => cx.session.tasks.get::<FindTau>().map(|view| 100.0 * view.task.target),
            _ => figures.target.as_ref().map(|target| 100.0 * target.error),
        },
        theme: Theme::of(ui),
    }
}

fn paint<'a>(plot: &mut PlotUi<'a>, drawing: Drawing) {
    let Drawing { x, y, taus, middle, low, high, bounds, tau, now, guess, target, theme, .. } = drawing;
    plot.set_plot_bounds(bounds);
    let blue = theme.curve(0);
    if taus.len() > 1 {
        let area = FilledArea::new("95 % interval", &taus, &low, &high).fill_color(blue.gamma_multiply(0.3));
        plot.add(area.allow_hover(false));
    }
    plot.line(Line::new("Bayes error E(τ)", PlotPoints::from(middle)).color(blue).width(2.0));
    let guessing = HLine::new("1 - max π: guessing", y.place(guess)).color(theme.weak());
    plot.hline(guessing.style(LineStyle::dashed_dense()).allow_hover(false));
    if let Some(target) = target {
        let line = HLine::new("target", y.place(target)).color(theme.curve(1));
        plot.hline(line.style(LineStyle::dashed_loose()).allow_hover(false));
    }
    let accent = theme.mismatch();
    if tau > 0.0 {
        plot.vline(VLine::new("marker: the world's τ", x.place(tau)).color(accent).width(1.5).allow_hover(false));
        if let Some(now) = now {
            let point = Points::new("marker: the world's τ", PlotPoints::from(vec![[x.place(tau), now]]));
            plot.points(point.color(accent).radius(5.0).shape(MarkerShape::Circle).allow_hover(false));
        }
    }
}
