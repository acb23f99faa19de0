//! The ranking of classes over τ, one τ at a time; anything else that is asked goes first.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Instant;

use super::channel::{Channel, REST};
use super::protocol::{Answer, RankingQuestion, Study};
use crate::bayes::{GaussianClasses, HardnessNews, RANKED_AT, RankingsOverTau, Spec, rank_classes};
use crate::error::{Error, Result};
use crate::units::Tau;

/// Rankings under way.
pub struct Rankings {
    generation: u64,
    classes: GaussianClasses,
    waiting: VecDeque<Tau>,
    found: RankingsOverTau,
}

impl Rankings {
    /// Nothing computed yet.
    ///
    /// # Errors
    /// When the open oracle has no class problem under this prior.
    pub fn new(channel: &Channel, question: &RankingQuestion) -> Result<Self> {
        let classes = channel.classes(&question.law)?;
        let waiting = RANKED_AT.into_iter().map(Tau::new).collect::<Result<_>>()?;
        Ok(Self { generation: question.generation, classes, waiting, found: RankingsOverTau::default() })
    }

    /// The classes at the next τ, unless something is asked meanwhile or what waits since then has
    /// rested; whether there may be more.
    pub fn piece(&mut self, channel: &Channel, resting: Option<Instant>) -> bool {
        let generation = self.generation;
        let end = |trouble| channel.send(Answer::Ended { generation, study: Study::Ranking, trouble });
        let Some(&tau) = self.waiting.front() else {
            end(None);
            return false;
        };
        let (slots, epoch) = (channel.slots(), channel.epoch());
        let mut told = |_: HardnessNews| {
            let rested = resting.is_some_and(|since| since.elapsed() >= REST);
            let urgent = rested || slots.asked() || channel.stopping() || channel.epoch() != epoch;
            if urgent { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (classes, spec) = (&self.classes, Spec::default());
        match channel.pool.install(|| rank_classes(classes, tau, &spec, &mut told)) {
            Ok(ranking) => {
                self.waiting.pop_front();
                self.found.add(ranking);
                channel.send(Answer::Ranking { generation, rankings: self.found.clone() });
            }
            // This τ again, after what is more urgent.
            Err(Error::Cancelled) => {}
            Err(error) => {
                end(Some(error.to_string()));
                return false;
            }
        }
        true
    }
}
