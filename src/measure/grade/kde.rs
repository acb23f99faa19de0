//! Kernel densities, leave-one-out (Fukunaga & Hummels 1987), bandwidth by likelihood (Duin 1976).
//!
//! p̂(x|y) is the mean over the samples of class y of a Gaussian product kernel with one bandwidth
//! h for all features and classes, x itself left out; π̂ is the class frequency. All in log space:
//! in D = 3,072 the densities themselves are below any f64.

use super::geometry::Geometry;
use super::{Chosen, Estimator, Graded};
use crate::error::{Error, Result};
use crate::measure::argmax;
use crate::parallel;
use crate::units::ClassId;

/// Samples by whose likelihood the bandwidth is chosen, at most.
const JUDGES: usize = 2000;

/// Bandwidths tried before the best is refined.
const GRID: usize = 24;

/// Refinement stops where log h is known to this much: the likelihood is flat at its top.
const RESOLUTION: f64 = 1e-3;

/// (√5 − 1) / 2.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Kernels below the largest by more than this many nats (4e-18) do not change an f64.
const NEGLIGIBLE: f64 = 40.0;

/// Two estimates from one density: [`Estimator::KdePlugIn`], 1 − mean max_y p̂(y|x), and
/// [`Estimator::KdeError`], the share of samples whose argmax_y p̂(y|x) is not their label (its
/// `upper` bound, too).
///
/// The bandwidth maximises the leave-one-out likelihood Σ log p̂(x_i|y_i) of at most 2,000 samples,
/// all classes in proportion, under the densities of all samples: it fits densities, not errors.
///
/// # Errors
/// When a class has one sample, which left out leaves none; when every sample has an exact
/// duplicate in its class, for which the best bandwidth is 0.
pub fn kde(geometry: &Geometry<'_>) -> Result<[Graded; 2]> {
    let sample = &geometry.sample;
    if let Some(class) = sample.counts.iter().position(|&count| count < 2) {
        let cause = format!("class {class} has one sample: a density without it needs another; draw more samples");
        return Err(Error::input(cause));
    }
    let bandwidth = bandwidth(geometry)?;
    let precision = 0.5 / (bandwidth * bandwidth);
    let judged = parallel::map(sample.n(), |i| posterior(geometry, i, precision));
    let n = sample.n() as f64;
    let plug_in = 1.0 - judged.iter().map(|(largest, _)| largest).sum::<f64>() / n;
    let error = judged.iter().filter(|(_, right)| !right).count() as f64 / n;
    let chosen = Some(Chosen::Bandwidth(bandwidth));
    let graded = |estimator, estimate, upper| Graded { upper, chosen, ..Graded::new(estimator, estimate, sample.n()) };
    Ok([graded(Estimator::KdePlugIn, plug_in, None), graded(Estimator::KdeError, error, Some(error))])
}

/// max_y p̂(y|x_i) and whether it is that of the label; `precision` is 1 / 2h².
fn posterior(geometry: &Geometry<'_>, i: usize, precision: f64) -> (f64, bool) {
    let sample = &geometry.sample;
    let row = geometry.squared(i);
    let others = || row.iter().zip(sample.labels).enumerate().filter(|&(j, _)| j != i).map(|(_, pair)| pair);
    let mut nearest = vec![f32::INFINITY; sample.classes()];
    others().for_each(|(&d, &y)| nearest[y] = nearest[y].min(d));
    let mut sums = vec![0.0; sample.classes()];
    for (&d, &y) in others() {
        sums[y] += kernel(d, nearest[y], precision);
    }
    // π̂_y p̂(x|y) = Σ kernels / N except for the label, whose own kernel is left out.
    let own = sample.counts[sample.labels[i]] as f64;
    let log_joint = |y: ClassId| {
        let left_out = if y == sample.labels[i] { (own / (own - 1.0)).ln() } else { 0.0 };
        f64::ln(sums[y]) - f64::from(nearest[y]) * precision + left_out
    };
    let log_joint: Vec<f64> = (0..sample.classes()).map(log_joint).collect();
    let best = argmax(&log_joint);
    let largest = log_joint.iter().map(|l| (l - log_joint[best]).exp()).sum::<f64>().recip();
    (largest, best == sample.labels[i])
}

/// exp(−(d² − nearest) / 2h²), 0 where it is negligible.
fn kernel(squared: f32, nearest: f32, precision: f64) -> f64 {
    let nats = (f64::from(squared) - f64::from(nearest)) * precision;
    if nats < NEGLIGIBLE { (-nats).exp() } else { 0.0 }
}

/// The squared distances from some samples to the others of their class, sorted.
fn distances_to_class(geometry: &Geometry<'_>) -> Vec<Vec<f32>> {
    let members = geometry.sample.members();
    // Sorted by class, so that equal steps take of every class its share.
    let all: Vec<(usize, &[usize])> = members.iter().flat_map(|class| class.iter().map(|&i| (i, &class[..]))).collect();
    let chosen: Vec<_> = all.iter().step_by(all.len().div_ceil(JUDGES)).copied().collect();
    let distances = |judge: usize| {
        let (i, class) = chosen[judge];
        let row = geometry.squared(i);
        let mut distances: Vec<f32> = class.iter().filter(|&&j| j != i).map(|&j| row[j]).collect();
        distances.sort_unstable_by(f32::total_cmp);
        distances
    };
    parallel::map(chosen.len(), distances)
}

/// The bandwidth of the largest likelihood.
///
/// Where the likelihood is stationary, h² D is the mean over judges of Σ w d² with weights w ∝
/// exp(−d²/2h²): between their mean nearest d² and their mean d², which bounds the search.
fn bandwidth(geometry: &Geometry<'_>) -> Result<f64> {
    let (judges, dim) = (distances_to_class(geometry), geometry.sample.dim as f64);
    let mean = |of: &dyn Fn(&Vec<f32>) -> f64| judges.iter().map(of).sum::<f64>() / judges.len() as f64;
    let near = mean(&|distances| distances.first().map_or(0.0, |&d| f64::from(d)));
    let far = mean(&|distances| distances.iter().map(|&d| f64::from(d)).sum::<f64>() / distances.len() as f64);
    if near == 0.0 {
        return Err(Error::Numeric(
            "every sample has an exact duplicate in its class: the likeliest bandwidth is 0; remove duplicates".into(),
        ));
    }
    let (low, high) = ((near / dim).sqrt().ln(), (far / dim).sqrt().ln());
    let at = |step: usize| low + (high - low) * step as f64 / (GRID - 1) as f64;
    let likelihoods: Vec<f64> = (0..GRID).map(|step| likelihood(&judges, dim, at(step))).collect();
    let best = argmax(&likelihoods);
    let around = (at(best.saturating_sub(1)), at((best + 1).min(GRID - 1)));
    Ok(refine(around, |log_h| likelihood(&judges, dim, log_h)).exp())
}

/// Where `f` is largest between two ends, if it has one top there (golden section).
fn refine((mut low, mut high): (f64, f64), f: impl Fn(f64) -> f64) -> f64 {
    let inner = |low: f64, high: f64| (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut left, mut right) = inner(low, high);
    let (mut at_left, mut at_right) = (f(left), f(right));
    while high - low > RESOLUTION {
        if at_left > at_right {
            high = right;
            (right, at_right) = (left, at_left);
            left = inner(low, high).0;
            at_left = f(left);
        } else {
            low = left;
            (left, at_left) = (right, at_right);
            right = inner(low, high).1;
            at_right = f(right);
        }
    }
    (low + high) / 2.0
}

/// Mean leave-one-out log-likelihood of the judges, nats, less what does not depend on h.
fn likelihood(judges: &[Vec<f32>], dim: f64, log_h: f64) -> f64 {
    let precision = 0.5 * (-2.0 * log_h).exp();
    let one = |judge: usize| {
        let distances = &judges[judge];
        let nearest = distances[0];
        let kernels = distances.iter().map(|&d| kernel(d, nearest, precision)).take_while(|&k| k > 0.0);
        kernels.sum::<f64>().ln() - f64::from(nearest) * precision
    };
    // Collected in order: the sum must not depend on how threads share the work.
    let each = parallel::map(judges.len(), one);
    each.iter().sum::<f64>() / judges.len() as f64 - dim * log_h
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::measure::grade::Sample;
    use crate::units::Seed;

    /// The two estimates and the likelihood at one bandwidth, from densities in plain f64.
    fn direct(features: &[f32], labels: &[usize], h: f64) -> (f64, f64, f64) {
        let n = labels.len();
        let (mut confidence, mut misses, mut likelihood) = (0.0, 0.0, 0.0);
        for i in 0..n {
            let density = |class: usize| {
                let others: Vec<usize> = (0..n).filter(|&j| j != i && labels[j] == class).collect();
                let kernel = |&j: &usize| {
                    let z = (f64::from(features[i]) - f64::from(features[j])) / h;
                    (-z * z / 2.0).exp() / (h * std::f64::consts::TAU.sqrt())
                };
                others.iter().map(kernel).sum::<f64>() / others.len() as f64
            };
            let frequency = |class: usize| labels.iter().filter(|&&y| y == class).count() as f64 / n as f64;
            let joint = [0, 1].map(|class| frequency(class) * density(class));
            confidence += joint[0].max(joint[1]) / (joint[0] + joint[1]);
            misses += f64::from(u8::from((joint[1] > joint[0]) != (labels[i] == 1)));
            likelihood += density(labels[i]).ln();
        }
        (1.0 - confidence / n as f64, misses / n as f64, likelihood / n as f64)
    }

    #[test]
    fn estimates_are_those_of_plain_densities_and_no_other_bandwidth_is_likelier() {
        let labels: Vec<usize> = (0..60).map(|i| usize::from(i % 3 == 0)).collect();
        let features: Vec<f32> = normal(Seed(6), 60).iter().zip(&labels).map(|(x, &y)| x + 1.5 * y as f32).collect();
        let geometry = Geometry::new(Sample::new(&features, 1, &labels, 2).unwrap()).unwrap();
        let [plug_in, error] = kde(&geometry).unwrap();
        let Some(Chosen::Bandwidth(h)) = plug_in.chosen else { panic!("no bandwidth") };
        let (confidence, misses, best) = direct(&features, &labels, h);
        assert!((plug_in.estimate - confidence).abs() < 1e-6, "{} {confidence}", plug_in.estimate);
        assert!((error.estimate - misses).abs() < 1e-12);
        for step in -30..=30 {
            let other = h * (f64::from(step) / 10.0).exp();
            assert!(direct(&features, &labels, other).2 <= best + 1e-6, "{other} beats {h}");
        }
    }

    #[test]
    fn densities_that_cannot_be_are_refused() {
        let line = [0.0f32, 1.0, 2.0];
        let lonely = Geometry::new(Sample::new(&line, 1, &[0, 0, 1], 2).unwrap()).unwrap();
        assert!(kde(&lonely).unwrap_err().to_string().contains("class 1 has one sample"));
        let twins = [0.0f32, 0.0, 2.0, 2.0];
        let twins = Geometry::new(Sample::new(&twins, 1, &[0, 0, 1, 1], 2).unwrap()).unwrap();
        assert!(kde(&twins).unwrap_err().to_string().contains("duplicate"));
    }

    #[test]
    fn densities_far_below_any_float_are_compared() {
        // 3,000 dimensions: log-densities around −10⁴ nats.
        let labels = [0usize, 1].repeat(30);
        let mut features = normal(Seed(7), 60 * 3000);
        features.chunks_mut(3000).zip(&labels).for_each(|(x, &y)| x.iter_mut().for_each(|x| *x += y as f32));
        let geometry = Geometry::new(Sample::new(&features, 3000, &labels, 2).unwrap()).unwrap();
        let [plug_in, error] = kde(&geometry).unwrap();
        assert!(plug_in.estimate.abs() < 1e-9 && error.estimate == 0.0, "{} {}", plug_in.estimate, error.estimate);
    }
}
