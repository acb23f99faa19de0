//! First-violation separation of variables: the Bayes error as positive terms of class g, rival h,
//!
//! E = Σ_g w_g Σ_h P(h is the first rival, in the order of b_gh, that beats g),
//!
//! of the same *relative* accuracy at 0.9 and at 1e-40 (theory §3), and its derivative in log τ,
//!
//! dE/dlog τ = Σ_{g<h} d_gh w_g φ(b_gh) P(g and h win together | on their face) ≥ 0.

use super::classes::Scene;
use super::rqmc::Term;
use super::wedge::{Lead, Wedge};
use crate::parallel;

/// Terms that together hold at most this part of the union bound are left out of the sum.
pub(super) const LEFT_OUT: f64 = 1e-12;

/// The terms of E.
pub(super) fn error_terms(scene: &Scene) -> Vec<Term> {
    let floor = log_union(scene) + (LEFT_OUT / (scene.count() * scene.count()) as f64).ln();
    parallel::flat_map(scene.count(), |g| {
        let from = scene.directions(g);
        let mut rivals: Vec<usize> = (0..scene.count()).filter(|&h| h != g).collect();
        rivals.sort_by(|&a, &b| scene.boundary(g, a).total_cmp(&scene.boundary(g, b)));
        (0..rivals.len())
            .filter(|&q| scene.log_pair(g, rivals[q]) > floor)
            .filter_map(|q| {
                let h = rivals[q];
                let wedge = Wedge::new(scene, &from, h, Lead::Beyond(scene.boundary(g, h)), &rivals[..q])?;
                let log_mass = scene.log_weights[g] + wedge.log_lead();
                // Wedges of as many constraints beside each other, and at the same place whatever τ is.
                Some(Term { log_mass, place: (q * scene.count() + g) as u64, wedge })
            })
            .collect()
    })
}

/// The terms of dE/dlog τ.
pub(super) fn derivative_terms(scene: &Scene) -> Vec<Term> {
    parallel::flat_map(scene.count(), |g| {
        let from = scene.directions(g);
        (g + 1..scene.count())
            .filter_map(|h| {
                let rivals: Vec<usize> = (0..scene.count()).filter(|&i| i != g && i != h).collect();
                let wedge = Wedge::new(scene, &from, h, Lead::At(scene.boundary(g, h)), &rivals)?;
                let log_mass = scene.log_weights[g] + wedge.log_lead() + scene.distance(g, h).ln();
                Some(Term { log_mass, place: (g * scene.count() + h) as u64, wedge })
            })
            .collect()
    })
}

/// ln U, U = Σ_g Σ_{h≠g} w_g Q(b_gh).
pub(super) fn log_union(scene: &Scene) -> f64 {
    let pairs = (0..scene.count()).flat_map(|g| (0..scene.count()).filter(move |&h| h != g).map(move |h| (g, h)));
    let logs: Vec<f64> = pairs.map(|(g, h)| scene.log_pair(g, h)).collect();
    crate::stats::log_sum_exp(logs.iter().copied())
}
