//! When an estimate by draws stops.

use serde::{Deserialize, Serialize};

use super::pool::ROUND;
use crate::data::check_memory;
use crate::error::{Error, Result};

/// Draws before anything is told.
pub(super) const START: usize = 4 * ROUND;
/// Largest factor by which the draws grow at once: a first estimate of the need is rough.
const MOST_GROWTH: f64 = 3.0;
/// Smallest one, so that stopping is not tested at every step.
const LEAST_GROWTH: f64 = 1.1;
/// Draws beyond the estimated need: the next interval varies too.
const MARGIN: f64 = 1.04;
/// Part by which the draws must grow for a further step to be worth its time.
const WORTH: f64 = 0.1;

/// Draws at which a tolerance alone is given up where the interval is still wider than the value: a tolerance of 3 % would take
/// about a thousand times as many, and where no doubt is seen no number of them is foreseen.
const HOPELESS: usize = 1 << 18;

/// Relative half width of intervals where none is given.
const TOLERANCE: f64 = 0.03;
/// Seconds of sampling where no limit is given: with opening the world less than a minute.
const SECONDS: f64 = 56.0;
/// Samples at which a search for τ ends that must not depend on the speed of the machine.
const MOST: usize = 20_000;

/// What ends an estimate; whichever comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Half width of the 95 % interval over the value; the longer half, where they differ.
    pub tolerance: Option<f64>,
    /// Draws at one temperature.
    pub samples: Option<usize>,
    /// Wall time, seconds. The only one by which a result depends on the speed of the machine.
    pub seconds: Option<f64>,
}

/// What ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// The interval is as narrow as was asked for.
    Tolerance,
    /// All draws are made.
    Samples,
    /// A further step would take longer than there is time for.
    Budget,
    /// So many draws leave the interval wider than the value, and nothing but a tolerance was asked for.
    Rare,
    /// A further step would need more memory than is free.
    Memory,
}

impl Ended {
    /// The reason as a clause, such as "the time is up".
    pub fn words(self) -> &'static str {
        match self {
            Self::Tolerance => "the tolerance is met",
            Self::Samples => "all samples asked for were drawn",
            Self::Budget => "the time is up",
            Self::Rare => {
                "so many samples leave the interval wider than the value: too little doubt was seen for the tolerance"
            }
            Self::Memory => "more samples would need more memory than is free",
        }
    }
}

/// What a step has cost and come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Draws now.
    pub draws: usize,
    /// Relative half width of the interval.
    pub relative: f64,
    /// Wall time since the beginning, seconds.
    pub spent: f64,
    /// Seconds by which a further draw lengthens the work.
    pub per_draw: f64,
    /// Bytes of memory that a draw takes.
    pub bytes: u64,
}

impl Limits {
    /// What was asked for; by default a tolerance, and a time unless `repeatable`.
    pub fn asked(tolerance: Option<f64>, samples: Option<usize>, seconds: Option<f64>, repeatable: bool) -> Self {
        let free = samples.is_none() && tolerance.is_none() && seconds.is_none();
        Self {
            tolerance: tolerance.or(samples.is_none().then_some(TOLERANCE)),
            samples: samples.or((free && repeatable).then_some(MOST)),
            seconds: seconds.or((free && !repeatable).then_some(SECONDS)),
        }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// When none is given, one is not positive, or fewer than two draws are allowed.
    pub fn check(&self) -> Result<()> {
        let positive = |name: &str, value: Option<f64>| match value {
            Some(value) if !(value > 0.0 && value.is_finite()) => {
                Err(Error::input(format!("the {name} must be a positive number, not {value}")))
            }
            _ => Ok(()),
        };
        positive("tolerance", self.tolerance)?;
        positive("budget", self.seconds)?;
        match (self.samples, self.tolerance, self.seconds) {
            (Some(0 | 1), _, _) => Err(Error::input("an estimate by sampling needs two samples at least")),
            (None, None, None) => Err(Error::input("sampling without end: give a tolerance, samples or a budget")),
            _ => Ok(()),
        }
    }

    /// Draws of the first step.
    pub(super) fn start(&self) -> usize {
        START.min(self.samples.unwrap_or(START))
    }

    /// Draws of the next step, or what ends the work.
    pub(super) fn next(&self, step: Step) -> std::result::Result<usize, Ended> {
        let draws = step.draws as f64;
        if self.tolerance.is_some_and(|tolerance| step.relative <= tolerance) {
            return Err(Ended::Tolerance);
        }
        let most = self.samples.unwrap_or(usize::MAX);
        if step.draws >= most {
            return Err(Ended::Samples);
        }
        if self.samples.is_none() && self.seconds.is_none() && step.draws >= HOPELESS && step.relative > 1.0 {
            return Err(Ended::Rare);
        }
        let need = match self.tolerance {
            Some(tolerance) => MARGIN * draws * (step.relative / tolerance).powi(2),
            None => f64::INFINITY,
        };
        let wanted = need.clamp(LEAST_GROWTH * draws, MOST_GROWTH * draws);
        let affordable = match self.seconds {
            Some(seconds) => draws + ((seconds - step.spent) / step.per_draw.max(1e-9)).max(0.0),
            None => f64::INFINITY,
        };
        let limited = wanted.min(most as f64);
        if affordable < limited && affordable < (1.0 + WORTH) * draws {
            return Err(Ended::Budget);
        }
        let next = affordable.min(limited);
        let rounds = if affordable < limited { (next / ROUND as f64).floor() } else { (next / ROUND as f64).ceil() };
        let next = (rounds as usize * ROUND).min(most);
        if next <= step.draws {
            return Err(Ended::Budget);
        }
        // It is no failure: what the draws so far say is told.
        let room = check_memory("more draws", step.bytes.saturating_mul(next as u64), "");
        room.map(|()| next).map_err(|_| Ended::Memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_grow_to_what_the_tolerance_needs_and_the_time_allows() {
        let step = |draws, relative, spent| Step { draws, relative, spent, per_draw: 0.01, bytes: 0 };
        let tolerance = Limits { tolerance: Some(0.01), ..Limits::default() };
        assert_eq!(tolerance.next(step(256, 0.01, 0.0)), Err(Ended::Tolerance));
        // Twice as wide as wanted: four times the draws, but thrice at once.
        assert_eq!(tolerance.next(step(256, 0.02, 0.0)), Ok(768));
        assert_eq!(tolerance.next(step(640, 0.0101, 0.0)), Ok(704));
        let capped = Limits { samples: Some(300), ..tolerance };
        assert_eq!(capped.next(step(256, 0.02, 0.0)), Ok(300));
        assert_eq!(capped.next(step(300, 0.02, 0.0)), Err(Ended::Samples));
        // Five seconds are 500 draws.
        let timed = Limits { seconds: Some(10.0), ..tolerance };
        assert_eq!(timed.next(step(640, 0.03, 5.0)), Ok(1088));
        assert_eq!(timed.next(step(640, 0.03, 9.5)), Err(Ended::Budget));
        assert_eq!(timed.next(step(640, 0.0101, 11.0)), Err(Ended::Budget));
        // No doubt was seen: no tolerance can be met yet.
        assert_eq!(tolerance.next(step(256, f64::INFINITY, 0.0)), Ok(768));
    }

    #[test]
    fn a_tolerance_that_cannot_be_met_and_memory_end_it() {
        let step = |draws, relative| Step { draws, relative, spent: 1.0, per_draw: 1e-9, bytes: 0 };
        let tolerance = Limits { tolerance: Some(0.01), ..Limits::default() };
        for relative in [1.01, f64::INFINITY] {
            assert!(tolerance.next(step(HOPELESS - 1, relative)).is_ok());
            assert_eq!(tolerance.next(step(HOPELESS, relative)), Err(Ended::Rare));
            // As many as were asked for, and as the time allows.
            let samples = Limits { samples: Some(2 * HOPELESS), ..tolerance };
            let seconds = Limits { seconds: Some(1e9), ..tolerance };
            assert!(samples.next(step(HOPELESS, relative)).is_ok() && seconds.next(step(HOPELESS, relative)).is_ok());
        }
        assert!(tolerance.next(step(HOPELESS, 1.0)).is_ok());
        let much = |draws| Step { bytes: 1 << 50, ..step(draws, 0.5) };
        for limits in [tolerance, Limits { samples: Some(10_000), ..Limits::default() }] {
            assert_eq!(limits.next(much(256)), Err(Ended::Memory));
        }
        assert_eq!(tolerance.next(Step { relative: 0.01, ..much(256) }), Err(Ended::Tolerance));
    }
}
