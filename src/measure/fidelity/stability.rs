//! Posterior stability: how far a world's posterior moves under a tiny perturbation of the image,
//! mean KL(p(y|x) ‖ p(y|x + δ)) in nats (BLC table 3: 1.51e-9 on AFHQ; the paper does not give δ:
//! state it beside the number).

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::measure::images::named;
use crate::measure::softmax::argmax;
use crate::measure::{Bootstrap, Estimate, NATS};
use crate::parallel;
use crate::stats::log_sum_exp;

/// How far a row may be from a distribution, in nats of its sum.
const NORMALISATION: f64 = 1e-3;

/// Posteriors of images before and after the same perturbation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// Mean KL(p(y|x) ‖ p(y|x + δ)), nats; BCa bootstrap over images.
    pub kl: Estimate,
    /// Largest KL of one image, nats.
    pub largest: f64,
    /// Share of images whose most probable class changed; Wilson's interval.
    pub changed: Estimate,
    /// Images.
    pub n: usize,
}

/// Stability from log-posteriors [n, K] in f64, natural logarithm, of the images and of the
/// perturbed images. Logarithms, since a flow's posterior of an unlikely class is 1e-300 and less.
/// Rows are normalised; each class adds p (e^u − 1 − u) ≥ 0 with u = log q − log p, which sums to
/// the KL and cancels nothing: 1e-20 nats are resolved where the log-posteriors are. (Posteriors
/// stored as f32 are off by 6e-8 each, which makes a KL of about 1e-15.)
///
/// # Errors
/// When shapes do not match or there is no image; when a row is no distribution, or excludes after
/// the perturbation what was possible before (the KL is infinite), with the image.
pub fn posterior_stability(log_p: &[f64], log_q: &[f64], classes: usize, bootstrap: &Bootstrap) -> Result<Stability> {
    if classes == 0 || log_p.is_empty() || !log_p.len().is_multiple_of(classes) || log_p.len() != log_q.len() {
        let (p, q) = (log_p.len(), log_q.len());
        let cause = format!("{p} and {q} log-posteriors are no equal numbers of images of {classes} classes");
        return Err(Error::input(cause));
    }
    let rows = parallel::map(log_p.len() / classes, |i| {
        let of = i * classes..(i + 1) * classes;
        row(&log_p[of.clone()], &log_q[of])
    });
    let rows = named(0, rows)?;
    let kl: Vec<f64> = rows.iter().map(|r| r.0).collect();
    Ok(Stability {
        kl: bootstrap.mean(&kl, NATS),
        largest: kl.iter().copied().fold(0.0, f64::max),
        changed: Estimate::proportion(rows.iter().filter(|r| r.1).count(), rows.len()),
        n: rows.len(),
    })
}

/// KL of one image, and whether its decision changed.
fn row(log_p: &[f64], log_q: &[f64]) -> Result<(f64, bool), String> {
    let (of_p, of_q) = (normaliser(log_p)?, normaliser(log_q)?);
    let mut kl = 0.0;
    for (&p, &q) in log_p.iter().zip(log_q) {
        let (p, q) = (p - of_p, q - of_q);
        kl += if p == f64::NEG_INFINITY { q.exp() } else { p.exp() * excess(q - p) };
    }
    if !kl.is_finite() {
        return Err("a class that was possible is excluded after the perturbation: the KL is infinite".into());
    }
    Ok((kl, argmax(log_p) != argmax(log_q)))
}

/// log Σ exp of a row that is a distribution.
fn normaliser(row: &[f64]) -> Result<f64, String> {
    let sum = log_sum_exp(row.iter().copied());
    if sum.abs() < NORMALISATION {
        return Ok(sum);
    }
    Err(format!("its posterior adds up to e^{sum:.3e}, not to 1: are these log-posteriors?"))
}

/// e^u − 1 − u.
fn excess(u: f64) -> f64 {
    // The series is good to 1e-17 there; the difference loses digits.
    if u.abs() < 1e-3 { u * u * (0.5 + u * (1.0 / 6.0 + u * (1.0 / 24.0 + u / 120.0))) } else { u.exp_m1() - u }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    fn of(p: &[f64], q: &[f64], classes: usize) -> Result<Stability> {
        let log = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| v.ln()).collect() };
        posterior_stability(&log(p), &log(q), classes, &Bootstrap::new(Seed(1)))
    }

    #[test]
    fn two_images_by_hand() {
        let found = of(&[0.5, 0.5, 0.9, 0.1], &[0.25, 0.75, 0.9, 0.1], 2).unwrap();
        let kl = 0.5 * 2f64.ln() + 0.5 * (2.0f64 / 3.0).ln();
        assert!((found.kl.value - kl / 2.0).abs() < 1e-15 && (found.largest - kl).abs() < 1e-15, "{found:?}");
        assert!((found.changed.value - 0.5).abs() < 1e-15 && found.kl.interval.contains(found.kl.value));
    }

    #[test]
    fn tiny_shifts_are_resolved() {
        // KL of p and p + δ(1, −1) is δ²/2 (1/p + 1/(1 − p)) up to δ³.
        for delta in [1e-3, 1e-6, 1e-9] {
            let (p, log) = (0.3f64, |p: f64| [p.ln(), (-p).ln_1p()]);
            let q = p + delta;
            let found = posterior_stability(&log(p).repeat(5), &log(q).repeat(5), 2, &Bootstrap::new(Seed(1))).unwrap();
            let expected = delta * delta / 2.0 * (1.0 / p + 1.0 / (1.0 - p));
            let tolerance = (5.0 * delta).max(3e-7 * 1e-9 / delta);
            assert!((found.kl.value / expected - 1.0).abs() < tolerance, "{delta}: {} {expected}", found.kl.value);
        }
    }

    #[test]
    fn the_excess_is_smooth_where_its_forms_meet() {
        for u in [1e-3f64, -1e-3] {
            let (series, plain) = (excess(u * (1.0 - 1e-12)), excess(u * (1.0 + 1e-12)));
            assert!((series / plain - 1.0).abs() < 1e-9, "{series} {plain}");
        }
        assert_eq!(excess(0.0), 0.0);
    }

    #[test]
    fn excluded_classes_and_rows_that_are_none() {
        let found = of(&[1.0, 0.0], &[1.0, 0.0], 2).unwrap();
        assert_eq!((found.kl.value, found.changed.value), (0.0, 0.0));
        // What was excluded may become possible: KL is log 1/0.75.
        assert!((of(&[1.0, 0.0], &[0.75, 0.25], 2).unwrap().kl.value - (4.0f64 / 3.0).ln()).abs() < 1e-15);
        let error = of(&[0.5, 0.5, 0.5, 0.5], &[0.5, 0.5, 1.0, 0.0], 2).unwrap_err().to_string();
        assert!(error.contains("image 1") && error.contains("infinite"), "{error}");
        for bad in [[0.5, 0.6], [f64::NAN, 0.5], [0.0, 0.0]] {
            assert!(of(&bad, &[0.5, 0.5], 2).is_err());
        }
        assert!(of(&[0.5, 0.5], &[0.5], 2).is_err() && of(&[], &[], 2).is_err());
    }
}
