//! Reliability diagram and calibration error (Naeini et al. 2015; Guo et al. 2017), against drawn
//! labels and against the exact posterior.
//!
//! ECE = Σ_b (n_b/n)·|mean confidence − hit rate| = Σ_b |d_b|, d_b = (1/n) Σ_{i in bin b}
//! (confidence_i − hit_i); the exact calibration error has p_i(argmax q_i) in place of the hit. A
//! sum of absolute values is biased upwards: a perfectly calibrated classifier has ECE > 0 on every
//! finite set, as an exact error unless q = p, and a bootstrap of ECE itself doubles that bias, so that its percentile interval can
//! miss the truth with certainty. The interval here is drawn around the d_b instead. Where hardly any
//! image shows a miss (or a hit; or, of the exact error, a confidence that is off by more than 0.1), it holds what images that were not seen may add: a sure
//! classifier that is right on every image of a small set would have no width.

use serde::{Deserialize, Serialize};

use super::bootstrap::{of_few, quantile, with_unseen};
use super::images::PerImage;
use super::interval::{Estimate, Interval, SHARE};

/// What captions say of ECE and the exact calibration error.
pub const BIASED: &str = "Neither calibration error falls to 0 on a finite set, even for a calibrated classifier (the exact one for \
                          q = p alone): with few images both are too large.";
/// Equal-width bins of the confidence max_y q(y|x) over [0, 1].
pub const BINS: usize = 15;

/// One bin of a reliability diagram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Confidences in this bin are larger than this …
    pub low: f64,
    /// … and at most this.
    pub high: f64,
    /// Images in it, at least one.
    pub count: usize,
    /// Mean confidence of these images.
    pub mean_confidence: f64,
    /// Share of them whose decision is the drawn label, with its Wilson interval.
    pub hit_rate: Estimate,
    /// Mean exact probability p(argmax q): the hit rate without the noise of the labels.
    pub exact_rate: f64,
}

/// A reliability diagram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// Those of the [`BINS`] bins that hold images, by rising confidence.
    pub bins: Vec<Bin>,
}

/// The bin of a confidence in (0, 1]: bins are closed above, as Guo et al. have them.
pub(super) fn bin_of(confidence: f64) -> usize {
    ((confidence * BINS as f64).ceil() as usize).clamp(1, BINS) - 1
}

impl Reliability {
    /// The diagram of `images`.
    pub fn of(images: &PerImage) -> Self {
        let mut members = vec![Vec::new(); BINS];
        for (i, &confidence) in images.confidence.iter().enumerate() {
            members[bin_of(confidence)].push(i);
        }
        let filled = members.iter().enumerate().filter(|(_, members)| !members.is_empty());
        Self { bins: filled.map(|(bin, members)| Bin::of(images, bin, members)).collect() }
    }

    /// Expected calibration error against drawn labels.
    pub fn ece(&self) -> f64 {
        self.mean(|bin| (bin.mean_confidence - bin.hit_rate.value).abs())
    }

    /// The same against exact posteriors.
    pub fn exact_calibration_error(&self) -> f64 {
        self.mean(|bin| (bin.mean_confidence - bin.exact_rate).abs())
    }

    fn mean(&self, f: impl Fn(&Bin) -> f64) -> f64 {
        let n: usize = self.bins.iter().map(|bin| bin.count).sum();
        self.bins.iter().map(|bin| bin.count as f64 * f(bin)).sum::<f64>() / n.max(1) as f64
    }
}

impl Bin {
    fn of(images: &PerImage, bin: usize, members: &[usize]) -> Self {
        let mean = |values: &[f64]| members.iter().map(|&i| values[i]).sum::<f64>() / members.len() as f64;
        Self {
            low: bin as f64 / BINS as f64,
            high: (bin + 1) as f64 / BINS as f64,
            count: members.len(),
            mean_confidence: mean(&images.confidence),
            hit_rate: Estimate::proportion(members.iter().filter(|&&i| images.hit(i)).count(), members.len()),
            exact_rate: mean(&images.expected),
        }
    }
}

/// The 95 % interval of Σ_b |d_b| of `n` images from replicates d*, each 2.5 % tail bounded:
/// * above, |d_b| = s_b·d_b ≤ |d̂_b| + s_b·(d_b − d̂_b): only a signed sum must be bounded;
/// * below, |d_b| ≥ |d̂_b| − s_b·(d̂_b − d_b) in bins whose sign s_b is certain (|d̂_b| > √(ln n)
///   standard errors, Andrews & Soares 2010), and |d_b| ≥ |d̂_b| − |d̂_b − d_b| in all others.
///
/// Errors d̂ − d are bootstrapped by d* − d̂. Reaches 0 for a calibrated classifier. Widened for few images ([`of_few`]) and,
/// where fewer than 30 were `seen` to be of the rarer kind, by the share of images that may be of it ([`with_unseen`]).
pub(super) fn l1_interval(d: &[f64; BINS], replicates: &[[f64; BINS]], n: usize, seen: usize) -> Estimate {
    let value: f64 = d.iter().map(|d| d.abs()).sum();
    let selection = (n.max(2) as f64).ln().sqrt();
    let count = replicates.len().max(1) as f64;
    let sure: [bool; BINS] = std::array::from_fn(|b| {
        let variance = replicates.iter().map(|r| (r[b] - d[b]).powi(2)).sum::<f64>() / count;
        d[b].abs() > selection * variance.sqrt()
    });
    let bound = |error_of: &dyn Fn(usize, f64) -> f64| {
        let mut errors: Vec<f64> =
            replicates.iter().map(|r| (0..BINS).map(|b| error_of(b, r[b] - d[b])).sum()).collect();
        errors.sort_unstable_by(f64::total_cmp);
        quantile(&errors, 0.975)
    };
    let below = bound(&|b, error| if sure[b] { d[b].signum() * error } else { error.abs() });
    let above = bound(&|b, error| -d[b].signum() * error);
    let resampled = Estimate::new(value, Interval { low: value - below, high: value + above });
    // An image of another kind moves its d_b by up to 1/n, up or down: so may a share of them move the sum by all of it.
    let widened = with_unseen(of_few(resampled, n, SHARE), n, seen, [value - 1.0, value + 1.0]);
    Estimate::new(value, widened.interval.within(SHARE))
}

#[cfg(test)]
mod tests;
