//! How much a parabola through E at three temperatures, log τ and log τ ± h, may miss: by its third derivative, which is
//! assumed to be small, unless the draws show that it is not.

use super::local::WIDEST;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::world::{LabelLaw, Settings};
use crate::units::{Smoothing, Tau};

/// What [`assumed`] adds for labels that are not as the classes, in (0.16/h)².
const TURNED: f64 = 3.0;

/// What |E'''/E'| is taken to be at most, from E(±h) − E and the mean of [`third_differences`]: as [`assumed`], or as much as
/// the draws show, whichever is more.
pub(super) fn bend(sides: [f64; 2], third: f64, step: f64, law: &LabelLaw) -> f64 {
    let assumed = assumed(sides, step, law);
    // The third difference is h³E'''/4, and that of the sides 2hE'.
    let shown = 8.0 * third.abs() / (step * step * (sides[0] - sides[1]).abs());
    if shown.is_finite() { shown.max(assumed) } else { assumed }
}

/// How far the doubt of each draw, 1 − max p, is from a parabola: its `change` from log τ − h to log τ + h less twice that from
/// log τ − h/2 to log τ + h/2. `rows` are log p(x|y) at log τ − h, log τ and log τ + h, [N, K] each. Those between come from a
/// parabola in 1/τ, which is what they are of Gaussian classes, so that no further image is made.
pub(super) fn third_differences(rows: &[Vec<f64>; 3], change: &[f64], step: f64, law: &LabelLaw) -> Vec<f64> {
    let LabelLaw { prior, smoothing, label_noise } = law.clone();
    let settings = Settings { tau: Tau::ONE, smoothing, prior, label_noise };
    let doubts = |delta: f64| -> Vec<f64> {
        let between = rows_at(rows, step, delta);
        let posteriors = between.chunks(law.prior.classes()).map(|row| settings.posterior(row.to_vec()));
        posteriors.map(|p| p.doubt(p.decision)).collect()
    };
    let inner = doubts(0.5 * step).into_iter().zip(doubts(-0.5 * step)).map(|(above, below)| above - below);
    change.iter().zip(inner).map(|(outer, inner)| outer - 2.0 * inner).collect()
}

/// Rows at log τ + δ by a parabola in 1/τ through those at three temperatures. Where one of the three is infinite it is that of
/// the middle.
fn rows_at(rows: &[Vec<f64>; 3], step: f64, delta: f64) -> Vec<f64> {
    let (known, wanted) = ([-step, 0.0, step].map(|known| (-known).exp()), (-delta).exp());
    let weight = |i: usize| {
        let others = (0..3).filter(|&j| j != i);
        others.map(|j| (wanted - known[j]) / (known[i] - known[j])).product::<f64>()
    };
    let weights = [0, 1, 2].map(weight);
    let of = |at: usize| {
        let sum: f64 = weights.iter().zip(rows).map(|(weight, row)| weight * row[at]).sum();
        if sum.is_finite() { sum } else { rows[1][at] }
    };
    (0..rows[1].len()).map(of).collect()
}

/// What |E'''/E'| is assumed to be at most, from E(±h) − E: γ² + 2√((1 + γ)² + L²) with γ = E''/E' of the draws.
///
/// Of two Gaussian classes E'''/E' is γ² − 2√((1 + γ)² + L²), L the log odds of their priors. An offset and a factor of
/// E, as of symmetric label noise, leave γ as it is. Of other worlds this is an assumption, with L the mean log odds of a
/// class against all others: of 3 to 100 equidistant classes in equal parts it holds, but for a hundredth of it. Pairs of
/// classes at several distances have the mean of their γ² in place of the square of γ: of two pairs, .05 and 7 apart,
/// E'''/E' is 24.7, and 10 is assumed. E is taken to grow with τ, so that |γ| is at most 2/h, however few draws say it.
///
/// Labels of p_T (T ≠ 1) or by other noise turn faster, up to seven times that where they were tried: of them it is
/// |γ| + 3(0.16/h)² more. Of two classes 2 apart, T from 0.2 to 500 and priors of ½ to 0.99, that is enough, but where
/// E' and E'' nearly vanish together (T < 1): there 1.3 times as much of a small slope was missed.
/// Of three and four unequal classes on a line up to 2.4 times as much was (T > 1), and up to twelve times near a τ where a
/// class stops being the likeliest anywhere (T ≤ 1).
fn assumed([above, below]: [f64; 2], step: f64, law: &LabelLaw) -> f64 {
    let rise = above - below;
    let turn = if rise == 0.0 { 0.0 } else { 2.0 / step * ((above + below) / rise).clamp(-1.0, 1.0) };
    let present = law.prior.probabilities().iter().filter(|p| **p > 0.0 && **p < 1.0);
    let odds: f64 = present.map(|p| p * (p / (1.0 - p)).ln().abs()).sum();
    let of_classes = turn * turn + 2.0 * (1.0 + turn).hypot(odds);
    of_classes + if turns_as_the_classes(law) { 0.0 } else { turn.abs() + TURNED * (WIDEST / step).powi(2) }
}

/// Whether E of the label is that of the classes but for an offset and a factor.
fn turns_as_the_classes(law: &LabelLaw) -> bool {
    let count = law.prior.classes();
    // Where symmetric noise is stronger, the least probable of more than two classes decides.
    let most = if count == 2 { 1.0 } else { 1.0 - 1.0 / count as f64 };
    let scaled = |noise: &LabelNoise| noise.symmetric_rate(count).is_some_and(|rate| rate <= most);
    law.smoothing == Smoothing::ONE && law.label_noise.as_ref().is_none_or(scaled)
}

#[cfg(test)]
mod tests {
    use super::super::local::{beside, step_for};
    use super::*;
    use crate::bayes::labels::tests::integral_at;
    use crate::bayes::normal::{density, tail};
    use crate::bayes::{GaussianClasses, Spec, bayes_error, derivative};
    use crate::events::silent;
    use crate::oracle::posterior::Prior;

    fn law(priors: &[f64], smoothing: f64) -> LabelLaw {
        let smoothing = Smoothing::new(smoothing).unwrap();
        LabelLaw { prior: Prior::new(priors).unwrap(), smoothing, label_noise: None }
    }

    #[test]
    fn a_parabola_leaves_no_more_of_two_classes_than_is_claimed() {
        let of_equal = [0.5, 1.0, 2.0, 4.0, 6.0, 8.0].map(|distance| (0.5, distance));
        let of_unequal = [(0.7, 0.6), (0.7, 3.0), (0.95, 1.0), (0.95, 2.0), (0.95, 2.87), (0.95, 6.0), (0.99, 1.5)];
        for (prior, distance) in of_equal.into_iter().chain(of_unequal) {
            let priors = [prior, 1.0 - prior];
            let classes = GaussianClasses::new(vec![vec![0.0], vec![distance]], priors.to_vec()).unwrap();
            let error = |delta: f64| {
                let tau = beside(Tau::ONE, delta).unwrap();
                bayes_error(&classes, tau, &Spec::default(), &mut silent()).unwrap().figure.value
            };
            let truth = derivative(&classes, Tau::ONE, &Spec::default(), &mut silent()).unwrap().value;
            let step = step_for(error(0.0));
            let sides = [error(step) - error(0.0), error(-step) - error(0.0)];
            let slope = (sides[0] - sides[1]) / (2.0 * step);
            let turn = assumed(sides, step, &law(&priors, 1.0));
            let (off, left) = ((slope / truth - 1.0).abs(), turn * step * step / 6.0 * slope / truth);
            // Where γ is about 0 the bound is met, and the fifth derivative is beside it.
            assert!(off <= 1.02 * left && left < 0.1, "{prior}, {distance}: {off:e}, {left:e}");
            // E~ = 0.4 + E/5.
            let noisy = assumed(sides.map(|side| 0.2 * side), step, &law(&priors, 1.0));
            assert!((noisy / turn - 1.0).abs() < 1e-12);
        }
        let nothing = assumed([0.0, 0.0], 0.1, &law(&[0.5, 0.5, 0.0], 1.0));
        assert!(nothing.is_finite());
    }

    #[test]
    fn a_parabola_leaves_no_more_of_smoothed_labels_than_is_claimed() {
        let even = [(5.0, 0.5), (5.0, 0.8), (3.0, 0.6), (2.0, 0.7), (20.0, 0.3), (0.5, 0.4), (0.5, 1.0)];
        let odd = [(5.0, 0.5), (3.0, 0.8), (2.0, 1.2), (0.5, 0.4), (0.5, 3.3)];
        let all = even.map(|at| (0.5, at)).into_iter().chain(odd.map(|at| (0.8, at)));
        for (prior, (smoothing, tau)) in all {
            let priors = [prior, 1.0 - prior];
            let error = |delta: f64| integral_at(tau * delta.exp(), 1e-3, priors, smoothing, None).0;
            let difference = |h: f64| (error(h) - error(-h)) / (2.0 * h);
            let truth = (4.0 * difference(0.01) - difference(0.02)) / 3.0;
            let step = step_for(error(0.0));
            let sides = [error(step) - error(0.0), error(-step) - error(0.0)];
            let (slope, turn) = (difference(step), assumed(sides, step, &law(&priors, smoothing)));
            let (off, left) = ((slope / truth - 1.0).abs(), turn * step * step / 6.0 * slope / truth);
            assert!(off <= left && left < 0.05, "{prior}, T = {smoothing}, τ = {tau}: {off:e}, {left:e}");
        }
    }

    /// Two pairs of classes, each far from the other: most images are in doubt, and the slope of the rare errors turns fast.
    #[test]
    fn draws_show_a_bend_beyond_what_is_assumed() {
        const CELL: f64 = 0.01;
        let means = [0.0, 0.05, 1e3, 1e3 + 7.0];
        let law: LabelLaw = Prior::uniform(4).into();
        let error = |delta: f64| [0.025, 3.5].map(|half| 0.5 * tail(half * (-delta).exp())).iter().sum::<f64>();
        let truth = [0.025f64, 3.5].map(|half| 0.5 * half * density(half)).iter().sum::<f64>();
        let step = step_for(error(0.0));
        // Draws on a grid of latents, weighted by their density.
        let draws: Vec<(usize, f64)> = (0..4 * 1801).map(|i| (i % 4, CELL * (i / 4) as f64 - 9.0)).collect();
        let weights = draws.iter().map(|(_, latent)| 0.25 * CELL * density(*latent));
        let rows = [-step, 0.0, step].map(|delta| -> Vec<f64> {
            let lead = |own: usize, latent: f64, class: usize| (means[own] - means[class]) * (-delta).exp() + latent;
            let row = |&(own, latent): &(usize, f64)| [0, 1, 2, 3].map(|class| -0.5 * lead(own, latent, class).powi(2));
            draws.iter().flat_map(row).collect()
        });
        let settings = Settings::default_for(4);
        let [below, above] = [0, 2].map(|side: usize| {
            let posteriors = rows[side].chunks(4).map(|row| settings.posterior(row.to_vec()));
            posteriors.map(|p| p.doubt(p.decision)).collect::<Vec<f64>>()
        });
        let change: Vec<f64> = above.iter().zip(&below).map(|(above, below)| above - below).collect();
        let third = third_differences(&rows, &change, step, &law);
        let third: f64 = third.iter().zip(weights).map(|(third, weight)| weight * third).sum();
        let sides = [error(step) - error(0.0), error(-step) - error(0.0)];
        let slope = (sides[0] - sides[1]) / (2.0 * step);
        let left = |third: f64| bend(sides, third, step, &law) * step * step / 6.0 * slope / truth;
        let (off, assumed, shown) = ((slope / truth - 1.0).abs(), left(0.0), left(third));
        assert!(assumed < 0.5 * off && off <= 1.02 * shown && shown < 1.1 * off, "{off}: {assumed}, {shown}");
    }
}
