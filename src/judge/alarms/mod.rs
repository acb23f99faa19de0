//! Alarms: figures that no honest classifier of these images has, or hardly any.
//!
//! Given the images, labels are independent draws from their exact posteriors. So the probability
//! of every result on the drawn labels is computable, which no benchmark of real data allows.
//!
//! | file | question | p-value |
//! |---|---|---|
//! | `hits` | more labels hit than a decision that does not know them can hit? | exact, Poisson-binomial |
//! | `likelihood` | labels more likely under q than q can know? | valid bound, Chernoff |
//! | `copied` | posteriors known, all or some? | a threshold; binomial |
//! | `order` | rows of other images, or certainty without knowledge? | permutation test |
//! | `classes`, `assignment` | columns of other classes? | gain on held-out images |
//!
//! Five tests share [`FALSE_ALARM`] by Bonferroni. The first two hold for every model that does not
//! know the labels: it raises an alarm of theirs with a probability of at most 1e-4. The others
//! test claims about what models are like: that their errors of log-odds have a smooth density,
//! that a fifth of what they claim to know is so, that no other order of the columns fits better
//! than other weights of the classes. A model that was fitted to noise may break the second one, so its
//! alarm says what else may be the matter. The labels themselves are tested against the posteriors first: where they
//! are not drawn from them, no result on them means anything, and the alarm says that instead.

use serde::{Deserialize, Serialize};

use self::classes::ClassOrder;
use self::copied::Copied;
use self::likelihood::Likelihood;
use self::order::Order;
use super::Truth;
use crate::error::Result;
use crate::measure::{PerImage, argmax};
use crate::units::Seed;

mod assignment;
pub mod classes;
pub mod copied;
mod hits;
pub mod likelihood;
pub mod order;
#[cfg(test)]
mod tests;

/// Probability that a model that does not know the labels raises an alarm for hits or likelihood.
pub const FALSE_ALARM: f64 = 1e-4;
/// Tests that share it.
const TESTS: f64 = 5.0;
/// Level of each of them.
pub const LEVEL: f64 = FALSE_ALARM / TESTS;
/// What explains labels that are known too well. Exports of one seed and size have the same labels at every τ, as far as the prior
/// lets them: who answers for the images of a sharper one knows them.
const LABELS_KNOWN: &str = "Test labels were seen, or these are predictions for another export of the same seed, which has the same \
                            labels at another τ";
/// log p of a label whose probability is 0 in f64.
const LOG_ZERO: f64 = -745.0;
/// Smaller p-values and bounds are not told apart: tails of hits are right down to here.
pub(super) const LEAST: f64 = 1e-280;

/// What an alarm is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AlarmKind {
    /// More drawn labels are hit than a decision that does not know them can hit.
    TooManyHits,
    /// The drawn labels are more likely under q than a model that does not know them can make them.
    LabelsTooLikely,
    /// q equals the exact posteriors beyond what can be learned.
    KnowsPosteriors,
    /// The rows are as good on shuffled images, and claim to be better.
    WrongOrder,
    /// A permutation of the columns explains the predictions far better.
    WrongClasses,
    /// The dataset's labels are not drawn from its posteriors: nothing on them can be judged.
    LabelsDoNotFit,
}

/// One alarm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// What it is about.
    pub kind: AlarmKind,
    /// Probability of so extreme a result where its test's claim holds (see this module); absent for a threshold.
    pub p_value: Option<f64>,
    /// What was found, and what may explain it.
    pub message: String,
}

/// Hits of the drawn labels and their possible number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hits {
    /// Images whose decision is the drawn label.
    pub hits: usize,
    /// Their expected number given the images, Σ p_i(argmax q_i).
    pub expected: f64,
    /// The expected number of the Bayes decision, Σ max p_i.
    pub bayes: f64,
    /// Exact probability of so many hits or more.
    pub p_value: f64,
}

/// Whether the drawn labels of a dataset fit its posteriors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabelCheck {
    /// Bound of the probability of labels this far from the posteriors on either side, by hits of
    /// the Bayes decision and by log p(label); four tails, Bonferroni.
    pub p_value: f64,
    /// Mean log p(label), nats.
    pub drawn: f64,
    /// Its expectation, −A, nats.
    pub expected: f64,
}

/// All tests of one model, and the alarms they raised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examined {
    /// Level of each test.
    pub level: f64,
    /// Hits of drawn labels.
    pub hits: Hits,
    /// Likelihood of drawn labels.
    pub likelihood: Likelihood,
    /// Distance to the posteriors.
    pub copied: Copied,
    /// Order of the rows.
    pub order: Order,
    /// Order of the columns.
    pub classes: ClassOrder,
    /// The alarms.
    pub alarms: Vec<Alarm>,
}

impl Hits {
    fn of(images: &PerImage) -> Self {
        let hits = (0..images.len()).filter(|&i| images.hit(i)).count();
        let (expected, bayes) = (images.expected.iter().sum(), images.best.iter().sum());
        Self { hits, expected, bayes, p_value: hits::upper_tail(&images.expected, hits) }
    }
}

impl LabelCheck {
    /// Tests the labels of `truth` against its posteriors.
    pub fn of(truth: &Truth) -> Self {
        let (p, k) = (&truth.posterior, truth.classes);
        let decisions: Vec<usize> = p.chunks(k).map(argmax).collect();
        let best: Vec<f64> = p.chunks(k).zip(&decisions).map(|(row, &d)| row[d]).collect();
        let hits = decisions.iter().zip(&truth.labels).filter(|(d, y)| d == y).count();
        let log_p: Vec<f64> = p.iter().map(|p| p.ln().max(LOG_ZERO)).collect();
        let minus: Vec<f64> = log_p.iter().map(|l| -l).collect();
        let (above, below) =
            (likelihood::test(p, &log_p, &truth.labels, k), likelihood::test(p, &minus, &truth.labels, k));
        let tails = [hits::upper_tail(&best, hits), hits::lower_tail(&best, hits), above.p_value, below.p_value];
        let least = tails.into_iter().fold(1.0, f64::min);
        Self { p_value: (4.0 * least).min(1.0), drawn: above.drawn, expected: above.expected }
    }

    /// Returns whether such labels occur more often than once in 10,000 datasets.
    pub fn fits(&self) -> bool {
        self.p_value > FALSE_ALARM
    }
}

/// Bound of the probability that a classifier that does not know the drawn labels hits as many, or makes them as likely, as
/// one with these finite, normalised `log_q` [n, K] and their `images`; labels are drawn from `p` [n, K]. Twice the
/// smaller of both p-values (Bonferroni).
pub fn label_chance(p: &[f64], log_q: &[f64], images: &PerImage) -> f64 {
    let likelihood = likelihood::test(p, log_q, &images.label, images.classes);
    (2.0 * Hits::of(images).p_value.min(likelihood.p_value)).min(1.0)
}

/// Steps of [`examine`].
pub(super) const STEPS: usize = 3 + order::STEPS;

/// Runs all tests of a model with finite, normalised `log_q` [n, K]; calls `step` [`STEPS`] times.
pub(super) fn examine(
    truth: &Truth,
    labels: &LabelCheck,
    log_q: &[f64],
    images: &PerImage,
    seed: Seed,
    step: &mut dyn FnMut() -> Result<()>,
) -> Result<Examined> {
    let (p, k) = (&truth.posterior, truth.classes);
    let q: Vec<f64> = log_q.iter().map(|log_q| log_q.exp()).collect();
    let hits = Hits::of(images);
    let likelihood = likelihood::test(p, log_q, &truth.labels, k);
    step()?;
    let copied = copied::test(p, log_q, k, truth.origin.label_noise.as_ref());
    step()?;
    let order = order::test(p, &q, &truth.labels, &truth.class_names, seed, step)?;
    let classes = classes::test(p, log_q, k);
    step()?;
    let mut examined = Examined { level: LEVEL, hits, likelihood, copied, order, classes, alarms: Vec::new() };
    examined.alarms = if labels.fits() { examined.of_labels() } else { vec![labels.alarm()] };
    let others = [examined.of_posteriors(), examined.of_pairing(truth)];
    examined.alarms.extend(others.into_iter().flatten());
    Ok(examined)
}

/// A bound of a p-value in words, at least [`LEAST`]: no p-value lies below 0.
fn below(bound: f64) -> String {
    format!("p < {:.1e}", bound.max(LEAST))
}

/// A p-value in words.
fn equal(p: f64) -> String {
    if p < LEAST { below(p) } else { format!("p = {p:.1e}") }
}

impl LabelCheck {
    fn alarm(&self) -> Alarm {
        Alarm {
            kind: AlarmKind::LabelsDoNotFit,
            p_value: Some(self.p_value),
            message: format!(
                "The labels of this dataset are not drawn from its posteriors: their mean log p is {:.4} nats where {:.4} is expected \
                 ({}). Errors and calibration against labels are not those of the world, and leaks of labels cannot be looked \
                 for; figures from the posteriors stand. Export the dataset again, or use the labels that came with it.",
                self.drawn,
                self.expected,
                below(self.p_value)
            ),
        }
    }
}

impl Examined {
    fn of_labels(&self) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        let Self { hits, likelihood, .. } = self;
        if hits.p_value < self.level {
            alarms.push(Alarm {
                kind: AlarmKind::TooManyHits,
                p_value: Some(hits.p_value),
                message: format!(
                    "{} drawn labels are hit. Decisions like these hit {:.1} unless they know the labels ({}); the Bayes decision, \
                     which no classifier beats, hits {:.1}. {LABELS_KNOWN}. Look for test images among the training images, for training \
                     on the test file, and at the folder whose images the model was given.",
                    hits.hits,
                    hits.expected,
                    equal(hits.p_value),
                    hits.bayes
                ),
            });
        }
        if likelihood.p_value < self.level {
            alarms.push(Alarm {
                kind: AlarmKind::LabelsTooLikely,
                p_value: Some(likelihood.p_value),
                message: format!(
                    "The cross-entropy on drawn labels is {:.4} nats; these predictions have {:.4} unless they know the labels (z = {:.1}, \
                     {}). {LABELS_KNOWN}.",
                    -likelihood.drawn,
                    -likelihood.expected,
                    likelihood.z,
                    below(likelihood.p_value)
                ),
            });
        }
        alarms
    }

    fn of_posteriors(&self) -> Option<Alarm> {
        let Copied { telling, median, near, copied, p_value } = self.copied;
        let (p_value, found) = if self.copied.nearly_all() {
            let median = median.unwrap_or(0.0);
            (None, format!("the median error of its log-odds is {median:.1e} over {telling} uncertain images"))
        } else if p_value < self.level {
            let found = format!(
                "{copied} of {telling} uncertain images have the exact log-odds to 1e-5, of {near} within 1e-3 ({})",
                equal(p_value)
            );
            (Some(p_value), found)
        } else {
            return None;
        };
        let message = format!(
            "It knows the exact posteriors: {found}. No training on labels reaches that; posteriors of test images were seen, or \
             this is the world itself."
        );
        Some(Alarm { kind: AlarmKind::KnowsPosteriors, p_value, message })
    }

    fn of_pairing(&self, truth: &Truth) -> Option<Alarm> {
        if self.classes.p_value < self.level && self.classes.explains() {
            let ClassOrder { column_of, given, permuted, reweighted, p_value, .. } = &self.classes;
            let moved = column_of.iter().enumerate().filter(|(class, column)| class != *column);
            let moved: Vec<String> = moved
                .map(|(class, column)| format!("column {column} looks like {}", truth.class_names[class]))
                .collect();
            let more = if moved.len() > 10 { format!(" and {} more", moved.len() - 10) } else { String::new() };
            let message = format!(
                "The columns seem to be in another order of classes: {}{more}. So permuted the epistemic KL is {permuted:.4} nats, not \
                 {given:.4} ({:.4} with the best weights of the classes), on images the permutation was not chosen on. It was not \
                 applied: name the columns.",
                moved.iter().take(10).cloned().collect::<Vec<_>>().join(", "),
                reweighted.unwrap_or(*given)
            );
            return Some(Alarm { kind: AlarmKind::WrongClasses, p_value: Some(*p_value), message });
        }
        let Order { z, p_value, suggestion, agreement, claim, shuffled, .. } = &self.order;
        if *p_value >= self.level {
            return None;
        }
        let (or, tried) = suggestion.map_or_else(
            || {
                (
                    ", or it is sure of what it does not know",
                    "No usual order fits better. Give ids with the predictions.".into(),
                )
            },
            |order| {
                ("", format!("They look {}. Nothing was rearranged: give ids with the predictions.", order.describe()))
            },
        );
        let message = format!(
            "The rows seem to be of other images{or}: they agree with these to {agreement:.4}, with shuffled ones to {shuffled:.4} ({z:.1} \
             spreads), but claim {:.4}. {tried}",
            shuffled + claim
        );
        Some(Alarm { kind: AlarmKind::WrongOrder, p_value: Some(*p_value), message })
    }
}
