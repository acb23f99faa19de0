//! Figures of labels as τ → 0.

use std::f64::consts::LN_2;

use crate::bayes::classes::{GaussianClasses, Merge};
use crate::bayes::compute;
use crate::bayes::estimate::{Estimate, Figure};
use crate::bayes::information::{self as entropies, Information};
use crate::error::Result;
use crate::units::{Smoothing, Tau};

/// The limit τ → 0: every class is a point, and only coincident classes, and labels, are taken for each other.
///
/// # Errors
/// When the rounding of a far mean hides the difference of two others.
pub fn limit_at_zero(classes: &GaussianClasses) -> Result<Estimate> {
    classes.check_limit()?;
    Ok(limit(classes))
}

/// The same, classes whose difference rounding hides being one.
pub(super) fn limit(classes: &GaussianClasses) -> Estimate {
    let clean = compute::limit_at_zero(classes);
    if classes.labels_are_classes() {
        return clean;
    }
    let doubt = |(weight, p): &(f64, Vec<f64>)| weight * (1.0 - p.iter().copied().fold(0.0, f64::max));
    let error: f64 = at_zero(classes).iter().map(doubt).sum();
    let smoothed = if classes.smoothing() == Smoothing::ONE { "" } else { "; T ≠ 1" };
    let noisy = if classes.label_noise().is_some() { "; label noise" } else { "" };
    let why = format!("{}{smoothed}{noisy}", clean.why);
    Estimate { figure: Figure::new(error, 0.0, error), log_value: error.ln(), bounds: (error, error), why, ..clean }
}

/// The limit τ → 0 of the entropies.
///
/// # Errors
/// As [`limit_at_zero`].
pub fn information_at_zero(classes: &GaussianClasses) -> Result<Information> {
    classes.check_limit()?;
    let clean = entropies::information_at_zero(classes);
    if classes.labels_are_classes() {
        return Ok(clean);
    }
    let groups = at_zero(classes);
    let law = (0..classes.classes()).map(|j| groups.iter().map(|(weight, p)| weight * p[j]).sum::<f64>());
    let label = entropies::entropy_of(&law.collect::<Vec<f64>>());
    let aleatoric: f64 = groups.iter().map(|(weight, p)| weight * entropies::entropy_of(p)).sum();
    let mutual = (label - aleatoric).max(0.0);
    Ok(Information {
        aleatoric_nats: Figure::new(aleatoric, 0.0, label),
        label_entropy_nats: label,
        mutual_information_bits: Figure::new(mutual / LN_2, 0.0, label / LN_2),
        normalised: Figure::new(if label > 0.0 { mutual / label } else { 0.0 }, 0.0, 1.0),
        ..clean
    })
}

/// Shares and p~ of images that tell all but which of coincident classes it is.
pub(in crate::bayes) fn at_zero(classes: &GaussianClasses) -> Vec<(f64, Vec<f64>)> {
    let priors = classes.priors();
    let part = |group: &Vec<usize>| {
        let weight: f64 = group.iter().map(|&k| priors[k]).sum();
        let most = group.iter().map(|&k| priors[k]).fold(0.0, f64::max);
        // Over the largest one: a small T takes the others to 0, not all of them.
        let smoothed = |k: usize| (priors[k] / most).powf(1.0 / classes.smoothing().get());
        let all: f64 = group.iter().map(|&k| smoothed(k)).sum();
        let mut p = vec![0.0; priors.len()];
        group.iter().for_each(|&k| p[k] = smoothed(k) / all);
        (weight, label_of(classes, &p))
    };
    classes.scene(Tau::ONE, Merge::Sum).members.iter().map(part).collect()
}

/// The law of the label of a class that is drawn by p.
pub(super) fn label_of(classes: &GaussianClasses, p: &[f64]) -> Vec<f64> {
    classes.label_noise().map_or_else(|| p.to_vec(), |noise| noise.labels(p))
}
