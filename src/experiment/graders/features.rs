//! What estimators of the Bayes error see of an image: its pixels, or the features of a network trained in the same cell.

use serde::{Deserialize, Serialize};

use super::super::images::Images;
use super::super::trained::Trained;
use super::{Estimated, FROM_SAMPLES};
use crate::error::Result;

use crate::measure::grade::{self, Graded, MOST, Sample};
use crate::measure::{Interval, over_seeds};
use crate::units::ClassId;

/// What an estimator sees of an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// The pixels of the training images, [N, C·H·W].
    #[default]
    Pixels,
    /// What the last linear map of the cell's first classifier reads of the test images, [M, d]. The classifier never saw
    /// them: of its own training images it has learned the labels. Features can lose information, so their Bayes error is at
    /// least that of the world.
    Trained,
}

impl Features {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Pixels, Self::Trained];

    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pixels => "pixels",
            Self::Trained => "features of the trained network",
        }
    }

    /// Whether it is what specs and files need not name.
    pub(super) fn is_pixels(&self) -> bool {
        *self == Self::Pixels
    }
}

/// The parts that are left out in turn for the interval of an estimate.
const PARTS: usize = 10;

/// Estimates from the features of the test images and their drawn labels.
///
/// # Errors
/// When the device fails. A network without features, or a class without test images, is a sentence in each estimate.
pub(super) fn of_features(trained: &Trained, test: &Images) -> Result<Vec<Estimated>> {
    let count = test.len().min(MOST);
    let none = |why: &str| {
        let of = |estimator| Estimated { features: Features::Trained, ..Estimated::of(estimator, Err(why.to_owned())) };
        FROM_SAMPLES.map(of).to_vec()
    };
    if let Some(why) = trained.lacks_features() {
        return Ok(none(&why));
    }
    let features = trained.features(test.all.x[..count * test.shape.dims()].to_vec())?;
    match graded(&features, &test.all.labels[..count], test.classes) {
        Ok(all) => Ok(all),
        Err(why) => Ok(none(&why.to_string())),
    }
}

/// Estimates from features [M, d], each with the interval of a jackknife over tenths of the images: every seed of an
/// experiment sees the same test images, so that the spread over seeds does not hold theirs.
fn graded(features: &[f32], labels: &[ClassId], classes: usize) -> Result<Vec<Estimated>> {
    let dim = features.len() / labels.len();
    let all = grade::grade(Sample::new(features, dim, labels, classes)?)?;
    let mut left_out: Vec<Vec<f64>> = vec![Vec::with_capacity(PARTS); all.len()];
    for part in 0..PARTS {
        let keep: Vec<usize> = (0..labels.len()).filter(|i| i % PARTS != part).collect();
        let x: Vec<f32> = keep.iter().flat_map(|&i| &features[i * dim..(i + 1) * dim]).copied().collect();
        let y: Vec<ClassId> = keep.iter().map(|&i| labels[i]).collect();
        let graded = grade::grade(Sample::new(&x, dim, &y, classes)?)?;
        for (values, (_, graded)) in left_out.iter_mut().zip(graded) {
            values.extend(graded.ok().map(|graded| graded.estimate));
        }
    }
    let with_interval =
        |(one, values): (Graded, &Vec<f64>)| Graded { interval: jackknife(one.estimate, values), ..one };
    let of = |((estimator, graded), values): ((_, Result<Graded, String>), &Vec<f64>)| Estimated {
        features: Features::Trained,
        ..Estimated::of(estimator, graded.map(|one| with_interval((one, values))))
    };
    Ok(all.into_iter().zip(&left_out).map(of).collect())
}

/// The 95 % interval of an estimate from its values with one part of [`PARTS`] left out: the mean of pseudo-values g θ − (g − 1) θ_i, with
/// Student's t of g − 1 degrees (Tukey 1958; Efron & Stein 1981). None where a value is missing.
fn jackknife(estimate: f64, values: &[f64]) -> Option<Interval> {
    if values.len() < PARTS {
        return None;
    }
    let g = PARTS as f64;
    let pseudo: Vec<f64> = values.iter().map(|value| g * estimate - (g - 1.0) * value).collect();
    let (_, half) = over_seeds(&pseudo);
    Some(Interval { low: (estimate - half).max(0.0), high: (estimate + half).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::grade::Estimator;
    use crate::units::Seed;
    use rand::RngExt;

    /// Two classes on a line that overlap: features that are the whole truth. x is uniform on [0, 1), P(y = 1) = 0.2 below ½
    /// and 0.8 above, so the Bayes error is 0.2, and the 1-NN error 2·0.2·0.8 = 0.32 in the limit.
    fn draw(seed: u64, n: usize) -> (Vec<f32>, Vec<ClassId>) {
        let mut rng = Seed(seed).rng(0);
        let one = |_| {
            let x: f64 = rng.random();
            let label = usize::from(rng.random::<f64>() < if x < 0.5 { 0.2 } else { 0.8 });
            (x as f32, label)
        };
        (0..n).map(one).unzip()
    }

    #[test]
    fn the_jackknife_interval_holds_the_mean_over_draws() {
        let (seeds, n) = (40, 250);
        let of = |seed: u64| {
            let (x, y) = draw(seed, n);
            graded(&x, &y, 2).unwrap()
        };
        let all: Vec<Vec<Estimated>> = (0..seeds).map(of).collect();
        for estimator in [Estimator::OneNn, Estimator::Knn] {
            let of = |one: &Vec<Estimated>| {
                let mut found = one.iter().filter(|one| one.estimator == estimator);
                found.next().and_then(|one| one.graded.clone()).unwrap()
            };
            let all: Vec<Graded> = all.iter().map(of).collect();
            let mean = all.iter().map(|one| one.estimate).sum::<f64>() / seeds as f64;
            let held = all.iter().filter(|one| one.interval.is_some_and(|i| (i.low..=i.high).contains(&mean))).count();
            assert!(held >= 34, "{estimator:?}: {held} of {seeds} intervals hold the mean {mean}");
            // An interval that is always wide is no interval: twice the spread of draws on either side is enough.
            let spread =
                all.iter().map(|one| (one.estimate - mean).powi(2)).sum::<f64>().sqrt() / (seeds as f64).sqrt();
            let width = all.iter().filter_map(|one| one.interval).map(|i| i.high - i.low).sum::<f64>() / seeds as f64;
            assert!(width < 8.0 * spread, "{estimator:?}: mean width {width}, spread of draws {spread}");
        }
    }

    #[test]
    fn features_go_unnamed_where_they_are_pixels() {
        let estimated = Estimated::of(Estimator::OneNn, Err("none".into()));
        let text = serde_json::to_string(&estimated).unwrap();
        assert!(!text.contains("features"), "{text}");
        let named = serde_json::to_string(&Estimated { features: Features::Trained, ..estimated }).unwrap();
        assert!(named.contains("\"features\":\"trained\""), "{named}");
    }
}
