//! Log-joints ln w_i f_i of all classes at blocks of random points around a class or beyond a face.

use std::ops::Range;

use super::classes::{Scene, dot};
use super::normal::{cdf_with, ln, quantile_with, tail, tail_quantile_of_log};
use super::rqmc::REPLICATES;
use super::simd::{Arithmetic, BLOCK, Block};
use super::sobol::Scramble;

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

/// Where a point lies, from a standard normal e.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// Around a class, beyond the face to a rival that lies so far (b) of the whole way (d).
    Beyond { class: usize, rival: usize, boundary: f64, distance: f64 },
    /// Around the middle of two classes.
    Between { one: usize, other: usize },
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

    /// Work at one point: products of means and points, / 16.
    pub fn cost(&self) -> f64 {
        (self.count * self.rank.max(16)) as f64 / 16.0
    }

    /// Blocks, of all replicates together, that so much work allows; one at least.
    pub fn blocks_for(&self, work: f64) -> u64 {
        (work / (self.cost() * (BLOCK * REPLICATES) as f64)).max(1.0) as u64
    }

    /// Room for blocks of this scene.
    pub fn workspace(&self) -> Workspace {
        Workspace {
            noise: vec![[0.0; BLOCK]; self.rank],
            along: vec![[0.0; BLOCK]; self.count],
            joints: vec![0.0; BLOCK * self.count],
        }
    }

    /// Fills `workspace.joints` for a block of points at these places. Coordinates `first_dim …` of the
    /// stream become a standard normal e. Its part along the line between two classes is replaced:
    /// beyond a face by one of t > b with the same rank.
    #[inline(always)]
    pub fn score<A: Arithmetic>(
        &self,
        scramble: &Scramble,
        (stream, block, first_dim): (u64, u64, usize),
        places: &[Place; BLOCK],
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
        for (point, place) in places.iter().enumerate() {
            // How far from the first class to the second the point is moved, over their distance.
            let (g, h, share) = match *place {
                Place::Beyond { class, rival, boundary, distance } if boundary > f64::NEG_INFINITY => {
                    let normal = (workspace.along[rival][point] - workspace.along[class][point]) / distance;
                    (class, rival, (beyond::<A>(boundary, normal) - normal) / distance)
                }
                Place::Beyond { class, rival, .. } => (class, rival, 0.0),
                Place::Between { one, other } => (one, other, 0.5),
            };
            let joints = &mut workspace.joints[point * self.count..(point + 1) * self.count];
            let from = &self.products[g * self.count..(g + 1) * self.count];
            let to = &self.products[h * self.count..(h + 1) * self.count];
            for (i, joint) in joints.iter_mut().enumerate() {
                *joint = A::mul_add(share, to[i] - from[i], self.offsets[i] + from[i] + workspace.along[i][point]);
            }
        }
    }

    /// The same in other coordinates: the first leads from one class to the other, the next in turn to
    /// the likeliest others at their middle.
    pub fn facing(&self, one: usize, other: usize) -> Self {
        let mean = |g: usize| &self.means[g * self.rank..(g + 1) * self.rank];
        let joint = |&i: &usize| {
            self.offsets[i] + 0.5 * (self.products[one * self.count + i] + self.products[other * self.count + i])
        };
        let mut rivals: Vec<usize> = (0..self.count).filter(|&i| i != one && i != other).collect();
        rivals.sort_by(|a, b| joint(b).total_cmp(&joint(a)));
        let middle: Vec<f64> = mean(one).iter().zip(mean(other)).map(|(a, b)| 0.5 * (a + b)).collect();
        // Where the classes do not span the whole, the axes do.
        let axis = |dim: usize| (0..self.rank).map(|i| f64::from(u8::from(i == dim))).collect();
        let from = |from: &[f64], to: usize| mean(to).iter().zip(from).map(|(to, from)| to - from).collect();
        let directions = std::iter::once(from(mean(one), other))
            .chain(rivals.iter().map(|&rival| from(&middle, rival)))
            .chain((0..self.rank).map(axis));
        let basis = orthonormal(directions, self.rank);
        let means = (0..self.count).flat_map(|g| basis.iter().map(move |axis| dot(mean(g), axis))).collect();
        let (products, offsets) = (self.products.clone(), self.offsets.clone());
        Self { count: self.count, rank: self.rank, means, products, offsets }
    }

    /// Posteriors over the largest, unsorted, without those whose logarithm is further below the second
    /// than `unseen` (negative) says.
    pub fn posteriors(&self, joints: &[f64], unseen: f64, out: &mut Vec<f64>) {
        let (mut first, mut second) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for &joint in joints {
            second = second.max(joint.min(first));
            first = first.max(joint);
        }
        out.clear();
        out.extend(joints.iter().filter(|joint| **joint - second > unseen).map(|joint| (joint - first).exp()));
    }
}

/// So many orthonormal axes in the order of these directions; those that lie in the ones before are left out.
fn orthonormal(directions: impl Iterator<Item = Vec<f64>>, rank: usize) -> Vec<Vec<f64>> {
    /// Part of a direction's length that tells it from rounding.
    const NEW: f64 = 1e-6;
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(rank);
    for mut direction in directions {
        if basis.len() == rank {
            break;
        }
        let length = dot(&direction, &direction).sqrt();
        // Twice: the second time removes what rounding left.
        for axis in basis.iter().chain(&basis) {
            let along = dot(&direction, axis);
            direction.iter_mut().zip(axis).for_each(|(x, a)| *x -= along * a);
        }
        let left = dot(&direction, &direction).sqrt();
        if left > NEW * length {
            direction.iter_mut().for_each(|x| *x /= left);
            basis.push(direction);
        }
    }
    basis
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

/// (Σ_{i≥1} p_(i))·normaliser and Σ_i i·p_(i)·normaliser of unnormalised posteriors whose largest is 1:
/// sorted in place, largest first.
pub(super) fn error_and_union(shares: &mut [f64]) -> (f64, f64) {
    shares.sort_unstable_by(|a, b| b.total_cmp(a));
    let others: f64 = shares.iter().skip(1).sum();
    let union = shares.iter().enumerate().map(|(i, p)| i as f64 * p).sum();
    (others, union)
}

/// Σ p·(−ln p)·total of shares that add to `total` = 1 + `others`, the first being 1.
pub(super) fn entropy(shares: &[f64], others: f64) -> f64 {
    let surprise = others.ln_1p();
    surprise + shares.iter().skip(1).map(|p| p * (surprise - p.ln())).sum::<f64>()
}
