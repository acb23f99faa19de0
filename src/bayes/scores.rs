//! Log-joints ln w_i f_i of all classes at blocks of random points around a class or beyond a face.

use std::ops::Range;
use std::sync::Arc;

use super::classes::{Scene, dot};
use super::normal::{cdf_with, ln, quantile_with, tail, tail_quantile_of_log};
use super::rqmc::REPLICATES;
use super::simd::{Arithmetic, BLOCK, Block};
use super::sobol::Scramble;
use crate::kernels::Panels;

/// Means and their products, ready for blocks of points.
pub(super) struct Scorer {
    count: usize,
    rank: usize,
    /// [G, r].
    means: Vec<f64>,
    /// m_i·m_j, [G, G].
    products: Arc<Vec<f64>>,
    /// ln w_i − |m_i|²/2.
    offsets: Vec<f64>,
    /// The means as the matrix products of the host want them, where there are many dimensions.
    panels: Option<Panels<f64>>,
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
    /// The noise point after point.
    rows: Vec<f64>,
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
        let (means, panels) = (scene.means.clone(), panels(&scene.means, scene.rank, count));
        Self { count, rank: scene.rank, means, products: Arc::new(products), offsets, panels }
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
            along: if self.panels.is_some() { Vec::new() } else { vec![[0.0; BLOCK]; self.count] },
            rows: if self.panels.is_some() { vec![0.0; BLOCK * self.rank] } else { Vec::new() },
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
        self.along::<A>(workspace);
        for (point, place) in places.iter().enumerate() {
            let joints = &mut workspace.joints[point * self.count..(point + 1) * self.count];
            // How far from the first class to the second the point is moved, over their distance.
            let (g, h, share) = match *place {
                Place::Beyond { class, rival, boundary, distance } if boundary > f64::NEG_INFINITY => {
                    let normal = (joints[rival] - joints[class]) / distance;
                    (class, rival, (beyond::<A>(boundary, normal) - normal) / distance)
                }
                Place::Beyond { class, rival, .. } => (class, rival, 0.0),
                Place::Between { one, other } => (one, other, 0.5),
            };
            let from = &self.products[g * self.count..(g + 1) * self.count];
            let to = &self.products[h * self.count..(h + 1) * self.count];
            for (i, joint) in joints.iter_mut().enumerate() {
                *joint = A::mul_add(share, to[i] - from[i], self.offsets[i] + from[i] + *joint);
            }
        }
    }

    /// Products of the block's noise and all means, into `workspace.joints`.
    #[inline(always)]
    fn along<A: Arithmetic>(&self, workspace: &mut Workspace) {
        let Workspace { noise, along, rows, joints } = workspace;
        if let Some(panels) = &self.panels {
            for (dim, noise) in noise.iter().enumerate() {
                rows.iter_mut().skip(dim).step_by(self.rank).zip(noise).for_each(|(to, from)| *to = *from);
            }
            return panels.apply(rows, joints);
        }
        along.fill([0.0; BLOCK]);
        for start in (0..self.rank).step_by(DIMS) {
            let part = start..(start + DIMS).min(self.rank);
            for (means, along) in self.means.chunks(2 * self.rank).zip(along.chunks_mut(2)) {
                products::<A>(means, part.clone(), noise, along);
            }
        }
        for (i, along) in along.iter().enumerate() {
            joints.iter_mut().skip(i).step_by(self.count).zip(along).for_each(|(to, from)| *to = *from);
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
        let means: Vec<f64> = (0..self.count).flat_map(|g| basis.iter().map(move |axis| dot(mean(g), axis))).collect();
        let (products, offsets) = (self.products.clone(), self.offsets.clone());
        let panels = panels(&means, self.rank, self.count);
        Self { count: self.count, rank: self.rank, means, products, offsets, panels }
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

/// Dimensions from which packed matrix products are worth their bookkeeping.
const PACKED_FROM: usize = 64;

/// The means [count, rank] packed, where that is worth it.
fn panels(means: &[f64], rank: usize, count: usize) -> Option<Panels<f64>> {
    (rank >= PACKED_FROM).then(|| Panels::new(means, &vec![0.0; count]))
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

#[cfg(test)]
mod tests {
    use super::super::classes::{GaussianClasses, Merge};
    use super::super::simd::{Kernel, vectorise};
    use super::*;
    use crate::units::{Seed, Tau};

    struct Joints<'a>(&'a Scorer, [Place; BLOCK]);

    impl Kernel for Joints<'_> {
        type Output = Vec<f64>;

        #[inline(always)]
        fn run<A: Arithmetic>(self) -> Vec<f64> {
            let scramble = Scramble::new(Seed(2), 1, self.0.rank + 1);
            let mut workspace = self.0.workspace();
            self.0.score::<A>(&scramble, (3, 1, 1), &self.1, &mut workspace);
            workspace.joints
        }
    }

    /// Classes in as many dimensions as they span, some of them far below the smallest normal number apart.
    fn scorer(count: usize) -> Scorer {
        let mean = |k: usize| (0..count).map(|i| if i == k { 3.0 + k as f64 * 0.01 } else { 1e-310 }).collect();
        let classes = GaussianClasses::new((0..count).map(mean).collect(), vec![1.0 / count as f64; count]).unwrap();
        Scorer::new(&classes.scene(Tau::ONE, Merge::Best))
    }

    fn places(count: usize) -> [Place; BLOCK] {
        std::array::from_fn(|i| match i % 3 {
            0 => Place::Between { one: i % count, other: (i + 1) % count },
            1 => Place::Beyond { class: i % count, rival: (i + 1) % count, boundary: 2.0, distance: 4.3 },
            _ => Place::Beyond { class: 0, rival: 1, boundary: f64::NEG_INFINITY, distance: 4.3 },
        })
    }

    #[test]
    fn packed_products_give_what_plain_ones_give() {
        for count in [PACKED_FROM + 1, PACKED_FROM + 2, 97] {
            let packed = scorer(count);
            assert!(packed.panels.is_some(), "{count}");
            let plain = Scorer { panels: None, ..scorer(count) };
            let (one, other) = (vectorise(Joints(&packed, places(count))), vectorise(Joints(&plain, places(count))));
            assert_eq!(one.len(), BLOCK * count);
            assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-11 * (1.0 + b.abs())), "{count}");
        }
    }

    #[test]
    fn what_is_no_number_stays_so_and_is_left_out_of_posteriors() {
        let mut packed = scorer(PACKED_FROM + 1);
        packed.offsets[1] = f64::NAN;
        let joints = vectorise(Joints(&packed, places(PACKED_FROM + 1)));
        let mut shares = Vec::new();
        for joints in joints.chunks_exact(packed.count) {
            assert!(joints[1].is_nan() && joints.iter().filter(|joint| joint.is_nan()).count() == 1);
            packed.posteriors(joints, f64::NEG_INFINITY, &mut shares);
            assert!(shares.len() == packed.count - 1 && shares.iter().all(|share| *share <= 1.0));
        }
    }

    #[test]
    fn other_coordinates_keep_every_product_and_lead_to_the_second_class_first() {
        for count in [3, 9, PACKED_FROM + 1] {
            let scorer = scorer(count);
            let facing = scorer.facing(2, 0);
            let mean = |of: &Scorer, g: usize| of.means[g * of.rank..(g + 1) * of.rank].to_vec();
            for (g, h) in (0..count).flat_map(|g| (0..count).map(move |h| (g, h))) {
                let both = [&scorer, &facing].map(|of| dot(&mean(of, g), &mean(of, h)));
                assert!((both[0] - both[1]).abs() < 1e-11, "{g} {h}: {both:?}");
            }
            let way: Vec<f64> = mean(&facing, 0).iter().zip(mean(&facing, 2)).map(|(a, b)| a - b).collect();
            assert!(way[0] > 1.0 && way[1..].iter().all(|x| x.abs() < 1e-11));
        }
    }
}
