//! Grade the graders: estimators of the Bayes error that see a labelled sample only (or soft
//! labels, or a classifier), to be held against worlds whose Bayes error is known. None of them
//! gets the truth, nor a number chosen with it.
//!
//! | file | estimator | after |
//! |---|---|---|
//! | `nearest` | 1-NN and k-NN errors, leave-one-out, and their bounds | Cover & Hart 1967; Devijver 1985 |
//! | `ghp` | bounds from the minimum spanning tree | Sekeh, Oselio & Hero 2020 |
//! | `kde` | Gaussian kernel densities, leave-one-out | Fukunaga & Hummels 1987 |
//! | `labels` | soft labels, noisy and corrupted ones, counts of drawn labels, a classifier's own belief | Ishida et al. 2023; Ushio et al. 2025 |
//! | `told` | none: what features permit, by neighbours that are told exact posteriors | |
//! | `estimate` | what each of them says | |
//! | `sample`, `geometry`, `distances` | distances, nearest neighbours and tree, computed once for all | |
//!
//! **Bounds** ([`Graded::lower`], [`Graded::upper`]) are those of the theory, which speaks of
//! infinitely many samples; at finite N and in many dimensions neighbours lie far away, so that a
//! lower bound may exceed the truth. Finding where they fail is the point of the exercise. The
//! spread of an estimate made from neighbours comes from repeated draws with other seeds: its terms
//! share samples, so no interval is computed from one draw.

use crate::error::Result;

mod distances;
mod estimate;
mod geometry;
mod ghp;
mod kde;
mod labels;
mod nearest;
mod sample;
#[cfg(test)]
mod tests;
mod told;

pub use estimate::{Chosen, Estimator, Graded};
pub use geometry::{Edge, Geometry, KEPT};
pub use ghp::{dichotomous, ghp};
pub use kde::kde;
pub use labels::{isotonic_soft, known_decision, label_counts, plug_in, sharpened_soft, soft_labels};
pub use nearest::{DEVIJVER_K, KS, devijver, knn, one_nn};
pub use sample::{MOST, Sample};
pub use told::told;

/// Steps of [`grade`]: the geometry, then the estimators, of which the two from densities are one step.
pub const STEPS: usize = 7;

/// Every estimator that needs a sample alone, on one shared geometry; and, where exact posteriors `p` [N, K] of the
/// sample are known, what its features permit ([`told`]). One that cannot be used on this sample leaves the
/// cause in its place; the others go on. `step` is called after each of [`STEPS`], and its error ends it.
///
/// # Errors
/// Those of [`Geometry::new`], without which there is nothing to estimate from, and of `step`.
pub fn grade(
    sample: Sample<'_>,
    p: Option<&[f64]>,
    step: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<(Estimator, Result<Graded, String>)>> {
    let geometry = Geometry::new(sample)?;
    step()?;
    let kept = geometry.kept;
    let ks: Vec<usize> = KS.into_iter().filter(|&k| k <= kept).collect();
    let text = |graded: Result<Graded>| graded.map_err(|cause| cause.to_string());
    let mut all = vec![(Estimator::OneNn, Ok(one_nn(&geometry)))];
    step()?;
    all.push((Estimator::Devijver, text(devijver(&geometry, DEVIJVER_K))));
    step()?;
    all.push((Estimator::Knn, text(knn(&geometry, &ks))));
    step()?;
    all.push((Estimator::Ghp, Ok(ghp(&geometry))));
    step()?;
    let densities = kde(&geometry).map_err(|cause| cause.to_string());
    all.push((Estimator::KdePlugIn, densities.clone().map(|[plug_in, _]| plug_in)));
    all.push((Estimator::KdeError, densities.map(|[_, error]| error)));
    step()?;
    all.extend(p.map(|p| (Estimator::Told, text(told(&geometry, p, &ks)))));
    step()?;
    Ok(all)
}
