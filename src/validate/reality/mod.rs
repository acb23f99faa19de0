//! What an oracle's decisions on real images say about nature (docs/validation.md, *Reality*).
//!
//! No rule of decision errs less often on nature's images than nature's Bayes error E*. The world's
//! own Bayes decision is such a rule, noise of dequantisation included, so that the share of real
//! test images it errs on bounds E* from above, up to its interval. E of the world is the Bayes error
//! of another place, and no bound of E* on either side.
//!
//! | file | what |
//! |---|---|
//! | `mod` | spec, decisions on real images, result |
//! | `contrast` | what contradicts what, in sentences |
//! | `show` | tables, figure |

mod contrast;
mod show;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::real::{TestPart, test_part};
use super::spec::{Stage, ValidateEvent};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::Truth;
use crate::measure::{Bootstrap, Estimate, Interval, PerImage};
use crate::oracle::folder::OracleInfo;
use crate::oracle::numbering::{named, renumber, within};
use crate::oracle::posterior::{Posterior, Prior};
use crate::oracle::world::{Settings, World};
use crate::units::Seed;

pub use contrast::{Finding, Kind};

/// What is asked. The world is taken at τ = 1 and T = 1, as it was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealitySpec {
    /// Name of a bundled oracle, an oracle folder or a checkpoint.
    pub oracle: String,
    /// Labelled real images that the oracle was not trained on: any folder or file that
    /// [`crate::data::open_dataset`] reads. Its test part is used.
    pub data: PathBuf,
    /// The class prior π of the world.
    pub prior: Prior,
    /// The error of a classifier on the same kind of images, to compare.
    pub published: Option<Published>,
    /// Seed of the noise of dequantisation, of resampling, and of samples of the world.
    pub seed: Seed,
}

/// What a published classifier is called that has no name.
pub const SOMEBODY: &str = "a published classifier";

/// A published error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Whose.
    pub name: String,
    /// Share of images it errs on, in [0, 1]. Taken as it is, without an interval.
    pub error: f64,
}

/// A bin of real images whose posteriors are about equally sure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RealBin {
    /// max p is larger than this …
    pub low: f64,
    /// … and at most this.
    pub high: f64,
    /// Images in it, at least one.
    pub count: usize,
    /// Mean of max p.
    pub claimed: f64,
    /// Share whose label is the decision, with its Wilson interval.
    pub right: Estimate,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reality {
    /// What was asked for.
    pub spec: RealitySpec,
    /// SHA-256 of the oracle's weights.
    pub weights_sha256: String,
    /// Name of the real images.
    pub corpus: String,
    /// Whether they are a test part. Otherwise the oracle may have been trained on them.
    pub held_out: bool,
    /// What was done to get them.
    pub notes: Vec<String>,
    /// Real images.
    pub images: usize,
    /// Share of them on which the world's Bayes decision is not the label, with its Clopper-Pearson
    /// interval. Of held-out images its upper end is a bound of nature's Bayes error (97.5 %).
    pub decision_error: Estimate,
    /// Mean of 1 − max p on the same images: how often the world says it errs.
    pub doubt: Estimate,
    /// `doubt` − `decision_error`, paired by image.
    pub surplus: Estimate,
    /// Bayes error of the world at τ = 1.
    pub world: Truth,
    /// Expected calibration error on the labels, with [`crate::measure::BINS`] bins of equal width.
    pub ece: Estimate,
    /// Those bins that hold images, by rising max p.
    pub reliability: Vec<RealBin>,
    /// ½ Σ_y |share of class y among the images − π_y|.
    pub prior_distance: f64,
    /// How probable it is that images of classes drawn by π have shares as far from it: Pearson's χ² test.
    pub prior_p_value: f64,
    /// What all this says of nature, in sentences.
    pub findings: Vec<Finding>,
}

/// Images as far as figures need them.
struct Decided {
    images: PerImage,
    prior_distance: f64,
    prior_p_value: f64,
}

impl RealitySpec {
    /// Checks the spec.
    ///
    /// # Errors
    /// When the published error is no share.
    pub fn validate(&self) -> Result<()> {
        match &self.published {
            Some(Published { error, .. }) if !(0.0..=1.0).contains(error) => {
                Err(Error::input("a published error is a share between 0 and 1"))
            }
            _ => Ok(()),
        }
    }

    fn settings(&self) -> Settings {
        Settings { prior: self.prior.clone(), ..Settings::default_for(self.prior.classes()) }
    }
}

/// Compares an opened oracle's decisions with the labels of real images.
///
/// # Errors
/// When the spec is invalid, the corpus has no labels or does not fit the oracle, the device fails,
/// or the caller stops.
pub fn reality(
    world: &World,
    info: &OracleInfo,
    spec: &RealitySpec,
    events: &mut dyn Events<ValidateEvent>,
) -> Result<Reality> {
    spec.validate()?;
    let mut notes = Vec::new();
    let part = test_part(world, info, (&spec.data, spec.seed), &mut notes)?;
    compare(world, &info.weights_sha256, Taken { part, notes }, spec, events)
}

/// Real images, and what was done to get them.
struct Taken {
    part: TestPart,
    notes: Vec<String>,
}

fn compare(
    world: &World,
    weights_sha256: &str,
    Taken { part, notes }: Taken,
    spec: &RealitySpec,
    events: &mut dyn Events<ValidateEvent>,
) -> Result<Reality> {
    let mut at = |stage, progress| events.emit(ValidateEvent { stage, progress });
    let decided = decide(world, &part, spec, &mut |progress| at(Stage::Decisions, progress))?;
    let seed = spec.seed.split("bayes error of the world");
    let truth = Truth::of(world, &spec.settings(), seed, &mut |progress| at(Stage::BayesError, progress))?;
    let figures = Figures::of(&decided, spec.seed)?;
    let mut found = Reality {
        spec: spec.clone(),
        weights_sha256: weights_sha256.to_owned(),
        corpus: part.images.name,
        held_out: part.is_part,
        notes,
        images: decided.images.len(),
        decision_error: figures.decision_error,
        doubt: figures.doubt,
        surplus: figures.surplus,
        world: truth,
        ece: figures.ece,
        reliability: figures.reliability,
        prior_distance: decided.prior_distance,
        prior_p_value: decided.prior_p_value,
        findings: Vec::new(),
    };
    found.findings = contrast::findings(&found);
    Ok(found)
}

/// Posteriors of all images beside their labels.
fn decide(world: &World, part: &TestPart, spec: &RealitySpec, events: &mut dyn Events<Progress>) -> Result<Decided> {
    let TestPart { images, how, .. } = part;
    let (name, k, dims) = (&images.name, world.class_names().len(), world.shape().dims());
    let labels = images.labels.as_deref().filter(|labels| !labels.is_empty());
    let labels = labels.ok_or_else(|| Error::input(format!("{name} has no labels to hold decisions against")))?;
    let (settings, given) = (spec.settings(), spec.prior.classes());
    if given != k {
        return Err(Error::input(format!("the class prior has {given} entries, this world {k} classes")));
    }
    let mut all = PerImage::new(k)?;
    for labels in labels.chunks(world.batch()) {
        let first = all.len();
        let pixels = &images.pixels[first * dims..(first + labels.len()) * dims];
        let x = world.flow().pixels().map_in(pixels, dims, first, *how);
        let here = Progress { done: first, total: images.len() };
        let scores = world
            .score(&x, &mut |_: Progress| events.emit(here))
            .map_err(|error| within(named(renumber(error, first), &images.ids), name))?;
        let posterior = |i: usize| world.posterior(&scores, i, &settings).defined(&images.ids[first + i]);
        let posteriors: Vec<Posterior> = (0..labels.len()).map(posterior).collect::<Result<_>>()?;
        let p: Vec<f64> = posteriors.iter().flat_map(|one| one.probabilities.iter().copied()).collect();
        let log_p: Vec<f64> = posteriors.iter().flat_map(|one| one.log_probabilities.iter().copied()).collect();
        all.extend(&p, &log_p, labels)?;
        events.report(Progress { done: all.len(), total: images.len() })?;
    }
    let mut counts = vec![0; k];
    labels.iter().for_each(|&label| counts[label] += 1);
    let (prior, n) = (settings.prior.probabilities(), labels.len() as f64);
    let apart = counts.iter().zip(prior).map(|(&count, pi)| (f64::from(count) / n - pi).abs());
    Ok(Decided { prior_distance: 0.5 * apart.sum::<f64>(), prior_p_value: chi_squared(&counts, prior), images: all })
}

/// The p-value of Pearson's χ² test of counts against probabilities; 0 where one that is 0 has a count.
fn chi_squared(counts: &[u32], probabilities: &[f64]) -> f64 {
    let n: f64 = counts.iter().map(|&count| f64::from(count)).sum();
    let each = counts.iter().map(|&count| f64::from(count)).zip(probabilities);
    if each.clone().any(|(count, &p)| p == 0.0 && count > 0.0) {
        return 0.0;
    }
    let possible = each.filter(|(_, p)| **p > 0.0);
    let freedom = possible.clone().count() as f64 - 1.0;
    let statistic: f64 = possible.map(|(count, p)| (count - n * p).powi(2) / (n * p)).sum();
    // No freedom: with one class there is nothing to differ in.
    ChiSquared::new(freedom).map_or(1.0, |chi| chi.sf(statistic))
}

/// The figures of decided images.
struct Figures {
    decision_error: Estimate,
    doubt: Estimate,
    surplus: Estimate,
    ece: Estimate,
    reliability: Vec<RealBin>,
}

impl Figures {
    fn of(Decided { images, .. }: &Decided, seed: Seed) -> Result<Self> {
        let (n, bootstrap) = (images.len(), Bootstrap::new(seed.split("reality")));
        // Nature's posterior is unknown. The world's own stands in its place, so that its errors by
        // its own account are 1 − max p; what is held against labels does not use it.
        let measured = images.measured(&bootstrap)?;
        let missed = |i: usize| images.decision[i] != images.label[i];
        let surplus: Vec<f64> = (0..n).map(|i| 1.0 - images.confidence[i] - f64::from(u8::from(missed(i)))).collect();
        let bins = measured.reliability.bins.iter().map(|bin| RealBin {
            low: bin.low,
            high: bin.high,
            count: bin.count,
            claimed: bin.mean_confidence,
            right: bin.hit_rate,
        });
        Ok(Self {
            decision_error: Estimate::exact_proportion((0..n).filter(|&i| missed(i)).count(), n),
            doubt: measured.bayes_accuracy.complement(),
            // Doubt or a miss: where hardly an image shows one, others may.
            surplus: bootstrap.mean_of_alike(&surplus, [-1.0, 1.0]),
            ece: measured.ece,
            reliability: bins.collect(),
        })
    }
}

impl Reality {
    /// Bayes error of the world with its interval.
    pub fn of_the_world(&self) -> Estimate {
        let (low, high) = self.world.bayes_error.interval;
        Estimate { value: self.world.bayes_error.value, interval: Interval { low, high } }
    }
}
