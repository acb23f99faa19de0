//! What is odd about a course.

use super::track::{Quantity, Steps, Track};
use crate::judge::FALSE_ALARM;

/// Looks from which on a course can be called at a standstill.
const LEAST: usize = 12;

/// Something that its author should look at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alarm {
    /// On drawn labels it is better than any classifier can be in the mean, and than one comes by chance that does not
    /// know them.
    BelowFloor {
        /// The step that shows it first.
        step: f64,
        /// Which figure.
        quantity: Quantity,
        /// The figure.
        value: f64,
        /// Its floor.
        floor: f64,
        /// Bound of the probability that without knowing the labels any step of the course is so good on them.
        chance: f64,
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
            Self::BelowFloor { step, quantity, value, floor, chance } => {
                let (name, of) = (quantity.name(), quantity.floor().unwrap_or("its floor"));
                format!(
                    "At step {step} the {name} is {value:.4}, below {of} = {floor:.4} by more than both intervals. Without knowing \
                     the labels a course falls so far below with a probability of at most {chance:.1e}: test labels \
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
    leak(track).into_iter().chain(stall(track)).collect()
}

/// L and the expected error are means over all possible labels: they cannot pass their floor. What is measured on the drawn
/// labels can, by chance, and beyond the intervals where labels that hardly ever occur were not drawn. So the
/// probability of that counts, by the tests of `judge`: one false alarm in 10,000 courses. The r-th record has the share
/// 1/(2r(1 + ln r)²) of that, all of which add up to at most 1: so it holds however long a course becomes, and what comes later
/// takes no warning back.
fn leak(track: &Track) -> Option<Alarm> {
    let Steps::Logged(course) = &track.steps else { return None };
    course.steps().enumerate().find_map(|(place, at)| {
        let rank = (place * course.every + 1) as f64;
        let tests = 2.0 * rank * (1.0 + rank.ln()).powi(2);
        let (quantity, figure, floor) = match at.below_floors() {
            [true, _] => (Quantity::Nll, at.nll, at.aleatoric),
            [false, true] => (Quantity::Error, at.error, at.bayes_error),
            [false, false] => return None,
        };
        let (step, value, floor, chance) = (at.step as f64, figure.value, floor.value, tests * at.label_chance);
        (chance < FALSE_ALARM).then_some(Alarm::BelowFloor { step, quantity, value, floor, chance })
    })
}

fn stall(track: &Track) -> Option<Alarm> {
    let kl: Vec<(f64, f64)> =
        track.steps.iter().filter_map(|seen| Some((seen.step(), seen.number(Quantity::Epistemic)?.0))).collect();
    if kl.len() < LEAST || track.finished || !track.one_training {
        return None;
    }
    let (before, last) = kl.split_at(kl.len() - kl.len() / 3);
    let (since, least) = before.iter().copied().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    last.iter().all(|(_, kl)| *kl >= least).then_some(Alarm::Stalled { since, least })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::track::Named;
    use super::*;
    use crate::measure::{Estimate, Interval};
    use crate::run::external::{Course, StepFigures};

    fn around(value: f64, half: f64) -> Estimate {
        Estimate { value, interval: Interval { low: value - half, high: value + half } }
    }

    fn track(points: impl IntoIterator<Item = (f64, f64)>, finished: bool) -> Track {
        with_chance(points, finished, 1e-9)
    }

    /// NLL and KL of steps, and the probability of such labels.
    fn with_chance(points: impl IntoIterator<Item = (f64, f64)>, finished: bool, label_chance: f64) -> Track {
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
            label_chance,
        });
        let steps = Steps::Logged(Arc::new(Course::of(seen)));
        Track { of: Named::new("t".into()), steps, finished, one_training: true }
    }

    #[test]
    fn a_loss_below_its_floor_is_told_at_its_first_step_and_chance_is_not() {
        assert_eq!(alarms(&track([(0.6, 0.1), (0.45, 0.05), (0.41, 0.02)], false)), [], "within the intervals");
        let found = alarms(&track([(0.6, 0.1), (0.3, 0.05), (0.1, 0.02)], false));
        let [Alarm::BelowFloor { step, quantity, value, floor, chance }] = found[..] else { panic!("{found:?}") };
        assert_eq!((step, quantity, value, floor), (10.0, Quantity::Nll, 0.3, 0.5));
        // Its second record: 4 (1 + ln 2)².
        assert!((chance / 1e-9 - 11.466_99).abs() < 1e-4, "{chance}");
        let sentence = found[0].sentence();
        for words in ["below aleatoric A = 0.5", "at most 1.1e-8: test labels may have leaked"] {
            assert!(sentence.contains(words), "{sentence}");
        }
    }

    #[test]
    fn what_chance_explains_in_one_of_many_steps_is_no_leak_and_a_leak_stays_one() {
        let steps = |count: usize, chance| with_chance((0..count).map(|_| (0.1, 0.05)), true, chance);
        assert_eq!([1, 2, 500].map(|count| alarms(&steps(count, 4e-5)).len()), [1, 1, 1]);
        assert_eq!([1, 500].map(|count| alarms(&steps(count, 6e-5)).len()), [0, 0]);
        // Late in a course it takes more.
        let late =
            |chance| with_chance((0..500).map(|i| if i < 499 { (0.6, 0.05) } else { (0.1, 0.05) }), true, chance);
        assert_eq!([1e-9, 1e-8].map(|chance| alarms(&late(chance)).len()), [1, 0]);
        assert_eq!(alarms(&with_chance([(0.1, 0.05)], true, 1.0)), [], "rare labels that were not drawn");
    }

    #[test]
    fn a_standstill_is_told_of_long_courses_that_go_on() {
        let falling = |n: usize| (1..=n).map(|i| (0.6, 1.0 / i as f64));
        assert_eq!(alarms(&track(falling(30), false)), []);
        let flat = || falling(20).chain((0..10).map(|_| (0.6, 0.05)));
        assert_eq!(alarms(&track(flat(), false)), [Alarm::Stalled { since: 190.0, least: 0.05 }]);
        assert_eq!(alarms(&track(flat(), true)), [], "what is over may rest");
        assert_eq!(alarms(&track(falling(3).chain([(0.6, 1.0); 5]), false)), [], "too short to tell");
        let several = Track { one_training: false, ..track(flat(), false) };
        assert_eq!(alarms(&several), [], "each training begins with a KL of its own");
    }
}
