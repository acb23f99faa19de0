//! Tasks about the Bayes error of a world that must be sampled: a survey over τ, and the τ of an error. Both
//! tell what they know as soon as they know it, and more exactly as they go on. They take turns with the
//! pictures of the window, which would otherwise come first, all of them.

use std::ops::ControlFlow;

use crate::bayes::Figure;
use crate::bayes::sampling::{
    Cache, DrawKey, Limits, Pool, SampledTau, Standing, Survey, WorldDraws, survey, tau_by_sampling,
};
use crate::error::Result;
use crate::events::Progress;
use crate::oracle::posterior::Prior;
use crate::oracle::world::LabelLaw;
use crate::task::{Done, OpenOracle, Task, TaskContext};
use crate::units::{Seed, Tau, percent};

/// Seed of all draws behind the figures of the window.
pub const SEED: Seed = Seed(0);
/// Relative half width at which they are fine enough.
const TOLERANCE: f64 = 0.01;
/// Draws at one temperature, at most.
const MOST: usize = 16_384;

const LIMITS: Limits = Limits { tolerance: Some(TOLERANCE), samples: Some(MOST), seconds: None };

/// Looks at the open oracle over τ: Bayes error, class hardness, pairs, the order of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyWorld {
    /// Where hardness and pairs are looked at, and what is looked at first.
    pub tau: Tau,
    /// Class prior π, smoothing T and label noise.
    pub law: LabelLaw,
}

/// Looks for the τ at which the open oracle has a Bayes error.
#[derive(Debug, Clone, PartialEq)]
pub struct FindTau {
    /// The Bayes error, a fraction.
    pub target: f64,
    /// Class prior π, smoothing T and label noise.
    pub law: LabelLaw,
}

impl Task for SurveyWorld {
    type Event = Survey;
    type Live = Option<Survey>;
    type Report = Survey;

    fn title(&self) -> String {
        "Bayes error by sampling".into()
    }

    fn fold(&self, live: &mut Option<Survey>, event: &Survey) {
        *live = Some(event.clone());
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, Survey>) -> Result<Done<Survey>> {
        let (oracle, cache) = (cx.oracle()?, Cache::of_user());
        let key = key(&oracle, &self.law.prior);
        let mut source = source(&oracle, &cache, &key, &cx.chosen.report.used.label());
        let mut pool = pool(&mut source, &self.law)?;
        // Two sinks share the host: one for what was found, one for how far the draws have come.
        let host = std::cell::RefCell::new(cx);
        let mut tell = |found: &Survey, complete: bool| {
            // The key is that of draws, which know neither T nor label noise.
            if complete && self.law.labels_are_classes() {
                cache.keep_survey(&key, found);
            }
            host.borrow_mut().event(found.clone());
            Ok(())
        };
        let mut progress = |standing: Standing| show(&mut host.borrow_mut(), &standing);
        let found = survey(&mut pool, self.tau, &LIMITS, &mut tell, &mut progress)?;
        let sentence = format!("the Bayes error over τ is known from {} draws at each temperature", found.samples());
        Ok(Done::new(found, sentence))
    }
}

impl Task for FindTau {
    type Event = Standing;
    type Live = Option<Standing>;
    type Report = SampledTau;

    fn title(&self) -> String {
        format!("τ of a Bayes error of {} %", percent(self.target))
    }

    fn fold(&self, live: &mut Option<Standing>, event: &Standing) {
        *live = Some(*event);
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, Standing>) -> Result<Done<SampledTau>> {
        let (oracle, cache) = (cx.oracle()?, Cache::of_user());
        let key = key(&oracle, &self.law.prior);
        // What a survey knows is told at once, and is where the search begins. None is kept where T ≠ 1 or under label noise.
        let kept = self.law.labels_are_classes().then(|| cache.survey(&key)).flatten();
        let mut narrowest = Narrowest { of_curve: kept.and_then(|found| found.tau_of(self.target)), told: None };
        if let Some(figure) = narrowest.news(None) {
            cx.event(Standing { progress: Progress { done: 0, total: 0 }, seconds_left: None, figure: Some(figure) });
        }
        let near = narrowest.of_curve.map(|figure| Tau::new(figure.value)).transpose()?;
        let mut source = source(&oracle, &cache, &key, &cx.chosen.report.used.label());
        let mut pool = pool(&mut source, &self.law)?;
        let mut tell = |standing: Standing| {
            // The figure changes seldom, the count of images often.
            if let Some(figure) = narrowest.news(standing.figure) {
                cx.event(Standing { figure: Some(figure), ..standing });
            }
            show(cx, &standing)
        };
        let found = tau_by_sampling(&mut pool, self.target, near, &LIMITS, &mut tell)?;
        let (tau, error) = (&found.found.tau, percent(self.target));
        let (low, high) = tau.interval;
        let sentence = format!("a Bayes error of {error} % is at τ = {:.4} [{low:.4}, {high:.4}]", tau.value);
        Ok(Done::new(found, sentence))
    }
}

/// What the draws of a world depend on, as the window has them.
fn key(oracle: &OpenOracle<'_>, prior: &Prior) -> DrawKey {
    DrawKey { world: oracle.info.world_id(), prior: prior.clone(), seed: SEED }
}

fn source<'a>(oracle: &OpenOracle<'a>, cache: &Cache, key: &DrawKey, device: &str) -> WorldDraws<'a> {
    WorldDraws::new(oracle.world, key.seed).remembered(cache, &key.world, &key.prior, device)
}

/// A world's draws as its labels see them.
fn pool<'a>(source: &'a mut WorldDraws<'_>, law: &LabelLaw) -> Result<Pool<'a>> {
    Pool::new(source, law.prior.clone(), law.smoothing, SEED)?.with_label_noise(law.label_noise.as_ref())
}

/// Shows how far the draws have come. Returns whether to go on.
fn show<E: Send + Sync + 'static>(cx: &mut TaskContext<'_, E>, standing: &Standing) -> ControlFlow<()> {
    cx.images_in_turns(standing.progress)
}

/// Of two answers that narrow the one to show: that of a curve, until the search's own is as narrow.
struct Narrowest {
    of_curve: Option<Figure>,
    told: Option<Figure>,
}

impl Narrowest {
    /// The answer to tell when the search has come to `found`; none where it was told already.
    fn news(&mut self, found: Option<Figure>) -> Option<Figure> {
        let width = |figure: &Figure| figure.interval.1 - figure.interval.0;
        let best = match (self.of_curve, found) {
            (Some(curve), Some(found)) if width(&found) <= width(&curve) => Some(found),
            (curve, found) => curve.or(found),
        };
        let news = best.filter(|best| self.told.as_ref() != Some(best));
        self.told = news.or(self.told);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_answers_until_the_search_is_as_narrow_and_nothing_is_told_twice() {
        let figure = |value: f64, half: f64| Figure::new(value, half, f64::INFINITY);
        let (curve, wide, close) = (figure(1.0, 0.1), figure(1.1, 0.3), figure(0.98, 0.05));
        let mut narrowest = Narrowest { of_curve: Some(curve), told: None };
        assert_eq!(narrowest.news(None), Some(curve));
        assert_eq!((narrowest.news(None), narrowest.news(Some(wide))), (None, None));
        assert_eq!((narrowest.news(Some(close)), narrowest.news(Some(close))), (Some(close), None));
        let mut alone = Narrowest { of_curve: None, told: None };
        assert_eq!((alone.news(None), alone.news(Some(wide)), alone.news(Some(wide))), (None, Some(wide), None));
    }
}
