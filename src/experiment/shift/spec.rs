//! What a shift experiment is told, what its shifts amount to in nats, and what a cell of it finds.

use serde::{Deserialize, Serialize};

use super::base::BaseShift;
use crate::error::{Error, Result};
use crate::measure::Estimate;
use crate::oracle::posterior::Prior;

/// −log of the chance that a pool is too small for a class, at least, where it counts as surely large enough.
const SURE: f64 = 20.0;

/// Shifts of the training and validation images; the test images stay those of the world (BLC App.
/// G).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftSpec {
    /// Images of the world from which a cell chooses, drawn anew for every seed; with replacement
    /// where a class runs out, then from some of its images to train and from the others to validate.
    pub pool: usize,
    /// Share of a cell's N images that is kept for validation.
    #[serde(default = "fifth")]
    pub validation: f64,
    /// Images, at most, on which the likelihood lost to pixel noise is measured.
    #[serde(default = "few_hundred")]
    pub likelihood: usize,
    /// The shifts; the first one is the baseline to which drops are counted.
    pub settings: Vec<ShiftSetting>,
}

fn fifth() -> f64 {
    0.2
}

fn few_hundred() -> usize {
    256
}

/// One shift.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftSetting {
    /// Its name.
    pub name: String,
    /// Weights of the class prior π of the training images; that of the world where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior: Vec<f64>,
    /// Standard deviation σ of Gaussian noise added to pixels, units of x, which are then clipped
    /// to the world's range: [−1, 1] or, for a Glow, [0, 1] (BLC eq. 7). Without noise nothing is
    /// clipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub noise: f64,
    /// A shift of the base samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseShift>,
}

fn is_zero(noise: &f64) -> bool {
    *noise == 0.0
}

/// What the training images of a cell were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shifted {
    /// Images of each class, those for validation included.
    pub counts: Vec<usize>,
    /// KL of these frequencies from the world's class prior, Σ π̂ log(π̂/π), nats (BLC eq. 8).
    pub kl_y: f64,
    /// The exact KL(p′(x, y)‖p(x, y)) of the images' law, nats; `None` under pixel noise, where it
    /// is unknown.
    pub joint_kl: Option<f64>,
    /// E[log p(x|y)] − E[log p(x′|y)], nats an image, paired: what pixel noise and clipping take
    /// from the world's likelihood of the drawn class. It is no KL: the entropy of the noised
    /// images is not in it. 0 where pixels are the world's; `None` under a base shift, whose KL is
    /// exact.
    pub log_likelihood_drop: Option<Estimate>,
    /// Accuracy on the validation images, shifted as the training images are; Wilson's interval.
    pub validation: Estimate,
    /// Accuracy that the Bayes classifier of the shifted world loses on the test images, a
    /// fraction: no learner of shifted images knows better. `None` under pixel noise, and in files
    /// of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavoidable_loss: Option<Estimate>,
}

impl ShiftSetting {
    /// The class prior π′ of the training images, in a world of class prior `world` (under label noise both are laws of the
    /// noisy labels).
    ///
    /// # Errors
    /// Names the setting whose prior is none or does not fit the world.
    pub fn prior(&self, world: &Prior) -> Result<Prior> {
        if self.prior.is_empty() {
            return Ok(world.clone());
        }
        let prior = Prior::new(&self.prior).map_err(|e| self.wrong(&e.to_string()))?;
        let (given, classes) = (prior.classes(), world.classes());
        if given != classes {
            return Err(self.wrong(&format!("its prior has {given} entries, the world {classes} classes")));
        }
        Ok(prior)
    }

    /// KL(π′‖π) from the world's prior, nats: the target of KL_y (BLC table 7).
    ///
    /// # Errors
    /// As [`Self::prior`], and when a class is asked for that the world does not have.
    pub fn prior_kl(&self, world: &Prior) -> Result<f64> {
        let kl = kl(self.prior(world)?.probabilities(), world.probabilities());
        if kl.is_finite() {
            return Ok(kl);
        }
        Err(self.wrong("its prior asks for a class that has probability 0 in the world"))
    }

    /// The exact KL(p′(x, y)‖p(x, y)) = KL(π′‖π) + Σ_y π′_y KL(p′(x|y)‖p(x|y)), nats. A base shift
    /// has the same KL in every class, which no invertible map changes. `None` under pixel noise.
    ///
    /// # Errors
    /// As [`Self::prior_kl`].
    pub fn joint_kl(&self, world: &Prior) -> Result<Option<f64>> {
        let prior = self.prior_kl(world)?;
        Ok((self.noise == 0.0).then(|| prior + self.base.map_or(0.0, BaseShift::kl)))
    }

    pub(super) fn wrong(&self, why: &str) -> Error {
        Error::input(format!("shift {:?}: {why}", self.name))
    }

    pub(super) fn validate(&self) -> Result<()> {
        if !self.prior.is_empty() {
            Prior::new(&self.prior).map_err(|e| self.wrong(&e.to_string()))?;
        }
        if let Some(base) = self.base {
            base.validate().map_err(|e| self.wrong(&e.to_string()))?;
        }
        let checks = [
            (self.noise >= 0.0 && self.noise.is_finite(), "its noise must be a standard deviation ≥ 0"),
            (
                self.noise == 0.0 || self.base.is_none(),
                "noise on top of a base shift hides the KL that the base shift has; make two settings of it",
            ),
        ];
        match checks.iter().find(|(fine, _)| !fine) {
            Some((_, why)) => Err(self.wrong(why)),
            None => Ok(()),
        }
    }
}

/// Σ p log(p/q), nats; 0 log 0 = 0.
pub(super) fn kl(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| p * (p / q).ln()).sum()
}

impl ShiftSpec {
    /// Training images that are not kept for validation, of `n`.
    pub fn kept(&self, n: usize) -> usize {
        n - (n as f64 * self.validation).round() as usize
    }

    /// Whether the pool may run out of a class where a cell of `n` images has its prior.
    ///
    /// Of a class of probability π the cell draws Bin(n, π) images, and the pool has Bin(P, π). By Chernoff's bound the pool
    /// has fewer with probability exp(−π(√P − √n)²) at most, where n ≤ P.
    pub(super) fn may_run_out(&self, prior: &Prior, n: usize) -> bool {
        let spare = (self.pool as f64).sqrt() - (n as f64).sqrt();
        let enough = |p: &f64| *p == 0.0 || (spare > 0.0 && p * spare * spare >= SURE);
        !prior.probabilities().iter().all(enough)
    }

    /// Checks that the settings fit together.
    ///
    /// # Errors
    /// Names the settings that do not.
    pub(super) fn check_settings(&self) -> Result<()> {
        let classes = |setting: &&ShiftSetting| !setting.prior.is_empty();
        let mut priors = self.settings.iter().filter(classes);
        if let Some(first) = priors.next()
            && let Some(other) = priors.find(|other| other.prior.len() != first.prior.len())
        {
            let (given, others) = (other.prior.len(), first.prior.len());
            return Err(other.wrong(&format!("its prior has {given} entries, that of {:?} has {others}", first.name)));
        }
        for (i, setting) in self.settings.iter().enumerate() {
            let same = |other: &&ShiftSetting| {
                (&other.prior, other.noise, other.base) == (&setting.prior, setting.noise, setting.base)
            };
            if let Some(twice) = self.settings[..i].iter().find(same) {
                return Err(setting.wrong(&format!("is the same shift as {:?}", twice.name)));
            }
        }
        Ok(())
    }
}
