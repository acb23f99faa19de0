//! Diversity by class: the spread of its images in feature space, generated over real (BLC App.
//! A.3: "per-class diversity ratios (variance ratio and distance ratio between synthetic and
//! real)").

use serde::{Deserialize, Serialize};

use super::features::{Features, Real, by_class};
use super::pairs::scan;
use super::ratio::Positive;
use crate::error::{Error, Result};
use crate::measure::Estimate;
use crate::units::ClassId;

/// The ratios of one class; 1 is the diversity of real images, less is a class that collapses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassDiversity {
    /// The class.
    pub class: ClassId,
    /// Real and generated images of it.
    pub n: [usize; 2],
    /// tr Σ of generated over tr Σ of real features: their total variance. (The paper does not say
    /// over what it averages; features that hardly vary would dominate a mean of d ratios.) 95 %
    /// interval by the delta method, Student's t of the smaller set; `None` below three images of a
    /// set, or where one does not vary.
    pub variance: Option<Estimate>,
    /// Mean Euclidean distance of two generated images over that of two real ones, likewise.
    pub distance: Option<Estimate>,
}

/// Ratios of every class, from features [n, d] and labels [n] of real and of generated images. All
/// pairs within a class are used.
///
/// # Errors
/// When the numbers of features differ, or labels do not match.
pub fn diversity<A: Real, B: Real>(
    real: (&Features<'_, A>, &[ClassId]),
    generated: (&Features<'_, B>, &[ClassId]),
    classes: usize,
) -> Result<Vec<ClassDiversity>> {
    real.0.same_dim(generated.0)?;
    let of_real = by_class(real.1, real.0.n(), classes)?;
    let of_generated = by_class(generated.1, generated.0.n(), classes)?;
    let one = |(class, (a, b)): (usize, (&Vec<usize>, &Vec<usize>))| -> Result<ClassDiversity> {
        let (spread_a, spread_b) = (Spread::of(real.0, a)?, Spread::of(generated.0, b)?);
        let (mut variance, mut distance) = (None, None);
        if let (Some(a), Some(b)) = (spread_a, spread_b) {
            variance = b.variance.over(a.variance);
            distance = b.distance.over(a.distance);
        }
        Ok(ClassDiversity { class, n: [a.len(), b.len()], variance, distance })
    };
    of_real.iter().zip(&of_generated).enumerate().map(one).collect()
}

/// How far one set of images spreads.
struct Spread {
    variance: Positive,
    distance: Positive,
}

impl Spread {
    /// Of these images; `None` below three.
    fn of<T: Real>(features: &Features<'_, T>, images: &[usize]) -> Result<Option<Self>> {
        if images.len() < 3 {
            return Ok(None);
        }
        let values = features.gather(images);
        let set = Features::new(&values, features.dim())?;
        let (n, centre) = (set.n() as f64, set.mean());
        let squares: Vec<f64> = (0..set.n()).map(|i| super::pairs::squared(set.row(i), &centre)).collect();
        let means: Vec<f64> = scan(
            &set,
            &set,
            |_| 0.0,
            |sum, pair| {
                if pair.i != pair.j {
                    *sum += pair.distance();
                }
            },
        );
        let means: Vec<f64> = means.into_iter().map(|sum| sum / (n - 1.0)).collect();
        let none = || Error::input("a class of three images has a spread");
        let (mut variance, mut distance) =
            (Positive::mean(&squares).ok_or_else(none)?, Positive::mean(&means).ok_or_else(none)?);
        // Distances from the centre of the set itself are too small by (n − 1)/n; so is their error.
        let unbiased = n / (n - 1.0);
        variance.value *= unbiased;
        variance.variance *= unbiased * unbiased;
        // A mean over pairs: an image's own mean counts at both of its ends (Hoeffding 1948).
        distance.variance *= 4.0;
        Ok(Some(Self { variance, distance }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::units::Seed;

    #[test]
    fn a_scale_is_its_square_in_variance_and_itself_in_distance() {
        let dim = 5;
        let real: Vec<f64> = normal(Seed(1), 60 * dim);
        let labels: Vec<usize> = (0..60).map(|i| i % 2).collect();
        // The same images, class 0 at half size and elsewhere.
        let made: Vec<f32> = real
            .iter()
            .enumerate()
            .map(|(at, x)| if at / dim % 2 == 0 { (7.0 + 0.5 * x) as f32 } else { *x as f32 })
            .collect();
        let (a, b) = (Features::new(&real, dim).unwrap(), Features::new(&made, dim).unwrap());
        let found = diversity((&a, &labels), (&b, &labels), 3).unwrap();
        let (variance, distance) = (found[0].variance.unwrap(), found[0].distance.unwrap());
        assert!((variance.value - 0.25).abs() < 1e-6 && (distance.value - 0.5).abs() < 1e-6, "{found:?}");
        assert!((found[1].variance.unwrap().value - 1.0).abs() < 1e-6 && found[1].n == [30, 30]);
        assert!(!variance.interval.contains(1.0) && found[1].distance.unwrap().interval.contains(1.0));
        assert_eq!((found[2].variance, found[2].distance, found[2].n), (None, None, [0, 0]));
    }

    #[test]
    fn intervals_cover_the_ratios_of_the_distributions() {
        // Normals in 3 dimensions, scales 0.9 and 1: the ratios are 0.81 and 0.9.
        let (dim, trials) = (3, 500u64);
        for (reals, mades) in [(80, 60), (3, 3), (5, 5)] {
            let (mut variance, mut distance) = (0u32, 0u32);
            for trial in 0..trials {
                let real = normal(Seed(trial), reals * dim);
                let made: Vec<f64> = normal(Seed(trial + 5000), mades * dim).iter().map(|x| 0.9 * x).collect();
                let (a, b) = (Features::new(&real, dim).unwrap(), Features::new(&made, dim).unwrap());
                let found = diversity((&a, &vec![0; reals]), (&b, &vec![0; mades]), 1).unwrap();
                variance += u32::from(found[0].variance.unwrap().interval.contains(0.81));
                distance += u32::from(found[0].distance.unwrap().interval.contains(0.9));
            }
            let share = |hits: u32| f64::from(hits) / trials as f64;
            assert!((0.91..=0.99).contains(&share(variance)), "{reals} and {mades} images: {variance}");
            assert!((0.91..=0.99).contains(&share(distance)), "{reals} and {mades} images: {distance}");
        }
    }

    #[test]
    fn a_class_of_one_image_over_and_over_has_no_diversity() {
        let (real, made) = (normal(Seed(2), 8), [3.0; 8]);
        let (a, b) = (Features::new(&real, 2).unwrap(), Features::new(&made, 2).unwrap());
        let found = diversity((&a, &[0; 4]), (&b, &[0; 4]), 1).unwrap();
        assert_eq!((found[0].variance, found[0].distance), (None, None));
        assert!(diversity((&a, &[0; 3]), (&b, &[0; 4]), 1).is_err());
    }
}
