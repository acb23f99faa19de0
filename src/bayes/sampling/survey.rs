//! All about a world at once, coarse within seconds and finer as long as it is wanted: the Bayes error over
//! τ, class hardness and pairs at one τ, the order of classes over τ.

use serde::{Deserialize, Serialize};

use super::band::Band;
use super::figures::{CurvePoint, MEANS, relative};
use super::hardness::SampledHardness;
use super::limits::{Ended, Limits, Step};
use super::pool::{Pool, ROUND};
use super::snapshot::Snapshot;
use super::source::Standing;
use crate::bayes::estimate::{Estimate, Figure, Method};
use crate::bayes::ranking::{RANKED_AT, RankingsOverTau};
use crate::error::Result;
use crate::events::Events;
use crate::oracle::world::LabelLaw;
use crate::provenance::Badge;
use crate::units::Tau;

/// Temperatures of the curve, those of rankings among them: their draws serve both.
const TAUS: [f64; 11] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0];

/// What draws say of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The class prior π, smoothing T and label noise it belongs to.
    #[serde(flatten)]
    pub law: LabelLaw,
    /// The Bayes error over τ, ascending.
    pub curve: Vec<CurvePoint>,
    /// Classes and pairs at the τ that was asked for; none before its first draws.
    pub hardness: Option<SampledHardness>,
    /// The order of classes at [`RANKED_AT`].
    pub rankings: RankingsOverTau,
}

impl Survey {
    /// Draws of the least certain point.
    pub fn samples(&self) -> usize {
        self.curve.iter().map(|point| point.samples).min().unwrap_or(0)
    }

    /// The Bayes error at τ with its band, between two points of the curve; none outside of it, and
    /// none between points before there are three. The band holds the error of the draws and an estimate
    /// of what a line between two points misses.
    pub fn error_at(&self, tau: f64) -> Option<Figure> {
        self.band().error_at(tau)
    }

    /// The τ at which the Bayes error is `error`, with an interval that holds every τ whose band does;
    /// none where the curve does not come to this error. It goes to 0.02 or 50 where an end of the curve
    /// does not exclude it.
    pub fn tau_of(&self, error: f64) -> Option<Figure> {
        self.band().tau_of(error)
    }

    fn band(&self) -> Band {
        Band::new(self.curve.iter().map(|point| (point.tau.get(), point.bayes_error)))
    }

    /// The points as Bayes errors with all that is known of them.
    pub fn estimates(&self) -> impl Iterator<Item = (f64, Estimate)> {
        let most = self.law.largest_error();
        self.curve.iter().map(move |point| (point.tau.get(), of_point(point, most)))
    }

    fn set(&mut self, point: CurvePoint) {
        let place = self.curve.partition_point(|other| other.tau.get() < point.tau.get());
        match self.curve.get_mut(place).filter(|other| other.tau == point.tau) {
            Some(known) => *known = point,
            None => self.curve.insert(place, point),
        }
    }
}

fn of_point(point: &CurvePoint, most: f64) -> Estimate {
    Estimate {
        figure: point.bayes_error,
        log_value: point.bayes_error.value.ln(),
        bounds: (0.0, most),
        badge: Badge::Estimated,
        method: Method::Sampling,
        why: format!("draws common to all τ, {MEANS}"),
        samples: point.samples as u64,
        draws: 0,
        seconds: 0.0,
    }
}

/// Surveys a world: first with few draws, then with more, until the Bayes error at τ meets a limit; the
/// limit of samples is meant for each temperature. `tell` is given the survey whenever a figure was added,
/// and whether a round is complete.
///
/// # Errors
/// When a limit cannot be used, the source fails, or the caller stops.
pub fn survey(
    pool: &mut Pool<'_>,
    tau: Tau,
    limits: &Limits,
    tell: &mut dyn FnMut(&Survey, bool) -> Result<()>,
    events: &mut dyn Events<Standing>,
) -> Result<Survey> {
    limits.check()?;
    let (taus, wanted) = temperatures(tau)?;
    let none = RankingsOverTau::default();
    let mut found = Survey { law: pool.law(), curve: Vec::new(), hardness: None, rankings: none };
    let mut n = ROUND.min(limits.start());
    pool.plan(n * taus.len(), None);
    loop {
        let mut rankings = RankingsOverTau::default();
        for &tau in &taus {
            let snapshot = Snapshot::of(pool, tau, n, events)?;
            let point = CurvePoint::of(&snapshot, tau, n);
            found.set(point);
            let ranked = RANKED_AT.contains(&tau.get());
            if ranked || tau == wanted {
                let hardness = SampledHardness::of(&snapshot, pool, tau, n, Ended::Samples);
                if ranked {
                    rankings.add(hardness.ranking());
                }
                if tau == wanted {
                    found.hardness = Some(hardness);
                }
            }
            tell(&found, false)?;
        }
        rankings.rankings.sort_by(|a, b| a.tau.total_cmp(&b.tau));
        found.rankings = rankings;
        tell(&found, true)?;
        let error = found.error_at(wanted.get());
        let per_draw = pool.per_image() * taus.len() as f64;
        let relative = error.as_ref().map_or(f64::INFINITY, relative);
        let bytes = pool.bytes_per_draw();
        match limits.next(Step { draws: n, relative, spent: pool.seconds(), per_draw, bytes }) {
            Ok(next) => {
                // Doubled, not more: what is looked at narrows step by step.
                let next = next.min(2 * n);
                pool.plan((next - n) * taus.len(), error);
                n = next;
            }
            Err(_) => return Ok(found),
        }
    }
}

/// The temperatures of a survey, the one that was asked for first; and that one. At τ = 0 there is nothing
/// to draw: 1 stands for it.
fn temperatures(tau: Tau) -> Result<(Vec<Tau>, Tau)> {
    let wanted = if tau.get() > 0.0 { tau } else { Tau::ONE };
    let mut taus = vec![wanted];
    for other in TAUS.into_iter().filter(|other| *other != wanted.get()) {
        taus.push(Tau::new(other)?);
    }
    Ok((taus, wanted))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bayes::normal::cdf;
    use crate::oracle::posterior::Prior;
    use crate::units::Smoothing;

    /// E(τ) = Φ(−1.5/τ), as of two Gaussian classes, from n draws.
    pub fn survey_of(n: usize) -> Survey {
        let figure = |value: f64| Figure::new(value, value / (n as f64).sqrt(), 0.5);
        let point = |tau: f64| CurvePoint {
            tau: Tau::new(tau).unwrap(),
            bayes_error: figure(cdf(-1.5 / tau)),
            aleatoric_nats: figure(0.1),
            slope_from_last: None,
            samples: n,
        };
        Survey {
            law: Prior::uniform(2).into(),
            curve: TAUS.into_iter().map(point).collect(),
            hardness: None,
            rankings: RankingsOverTau::default(),
        }
    }

    #[test]
    fn between_points_of_two_gaussian_classes_nothing_is_lost() {
        let survey = survey_of(400);
        for tau in [0.3, 0.33, 0.77, 1.0, 1.9, 3.0] {
            let found = survey.error_at(tau).unwrap();
            let truth = cdf(-1.5 / tau);
            assert!((found.value / truth - 1.0).abs() < 1e-9, "τ = {tau}: {} for {truth}", found.value);
            assert!(found.interval.0 < truth && truth < found.interval.1 && found.std_error > 0.0);
        }
        assert!(survey.error_at(0.29).is_none() && survey.error_at(3.01).is_none());
    }

    /// A survey without error of draws, of pairs of classes at so many distances.
    fn exact(distances: &[f64]) -> (Survey, impl Fn(f64) -> f64) {
        let distances = distances.to_vec();
        let truth = move |tau: f64| distances.iter().map(|d| cdf(-d / tau)).sum::<f64>() / distances.len() as f64;
        let mut survey = survey_of(400);
        for point in &mut survey.curve {
            let value = truth(point.tau.get());
            point.bayes_error = Figure { value, std_error: 0.0, interval: (value, value) };
        }
        (survey, truth)
    }

    #[test]
    fn the_band_holds_what_a_line_between_two_points_misses() {
        for distances in [&[0.3, 1.5][..], &[0.5, 1.0, 2.5], &[0.2, 0.4, 2.0, 2.2], &[1.0, 1.1, 1.9]] {
            let (survey, truth) = exact(distances);
            for step in 1..270 {
                let tau = 0.3 + 0.01 * f64::from(step);
                let (found, truth) = (survey.error_at(tau).unwrap(), truth(tau));
                let (low, high) = found.interval;
                assert!(
                    low <= truth * (1.0 + 1e-9) && truth <= high * (1.0 + 1e-9),
                    "τ = {tau}: {found:?} for {truth}"
                );
                assert!(high - low < 0.2 * truth, "τ = {tau}: {found:?}");
            }
        }
    }

    #[test]
    fn two_points_do_not_tell_how_a_curve_bends_and_no_error_has_a_wide_band() {
        let (mut survey, _) = exact(&[1.5]);
        survey.curve[0].bayes_error = Figure { value: 0.0, std_error: 0.0, interval: (0.0, 0.001) };
        let found = survey.error_at(0.35).unwrap();
        assert_eq!(found.interval, (0.0, survey.curve[1].bayes_error.value.max(0.001)));
        survey.curve.drain(2..);
        assert!(survey.error_at(0.35).is_none() && survey.error_at(0.4).is_some());
    }

    #[test]
    fn a_kept_survey_that_names_no_smoothing_is_of_none() {
        let survey = survey_of(64);
        let text = serde_json::to_string(&survey).unwrap();
        assert!(!text.contains("smoothing"), "{text}");
        let law = |text: &str| serde_json::from_str::<Survey>(text).unwrap().law;
        assert_eq!(law(&text), survey.law);
        let prior = Prior::new(&[0.9, 0.1]).unwrap();
        let smoothed = LabelLaw { smoothing: Smoothing::new(2.0).unwrap(), ..prior.clone().into() };
        // Labels of p_T may be rarer or less rare than classes.
        assert!((LabelLaw::from(prior).largest_error() - 0.1).abs() < 1e-12 && smoothed.largest_error() == 0.5);
        let other = Survey { law: smoothed.clone(), ..survey };
        assert_eq!(law(&serde_json::to_string(&other).unwrap()), smoothed);
    }

    #[test]
    fn the_temperature_asked_for_comes_first_and_once() {
        for tau in [0.0, 1.0, 1.1] {
            let (taus, wanted) = temperatures(Tau::new(tau).unwrap()).unwrap();
            assert_eq!(taus[0], wanted);
            assert_eq!(taus.iter().filter(|other| **other == wanted).count(), 1);
            assert!(RANKED_AT.iter().all(|tau| taus.iter().any(|other| other.get() == *tau)));
        }
    }
}
