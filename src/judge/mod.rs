//! Judges a classifier of any framework against the Bayes limit, from a file of predictions and the
//! truth of an exported dataset. No retraining, no link to the program that trained it.
//!
//! [`Truth::open`] → [`Predictions::read`] → [`judge`] → [`write_report`]; [`assess`] does three.
//!
//! | file | what |
//! |---|---|
//! | `arrays` | matrices, integers and texts of arrays |
//! | `manifest` | what a dataset says of itself, and folders that are none |
//! | `truth` | posteriors, labels and ids of a dataset folder, without the images |
//! | `predictions` | npz, npy, csv and parquet of other programs: kinds, ids, columns, repairs and refusals |
//! | `candidates` | models to judge: prediction files, and networks run here (ONNX, checkpoints of the zoo) |
//! | `progress` | events |
//! | `verdict` | the Bayes-gap figures of one model |
//! | `alarms` | leaks, wrong orders: figures that no honest model has |
//! | `typicality` | whether the judged images are such as the world makes |
//! | `uncertainty` | ensembles, scores and sets of classes against the truth |
//! | `report`, `figures`, `tables` | several models compared; the folder of a report |

use serde::{Deserialize, Serialize};

use progress::Steps;

use crate::error::{Error, Result};
use crate::events::Events;
use crate::measure::typicality::Census;
use crate::measure::{Bootstrap, Estimate, UNBOUNDED};
use crate::units::Seed;

mod alarms;
mod arrays;
mod candidates;
mod figures;
mod manifest;
mod predictions;
mod progress;
mod report;
mod tables;
#[cfg(test)]
mod tests;
mod truth;
mod typicality;
mod uncertainty;
mod verdict;

pub use alarms::classes::ClassOrder;
pub use alarms::copied::Copied;
pub use alarms::likelihood::Likelihood;
pub use alarms::order::{Order, Rearranged};
pub use alarms::{Alarm, AlarmKind, Examined, FALSE_ALARM, Hits, LEVEL, LabelCheck, label_chance};
pub use candidates::{Candidate, assess};
pub use figures::figures;
pub use predictions::{Kind, Note, Predictions, ReadOptions, log_q, look_like_probabilities};
pub use progress::{JudgeEvent, Stage};
pub use report::write_report;
pub use tables::{MODELS, WORST_IMAGES, tables};
pub use truth::{Origin, PosteriorSource, Truth};
pub use uncertainty::{GradedScore, NamedSets, ScoredClassifier, UncertaintyReport, judge_uncertainty};
pub use verdict::{ClassGap, Evaluated, Verdict, WorstImage};

/// Several models on the same images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// World and dataset.
    pub origin: Origin,
    /// Where the posteriors came from.
    pub source: PosteriorSource,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// Whether the drawn labels fit the posteriors.
    pub labels: LabelCheck,
    /// Each model.
    pub models: Vec<Verdict>,
    /// Each two models, the earlier less the later.
    pub pairs: Vec<Pair>,
}

impl Report {
    /// How the judged images stand to samples of the world, where those lie beside them.
    pub fn typicality(&self) -> Option<Census> {
        self.models.first()?.typicality
    }

    /// What `evaluate --json` prints of each model.
    pub fn evaluated(&self) -> Vec<Evaluated> {
        let of = |model: &Verdict| {
            let compared_with = self.pairs.iter().filter_map(|pair| pair.seen_from(&model.name)).collect();
            Evaluated { compared_with, ..model.evaluated() }
        };
        self.models.iter().map(of).collect()
    }
}

/// Two models on the same images: first less second, paired by image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Name of the first.
    pub first: String,
    /// Name of the second.
    pub second: String,
    /// Difference of the errors against drawn labels.
    pub error: Estimate,
    /// Difference of the expected errors 1 − p(argmax q): the same mean with less variance.
    pub expected_error: Estimate,
    /// Difference of the cross-entropies, which is that of the epistemic parts, nats.
    pub cross_entropy: Estimate,
}

/// A model beside another one: this one less the other, paired by image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Name of the other.
    pub name: String,
    /// Difference of the errors against drawn labels.
    pub error: Estimate,
    /// Difference of the expected errors.
    pub expected_error: Estimate,
    /// Difference of the cross-entropies, nats.
    pub cross_entropy: Estimate,
}

/// Judges models on the images of `truth`; intervals and shuffles come from `seed`.
///
/// # Errors
/// When there is no model or a single image, two models have the same name, the figures of one leave the finite numbers, or
/// the caller stops.
pub fn judge(truth: &Truth, models: &[Predictions], seed: Seed, events: &mut dyn Events<JudgeEvent>) -> Result<Report> {
    if models.is_empty() {
        return Err(Error::input("there are no predictions to judge"));
    }
    truth.check_enough()?;
    for (i, model) in models.iter().enumerate() {
        if models[..i].iter().any(|other| other.name == model.name) {
            return Err(Error::input(format!("two models are called {}; give each a name of its own", model.name)));
        }
    }
    let mut steps = Steps::begin(events, Stage::Labels, 1)?;
    let (bootstrap, labels) = (Bootstrap::new(seed), LabelCheck::of(truth));
    steps.step()?;
    let verdict = |model: &Predictions| {
        let mut steps = Steps::begin(events, Stage::Measuring(model.name.clone()), Verdict::STEPS)?;
        Verdict::of(truth, &labels, model, &bootstrap, seed, &mut steps).map_err(|error| match error {
            Error::Numeric(cause) => Error::Numeric(format!("{}: {cause}", model.name)),
            other => other,
        })
    };
    let verdicts = models.iter().map(verdict).collect::<Result<Vec<_>>>()?;
    let pairs = pairs(&verdicts, &bootstrap, events)?;
    Ok(Report {
        origin: truth.origin.clone(),
        source: truth.source,
        class_names: truth.class_names.clone(),
        labels,
        models: verdicts,
        pairs,
    })
}

/// Each two models.
fn pairs(verdicts: &[Verdict], bootstrap: &Bootstrap, events: &mut dyn Events<JudgeEvent>) -> Result<Vec<Pair>> {
    let each: Vec<_> = (0..verdicts.len()).flat_map(|a| (a + 1..verdicts.len()).map(move |b| (a, b))).collect();
    if each.is_empty() {
        return Ok(Vec::new());
    }
    let mut steps = Steps::begin(events, Stage::Comparing, each.len())?;
    let compared = |(a, b): (usize, usize)| {
        let pair = Pair::of(&verdicts[a], &verdicts[b], bootstrap);
        steps.step().map(|()| pair)
    };
    each.into_iter().map(compared).collect()
}

impl Pair {
    fn of(a: &Verdict, b: &Verdict, bootstrap: &Bootstrap) -> Self {
        let differences = |value: &dyn Fn(&Verdict, usize) -> f64| -> Vec<f64> {
            (0..a.images.len()).map(|i| value(a, i) - value(b, i)).collect()
        };
        let share = |value: &dyn Fn(&Verdict, usize) -> f64| bootstrap.mean_within(&differences(value), [-1.0, 1.0]);
        Self {
            first: a.name.clone(),
            second: b.name.clone(),
            error: share(&|v, i| f64::from(u8::from(!v.images.hit(i)))),
            expected_error: share(&|v, i| -v.images.expected[i]),
            cross_entropy: bootstrap.mean(&differences(&|v, i| v.images.cross_entropy[i]), UNBOUNDED),
        }
    }

    /// The pair as one of its models sees it; nothing for another model.
    fn seen_from(&self, name: &str) -> Option<Compared> {
        let Self { first, second, error, expected_error, cross_entropy } = self;
        let all = [*error, *expected_error, *cross_entropy];
        let (other, [error, expected_error, cross_entropy]) = match name {
            _ if name == first => (second, all),
            _ if name == second => (first, all.map(Estimate::negated)),
            _ => return None,
        };
        Some(Compared { name: other.clone(), error, expected_error, cross_entropy })
    }
}
