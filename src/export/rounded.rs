//! What 8 bits do to posteriors: pixels are rounded and clipped as in any picture, brought back into the world by its documented
//! preprocessing, and their posteriors computed anew.

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Work;
use super::pieces::{average, doubt, estimates};
use crate::data::{Column, Stored, write_table};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::flow::preprocess::Dequantisation;
use crate::measure::Estimate;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::Sample;
use crate::units::ClassId;

/// The columns of the numbers beside 8-bit images: running number, drawn label, posterior of the pixels, log p(x|y) in nats, H in nats,
/// and KL(p‖p₈) in nats of the image's own posterior p from that of its rounded pixels p₈.
pub(super) const COLUMNS: [(&str, Stored); 6] = [
    ("id", Stored::I64),
    ("y", Stored::I64),
    ("posterior", Stored::F32),
    ("logp", Stored::F64),
    ("aleatoric", Stored::F64),
    ("drift", Stored::F64),
];

/// The columns as they are written, for K classes.
pub(super) fn columns(classes: usize) -> Vec<Column> {
    let row = |name: &str| if ["posterior", "logp"].contains(&name) { vec![classes] } else { Vec::new() };
    COLUMNS.iter().map(|&(name, stored)| Column { name, stored, shape: row(name) }).collect()
}

/// Images as 8-bit pixels, and what they say.
pub(super) struct Rounded {
    /// 0..=255, NCHW.
    pub pixels: Vec<u8>,
    ids: Range<usize>,
    labels: Vec<ClassId>,
    posteriors: Vec<Posterior>,
    /// KL(p‖p₈), nats.
    drift: Vec<f64>,
}

/// How pixels become world-space x again.
fn dequantisation(work: &Work<'_>) -> Dequantisation {
    work.world.flow().pixels().default_dequantisation()
}

impl Rounded {
    /// Rounds consecutive samples.
    pub fn of(work: &Work<'_>, samples: &[Sample], events: &mut dyn Events<Progress>) -> Result<Self> {
        let (world, settings) = (work.world, &work.spec.settings);
        let (preprocessing, dims) = (world.flow().pixels(), world.shape().dims());
        let first = samples.first().map_or(0, |sample| sample.index);
        let pixels: Vec<u8> = samples.iter().flat_map(|sample| preprocessing.picture(&sample.x)).collect();
        let x = preprocessing.map_in(&pixels, dims, first, dequantisation(work));
        let scores = world.score(&x, events)?;
        let posteriors: Vec<Posterior> = (0..samples.len()).map(|i| world.posterior(&scores, i, settings)).collect();
        let drift = samples.iter().zip(&posteriors).map(|(sample, eight)| kl(&sample.posterior, eight)).collect();
        let labels = samples.iter().map(|sample| sample.label).collect();
        Ok(Self { pixels, ids: first..first + samples.len(), labels, posteriors, drift })
    }

    /// Keeps the numbers.
    pub fn write(&self, path: &Path) -> Result<()> {
        let Self { ids, labels, posteriors, drift, .. } = self;
        let classes = posteriors.first().map_or(0, |posterior| posterior.probabilities.len());
        write_table(path, ids.len(), &columns(classes), &mut |column, rows| {
            let of = &posteriors[rows.clone()];
            Ok(match COLUMNS[column].0 {
                "id" => rows.map(|i| (ids.start + i) as f64).collect(),
                "y" => labels[rows].iter().map(|&label| label as f64).collect(),
                "posterior" => of.iter().flat_map(|p| p.probabilities.iter().copied()).collect(),
                "logp" => of.iter().flat_map(|p| p.log_likelihood.iter().copied()).collect(),
                "aleatoric" => of.iter().map(|p| p.entropy_nats).collect(),
                _ => drift[rows].to_vec(),
            })
        })
    }
}

/// KL(p‖q), nats.
fn kl(p: &Posterior, q: &Posterior) -> f64 {
    let terms = p.probabilities.iter().zip(&p.log_probabilities).zip(&q.log_probabilities);
    terms.filter(|((p, _), _)| **p > 0.0).map(|((p, log_p), log_q)| p * (log_p - log_q)).sum::<f64>().max(0.0)
}

/// How far the posteriors of 8-bit pixels are from those of the images they were rounded from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// How pixels were brought back into the world.
    pub dequantisation: Dequantisation,
    /// Mean KL(p‖p₈), nats.
    pub kl_nats: Estimate,
    /// Largest KL(p‖p₈), nats.
    pub largest_kl_nats: f64,
    /// Images whose Bayes decision is another one.
    pub decisions_changed: usize,
    /// Mean of 1 − max p₈.
    pub bayes_error: Estimate,
    /// Mean H(p₈), nats.
    pub aleatoric_nats: Estimate,
    #[serde(skip)]
    values: Values,
}

/// Figures of each image.
#[derive(Debug, Clone, Default, PartialEq)]
struct Values {
    kl: Vec<f64>,
    doubts: Vec<f64>,
    entropies: Vec<f64>,
}

impl Drift {
    /// Of no image yet.
    pub(super) fn new(work: &Work<'_>) -> Self {
        let nothing = average(&[]);
        Self {
            dequantisation: dequantisation(work),
            kl_nats: nothing,
            largest_kl_nats: 0.0,
            decisions_changed: 0,
            bayes_error: nothing,
            aleatoric_nats: nothing,
            values: Values::default(),
        }
    }

    /// Adds a piece: its posteriors before and after rounding.
    pub(super) fn add(&mut self, before: &[Posterior], after: &[Posterior], drift: &[f64]) {
        self.decisions_changed += before.iter().zip(after).filter(|(a, b)| a.decision != b.decision).count();
        self.values.kl.extend(drift);
        self.values.doubts.extend(after.iter().map(doubt));
        self.values.entropies.extend(after.iter().map(|posterior| posterior.entropy_nats));
    }

    /// The figures of all.
    pub(super) fn finish(mut self, classes: usize) -> Self {
        let Values { kl, doubts, entropies } = std::mem::take(&mut self.values);
        self.largest_kl_nats = kl.iter().copied().fold(0.0, f64::max);
        self.kl_nats = average(&kl);
        [self.bayes_error, self.aleatoric_nats] = estimates(&doubts, &entropies, classes);
        self
    }
}
