//! What rounding x to 32 bits does to posteriors that were computed before it (shared-map worlds).

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::events::{Events, Progress};
use crate::oracle::world::{Sample, Settings, World};

/// A sample whose posterior moves by more than this when x is rounded to 32 bits is counted as not
/// carried by its x.
pub const ROUNDING_TOLERANCE: f64 = 1e-3;

/// How many images do not carry their posterior.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rounding {
    /// Images looked at.
    pub images: usize,
    /// Images whose posterior, computed again from x as rounded to 32 bits, moves by more than
    /// 10⁻³: the numbers beside them are those of the image before rounding.
    pub rounded: usize,
    /// Largest such move.
    pub max_drift: f64,
}

impl Rounding {
    /// Counts images whose posteriors move so far.
    pub fn add(&mut self, drifts: &[f64]) {
        self.images += drifts.len();
        self.rounded += drifts.iter().filter(|drift| **drift > ROUNDING_TOLERANCE).count();
        self.max_drift = drifts.iter().copied().fold(self.max_drift, f64::max);
    }

    /// Those of other images too.
    pub fn merge(&mut self, other: &Self) {
        self.images += other.images;
        self.rounded += other.rounded;
        self.max_drift = self.max_drift.max(other.max_drift);
    }

    /// In words, where there is something to say.
    pub fn describe(&self) -> Option<String> {
        (self.rounded > 0).then(|| Self::sentence(&self.count("images")))
    }

    /// How many of which, and how far at most.
    pub fn count(&self, which: &str) -> String {
        let Self { images, rounded, max_drift } = self;
        format!("{rounded} of {images} {which} (at most {max_drift:.3})")
    }

    /// What is said of those that were counted.
    pub fn sentence(counted: &str) -> String {
        format!(
            "posteriors computed again from the stored 32-bit x differ by more than {ROUNDING_TOLERANCE} for {counted}, where \
             pixels saturate"
        )
    }
}

impl World {
    /// How far the posterior of each sample moves, in its largest component, when it is computed
    /// again from x as rounded to 32 bits. Large where pixels saturate (high τ): there the logit
    /// map turns the last bit of x into whole units.
    ///
    /// # Errors
    /// When the device fails.
    pub fn rounding(&self, samples: &[Sample], settings: &Settings) -> Result<Vec<f64>> {
        let x: Vec<f32> = samples.iter().flat_map(|sample| sample.x.iter().copied()).collect();
        let before: Vec<f64> =
            samples.iter().flat_map(|sample| sample.posterior.probabilities.iter().copied()).collect();
        self.drifts(&x, &before, settings)
    }

    /// [`Self::rounding`] of images `x` (NCHW) with their posteriors `before` [N, K], counted,
    /// batch after batch.
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn rounded(
        &self,
        x: &[f32],
        before: &[f64],
        settings: &Settings,
        events: &mut dyn Events<Progress>,
    ) -> Result<Rounding> {
        let (dims, k) = (self.shape().dims(), self.class_names().len());
        let (mut found, total) = (Rounding::default(), x.len() / dims);
        for (x, before) in x.chunks(self.batch() * dims).zip(before.chunks(self.batch() * k)) {
            found.add(&self.drifts(x, before, settings)?);
            events.report(Progress { done: found.images, total })?;
        }
        Ok(found)
    }

    fn drifts(&self, x: &[f32], before: &[f64], settings: &Settings) -> Result<Vec<f64>> {
        let posteriors = before.chunks_exact(self.class_names().len());
        if self.flow().shared_base().is_none() {
            // Their posteriors were computed from x as it is.
            return Ok(vec![0.0; posteriors.len()]);
        }
        let scores = self.flow().score(x)?;
        let again = (0..scores.len()).map(|i| self.posterior(&scores, i, settings).probabilities);
        let moved = |(again, before): (Vec<f64>, &[f64])| {
            again.iter().zip(before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        Ok(again.zip(posteriors).map(moved).collect())
    }
}
