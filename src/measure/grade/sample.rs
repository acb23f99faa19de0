//! A labelled sample, checked once.

use crate::error::{Error, Result};
use crate::units::ClassId;

/// Most samples: the table of their distances takes 4 N² bytes, 1 GiB for so many.
pub const MOST: usize = 16_384;

/// Features and labels of N samples.
#[derive(Debug, Clone)]
pub struct Sample<'a> {
    /// Features [N, D].
    pub(super) features: &'a [f32],
    /// Labels [N].
    pub(super) labels: &'a [ClassId],
    /// Features D of a sample.
    pub(super) dim: usize,
    /// Samples of each class [K], none of them 0.
    pub(super) counts: Vec<usize>,
}

impl<'a> Sample<'a> {
    /// `features` [N, D], and N `labels` below `classes`. Of samples at equal distances the earlier
    /// counts as nearer: with many exact duplicates, give the samples in random order.
    ///
    /// # Errors
    /// When shapes do not match; fewer than two classes, fewer than two samples or more than
    /// [`MOST`]; a class without samples, a label that is no class, a feature that is not finite.
    pub fn new(features: &'a [f32], dim: usize, labels: &'a [ClassId], classes: usize) -> Result<Self> {
        let n = labels.len();
        if dim == 0 || features.len() != n * dim {
            let numbers = features.len();
            return Err(Error::input(format!("{n} samples of {dim} features need {} numbers, not {numbers}", n * dim)));
        }
        if classes < 2 {
            return Err(Error::input(format!("a Bayes error needs at least two classes, not {classes}")));
        }
        if !(2..=MOST).contains(&n) {
            return Err(Error::input(format!("estimators of the Bayes error take 2 to {MOST} samples, not {n}")));
        }
        if let Some(at) = features.iter().position(|x| !x.is_finite()) {
            let (value, row, column) = (features[at], at / dim, at % dim);
            return Err(Error::Numeric(format!("sample {row}: its feature {column} is {value}, not a finite number")));
        }
        let mut counts = vec![0; classes];
        for (i, &label) in labels.iter().enumerate() {
            let count = counts.get_mut(label);
            *count.ok_or_else(|| {
                Error::input(format!("sample {i}: its label {label} is none of {classes} classes"))
            })? += 1;
        }
        if let Some(empty) = counts.iter().position(|&count| count == 0) {
            return Err(Error::input(format!(
                "class {empty} has no sample: draw more, or count classes without it (bounds depend on their number)"
            )));
        }
        Ok(Self { features, labels, dim, counts })
    }

    /// Samples N.
    pub fn n(&self) -> usize {
        self.labels.len()
    }

    /// Classes K.
    pub fn classes(&self) -> usize {
        self.counts.len()
    }

    /// The samples of each class, in order.
    pub(super) fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.classes()];
        for (i, &label) in self.labels.iter().enumerate() {
            members[label].push(i);
        }
        members
    }

    /// Which half each sample is in, 0 or 1: in turn within each class, so that both hold all
    /// classes however the sample is ordered.
    pub(super) fn halves(&self) -> Vec<usize> {
        let mut seen = vec![0; self.classes()];
        let half = |&label: &ClassId| {
            seen[label] += 1;
            (seen[label] - 1) % 2
        };
        self.labels.iter().map(half).collect()
    }
}
