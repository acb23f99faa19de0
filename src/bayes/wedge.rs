//! One term of the first-violation sum and its separation of variables.
//!
//! Class g loses first to h where n_h·e > b_h while n_i·e ≤ b_i for the rivals i before h (theory
//! §3; e ~ N(0, I) around m_g). The violated direction is sampled first, t > b_h; the constraints
//! left are those of an orthant in the other directions, whose Cholesky factor is pivoted after
//! Gibson, Glasbey and Elston (the least likely next), and each variable is drawn inside its bounds
//! (Genz). The last one is integrated, not drawn. A face between g and h, on which the derivative
//! in τ lives, is the same with t held at b_h.

mod draw;

use super::classes::{Directions, Scene, dot};
use super::normal::{hazard, log_density, log_tail, tail};
pub(super) use draw::{HALF, Points, Tensor};

/// Residual variance of a constraint below which it depends on the variables before it.
const DEPENDENT: f64 = 1e-12;
/// Probability of violating a constraint, given the term, below which the constraint is dropped.
pub(super) const NEGLIGIBLE: f64 = 1e-10;

/// The direction of h.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lead {
    /// t > b: a violation.
    Beyond(f64),
    /// t = b: a face.
    At(f64),
}

/// Returns whether an integrand from 0 to 1 steps between its ends where the points are too few to see how: of this `mean`,
/// and the mean `between` of w(1 − w), at points so far apart (`spacing`). Class means that nearly lie on a line or in a plane
/// leave such terms. Points on a step may agree by chance, and their agreement says nothing of where it is.
pub(super) fn is_step(mean: f64, between: f64, spacing: f64) -> bool {
    // Rounding takes the mean of an integrand of 1 from it.
    4.0 * between + 1e-12 < mean.min(1.0 - mean).min(spacing)
}

/// A constraint without a new variable: it bounds an earlier one from above or below.
#[derive(Debug, Clone)]
struct Dependent {
    variable: usize,
    row: Vec<f64>,
    upper: bool,
}

/// ∫ over the lead and its constraints, divided by the lead's own mass: a probability.
#[derive(Debug, Clone)]
pub(super) struct Wedge {
    /// The lead, narrowed by constraints against its own direction.
    pub lead: Lead,
    /// Triangular rows [b, c_t, c_1 … c_(v−1)] over the pivot, so that y_v ≤ b − c·(t, y).
    rows: Vec<f64>,
    dependents: Vec<Dependent>,
    /// Variables v after the lead.
    variables: usize,
    /// Probability that dropped constraints would have taken, at most.
    pub dropped: f64,
}

/// A constraint while the factor is built.
struct Open {
    bound: f64,
    /// Coefficients on t and the variables so far.
    row: Vec<f64>,
    /// Variance left after them.
    left: f64,
    rival: usize,
    /// b less the mean of what is known.
    slack: f64,
    /// The same in standard deviations of what is not.
    tightness: f64,
}

impl Wedge {
    /// The wedge of g and h under the constraints of `rivals`; `None` where it is empty. For a
    /// violation the rivals are those before h in the order of b.
    pub fn new(scene: &Scene, from: &Directions, h: usize, mut lead: Lead, rivals: &[usize]) -> Option<Self> {
        let (along, across): (Vec<usize>, Vec<usize>) =
            rivals.iter().partition(|&&rival| 1.0 - from.cosine(h, rival).powi(2) < DEPENDENT);
        for rival in along {
            narrow(&mut lead, from.cosine(h, rival), scene.boundary(from.g, rival))?;
        }
        let (mut open, mut dropped) = (Vec::with_capacity(across.len()), 0.0);
        for rival in across {
            let (rho, bound) = (from.cosine(h, rival), scene.boundary(from.g, rival));
            let chance = violation(lead, rho, bound);
            if chance < NEGLIGIBLE {
                dropped += chance;
            } else {
                open.push(Open { bound, row: vec![rho], left: 1.0 - rho * rho, rival, slack: 0.0, tightness: 0.0 });
            }
        }
        let mut wedge = Self { lead, rows: Vec::new(), dependents: Vec::new(), variables: 0, dropped };
        wedge.factorise(from, open);
        Some(wedge)
    }

    /// ln of the lead's own mass: Q(b), or φ(b) on a face.
    pub fn log_lead(&self) -> f64 {
        match self.lead {
            Lead::Beyond(b) => log_tail(b),
            Lead::At(b) => log_density(b),
        }
    }

    /// Returns whether nothing is left to integrate.
    pub fn certain(&self) -> bool {
        self.variables == 0
    }

    /// Uniform numbers a point takes: the last variable needs none.
    pub fn dims(&self) -> usize {
        match self.lead {
            _ if self.variables == 0 => 0,
            Lead::Beyond(_) => self.variables,
            Lead::At(_) => self.variables - 1,
        }
    }

    /// Pivoted Cholesky factor of the constraints.
    fn factorise(&mut self, from: &Directions, mut open: Vec<Open>) {
        let mut mean = match self.lead {
            Lead::Beyond(b) => hazard(b),
            Lead::At(b) => b,
        };
        let variables = open.len();
        for constraint in &mut open {
            constraint.slack = constraint.bound - constraint.row[0] * mean;
            constraint.tightness = constraint.slack / constraint.left.sqrt();
            constraint.row.reserve_exact(variables);
        }
        while let Some(tightest) = (0..open.len()).min_by(|&a, &b| open[a].tightness.total_cmp(&open[b].tightness)) {
            let pivot = open.swap_remove(tightest);
            let scale = pivot.left.sqrt();
            self.rows.push(pivot.bound / scale);
            self.rows.extend(pivot.row.iter().map(|c| c / scale));
            self.variables += 1;
            mean = mean_below(pivot.slack / scale);
            for other in &mut open {
                let known = dot(&other.row, &pivot.row);
                let c = (from.cosine(other.rival, pivot.rival) - known) / scale;
                other.row.push(c);
                other.left -= c * c;
                other.slack -= c * mean;
                other.tightness = other.slack / other.left.sqrt();
            }
            let spent = open.extract_if(.., |other| other.left < DEPENDENT);
            spent.for_each(|constraint| self.depend(&constraint));
        }
    }

    /// Files a constraint without variance of its own under the newest variable.
    fn depend(&mut self, constraint: &Open) {
        let variable = self.variables;
        let scale = constraint.row[variable];
        let row = std::iter::once(constraint.bound).chain(constraint.row[..variable].iter().copied());
        let row = row.map(|c| c / scale).collect();
        self.dependents.push(Dependent { variable, row, upper: scale > 0.0 });
    }

    /// The coefficients of variable v = 1 …
    fn row(&self, variable: usize) -> &[f64] {
        // Rows before: lengths 2, 3, … v.
        let start = (variable - 1) * (variable + 2) / 2;
        &self.rows[start..start + variable + 1]
    }
}

/// E[y | y < z] of a standard normal y.
fn mean_below(z: f64) -> f64 {
    -hazard(-z)
}

/// A constraint along the lead itself: n = ±n_h.
fn narrow(lead: &mut Lead, rho: f64, bound: f64) -> Option<()> {
    match lead {
        // t ≤ bound and t > b.
        Lead::Beyond(b) if rho > 0.0 => (bound > *b).then_some(())?,
        Lead::Beyond(b) => *b = b.max(-bound),
        Lead::At(b) => (rho * *b <= bound).then_some(())?,
    }
    Some(())
}

/// A bound on P(the constraint is violated | lead): both half-spaces together lie beyond the point
/// of their intersection that is nearest to the origin.
fn violation(lead: Lead, rho: f64, bound: f64) -> f64 {
    match lead {
        Lead::At(b) => tail((bound - rho * b) / (1.0 - rho * rho).sqrt()),
        Lead::Beyond(b) => {
            let nearest = if rho * b >= bound {
                b
            } else if rho * bound >= b {
                bound
            } else {
                let left = 1.0 - rho * rho;
                ((bound * bound - 2.0 * rho * bound * b + b * b) / left).sqrt()
            };
            if b <= 0.0 && nearest > 0.0 && bound <= 0.0 {
                return 1.0;
            }
            (log_tail(nearest) - log_tail(b)).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::{GaussianClasses, Merge};
    use super::super::simd::tests::on_every_set;
    use super::super::simd::vectorise;
    use super::super::sobol::Scramble;
    use super::*;
    use crate::units::{Seed, Tau};

    /// K classes at `points` with equal priors.
    fn scene(points: &[&[f64]]) -> Scene {
        let means = points.iter().map(|p| p.to_vec()).collect();
        let priors = vec![1.0 / points.len() as f64; points.len()];
        GaussianClasses::new(means, priors).unwrap().scene(Tau::ONE, Merge::Best)
    }

    /// The probability that a wedge stands for, by 2^16 points of two replicates each.
    fn probability(wedge: &Wedge) -> f64 {
        let scrambles = [0, 1].map(|replicate| Scramble::new(Seed(1), replicate, wedge.dims()));
        let halves = 1 << 11;
        let (sums, _) =
            vectorise(Points { wedge, scrambles: [&scrambles[0], &scrambles[1]], stream: 0, first: 0, end: halves });
        let [one, other] = sums.map(|sum| sum / (halves * HALF as u64) as f64);
        assert!((one - other).abs() < 2e-9, "{one}, {other}");
        0.5 * (one + other)
    }

    #[test]
    fn every_instruction_set_gives_the_same_integral() {
        let points: Vec<Vec<f64>> = (0..9).map(|k| (0..9).map(|i| if i == k { 2.5 } else { 0.0 }).collect()).collect();
        let scene = scene(&points.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let rivals: Vec<usize> = (2..9).collect();
        let wedge = Wedge::new(&scene, &scene.directions(0), 1, Lead::Beyond(scene.boundary(0, 1)), &rivals).unwrap();
        let scrambles = [0, 1].map(|replicate| Scramble::new(Seed(1), replicate, wedge.dims()));
        let scrambles = [&scrambles[0], &scrambles[1]];
        let results = on_every_set(Points { wedge: &wedge, scrambles, stream: 0, first: 0, end: 64 });
        for (name, (sums, between)) in &results {
            let (known, known_between) = results[0].1;
            let off = |i: usize| (sums[i] / known[i] - 1.0).abs();
            assert!(off(0).max(off(1)) < 1e-13, "{name}: {sums:?} against {known:?}");
            assert!((between / known_between - 1.0).abs() < 1e-11, "{name}: {between} against {known_between}");
        }
    }

    #[test]
    fn orthogonal_constraints_multiply() {
        // A square's corner: beyond one neighbour, short of the other.
        let scene = scene(&[&[0.0, 0.0], &[3.0, 0.0], &[0.0, 2.0]]);
        let wedge = Wedge::new(&scene, &scene.directions(0), 1, Lead::Beyond(1.5), &[2]).unwrap();
        assert_eq!(wedge.dims(), 1);
        assert!((probability(&wedge) - (1.0 - tail(1.0))).abs() < 1e-9);
    }

    #[test]
    fn constraints_along_the_lead_narrow_or_empty_it() {
        // Four on a line: to reach 2 one must pass 1; what is behind plays no part.
        let scene = scene(&[&[0.0], &[1.0], &[2.0], &[-1.0]]);
        let from = scene.directions(0);
        assert!(Wedge::new(&scene, &from, 2, Lead::Beyond(1.0), &[1]).is_none());
        let wedge = Wedge::new(&scene, &from, 2, Lead::Beyond(1.0), &[3]).unwrap();
        assert!(wedge.certain() && wedge.lead == Lead::Beyond(1.0));
        assert!(Wedge::new(&scene, &from, 2, Lead::At(1.0), &[1]).is_none());
    }

    #[test]
    fn dependent_constraints_bound_an_interval() {
        // In the plane, beyond one rival the other two leave a strip.
        let scene = scene(&[&[0.0, 0.0], &[4.0, 0.0], &[0.0, 2.0], &[0.0, -2.0]]);
        let wedge = Wedge::new(&scene, &scene.directions(0), 1, Lead::Beyond(2.0), &[2, 3]).unwrap();
        assert_eq!(wedge.dims(), 1);
        assert!((probability(&wedge) - (1.0 - 2.0 * tail(1.0))).abs() < 1e-9);
    }

    #[test]
    fn far_leads_are_sampled_by_logarithms() {
        let scene = scene(&[&[0.0, 0.0], &[90.0, 0.0], &[0.0, 2.0]]);
        let wedge = Wedge::new(&scene, &scene.directions(0), 1, Lead::Beyond(45.0), &[2]).unwrap();
        assert!((wedge.log_lead() - log_tail(45.0)).abs() < 1e-12);
        assert!((probability(&wedge) - (1.0 - tail(1.0))).abs() < 1e-9);
    }
}
