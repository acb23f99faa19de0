//! Classes on a line (rank 1, as any two classes): the envelope of K parabolas, in closed form.

use super::classes::Scene;
use super::normal::log_density;
use super::quadrature::{Scaled, gauss_legendre, log_normal};

/// ln E of every class's errors depends on b²/2, whose rounding is what is lost.
fn precision(largest_boundary: f64) -> f64 {
    4e-16 * (8.0 + largest_boundary * largest_boundary)
}

/// The classes that win somewhere, from left to right.
fn envelope(scene: &Scene) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scene.count()).collect();
    order.sort_by(|&a, &b| position(scene, a).total_cmp(&position(scene, b)));
    // Where two neighbours of the envelope meet.
    let crossing = |a: usize, b: usize| position(scene, a) + scene.boundary(a, b);
    let mut hull: Vec<usize> = Vec::new();
    for class in order {
        while let [.., before, last] = hull[..] {
            if crossing(last, class) > crossing(before, last) {
                break;
            }
            hull.pop();
        }
        // Crossing left of everything never happens for two lines: of two, both stay.
        hull.push(class);
    }
    hull
}

fn position(scene: &Scene, g: usize) -> f64 {
    scene.mean(g).first().copied().unwrap_or(0.0)
}

/// E, hidden part excluded.
pub(super) fn bayes_error(scene: &Scene) -> Scaled {
    let hull = envelope(scene);
    let beaten = (0..scene.count()).filter(|g| !hull.contains(g));
    let mut terms: Vec<(f64, f64)> = beaten.map(|g| (scene.log_weights[g], 0.0)).collect();
    for pair in hull.windows(2) {
        let (g, h) = (pair[0], pair[1]);
        terms.extend([(g, h), (h, g)].map(|(g, h)| (scene.log_pair(g, h), scene.boundary(g, h))));
    }
    Scaled::of_tails(&terms, precision)
}

/// dE/dlog τ = Σ d w_g φ(b_gh) over neighbours of the envelope.
pub(super) fn derivative(scene: &Scene) -> Scaled {
    let hull = envelope(scene);
    let term = |pair: &[usize]| {
        let (g, h) = (pair[0], pair[1]);
        let b = scene.boundary(g, h);
        (scene.distance(g, h).ln() + scene.log_weights[g] + log_density(b), b.abs())
    };
    let terms: Vec<(f64, f64)> = hull.windows(2).map(term).collect();
    Scaled::of_tails(&terms, precision)
}

/// H(Y|X) = Σ_g w_g E_g[−log p_g], nats, hidden part excluded, by composite Gauss-Legendre
/// quadrature with panels a good deal shorter than the posterior's transitions; two rules tell the
/// error. `None` where that would take too many panels.
pub(super) fn entropy(scene: &Scene) -> Option<Scaled> {
    const MOST_PANELS: f64 = 2e5;
    let positions: Vec<f64> = (0..scene.count()).map(|g| position(scene, g)).collect();
    let low = positions.iter().fold(f64::INFINITY, |a, &b| a.min(b)) - 40.0;
    let high = positions.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)) + 40.0;
    let furthest = high - low - 80.0;
    let panels = ((high - low) * furthest.max(1.0)).ceil();
    if panels * scene.count() as f64 > MOST_PANELS {
        return None;
    }
    let width = (high - low) / panels;
    let log_at = |z: f64| -> f64 {
        let logs: Vec<f64> = (0..scene.count()).map(|g| scene.log_weights[g] + log_normal(z, positions[g])).collect();
        log_pointwise_entropy(&logs)
    };
    let rule = |n: usize| -> Vec<f64> {
        let (nodes, weights) = gauss_legendre(n);
        let at = |panel: f64, i: usize| (width * weights[i]).ln() + log_at(low + width * (panel + nodes[i]));
        (0..panels as usize)
            .flat_map(|panel| (0..n).map(move |i| (panel, i)))
            .map(|(panel, i)| at(panel as f64, i))
            .collect()
    };
    let (coarse, fine) = (Scaled::of_logs(&rule(8), 0.0), Scaled::of_logs(&rule(12), 0.0));
    let value = coarse.value * (coarse.log_scale - fine.log_scale).exp();
    Some(Scaled { half_width: (value - fine.value).abs() + 1e-14 * fine.value, ..fine })
}

/// ln Σ_g f_g·(−ln p_g) from the logarithms of all w_g f_g: positive terms, no cancellation.
pub(super) fn log_pointwise_entropy(logs: &[f64]) -> f64 {
    let Some((best, &largest)) = logs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else {
        return f64::NEG_INFINITY;
    };
    let others = || logs.iter().enumerate().filter(|(i, _)| *i != best).map(|(_, log)| log - largest);
    // −ln p of the likeliest is ln(1 + the others); every other's is that and its distance.
    let surprise = others().map(f64::exp).sum::<f64>().ln_1p();
    let sum: f64 = others().map(|log| log.exp() * (surprise - log)).sum();
    largest + (surprise + sum).ln()
}
