//! At most six classes: the first-violation terms have four dimensions at most, and tensor
//! Gauss-Legendre rules of growing order tell their own error (theory §3).

use super::quadrature::{Scaled, gauss_legendre};
use super::rqmc::Term;
use super::simd::vectorise;
use super::sov::LEFT_OUT;
use super::wedge::Tensor;
use crate::parallel;

/// Orders tried one after the other.
const ORDERS: [usize; 6] = [6, 10, 16, 24, 32, 40];
/// Relative agreement that ends the search where it costs little.
const FINE: f64 = 1e-11;
/// Points that cost little, all terms together.
const CHEAP: u64 = 3_000_000;

/// The sum of the terms, the order reached and the points spent.
pub(super) fn integrate(terms: &[Term], tolerance: f64) -> (Scaled, usize, u64) {
    let log_scale = terms.iter().map(|t| t.log_mass).fold(f64::NEG_INFINITY, f64::max);
    let mut spent = 0;
    let mut before: Option<f64> = None;
    let mut best = (Scaled { log_scale, value: 0.0, half_width: f64::INFINITY }, 0);
    for order in ORDERS {
        let (nodes, weights) = smoothed(order);
        let points: u64 = terms.iter().map(|t| (order as u64).pow(t.wedge.dims() as u32)).sum();
        if before.is_some() && best.0.half_width <= tolerance * best.0.value && points > CHEAP {
            break;
        }
        let part = |i: usize| {
            let term = &terms[i];
            let tensor = Tensor { wedge: &term.wedge, nodes: &nodes, weights: &weights };
            let inside = if term.wedge.certain() { 1.0 } else { vectorise(tensor) };
            (term.log_mass - log_scale).exp() * inside
        };
        let parts = parallel::map(terms.len(), part);
        let value: f64 = parts.iter().sum();
        spent += points;
        if let Some(before) = before {
            let mass = |t: &Term| (t.log_mass - log_scale).exp();
            let left_out: f64 = terms.iter().map(|t| mass(t) * (t.wedge.dropped + LEFT_OUT)).sum();
            let half_width = (value - before).abs() + 1e-13 * value + left_out;
            best = (Scaled { log_scale, value, half_width }, order);
            if half_width <= FINE.min(tolerance) * value {
                break;
            }
        }
        before = Some(value);
    }
    (best.0, best.1, spent)
}

/// A Gauss-Legendre rule in s with u = s⁵(126 − 420s + 540s² − 315s³ + 70s⁴): at the ends, where
/// variables run to infinity, the integrand behaves as a broken power of u, and the fifth power of
/// that is smooth enough (40 nodes: 1e-6 without, 1e-12 with).
fn smoothed(order: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut nodes, mut weights) = gauss_legendre(order);
    for (node, weight) in nodes.iter_mut().zip(&mut weights) {
        let s = *node;
        *weight *= 630.0 * (s * (1.0 - s)).powi(4);
        *node = s.powi(5) * (126.0 - s * (420.0 - s * (540.0 - s * (315.0 - 70.0 * s))));
    }
    (nodes, weights)
}
