//! Antipodal pairs on orthogonal axes, ±a·e_k, of equal weights: an integral in one dimension.
//!
//! Class +e_1 is right where z_1 > |z_k| for all other axes k, so that each class errs with
//! Q(a) + ∫_0^∞ φ(t − a)(1 − (2Φ(t) − 1)^(r−1)) dt, r = K/2.

use super::classes::{Scene, dot};
use super::normal::log_tail;
use super::quadrature::{Scaled, log_any, log_normal, panels};

/// Relative differences that count as none.
const SAME: f64 = 1e-11;

/// a and the relative spread of what should be alike; `None` where the means are something else.
fn radius(scene: &Scene) -> Option<(f64, f64)> {
    let (count, rank) = (scene.count(), scene.rank);
    if rank < 2 || count != 2 * rank {
        return None;
    }
    let weight = scene.weights[0];
    let equal = scene.weights.iter().all(|w| (w / weight - 1.0).abs() < SAME);
    let squared = dot(scene.mean(0), scene.mean(0));
    let mut spread: f64 = 0.0;
    for g in 0..count {
        let mut antipodes = 0;
        for h in 0..count {
            let cosine = dot(scene.mean(g), scene.mean(h)) / squared;
            let nearest = if g == h { 1.0 } else { cosine.round() };
            spread = spread.max((cosine - nearest).abs());
            antipodes += usize::from(nearest == -1.0);
        }
        if antipodes != 1 {
            return None;
        }
    }
    (equal && spread < SAME).then(|| (squared.sqrt(), spread))
}

/// E, hidden part excluded.
pub(super) fn bayes_error(scene: &Scene) -> Option<Scaled> {
    let (a, spread) = radius(scene)?;
    let log_total = scene.weights.iter().sum::<f64>().ln();
    let others = (scene.rank - 1) as f64;
    // 1 − (1 − 2Q(t))^(r−1).
    let beaten = |t: f64| log_any(std::iter::once((log_tail(t) + std::f64::consts::LN_2, others)));
    let mut logs = panels(0.0, a + 12.0, 0.25 / (1.0 + 0.1 * a), |t| log_total + log_normal(t, a) + beaten(t));
    logs.push(log_total + log_tail(a));
    Some(Scaled::of_logs(&logs, 1e-14 + (spread + 4e-16) * (1.0 + a * a)))
}
