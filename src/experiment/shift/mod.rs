//! Distribution shift (BLC §4.3, App. G): training images whose classes, pixels or base samples are shifted by a known amount, and what that
//! costs on test images that are not.
//!
//! A cell draws how many images of each class it is to have from a multinomial law (BLC eq. 6), takes them from a pool of the world's
//! images, shifts them, keeps a part for validation and trains on the rest. Cells of one seed share all chance: the pool, what decides
//! about counts and choice, the noise (up to its σ), the direction of a base shift and the classifier's start. What differs between two
//! settings of one seed is therefore the shift. Cells of different seeds share nothing but the test images.
//!
//! | file | what |
//! |---|---|
//! | `mod` | what an experiment is told, and what its shifts amount to in nats |
//! | `base` | shifts of the base samples |
//! | `images` | counts, choice, noise, split |
//! | `cell` | one cell: made, trained, measured |
//! | `unavoidable` | what the Bayes classifier of the shifted world loses |
//! | `damage`, `kind` | all cells together, by kind of shift |
//! | `fit`, `figures`, `tables` | means over seeds and a line through runs; what is shown of them |
//! | `paper` | the numbers of BLC tables 7 and 8 |

mod base;
mod cell;
mod damage;
mod figures;
mod fit;
mod images;
mod kind;
mod paper;
mod tables;
mod unavoidable;

use serde::{Deserialize, Serialize};

use super::spec::ExperimentSpec;
use crate::classifier::Labels;
use crate::error::{Error, Result};
use crate::measure::Estimate;
use crate::oracle::posterior::Prior;
use crate::units::Smoothing;

pub use base::{BaseMap, BaseShift};
pub(super) use cell::run;
pub use damage::Damage;

/// Images of a cell, at most: those of a shift are made and held in memory, all of them.
const MOST: usize = 10_000_000;

/// Shifts of the training images; the test images stay those of the world (BLC App. G), those for validation are shifted as the training images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftSpec {
    /// Images of the world from which those of a cell are chosen, drawn anew for every seed; with replacement where a class runs out.
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
    /// Standard deviation σ of the Gaussian noise added to pixels, in units of x, which are then clipped to the range of the world's
    /// pixels: [−1, 1] or, for a Glow, [0, 1] (BLC eq. 7). Without noise nothing is clipped: the images are the world's own.
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
    /// The exact KL(p′(x, y)‖p(x, y)) of the law the images were drawn from, nats; `None` under pixel noise, where it is not known.
    pub joint_kl: Option<f64>,
    /// E[log p(x|y)] − E[log p(x′|y)], nats an image: what pixel noise and clipping take from the world's own likelihood of the drawn class,
    /// paired by image. It is no KL: the entropy of the noised images is not in it. 0 where the pixels are the world's; `None` under a
    /// shift of the base, whose KL is exact.
    pub log_likelihood_drop: Option<Estimate>,
    /// Accuracy on the images kept for validation, which are shifted as the training images are; Wilson's interval over them.
    pub validation: Estimate,
    /// Accuracy that the Bayes classifier of the shifted world loses on the test images, a fraction, with its interval over them: no
    /// learner can know better from shifted images. `None` under pixel noise, and in what older versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavoidable_loss: Option<Estimate>,
}

impl ShiftSetting {
    /// The class prior π′ of the training images, in a world of class prior `world`.
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

    /// The exact KL(p′(x, y)‖p(x, y)) = KL(π′‖π) + Σ_y π′_y KL(p′(x|y)‖p(x|y)), nats. A base shift has the same KL in every class, and no
    /// invertible map changes it. `None` under pixel noise: the density of noised and clipped images is not known.
    ///
    /// # Errors
    /// As [`Self::prior_kl`].
    pub fn joint_kl(&self, world: &Prior) -> Result<Option<f64>> {
        let prior = self.prior_kl(world)?;
        Ok((self.noise == 0.0).then(|| prior + self.base.map_or(0.0, BaseShift::kl)))
    }

    fn wrong(&self, why: &str) -> Error {
        Error::input(format!("shift {:?}: {why}", self.name))
    }

    fn validate(&self) -> Result<()> {
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
fn kl(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| p * (p / q).ln()).sum()
}

impl ShiftSpec {
    /// Training images that are not kept for validation, of `n`.
    pub fn kept(&self, n: usize) -> usize {
        n - (n as f64 * self.validation).round() as usize
    }

    /// What a cell's numbers depend on.
    pub(super) fn content(&self, condition: usize) -> serde_json::Value {
        let Self { pool, validation, likelihood, settings } = self;
        // A shift counts by what it does, not by its name; the images of the likelihood only where there is noise.
        let setting = settings.get(condition).map(|s| serde_json::json!([s.prior, s.noise, s.base]));
        let likelihood = settings.get(condition).filter(|s| s.noise > 0.0).map(|_| likelihood);
        serde_json::json!({ "pool": pool, "validation": validation, "likelihood": likelihood, "shift": setting })
    }

    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong; a shift is named.
    pub fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        let Some(baseline) = self.settings.first() else {
            return Err(Error::input("experiment.settings is empty: the first one is the baseline"));
        };
        self.settings.iter().try_for_each(ShiftSetting::validate)?;
        if baseline.noise > 0.0 || baseline.base.is_some() {
            return Err(baseline.wrong("the first setting is the baseline: it has neither noise nor a base shift"));
        }
        self.check_settings()?;
        let sizes = &spec.grid.train_sizes;
        let told = |labels: &Labels| !labels.ask_the_world();
        let checks = [
            (self.pool > 0, "experiment.pool must be at least 1"),
            (self.likelihood >= 2, "experiment.likelihood must be at least 2: one image has no interval"),
            ((0.0..1.0).contains(&self.validation), "experiment.validation is a share of the images, between 0 and 1"),
            (
                sizes.iter().all(|&n| (1..n).contains(&self.kept(n))),
                "experiment.validation leaves no image of grid.train_sizes to train on, or none to validate on",
            ),
            (
                sizes.iter().all(|&n| n <= MOST),
                "grid.train_sizes of a shift must be at most 10,000,000: a cell holds its images in memory",
            ),
            (
                spec.grid.labels.iter().all(told),
                "shifted images have drawn labels: their posteriors are not the world's",
            ),
            (
                spec.world.smoothing == Smoothing::ONE,
                "world.smoothing must be 1: with another one the exact KL of a shift has no closed form",
            ),
        ];
        match checks.iter().find(|(fine, _)| !fine) {
            Some((_, complaint)) => Err(Error::input(*complaint)),
            None => Ok(()),
        }
    }

    /// Whether the settings fit together.
    fn check_settings(&self) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, PRESETS};

    fn preset(name: &str) -> ExperimentSpec {
        PRESETS.iter().find(|preset| preset.name == name).unwrap().spec().unwrap()
    }

    fn own(spec: &ExperimentSpec) -> ShiftSpec {
        let Experiment::Shift(own) = &spec.experiment else { unreachable!() };
        own.clone()
    }

    #[test]
    fn the_shipped_spec_has_the_settings_of_table_7_and_its_target_kl() {
        let own = own(&preset("shift"));
        let world = Prior::uniform(3);
        for (setting, row) in own.settings.iter().zip(&paper::ROWS) {
            assert_eq!((setting.name.as_str(), setting.prior.as_slice()), (row.name, &row.prior[..]));
            assert_eq!(setting.noise, row.noise);
            // Eq. 8 with π̂ = π gives 0.0181 and 0.2968 where table 7 prints 0.017 and 0.296: nowhere farther than 0.0011.
            let target = setting.prior_kl(&world).unwrap();
            assert!((target - row.target_kl).abs() < 1.1e-3, "{}: {target} for {}", row.name, row.target_kl);
        }
        let exact = |at: usize| own.settings[at].prior_kl(&world).unwrap();
        let digits = |kl: f64| (kl * 1000.0).round() / 1000.0;
        assert_eq!([1, 2, 3, 4].map(exact).map(digits), [0.018, 0.069, 0.161, 0.297]);
        assert!((exact(0) - 1e-4).abs() < 1e-6);
    }

    #[test]
    fn base_shifts_of_the_shipped_spec_are_as_large_as_its_prior_shifts() {
        let own = own(&preset("shift"));
        let world = Prior::uniform(3);
        let joint = |setting: &ShiftSetting| setting.joint_kl(&world).unwrap();
        let levels: Vec<f64> = own.settings[1..5].iter().filter_map(joint).collect();
        let bases: Vec<f64> = own.settings.iter().filter(|s| s.base.is_some()).filter_map(joint).collect();
        assert_eq!(bases.len(), 12);
        for (i, base) in bases.iter().enumerate() {
            assert!((base / levels[i % 4] - 1.0).abs() < 2e-3, "{base} {levels:?}");
        }
        assert_eq!(joint(&own.settings[5]), None, "nobody knows the KL of noised images");
    }

    #[test]
    fn what_cannot_be_a_shift_is_named() {
        let spec = preset("shift");
        let refused = |change: &dyn Fn(&mut ShiftSpec, &mut ExperimentSpec)| {
            let (mut own, mut spec) = (own(&spec), spec.clone());
            change(&mut own, &mut spec);
            own.validate(&spec).unwrap_err().to_string()
        };
        let name = |at: usize| own(&spec).settings[at].name.clone();
        let says = |text: String, words: &[&str]| assert!(words.iter().all(|word| text.contains(word)), "{text}");
        says(refused(&|own, _| own.settings.clear()), &["baseline"]);
        says(refused(&|own, _| own.settings[2].prior = vec![0.5, 0.5]), &[&name(2), "2 entries", &name(0)]);
        says(refused(&|own, _| own.settings[1].prior[0] = -1.0), &[&name(1), "≥ 0"]);
        says(refused(&|own, _| own.settings[5].noise = f64::NAN), &[&name(5), "noise"]);
        says(refused(&|own, _| own.settings[5].base = Some(BaseShift::Mean { kl: 0.1 })), &[&name(5), "two settings"]);
        says(refused(&|own, _| own.settings[1].base = Some(BaseShift::Wider { kl: 0.0 })), &[&name(1), "nats"]);
        says(refused(&|own, _| own.settings.swap(0, 5)), &[&name(5), "baseline"]);
        says(refused(&|own, _| own.settings[1].prior = own.settings[2].prior.clone()), &[&name(1), &name(2), "same"]);
        says(refused(&|own, _| own.validation = 0.0), &["validate"]);
        says(refused(&|own, _| own.pool = 0), &["pool"]);
        says(refused(&|_, spec| spec.grid.train_sizes = vec![1_000_000_000_000]), &["grid.train_sizes", "10,000,000"]);
        says(refused(&|_, spec| spec.grid.labels = vec![Labels::Posterior]), &["drawn labels"]);
        says(refused(&|_, spec| spec.world.smoothing = Smoothing::new(2.0).unwrap()), &["smoothing"]);
        let setting = &own(&spec).settings[1];
        says(setting.prior(&Prior::uniform(10)).unwrap_err().to_string(), &[&name(1), "3 entries", "10 classes"]);
        let without = Prior::new(&[0.0, 0.5, 0.5]).unwrap();
        says(setting.prior_kl(&without).unwrap_err().to_string(), &[&name(1), "probability 0"]);
    }
}
