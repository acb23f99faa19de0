//! What the finished cells say of calibrators and of estimators, over seeds.

use serde::{Deserialize, Serialize};

use super::run::{Calibrated, EstimatedEce, Recalibrated};
use crate::classifier::{Architecture, Labels};
use crate::experiment::bayes_gap::Who;
use crate::experiment::cell::CellResult;
use crate::experiment::repeats::{NATS, Repeats, SHARE, SeedGain, SeedMean, distinct, provenance, repeats};
use crate::experiment::spec::ExperimentSpec;
use crate::measure::{Calibration, EceEstimator, Estimate};

/// What all cells say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationGrades {
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// The networks of the plan.
    pub architectures: Vec<Architecture>,
    /// Every classifier as it is and by every method at every n, in the order of the plan.
    pub calibrators: Vec<GradedCalibrator>,
    /// Every estimator at every n, likewise.
    pub estimators: Vec<GradedEce>,
}

/// A calibrator on n labels, over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradedCalibrator {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub told: Labels,
    /// Training images N.
    pub train_size: usize,
    /// How it is calibrated.
    pub method: Calibration,
    /// On so many labels; 0 where it is not.
    pub n: usize,
    /// mean KL(p‖q), nats.
    pub epistemic: SeedMean,
    /// KL before less KL after, nats: above 0 where it helps.
    pub gain: SeedGain,
    /// Exact calibration error in 15 bins of equal width.
    pub exact_calibration_error: SeedMean,
    /// That before less that after.
    pub less_error: SeedGain,
    /// Mean exact probability of what it calls impossible.
    pub impossible: SeedGain,
}

/// An estimator of the calibration error on n labels, over seeds. Shares of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradedEce {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub told: Labels,
    /// Training images N.
    pub train_size: usize,
    /// By whom.
    pub estimator: EceEstimator,
    /// From so many labels.
    pub n: usize,
    /// Exact value in the estimator's norm.
    pub exact: SeedGain,
    /// Mean of the estimates less the exact value.
    pub bias: SeedGain,
    /// Part of it that stays without the noise of labels and with all test images; absent where the
    /// estimator takes fewer.
    pub hidden: Option<SeedGain>,
    /// Standard deviation of the estimates over draws of labels and images.
    pub deviation: SeedGain,
    /// Root of bias² + deviation² of a seed.
    pub rms: SeedGain,
}

impl CalibrationGrades {
    /// Computes the grades from the results of the finished cells.
    pub fn of(spec: &ExperimentSpec, cells: &[CellResult]) -> Self {
        let groups = repeats(cells);
        Self {
            provenance: provenance(spec, cells.len()),
            architectures: spec.grid.architectures.clone(),
            calibrators: groups.iter().flat_map(GradedCalibrator::all).collect(),
            estimators: groups.iter().flat_map(GradedEce::all).collect(),
        }
    }
}

/// What the cells of a group found, a seed each.
fn found<'a>(group: &Repeats<'a>) -> Vec<&'a Calibrated> {
    group.results.iter().filter_map(|result| result.output.as_ref()?.get()).collect()
}

impl GradedCalibrator {
    fn all(group: &Repeats<'_>) -> Vec<Self> {
        let cells = found(group);
        let what = distinct(cells.iter().flat_map(|cell| cell.methods.iter().map(|one| (one.method, one.n))));
        what.into_iter().filter_map(|what| Self::of(group, &cells, what)).collect()
    }

    fn of(group: &Repeats<'_>, cells: &[&Calibrated], (method, n): (Calibration, usize)) -> Option<Self> {
        // Before and after of one seed.
        let pair = |cell: &&Calibrated| -> Option<(Recalibrated, Recalibrated)> {
            let before = cell.methods.iter().find(|one| one.method == Calibration::None)?;
            let after = cell.methods.iter().find(|one| (one.method, one.n) == (method, n))?;
            Some((before.clone(), after.clone()))
        };
        let pairs: Vec<(Recalibrated, Recalibrated)> = cells.iter().filter_map(pair).collect();
        let mean = |of: fn(&Recalibrated) -> Estimate, range| {
            SeedMean::of(&pairs.iter().map(|(_, after)| of(after)).collect::<Vec<_>>(), range)
        };
        let each = |of: &dyn Fn(&Recalibrated, &Recalibrated) -> f64| {
            SeedGain::of(&pairs.iter().map(|(before, after)| of(before, after)).collect::<Vec<_>>())
        };
        Some(Self {
            architecture: group.cell.architecture,
            told: group.cell.labels,
            train_size: group.cell.train_size,
            method,
            n,
            epistemic: mean(|one| one.epistemic, NATS)?,
            gain: SeedGain::paired(
                &pairs.iter().map(|(before, after)| before.kl().less(after.kl())).collect::<Vec<_>>(),
            )?,
            exact_calibration_error: mean(|one| one.exact_calibration_error, SHARE)?,
            less_error: each(&|before, after| {
                before.exact_calibration_error.value - after.exact_calibration_error.value
            })?,
            impossible: each(&|_, after| after.impossible)?.cut(SHARE),
        })
    }

    /// Whose it is.
    pub(super) fn who(&self) -> (Who, usize) {
        (Who { architecture: self.architecture, labels: self.told }, self.train_size)
    }
}

impl GradedEce {
    fn all(group: &Repeats<'_>) -> Vec<Self> {
        let cells = found(group);
        let what = distinct(cells.iter().flat_map(|cell| cell.estimates.iter().map(|one| (one.estimator, one.n))));
        let of = |(estimator, n)| {
            let one = |cell: &&Calibrated| {
                cell.estimates.iter().find(|one| (one.estimator, one.n) == (estimator, n)).cloned()
            };
            Self::of(group, (estimator, n), &cells.iter().filter_map(one).collect::<Vec<_>>())
        };
        what.into_iter().filter_map(of).collect()
    }

    fn of(group: &Repeats<'_>, (estimator, n): (EceEstimator, usize), seeds: &[EstimatedEce]) -> Option<Self> {
        let each = |of: fn(&EstimatedEce) -> f64| SeedGain::of(&seeds.iter().map(of).collect::<Vec<f64>>());
        let hidden: Option<Vec<f64>> = seeds.iter().map(|one| Some(one.noiseless? - one.exact)).collect();
        Some(Self {
            architecture: group.cell.architecture,
            told: group.cell.labels,
            train_size: group.cell.train_size,
            estimator,
            n,
            exact: each(|one| one.exact)?.cut(SHARE),
            bias: each(|one| one.mean - one.exact)?,
            hidden: hidden.and_then(|hidden| SeedGain::of(&hidden)),
            deviation: each(|one| one.deviation)?.cut(NATS),
            rms: each(|one| (one.mean - one.exact).hypot(one.deviation))?.cut(NATS),
        })
    }

    /// Whose it is.
    pub(super) fn who(&self) -> (Who, usize) {
        (Who { architecture: self.architecture, labels: self.told }, self.train_size)
    }
}
