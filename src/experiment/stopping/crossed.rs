//! What a chosen epoch gives away, measured on other test images than those on which the best one is found.
//!
//! The least of several means over the same images is lower than the mean of any of them will be on other images, so that
//! a difference to it is too large. The best epoch is therefore found on one half of the blocks of test images and measured
//! on the other, each half in turn: cross-fitting (Chernozhukov et al. 2018, *Econometrics Journal* 21:C1). The halves share
//! no image. The expectation is the regret against an epoch that is found on half of the test images, no more than that
//! against the best of all looked at.
//!
//! The upper end must not trust what was found. Regret is the most by which any epoch is better than the chosen one, and is
//! at most the largest upper end of all these differences, in 97.5 % (multiple comparisons with the best: Hsu 1984, *Annals
//! of Statistics* 12:1136).

use crate::experiment::blocks::Difference;
use crate::experiment::validated::Validated;
use crate::measure::student_mean;

/// An epoch beside the best one, under one seed.
pub(super) struct Crossed {
    /// KL at the chosen epoch less KL at the best one, nats; may be a little below 0.
    pub regret: Difference,
    /// The same as a share of KL at the best one; absent where that is 0.
    pub relative: Option<Difference>,
    /// KL at the best one, nats, with its blocks.
    pub best: Difference,
    /// How far the upper end of what the epoch may give away lies above the regret, over test images, nats.
    pub above: f64,
}

impl Crossed {
    /// Of an epoch among those that were looked at. Cells of a version before 2026-11-26 know no blocks, and a single image
    /// has no halves: there the best epoch is found where it is measured. None without an epoch.
    pub fn of(epochs: &[Validated], chosen: &Validated) -> Option<Self> {
        Self::on_halves(epochs, chosen).or_else(|| {
            let least = epochs.iter().map(|epoch| epoch.epistemic).min_by(f64::total_cmp)?;
            let regret = Difference::bare(chosen.epistemic - least);
            Some(Self::over(regret, Difference::bare(least), 0.0))
        })
    }

    fn on_halves(epochs: &[Validated], chosen: &Validated) -> Option<Self> {
        let of = |epoch: &Validated| Some(epoch.blocks.as_ref()?.means());
        let (own, each) = (of(chosen)?, epochs.iter().map(of).collect::<Option<Vec<_>>>()?);
        if own.len() < 2 || each.iter().any(|other| other.len() != own.len()) {
            return None;
        }
        let sum = |blocks: &[f64], half: usize| blocks.iter().skip(half).step_by(2).sum::<f64>();
        let found = |half: usize| each.iter().min_by(|a, b| sum(a, half).total_cmp(&sum(b, half)));
        let found = [found(0)?, found(1)?];
        // Blocks of one half are compared with what the other one found.
        let least: Vec<f64> = (0..own.len()).map(|block| found[(block + 1) % 2][block]).collect();
        let less = |other: &[f64]| own.iter().zip(other).map(|(own, other)| own - other).collect::<Vec<f64>>();
        let regret = Difference::of_blocks(less(&least));
        let upper = each.iter().map(|other| {
            let (value, half) = student_mean(&less(other));
            value + half
        });
        let above = upper.fold(0.0, f64::max) - regret.value;
        Some(Self::over(regret, Difference::of_blocks(least), above))
    }

    fn over(regret: Difference, best: Difference, above: f64) -> Self {
        let relative = (best.value > 0.0).then(|| regret.over(&best));
        Self { regret, relative, best, above }
    }
}
