//! What the cells of several trainings say together.

use serde::{Deserialize, Serialize};

use super::spec::{AxesSpec, Compute};
use crate::classifier::{Architecture, Labels, TrainingSpec};
use crate::experiment::cell::CellResult;
use crate::experiment::repeats::{NATS, Repeats, SHARE, SeedGain, SeedMean, provenance, repeats};
use crate::experiment::spec::ExperimentSpec;

/// KL to the truth under every training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingAxes {
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// Names of the trainings, in the order in which points count them.
    pub trainings: Vec<String>,
    /// The finished classifiers, in the order of the plan.
    pub points: Vec<AxisPoint>,
    /// The longest training beside the shortest.
    pub longer: Vec<Longer>,
}

/// A classifier under a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AxisPoint {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Number N of training images.
    pub train_size: usize,
    /// Number of the training in [`TrainingAxes::trainings`].
    pub training: usize,
    /// Trained numbers.
    pub parameters: usize,
    /// Optimisation steps.
    pub steps: usize,
    /// Operations of the training; absent where they are not counted.
    pub flops: Option<f64>,
    /// mean KL(p‖q), nats.
    pub epistemic: SeedMean,
    /// Bayes accuracy − expected accuracy of the test images, as a share.
    pub gap: SeedMean,
    /// Whether no finished classifier that is told the same has less KL at no more compute.
    pub on_frontier: bool,
}

/// The longest of several trainings that differ in their length alone, beside the shortest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Longer {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Number N of training images.
    pub train_size: usize,
    /// Numbers of the two trainings: the shortest, the longest.
    pub trainings: [usize; 2],
    /// Steps of the longest over those of the shortest.
    pub times: f64,
    /// KL after the longest − KL after the shortest, nats, paired by seed.
    pub epistemic: SeedGain,
    /// The same difference of the gaps to the Bayes accuracy, as a share.
    pub gap: SeedGain,
}

impl TrainingAxes {
    /// From the finished cells.
    pub fn of(spec: &ExperimentSpec, own: &AxesSpec, cells: &[CellResult]) -> Self {
        let groups = repeats(cells);
        let mut provenance = provenance(spec, cells.len());
        let trainings: Vec<String> = own.trainings.iter().map(|named| named.name.clone()).collect();
        provenance.push(("trainings".into(), trainings.join(", ")));
        let mut points: Vec<AxisPoint> = groups.iter().filter_map(AxisPoint::of).collect();
        let ahead = |other: &AxisPoint, one: &AxisPoint| match (other.flops, one.flops) {
            (Some(theirs), Some(own)) if other.labels == one.labels => {
                let (lower, equal) =
                    (other.epistemic.value < one.epistemic.value, other.epistemic.value == one.epistemic.value);
                (lower && theirs <= own) || (equal && theirs < own)
            }
            _ => false,
        };
        let frontier = |one: &AxisPoint| one.flops.is_some() && !points.iter().any(|other| ahead(other, one));
        let on_frontier: Vec<bool> = points.iter().map(frontier).collect();
        points.iter_mut().zip(on_frontier).for_each(|(point, on)| point.on_frontier = on);
        let longer = groups.iter().filter_map(|long| Longer::of(spec, own, &groups, long)).collect();
        Self { provenance, trainings, points, longer }
    }
}

impl AxisPoint {
    fn of(group: &Repeats<'_>) -> Option<Self> {
        let first = group.results.first()?;
        // Whole runs of one cell compute the same under every seed.
        let compute = group.results.iter().find_map(|result| result.output.as_ref()?.get::<Compute>());
        Some(Self {
            architecture: group.cell.architecture,
            labels: group.cell.labels,
            train_size: group.cell.train_size,
            training: group.cell.condition,
            parameters: first.parameters,
            steps: first.steps,
            flops: compute.and_then(Compute::flops),
            epistemic: group.mean(|result| result.measured.epistemic, NATS)?,
            gap: group.mean(|result| result.measured.gap, SHARE)?,
            on_frontier: false,
        })
    }
}

/// A training without its length, and whether it starts at random: what those have in common that
/// are compared.
fn but_for_length(
    spec: &ExperimentSpec,
    own: &AxesSpec,
    architecture: Architecture,
    at: usize,
) -> Option<(TrainingSpec, bool)> {
    let training = spec.training_of(architecture, at).ok()?;
    Some((TrainingSpec { epochs: 0, steps: None, ..training }, own.trainings.get(at)?.from_scratch))
}

impl Longer {
    /// `None` where a group is not the longest of the trainings planned of its kind, the shortest has no
    /// finished cell of a common seed, or there is no other.
    fn of(spec: &ExperimentSpec, own: &AxesSpec, groups: &[Repeats<'_>], long: &Repeats<'_>) -> Option<Self> {
        let cell = long.cell;
        let kind = |at: usize| but_for_length(spec, own, cell.architecture, at);
        let steps = |at: usize| spec.training_of(cell.architecture, at).ok().map(|t| t.total_steps(cell.train_size));
        let alike = || (0..own.trainings.len()).filter(|&at| kind(at).is_some() && kind(at) == kind(cell.condition));
        let (shortest, longest) = (alike().min_by_key(|&at| steps(at))?, alike().max_by_key(|&at| steps(at))?);
        if longest != cell.condition || steps(shortest) >= steps(longest) {
            return None;
        }
        let same = |other: &&Repeats<'_>| {
            let (theirs, own) = (other.cell, cell);
            (theirs.architecture, theirs.labels, theirs.train_size) == (own.architecture, own.labels, own.train_size)
        };
        let short = groups.iter().filter(same).find(|other| other.cell.condition == shortest)?;
        Some(Self {
            architecture: cell.architecture,
            labels: cell.labels,
            train_size: cell.train_size,
            trainings: [shortest, longest],
            times: steps(longest)? as f64 / steps(shortest)?.max(1) as f64,
            epistemic: long.gain(short, |result| Some(result.paired(|m| m.epistemic, |b| &b.epistemic)))?,
            gap: long.gain(short, |result| Some(result.paired_share(|m| m.gap, |b| &b.gap)))?,
        })
    }
}
