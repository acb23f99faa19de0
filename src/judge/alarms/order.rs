//! Do the predictions belong to these images?
//!
//! The agreement of row j of the classifier with image i is Σ_y p_i(y) q_j(y): the probability that
//! a label drawn from one equals a label drawn from the other. Over the given pairing it is S =
//! mean Σ p_i q_i; over shuffled ones (permutation test, Pitman 1937) it is Σ p̄ q̄ on average,
//! with a spread taken from seeded shuffles. If the classifier were right about what it knows (p =
//! q) it would be mean Σ q_i². The *signal* is S − Σ p̄ q̄, the *claim* mean Σ q_i² − Σ q̄².
//!
//! A classifier that learned little claims little or is far above shuffled; one with reordered rows
//! claims much and is as good as shuffled. The alarm needs both: no more than 4 spreads above
//! shuffled, and significantly below a fifth of the claim (normal, one-sided; terms are in [0, 1],
//! so tails are light). A network that was fitted to a few noisy labels claims much and knows little,
//! too: where no usual order fits better, the alarm says so. Agreement is used rather than likelihood, since single values of log q may
//! outweigh all others.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::error::Result;
use crate::units::Seed;

/// Shuffled pairings.
const SHUFFLES: usize = 200;
/// Steps that [`test`] reports, each after an equal number of shuffles.
pub(super) const STEPS: usize = 20;
/// Spreads above shuffled that are a signal.
const SIGNAL: f64 = 4.0;
/// Spreads above shuffled that another order must reach to be suggested.
const SUGGESTED: f64 = 6.0;
/// Share of its claim that a classifier holds unless its rows are mixed up, or it is sure of nothing it knows.
const HONEST: f64 = 0.2;

/// How well rows of predictions agree with the images they are said to be of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// mean Σ_y p_i(y) q_i(y) of the given pairing.
    pub agreement: f64,
    /// The same of shuffled pairings, on average: Σ_y p̄(y) q̄(y).
    pub shuffled: f64,
    /// What the given pairing would have above shuffled if q were right: mean Σ q_i² − Σ q̄².
    pub claim: f64,
    /// Spreads of shuffled pairings that the given one is above their average.
    pub z: f64,
    /// Share of shuffled pairings that agree at least as well.
    pub as_good: f64,
    /// Probability of a signal this low if a fifth of the claim were true.
    pub p_value: f64,
    /// An order that would explain the predictions.
    pub suggestion: Option<Rearranged>,
}

/// An order of files that people get by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rearranged {
    /// By folders of class names, as torchvision's ImageFolder lists exported PNGs.
    ByClassFolder,
    /// The last image first.
    Reversed,
    /// Row j is of image j + 1: the first is missing.
    OneLate,
    /// Row j is of image j − 1.
    OneEarly,
}

impl Rearranged {
    const ALL: [Self; 4] = [Self::ByClassFolder, Self::Reversed, Self::OneLate, Self::OneEarly];

    /// How the rows are ordered, for the message of the alarm.
    pub fn describe(self) -> &'static str {
        match self {
            Self::ByClassFolder => "sorted by the folders of the class names, as torchvision's ImageFolder lists them",
            Self::Reversed => "in reversed order",
            Self::OneLate => "shifted by one: row j is of image j + 1",
            Self::OneEarly => "shifted by one: row j is of image j − 1",
        }
    }

    /// The image of each row.
    fn images(self, labels: &[usize], class_names: &[String]) -> Vec<usize> {
        let n = labels.len();
        match self {
            Self::ByClassFolder => {
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| class_names[labels[a]].cmp(&class_names[labels[b]]));
                order
            }
            Self::Reversed => (0..n).rev().collect(),
            Self::OneLate => (1..=n).map(|i| i % n).collect(),
            Self::OneEarly => (0..n).map(|i| (i + n - 1) % n).collect(),
        }
    }
}

/// Tests the pairing of `q` and `p` [n, K]; labels suggest orders. Calls `step` [`STEPS`] times.
pub(super) fn test(
    p: &[f64],
    q: &[f64],
    labels: &[usize],
    class_names: &[String],
    seed: Seed,
    step: &mut dyn FnMut() -> Result<()>,
) -> Result<Order> {
    let (n, classes) = (labels.len(), class_names.len());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let row = |i: usize| i * classes..(i + 1) * classes;
    let agree = |i: usize, j: usize| dot(&p[row(i)], &q[row(j)]);
    let paired = |images: &[usize]| images.iter().enumerate().map(|(j, &i)| agree(i, j)).sum::<f64>() / n as f64;
    let (p_mean, q_mean) = (means(p, classes), means(q, classes));
    let given: Vec<usize> = (0..n).collect();
    let (agreement, shuffled) = (paired(&given), dot(&p_mean, &q_mean));
    let claim = dot(q, q) / n as f64 - dot(&q_mean, &q_mean);
    let mut rng = seed.split("shuffled pairings").rng(0);
    let mut order = given.clone();
    let mut draws = Vec::with_capacity(SHUFFLES);
    for shuffle in 1..=SHUFFLES {
        order.shuffle(&mut rng);
        draws.push(paired(&order));
        if shuffle % (SHUFFLES / STEPS) == 0 {
            step()?;
        }
    }
    let spread = (draws.iter().map(|d| (d - shuffled).powi(2)).sum::<f64>() / SHUFFLES as f64).sqrt();
    let terms = given.iter().map(|&i| (agree(i, i) - agreement).powi(2)).sum::<f64>() / n as f64;
    let error = spread.max((terms / n as f64).sqrt());
    let signal = agreement - shuffled;
    let known = spread > f64::EPSILON && claim > f64::EPSILON;
    let z = if known { signal / spread } else { 0.0 };
    let p_value = if known && z <= SIGNAL { Normal::standard().cdf((signal - HONEST * claim) / error) } else { 1.0 };
    let explains = |one: &Rearranged| {
        let signal = paired(&one.images(labels, class_names)) - shuffled;
        known && signal > HONEST * claim && signal > SUGGESTED * spread
    };
    let suggestion = Rearranged::ALL.into_iter().filter(|_| p_value < 1.0).find(explains);
    let as_good = draws.iter().filter(|draw| **draw >= agreement).count() as f64 / SHUFFLES as f64;
    Ok(Order { agreement, shuffled, claim, z, as_good, p_value, suggestion })
}

fn means(rows: &[f64], classes: usize) -> Vec<f64> {
    let mut mean = vec![0.0; classes];
    for row in rows.chunks(classes) {
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let n = (rows.len() / classes.max(1)).max(1) as f64;
    mean.iter_mut().for_each(|sum| *sum /= n);
    mean
}
