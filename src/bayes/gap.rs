//! Bayes errors near their limit: what the best classifier gains over always naming the likeliest class.
//!
//! E < 1 − max π, and comes near it as τ grows. The gap to it, ∫ max_k π_k f_k − max π, is then far smaller
//! than E, and no relative accuracy of E tells it. Over points z of the likeliest class m it is a mean,
//!
//! 1 − max π − E = π_m E[max_k π_k f_k(z) / (π_m f_m(z)) − 1], z ~ f_m,
//!
//! of an integrand ≥ 0 whose scatter is about as large as the mean while classes overlap. So the gap is as
//! well known as E elsewhere.

use std::time::Instant;

use super::classes::{GaussianClasses, Merge, Scene};
use super::compute::{Spec, bounds};
use super::estimate::{Estimate, Figure, Method};
use super::inverse::TauEstimate;
use super::quadrature::Scaled;
use super::refine::{Refined, refine};
use super::rqmc::{REPLICATES, pieces, whole_nets};
use super::scores::{Place, Scorer, blocks_for};
use super::simd::{Arithmetic, BLOCK, Kernel, vectorise};
use super::sobol::Scramble;
use super::sov::log_union;
use crate::error::Result;
use crate::events::Events;
use crate::parallel;
use crate::provenance::Badge;
use crate::stats::{mean_and_error, student_95};
use crate::units::{Seed, Tau};

/// Farthest class from the likeliest at which the integrand still has a moderate scatter.
const FARTHEST: f64 = 2.0;
/// Relative half width of the gap on the way.
const COARSE: f64 = 1e-2;
/// Half the step in log τ over which the slope is taken.
const STEP: f64 = 0.02;
/// Steps of one search, at most.
const MOST_STEPS: usize = 40;

/// The gap under refinement.
struct GapSum {
    scorer: Scorer,
    likeliest: usize,
    weight: f64,
    scrambles: Vec<Scramble>,
    blocks: u64,
    sums: [f64; REPLICATES],
}

impl GapSum {
    /// Nothing sampled yet.
    fn new(scene: &Scene, seed: Seed) -> Self {
        let likeliest = likeliest(scene);
        Self {
            scorer: Scorer::new(scene),
            likeliest,
            weight: scene.weights[likeliest],
            scrambles: parallel::map(REPLICATES, |r| Scramble::new(seed, r as u64, scene.rank)),
            blocks: 0,
            sums: [0.0; REPLICATES],
        }
    }
}

impl Refined for GapSum {
    /// The integrand has kinks.
    const RATE: f64 = 0.65;
    /// As many as Sobol' points are kept for.
    const MOST_POINTS: f64 = 6e7;

    fn first_points(&self) -> f64 {
        1024.0
    }

    fn refine(&mut self, points: f64, work: f64) -> bool {
        let all = whole_nets(points / BLOCK as f64);
        let wanted = all.min(self.blocks.saturating_add(blocks_for(work, self.scorer.cost())));
        let pieces: Vec<(usize, [u64; 2])> = pieces([self.blocks, wanted]).collect();
        let of = &*self;
        let sum = |at: usize| {
            let (replicate, blocks) = pieces[at];
            vectorise(Piece { of, replicate, blocks })
        };
        let done = parallel::map(pieces.len(), sum);
        pieces.iter().zip(done).for_each(|((replicate, _), sum)| self.sums[*replicate] += sum);
        self.blocks = self.blocks.max(wanted);
        self.blocks >= all
    }

    fn points_per_replicate(&self) -> f64 {
        (self.blocks * BLOCK as u64) as f64
    }

    fn samples(&self) -> u64 {
        self.blocks * (BLOCK * REPLICATES) as u64
    }

    fn work(&self) -> f64 {
        self.samples() as f64 * self.scorer.cost()
    }

    fn replicates(&self) -> [f64; REPLICATES] {
        self.sums.map(|sum| self.weight * sum / self.points_per_replicate())
    }

    fn sum(&self) -> Scaled {
        let value = mean_and_error(&self.replicates()).0;
        Scaled { log_scale: 0.0, value, half_width: self.scatter() + 1e-14 * value }
    }
}

#[derive(Clone, Copy)]
struct Piece<'a> {
    of: &'a GapSum,
    replicate: usize,
    blocks: [u64; 2],
}

impl Kernel for Piece<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> f64 {
        let (of, class) = (self.of, self.of.likeliest);
        let mut workspace = of.scorer.workspace();
        let around = Place::Beyond { class, rival: class, boundary: f64::NEG_INFINITY, distance: 1.0 };
        let mut sum = 0.0;
        for block in self.blocks[0]..self.blocks[1] {
            of.scorer.score::<A>(&of.scrambles[self.replicate], (0, block, 0), &[around; BLOCK], &mut workspace);
            for joints in workspace.joints.chunks_exact(of.scorer.offsets().len()) {
                let largest = joints.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                sum += (largest - joints[class]).exp_m1();
            }
        }
        sum
    }
}

/// One search for the τ of a gap.
struct Search<'a> {
    classes: &'a GaussianClasses,
    limit: f64,
    spec: &'a Spec,
    events: &'a mut dyn Events<Estimate>,
    evaluations: usize,
    begun: Instant,
}

/// The τ at which 1 − max π − E is `gap`; `None` where classes lie too far apart there for points of one
/// class to tell. The classes need two groups; the tolerance of `spec` is meant for τ.
///
/// # Errors
/// When the temperatures on the way cannot be used, or the caller stops.
pub(super) fn tau_of_gap(
    classes: &GaussianClasses,
    gap: f64,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<Option<TauEstimate>> {
    let limit = super::inverse::reachable(classes).1;
    let mut search = Search { classes, limit, spec, events, evaluations: 0, begun: Instant::now() };
    let nearest = search.nearest()?;
    let (_, _, known) = search.at(nearest, COARSE)?;
    let excess = (known.value / gap).ln();
    if excess < 0.0 {
        return Ok(None);
    }
    search.from(nearest, excess, gap).map(Some)
}

impl Search<'_> {
    fn scene(&self, log_tau: f64) -> Result<Scene> {
        Ok(self.classes.scene(Tau::new(log_tau.exp())?, Merge::Best))
    }

    /// The least log τ at which no class lies farther than `FARTHEST` from the likeliest.
    fn nearest(&self) -> Result<f64> {
        let scene = self.scene(0.0)?;
        let likeliest = likeliest(&scene);
        let farthest = (0..scene.count()).map(|g| scene.distance(likeliest, g)).fold(0.0, f64::max);
        Ok((farthest / FARTHEST).ln())
    }

    /// The gap at log τ to a relative half width.
    fn at(&mut self, log_tau: f64, tolerance: f64) -> Result<(Scene, GapSum, Scaled)> {
        self.evaluations += 1;
        let scene = self.scene(log_tau)?;
        let mut sum = GapSum::new(&scene, self.spec.seed);
        let known = refine(&mut sum, tolerance, |sum, now, _| {
            self.events.report(self.estimate(&scene, sum, now))?;
            Ok(now)
        })?;
        Ok((scene, sum, known))
    }

    /// Safeguarded secant on the logarithm of the gap against log τ, of which it is nearly a line.
    fn from(&mut self, nearest: f64, excess: f64, gap: f64) -> Result<TauEstimate> {
        let (mut low, mut high) = (nearest, f64::INFINITY);
        let (mut before, mut slope) = ((nearest, excess), -1.0f64);
        let mut fine = false;
        let mut at = nearest + excess;
        loop {
            let (scene, sum, known) = self.at(at, if fine { self.spec.tolerance * slope.abs() } else { COARSE })?;
            let excess = (known.value / gap).ln();
            if excess > 0.0 {
                low = at
            } else {
                high = at
            }
            if excess.is_finite() && (at - before.0).abs() > STEP {
                slope = ((excess - before.1) / (at - before.0)).min(-0.5);
            }
            let step = -excess / slope;
            if (fine && step.abs() < 0.1 * self.spec.tolerance.sqrt()) || self.evaluations >= MOST_STEPS {
                return self.found((at, step), &scene, (&sum, known), gap);
            }
            fine |= step.abs() < STEP;
            if excess.is_finite() {
                before = (at, excess);
            }
            let next = at + step;
            at = if next > low && next < high { next } else { 0.5 * (low + high.min(low + 2.0)) };
        }
    }

    /// The last step, and what its error is: that of the gap over the slope, and the square of the step.
    fn found(
        &mut self,
        (at, step): (f64, f64),
        scene: &Scene,
        (sum, known): (&GapSum, Scaled),
        gap: f64,
    ) -> Result<TauEstimate> {
        let on_the_same_points = |log_tau: f64| -> Result<[f64; REPLICATES]> {
            let mut other = GapSum::new(&self.scene(log_tau)?, self.spec.seed);
            while !other.refine(sum.points_per_replicate(), f64::INFINITY) {}
            Ok(other.replicates())
        };
        let (below, above) = (on_the_same_points(at - STEP)?, on_the_same_points(at + STEP)?);
        let ratios: [f64; REPLICATES] = std::array::from_fn(|r| (above[r] / below[r]).ln() / (2.0 * STEP));
        let (relative, error) = mean_and_error(&ratios);
        let relative_error = student_95(REPLICATES - 1) * error + STEP * STEP * relative.abs();
        let excess = (known.value / gap).ln();
        let newton = if relative < 0.0 { -excess / relative } else { step };
        let found = (at + newton).exp();
        let half_width =
            known.half_width / (known.value * relative.abs()) + newton * newton + newton.abs() * relative_error;
        let slope = known.value * relative.abs();
        let slope_error = slope * (relative_error / relative.abs() + known.half_width / known.value);
        Ok(TauEstimate {
            target: self.limit - gap,
            tau: Figure::new(found, found * half_width, f64::INFINITY),
            achieved: self
                .estimate(scene, sum, known)
                .moved(slope * newton, newton.abs() * slope_error + slope * newton * newton),
            slope: Figure::new(slope, slope_error, f64::INFINITY),
            evaluations: self.evaluations,
            seconds: self.begun.elapsed().as_secs_f64(),
        })
    }

    fn estimate(&self, scene: &Scene, sum: &GapSum, gap: Scaled) -> Estimate {
        let value = self.limit - gap.value;
        Estimate {
            figure: Figure::new(value, gap.half_width, self.limit),
            log_value: value.ln(),
            bounds: bounds(scene, || log_union(scene)),
            badge: Badge::Estimated,
            method: Method::Mc,
            why: format!(
                "{} classes in {} dimensions, near the limit: samples of the likeliest, what is gained over naming it always",
                scene.count(),
                scene.rank
            ),
            samples: sum.samples(),
            draws: 0,
            seconds: self.begun.elapsed().as_secs_f64(),
        }
    }
}

/// The group of the largest weight.
fn likeliest(scene: &Scene) -> usize {
    (0..scene.count()).max_by(|&g, &h| scene.weights[g].total_cmp(&scene.weights[h])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::compute::bayes_error;
    use super::super::inverse::tau_of_error;
    use super::super::simd::tests::on_every_set;
    use super::*;

    fn going(_: Estimate) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// K classes 3 apart from each other, of equal priors: their Bayes error is an integral on a line.
    fn equidistant(count: usize) -> GaussianClasses {
        let mean = |k: usize| (0..count).map(|i| if i == k { 4.5f64.sqrt() } else { 0.0 }).collect();
        GaussianClasses::new((0..count).map(mean).collect(), vec![1.0 / count as f64; count]).unwrap()
    }

    #[test]
    fn the_gap_is_the_limit_less_the_bayes_error() {
        let classes = equidistant(8);
        for tau in [3.0, 10.0, 300.0] {
            let error = bayes_error(&classes, Tau::new(tau).unwrap(), &Spec::default(), &mut going).unwrap();
            let mut sum = GapSum::new(&classes.scene(Tau::new(tau).unwrap(), Merge::Best), Seed(5));
            let found = refine(&mut sum, 1e-3, |_, now, _| Ok(now)).unwrap();
            let gap = 0.875 - error.figure.value;
            assert!((found.value - gap).abs() < 2.0 * found.half_width, "τ = {tau}: {found:?}, not {gap}");
            assert!(found.half_width <= 1e-3 * found.value, "τ = {tau}: {found:?}");
        }
    }

    #[test]
    fn tau_near_the_limit_is_the_one_by_the_integral() {
        let (classes, spec) = (equidistant(8), Spec { tolerance: 1e-3, ..Spec::default() });
        for gap in [0.05, 1e-3, 1e-5] {
            let exact = tau_of_error(&classes, 0.875 - gap, &Spec::default(), &mut going).unwrap();
            let found = tau_of_gap(&classes, gap, &spec, &mut going).unwrap().unwrap();
            let off = found.tau.value - exact.tau.value;
            // Of a gap of 1e-5 the integral itself knows τ to the digits of E.
            let allowed = 2.0 * crate::stats::Z95 * found.tau.std_error + 1e-15 / gap * exact.tau.value;
            assert!(off.abs() <= allowed, "{gap}: {:?}, not {:?}", found.tau, exact.tau);
            assert!(found.tau.relative_half_width() <= 2e-3, "{gap}: {:?}", found.tau);
            // The Bayes errors that are told are those of the τ that are told.
            for told in [&exact, &found] {
                let there =
                    bayes_error(&classes, Tau::new(told.tau.value).unwrap(), &Spec::default(), &mut going).unwrap();
                let off = told.achieved.figure.value - there.figure.value;
                let allowed = 2.0 * crate::stats::Z95 * told.achieved.figure.std_error + 1e-14;
                assert!(off.abs() <= allowed, "{gap}: {:?}, not {:?}", told.achieved.figure, there.figure);
            }
            let slope = exact.slope.value;
            assert!((found.slope.value / slope - 1.0).abs() < 0.02, "{gap}: {:?}, not {slope}", found.slope);
        }
        assert!(tau_of_gap(&classes, 0.5, &spec, &mut going).unwrap().is_none());
    }

    #[test]
    fn every_instruction_set_gives_the_same_integral() {
        let of = GapSum::new(&equidistant(7).scene(Tau::new(4.0).unwrap(), Merge::Best), Seed(1));
        let results = on_every_set(Piece { of: &of, replicate: 2, blocks: [0, 3] });
        for (name, sum) in &results {
            assert!((sum / results[0].1 - 1.0).abs() < 1e-11, "{name}: {sum} against {}", results[0].1);
        }
    }
}
