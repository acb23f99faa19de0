//! What is asked of the posteriors at a point: the Bayes error and the union over pairs of sorted ones, and the entropy
//! over the density of middles.

use super::normal::{exp, ln};
use super::simd::{Arithmetic, BLOCK, Block};

/// Room for the posteriors of one point.
#[derive(Default)]
pub(super) struct Sorter {
    depths: Vec<f64>,
    sorted: Vec<f64>,
    starts: Vec<u32>,
}

impl Sorter {
    /// Σ_{i≥1} p_(i) and Σ_i i·p_(i) of the sorted posteriors of these log-joints, over the second largest, so that
    /// neither leaves the range of doubles; without those whose logarithm is further below the second than `unseen`
    /// (negative) says.
    #[inline(always)]
    pub fn error_and_union<A: Arithmetic>(&mut self, joints: &[f64], unseen: f64) -> (f64, f64) {
        let (first, second) = first_and_second(joints);
        let deepest = first - second - unseen;
        self.depths.resize(joints.len(), 0.0);
        let mut count = 0;
        for joint in joints {
            // Without a branch: which are left out cannot be foreseen.
            self.depths[count] = first - joint;
            count += usize::from(first - joint < deepest);
        }
        self.sort(count, deepest);
        for depth in self.sorted[..count].iter_mut().skip(1) {
            *depth = exp::<A>(first - second - *depth);
        }
        let (mut others, mut union) = (0.0, 0.0);
        for (i, p) in self.sorted[..count].iter().enumerate().skip(1) {
            union += i as f64 * p;
            others += p;
        }
        (others, union)
    }

    /// Puts the first `count` depths into `sorted` in ascending order: into four buckets for each, then in order
    /// inside of these.
    fn sort(&mut self, count: usize, deepest: f64) {
        let depths = &self.depths[..count];
        let buckets = 4 * count;
        let scale = buckets as f64 / deepest;
        let bucket = |depth: f64| ((depth * scale) as usize).min(buckets - 1);
        self.starts.clear();
        self.starts.resize(buckets + 1, 0);
        depths.iter().for_each(|depth| self.starts[bucket(*depth) + 1] += 1);
        (0..buckets).for_each(|i| self.starts[i + 1] += self.starts[i]);
        self.sorted.resize(self.depths.len(), 0.0);
        for &depth in depths {
            let place = &mut self.starts[bucket(depth)];
            self.sorted[*place as usize] = depth;
            *place += 1;
        }
        for i in 1..count {
            let depth = self.sorted[i];
            let mut at = i;
            while at > 0 && self.sorted[at - 1] > depth {
                self.sorted[at] = self.sorted[at - 1];
                at -= 1;
            }
            self.sorted[at] = depth;
        }
    }
}

/// The two largest.
#[inline(always)]
fn first_and_second(values: &[f64]) -> (f64, f64) {
    let (mut first, mut second) = ([f64::NEG_INFINITY; 8], [f64::NEG_INFINITY; 8]);
    let larger = |a: f64, b: f64| if a > b { a } else { b };
    let smaller = |a: f64, b: f64| if a < b { a } else { b };
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for i in 0..8 {
            second[i] = larger(second[i], smaller(eight[i], first[i]));
            first[i] = larger(first[i], eight[i]);
        }
    }
    first.iter().chain(&second).chain(rest).fold((f64::NEG_INFINITY, f64::NEG_INFINITY), |(first, second), &value| {
        (larger(first, value), larger(second, smaller(value, first)))
    })
}

/// H(p)·Σ j / Σ_{g<h} √(j_g j_h) of the log-joints [BLOCK][count] of a block of points.
#[inline(always)]
pub(super) fn ratios<A: Arithmetic>(joints: &[f64], count: usize) -> Block {
    let mut column: Block = [0.0; BLOCK];
    let mut first: Block = [f64::NEG_INFINITY; BLOCK];
    for class in 0..count {
        take(joints, count, class, &mut column);
        for i in 0..BLOCK {
            first[i] = if column[i] > first[i] { column[i] } else { first[i] };
        }
    }
    // Sums over all classes but the largest: one of those that share its depth of 0.
    let [mut others, mut roots, mut nats] = [[-1.0; BLOCK], [-1.0; BLOCK], [0.0; BLOCK]];
    let (mut near, mut near_roots): (Block, Block) = ([0.0; BLOCK], [0.0; BLOCK]);
    for class in 0..count {
        take(joints, count, class, &mut column);
        for i in 0..BLOCK {
            let depth = first[i] - column[i];
            let root = exp::<A>(-0.5 * depth);
            let share = root * root;
            let alike = if depth > 0.0 { 0.0 } else { 1.0 };
            others[i] += alike;
            roots[i] += alike;
            // Apart from those of 1, beside which small ones would be lost.
            near[i] += if depth > 0.0 { share } else { 0.0 };
            near_roots[i] += if depth > 0.0 { root } else { 0.0 };
            nats[i] = A::mul_add(share, depth, nats[i]);
        }
    }
    let mut found: Block = [0.0; BLOCK];
    for i in 0..BLOCK {
        let (others, roots) = (others[i] + near[i], roots[i] + near_roots[i]);
        let total = 1.0 + others;
        // ln(1 + others) with what rounding took from the sum.
        let surprise = ln::<A>(total) + (others - (total - 1.0)) / total;
        let beside = A::mul_add(roots, roots, -others);
        let all = roots + 0.5 * if beside > 0.0 { beside } else { 0.0 };
        let ratio = A::mul_add(total, surprise, nats[i]) / if all > 0.0 { all } else { 1.0 };
        found[i] = if all > 0.0 { ratio } else { 0.0 };
    }
    found
}

/// The log-joints of one class.
#[inline(always)]
pub(super) fn take(joints: &[f64], count: usize, class: usize, column: &mut Block) {
    for (x, joints) in column.iter_mut().zip(joints.chunks_exact(count)) {
        *x = joints[class];
    }
}

#[cfg(test)]
mod tests {
    use rand::distr::{Distribution, StandardUniform};

    use super::super::simd::Fused;
    use super::*;
    use crate::units::Seed;

    #[test]
    fn bucketed_posteriors_have_the_sums_of_sorted_ones() {
        let mut rng = Seed(4).rng(0);
        let mut uniform = || -> f64 { StandardUniform.sample(&mut rng) };
        let mut sorter = Sorter::default();
        for count in [1, 2, 3, 8, 9, 40, 1000] {
            for spread in [0.0, 1e-3, 3.0, 50.0, 1e4] {
                let mut joints: Vec<f64> = (0..count).map(|_| spread * uniform()).collect();
                let (error, union) = sorter.error_and_union::<Fused>(&joints, -25.0);
                joints.sort_by(|a, b| b.total_cmp(a));
                let second = joints.get(1).copied().unwrap_or(f64::NEG_INFINITY);
                let seen = joints.iter().filter(|joint| **joint - second > -25.0);
                let shares: Vec<f64> = seen.map(|joint| (joint - second).exp()).collect();
                let others: f64 = shares.iter().skip(1).sum();
                let ranked: f64 = shares.iter().enumerate().skip(1).map(|(i, p)| i as f64 * p).sum();
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-13 * b;
                assert!(
                    near(error, others) && near(union, ranked),
                    "{count}, {spread}: {error} {others} {union} {ranked}"
                );
            }
        }
    }

    #[test]
    fn what_is_unthinkable_adds_nothing() {
        let ratio = |joints: &[f64]| {
            let found = ratios::<Fused>(&joints.repeat(BLOCK), joints.len());
            assert!(found.iter().all(|ratio| *ratio == found[0]));
            found[0]
        };
        assert_eq!((ratio(&[3.0]), ratio(&[-2.0, -1e300])), (0.0, 0.0));
        assert!((ratio(&[5.0, 5.0]) - 2.0 * std::f64::consts::LN_2).abs() < 1e-15);
        // Two classes, one of which is next to impossible: √p·(1 − ln p).
        for depth in [30.0f64, 80.0, 600.0] {
            let expected = (-0.5 * depth).exp() * (1.0 + depth);
            assert!((ratio(&[1.0, 1.0 - depth]) / expected - 1.0).abs() < 1e-6, "{depth}");
        }
    }
}
