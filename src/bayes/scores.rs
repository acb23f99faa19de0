//! Log-joints ln w_i f_i of all classes at blocks of random points around a class or beyond a face.

use std::ops::Range;

use super::classes::{Scene, dot};
use super::normal::{cdf_with, ln, quantile_with, tail, tail_quantile_of_log};
use super::simd::{Arithmetic, BLOCK, Block};
use super::sobol::Scramble;

/// Log-joints further than this below the second are left out: 1e-11 of the doubt each.
const UNSEEN: f64 = -25.0;

/// Means and their products, ready for blocks of points.
pub(super) struct Scorer {
    count: usize,
    rank: usize,
    /// [G, r].
    means: Vec<f64>,
    /// m_i·m_j, [G, G].
    products: Vec<f64>,
    /// ln w_i − |m_i|²/2.
    offsets: Vec<f64>,
}

/// Where points come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Class whose Gaussian they are drawn from.
    pub class: usize,
    /// The rival beyond whose face they lie: (class, b, d).
    pub beyond: Option<(usize, f64, f64)>,
}

/// Room for one block.
pub(super) struct Workspace {
    noise: Vec<Block>,
    along: Vec<Block>,
    /// Log-joints of the points so far, less |z|²/2 and constants: [BLOCK][G].
    pub joints: Vec<f64>,
}

impl Scorer {
    /// Of a scene.
    pub fn new(scene: &Scene) -> Self {
        let count = scene.count();
        let squares: Vec<f64> = (0..count).map(|i| dot(scene.mean(i), scene.mean(i))).collect();
        let product = |i: usize, j: usize| 0.5 * (squares[i] + squares[j] - scene.distance(i, j).powi(2));
        let products: Vec<f64> =
            (0..count).flat_map(|i| (0..count).map(move |j| (i, j))).map(|(i, j)| product(i, j)).collect();
        let offsets = (0..count).map(|i| scene.log_weights[i] - 0.5 * products[i * count + i]).collect();
        Self { count, rank: scene.rank, means: scene.means.clone(), products, offsets }
    }

    /// ln w_i − |m_i|²/2, [G].
    pub fn offsets(&self) -> &[f64] {
        &self.offsets
    }

    /// Room for blocks of this scene.
    pub fn workspace(&self) -> Workspace {
        Workspace {
            noise: vec![[0.0; BLOCK]; self.rank],
            along: vec![[0.0; BLOCK]; self.count],
            joints: vec![0.0; BLOCK * self.count],
        }
    }

    /// Fills `workspace.joints` for a block of points from these sources. Coordinates `first_dim …`
    /// of the stream become a standard normal e; beyond a face its part along the normal is
    /// replaced by one of t > b with the same rank.
    #[inline(always)]
    pub fn score<A: Arithmetic>(
        &self,
        scramble: &Scramble,
        (stream, block, first_dim): (u64, u64, usize),
        sources: &[Source; BLOCK],
        workspace: &mut Workspace,
    ) {
        for (dim, noise) in workspace.noise.iter_mut().enumerate() {
            scramble.block(stream, block, first_dim + dim, noise);
            for x in noise.iter_mut() {
                *x = quantile_with::<A>(*x);
            }
        }
        workspace.along.fill([0.0; BLOCK]);
        for start in (0..self.rank).step_by(DIMS) {
            let part = start..(start + DIMS).min(self.rank);
            for (means, along) in self.means.chunks(2 * self.rank).zip(workspace.along.chunks_mut(2)) {
                products::<A>(means, part.clone(), &workspace.noise, along);
            }
        }
        for (point, source) in sources.iter().enumerate() {
            let g = source.class;
            let joints = &mut workspace.joints[point * self.count..(point + 1) * self.count];
            let from = &self.products[g * self.count..(g + 1) * self.count];
            for (i, joint) in joints.iter_mut().enumerate() {
                *joint = self.offsets[i] + from[i] + workspace.along[i][point];
            }
            let Some((h, b, d)) = source.beyond.filter(|(_, b, _)| *b > f64::NEG_INFINITY) else { continue };
            let normal = (workspace.along[h][point] - workspace.along[g][point]) / d;
            let step = (beyond::<A>(b, normal) - normal) / d;
            let to = &self.products[h * self.count..(h + 1) * self.count];
            for ((joint, to), from) in joints.iter_mut().zip(to).zip(from) {
                *joint = A::mul_add(step, to - from, *joint);
            }
        }
    }

    /// Posteriors over the largest, unsorted, without those that add no digit to the second.
    pub fn posteriors(&self, joints: &[f64], out: &mut Vec<f64>) {
        let (mut first, mut second) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for &joint in joints {
            second = second.max(joint.min(first));
            first = first.max(joint);
        }
        out.clear();
        out.extend(joints.iter().filter(|joint| **joint - second > UNSEEN).map(|joint| (joint - first).exp()));
    }
}

/// t > b that has the rank of x among all normal numbers: Q(t) = Q(x)·Q(b).
#[inline(always)]
fn beyond<A: Arithmetic>(b: f64, x: f64) -> f64 {
    let share = cdf_with::<A>(-x).max(f64::MIN_POSITIVE);
    if b > 30.0 {
        return tail_quantile_of_log(super::normal::log_tail(b) + ln::<A>(share));
    }
    -quantile_with::<A>((share * tail(b)).max(f64::MIN_POSITIVE))
}

/// Dimensions taken together for all means: their noise stays in the first cache.
const DIMS: usize = 32;

/// Adds Σ_m mean[m]·noise[m] over the dimensions `part` for two means [2, r] (or one), so a number
/// loaded is used twice; four dimensions at a time, so a sum is loaded and stored once for eight
/// products.
#[inline(always)]
fn products<A: Arithmetic>(means: &[f64], part: Range<usize>, noise: &[Block], out: &mut [Block]) {
    let rank = noise.len();
    let noise = &noise[part.clone()];
    let (one, two) = (&means[part.clone()], &means[means.len() - rank..][part]);
    let (mut sum, mut other) = (out[0], out[out.len() - 1]);
    let whole = noise.len() / 4 * 4;
    for m in (0..whole).step_by(4) {
        let [a, b, c, d] = [&noise[m], &noise[m + 1], &noise[m + 2], &noise[m + 3]];
        let (p, q) = (&one[m..m + 4], &two[m..m + 4]);
        for i in 0..BLOCK {
            let near = A::mul_add(p[1], b[i], A::mul_add(p[0], a[i], sum[i]));
            sum[i] = A::mul_add(p[3], d[i], A::mul_add(p[2], c[i], near));
            let near = A::mul_add(q[1], b[i], A::mul_add(q[0], a[i], other[i]));
            other[i] = A::mul_add(q[3], d[i], A::mul_add(q[2], c[i], near));
        }
    }
    for m in whole..noise.len() {
        for i in 0..BLOCK {
            sum[i] = A::mul_add(one[m], noise[m][i], sum[i]);
            other[i] = A::mul_add(two[m], noise[m][i], other[i]);
        }
    }
    // Of a last mean alone both are the same.
    out[0] = sum;
    if let Some(last) = out.get_mut(1) {
        *last = other;
    }
}

/// The quantity averaged over points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// 1 − max p.
    Error,
    /// H(p), nats.
    Entropy,
}

/// (Σ_{i≥1} p_(i) or H)·normaliser and Σ_i i·p_(i)·normaliser of unnormalised posteriors whose
/// largest is 1: sorted in place, largest first.
pub(super) fn numerator_and_union(quantity: Quantity, shares: &mut [f64]) -> (f64, f64) {
    shares.sort_unstable_by(|a, b| b.total_cmp(a));
    let others: f64 = shares.iter().skip(1).sum();
    let union = shares.iter().enumerate().map(|(i, p)| i as f64 * p).sum();
    let numerator = match quantity {
        Quantity::Error => others,
        Quantity::Entropy => entropy(shares, others),
    };
    (numerator, union)
}

/// Σ p·(−ln p)·total of shares that add to `total` = 1 + `others`, the first being 1.
pub(super) fn entropy(shares: &[f64], others: f64) -> f64 {
    let surprise = others.ln_1p();
    surprise + shares.iter().skip(1).map(|p| p * (surprise - p.ln())).sum::<f64>()
}
