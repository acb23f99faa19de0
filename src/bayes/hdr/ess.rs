//! LIN-ESS: elliptical slice sampling of a standard normal under linear constraints (Gessner,
//! Kanjilal, Hennig 2020, §2.2), exact and without rejection, since an ellipse meets a hyperplane
//! at angles known in closed form.

use std::f64::consts::{PI, TAU};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::bayes::classes::Scene;

/// The event a chain stays in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// No rival leads: a polytope.
    Correct,
    /// A rival leads: a union of half-spaces.
    Wrong,
}

/// One class against its rivals.
pub(super) struct Faces {
    /// m_h − m_g, [r, rivals], so that projecting runs along the rivals.
    columns: Vec<f64>,
    /// ½d_gh² + ln(w_g/w_h) = d_gh·b_gh.
    limits: Vec<f64>,
}

impl Faces {
    /// Class g of a scene against all others.
    pub fn of(scene: &Scene, g: usize) -> Self {
        let rivals: Vec<usize> = (0..scene.count()).filter(|&h| h != g).collect();
        let difference = |axis: usize, h: usize| scene.mean(h)[axis] - scene.mean(g)[axis];
        let columns = (0..scene.rank).flat_map(|axis| rivals.iter().map(move |&h| difference(axis, h))).collect();
        // Finite also where d² is not: a rival that far away plays no part.
        let limits = rivals.iter().map(|&h| (scene.distance(g, h) * scene.boundary(g, h)).min(1e300)).collect();
        Self { columns, limits }
    }

    /// How many rivals there are.
    pub fn rivals(&self) -> usize {
        self.limits.len()
    }

    /// (m_h − m_g)·e of a new e ~ N(0, I).
    fn project(&self, rng: &mut ChaCha8Rng, odds: &mut [f64]) {
        odds.fill(0.0);
        for column in self.columns.chunks_exact(self.rivals()) {
            let e: f64 = StandardNormal.sample(rng);
            odds.iter_mut().zip(column).for_each(|(sum, c)| *sum += c * e);
        }
    }

    /// The lead L: largest log posterior odds of a rival; −∞ without one.
    fn lead(&self, odds: &[f64]) -> f64 {
        odds.iter().zip(&self.limits).map(|(o, l)| o - l).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// A chain in {score ≤ shift}, score = L or −L. The state is not e but the odds it gives: they are
/// linear in e, so a step needs no more than the odds of the two points that span the ellipse.
pub(super) struct Chain<'a> {
    faces: &'a Faces,
    event: Event,
    /// (m_h − m_g)·e, [rivals].
    at: Vec<f64>,
    score: f64,
    /// The same of the other point, and of the next.
    toward: Vec<f64>,
    next: Vec<f64>,
    arcs: Vec<(f64, f64)>,
}

impl<'a> Chain<'a> {
    /// Nowhere yet: the first draw must be unconditional.
    pub fn new(faces: &'a Faces, event: Event) -> Self {
        let zeros = vec![0.0; faces.rivals()];
        let arcs = Vec::with_capacity(2 * faces.rivals() + 1);
        Self { faces, event, at: zeros.clone(), score: f64::NAN, toward: zeros.clone(), next: zeros, arcs }
    }

    /// The odds of the state, [rivals].
    pub fn at(&self) -> &[f64] {
        &self.at
    }

    /// L or −L of the state.
    pub fn score(&self) -> f64 {
        self.score
    }

    fn score_of(&self, odds: &[f64]) -> f64 {
        let lead = self.faces.lead(odds);
        if self.event == Event::Correct { lead } else { -lead }
    }

    /// Continues from these odds.
    pub fn start(&mut self, odds: &[f64]) {
        self.at.copy_from_slice(odds);
        self.score = self.score_of(odds);
    }

    /// The next draw: `steps` steps inside {score ≤ shift}; independent where shift is ∞.
    pub fn draw(&mut self, shift: f64, steps: usize, rng: &mut ChaCha8Rng) {
        if shift == f64::INFINITY {
            self.faces.project(rng, &mut self.at);
            self.score = self.score_of(&self.at);
        } else {
            (0..steps).for_each(|_| self.step(shift, rng));
        }
    }

    /// The ellipse e cos θ + ν sin θ with a new ν ~ N(0, I), and a uniform θ among those inside.
    fn step(&mut self, shift: f64, rng: &mut ChaCha8Rng) {
        self.faces.project(rng, &mut self.toward);
        self.find_arcs(shift);
        let free: f64 = self.arcs.iter().map(|(start, end)| end - start).sum();
        let mut left = free * rng.random::<f64>();
        let mut theta = 0.0;
        for &(start, end) in &self.arcs {
            if left <= end - start {
                theta = start + left;
                break;
            }
            left -= end - start;
        }
        let (sin, cos) = f64::sin_cos(theta);
        let ends = self.at.iter().zip(&self.toward);
        self.next.iter_mut().zip(ends).for_each(|(next, (at, toward))| *next = at * cos + toward * sin);
        let score = self.score_of(&self.next);
        // An end of an arc can lie outside by a rounding: then the step is not taken.
        if score <= shift {
            std::mem::swap(&mut self.at, &mut self.next);
            self.score = score;
        }
    }

    /// The angles in [0, 2π] inside, as disjoint arcs. Rival h exceeds its bound c_h where R cos(θ
    /// − φ) > c_h, R and φ the polar coordinates of its odds at θ = 0 and at θ = ½π: an arc of half
    /// width arccos(c_h/R) about φ.
    fn find_arcs(&mut self, shift: f64) {
        let shift = if self.event == Event::Correct { shift } else { -shift };
        self.arcs.clear();
        for ((p, q), limit) in self.at.iter().zip(&self.toward).zip(&self.faces.limits) {
            let (bound, reach) = (limit + shift, (p * p + q * q).sqrt());
            if bound >= reach {
                continue;
            }
            let half = if bound > -reach { (bound / reach).acos() } else { PI };
            let from = q.atan2(*p) - half;
            let from = if from < 0.0 { from + TAU } else { from };
            let to = from + 2.0 * half;
            self.arcs.push((from, to.min(TAU)));
            if to > TAU {
                self.arcs.push((0.0, to - TAU));
            }
        }
        merge(&mut self.arcs);
        if self.event == Event::Correct {
            complement(&mut self.arcs);
        }
    }
}

/// Arcs in ascending order, overlapping ones made one.
fn merge(arcs: &mut Vec<(f64, f64)>) {
    arcs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    arcs.dedup_by(|next, kept| {
        let overlap = next.0 <= kept.1;
        if overlap {
            kept.1 = kept.1.max(next.1);
        }
        overlap
    });
}

/// What disjoint ascending arcs leave of [0, 2π].
fn complement(arcs: &mut Vec<(f64, f64)>) {
    let mut from = 0.0;
    for arc in arcs.iter_mut() {
        let to = arc.1;
        *arc = (from, arc.0);
        from = to;
    }
    arcs.push((from, TAU));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::classes::{GaussianClasses, Merge};
    use crate::bayes::normal::{cdf, density, hazard, tail};
    use crate::units::{Seed, Tau};

    const D: f64 = 1.6;

    /// Class 0 of 0 and D along each axis: e is cut at ½D on every axis, and the odds are D·e.
    fn corner(axes: usize) -> Faces {
        let along = |k: usize| (0..axes).map(|i| if i + 1 == k { D } else { 0.0 }).collect();
        let means = (0..=axes).map(along).collect();
        let classes = GaussianClasses::new(means, vec![1.0 / (axes + 1) as f64; axes + 1]).unwrap();
        Faces::of(&classes.scene(Tau::ONE, Merge::Best), 0)
    }

    /// Means of e_1 and e_1² along a chain from `start`, which must not leave.
    fn moments(faces: &Faces, event: Event, shift: f64, start: f64) -> (f64, f64) {
        let mut chain = Chain::new(faces, event);
        chain.start(&vec![D * start; faces.rivals()]);
        let mut rng = Seed(5).rng(0);
        let (n, mut sums) = (100_000, (0.0, 0.0));
        for _ in 0..n {
            chain.draw(shift, 1, &mut rng);
            assert!(chain.score() <= shift && chain.score() == chain.score_of(chain.at()));
            let e = chain.at()[0] / D;
            sums = (sums.0 + e, sums.1 + e * e);
        }
        (sums.0 / f64::from(n), sums.1 / f64::from(n))
    }

    #[test]
    fn a_half_line_keeps_its_moments() {
        for shift in [0.0, 1.0] {
            let b = 0.5 * D + shift / D;
            let (mean, square) = moments(&corner(1), Event::Correct, shift, 0.0);
            assert!((mean + density(b) / cdf(b)).abs() < 0.015, "{mean}");
            assert!((square - (1.0 - b * density(b) / cdf(b))).abs() < 0.03, "{square}");
        }
        // Far in the tail every ellipse is all but outside.
        for shift in [0.0, -0.5, -8.0] {
            let b = 0.5 * D - shift / D;
            let (mean, square) = moments(&corner(1), Event::Wrong, shift, b + 0.1);
            assert!((mean - hazard(b)).abs() < 0.015, "{mean} {}", hazard(b));
            assert!((square - (1.0 + b * hazard(b))).abs() < 0.015 * (1.0 + 2.0 * b), "{square}");
        }
    }

    #[test]
    fn a_corner_and_what_lies_outside_it_keep_their_moments() {
        let b = 0.5 * D;
        let inside = cdf(b) * cdf(b);
        let (first, second) = (-density(b) * cdf(b), cdf(b) * (cdf(b) - b * density(b)));
        let (mean, square) = moments(&corner(2), Event::Correct, 0.0, 0.0);
        assert!((mean - first / inside).abs() < 0.015, "{mean}");
        assert!((square - second / inside).abs() < 0.03, "{square}");
        let (mean, square) = moments(&corner(2), Event::Wrong, 0.0, 1.0);
        let outside = tail(b) * (1.0 + cdf(b));
        assert!((mean + first / outside).abs() < 0.015, "{mean}");
        assert!((square - (1.0 - second) / outside).abs() < 0.03, "{square}");
    }

    #[test]
    fn arcs_merge_and_leave_gaps() {
        let mut arcs = vec![(3.0, 4.0), (0.5, 1.0), (0.75, 2.0), (3.25, 3.5), (6.0, TAU)];
        merge(&mut arcs);
        assert_eq!(arcs, [(0.5, 2.0), (3.0, 4.0), (6.0, TAU)]);
        complement(&mut arcs);
        assert_eq!(arcs, [(0.0, 0.5), (2.0, 3.0), (4.0, 6.0), (TAU, TAU)]);
    }
}
