//! Estimates the least time of a method before it is spent, whatever the tolerance: it grows with
//! the pairs of classes or faster. Later refinement ends by itself (`compute`).

use super::hdr::HdrSpec;
use super::monte_carlo::FIRST;
use crate::error::{Error, Result};

/// Steps in an hour of one core: one class in one dimension, about a nanosecond.
const HOUR: f64 = 3.6e12;
/// Hours of one core beyond which a method is refused.
const MOST_HOURS: f64 = 3.0;
/// Steps, at least, that one class costs at one point: its logarithms and exponentials.
const LEAST: usize = 4;
/// Steps a pair of classes that set up the problem "one class against the rest".
const SET_UP: f64 = 16.0;
/// Steps a class for the points of the least refinement of pair importance sampling: 2,048 points.
const LEAST_PAIRS: f64 = 32_768.0;

/// Time for the first Monte Carlo samples: so many of each class, under every class.
pub(super) fn for_samples(count: usize, rank: usize) -> Result<()> {
    within(&format!("Monte Carlo of {count} classes in {rank} dimensions"), FIRST as f64 * pairs(count, rank), INSTEAD)
}

/// Time for the chains of Holmes-Diaconis-Ross with one nesting.
pub(super) fn for_chains(count: usize, rank: usize, spec: &HdrSpec) -> Result<()> {
    let moves = spec.samples as f64 * (spec.skip as f64 + 1.0);
    within(
        &format!("Holmes-Diaconis-Ross of {count} classes in {rank} dimensions"),
        moves * pairs(count, rank),
        INSTEAD,
    )
}

/// Time for every one of `count` classes against the rest, at one temperature.
pub(super) fn for_hardness(count: usize) -> Result<()> {
    let k = count as f64;
    let steps = k * (SET_UP * k * k + LEAST_PAIRS * k);
    within(&format!("the hardness of {count} classes, one after the other,"), steps, "take fewer classes")
}

/// What is left where points are not shared among classes.
const INSTEAD: &str = "choose the method pair, one sample of which serves all classes, or take fewer classes";

fn pairs(count: usize, rank: usize) -> f64 {
    (count as f64).powi(2) * rank.max(LEAST) as f64
}

fn within(what: &str, steps: f64, otherwise: &str) -> Result<()> {
    let hours = steps / HOUR;
    if hours <= MOST_HOURS {
        return Ok(());
    }
    Err(Error::input(format!("{what} takes about {hours:.0} hours of one processor core at least; {otherwise}")))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::{GaussianClasses, Method, Spec, bayes_error};
    use super::*;
    use crate::events::silent;
    use crate::units::Tau;

    #[test]
    fn what_would_take_hours_is_refused_at_once_with_a_way_out() {
        let place = |k: usize| vec![(k as f64).sin(), (1.7 * k as f64).cos(), (0.3 * k as f64).sin()];
        let count = 2500;
        let classes = GaussianClasses::new((0..count).map(place).collect(), vec![1.0 / count as f64; count]).unwrap();
        let spec = Spec { method: Some(Method::Hdr), ..Spec::default() };
        let begun = Instant::now();
        let said = bayes_error(&classes, Tau::ONE, &spec, &mut silent()).unwrap_err().to_string();
        assert!(said.contains("2500 classes") && said.contains("hours") && said.contains("method pair"), "{said}");
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    /// The time grows with everything, and 5,000 classes in three dimensions are no reason to
    /// refuse what ends in minutes.
    #[test]
    fn more_classes_and_dimensions_are_refused_no_later() {
        let hdr = HdrSpec::default();
        assert!(for_samples(5000, 3).is_ok() && for_hardness(1000).is_ok() && for_chains(100, 99, &hdr).is_ok());
        let refused = |count: usize, rank: usize| {
            [for_samples(count, rank).is_err(), for_chains(count, rank, &hdr).is_err(), for_hardness(count).is_err()]
        };
        let mut before = refused(2, 1);
        for count in (1..=20).map(|i| 1usize << i) {
            let now = refused(count, 3);
            assert!(before.iter().zip(&now).all(|(before, now)| before <= now), "{count}");
            let wide = refused(count, count);
            assert!(now.iter().zip(&wide).all(|(now, wide)| now <= wide), "{count}");
            before = now;
        }
        assert_eq!(before, [true; 3]);
    }
}
