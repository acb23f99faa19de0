//! The study thread: curves, class hardness, the comparison of methods, EBO's Figure 1, the ranking
//! of classes over τ. Everything comes a piece at a time; the most urgent piece goes first, and a
//! newer question of a kind takes the place of the one under way.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::channel::{Channel, REST};
use super::compare::Comparison;
use super::figure1::Figure1;
use super::protocol::{Answer, At, CurveQuestion, RankingQuestion, Study};
use super::ranking::Rankings;
use super::request_slots::RequestSlots;
use crate::bayes::{GaussianClasses, HardnessNews, Spec, information, one_vs_rest, pairwise};
use crate::error::{Error, Result};

/// Relative tolerance of curves, class hardness, A and I.
const TOLERANCE: f64 = 1e-3;
/// Time for one point of the curve.
const POINT: Duration = Duration::from_secs(5);

/// A curve under way.
struct Curve {
    question: CurveQuestion,
    classes: GaussianClasses,
    waiting: VecDeque<usize>,
}

/// What is under way.
#[derive(Default)]
struct Studies {
    /// Of the oracle that it is asked about.
    epoch: u64,
    curve: Option<Curve>,
    hardness: Option<At>,
    information: Option<(At, Instant)>,
    compare: Option<Comparison>,
    figure1: Option<Figure1>,
    rankings: Option<Rankings>,
}

/// What was asked since the last turn.
struct Questions {
    curve: Option<CurveQuestion>,
    hardness: Option<At>,
    ranking: Option<RankingQuestion>,
    information: Option<At>,
    compare: Option<At>,
    figure1: Option<u64>,
}

impl Questions {
    fn take(slots: &RequestSlots) -> Self {
        Self {
            curve: slots.curve.take(),
            hardness: slots.hardness.take(),
            ranking: slots.ranking.take(),
            information: slots.information.take(),
            compare: slots.compare.take(),
            figure1: slots.figure1.take(),
        }
    }
}

/// Answers until the worker stops.
pub fn run(channel: &Channel) {
    let mut studies = Studies { epoch: channel.epoch(), ..Studies::default() };
    while !channel.stopping() {
        let questions = Questions::take(channel.slots());
        studies.begin(channel, questions);
        if !studies.piece(channel) {
            let resting = studies.information.as_ref().map(|(_, since)| REST.saturating_sub(since.elapsed()));
            channel.wait(resting);
        }
    }
}

fn end(channel: &Channel, generation: u64, study: Study, trouble: Option<String>) {
    channel.send(Answer::Ended { generation, study, trouble });
}

fn trouble<T>(outcome: Result<T>) -> Option<String> {
    outcome.err().map(|error| error.to_string())
}

impl Studies {
    /// Begins what is asked, and drops what another oracle was asked about. The oracle is looked at after the
    /// questions were taken: one that was opened meanwhile may be what they are about.
    fn begin(&mut self, channel: &Channel, questions: Questions) {
        self.drop_those_of_another_oracle(channel);
        let Questions { curve, hardness, ranking, information, compare, figure1 } = questions;
        if let Some(question) = curve {
            let generation = question.generation;
            let found = channel.classes(&question.law).map(|classes| {
                let waiting = coarse_to_fine(question.taus.len());
                self.curve = Some(Curve { question, classes, waiting });
            });
            if found.is_err() {
                end(channel, generation, Study::Curve, trouble(found));
            }
        }
        if let Some(at) = hardness {
            self.hardness = Some(at);
        }
        if let Some(question) = ranking {
            match Rankings::new(channel, &question) {
                Ok(rankings) => self.rankings = Some(rankings),
                Err(error) => end(channel, question.generation, Study::Ranking, Some(error.to_string())),
            }
        }
        if let Some(at) = information {
            self.information = Some((at, Instant::now()));
        }
        if let Some(at) = compare {
            let generation = at.generation;
            match channel.classes(&at.law) {
                Ok(classes) => self.compare = Some(Comparison::new(at, classes)),
                Err(error) => end(channel, generation, Study::Compare, Some(error.to_string())),
            }
        }
        if let Some(generation) = figure1 {
            match Figure1::new(generation) {
                Ok(figure) => self.figure1 = Some(figure),
                Err(error) => end(channel, generation, Study::Figure1, Some(error.to_string())),
            }
        }
    }

    fn drop_those_of_another_oracle(&mut self, channel: &Channel) {
        let epoch = channel.epoch();
        if epoch == self.epoch {
            return;
        }
        // What follows the knobs is asked again; this was asked for by hand.
        if let Some(comparison) = &self.compare {
            let why = "the oracle was opened anew: run again".to_owned();
            end(channel, comparison.generation(), Study::Compare, Some(why));
        }
        // Figure 1 is of no oracle.
        *self = Self { epoch, figure1: self.figure1.take(), ..Self::default() };
    }

    /// Computes the most urgent piece. Returns whether there was one.
    fn piece(&mut self, channel: &Channel) -> bool {
        let rested = self.information.as_ref().is_some_and(|(_, since)| since.elapsed() >= REST);
        if let Some(curve) = &mut self.curve {
            if !curve.point(channel) {
                self.curve = None;
            }
        } else if let Some(at) = self.hardness.take() {
            self.hardness = hardness(channel, at);
        } else if rested && let Some((at, _)) = self.information.take() {
            if at.tau.get() > 0.0 {
                inform(channel, &at);
            }
        } else if let Some(comparison) = &mut self.compare {
            if !comparison.piece(channel) {
                end(channel, comparison.generation(), Study::Compare, None);
                self.compare = None;
            }
        } else if let Some(figure) = &mut self.figure1 {
            if !figure.piece(channel) {
                end(channel, figure.generation(), Study::Figure1, None);
                self.figure1 = None;
            }
        } else if let Some(rankings) = &mut self.rankings {
            if !rankings.piece(channel, self.information.as_ref().map(|(_, since)| *since)) {
                self.rankings = None;
            }
        } else {
            return false;
        }
        true
    }
}

impl Curve {
    /// Computes the next point. Returns whether there may be more.
    fn point(&mut self, channel: &Channel) -> bool {
        let generation = self.question.generation;
        let Some(index) = self.waiting.pop_front() else {
            end(channel, generation, Study::Curve, None);
            return false;
        };
        let (slots, epoch) = (channel.slots(), channel.epoch());
        let stop = || slots.curve.is_full() || channel.stopping() || channel.epoch() != epoch;
        let spec = Spec { tolerance: TOLERANCE, ..Spec::default() };
        match channel.error_within(&self.classes, self.question.taus[index], &spec, POINT, stop) {
            Ok(Some(estimate)) => channel.send(Answer::Curve { generation, index, estimate }),
            Ok(None) => {}
            Err(error) => {
                end(channel, generation, Study::Curve, Some(error.to_string()));
                return false;
            }
        }
        true
    }
}

/// 0..n, every 16th first: the curve is there as a whole at once and becomes finer.
fn coarse_to_fine(n: usize) -> VecDeque<usize> {
    let mut order = VecDeque::with_capacity(n);
    for step in [16, 8, 4, 2, 1] {
        order.extend((0..n).filter(|i| i % step == 0 && (step == 16 || i % (2 * step) != 0)));
    }
    order
}

/// Pairs and classes; the question again where something more urgent came between.
fn hardness(channel: &Channel, at: At) -> Option<At> {
    let (generation, slots, epoch) = (at.generation, channel.slots(), channel.epoch());
    let spec = Spec { tolerance: TOLERANCE, ..Spec::default() };
    let go_on = || {
        let urgent =
            slots.hardness.is_full() || slots.curve.is_full() || channel.stopping() || channel.epoch() != epoch;
        if urgent { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut tell = |news: HardnessNews| {
        if let HardnessNews::Known(hardness) = news {
            channel.send(Answer::Hardness { generation, hardness });
        }
        go_on()
    };
    let found = channel.classes(&at.law).and_then(|classes| {
        let pairs = channel.pool.install(|| pairwise(&classes, at.tau, &spec, &mut |_| go_on()))?;
        channel.send(Answer::Pairs { generation, pairs });
        channel.pool.install(|| one_vs_rest(&classes, at.tau, &spec, &mut tell))
    });
    match found {
        Err(Error::Cancelled) => return Some(at),
        found => end(channel, generation, Study::Hardness, trouble(found)),
    }
    None
}

fn inform(channel: &Channel, at: &At) {
    let (slots, epoch) = (channel.slots(), channel.epoch());
    let spec = Spec { tolerance: TOLERANCE, ..Spec::default() };
    let mut told = |_| {
        let urgent = slots.information.is_full() || channel.stopping() || channel.epoch() != epoch;
        if urgent { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let compute = |classes| channel.pool.install(|| information(&classes, at.tau, &spec, &mut told));
    // Why there is none, the readout has said; a newer question is answered in its turn.
    if let Ok(information) = channel.classes(&at.law).and_then(compute) {
        channel.send(Answer::Information { generation: at.generation, tau: at.tau.get(), information });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossbeam_channel::{Receiver, bounded};

    use super::*;
    use crate::flow::base::GaussianBase;
    use crate::oracle::posterior::Prior;
    use crate::oracle::world::LabelLaw;
    use crate::units::{Smoothing, Tau};
    use crate::worker::bayes::protocol::Question;
    use crate::worker::protocol::Event;
    use crate::worker::shared::Shared;

    fn channel() -> (Channel, Receiver<Event>) {
        let ((notifier, notified), (events, answers)) = (bounded(1), bounded(8));
        let shared = Arc::new(Shared::new([notifier.clone(), notifier], RequestSlots::new().0, Arc::new(|| {})));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        (Channel { shared, notified, events, pool }, answers)
    }

    #[test]
    fn class_hardness_of_smoothed_labels_gives_way_to_the_next_question_while_it_draws() {
        let (channel, answers) = channel();
        channel.slots().open(Some(&GaussianBase::new(vec![0.0, 1.0], &[1.0])));
        let law = LabelLaw { smoothing: Smoothing::new(2.0).unwrap(), ..LabelLaw::from(Prior::uniform(2)) };
        let of = |generation| At { generation, tau: Tau::ONE, law: law.clone() };
        channel.slots().ask(Question::Hardness(of(2)));
        assert_eq!(hardness(&channel, of(1)).map(|at| at.generation), Some(1));
        assert!(answers.is_empty(), "neither pairs nor classes are known so soon");
        // Without a newer question it is answered: pairs, two classes, the end.
        let newest = channel.slots().hardness.take().unwrap();
        assert_eq!((hardness(&channel, newest).is_none(), answers.len()), (true, 4));
    }

    #[test]
    fn what_is_asked_of_an_oracle_that_has_just_opened_is_begun_and_what_the_last_was_asked_is_dropped() {
        let (channel, _answers) = channel();
        let slots = channel.slots();
        let ask = |generation| {
            let law = LabelLaw::from(Prior::uniform(2));
            slots.ask(Question::Hardness(At { generation, tau: Tau::ONE, law }));
        };
        let under_way = |studies: &Studies| studies.hardness.as_ref().map(|at| at.generation);
        let mut studies = Studies::default();
        ask(1);
        studies.begin(&channel, Questions::take(slots));
        assert_eq!(under_way(&studies), Some(1));
        // A new oracle, and the same question of it, between two turns: the next one keeps it, and all later ones do.
        slots.open(None);
        ask(2);
        for _ in 0..2 {
            studies.begin(&channel, Questions::take(slots));
            assert_eq!(under_way(&studies), Some(2));
        }
        slots.open(None);
        studies.begin(&channel, Questions::take(slots));
        assert_eq!(under_way(&studies), None);
    }

    #[test]
    fn every_point_of_a_curve_comes_once_and_both_ends_early() {
        let order: Vec<usize> = super::coarse_to_fine(81).into();
        assert_eq!(order[..6], [0, 16, 32, 48, 64, 80]);
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..81).collect::<Vec<_>>());
        assert!(super::coarse_to_fine(0).is_empty());
    }
}
