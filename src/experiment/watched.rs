//! What is looked at during training: the first test images, with intervals, for they are few.

use serde::{Deserialize, Serialize};

use crate::measure::{Bootstrap, Interval, NATS, PerImage, SHARE};

/// A number and, where it is known, its 95 % interval.
type Number = (f64, Option<[f64; 2]>);

/// A classifier in the middle of its training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Watched {
    /// Steps done.
    pub step: usize,
    /// Epochs done.
    pub epoch: usize,
    /// Mean training loss over the epoch, nats.
    pub train_loss: f64,
    /// Cross-entropy on the watched images, nats.
    pub cross_entropy: f64,
    /// Its aleatoric part: the same for every classifier.
    pub aleatoric: f64,
    /// Its epistemic part.
    pub epistemic: f64,
    /// Expected accuracy Σ_i p_i(argmax q_i)/n.
    pub expected_accuracy: f64,
    /// Of these four; absent where a single image is watched, and in files of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<WatchedIntervals>,
}

/// Student's 95 % intervals of what is watched; those of the aleatoric part and of the expected accuracy hold what images in
/// doubt, or decided rightly, that were not seen may add.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WatchedIntervals {
    /// Of the cross-entropy, nats.
    pub cross_entropy: Interval,
    /// Of the aleatoric part, nats.
    pub aleatoric: Interval,
    /// Of the epistemic part, nats.
    pub epistemic: Interval,
    /// Of the expected accuracy.
    pub expected_accuracy: Interval,
}

/// How files have what is watched.
#[derive(Deserialize)]
struct Stored {
    step: usize,
    epoch: usize,
    train_loss: f64,
    cross_entropy: f64,
    aleatoric: f64,
    epistemic: f64,
    expected_accuracy: f64,
    intervals: Option<WatchedIntervals>,
    half_widths: Option<HalfWidths>,
}

/// What files of older versions have in place of the intervals.
#[derive(Deserialize)]
struct HalfWidths {
    cross_entropy: f64,
    aleatoric: f64,
    epistemic: f64,
    expected_accuracy: f64,
}

impl From<Stored> for Watched {
    fn from(stored: Stored) -> Self {
        let Stored { step, epoch, train_loss, cross_entropy, aleatoric, epistemic, expected_accuracy, .. } = stored;
        let around = |value: f64, half: f64, range| Interval { low: value - half, high: value + half }.within(range);
        let former = stored.half_widths.map(|half| WatchedIntervals {
            cross_entropy: around(cross_entropy, half.cross_entropy, NATS),
            aleatoric: around(aleatoric, half.aleatoric, NATS),
            epistemic: around(epistemic, half.epistemic, NATS),
            expected_accuracy: around(expected_accuracy, half.expected_accuracy, SHARE),
        });
        let intervals = stored.intervals.or(former);
        Self { step, epoch, train_loss, cross_entropy, aleatoric, epistemic, expected_accuracy, intervals }
    }
}

impl Watched {
    /// After so many steps and epochs, the last of them with a mean training loss.
    pub fn of(images: &PerImage, step: usize, epoch: usize, train_loss: f64) -> Self {
        let ([of_class, of_decision], entropies) = (images.in_doubt(), [0.0, (images.classes as f64).ln()]);
        let cross_entropy = Bootstrap::quick_mean(&images.cross_entropy, None, NATS);
        let aleatoric = Bootstrap::quick_mean(&images.entropy, Some(of_class), entropies);
        let epistemic = Bootstrap::quick_mean(&images.kl, None, NATS);
        let expected_accuracy = Bootstrap::quick_mean(&images.expected, Some(of_decision), SHARE);
        let intervals = WatchedIntervals {
            cross_entropy: cross_entropy.interval,
            aleatoric: aleatoric.interval,
            epistemic: epistemic.interval,
            expected_accuracy: expected_accuracy.interval,
        };
        Self {
            step,
            epoch,
            train_loss,
            cross_entropy: cross_entropy.value,
            aleatoric: aleatoric.value,
            epistemic: epistemic.value,
            expected_accuracy: expected_accuracy.value,
            intervals: (images.len() > 1).then_some(intervals),
        }
    }

    /// The cross-entropy, nats.
    pub fn cross_entropy(&self) -> Number {
        self.number(self.cross_entropy, |of| of.cross_entropy)
    }

    /// The aleatoric part, nats.
    pub fn aleatoric(&self) -> Number {
        self.number(self.aleatoric, |of| of.aleatoric)
    }

    /// The epistemic part, nats.
    pub fn epistemic(&self) -> Number {
        self.number(self.epistemic, |of| of.epistemic)
    }

    /// The expected error, 1 less the expected accuracy.
    pub fn expected_error(&self) -> Number {
        let (accuracy, interval) = self.number(self.expected_accuracy, |of| of.expected_accuracy);
        (1.0 - accuracy, interval.map(|[low, high]| [1.0 - high, 1.0 - low]))
    }

    fn number(&self, value: f64, of: impl Fn(&WatchedIntervals) -> Interval) -> Number {
        let ends = |intervals: &WatchedIntervals| {
            let Interval { low, high } = of(intervals);
            [low, high]
        };
        (value, self.intervals.as_ref().map(ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_images_without_doubt_say_what_they_do_not_show() {
        let mut images = PerImage::new(2).unwrap();
        let p: Vec<f64> = [1.0 - 1e-9, 1e-9].repeat(60);
        images.extend(&p, &p.iter().map(|p| p.ln()).collect::<Vec<_>>(), &[0; 60]).unwrap();
        let watched = Watched::of(&images, 1, 1, 0.0);
        let of = watched.intervals.unwrap();
        let is = |interval: Interval, low: f64, high: f64| {
            (interval.low - low).abs() < 1e-6 && (interval.high - high).abs() < 1e-6
        };
        // 3 of 60 images may be at the other end; KL has no bound to tell that by.
        assert!(is(of.expected_accuracy, 0.95, 1.0) && is(of.aleatoric, 0.0, 0.05 * 2f64.ln()), "{of:?}");
        assert!(is(of.epistemic, 0.0, 0.0), "{of:?}");
        let (error, ends) = watched.expected_error();
        assert!(error < 1e-6 && ends.is_some_and(|[low, high]| is(Interval { low, high }, 0.0, 0.05)), "{ends:?}");
    }

    #[test]
    fn a_file_has_the_ends_and_half_widths_of_earlier_versions_are_read() {
        let interval = |low, high| Interval { low, high };
        let intervals = WatchedIntervals {
            cross_entropy: interval(1.5, 2.5),
            aleatoric: interval(0.0, 0.75),
            epistemic: interval(1.0, 2.5),
            expected_accuracy: interval(0.5, 1.0),
        };
        let watched = Watched {
            step: 4,
            epoch: 1,
            train_loss: 3.0,
            cross_entropy: 2.0,
            aleatoric: 0.25,
            epistemic: 1.75,
            expected_accuracy: 0.875,
            intervals: Some(intervals),
        };
        let mut json = serde_json::to_value(watched).unwrap();
        assert_eq!(json["intervals"]["aleatoric"], serde_json::json!([0.0, 0.75]));
        assert_eq!(serde_json::from_value::<Watched>(json.clone()).unwrap(), watched);
        let fields = json.as_object_mut().unwrap();
        fields.remove("intervals");
        assert_eq!(serde_json::from_value::<Watched>(json.clone()).unwrap(), Watched { intervals: None, ..watched });
        // Half widths that reach beyond what the numbers can be.
        let half = serde_json::json!({ "cross_entropy": 0.5, "aleatoric": 0.5, "epistemic": 0.75, "expected_accuracy": 0.375 });
        json.as_object_mut().unwrap().insert("half_widths".into(), half);
        assert_eq!(serde_json::from_value::<Watched>(json).unwrap(), watched);
    }
}
