//! The curve E(τ) with its marker.

use eframe::egui::Ui;

use crate::bayes::Estimate;
use crate::figure::{Axis, Figure, Point, Rule, Scale, Series, Style, Way};
use crate::gui::bayes_error_view;
use crate::gui::context::Cx;
use crate::gui::plot::{About, Board, of_before, of_law, of_world};
use crate::gui::sampled_error;
use crate::gui::session::bayes::{BayesFigures, Curve};
use crate::oracle::world::LabelLaw;
use crate::units::Smoothing;
use crate::worker::sampling::FindTau;

/// Smallest Bayes error of the logarithmic axis, per cent, unless the marker is below.
const FLOOR: f64 = 1e-4;
/// Name of the line that is moved.
const MARKER: &str = "marker: the world's τ";

/// The plot; its marker moves τ.
pub fn show(ui: &mut Ui, cx: &mut Cx, board: &mut Board) {
    let figure = figure(cx);
    let movable = figure.rules.iter().position(|rule| rule.label == MARKER);
    let session = cx.session;
    let numbers = || bayes_error_view::curve_csv(session).unwrap_or_default();
    let about = About {
        name: Some("Bayes error over τ"),
        height: 240.0,
        movable,
        numbers: Some(("Bayes error over τ", "bayes-error.csv", &numbers)),
        ..About::default()
    };
    if let Some(tau) = board.show(ui, cx, &figure, &about).moved {
        let [low, high] = cx.prefs.tau_range;
        cx.prefs.tau = (tau.clamp(low, high) * 1e3).round() / 1e3;
    }
}

fn figure(cx: &Cx) -> Figure {
    let (figures, log) = (&cx.session.bayes, cx.prefs.log_error);
    let curve = figures.curve_shown();
    let points = points_of(curve);
    let sampled = figures.must_be_sampled() == Some(true);
    let now = match sampled {
        true => sampled_error::readout(cx).map(|figure| 100.0 * figure.value),
        false => figures.readout.get().and_then(|readout| Some(100.0 * readout.outcome.as_ref().ok()?.figure.value)),
    };
    // Where nothing is sampled yet, those of the knobs: the largest error needs no draws.
    let law = curve.law.clone().unwrap_or_else(|| cx.prefs.settings().label_law());
    let most = 100.0 * law.largest_error();
    let target = match sampled {
        true => cx.session.tasks.get::<FindTau>().map(|view| 100.0 * view.task.target),
        false => figures.target.as_ref().map(|target| 100.0 * target.error),
    };
    let scale = |log: bool| if log { Scale::Log10 } else { Scale::Linear };
    let (x, y) = (Axis::linear("base temperature τ").in_unit("× std"), Axis::linear("Bayes error E").in_unit("%"));
    let (tau, range) = (cx.prefs.tau, heights(&points, now, most, log));
    let across = |at: f64, label: &str| Rule { way: Way::Horizontal, at, low: None, high: None, label: label.into() };
    let plain = law.smoothing == Smoothing::ONE;
    let mut rules = vec![across(most, if plain { "1 − max π: guessing" } else { "1 − 1/K: no E is larger" })];
    rules.extend(target.map(|target| across(target, "target")));
    rules.extend((tau > 0.0).then(|| Rule { way: Way::Vertical, ..across(tau, MARKER) }));
    let marked = now.filter(|_| tau > 0.0).map(|now| Point::new(tau, now));
    let marked = Series { style: Style::Points, colour: 1, points: marked.into_iter().collect(), ..Series::default() };
    Figure {
        id: "bayes-error".into(),
        title: "Bayes error over base temperature".into(),
        caption:
            "The least error that any classifier has on images of this world, at each base temperature τ, with its 95 % \
                  interval."
                .into(),
        provenance: of_world(cx.session, None, &of_law(&law)),
        x: Axis { scale: scale(cx.prefs.log_tau), range: Some(cx.prefs.tau_range), ..x },
        y: Axis { scale: scale(log), range: Some(range), ..y },
        series: [
            Series { name: "Bayes error E(τ)".into(), points, band: true, ..Series::default() },
            Series { name: "E at the marker".into(), ..marked },
        ]
        .into_iter()
        .chain(before(figures, &law))
        .collect(),
        rules,
        ..Figure::default()
    }
}

/// Until the curve of the knobs has a shape that of another law of labels stays beside it, and says whose it is.
fn before(figures: &BayesFigures, law: &LabelLaw) -> Option<Series> {
    let then = figures.curve_of_another_law()?;
    let name = format!("E(τ) of the knobs before: {}", of_before(then.law.as_ref()?, law)?);
    Some(Series { name, colour: 6, points: points_of(then), dashed: true, ..Series::default() })
}

/// In per cent, with their intervals.
fn points_of(curve: &Curve) -> Vec<Point> {
    let point = |(tau, estimate): (f64, &Estimate)| {
        let (low, high) = estimate.figure.interval;
        Point::new(tau, 100.0 * estimate.figure.value).within(100.0 * low, 100.0 * high)
    };
    curve.known().map(point).collect()
}

/// The ends of the axis of E, per cent. A logarithmic one reaches down to where the marker is.
fn heights(points: &[Point], now: Option<f64>, most: f64, log: bool) -> [f64; 2] {
    let top = most.max(1e-3);
    if !log {
        return [0.0, 1.08 * top];
    }
    let least = points.iter().map(|point| point.y).find(|y| *y > 0.0).unwrap_or(FLOOR).max(FLOOR);
    let bottom = now.filter(|now| *now > 0.0).map_or(least, |now| least.min(now / 10.0)).min(top / 10.0);
    [bottom.max(1e-290), 1.2 * top]
}
