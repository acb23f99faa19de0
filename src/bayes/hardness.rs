//! Class hardness (EBO 4.4): each class against the rest, and each pair.

use serde::{Deserialize, Serialize};

use super::classes::{GaussianClasses, Merge};
use super::compute::{Spec, usable};
use super::estimate::Figure;
use super::line;
use super::normal::tail;
use super::pair::{PairSum, Target};
use super::quadrature::Scaled;
use super::refine::refine;
use super::work;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::units::{ClassId, Tau};

/// How hard one class is to tell from all others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassHardness {
    /// Which class.
    pub class: ClassId,
    /// Bayes error of "this class or not", x being from it with probability ½.
    pub one_vs_rest: Figure,
}

/// What a computation of class hardness tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HardnessNews {
    /// How far the draws have come that all classes are known from: with T ≠ 1 and of noisy labels.
    Drawing(Progress),
    /// A class.
    Known(ClassHardness),
}

/// The one-vs-rest Bayes error of every class of positive prior, in the order of classes: x is
/// drawn from p_j with probability ½, otherwise from the mixture of the others in proportion to
/// their priors. Each is reported when known.
///
/// # Errors
/// When τ or the tolerance cannot be used, with one or too many classes, or on a stop.
pub fn one_vs_rest(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<HardnessNews>,
) -> Result<Vec<ClassHardness>> {
    spec.check()?;
    usable(classes, tau)?;
    let wanted: Vec<ClassId> = (0..classes.classes()).filter(|&k| classes.priors()[k] > 0.0).collect();
    if wanted.len() < 2 {
        return Err(Error::input("class hardness needs two classes of positive prior"));
    }
    work::for_hardness(wanted.len())?;
    let mut all = Vec::with_capacity(wanted.len());
    for class in wanted {
        let hardness = ClassHardness { class, one_vs_rest: against_rest(classes, class, tau, spec)? };
        events.report(HardnessNews::Known(hardness))?;
        all.push(hardness);
    }
    Ok(all)
}

fn against_rest(classes: &GaussianClasses, class: ClassId, tau: Tau, spec: &Spec) -> Result<Figure> {
    let others = classes.priors().iter().enumerate().filter(|(k, _)| *k != class);
    // 1 − π would lose the digits of small ones.
    let rest: f64 = others.map(|(_, p)| p).sum();
    let halves = classes.priors().iter().enumerate();
    let halves: Vec<f64> = halves.map(|(k, p)| if k == class { 0.5 } else { 0.5 * p / rest }).collect();
    let scene = classes.with_priors(&halves)?.scene(tau, Merge::Apart);
    let own = scene.members.iter().position(|group| group[0] == class).unwrap_or(0);
    let sum: Scaled = if scene.count() == 2 && scene.rank == 1 {
        line::bayes_error(&scene)
    } else {
        let mut sum = PairSum::new(&scene, Target::OneVsRest(own), spec.seed)?;
        refine(&mut sum, spec.tolerance, |_, now, _| Ok(now))?
    };
    let scale = sum.log_scale.exp();
    Ok(Figure::new(scale * sum.value, scale * sum.half_width, 0.5))
}

/// The exact Bayes error of telling class i from class j alone, their priors in proportion, [K, K];
/// 0 on the diagonal, and NaN where both priors are 0.
///
/// # Errors
/// When τ is 0, or so small that rounding hides what matters.
pub fn pairwise(classes: &GaussianClasses, tau: Tau) -> Result<Vec<f64>> {
    let tau = usable(classes, tau)?.get();
    let count = classes.classes();
    let error = |i: usize, j: usize| {
        let (p, q) = (classes.priors()[i], classes.priors()[j]);
        let d = classes.distance(i, j) / tau;
        match (p + q, d) {
            _ if i == j => 0.0,
            (0.0, _) => f64::NAN,
            (both, 0.0) => p.min(q) / both,
            (both, d) => {
                let shift = (p / q).ln() / d;
                // A prior of 0 makes the shift infinite and the error 0.
                let part = |weight: f64, b: f64| if weight > 0.0 { weight * tail(b) } else { 0.0 };
                (part(p, 0.5 * d + shift) + part(q, 0.5 * d - shift)) / both
            }
        }
    };
    // One of the two orders is computed, so that the matrix is symmetric to the last bit.
    Ok((0..count).flat_map(|i| (0..count).map(move |j| (i.min(j), i.max(j)))).map(|(i, j)| error(i, j)).collect())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn ignore(_: HardnessNews) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn a_prior_next_to_1_leaves_the_others_their_digits() {
        let (rare, distance) = (1e-12, 3.0);
        let classes = GaussianClasses::new(vec![vec![0.0], vec![distance]], vec![1.0 - rare, rare]).unwrap();
        let all = one_vs_rest(&classes, Tau::ONE, &Spec::default(), &mut ignore).unwrap();
        let truth = crate::bayes::normal::tail(0.5 * distance);
        assert!(all.iter().all(|one| (one.one_vs_rest.value / truth - 1.0).abs() < 1e-12), "{all:?}");
    }

    #[test]
    fn two_classes_are_as_hard_as_their_pair() {
        let classes = GaussianClasses::new(vec![vec![0.0, 0.0], vec![3.0, 0.0]], vec![0.3, 0.7]).unwrap();
        let all = one_vs_rest(&classes, Tau::ONE, &Spec::default(), &mut ignore).unwrap();
        for hardness in all {
            assert!((hardness.one_vs_rest.value / tail(1.5) - 1.0).abs() < 1e-14);
        }
        let pairs = pairwise(&classes, Tau::ONE).unwrap();
        let shift = (0.3f64 / 0.7).ln() / 3.0;
        let exact = 0.3 * tail(1.5 + shift) + 0.7 * tail(1.5 - shift);
        assert!((pairs[1] / exact - 1.0).abs() < 1e-14 && pairs[1] == pairs[2] && pairs[0] == 0.0);
    }

    #[test]
    fn a_class_between_two_far_ones_has_the_error_of_an_interval() {
        // Means −5, 0, 5 on a line: the middle one against the rest. The rest is likelier where
        // ½(φ(z−5) + φ(z+5)) > φ(z), that is beyond ±c with cosh(5c) = e^12.5.
        let means = vec![vec![-5.0], vec![0.0], vec![5.0]];
        let classes = GaussianClasses::new(means, vec![1.0 / 3.0; 3]).unwrap();
        let spec = Spec { tolerance: 1e-3, ..Spec::default() };
        let all = one_vs_rest(&classes, Tau::ONE, &spec, &mut ignore).unwrap();
        let c = (12.5f64.exp()).acosh() / 5.0;
        let exact = 0.5 * 2.0 * tail(c) + 0.5 * (tail(5.0 - c) - tail(5.0 + c));
        let middle = all[1].one_vs_rest;
        assert!((middle.value - exact).abs() < 4.0 * middle.std_error + 1e-12, "{middle:?} {exact}");
        assert!(middle.std_error < 1e-3 * exact);
    }

    #[test]
    fn a_class_that_coincides_with_others_is_half_hidden() {
        // Class 0 coincides with class 1, class 2 is far: min(½, ½·½) of the density is lost.
        let means = vec![vec![0.0, 0.0], vec![0.0, 0.0], vec![40.0, 0.0]];
        let classes = GaussianClasses::new(means, vec![1.0 / 3.0; 3]).unwrap();
        let all = one_vs_rest(&classes, Tau::ONE, &Spec::default(), &mut ignore).unwrap();
        assert!((all[0].one_vs_rest.value - 0.25).abs() < 1e-6, "{:?}", all[0]);
    }
}
