//! Manifold coverage as BLC has it, and the same with a threshold that can fail.
//!
//! BLC App. A.2: "We computed manifold coverage by embedding both real and generated samples in a
//! pretrained feature space and measuring what fraction of real samples have a nearby generated
//! sample within a distance threshold. In our implementation, distances are computed in ResNet
//! feature space using k-nearest neighbors and an adaptive threshold (set to the 90th percentile of
//! real-to-synthetic distances). Our oracle achieves 90% coverage on AFHQ and 89.9% on ImageNet".
//!
//! A share of 0.9 of any numbers lies at or below their own 90th percentile. So
//! [`coverage_of_paper`] is 0.9 for a perfect generator, for one that knows a single image, and for
//! noise: it says nothing, and is here so that the published figure can be repeated and understood.
//! [`coverage`] takes the threshold from real images instead.

use serde::{Deserialize, Serialize};

use super::features::{Features, Real};
use super::manifold::thinned;
use super::neighbours::Neighbours;
use crate::error::{Error, Result};
use crate::measure::Estimate;
use crate::units::Seed;

/// The paper's percentile, as a fraction.
pub const LEVEL: f64 = 0.9;

/// A share of images within a distance that the same distances set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PaperCoverage {
    /// The percentile of the distances, in units of the features: this depends on the generator.
    pub threshold: f64,
    /// Share of distances at or below: `level` up to 1/n, by construction.
    pub share: f64,
}

/// BLC's coverage from the distances of real images to their k-th nearest generated one
/// ([`Neighbours::farthest`]; the paper does not give k, 1 is the plain reading).
///
/// # Errors
/// When there is no distance, or the level is not within [0, 1].
pub fn coverage_of_paper(real_to_generated: &[f64], level: f64) -> Result<PaperCoverage> {
    let threshold = percentile(real_to_generated, level)?;
    let covered = real_to_generated.iter().filter(|&&d| d <= threshold).count();
    Ok(PaperCoverage { threshold, share: covered as f64 / real_to_generated.len() as f64 })
}

/// The share of held-out real images that generated images come near to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Share of held-out images whose k-th nearest generated image lies within the threshold;
    /// `level` for a perfect generator, 0 for a collapsed one. Wilson's interval, given the
    /// threshold, whose own error (of the same order) it leaves out.
    pub share: Estimate,
    /// The percentile of distances from held-out to their k-th nearest training images.
    pub threshold: f64,
    /// The same with the paper's threshold.
    pub paper: PaperCoverage,
    /// Which percentile, as a fraction.
    pub level: f64,
    /// Neighbour that counts.
    pub k: usize,
    /// Held-out images, and covering images: as many generated as training images.
    pub n: [usize; 2],
}

/// Coverage of `held_out` by `generated`, at the distance within which `train` covers the share
/// `level` of it. The larger of the covering sets is thinned at random.
///
/// # Errors
/// When the numbers of features differ, k is too large, or the level is not within [0, 1].
pub fn coverage<A: Real, B: Real, C: Real>(
    train: &Features<'_, A>,
    held_out: &Features<'_, B>,
    generated: &Features<'_, C>,
    (k, level): (usize, f64),
    seed: Seed,
) -> Result<Coverage> {
    let m = train.n().min(generated.n());
    let (real, made) = (thinned(train, m, seed), thinned(generated, m, seed));
    let to_real = Neighbours::of(held_out, &Features::new(&real, train.dim())?, k)?.farthest();
    let to_made = Neighbours::of(held_out, &Features::new(&made, generated.dim())?, k)?.farthest();
    let threshold = percentile(&to_real, level)?;
    let covered = to_made.iter().filter(|&&d| d <= threshold).count();
    Ok(Coverage {
        share: Estimate::proportion(covered, held_out.n()),
        threshold,
        paper: coverage_of_paper(&to_made, level)?,
        level,
        k,
        n: [held_out.n(), m],
    })
}

/// The percentile of `numpy.percentile`: linear between order statistics (Hyndman & Fan, type 7).
///
/// # Errors
/// When there is no value, one is NaN, or the level is not within [0, 1].
pub fn percentile(values: &[f64], level: f64) -> Result<f64> {
    if values.is_empty() || values.iter().any(|v| v.is_nan()) || !(0.0..=1.0).contains(&level) {
        return Err(Error::input(format!("{} distances have no percentile {level}", values.len())));
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let position = level * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Ok(below + (above - below) * position.fract())
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;

    #[test]
    fn the_papers_threshold_gives_its_own_level_to_any_generator() {
        let dim = 6;
        let (train, test) = (normal(Seed(1), 500 * dim), normal(Seed(2), 400 * dim));
        let perfect = normal(Seed(3), 500 * dim);
        // One point over and over, with a breath of noise; and noise far away from everything.
        let collapsed: Vec<f64> = normal(Seed(4), 500 * dim).iter().map(|x| 1.0 + 1e-3 * x).collect();
        let noise: Vec<f64> = normal(Seed(5), 500 * dim).iter().map(|x| 40.0 + x).collect();
        let of = |made: &[f64]| {
            let set = |values| Features::new(values, dim).unwrap();
            coverage(&set(&train), &set(&test), &set(made), (1, LEVEL), Seed(1)).unwrap()
        };
        let [perfect, collapsed, noise] = [&perfect, &collapsed, &noise].map(|made| of(made));
        println!("perfect {perfect:?}\ncollapsed {collapsed:?}\nnoise {noise:?}");
        for found in [&perfect, &collapsed, &noise] {
            assert!((found.paper.share - 0.9).abs() <= 1.0 / 400.0, "{found:?}");
            assert_eq!(found.n, [400, 500]);
        }
        assert!((perfect.share.value - 0.9).abs() < 0.05, "{perfect:?}");
        assert!(collapsed.share.value < 0.2 && noise.share.value == 0.0);
        // What the paper's figure hides is in its threshold.
        assert!(noise.paper.threshold > 10.0 * perfect.paper.threshold);
    }

    #[test]
    fn percentiles_are_numpys() {
        // numpy.percentile([4, 1, 3, 2], [0, 25, 90, 100]).
        for (level, expected) in [(0.0, 1.0), (0.25, 1.75), (0.9, 3.7), (1.0, 4.0)] {
            assert!((percentile(&[4.0, 1.0, 3.0, 2.0], level).unwrap() - expected).abs() < 1e-15);
        }
        assert!(percentile(&[], 0.5).is_err() && percentile(&[1.0], 1.5).is_err());
        assert!(percentile(&[f64::NAN, 1.0], 0.5).is_err());
    }
}
