//! What overlap adds to the Bayes error of labels that are not the classes: drawn from p_T (T ≠ 1), by label noise, or both.
//!
//! An image that is certainly of a group g of classes with one mean (mostly one class) has labels of a law L_g, and the error
//! e_g = 1 − max_j L_gj. With the weights W_g of the groups, p(g|x) ∝ W_g f_g and p_T(g|x) ∝ V_g f_g^(1/T), V_g = Σ_{k∈g} π_k^(1/T),
//!
//! E~ = Σ_g W_g e_g + E_x[F], F = 1 − max_j Σ_g p_T(g|x) L_gj − Σ_g p(g|x) e_g,
//!
//! for E_x[p(g|x)] = W_g. F vanishes where one group is certain, so that [`super::middle`] has its mean, and with it E~ to the
//! same relative accuracy at every error. At T = 1 and L the identity F is 1 − max p.
//!
//! F falls as ρ^(1/T) with the odds ρ of the second group, the density of points at s as ρ^s: with s = min(½, 1/T) R is at
//! most 1 (times what a wrong decision costs), since for joints j ≤ 1 over the largest Σ' j^(1/T) ≤ Σ' j^s ≤ D and
//! Σ j ≤ Σ j^(1/T) for T ≥ 1, and 1 − max p_T ≤ 1 − max p for T < 1. Small T, and labels that tell few groups apart, leave F
//! to few points: how many is counted ([`Integrand::peak`]).

use super::classes::{GaussianClasses, Scene};
use super::middle::{Integrand, OWN_FROM};
use super::normal::exp;
use super::posteriors::take;
use super::simd::{Arithmetic, BLOCK, Block};
use crate::stats::log_sum_exp;
use crate::units::Smoothing;

/// Work that the exponentials of a group cost at one point, about, as products of means and points / 16.
const GROUP: f64 = 5.0;
/// The same of a dimension: its coordinate and the quantile of it.
const DIMENSION: f64 = 4.0;
/// Dimensions up to which pairs have coordinates of their own: making them takes longer than it saves beyond.
const OWN_UP_TO: usize = 128;

/// F of labels.
pub(super) struct Doubt {
    /// 1/T.
    inverse: f64,
    /// ln V_g − (ln W_g)/T of every group; none where each is one class.
    shifts: Vec<f64>,
    laws: Laws,
    /// Σ W_g e_g.
    beside: f64,
    peak: f64,
}

/// Laws of labels.
struct Laws {
    groups: usize,
    labels: usize,
    /// L, [G, labels]; none where each group has one label of its own.
    rows: Vec<f64>,
    /// max_j L_gj.
    best: Vec<f64>,
}

impl Laws {
    fn new(certain: &[(f64, Vec<f64>)]) -> Self {
        let labels = certain.first().map_or(0, |(_, law)| law.len());
        let best: Vec<f64> = certain.iter().map(|(_, law)| law.iter().copied().fold(0.0, f64::max)).collect();
        let only = |law: &Vec<f64>| law.iter().position(|p| *p == 1.0);
        let mut taken = vec![false; labels];
        let mut own =
            |(_, law): &(f64, Vec<f64>)| only(law).is_some_and(|label| !std::mem::replace(&mut taken[label], true));
        let rows = match certain.iter().all(&mut own) {
            true => Vec::new(),
            false => certain.iter().flat_map(|(_, law)| law.iter().copied()).collect(),
        };
        Self { groups: certain.len(), labels, rows, best }
    }

    fn row(&self, group: usize) -> &[f64] {
        &self.rows[group * self.labels..(group + 1) * self.labels]
    }

    /// The most that deciding for the likeliest label of one group costs in another.
    fn regret(&self) -> f64 {
        if self.rows.is_empty() {
            return 1.0;
        }
        let decision = |g: usize| self.row(g).iter().position(|p| *p == self.best[g]).unwrap_or(0);
        let decisions: Vec<usize> = (0..self.groups).map(decision).collect();
        let costs = |h: usize| decisions.iter().map(move |&label| self.best[h] - self.row(h)[label]);
        (0..self.groups).flat_map(costs).fold(0.0, f64::max)
    }

    /// By how much the errors of certain groups differ.
    fn spread(&self) -> f64 {
        width(&self.best)
    }
}

/// The largest of some numbers less the smallest; 0 of none.
fn width(all: &[f64]) -> f64 {
    let (least, most) = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
    (most - least).max(0.0)
}

impl Doubt {
    /// Of the groups of a scene that has coincident classes merged by their sum, with their shares and the laws of the
    /// labels of images that are certainly theirs.
    pub fn new(classes: &GaussianClasses, scene: &Scene, certain: &[(f64, Vec<f64>)]) -> Self {
        let (inverse, laws) = (1.0 / classes.smoothing().get(), Laws::new(certain));
        let merged = classes.smoothing() != Smoothing::ONE && scene.members.iter().any(|group| group.len() > 1);
        let shift = |(group, log_weight): (&Vec<usize>, &f64)| {
            log_sum_exp(group.iter().map(|&k| (classes.priors()[k].ln() - log_weight) * inverse))
        };
        let shifts = match merged {
            true => scene.members.iter().zip(&scene.log_weights).map(shift).collect(),
            false => Vec::new(),
        };
        let spread = if classes.smoothing() == Smoothing::ONE { 0.0 } else { laws.spread() };
        let (regret, uneven) = (laws.regret(), width(&shifts));
        // Below T = 1 p_T is that of the joints times e^(T·shift), made sharper: by the group that is decided for,
        // 1 − max p_T and what is left of p have at most e^(½T·uneven) of the density, s being ½.
        let peak = match inverse > 1.0 {
            true => (regret + 2.0 * spread) * (0.5 * uneven / inverse).exp(),
            false => (regret + spread) * uneven.exp() + spread,
        };
        let beside = certain.iter().zip(&laws.best).map(|((weight, _), best)| weight * (1.0 - best)).sum();
        Self { inverse, shifts, laws, beside, peak }
    }

    /// Sums over all groups but one of each point: of joints the likeliest, of p_T the one that p_T is largest of.
    #[inline(always)]
    fn sums<A: Arithmetic>(&self, joints: &[f64], room: &mut [Block]) -> Sums {
        let (count, share) = (self.laws.groups, self.share());
        let mut column: Block = [0.0; BLOCK];
        let mut found = Sums::of_likeliest(joints, count);
        let most = self.decide(joints, &mut found);
        for class in 0..count {
            take(joints, count, class, &mut column);
            let shift = self.shifts.get(class).copied().unwrap_or(0.0);
            let (mut masses, mut tempered): (Block, Block) = ([0.0; BLOCK], [0.0; BLOCK]);
            for i in 0..BLOCK {
                let depth = found.first[i] - column[i];
                let other = if found.top[i] == class { 0.0 } else { 1.0 };
                let undecided = if found.decided[i] == class { 0.0 } else { 1.0 };
                let root = other * exp::<A>(-share * depth);
                let rest = if share == 0.5 { root } else { other * exp::<A>((share - 1.0) * depth) };
                let of_class = exp::<A>(A::mul_add(-self.inverse, depth, shift - most[i]));
                (masses[i], tempered[i]) = (root * rest, undecided * of_class);
                found.roots[i] += root;
                found.rests[i] += rest;
                found.shares[i] += masses[i];
                found.others[i] += tempered[i];
                found.all[i] += of_class;
            }
            if let Some(of_class) = room.get_mut(class) {
                *of_class = tempered;
                for (i, mass) in masses.into_iter().enumerate() {
                    let error = self.laws.best[found.top[i]] - self.laws.best[class];
                    found.errors[i] = A::mul_add(mass, error, found.errors[i]);
                }
            }
        }
        found
    }

    /// The largest ln (V_g f_g^(1/T)) of each point, over that of the likeliest group without its shift; and its group, which
    /// need not be the likeliest where groups are of several classes.
    #[inline(always)]
    fn decide(&self, joints: &[f64], found: &mut Sums) -> Block {
        if self.shifts.is_empty() {
            found.decided = found.top;
            return [0.0; BLOCK];
        }
        let (mut column, mut most): (Block, Block) = ([0.0; BLOCK], [f64::NEG_INFINITY; BLOCK]);
        for (class, shift) in self.shifts.iter().enumerate() {
            take(joints, self.laws.groups, class, &mut column);
            for i in 0..BLOCK {
                let tempered = shift - self.inverse * (found.first[i] - column[i]);
                let larger = tempered > most[i];
                found.decided[i] = if larger { class } else { found.decided[i] };
                most[i] = if larger { tempered } else { most[i] };
            }
        }
        most
    }

    /// F of a block of points. Of no term is a small one left by the difference of two large ones.
    #[inline(always)]
    fn doubts<A: Arithmetic>(&self, sums: &Sums, room: &[Block]) -> Block {
        if self.laws.rows.is_empty() {
            return std::array::from_fn(|i| sums.others[i] / sums.all[i]);
        }
        let mut least: Block = [f64::INFINITY; BLOCK];
        for label in 0..self.laws.labels {
            let mut of_others: Block = [0.0; BLOCK];
            for (class, tempered) in room.iter().enumerate() {
                let p = self.laws.row(class)[label];
                for i in 0..BLOCK {
                    of_others[i] = A::mul_add(p, tempered[i], of_others[i]);
                }
            }
            for i in 0..BLOCK {
                let (own, best) = (self.laws.row(sums.decided[i])[label], self.laws.best[sums.top[i]]);
                let lost = (best - own) + (own * sums.others[i] - of_others[i]) / sums.all[i];
                least[i] = if lost < least[i] { lost } else { least[i] };
            }
        }
        std::array::from_fn(|i| least[i] - sums.errors[i] / (1.0 + sums.shares[i]))
    }
}

/// Of a block of points: their likeliest groups, and sums over the others, over the joint of that.
struct Sums {
    top: [usize; BLOCK],
    /// The groups that p_T is largest of.
    decided: [usize; BLOCK],
    /// The log-joint of the likeliest.
    first: Block,
    /// Σ j^s.
    roots: Block,
    /// Σ j^(1−s).
    rests: Block,
    /// Σ j.
    shares: Block,
    /// Σ j (e − e of the likeliest).
    errors: Block,
    /// Σ V f^(1/T) over all but the largest, and with it.
    others: Block,
    all: Block,
}

impl Sums {
    #[inline(always)]
    fn of_likeliest(joints: &[f64], count: usize) -> Self {
        let zero: Block = [0.0; BLOCK];
        let (mut column, mut first, mut top) = (zero, [f64::NEG_INFINITY; BLOCK], [0; BLOCK]);
        for class in 0..count {
            take(joints, count, class, &mut column);
            for i in 0..BLOCK {
                let larger = column[i] > first[i];
                top[i] = if larger { class } else { top[i] };
                first[i] = if larger { column[i] } else { first[i] };
            }
        }
        let decided = [0; BLOCK];
        Self { top, decided, first, roots: zero, rests: zero, shares: zero, errors: zero, others: zero, all: zero }
    }
}

impl Integrand for Doubt {
    const LEAST_BLOCKS: f64 = 4.0;

    fn share(&self) -> f64 {
        self.inverse.min(0.5)
    }

    fn decay(&self) -> f64 {
        self.inverse - self.share()
    }

    fn own_from(&self, rank: usize) -> f64 {
        if rank > OWN_UP_TO { f64::INFINITY } else { OWN_FROM }
    }

    fn beside(&self) -> f64 {
        self.beside
    }

    fn peak(&self) -> f64 {
        self.peak
    }

    fn cost(&self, rank: usize) -> f64 {
        GROUP * self.laws.groups as f64 + DIMENSION * rank as f64 + self.laws.rows.len() as f64 / 16.0
    }

    fn room(&self) -> Vec<Block> {
        if self.laws.rows.is_empty() { Vec::new() } else { vec![[0.0; BLOCK]; self.laws.groups] }
    }

    #[inline(always)]
    fn ratios<A: Arithmetic>(&self, joints: &[f64], room: &mut [Block]) -> Block {
        let sums = self.sums::<A>(joints, room);
        let doubts = self.doubts::<A>(&sums, room);
        let ordered = if self.share() == 0.5 { 0.0 } else { 1.0 };
        std::array::from_fn(|i| {
            let Sums { roots, rests, shares, .. } = &sums;
            // Σ j^(1−s) j^s over pairs of others, in either order.
            let beside = A::mul_add(rests[i], roots[i], -shares[i]).max(0.0);
            let density = roots[i] + ordered * rests[i] + (0.5 + 0.5 * ordered) * beside;
            if density > 0.0 { doubts[i] * (1.0 + shares[i]) / density } else { 0.0 }
        })
    }
}

#[cfg(test)]
mod tests;
