//! Pair importance sampling: one sample for all classes, for any number of them (theory §3;
//! Karp-Luby, and ALOE of Owen, Maximov and Chertkov 2019, Rao-Blackwellised over class and pair).
//!
//! A pair (g, h) is drawn with probability u_gh/U, u_gh = w_g Q(b_gh), a point z beyond its face,
//! and W = U·Σ_{i≥1} p_(i)/Σ_i i·p_(i) of the sorted posteriors at z has mean E and lies between
//! U/(K−1) and U, whatever the means, weights and temperature. With pairs of one class only it is the
//! error of that class against the rest.

use std::ops::Range;

use super::classes::Scene;
use super::memory;
use super::normal::{exp, log_tail_with};
use super::posteriors::Sorter;
use super::quadrature::Scaled;
use super::refine::Refined;
use super::rqmc::{REPLICATES, pieces, whole_nets};
use super::scores::{Place, Scorer, blocks_for};
use super::simd::{Arithmetic, BLOCK, Block, Kernel, vectorise};
use super::sobol::Scramble;
use crate::error::Result;
use crate::parallel;
use crate::stats::mean_and_error;
use crate::units::Seed;

/// Log-joints further than this below the second are left out: 1e-11 of the doubt each.
const UNSEEN: f64 = -25.0;
/// Dimensions from which products of means and e take longer than all else at a point.
const SHARE_FROM: usize = 256;
/// Pairs that then share an e, half of them its opposite. Of 1,000 classes in 999 dimensions the scatter is that of as
/// many independent points, from eight on it is larger.
const SHARED: usize = 4;
/// Work of one more point of the same e for each class.
const POINT: f64 = 16.0;
/// Points short of the union bound from which replicates tell their own scatter.
const ENOUGH: f64 = 50.0;

/// Which integral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// 1 − max p, over all pairs.
    Error,
    /// min(p_j, 1 − p_j) of one class j, over its pairs.
    OneVsRest(usize),
}

/// A pair and what of U lies up to it.
struct Pair {
    class: u32,
    rival: u32,
    until: f64,
}

/// An integral under refinement.
pub(super) struct PairSum<'a> {
    scene: &'a Scene,
    scorer: Scorer,
    target: Target,
    pairs: Vec<Pair>,
    scrambles: Vec<Scramble>,
    /// U = union·e^log_scale.
    log_scale: f64,
    union: f64,
    /// Pairs that share an e.
    rounds: usize,
    blocks: u64,
    sums: [f64; REPLICATES],
    /// Points at which the integrand fell short of U by more than a thousandth.
    short: f64,
}

impl<'a> PairSum<'a> {
    /// Nothing sampled yet. The scene needs two groups.
    ///
    /// # Errors
    /// When this machine has no memory for so many pairs.
    pub fn new(scene: &'a Scene, target: Target, seed: Seed) -> Result<Self> {
        let count = scene.count();
        memory::for_pairs(count, matches!(target, Target::OneVsRest(_)))?;
        let rivals = |g: usize| match target {
            Target::OneVsRest(j) if g != j => j..j + 1,
            _ => 0..count,
        };
        let logs = parallel::map(count, |class| vectorise(Row { scene, class, rivals: rivals(class) }));
        let log_scale = logs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut until = 0.0;
        let mut pairs = Vec::with_capacity(logs.iter().map(Vec::len).sum());
        for (class, mut row) in logs.into_iter().enumerate() {
            vectorise(Exponentials { log_scale, row: &mut row });
            for (rival, mass) in rivals(class).zip(row).filter(|(_, mass)| *mass > 0.0) {
                until += mass;
                pairs.push(Pair { class: class as u32, rival: rival as u32, until });
            }
        }
        Ok(Self {
            scene,
            scorer: Scorer::new(scene),
            target,
            pairs,
            scrambles: parallel::map(REPLICATES, |r| Scramble::new(seed, r as u64, scene.rank + 1)),
            log_scale,
            union: until,
            rounds: if scene.rank >= SHARE_FROM { SHARED } else { 1 },
            blocks: 0,
            sums: [0.0; REPLICATES],
            short: 0.0,
        })
    }

    /// ln of the union bound over the pairs.
    pub fn log_union(&self) -> f64 {
        self.log_scale + self.union.ln()
    }

    /// Log ratios of this integral to `other` by replicate, on the same points.
    pub fn log_ratios(&self, other: &Self) -> [f64; REPLICATES] {
        let (one, two) = (self.replicates(), other.replicates());
        std::array::from_fn(|r| self.log_scale + one[r].ln() - other.log_scale - two[r].ln())
    }

    /// Work of an e and its points, as [`Scorer::cost`].
    fn cost(&self) -> f64 {
        self.scorer.cost() + (self.rounds - 1) as f64 * POINT * self.scene.count() as f64
    }

    /// The pair at a part u of all.
    fn place(&self, u: f64) -> Place {
        let at = self.pairs.partition_point(|pair| pair.until <= u * self.union).min(self.pairs.len() - 1);
        let (class, rival) = (self.pairs[at].class as usize, self.pairs[at].rival as usize);
        let (boundary, distance) = (self.scene.boundary(class, rival), self.scene.distance(class, rival));
        Place::Beyond { class, rival, boundary, distance }
    }

    #[inline(always)]
    fn ratio<A: Arithmetic>(&self, joints: &[f64], sorter: &mut Sorter) -> f64 {
        match self.target {
            Target::Error => {
                let (error, union) = sorter.error_and_union::<A>(joints, UNSEEN);
                if union > 0.0 { error / union } else { 0.0 }
            }
            Target::OneVsRest(j) => {
                let own = joints[j];
                let others =
                    || joints.iter().enumerate().filter(|(i, _)| *i != j).map(|(_, joint)| (joint - own).exp());
                let (rest, pairs) = (others().sum::<f64>(), others().map(|other| other.min(1.0)).sum::<f64>());
                if pairs > 0.0 { rest.min(1.0) / pairs } else { 0.0 }
            }
        }
    }
}

impl Refined for PairSum<'_> {
    /// The integrand has kinks.
    const RATE: f64 = 0.65;
    /// As many as Sobol' points are kept for.
    const MOST_POINTS: f64 = 6e7;

    /// Points of one e count one by one.
    fn first_points(&self) -> f64 {
        256.0
    }

    fn refine(&mut self, points: f64, work: f64) -> bool {
        let all = whole_nets(points / (BLOCK * self.rounds) as f64);
        let wanted = all.min(self.blocks.saturating_add(blocks_for(work, self.cost())));
        let pieces: Vec<(usize, [u64; 2])> = pieces([self.blocks, wanted]).collect();
        let of = &*self;
        let sum = |at: usize| {
            let (replicate, blocks) = pieces[at];
            vectorise(Piece { of, replicate, blocks })
        };
        let done = parallel::map(pieces.len(), sum);
        for ((replicate, _), (sum, short)) in pieces.iter().zip(done) {
            self.sums[*replicate] += sum;
            self.short += short;
        }
        self.blocks = self.blocks.max(wanted);
        self.blocks >= all
    }

    fn points_per_replicate(&self) -> f64 {
        (self.blocks * (BLOCK * self.rounds) as u64) as f64
    }

    fn samples(&self) -> u64 {
        self.blocks * (BLOCK * REPLICATES * self.rounds) as u64
    }

    fn work(&self) -> f64 {
        (self.blocks * (BLOCK * REPLICATES) as u64) as f64 * self.cost()
    }

    fn replicates(&self) -> [f64; REPLICATES] {
        let points = self.points_per_replicate();
        self.sums.map(|sum| self.union * sum / points)
    }

    fn sum(&self) -> Scaled {
        let value = mean_and_error(&self.replicates()).0;
        // Where hardly a point falls short of U, others may be unseen: the rule of three.
        let unseen = if self.short < ENOUGH { 3.0 * self.union / self.samples() as f64 } else { 0.0 };
        let half_width = self.scatter() + unseen + 1e-14 * value;
        Scaled { log_scale: self.log_scale, value, half_width }
    }
}

/// ln w_g Q(b_gh) of a class and some rivals; −∞ for itself.
struct Row<'a> {
    scene: &'a Scene,
    class: usize,
    rivals: Range<usize>,
}

impl Kernel for Row<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> Vec<f64> {
        let (scene, class) = (self.scene, self.class);
        let log_weight = scene.log_weights[class];
        let mut row: Vec<f64> = self.rivals.clone().map(|rival| scene.boundary(class, rival)).collect();
        for x in &mut row {
            *x = log_weight + log_tail_with::<A>(*x);
        }
        if self.rivals.contains(&class) {
            row[class - self.rivals.start] = f64::NEG_INFINITY;
        }
        row
    }
}

/// e^(log − scale) in place.
struct Exponentials<'a> {
    log_scale: f64,
    row: &'a mut [f64],
}

impl Kernel for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        self.row.iter_mut().for_each(|x| *x = exp::<A>(*x - self.log_scale));
    }
}

struct Piece<'a> {
    of: &'a PairSum<'a>,
    replicate: usize,
    blocks: [u64; 2],
}

impl Kernel for Piece<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> (f64, f64) {
        let of = self.of;
        let count = of.scorer.offsets().len();
        let scramble = &of.scrambles[self.replicate];
        let mut workspace = of.scorer.workspace();
        let (mut choice, mut sorter): (Block, _) = ([0.0; BLOCK], Sorter::default());
        let (mut sum, mut short) = (0.0, 0.0);
        for block in self.blocks[0]..self.blocks[1] {
            scramble.block(0, block, 0, &mut choice);
            of.scorer.draw::<A>(scramble, (0, block, 1), &mut workspace);
            for round in 0..of.rounds {
                // Pairs far from each other in their order, and on either side of the same e.
                let places = choice.map(|u| of.place((u + round as f64 / of.rounds as f64).fract()));
                of.scorer.put::<A>(&places, if round % 2 == 1 { -1.0 } else { 1.0 }, &mut workspace);
                for joints in workspace.joints.chunks_exact(count) {
                    let ratio = of.ratio::<A>(joints, &mut sorter);
                    sum += ratio;
                    short += f64::from(u8::from(ratio < 0.999));
                }
            }
        }
        (sum, short)
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::{GaussianClasses, Merge};
    use super::super::equidistant;
    use super::*;
    use crate::units::Tau;

    #[test]
    fn intervals_of_pairs_that_share_their_noise_cover_as_often_as_they_say() {
        let count = SHARE_FROM + 10;
        let mean = |k: usize| (0..count).map(|i| if i == k { 3.5 } else { 0.0 }).collect();
        let classes = GaussianClasses::new((0..count).map(mean).collect(), vec![1.0 / count as f64; count]).unwrap();
        let scene = classes.scene(Tau::ONE, Merge::Best);
        let exact = equidistant::bayes_error(&scene).unwrap();
        let covers = |seed: usize| {
            let mut sum = PairSum::new(&scene, Target::Error, Seed(seed as u64)).unwrap();
            assert_eq!(sum.rounds, SHARED);
            while !sum.refine(sum.first_points(), 1e3) {}
            let found = sum.sum();
            let truth = exact.value * (exact.log_scale - found.log_scale).exp();
            (found.value - truth).abs() <= found.half_width
        };
        let covered = parallel::map(100, covers).into_iter().filter(|covers| *covers).count();
        assert!((88..=100).contains(&covered), "{covered} of 100");
    }

    #[test]
    fn the_union_over_pairs_is_the_sum_of_their_tails() {
        let means = vec![vec![0.0, 0.0], vec![3.0, 0.0], vec![0.0, 40.0], vec![0.0, 45.0]];
        let classes = GaussianClasses::new(means, vec![0.4, 0.3, 0.2, 0.1]).unwrap();
        for tau in [0.02, 1.0, 30.0] {
            let scene = classes.scene(Tau::new(tau).unwrap(), Merge::Best);
            let sum = PairSum::new(&scene, Target::Error, Seed(0)).unwrap();
            let expected = super::super::sov::log_union(&scene);
            assert!((sum.log_union() - expected).abs() < 1e-13 * (1.0 + expected.abs()), "{tau}");
            let one = PairSum::new(&scene, Target::OneVsRest(2), Seed(0)).unwrap();
            assert!(one.pairs.iter().all(|pair| (pair.class == 2) != (pair.rival == 2)) && one.log_union() < expected);
        }
    }
}
