//! The entropy side: aleatoric uncertainty A = E[H(p(y|x))], mutual information I(X;Y) = H(Y) − A,
//! and which combinations of published figures are possible at all (theory §3).

use std::f64::consts::LN_2;

use serde::{Deserialize, Serialize};

use super::classes::{GaussianClasses, Merge, Scene};
use super::compute::{Spec, usable};
use super::estimate::Figure;
use super::middle::{Entropy, MiddleSum};
use super::quadrature::Scaled;
use super::refine::{Refined, refine};
use super::{line, plane, product};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::provenance::Badge;
use crate::units::Tau;

/// A and I of a world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Information {
    /// Aleatoric uncertainty A = H(Y|X), nats.
    pub aleatoric_nats: Figure,
    /// H(Y), nats.
    pub label_entropy_nats: f64,
    /// I(X;Y) = H(Y) − A, bits.
    pub mutual_information_bits: Figure,
    /// I(X;Y)/H(Y); 0 of a world with one class.
    pub normalised: Figure,
    /// What the intervals mean.
    pub badge: Badge,
    /// Points spent.
    pub samples: u64,
}

/// Aleatoric uncertainty and mutual information at τ: by quadrature on a line, in a plane and for
/// products of such problems, else by pair importance sampling to the tolerance of `spec`.
///
/// Every refinement is reported, and before the first one, that A lies between 0 and H(Y).
///
/// # Errors
/// When τ or the tolerance cannot be used, or the caller stops.
pub fn information(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Information>,
) -> Result<Information> {
    spec.check()?;
    let scene = classes.scene(usable(classes, tau)?, Merge::Sum);
    if let Some(sum) = exactly(&scene) {
        return Ok(assemble(classes, &scene, sum, Badge::Bounded, 0));
    }
    let mut last = unknown(scene.hidden, entropy_of(classes.priors()));
    let mut sum = MiddleSum::new(&scene, Entropy, spec.seed, &mut || events.report(last))?;
    refine(&mut sum, spec.tolerance, |sum, now, _| {
        // Between the parts of a round sums are not whole: what was known before it stays.
        if sum.whole() {
            last = assemble(classes, &scene, now, Badge::Estimated, sum.samples());
        }
        events.report(last)?;
        Ok(last)
    })
}

/// What is known before anything is computed: that A lies between what coincident classes hide and H(Y), nats.
pub(super) fn unknown(hidden: f64, label: f64) -> Information {
    let half = 0.5 * (label - hidden).max(0.0);
    figures(label, hidden + half, half, Badge::Bounded, 0)
}

/// The limit τ → 0: all that stays unknown is which of coincident classes it is.
pub fn information_at_zero(classes: &GaussianClasses) -> Information {
    assemble(classes, &classes.scene(Tau::ONE, Merge::Sum), Scaled::ZERO, Badge::Exact, 0)
}

fn assemble(classes: &GaussianClasses, scene: &Scene, sum: Scaled, badge: Badge, samples: u64) -> Information {
    let scale = sum.log_scale.exp();
    let (aleatoric, half_width) = (scene.hidden + scale * sum.value, scale * sum.half_width);
    figures(entropy_of(classes.priors()), aleatoric, half_width, badge, samples)
}

/// A with its half width as all figures, H(Y) known; nats.
fn figures(label: f64, aleatoric: f64, half_width: f64, badge: Badge, samples: u64) -> Information {
    let mutual = (label - aleatoric).max(0.0);
    let share = if label > 0.0 { 1.0 / label } else { 0.0 };
    Information {
        aleatoric_nats: Figure::new(aleatoric, half_width, label),
        label_entropy_nats: label,
        mutual_information_bits: Figure::new(mutual / LN_2, half_width / LN_2, label / LN_2),
        normalised: Figure::new(mutual * share, half_width * share, 1.0),
        badge,
        samples,
    }
}

fn exactly(scene: &Scene) -> Option<Scaled> {
    match (scene.count(), scene.rank) {
        (0 | 1, _) => Some(Scaled::ZERO),
        (_, 1) => line::entropy(scene),
        (_, 2) => plane::entropy(scene),
        _ => product::entropy(&product::factors(scene)?),
    }
}

/// H of a distribution, nats.
pub fn entropy_of(probabilities: &[f64]) -> f64 {
    // From 0, for the negated sum of a single class is −0.
    0.0 - probabilities.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
}

/// Published figures of one world, each with the half width that its digits leave open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Claims {
    /// Class priors; they fix H(Y).
    pub priors: Vec<f64>,
    /// Aleatoric uncertainty, nats.
    pub aleatoric_nats: Option<(f64, f64)>,
    /// Mutual information, bits.
    pub mutual_information_bits: Option<(f64, f64)>,
    /// Bayes error, a fraction.
    pub bayes_error: Option<(f64, f64)>,
}

impl Claims {
    /// Why the figures cannot all be true, one sentence a contradiction; empty where they can.
    ///
    /// # Errors
    /// When there are no priors.
    pub fn contradictions(&self) -> Result<Vec<String>> {
        let label = entropy_of(&self.priors);
        if self.priors.is_empty() {
            return Err(Error::input("priors: needed to know H(Y)"));
        }
        let mut found: Vec<String> = self.impossible_error().into_iter().collect();
        if let (Some((a, a_open)), Some((bits, bits_open))) = (self.aleatoric_nats, self.mutual_information_bits) {
            let off = a + bits * LN_2 - label;
            if off.abs() > a_open + bits_open * LN_2 + 1e-12 {
                found.push(format!(
                    "A + I = H(Y) fails by {off:+.4} nats: A = {a} nats leaves I = {:.4} bits of H(Y) = {:.4} bits, not {bits}",
                    (label - a) / LN_2,
                    label / LN_2
                ));
            }
        }
        let implied = self.mutual_information_bits.map(|(bits, open)| (label - bits * LN_2, open * LN_2));
        let entropies = [("A", self.aleatoric_nats), ("H(Y) − I", implied)];
        for (name, (entropy, open)) in entropies.into_iter().filter_map(|(name, claim)| Some((name, claim?))) {
            if entropy > label + open || entropy < -open {
                found.push(format!("{name} = {entropy:.4} nats lies outside [0, H(Y) = {label:.4}]"));
            }
            if let Some((error, error_open)) = self.bayes_error {
                let classes = self.priors.iter().filter(|p| **p > 0.0).count();
                let most = fano((error + error_open).min(1.0), classes);
                if entropy - open > most + 1e-12 {
                    found.push(format!(
                        "Fano: a Bayes error of {error} over {classes} classes leaves at most {most:.4} nats, not {name} = {entropy:.4}"
                    ));
                }
                let largest = 0.5 * (entropy + open) / LN_2;
                if error - error_open > largest + 1e-12 {
                    found.push(format!(
                        "Hellman-Raviv: {name} = {entropy:.4} nats allows a Bayes error of at most {largest:.4}, not {error}"
                    ));
                }
            }
        }
        Ok(found)
    }

    /// Why no world with these priors has such a Bayes error: who always names the likeliest class
    /// is wrong 1 − max π of the time, and the best classifier is never worse.
    fn impossible_error(&self) -> Option<String> {
        let (error, open) = self.bayes_error?;
        let most = 1.0 - self.priors.iter().copied().fold(0.0, f64::max);
        if error + open >= -1e-12 && error - open <= most + 1e-12 {
            return None;
        }
        // Who means per cent writes 3.59 and not 0.0359.
        let meant = match error > 1.0 && error / 100.0 <= most {
            true => format!(" ({error} is {:.1} %: is {error}% meant?)", 100.0 * error),
            false => String::new(),
        };
        Some(format!("a Bayes error of {error} lies outside [0, 1 − max π = {most:.4}]{meant}"))
    }
}

/// The largest H(Y|X) of a Bayes error e, nats: h(e) + e ln(K − 1), ln K beyond e = 1 − 1/K.
pub fn fano(error: f64, classes: usize) -> f64 {
    let others = (classes as f64 - 1.0).max(0.0);
    if error >= others / (others + 1.0) {
        return (others + 1.0).ln();
    }
    entropy_of(&[error, 1.0 - error]) + if error > 0.0 { error * others.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entropy_of_one_class_is_0_without_a_sign() {
        for certain in [&[1.0][..], &[0.0, 1.0, 0.0]] {
            assert_eq!(entropy_of(certain).to_bits(), 0, "{certain:?}");
        }
        assert!((entropy_of(&[0.25, 0.75]) - (4f64.ln() - 0.75 * 3f64.ln())).abs() < 1e-15);
    }

    #[test]
    fn the_published_afhq_figures_contradict_each_other() {
        // BLC: AFHQ, three classes, A = 0.012 nats and I = 1.577 bits.
        let claims = Claims {
            priors: vec![1.0 / 3.0; 3],
            aleatoric_nats: Some((0.012, 0.0005)),
            mutual_information_bits: Some((1.577, 0.0005)),
            bayes_error: None,
        };
        let found = claims.contradictions().unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("A + I = H(Y)") && found[0].contains("1.5677"), "{found:?}");
        let consistent = Claims { mutual_information_bits: Some((1.5677, 0.0008)), ..claims };
        assert_eq!(consistent.contradictions().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_error_alone_lies_between_0_and_that_of_who_names_the_likeliest_class() {
        let found = |priors: &[f64], error: f64, open: f64| {
            let claims = Claims {
                priors: priors.to_vec(),
                aleatoric_nats: None,
                mutual_information_bits: None,
                bayes_error: Some((error, open)),
            };
            claims.contradictions().unwrap()
        };
        for (priors, error) in
            [(vec![0.1; 10], 0.95), (vec![0.1; 10], 3.59), (vec![0.5; 2], 0.6), (vec![0.5; 2], -0.03)]
        {
            let why = found(&priors, error, 0.005);
            assert!(why.len() == 1 && why[0].contains("1 − max π"), "{error}: {why:?}");
            assert_eq!(why[0].contains("is 3.59% meant?"), error == 3.59);
        }
        // The ends are possible, and what rounds to them.
        for (priors, error) in
            [(vec![0.1; 10], 0.9), (vec![0.2, 0.8], 0.2), (vec![1.0 / 3.0; 3], 0.67), (vec![0.5; 2], 0.0)]
        {
            assert!(found(&priors, error, 0.005).is_empty(), "{error}");
        }
    }

    #[test]
    fn fano_and_hellman_raviv_catch_impossible_errors() {
        let claims = |entropy: f64, error: f64| Claims {
            priors: vec![0.1; 10],
            aleatoric_nats: Some((entropy, 0.0)),
            mutual_information_bits: None,
            bayes_error: Some((error, 0.0)),
        };
        assert!(claims(0.9, 0.05).contradictions().unwrap()[0].contains("Fano"));
        assert!(claims(0.05, 0.05).contradictions().unwrap()[0].contains("Hellman-Raviv"));
        assert!(claims(0.15, 0.05).contradictions().unwrap().is_empty());
        assert!((fano(0.9, 10) - 10f64.ln()).abs() < 1e-15 && (fano(0.3, 2) - entropy_of(&[0.3, 0.7])).abs() < 1e-15);
    }
}
