//! Refinement of an integral until its interval is as narrow as was asked for.

use super::quadrature::Scaled;
use crate::error::Result;

/// Variables drawn (or products of means and points, / 16) that end the refinement: ten seconds to
/// some minutes on one core, longest for doubtful points among hundreds of classes.
pub(super) const MOST_WORK: f64 = 4e9;
/// The same that are done between two reports, at which the caller may stop: about a tenth of a second.
const PIECE_OF_WORK: f64 = 1e8;

/// Where a refinement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    NotYet,
    Yes,
    OutOfWork,
}

impl Status {
    /// What an explanation ends with.
    pub fn ending(self) -> &'static str {
        if self == Self::OutOfWork { "; stopped short of the tolerance" } else { "" }
    }
}

/// An integral by random points.
pub(super) trait Refined {
    /// The error falls about as points^−RATE.
    const RATE: f64;
    /// Points of one replicate from which no more are added.
    const MOST_POINTS: f64;

    /// Points of one replicate in the first stage.
    fn first_points(&self) -> f64;

    /// Samples up to about so many points a replicate, but stops after about so much work. Returns
    /// whether they are reached. What was sampled before counts on.
    fn refine(&mut self, points: f64, work: f64) -> bool;

    /// Points of one replicate so far.
    fn points_per_replicate(&self) -> f64;

    /// Points spent, all replicates together.
    fn samples(&self) -> u64;

    /// Work done so far.
    fn work(&self) -> f64;

    /// Returns whether nothing is left to sample.
    fn exact(&self) -> bool {
        false
    }

    /// What the samples so far say.
    fn sum(&self) -> Scaled;
}

/// Refines until the tolerance is met. `tell` gets every stage, and what is known inside of long ones;
/// its last answer is returned. An integral that was refined before goes on from there.
pub(super) fn refine<S: Refined, T>(
    sum: &mut S,
    tolerance: f64,
    mut tell: impl FnMut(&S, Status) -> Result<T>,
) -> Result<T> {
    let mut points = sum.first_points().max(sum.points_per_replicate());
    loop {
        while !sum.refine(points, PIECE_OF_WORK) {
            tell(sum, Status::NotYet)?;
        }
        let now = sum.sum();
        if now.half_width <= tolerance * now.value {
            return tell(sum, Status::Yes);
        }
        let excess = now.half_width / (tolerance * now.value).max(f64::MIN_POSITIVE);
        let affordable = MOST_WORK / sum.work().max(1.0);
        if sum.exact() || points >= S::MOST_POINTS || affordable < 1.5 {
            return tell(sum, Status::OutOfWork);
        }
        tell(sum, Status::NotYet)?;
        // At least half as many again, which is the next net.
        let factor = excess.powf(1.0 / S::RATE).clamp(1.5, 32.0);
        points = sum.points_per_replicate().max(points) * factor.min(affordable);
    }
}
