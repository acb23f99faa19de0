//! How many training images it takes to come within a distance of Bayes.

use serde::{Deserialize, Serialize};

use super::PowerLaw;
use super::points::{LARGEST_LOG, Variant, plain};
use super::scatter::Replicate;
use super::verdict::Comparison;
use crate::error::{Error, Result};
use crate::measure::bootstrap::quantile;
use crate::measure::interval::Estimate;

/// Times the largest N that was run, beyond which nothing says that the law still holds.
const FAR: f64 = 10.0;

/// The answer to "how many training images until the value is at most this?".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Forecast {
    /// The curve comes down to it.
    Reachable {
        /// Training images at which the curve is at the distance; at least 1.
        n: f64,
        /// The 95 % prediction interval for a new run: curve and scatter of runs.
        #[serde(flatten)]
        ends: Ends,
        /// `n` over the largest N that was run: beyond 10 the law itself is the main doubt.
        extrapolation: f64,
        /// The same in words.
        sentence: String,
    },
    /// The asymptote of the fitted curve lies above it.
    Unreachable {
        /// The asymptote.
        floor: Estimate,
        /// The same in words.
        sentence: String,
    },
    /// The points do not say.
    NotIdentifiable {
        /// Why.
        sentence: String,
    },
}

/// The interval of a number of images.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredEnds")]
pub struct Ends {
    /// Lower and upper end; the upper is `None` where more than 2.5 % of the curves that fit never come down to the distance.
    pub interval: (f64, Option<f64>),
}

/// How files have these ends.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredEnds {
    Pair {
        interval: (f64, Option<f64>),
    },
    /// In files of older versions.
    Former {
        low: f64,
        high: Option<f64>,
    },
}

impl From<StoredEnds> for Ends {
    fn from(stored: StoredEnds) -> Self {
        match stored {
            StoredEnds::Pair { interval } => Self { interval },
            StoredEnds::Former { low, high } => Self { interval: (low, high) },
        }
    }
}

/// Predicts the number of training images at which a run has a value (KL to the exact posterior,
/// nats) of `distance` or less, by the law that `fits` prefers. The interval is over both forms
/// (`forms`).
///
/// # Errors
/// When `distance` is not a positive number.
pub fn more_data(fits: &Comparison, distance: f64) -> Result<Forecast> {
    if !(distance > 0.0 && distance.is_finite()) {
        return Err(Error::input(format!("a distance to the Bayes posterior is a number > 0, not {distance}")));
    }
    let mut answer = answer(fits.law(), &fits.drawn(), distance);
    if let (Forecast::Reachable { sentence, .. }, None) = (&mut answer, &fits.floor) {
        let few = format!(" That it goes on falling, {} numbers of images are too few to test.", fits.pure.n_sizes);
        *sentence += &few;
    }
    Ok(answer)
}

/// By the law `fit`, with the interval that the curves of `replicates` leave.
pub(super) fn answer(fit: &PowerLaw, replicates: &[Replicate], distance: f64) -> Forecast {
    if let Some(floor) = fit.floor.filter(|floor| floor.value >= distance) {
        return Forecast::Unreachable { floor, sentence: unreachable(fit, floor, distance) };
    }
    let alpha = fit.alpha.interval;
    let log_n = fit.curve.log_n_at(distance.ln());
    let Some(log_n) = log_n.filter(|_| fit.variant == Variant::Floor || alpha.low > 0.0) else {
        let why = if alpha.high < 0.0 {
            "The value rises with N: its exponent is"
        } else {
            "These runs do not fix the exponent"
        };
        let sentence =
            format!("{why} (95 %: {:.3} to {:.3}): no number of images can be given.", alpha.low, alpha.high);
        return Forecast::NotIdentifiable { sentence };
    };
    // A run that lies above its curve must go further down it to come within the distance.
    let one = |replicate: &Replicate| replicate.curve.log_n_at(distance.ln() - replicate.scatter);
    let mut draws: Vec<f64> = replicates.iter().map(|r| one(r).unwrap_or(f64::INFINITY)).collect();
    draws.sort_unstable_by(f64::total_cmp);
    let images = |log_n: f64| log_n.clamp(0.0, LARGEST_LOG).exp();
    let (n, low) = (images(log_n), images(quantile(&draws, 0.025).min(log_n)));
    let last = quantile(&draws, 0.975).max(log_n);
    let high = (last < LARGEST_LOG).then(|| images(last));
    let upper = high.map_or(", no upper end: more than 2.5 % of the curves that fit never come there".into(), |high| {
        format!(" to {}", plain(high))
    });
    let extrapolation = n / fit.largest();
    let doubt = if extrapolation > FAR { ": that far the law itself is the main doubt" } else { "" };
    let sentence = format!(
        "A run comes within {distance} at N = {} (95 %: {}{upper}), {} times the largest N that was run{doubt}.",
        plain(n),
        plain(low),
        plain(extrapolation)
    );
    Forecast::Reachable { n, ends: Ends { interval: (low, high) }, extrapolation, sentence }
}

fn unreachable(fit: &PowerLaw, floor: Estimate, distance: f64) -> String {
    let (low, high) = (floor.interval.low, floor.interval.high);
    let doubt = if low < distance { " The lower end lies below that distance: larger N would tell." } else { "" };
    format!(
        "The fitted curve does not come within {distance}: its asymptote is {} (95 %: {} to {}), fitted over N = {} to {}.{doubt}",
        plain(floor.value),
        plain(low),
        plain(high),
        fit.smallest(),
        fit.largest()
    )
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::super::tests::{Noise, SILENT, SIZES, synthetic};
    use super::super::{Point, compare, fit};
    use super::*;
    use crate::units::Seed;

    /// By one form, given that it holds.
    fn of_form(points: &[Point], variant: Variant, seed: u64, distance: f64) -> Forecast {
        let law = fit(points, variant, Seed(seed)).unwrap();
        answer(&law, &law.drawn(), distance)
    }

    fn forecast(law: (f64, f64, f64), variant: Variant, run: f64, distance: f64) -> Forecast {
        let points = synthetic(law, &SIZES, 3, Noise { run, ..SILENT }, 3);
        of_form(&points, variant, 3, distance)
    }

    #[test]
    fn exact_laws_are_inverted() {
        // N^(−1/2) = 0.001 at a million; N^(−1/2) + 0.02 = 0.021 there too.
        for (law, variant, distance) in
            [((1.0, 0.5, 0.0), Variant::Pure, 0.001), ((1.0, 0.5, 0.02), Variant::Floor, 0.021)]
        {
            let found = forecast(law, variant, 0.0, distance);
            let Forecast::Reachable { n, ends, extrapolation, .. } = found else { panic!("reachable") };
            let (low, high) = ends.interval;
            assert!((n / 1e6 - 1.0).abs() < 1e-4 && (low / n - 1.0).abs() < 1e-3, "{n} {low}");
            assert!((high.unwrap() / n - 1.0).abs() < 1e-3);
            assert!((extrapolation - 1e6 / 45_000.0).abs() < 0.01);
        }
    }

    #[test]
    fn files_of_older_versions_are_read() {
        let written = forecast((1.0, 0.5, 0.0), Variant::Pure, 0.1, 0.001);
        let mut json = serde_json::to_value(&written).unwrap();
        assert_eq!(serde_json::from_value::<Forecast>(json.clone()).unwrap(), written, "{json}");
        let fields = json.as_object_mut().unwrap();
        let interval = fields.remove("interval").unwrap();
        fields.insert("low".into(), interval[0].clone());
        fields.insert("high".into(), interval[1].clone());
        assert_eq!(serde_json::from_value::<Forecast>(json).unwrap(), written);
    }

    #[test]
    fn a_floor_above_the_distance_is_out_of_reach() {
        let Forecast::Unreachable { floor, sentence } = forecast((1.0, 0.5, 0.02), Variant::Floor, 0.02, 0.01) else {
            panic!("unreachable")
        };
        assert!(floor.interval.contains(0.02) && sentence.contains("0.01"), "{sentence}");
    }

    #[test]
    fn values_that_do_not_fall_give_no_number() {
        for law in [(0.1, 0.0, 0.0), (0.1, -0.2, 0.0)] {
            for variant in [Variant::Pure, Variant::Floor] {
                let answer = forecast(law, variant, 0.05, 0.01);
                let ended = matches!(&answer, Forecast::Reachable { ends, .. } if ends.interval.1.is_some());
                assert!(!ended, "{answer:?}");
            }
        }
        let flat = [100.0, 1e3, 1e4].map(|n| Point { n, seed: 0, value: 0.117, error: 0.0 });
        let fits = compare(&flat, None, Seed(0)).unwrap();
        assert!(matches!(more_data(&fits, 0.1).unwrap(), Forecast::NotIdentifiable { .. }));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(more_data(&fits, bad).is_err());
        }
    }

    #[test]
    fn three_sizes_forecast_and_say_that_they_cannot_test_it() {
        let points = synthetic((1.0, 0.4, 0.0), &SIZES[..3], 3, Noise { run: 0.02, ..SILENT }, 0);
        let Forecast::Reachable { sentence, .. } = more_data(&compare(&points, None, Seed(0)).unwrap(), 0.02).unwrap()
        else {
            panic!("reachable")
        };
        assert!(sentence.contains("3 numbers of images are too few"), "{sentence}");
    }

    #[test]
    fn a_closer_distance_takes_more_images() {
        let points = synthetic((1.0, 0.4, 0.0), &SIZES, 3, Noise { run: 0.1, ..SILENT }, 8);
        let images = |distance| match of_form(&points, Variant::Pure, 1, distance) {
            Forecast::Reachable { n, ends, .. } => (n, ends.interval.0, ends.interval.1.unwrap()),
            other => panic!("{other:?}"),
        };
        let (far, near) = (images(0.05), images(0.005));
        assert!(far.0 < near.0 && far.1 < near.1 && far.2 < near.2);
        assert!(near.2 / near.1 > far.2 / far.1, "further away is less certain");
        assert_eq!(images(1e3).0, 1.0);
    }

    #[test]
    fn prediction_intervals_hold_the_images_a_new_run_needs() {
        let (alpha, run, distance, trials) = (0.4, 0.1, 0.008, 200);
        let mut inside = 0;
        for trial in 0..trials {
            let points = synthetic((1.0, alpha, 0.0), &SIZES, 3, Noise { run, ..SILENT }, trial);
            let own = run * Distribution::<f64>::sample(&StandardNormal, &mut Seed(99).rng(trial));
            let needed = ((own - f64::ln(distance)) / alpha).exp();
            if let Forecast::Reachable { ends, .. } = of_form(&points, Variant::Pure, trial, distance) {
                let (low, high) = ends.interval;
                inside += u32::from(low <= needed && high.is_none_or(|high| needed <= high));
            }
        }
        let share = f64::from(inside) / trials as f64;
        println!("coverage of the forecast {share}");
        assert!((0.88..=0.995).contains(&share), "{share}");
    }
}
