//! The figures of a classifier after a step, whole and as a course keeps them.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use super::record::Header;
use crate::judge::label_chance;
use crate::measure::{Bootstrap, Estimate, Interval, Measured, NATS, PerImage, Reliability, SHARE};

/// A classifier after a step, on the test images of its run. Intervals are 95 % over those images:
/// that of a share of hits is Wilson's, those of A and the Bayes error, which all steps have in common, are those of
/// [`Measured`], those of other means Student's, which do not fall below 0; that of the expected error
/// holds what images of a kind that was hardly seen, wrong or right, may add.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepFigures {
    /// Steps done.
    pub step: u64,
    /// Epochs done, where the record says so; likewise the next three.
    pub epoch: Option<f64>,
    /// Training images seen.
    pub images: Option<u64>,
    /// Seconds since the training began.
    pub seconds: Option<f64>,
    /// Training loss, nats, as the writer computed it.
    pub train_loss: Option<f64>,
    /// L = mean −Σ_y p log q, nats.
    pub cross_entropy: Estimate,
    /// A = mean H(p), nats: the same at every step.
    pub aleatoric: Estimate,
    /// mean KL(p‖q), nats.
    pub epistemic: Estimate,
    /// mean −log q(drawn label), nats.
    pub nll: Estimate,
    /// Share of images whose decision is not the drawn label.
    pub error: Estimate,
    /// mean 1 − p(argmax q): the mean error over all possible labels.
    pub expected_error: Estimate,
    /// mean 1 − max p: the Bayes error of the same images, the same at every step.
    pub bayes_error: Estimate,
    /// Expected calibration error against drawn labels, 15 bins.
    pub ece: f64,
    /// The same against the exact posteriors.
    pub exact_calibration_error: f64,
    /// Probabilities that were 0 and count as the smallest normal float32.
    pub zeros: usize,
    /// Bound of the probability that a classifier that does not know the drawn labels does as well on them ([`label_chance`]):
    /// computed where NLL or error lie below their floor ([`Self::below_floors`]), 1 elsewhere.
    pub label_chance: f64,
}

/// What all steps of a course have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Floor {
    /// Test images.
    pub images: usize,
    aleatoric: Estimate,
    bayes_error: Estimate,
}

/// [`StepFigures`] as a course keeps them, without what all steps have in common: there may be millions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub step: u64,
    /// By what its record is known again.
    pub mark: u64,
    /// Epoch, images, seconds and training loss: bits, or [`NOT_SAID`].
    said: [u64; 4],
    /// L, KL and NLL, each with the upper end of its interval.
    means: [[f64; 2]; 3],
    /// The expected error with both ends.
    expected_error: [f64; 3],
    calibration: [f64; 2],
    label_chance: f64,
    hits: u32,
    zeros: u32,
}

/// Stands for what a record does not say: the bits of a NaN.
const NOT_SAID: u64 = u64::MAX;

impl Floor {
    /// Of test images, whatever is predicted of them: from the figures of any step of their course.
    pub fn of(measured: &Measured) -> Self {
        Self { images: measured.n, aleatoric: measured.aleatoric, bayes_error: measured.bayes_accuracy.complement() }
    }
}

impl Row {
    pub fn of(figures: &StepFigures, images: usize, mark: u64) -> Self {
        let StepFigures { step, cross_entropy, epistemic, nll, expected_error, .. } = *figures;
        let said = [figures.epoch, figures.seconds, figures.train_loss].map(|said| said.map_or(NOT_SAID, f64::to_bits));
        Self {
            step,
            mark,
            said: [said[0], figures.images.unwrap_or(NOT_SAID), said[1], said[2]],
            means: [cross_entropy, epistemic, nll].map(|mean| [mean.value, mean.interval.high]),
            expected_error: [expected_error.value, expected_error.interval.low, expected_error.interval.high],
            calibration: [figures.ece, figures.exact_calibration_error],
            label_chance: figures.label_chance,
            hits: ((1.0 - figures.error.value) * images as f64).round() as u32,
            zeros: u32::try_from(figures.zeros).unwrap_or(u32::MAX),
        }
    }

    pub fn figures(&self, floor: &Floor) -> StepFigures {
        let said = |i: usize| (self.said[i] != NOT_SAID).then_some(self.said[i]);
        let [epoch, seconds, train_loss] = [0, 2, 3].map(|i| said(i).map(f64::from_bits));
        let [cross_entropy, epistemic, nll] = self.means.map(|[value, high]| up_to(value, high));
        let [value, low, high] = self.expected_error;
        StepFigures {
            step: self.step,
            epoch,
            images: said(1),
            seconds,
            train_loss,
            cross_entropy,
            aleatoric: floor.aleatoric,
            epistemic,
            nll,
            error: Estimate::proportion(self.hits as usize, floor.images).complement(),
            expected_error: Estimate { value, interval: Interval { low, high } },
            bayes_error: floor.bayes_error,
            ece: self.calibration[0],
            exact_calibration_error: self.calibration[1],
            zeros: self.zeros as usize,
            label_chance: self.label_chance,
        }
    }

    /// KL, nats.
    pub fn kl(&self) -> f64 {
        self.means[1][0]
    }
}

impl StepFigures {
    /// The step with the smallest KL.
    pub fn best<T: Borrow<Self>>(steps: impl IntoIterator<Item = T>) -> Option<T> {
        let kl = |step: &T| step.borrow().epistemic.value;
        steps.into_iter().min_by(|a, b| kl(a).total_cmp(&kl(b)))
    }

    /// What is the same at every step of its course.
    #[cfg(test)]
    pub(super) fn floor(&self, images: usize) -> Floor {
        Floor { images, aleatoric: self.aleatoric, bayes_error: self.bayes_error }
    }

    /// Whether NLL lies below A, and the error below the Bayes error, by more than both intervals. These intervals hold no
    /// labels that hardly ever occur and were not drawn: without [`Self::label_chance`] this says nothing.
    pub fn below_floors(&self) -> [bool; 2] {
        let pairs = [(self.nll, self.aleatoric), (self.error, self.bayes_error)];
        pairs.map(|(figure, floor)| figure.interval.high < floor.interval.low)
    }

    /// A sentence about probabilities of 0, where there are some.
    pub fn zeros_told(&self) -> Option<String> {
        let Self { step, zeros, .. } = self;
        (*zeros > 0).then(|| {
            format!(
                "Probabilities of 0 at step {step}: {zeros}. They count as 1.2e-38, the smallest normal float32: where such a class is \
                 possible, L and KL depend on that number."
            )
        })
    }

    /// Of `images` with their p and log q, [n, K] each.
    pub(super) fn of(
        step: u64,
        header: &Header,
        images: &PerImage,
        [p, log_q]: [&[f64]; 2],
        zeros: usize,
        floor: &Floor,
    ) -> Self {
        let Header { epoch, images: seen, seconds, train_loss } = *header;
        let hits = (0..images.len()).filter(|&i| images.hit(i)).count();
        let reliability = Reliability::of(images);
        let kl: Vec<f64> = images.kl.iter().map(|kl| kl.max(0.0)).collect();
        let errors = complements(&images.expected);
        // To the bits that a row gives back.
        let nats = |values: &[f64]| {
            let mean = Bootstrap::quick_mean(values, None, NATS);
            up_to(mean.value, mean.interval.high)
        };
        let figures = Self {
            step,
            epoch,
            images: seen,
            seconds,
            train_loss,
            cross_entropy: nats(&images.cross_entropy),
            aleatoric: floor.aleatoric,
            epistemic: nats(&kl),
            nll: nats(&images.nll),
            error: Estimate::proportion(hits, images.len()).complement(),
            expected_error: Bootstrap::quick_mean(&errors, Some(images.in_doubt()[1]), SHARE),
            bayes_error: floor.bayes_error,
            ece: reliability.ece(),
            exact_calibration_error: reliability.exact_calibration_error(),
            zeros,
            label_chance: 1.0,
        };
        // It costs more than all else, and hardly any step of an honest classifier is so far down.
        if figures.below_floors() == [false; 2] {
            return figures;
        }
        Self { label_chance: label_chance(p, log_q, images), ..figures }
    }
}

fn complements(shares: &[f64]) -> Vec<f64> {
    shares.iter().map(|share| 1.0 - share).collect()
}

/// A number ≥ 0 in the middle of its interval.
fn up_to(value: f64, high: f64) -> Estimate {
    Estimate { value, interval: Interval { low: (2.0 * value - high).max(0.0), high } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn what_is_kept_of_a_step_is_all_of_it_and_little() {
        let (p, images) = ([0.75, 0.25, 0.5, 0.5, 0.1, 0.9], 3);
        let log_q: Vec<f64> = [0.6, 0.4, 0.3, 0.7, 0.2, 0.8_f64].map(f64::ln).to_vec();
        let mut of = PerImage::new(2).unwrap();
        of.extend(&p, &log_q, &[0, 0, 1]).unwrap();
        let draws = Bootstrap::new(Seed(1));
        let said = Header { epoch: Some(0.5), images: Some(7), seconds: None, train_loss: Some(-0.0) };
        for header in [said, Header::default()] {
            let figures =
                StepFigures::of(10, &header, &of, [&p[..], &log_q[..]], 2, &Floor::of(&of.measured(&draws).unwrap()));
            let row = Row::of(&figures, images, 1);
            assert_eq!(row.figures(&figures.floor(images)), figures);
        }
        // 200 runs of 10,000 steps are 304 MB.
        assert!(size_of::<Row>() <= 152, "{}", size_of::<Row>());
    }

    #[test]
    fn a_step_has_the_intervals_of_a_cell_for_what_is_no_matter_of_the_classifier() {
        // A tenth of 60 images is in doubt, and errs.
        let p = (0..60).flat_map(|i| if i % 10 == 0 { [0.55, 0.45] } else { [0.999, 0.001] }).collect::<Vec<f64>>();
        let labels: Vec<usize> = (0..60).map(|i| usize::from(i % 20 == 0)).collect();
        let answered = |q: &dyn Fn(&f64) -> f64| {
            let mut images = PerImage::new(2).unwrap();
            images.extend(&p, &p.iter().map(|p| q(p).ln()).collect::<Vec<_>>(), &labels).unwrap();
            images
        };
        let log_p: Vec<f64> = p.iter().map(|p| p.ln()).collect();
        // What all steps have in common is from the first of them.
        let (first, of) = (answered(&|_| 0.5), answered(&|p| *p));
        let draws = Bootstrap::new(Seed(1));
        let floor = Floor::of(&first.measured(&draws).unwrap());
        let step = StepFigures::of(1, &Header::default(), &of, [&p[..], &log_p[..]], 0, &floor);
        let measured = of.measured(&draws).unwrap();
        let pairs = [(step.aleatoric, measured.aleatoric), (step.bayes_error, measured.bayes_accuracy.complement())];
        for (one, other) in pairs {
            let ends = |of: Estimate| [of.value, of.interval.low, of.interval.high];
            assert!(ends(one).iter().zip(ends(other)).all(|(a, b)| (a - b).abs() < 1e-12), "{one:?} {other:?}");
        }
        // 3 of 60 may be of another kind, and wrong altogether.
        let Estimate { value, interval } = step.expected_error;
        assert!(interval.high - value > 0.05 * (1.0 - value), "{:?}", step.expected_error);
    }
}
