//! Log-joints ln w_i f_i of all classes at blocks of random points around a class or beyond a face.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use super::classes::{Scene, dot};
use super::normal::{cdf_with, ln, quantile_with, tail, tail_quantile_of_log};
use super::rqmc::REPLICATES;
use super::simd::{Arithmetic, BLOCK, Block};
use super::sobol::Scramble;

/// Means and their products, ready for blocks of points.
pub(super) struct Scorer {
    count: usize,
    rank: usize,
    /// [G, r], those with the most coordinates that are not 0 first.
    means: Vec<f64>,
    /// Whose these means are.
    order: Vec<usize>,
    /// How many of their coordinates come before the zeros.
    extents: Vec<usize>,
    invariants: Arc<Invariants>,
}

/// What is the same in all coordinates.
struct Invariants {
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
    /// Around the point so far (`share`) of the way from one class to another.
    Between { one: usize, other: usize, share: f64 },
}

/// Room for one block.
pub(super) struct Workspace {
    noise: Vec<Block>,
    /// m·e of the means in their order.
    along: Vec<Block>,
    /// The same of one point after the other: [BLOCK][G].
    scalars: Vec<f64>,
    /// Log-joints of the points so far, less |z|²/2 and constants: [BLOCK][G].
    pub joints: Vec<f64>,
}

impl Scorer {
    /// A scorer for the groups of `scene`.
    pub fn new(scene: &Scene) -> Self {
        let count = scene.count();
        let squares: Vec<f64> = (0..count).map(|i| dot(scene.mean(i), scene.mean(i))).collect();
        let product = |i: usize, j: usize| 0.5 * (squares[i] + squares[j] - scene.distance(i, j).powi(2));
        let products: Vec<f64> =
            (0..count).flat_map(|i| (0..count).map(move |j| (i, j))).map(|(i, j)| product(i, j)).collect();
        let offsets = (0..count).map(|i| scene.log_weights[i] - 0.5 * products[i * count + i]).collect();
        Self::of_means(scene.rank, &scene.means, Arc::new(Invariants { products, offsets }))
    }

    /// Coordinates of means are triangular where every axis was led through one more of them: half of the
    /// products are with 0.
    fn of_means(rank: usize, means: &[f64], invariants: Arc<Invariants>) -> Self {
        let count = invariants.offsets.len();
        let mean = |g: usize| &means[g * rank..(g + 1) * rank];
        let extent = |g: usize| mean(g).iter().rposition(|x| *x != 0.0).map_or(0, |last| last + 1);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_cached_key(|&g| Reverse(extent(g)));
        let extents = order.iter().map(|&g| extent(g)).collect();
        let means = order.iter().flat_map(|&g| mean(g)).copied().collect();
        Self { count, rank, means, order, extents, invariants }
    }

    /// ln w_i − |m_i|²/2, [G].
    pub fn offsets(&self) -> &[f64] {
        &self.invariants.offsets
    }

    /// Work at one point: products of means and points, / 16.
    pub fn cost(&self) -> f64 {
        (self.count * self.rank.max(16)) as f64 / 16.0
    }

    /// Room for blocks of this scene.
    pub fn workspace(&self) -> Workspace {
        Workspace {
            noise: vec![[0.0; BLOCK]; self.rank],
            along: vec![[0.0; BLOCK]; self.count],
            scalars: vec![0.0; BLOCK * self.count],
            joints: vec![0.0; BLOCK * self.count],
        }
    }

    /// Fills `workspace.joints` for a block of points at these places.
    #[inline(always)]
    pub fn score<A: Arithmetic>(
        &self,
        scramble: &Scramble,
        (stream, block, first_dim): (u64, u64, usize),
        places: &[Place; BLOCK],
        workspace: &mut Workspace,
    ) {
        self.draw::<A>(scramble, (stream, block, first_dim), workspace);
        self.put::<A>(places, 1.0, workspace);
    }

    /// Draws a block of standard normal e: coordinates `first_dim …` of the stream.
    #[inline(always)]
    pub fn draw<A: Arithmetic>(
        &self,
        scramble: &Scramble,
        (stream, block, first_dim): (u64, u64, usize),
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
            let end = (start + DIMS).min(self.rank);
            // All further ones have nothing but zeros here.
            let reach = self.extents.partition_point(|extent| *extent > start);
            let means = self.means[..reach * self.rank].chunks(2 * self.rank);
            for ((means, along), extents) in
                means.zip(workspace.along[..reach].chunks_mut(2)).zip(self.extents.chunks(2))
            {
                products::<A>(means, start..end.min(extents[0]), &workspace.noise, along);
            }
        }
        for (&class, along) in self.order.iter().zip(&workspace.along) {
            for (point, along) in along.iter().enumerate() {
                workspace.scalars[point * self.count + class] = *along;
            }
        }
    }

    /// Fills `workspace.joints` for the e that was drawn last, or for −e (`sign` = −1), at these places. Its
    /// part along the line between two classes is replaced: beyond a face by one of t > b with the same rank.
    #[inline(always)]
    pub fn put<A: Arithmetic>(&self, places: &[Place; BLOCK], sign: f64, workspace: &mut Workspace) {
        let Invariants { products, offsets } = &*self.invariants;
        let scalars = workspace.scalars.chunks_exact(self.count);
        for ((place, scalars), joints) in places.iter().zip(scalars).zip(workspace.joints.chunks_exact_mut(self.count))
        {
            // How far from the first class to the second the point is moved, over their distance.
            let (g, h, share) = match *place {
                Place::Beyond { class, rival, boundary, distance } if boundary > f64::NEG_INFINITY => {
                    let normal = sign * (scalars[rival] - scalars[class]) / distance;
                    (class, rival, (beyond::<A>(boundary, normal) - normal) / distance)
                }
                Place::Beyond { class, rival, .. } => (class, rival, 0.0),
                Place::Between { one, other, share } => (one, other, share),
            };
            let from = &products[g * self.count..(g + 1) * self.count];
            let to = &products[h * self.count..(h + 1) * self.count];
            for ((joint, scalar), ((from, to), offset)) in
                joints.iter_mut().zip(scalars).zip(from.iter().zip(to).zip(offsets))
            {
                *joint = A::mul_add(share, to - from, offset + from + sign * scalar);
            }
        }
    }

    /// The same in other coordinates: the first leads from one class to the other, the next in turn to
    /// the likeliest others so far (`share`) of the way.
    pub fn facing(&self, one: usize, other: usize, share: f64) -> Self {
        let mut ordered: Vec<&[f64]> = vec![&[]; self.count];
        self.order.iter().zip(self.means.chunks(self.rank)).for_each(|(&g, mean)| ordered[g] = mean);
        let mean = |g: usize| ordered[g];
        let Invariants { products, offsets } = &*self.invariants;
        let between = |a: f64, b: f64| (1.0 - share) * a + share * b;
        let joint = |&i: &usize| offsets[i] + between(products[one * self.count + i], products[other * self.count + i]);
        let mut rivals: Vec<usize> = (0..self.count).filter(|&i| i != one && i != other).collect();
        rivals.sort_by(|a, b| joint(b).total_cmp(&joint(a)));
        let place: Vec<f64> = mean(one).iter().zip(mean(other)).map(|(a, b)| between(*a, *b)).collect();
        // Where the classes do not span the whole, the axes do.
        let axis = |dim: usize| (0..self.rank).map(|i| f64::from(u8::from(i == dim))).collect();
        let from = |from: &[f64], to: usize| mean(to).iter().zip(from).map(|(to, from)| to - from).collect();
        let directions = std::iter::once(from(mean(one), other))
            .chain(rivals.iter().map(|&rival| from(&place, rival)))
            .chain((0..self.rank).map(axis));
        let basis = orthonormal(directions, self.rank);
        let means: Vec<f64> = ordered.iter().flat_map(|mean| basis.iter().map(|axis| dot(mean, axis))).collect();
        Self::of_means(self.rank, &means, self.invariants.clone())
    }
}

/// Blocks of every replicate that so much work allows, where a point costs so much; one at least.
pub(super) fn blocks_for(work: f64, cost: f64) -> u64 {
    (work / (cost * (BLOCK * REPLICATES) as f64)).max(1.0) as u64
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

#[cfg(test)]
mod tests {
    use rand::distr::{Distribution, StandardUniform};

    use super::super::classes::{GaussianClasses, Merge};
    use super::super::simd::Plain;
    use super::*;
    use crate::units::{Seed, Tau};

    #[test]
    fn log_joints_are_those_of_the_densities_on_either_side_of_the_noise() {
        let mut rng = Seed(5).rng(0);
        let mut uniform = || -> f64 { StandardUniform.sample(&mut rng) };
        let means = (0..45).map(|_| (0..60).map(|_| 0.5 * uniform()).collect()).collect();
        let classes = GaussianClasses::new(means, vec![1.0 / 45.0; 45]).unwrap();
        let scene = classes.scene(Tau::ONE, Merge::Best);
        let scorer = Scorer::new(&scene);
        let facing = scorer.facing(3, 20, 0.3);
        // As many as there are pairs share what needs most memory.
        assert!(Arc::ptr_eq(&scorer.invariants, &facing.invariants));
        for scorer in [scorer, facing] {
            let scramble = Scramble::new(Seed(6), 0, scene.rank);
            let mut workspace = scorer.workspace();
            scorer.draw::<Plain>(&scramble, (0, 2, 0), &mut workspace);
            let means: Vec<&[f64]> = scorer.means.chunks(scene.rank).collect();
            let of = |class: usize| means[scorer.order.iter().position(|&g| g == class).unwrap()];
            for sign in [1.0, -1.0] {
                scorer.put::<Plain>(&[Place::Between { one: 7, other: 30, share: 0.3 }; BLOCK], sign, &mut workspace);
                for point in [0, 17, 63] {
                    let place = of(7).iter().zip(of(30)).map(|(a, b)| 0.7 * a + 0.3 * b);
                    let z: Vec<f64> = place.zip(&workspace.noise).map(|(m, e)| m + sign * e[point]).collect();
                    let joint = |class: usize| {
                        let square: f64 = of(class).iter().zip(&z).map(|(m, z)| (z - m).powi(2)).sum();
                        scene.log_weights[class] - 0.5 * square + 0.5 * dot(&z, &z)
                    };
                    let found = &workspace.joints[point * 45..(point + 1) * 45];
                    (0..45).for_each(|class| assert!((found[class] - joint(class)).abs() < 1e-11, "{class}, {point}"));
                }
            }
        }
    }
}
