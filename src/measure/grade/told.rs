//! What features permit: neighbours that are told exact posteriors.
//!
//! A map x ↦ h(x) can only lose information, so the Bayes error of features is at least that of the images. From above it
//! is bounded by the error of any decision on the features, which exact posteriors measure without the noise of
//! labels.

use super::geometry::Geometry;
use super::{Chosen, Estimator, Graded};
use crate::error::{Error, Result};
use crate::measure::softmax::argmax;
use crate::parallel;

/// Expected error Σ (1 − p_i(decision)) / N of the class that is most probable in the mean over the k nearest
/// samples' exact posteriors `p` [N, K], the sample itself left out. Each half of the sample gets the k of `ks`
/// that errs least on the other, as in [`super::knn`]. `upper` is the estimate: in the mean over draws it is above
/// the Bayes error of the features. The interval is that of the mean over samples, their decisions given.
///
/// # Errors
/// When `p` is not of these samples, or no k of `ks` can be had.
pub fn told(geometry: &Geometry<'_>, p: &[f64], ks: &[usize]) -> Result<Graded> {
    let (n, classes) = (geometry.sample.n(), geometry.sample.classes());
    if p.len() != n * classes {
        return Err(Error::input(format!("{} posteriors are not {n} rows of {classes} classes", p.len())));
    }
    let mut ks: Vec<usize> = ks.iter().copied().filter(|k| (1..=geometry.kept).contains(k)).collect();
    ks.sort_unstable();
    ks.dedup();
    let row = |i: usize| &p[i * classes..(i + 1) * classes];
    let errors = |i: usize| -> Vec<f64> {
        let (mut sums, mut taken) = (vec![0.0; classes], 0);
        let error = |&k: &usize| {
            for &j in &geometry.neighbours(i)[taken..k] {
                sums.iter_mut().zip(row(j as usize)).for_each(|(sum, p)| *sum += p);
            }
            taken = k;
            1.0 - row(i)[argmax(&sums)]
        };
        ks.iter().map(error).collect()
    };
    let all = parallel::map(n, errors);
    let halves = geometry.sample.halves();
    let of_half = |half: usize, at: usize| -> f64 {
        all.iter().zip(&halves).filter(|(_, of)| **of == half).map(|(errors, _)| errors[at]).sum()
    };
    let best = |half: usize| (0..ks.len()).min_by(|&a, &b| of_half(1 - half, a).total_cmp(&of_half(1 - half, b)));
    let (Some(first), Some(second)) = (best(0), best(1)) else {
        return Err(Error::input("neighbours that are told posteriors need at least one k to choose from"));
    };
    let own = [first, second];
    let errors: Vec<f64> = all.iter().zip(&halves).map(|(errors, &half)| errors[own[half]]).collect();
    let graded = Graded::of_errors(Estimator::Told, &errors);
    let chosen = Some(Chosen::Halves([ks[first], ks[second]]));
    Ok(Graded { upper: Some(graded.estimate), chosen, ..graded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::grade::{KS, Sample};
    use crate::units::Seed;
    use rand::RngExt;

    /// x uniform on [0, 1), P(y = 1) = 0.2 below ½ and 0.8 above: the Bayes error is 0.2.
    fn draw(seed: u64, n: usize) -> (Vec<f32>, Vec<usize>, Vec<f64>) {
        let mut rng = Seed(seed).rng(0);
        let (mut x, mut y, mut p) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n {
            let at: f64 = rng.random();
            let one = if at < 0.5 { 0.2 } else { 0.8 };
            x.push(at as f32);
            y.push(usize::from(rng.random::<f64>() < one));
            p.extend([1.0 - one, one]);
        }
        (x, y, p)
    }

    fn bound(features: &[f32], y: &[usize], p: &[f64]) -> Graded {
        let geometry = Geometry::new(Sample::new(features, 1, y, 2).unwrap()).unwrap();
        told(&geometry, p, &KS).unwrap()
    }

    #[test]
    fn features_that_keep_the_class_have_the_error_of_the_images_and_those_that_lose_it_have_more() {
        let (x, y, p) = draw(1, 1000);
        let all = bound(&x, &y, &p);
        assert!((0.2 - 1e-12..0.204).contains(&all.estimate), "{}", all.estimate);
        // How far x is from the middle does not say on which side: nothing is left.
        let folded: Vec<f32> = x.iter().map(|x| (x - 0.5).abs()).collect();
        let lost = bound(&folded, &y, &p);
        assert!((lost.estimate - 0.5).abs() < 0.04, "{}", lost.estimate);
        assert!(lost.interval.unwrap().contains(lost.estimate) && lost.upper == Some(lost.estimate));
    }

    #[test]
    fn neighbours_by_hand() {
        let (x, y) = ([0.0f32, 1.0, 2.1, 3.3], [0, 0, 1, 1]);
        let geometry = Geometry::new(Sample::new(&x, 1, &y, 2).unwrap()).unwrap();
        let p = [0.9, 0.1, 0.6, 0.4, 0.3, 0.7, 0.2, 0.8];
        // Nearest: 0→1, 1→0, 2.1→1, 3.3→2.1: decisions 0, 0, 0, 1 err by 0.1, 0.4, 0.7, 0.2.
        let found = told(&geometry, &p, &[1]).unwrap();
        assert!((found.estimate - 0.35).abs() < 1e-12);
        // Three of four images may be of a kind that was not seen.
        assert_eq!(found.interval.map(|i| (i.low, i.high)), Some((0.0, 1.0)));
        assert!(told(&geometry, &p[2..], &[1]).is_err() && told(&geometry, &p, &[9]).is_err());
    }
}
