//! Classes in a plane (rank 2), any number, any weights: each first-violation term is a convex
//! polygon in (t, w), t towards the rival, w across, of which the inner integral is a difference of
//! Φ and the outer one is done by Gauss-Legendre panels split at the polygon's corners.

use std::sync::OnceLock;

use super::classes::Scene;
use super::line::log_pointwise_entropy;
use super::normal::{cdf, log_density, tail};
use super::quadrature::{LOG_NEGLIGIBLE, Scaled, gauss_legendre, log_normal};
use super::sov::log_union;
use crate::parallel;

/// Beyond ±this, what is left of a normal variable is below a double's rounding.
const EDGE: f64 = 9.5;
/// Nodes in a panel.
const NODES: usize = 16;
/// Longest panel, in units of the integrand's scale.
const PANEL: f64 = 1.5;

/// A half-plane a·t + b·w ≤ c.
struct Half {
    a: f64,
    b: f64,
    c: f64,
}

/// Unit vectors from class `g` to the others.
fn directions(scene: &Scene, g: usize) -> Vec<[f64; 2]> {
    let from = scene.mean(g);
    let unit = |h: usize| {
        let (to, d) = (scene.mean(h), scene.distance(g, h));
        [(to[0] - from[0]) / d, (to[1] - from[1]) / d]
    };
    (0..scene.count()).map(unit).collect()
}

/// In the coordinates (t, w), t along `along`: the constraint that the rival in direction `other`
/// does not win, which it does from `bound` on.
fn half(along: [f64; 2], other: [f64; 2], bound: f64) -> Half {
    let a = along[0] * other[0] + along[1] * other[1];
    Half { a, b: along[0] * other[1] - along[1] * other[0], c: bound }
}

/// The part of a convex polygon inside a half-plane (Sutherland and Hodgman).
fn clip(polygon: &[(f64, f64)], half: &Half, out: &mut Vec<(f64, f64)>) {
    out.clear();
    let side = |(t, w): (f64, f64)| half.a * t + half.b * w - half.c;
    for (i, &corner) in polygon.iter().enumerate() {
        let before = polygon[(i + polygon.len() - 1) % polygon.len()];
        let (s, s_before) = (side(corner), side(before));
        if (s > 0.0) != (s_before > 0.0) {
            let part = s_before / (s_before - s);
            out.push((before.0 + part * (corner.0 - before.0), before.1 + part * (corner.1 - before.1)));
        }
        if s <= 0.0 {
            out.push(corner);
        }
    }
}

/// w of the polygon's lower and upper edge as lines over [from, to], a stretch without corners.
fn edges(polygon: &[(f64, f64)], from: f64, to: f64) -> Option<[(f64, f64); 2]> {
    let middle = 0.5 * (from + to);
    // (w in the middle, w at t = 0, slope).
    let mut found: Option<[(f64, f64, f64); 2]> = None;
    for (i, &end) in polygon.iter().enumerate() {
        let start = polygon[(i + polygon.len() - 1) % polygon.len()];
        let (left, right) = if start.0 < end.0 { (start, end) } else { (end, start) };
        if left.0 <= middle && middle < right.0 {
            let slope = (right.1 - left.1) / (right.0 - left.0);
            let at = left.1 + slope * (middle - left.0);
            let line = (at, at - slope * middle, slope);
            found = Some(match found {
                None => [line, line],
                Some([low, high]) => [if at < low.0 { line } else { low }, if at > high.0 { line } else { high }],
            });
        }
    }
    found.map(|[low, high]| [(low.1, low.2), (high.1, high.2)])
}

/// ∫ e^(−(t² − b²)/2) [Φ(high) − Φ(low)] dt over the polygon.
fn integrate(polygon: &[(f64, f64)], b: f64) -> f64 {
    static RULE: OnceLock<(Vec<f64>, Vec<f64>)> = OnceLock::new();
    let (nodes, weights) = RULE.get_or_init(|| gauss_legendre(NODES));
    let mut corners: Vec<f64> = polygon.iter().map(|corner| corner.0).collect();
    corners.sort_by(f64::total_cmp);
    let mut sum = 0.0;
    for stretch in corners.windows(2) {
        let (from, to) = (stretch[0], stretch[1]);
        let Some([low, high]) = (to - from > 1e-15 * (1.0 + from.abs())).then(|| edges(polygon, from, to)).flatten()
        else {
            continue;
        };
        let steepest = b.max(1.0).max(low.1.abs()).max(high.1.abs());
        let panels = ((to - from) * steepest / PANEL).ceil().max(1.0);
        let width = (to - from) / panels;
        for panel in 0..panels as usize {
            for (node, weight) in nodes.iter().zip(weights) {
                let t = from + width * (panel as f64 + node);
                let inner = between(low.0 + low.1 * t, high.0 + high.1 * t);
                sum += width * weight * (-0.5 * (t - b) * (t + b)).exp() * inner;
            }
        }
    }
    sum
}

/// Φ(high) − Φ(low) of low ≤ high, without cancellation in the upper tail.
fn between(low: f64, high: f64) -> f64 {
    // Of neighbouring numbers rounding may turn the order.
    (if low > 0.0 { tail(low) - tail(high) } else { cdf(high) - cdf(low) }).max(0.0)
}

/// E, hidden part excluded.
pub(super) fn bayes_error(scene: &Scene) -> Scaled {
    let floor = log_union(scene) + LOG_NEGLIGIBLE;
    let of_class = |g: usize| {
        let mut rivals: Vec<usize> = (0..scene.count()).filter(|&h| h != g).collect();
        rivals.sort_by(|&a, &b| scene.boundary(g, a).total_cmp(&scene.boundary(g, b)));
        let directions = directions(scene, g);
        let mut scratch = Vec::new();
        let mut logs = Vec::new();
        for (q, &h) in rivals.iter().enumerate() {
            if scene.log_pair(g, h) < floor {
                continue;
            }
            let b = scene.boundary(g, h);
            let start = b.max(-EDGE);
            let end = (start.max(0.0).powi(2) + EDGE * EDGE).sqrt();
            let mut polygon = vec![(start, -EDGE), (end, -EDGE), (end, EDGE), (start, EDGE)];
            for &i in &rivals[..q] {
                clip(&polygon, &half(directions[h], directions[i], scene.boundary(g, i)), &mut scratch);
                std::mem::swap(&mut polygon, &mut scratch);
                if polygon.is_empty() {
                    break;
                }
            }
            let (scale, log) = if b > 0.0 { (b, log_density(b)) } else { (0.0, log_density(0.0)) };
            logs.push(scene.log_weights[g] + log + integrate(&polygon, scale).ln());
        }
        logs
    };
    let logs = parallel::flat_map(scene.count(), of_class);
    let largest = (0..scene.count()).flat_map(|g| (0..g).map(move |h| (g, h))).map(|(g, h)| scene.distance(g, h));
    let nearest = largest.fold(f64::INFINITY, f64::min);
    // The rounding of b²/2 of the nearest pair, which decides how small E is.
    Scaled::of_logs(&logs, 3e-14 + 4e-16 * nearest * nearest)
}

/// dE/dlog τ: on the face between g and h the others leave one interval.
pub(super) fn derivative(scene: &Scene) -> Scaled {
    let mut terms = Vec::new();
    for g in 0..scene.count() {
        let directions = directions(scene, g);
        for h in g + 1..scene.count() {
            let b = scene.boundary(g, h);
            let (mut low, mut high) = (-40.0f64, 40.0f64);
            for i in (0..scene.count()).filter(|&i| i != g && i != h) {
                let half = half(directions[h], directions[i], scene.boundary(g, i));
                let bound = (half.c - half.a * b) / half.b;
                match half.b {
                    s if s.abs() < 1e-13 && half.a * b > half.c => high = -40.0,
                    s if s.abs() < 1e-13 => {}
                    s if s > 0.0 => high = high.min(bound),
                    _ => low = low.max(bound),
                }
            }
            if low < high {
                let log = scene.log_weights[g] + scene.distance(g, h).ln() + log_density(b) + between(low, high).ln();
                terms.push((log, b.abs()));
            }
        }
    }
    // The rounding of b²/2 of the faces that count.
    Scaled::of_tails(&terms, |furthest| 1e-13 + 4e-16 * furthest * furthest)
}

/// H(Y|X), nats, hidden part excluded, by the trapezoidal rule in the plane, two grids telling the
/// error. `None` where the grid would be too large: classes many standard deviations apart.
pub(super) fn entropy(scene: &Scene) -> Option<Scaled> {
    const MOST_EVALUATIONS: f64 = 3e7;
    const REACH: f64 = 10.0;
    let along = |axis: usize| {
        let coordinates = (0..scene.count()).map(move |g| scene.mean(g)[axis]);
        let low = coordinates.clone().fold(f64::INFINITY, f64::min) - REACH;
        (low, coordinates.fold(f64::NEG_INFINITY, f64::max) + REACH)
    };
    let ((left, right), (bottom, top)) = (along(0), along(1));
    let widest = (right - left).max(top - bottom) - 2.0 * REACH;
    let step = (0.8 / widest.max(1.0)).min(0.2);
    let (columns, rows) = (((right - left) / step).ceil(), ((top - bottom) / step).ceil());
    if 2.0 * columns * rows * scene.count() as f64 > MOST_EVALUATIONS {
        return None;
    }
    let at = |x: f64, y: f64| {
        let logs: Vec<f64> = (0..scene.count())
            .map(|g| scene.log_weights[g] + log_normal(x, scene.mean(g)[0]) + log_normal(y, scene.mean(g)[1]))
            .collect();
        log_pointwise_entropy(&logs)
    };
    let grid = |shift: f64| -> Scaled {
        let row = |row: usize| -> Vec<f64> {
            let y = bottom + step * (row as f64 + shift);
            (0..columns as usize).map(|column| at(left + step * (column as f64 + shift), y)).collect()
        };
        Scaled::of_logs(&parallel::flat_map(rows as usize, row), 0.0)
    };
    let (one, two) = (grid(0.0), grid(0.5));
    let second = two.value * (two.log_scale - one.log_scale).exp();
    let value = 0.5 * step * step * (one.value + second);
    Some(Scaled {
        log_scale: one.log_scale,
        value,
        half_width: step * step * (one.value - second).abs() + 1e-12 * value,
    })
}
