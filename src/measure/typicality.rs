//! Whether an image is one that a world makes: its log p(x) among those of the world's own samples
//! (theory §2).
//!
//! log p(x) is that of the whole world at its τ and π, not of one class: then the question is put
//! before the image is looked at, and the p-value is exact. With n samples drawn independently of
//! the image, the place of the image among all n + 1 numbers is uniform if it is a sample, too:
//! p = min(1, 2·min(1 + #{s ≤ log p(x)}, 1 + #{s ≥ log p(x)})/(n + 1)), two-sided, since an image
//! may be too likely as well. Equal numbers make it larger, never smaller.

use serde::{Deserialize, Serialize};

use crate::units;

/// Samples a reference holds: p-values are multiples of 1/200.
pub const SAMPLES: usize = 399;
/// Fewer say nothing: with 39 the least p-value is 0.05.
pub const FEWEST: usize = 39;
/// An image at or below this p-value is unusual.
pub const LEVEL: f64 = 0.05;
/// What *exact* is worth where an image is far outside.
pub const NOT_OF_THIS_WORLD: &str = "exact arithmetic on an image this world does not make";

/// log p(x) of samples of a world, nats.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Ascending.
    sorted: Vec<f64>,
}

/// How an image stands to a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// p > 0.05.
    Typical,
    /// p ≤ 0.05, among the samples.
    Unusual,
    /// Beyond every sample, by no more than the range of them all.
    Outside,
    /// Beyond every sample by more than the range of them all.
    FarOutside,
}

/// log p(x) of an image among those of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Typicality {
    /// In a word.
    pub band: Band,
    /// Two-sided; under the null at most α with probability α, whatever the world.
    pub p_value: f64,
    /// Whether it is on the less likely side of the samples.
    pub less_likely: bool,
    /// Samples with log p at most the image's.
    pub at_most: usize,
    /// Samples with log p at least the image's.
    pub at_least: usize,
    /// Samples.
    pub samples: usize,
}

/// How the images of a set stand to a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    /// Images.
    pub images: usize,
    /// In each band.
    pub typical: usize,
    /// Those p ≤ 0.05 among the samples: one in twenty of a world's own.
    pub unusual: usize,
    /// Beyond every sample.
    pub outside: usize,
    /// Far beyond every sample.
    pub far_outside: usize,
    /// Images without a finite log p(x), counted among those far outside.
    pub without_density: usize,
    /// Samples they are held against.
    pub samples: usize,
}

impl Band {
    /// The word on it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Typical => "typical",
            Self::Unusual => "unusual",
            Self::Outside => "outside",
            Self::FarOutside => "far outside",
        }
    }
}

impl Reference {
    /// From log p(x) of samples in any order; none from fewer than [`FEWEST`] numbers.
    pub fn new(mut log_px: Vec<f64>) -> Option<Self> {
        log_px.retain(|value| !value.is_nan());
        log_px.sort_by(f64::total_cmp);
        (log_px.len() >= FEWEST).then_some(Self { sorted: log_px })
    }

    /// Samples in it.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether it is empty, which none is.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Least and largest log p(x), nats.
    pub fn range(&self) -> [f64; 2] {
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        [end(self.sorted.first()), end(self.sorted.last())]
    }

    /// The middle one, nats.
    pub fn median(&self) -> f64 {
        let n = self.sorted.len();
        let at = |i: usize| self.sorted.get(i).copied().unwrap_or(f64::NAN);
        if n % 2 == 1 { at(n / 2) } else { 0.5 * (at(n.saturating_sub(1) / 2) + at(n / 2)) }
    }

    /// Where an image with this log p(x), nats, stands; none where that is no number.
    pub fn place(&self, log_px: f64) -> Option<Typicality> {
        if log_px.is_nan() {
            return None;
        }
        let n = self.sorted.len();
        let at_most = self.sorted.partition_point(|value| *value <= log_px);
        let at_least = n - self.sorted.partition_point(|value| *value < log_px);
        let tail = 1 + at_most.min(at_least);
        let p_value = (2.0 * tail as f64 / (n + 1) as f64).min(1.0);
        let [low, high] = self.range();
        let beyond = (low - log_px).max(log_px - high);
        let band = if beyond > high - low {
            Band::FarOutside
        } else if beyond > 0.0 {
            Band::Outside
        } else if p_value <= LEVEL {
            Band::Unusual
        } else {
            Band::Typical
        };
        Some(Typicality { band, p_value, less_likely: at_most < at_least, at_most, at_least, samples: n })
    }

    /// How many images of these log p(x), nats, are in each band.
    pub fn census(&self, log_px: &[f64]) -> Census {
        let places: Vec<Band> =
            log_px.iter().map(|value| self.place(*value).map_or(Band::FarOutside, |place| place.band)).collect();
        let count = |band: Band| places.iter().filter(|place| **place == band).count();
        Census {
            images: log_px.len(),
            typical: count(Band::Typical),
            unusual: count(Band::Unusual),
            outside: count(Band::Outside),
            far_outside: count(Band::FarOutside),
            without_density: log_px.iter().filter(|value| !value.is_finite()).count(),
            samples: self.len(),
        }
    }
}

impl Typicality {
    /// The band in words.
    pub fn words(&self) -> &'static str {
        match (self.band, self.less_likely) {
            (Band::Typical, _) => "as likely as samples of this world",
            (Band::Unusual, true) => "less likely than most samples of this world",
            (Band::Unusual, false) => "likelier than most samples of this world",
            (Band::Outside, true) => "less likely than every sample of this world",
            (Band::Outside, false) => "likelier than every sample of this world",
            (Band::FarOutside, true) => "far less likely than every sample of this world",
            (Band::FarOutside, false) => "far likelier than every sample of this world",
        }
    }

    /// Whether it lies beyond every sample: more samples would have made its p-value smaller.
    pub fn is_beyond(&self) -> bool {
        self.at_most.min(self.at_least) == 0
    }

    /// Whether log p(x) lies beyond all samples by more than they range, where the badge *exact* would mislead.
    pub fn is_far_outside(&self) -> bool {
        self.band == Band::FarOutside
    }
}

impl Census {
    /// In a sentence.
    pub fn describe(&self) -> String {
        let Self { typical, unusual, outside, far_outside, samples, .. } = self;
        let images = units::images(self.images);
        let counts = format!(
            "log p(x) of {images} beside {samples} samples of this world: {typical} typical, {unusual} unusual, \
             {outside} outside, {far_outside} far outside"
        );
        match far_outside {
            0 => counts,
            _ => format!("{counts} (far outside: {NOT_OF_THIS_WORLD})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::Rng;

    /// Under the null the image and the samples are exchangeable: each of the n + 1 numbers is the image's with the same
    /// probability. So the shares over them are the probabilities.
    fn p_values(pool: &[f64]) -> Vec<f64> {
        let others = |i: usize| pool.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, value)| *value).collect();
        (0..pool.len()).map(|i| Reference::new(others(i)).unwrap().place(pool[i]).unwrap().p_value).collect()
    }

    #[test]
    fn under_the_null_p_values_are_uniform_on_their_grid() {
        for n in [FEWEST, 40, 100, SAMPLES] {
            let mut rng = Seed(n as u64).rng(0);
            let pool: Vec<f64> = (0..=n).map(|i| i as f64 + 1e-4 * f64::from(rng.next_u32() >> 24)).collect();
            let p = p_values(&pool);
            for k in 1..=n.div_ceil(2) {
                let alpha = 2.0 * k as f64 / (n + 1) as f64;
                let share = p.iter().filter(|p| **p <= alpha + 1e-12).count();
                assert_eq!(share, (2 * k).min(n + 1), "P(p ≤ {alpha}) with {n} samples");
            }
        }
    }

    #[test]
    fn ties_make_the_test_careful_and_never_bold() {
        for levels in [1, 2, 5, 30] {
            let mut rng = Seed(7).rng(levels);
            let pool: Vec<f64> = (0..120).map(|_| (rng.next_u64() % levels) as f64).collect();
            let p = p_values(&pool);
            for k in 1..=120 {
                let alpha = f64::from(k) / 120.0;
                assert!(p.iter().filter(|p| **p <= alpha).count() <= k as usize, "{levels} levels, α = {alpha}");
            }
        }
    }

    #[test]
    fn bands_follow_the_samples_on_both_sides() {
        let samples: Vec<f64> = (0..SAMPLES).map(|i| 5000.0 + i as f64).collect();
        let reference = Reference::new(samples).unwrap();
        assert_eq!((reference.range(), reference.median()), ([5000.0, 5398.0], 5199.0));
        let bands = [5199.0, 5005.0, 5393.0, 4900.0, 5500.0, 4000.0, 7000.0, f64::NEG_INFINITY];
        let placed = bands.map(|log_px| {
            let place = reference.place(log_px).unwrap();
            (place.band, place.less_likely)
        });
        use Band::{FarOutside, Outside, Typical, Unusual};
        let expected = [
            (Typical, false),
            (Unusual, true),
            (Unusual, false),
            (Outside, true),
            (Outside, false),
            (FarOutside, true),
            (FarOutside, false),
            (FarOutside, true),
        ];
        assert_eq!(placed, expected);
        // The least p-value counts the image itself.
        assert_eq!(reference.place(-1e9).unwrap().p_value, 2.0 / 400.0);
        assert!(reference.place(f64::NAN).is_none());
        let census = reference.census(&bands);
        assert_eq!([census.typical, census.unusual, census.outside, census.far_outside], [1, 2, 2, 3]);
        assert!(census.describe().contains(NOT_OF_THIS_WORLD) && census.without_density == 1);
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert!(Reference::new(vec![0.0; FEWEST - 1]).is_none());
        let with_nan = [vec![1.0; FEWEST - 1], vec![f64::NAN]].concat();
        assert!(Reference::new(with_nan).is_none());
    }
}
