//! What is odd about a course.

use super::track::{Quantity, Seen, Track};
use crate::run::external::StepFigures;

/// Looks from which on a course can be called at a standstill.
const LEAST: usize = 12;

/// Something that its author should look at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alarm {
    /// On drawn labels it is better than any classifier can be in the mean: it has seen them.
    BelowFloor {
        /// The step that shows it first.
        step: f64,
        /// Which figure.
        quantity: Quantity,
        /// The figure.
        value: f64,
        /// Its floor.
        floor: f64,
    },
    /// Its KL has not fallen for the last third of its course.
    Stalled {
        /// The step of its least KL before.
        since: f64,
        /// That KL, nats.
        least: f64,
    },
}

impl Alarm {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::BelowFloor { step, quantity, value, floor } => {
                let (name, of) = (quantity.name(), quantity.floor().unwrap_or("its floor"));
                format!(
                    "At step {step} the {name} is {value:.4}, below {of} = {floor:.4} by more than both intervals: test labels \
                     may have leaked into its training."
                )
            }
            Self::Stalled { since, least } => {
                format!("KL has not fallen below the {least:.4} nats of step {since} in the last third of the course.")
            }
        }
    }
}

/// What is odd about a course.
pub fn alarms(track: &Track) -> Vec<Alarm> {
    let logged =
        track.steps.iter().filter_map(|seen| if let Seen::Logged(logged) = seen { Some(logged) } else { None });
    leak(logged).into_iter().chain(stall(track)).collect()
}

/// L and the expected error are means over all possible labels: they cannot pass their floor. What is measured on the drawn
/// labels can, by chance within the intervals, and beyond them where the labels are known.
fn leak(mut steps: impl Iterator<Item = StepFigures>) -> Option<Alarm> {
    steps.find_map(|at| {
        let pairs = [(Quantity::Nll, at.nll, at.aleatoric), (Quantity::Error, at.error, at.bayes_error)];
        let passed = pairs.into_iter().find(|(_, figure, floor)| figure.interval.high < floor.interval.low);
        let (step, found) = (at.step as f64, passed?);
        let (quantity, figure, floor) = found;
        Some(Alarm::BelowFloor { step, quantity, value: figure.value, floor: floor.value })
    })
}

fn stall(track: &Track) -> Option<Alarm> {
    let kl: Vec<(f64, f64)> =
        track.steps.iter().filter_map(|seen| Some((seen.step(), seen.number(Quantity::Epistemic)?.0))).collect();
    if kl.len() < LEAST || track.finished {
        return None;
    }
    let (before, last) = kl.split_at(kl.len() - kl.len() / 3);
    let (since, least) = before.iter().copied().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    last.iter().all(|(_, kl)| *kl >= least).then_some(Alarm::Stalled { since, least })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::track::{Named, Steps};
    use super::*;
    use crate::measure::{Estimate, Interval};
    use crate::run::external::Course;

    fn around(value: f64, half: f64) -> Estimate {
        Estimate { value, interval: Interval { low: value - half, high: value + half } }
    }

    fn track(points: impl IntoIterator<Item = (f64, f64)>, finished: bool) -> Track {
        let seen = points.into_iter().enumerate().map(|(i, (nll, kl))| StepFigures {
            step: 10 * i as u64,
            epoch: None,
            images: None,
            seconds: None,
            train_loss: None,
            cross_entropy: around(0.5 + kl, 0.01),
            aleatoric: around(0.5, 0.05),
            epistemic: around(kl, 0.01),
            nll: around(nll, 0.05),
            error: around(0.2, 0.02),
            expected_error: around(0.2, 0.02),
            bayes_error: around(0.15, 0.02),
            ece: 0.0,
            exact_calibration_error: 0.0,
            zeros: 0,
        });
        let steps = Steps::Logged(Arc::new(Course::of(seen)));
        Track { of: Named::new("t".into()), steps, finished }
    }

    #[test]
    fn a_loss_below_its_floor_is_told_at_its_first_step_and_chance_is_not() {
        assert_eq!(alarms(&track([(0.6, 0.1), (0.45, 0.05), (0.41, 0.02)], false)), [], "within the intervals");
        let found = alarms(&track([(0.6, 0.1), (0.3, 0.05), (0.1, 0.02)], false));
        let [Alarm::BelowFloor { step, quantity, value, floor }] = found[..] else { panic!("{found:?}") };
        assert_eq!((step, quantity, value, floor), (10.0, Quantity::Nll, 0.3, 0.5));
        assert!(found[0].sentence().contains("below aleatoric A = 0.5"), "{}", found[0].sentence());
    }

    #[test]
    fn a_standstill_is_told_of_long_courses_that_go_on() {
        let falling = |n: usize| (1..=n).map(|i| (0.6, 1.0 / i as f64));
        assert_eq!(alarms(&track(falling(30), false)), []);
        let flat = || falling(20).chain((0..10).map(|_| (0.6, 0.05)));
        assert_eq!(alarms(&track(flat(), false)), [Alarm::Stalled { since: 190.0, least: 0.05 }]);
        assert_eq!(alarms(&track(flat(), true)), [], "what is over may rest");
        assert_eq!(alarms(&track(falling(3).chain([(0.6, 1.0); 5]), false)), [], "too short to tell");
    }
}
