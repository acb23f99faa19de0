//! K classes all at one distance, with any weights: a one-dimensional integral whatever K is.
//!
//! With a = d/√2 the classes are those at a·e_k in R^K, whose scores a·z_k + ln w_k are
//! independent: class k is right where z_k + (ln w_k)/a exceeds all others, E = Σ_k w_k ∫ φ(t −
//! a)(1 − Π_{j≠k} Φ(t + (ln w_k − ln w_j)/a)) dt.

use super::classes::Scene;
use super::normal::log_tail;
use super::quadrature::{Scaled, line_integral, log_any, log_normal};

/// Largest relative difference of distances that count as one.
const ALIKE: f64 = 1e-11;

/// Weights that occur, with how often.
struct CommonDistance {
    distance: f64,
    /// Relative differences of distances.
    spread: f64,
    /// (ln w, count).
    groups: Vec<(f64, f64)>,
}

fn common_distance(scene: &Scene) -> Option<CommonDistance> {
    let pairs = (0..scene.count()).flat_map(|g| (0..g).map(move |h| (g, h)));
    let (low, high) = pairs.fold((f64::INFINITY, 0.0f64), |(low, high), (g, h)| {
        (low.min(scene.distance(g, h)), high.max(scene.distance(g, h)))
    });
    if scene.count() < 3 || high - low > ALIKE * high {
        return None;
    }
    let mut sorted = scene.log_weights.clone();
    sorted.sort_by(f64::total_cmp);
    let mut groups: Vec<(f64, f64)> = Vec::new();
    for log in sorted {
        match groups.last_mut() {
            Some((last, count)) if log - *last < 1e-14 => *count += 1.0,
            _ => groups.push((log, 1.0)),
        }
    }
    Some(CommonDistance { distance: 0.5 * (low + high), spread: (high - low) / high, groups })
}

impl CommonDistance {
    /// The relative error that unequal distances make, beside the quadrature's.
    fn widen(&self, mut sum: Scaled) -> Scaled {
        sum.half_width += sum.value * (self.spread + 4e-16) * (1.0 + self.distance * self.distance);
        sum
    }

    /// Groups without one member of group `own`, nor of `other`.
    fn others(&self, own: usize, other: Option<usize>) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.groups.iter().enumerate().map(move |(i, &(log, count))| {
            let gone = f64::from(u8::from(i == own)) + f64::from(u8::from(other == Some(i)));
            (log, count - gone)
        })
    }
}

/// E, hidden part excluded; `None` where distances differ.
pub(super) fn bayes_error(scene: &Scene) -> Option<Scaled> {
    let common = common_distance(scene)?;
    let a = common.distance / std::f64::consts::SQRT_2;
    let parts = common.groups.iter().enumerate().map(|(own, &(log_weight, count))| {
        let wins = |t: f64| {
            let losses = common.others(own, None).filter(|(_, n)| *n > 0.0);
            log_any(losses.map(|(log, n)| (log_tail(t + (log_weight - log) / a), n)))
        };
        line_integral(0.5 * a, 1.0 / 32.0, 12.0 + 0.5 * a, |t| (log_weight + count.ln()) + log_normal(t, a) + wins(t))
    });
    Some(common.widen(Scaled::total(&parts.collect::<Vec<_>>())))
}

/// dE/dlog τ; `None` where distances differ. On face (k, j) the mean of z_k, z_j is N(a/2, ½).
pub(super) fn derivative(scene: &Scene) -> Option<Scaled> {
    let common = common_distance(scene)?;
    let (d, a) = (common.distance, common.distance / std::f64::consts::SQRT_2);
    let mut parts = Vec::new();
    for (own, &(first, n)) in common.groups.iter().enumerate() {
        for (other, &(second, m)) in common.groups.iter().enumerate().skip(own) {
            let pairs = if own == other { 0.5 * n * (n - 1.0) } else { n * m };
            if pairs == 0.0 {
                continue;
            }
            let boundary = 0.5 * d + (first - second) / d;
            let log_mass = pairs.ln() + d.ln() + first + super::normal::log_density(boundary);
            let rest = |c: f64| -> f64 {
                let middle = c + 0.5 * (first + second) / a;
                let rest = common.others(own, Some(other)).filter(|(_, n)| *n > 0.0);
                rest.map(|(log, n)| n * log_tail(log / a - middle)).sum()
            };
            let root2 = std::f64::consts::SQRT_2;
            parts.push(line_integral(0.5 * a, 1.0 / 32.0, 12.0, |c| {
                log_mass + log_normal(root2 * c, root2 * 0.5 * a) + root2.ln() + rest(c)
            }));
        }
    }
    Some(common.widen(Scaled::total(&parts)))
}
