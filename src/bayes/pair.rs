//! Pair importance sampling: one sample for all classes, for any number of them (theory §3;
//! Karp-Luby, and ALOE of Owen, Maximov and Chertkov 2019, Rao-Blackwellised over class and pair).
//!
//! A pair (g, h) is drawn with probability u_gh/U, u_gh = w_g Q(b_gh), a point z beyond its face,
//! and W = U·Σ_{i≥1} p_(i)/Σ_i i·p_(i) of the sorted posteriors at z has mean E and lies between
//! U/(K−1) and U, whatever the means, weights and temperature. With pairs of one class only it is the
//! error of that class against the rest.

use rayon::prelude::*;

use super::classes::Scene;
use super::memory;
use super::quadrature::Scaled;
use super::refine::Refined;
use super::rqmc::{REPLICATES, mean_and_error, pieces, student_95, whole_nets};
use super::scores::{Place, Scorer, error_and_union};
use super::simd::{Arithmetic, BLOCK, Block, Kernel, vectorise};
use super::sobol::Scramble;
use crate::error::Result;
use crate::units::Seed;

/// Log-joints further than this below the second are left out: 1e-11 of the doubt each.
const UNSEEN: f64 = -25.0;
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
    class: usize,
    rival: usize,
    boundary: f64,
    until: f64,
}

/// An integral under refinement.
pub(super) struct PairSum {
    scorer: Scorer,
    target: Target,
    pairs: Vec<Pair>,
    distances: Vec<f64>,
    scrambles: Vec<Scramble>,
    /// U = union·e^log_scale.
    log_scale: f64,
    union: f64,
    blocks: u64,
    sums: [f64; REPLICATES],
    /// Points at which the integrand fell short of U by more than a thousandth.
    short: f64,
}

impl PairSum {
    /// Nothing sampled yet. The scene needs two groups.
    ///
    /// # Errors
    /// When this machine has no memory for so many pairs.
    pub fn new(scene: &Scene, target: Target, seed: Seed) -> Result<Self> {
        let count = scene.count();
        memory::for_pairs(count, matches!(target, Target::OneVsRest(_)))?;
        let wanted = |g: usize, h: usize| match target {
            Target::Error => true,
            Target::OneVsRest(j) => g == j || h == j,
        };
        let all = (0..count).flat_map(|g| (0..count).filter(move |&h| h != g).map(move |h| (g, h)));
        let chosen: Vec<(usize, usize, f64)> =
            all.filter(|&(g, h)| wanted(g, h)).map(|(g, h)| (g, h, scene.log_pair(g, h))).collect();
        let log_scale = chosen.iter().map(|c| c.2).fold(f64::NEG_INFINITY, f64::max);
        let mut until = 0.0;
        let mut pairs = Vec::with_capacity(chosen.len());
        for (class, rival, log) in chosen {
            let mass = (log - log_scale).exp();
            if mass > 0.0 {
                until += mass;
                pairs.push(Pair { class, rival, boundary: scene.boundary(class, rival), until });
            }
        }
        let distances = (0..count).flat_map(|g| (0..count).map(move |h| (g, h))).map(|(g, h)| scene.distance(g, h));
        Ok(Self {
            scorer: Scorer::new(scene),
            target,
            pairs,
            distances: distances.collect(),
            scrambles: (0..REPLICATES as u64).into_par_iter().map(|r| Scramble::new(seed, r, scene.rank + 1)).collect(),
            log_scale,
            union: until,
            blocks: 0,
            sums: [0.0; REPLICATES],
            short: 0.0,
        })
    }

    /// ln of the union bound over the pairs.
    pub fn log_union(&self) -> f64 {
        self.log_scale + self.union.ln()
    }

    /// The replicates' means, over e^log_scale.
    fn replicates(&self) -> [f64; REPLICATES] {
        let points = self.points_per_replicate();
        self.sums.map(|sum| self.union * sum / points)
    }

    /// Log ratios of this integral to `other` by replicate, on the same points.
    pub fn log_ratios(&self, other: &Self) -> [f64; REPLICATES] {
        let (one, two) = (self.replicates(), other.replicates());
        std::array::from_fn(|r| self.log_scale + one[r].ln() - other.log_scale - two[r].ln())
    }

    #[inline(always)]
    fn ratio(&self, joints: &[f64], shares: &mut Vec<f64>) -> f64 {
        match self.target {
            Target::Error => {
                self.scorer.posteriors(joints, UNSEEN, shares);
                let (error, union) = error_and_union(shares);
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

impl Refined for PairSum {
    /// The integrand has kinks.
    const RATE: f64 = 0.65;
    /// As many as Sobol' points are kept for.
    const MOST_POINTS: f64 = 6e7;

    fn first_points(&self) -> f64 {
        256.0
    }

    fn refine(&mut self, points: f64, work: f64) -> bool {
        let all = whole_nets(points / BLOCK as f64);
        let wanted = all.min(self.blocks + self.scorer.blocks_for(work));
        let pieces: Vec<(usize, [u64; 2])> = pieces([self.blocks, wanted]).collect();
        let of = &*self;
        let sum = |(replicate, blocks)| (replicate, vectorise(Piece { of, replicate, blocks }));
        let done: Vec<(usize, (f64, f64))> = pieces.into_par_iter().map(sum).collect();
        for (replicate, (sum, short)) in done {
            self.sums[replicate] += sum;
            self.short += short;
        }
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

    fn sum(&self) -> Scaled {
        let (value, error) = mean_and_error(&self.replicates());
        // Where hardly a point falls short of U, others may be unseen: the rule of three.
        let unseen = if self.short < ENOUGH { 3.0 * self.union / self.samples() as f64 } else { 0.0 };
        let half_width = student_95(REPLICATES - 1) * error + unseen + 1e-14 * value;
        Scaled { log_scale: self.log_scale, value, half_width }
    }
}

struct Piece<'a> {
    of: &'a PairSum,
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
        let (mut choice, mut shares): (Block, _) = ([0.0; BLOCK], Vec::with_capacity(count));
        let (mut sum, mut short) = (0.0, 0.0);
        for block in self.blocks[0]..self.blocks[1] {
            scramble.block(0, block, 0, &mut choice);
            let places = choice.map(|u| {
                let at = of.pairs.partition_point(|pair| pair.until <= u * of.union).min(of.pairs.len() - 1);
                let pair = &of.pairs[at];
                let Pair { class, rival, boundary, .. } = *pair;
                Place::Beyond { class, rival, boundary, distance: of.distances[class * count + rival] }
            });
            of.scorer.score::<A>(scramble, (0, block, 1), &places, &mut workspace);
            for joints in workspace.joints.chunks_exact(count) {
                let ratio = of.ratio(joints, &mut shares);
                sum += ratio;
                short += f64::from(u8::from(ratio < 0.999));
            }
        }
        (sum, short)
    }
}
