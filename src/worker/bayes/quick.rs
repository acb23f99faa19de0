//! The quick thread: the Bayes error beside a slider that is being dragged, and τ of a typed one.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::channel::{Channel, REST};
use super::protocol::{Answer, At, TargetQuestion};
use crate::bayes::sampling::Cache;
use crate::bayes::{Estimate, Spec, follows_the_classes, information, information_at_zero, tau_of_error};
use crate::error::Error;

/// Relative tolerance while the slider moves.
pub const COARSE: f64 = 1e-4;
/// When it rests.
pub const FINE: f64 = 1e-6;
/// A first answer that takes longer is sent refinement by refinement.
const SLOW: Duration = Duration::from_millis(100);
/// Of A and I while the slider moves; the study thread computes them better when it rests.
const ROUGH_INFORMATION: f64 = 1e-2;
/// Of τ for a target.
const TARGET: f64 = 1e-6;
/// The same of labels whose error does not follow from that of their classes: closer ones take many seconds.
const TARGET_OF_LABELS: f64 = 1e-4;

/// Answers until the worker stops.
pub fn run(channel: &Channel) {
    let (mut told, mut resting) = (0, None);
    while !channel.stopping() {
        let epoch = channel.epoch();
        if epoch != told {
            told = epoch;
            resting = None;
            if let Some(world) = channel.describe() {
                channel.send(Answer::World(world));
            }
        }
        if let Some(at) = channel.slots().readout.take() {
            resting = first(channel, at);
        } else if let Some(question) = channel.slots().target.take() {
            target(channel, question);
        } else if let Some((generation, key)) = channel.slots().kept.take() {
            if let Some(survey) = Cache::of_user().survey(&key) {
                channel.send(Answer::Kept { generation, survey: Box::new(survey) });
            }
        } else if !channel.wait(resting.is_some().then_some(REST))
            && let Some(at) = resting.take()
        {
            refine(channel, &at);
        }
    }
}

/// Whether something more urgent than a refinement waits.
fn disturbed(channel: &Channel) -> bool {
    let slots = channel.slots();
    slots.readout.is_full() || slots.target.is_full() || channel.stopping()
}

fn tell(channel: &Channel, at: &At, tolerance: f64, outcome: Result<Estimate, String>) {
    channel.send(Answer::Readout { generation: at.generation, tau: at.tau.get(), tolerance, outcome });
}

/// A first answer. What a newer question interrupts has been refined once at least, so that even a
/// slow problem is answered while the slider moves.
fn first(channel: &Channel, at: At) -> Option<At> {
    let classes = match channel.classes(&at.law) {
        Ok(classes) => classes,
        Err(error) => {
            tell(channel, &at, COARSE, Err(error.to_string()));
            return None;
        }
    };
    let (mut last, begun) = (None, Instant::now());
    let spec = Spec { tolerance: COARSE, ..Spec::default() };
    let outcome = channel.error(&classes, at.tau, &spec, |estimate| {
        if begun.elapsed() > SLOW {
            tell(channel, &at, COARSE, Ok(estimate.clone()));
        }
        last = Some(estimate);
        if disturbed(channel) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match (outcome, last) {
        (Ok(estimate), _) | (Err(Error::Cancelled), Some(estimate)) => tell(channel, &at, COARSE, Ok(estimate)),
        (Err(error), _) => tell(channel, &at, COARSE, Err(error.to_string())),
    }
    if !disturbed(channel) {
        let spec = Spec { tolerance: ROUGH_INFORMATION, ..spec };
        let mut told = |_| if disturbed(channel) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let found = match at.tau.get() {
            0.0 => information_at_zero(&classes).ok(),
            // Stopped, it is asked again with the newer question; why else there is none, the
            // readout has said.
            _ => channel.pool.install(|| information(&classes, at.tau, &spec, &mut told)).ok(),
        };
        if let Some(information) = found {
            channel.send(Answer::Information { generation: at.generation, tau: at.tau.get(), information });
        }
    }
    Some(at)
}

/// The same to more digits. Every refinement better than the first answer is sent.
fn refine(channel: &Channel, at: &At) {
    let Ok(classes) = channel.classes(&at.law) else { return };
    let spec = Spec { tolerance: FINE, ..Spec::default() };
    let epoch = channel.epoch();
    let outcome = channel.error(&classes, at.tau, &spec, |estimate| {
        if estimate.figure.relative_half_width() < COARSE {
            tell(channel, at, FINE, Ok(estimate));
        }
        if disturbed(channel) || channel.epoch() != epoch { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match outcome {
        // An estimate from sampling was sent as its last refinement.
        Ok(estimate) => tell(channel, at, FINE, Ok(estimate)),
        Err(Error::Cancelled) => {}
        Err(error) => tell(channel, at, FINE, Err(error.to_string())),
    }
}

/// What a newer readout interrupts is begun again after it, unless another target was asked for.
fn target(channel: &Channel, question: TargetQuestion) {
    let TargetQuestion { generation, error, ref law } = question;
    let epoch = channel.epoch();
    let anew = || channel.epoch() != epoch;
    let mut told = |_: Estimate| {
        if disturbed(channel) || anew() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let found = channel.classes(law).and_then(|classes| {
        let tolerance = if follows_the_classes(&classes) { TARGET } else { TARGET_OF_LABELS };
        let spec = Spec { tolerance, ..Spec::default() };
        channel.pool.install(|| tau_of_error(&classes, error, &spec, &mut told))
    });
    let outcome = match found {
        Err(Error::Cancelled) if anew() => Err("the oracle was opened anew: ask again".to_owned()),
        Err(Error::Cancelled) => {
            channel.slots().target.offer(question);
            return;
        }
        found => found.map_err(|error| error.to_string()),
    };
    channel.send(Answer::Target { generation, error, outcome });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossbeam_channel::bounded;

    use super::*;
    use crate::flow::base::GaussianBase;
    use crate::oracle::posterior::Prior;
    use crate::oracle::world::LabelLaw;
    use crate::units::{Smoothing, Tau};
    use crate::worker::bayes::request_slots::RequestSlots;
    use crate::worker::protocol::Event;
    use crate::worker::shared::Shared;

    #[test]
    fn a_search_for_tau_gives_way_to_a_readout_and_to_a_newer_target_whatever_the_labels() {
        let ((notifier, notified), (events, answers)) = (bounded(1), bounded(8));
        let shared = Arc::new(Shared::new([notifier.clone(), notifier], RequestSlots::new().0, Arc::new(|| {})));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let channel = Channel { shared, notified, events, pool };
        let slots = channel.slots();
        slots.open(Some(&GaussianBase::new(vec![0.0, 0.0, 1.5, 0.0, 0.0, 1.8], &[1.0; 2])));
        for smoothing in [1.0, 2.0] {
            let law = LabelLaw { smoothing: Smoothing::new(smoothing).unwrap(), ..Prior::uniform(3).into() };
            let question = |generation| TargetQuestion { generation, error: 0.2, law: law.clone() };
            let at = At { generation: 1, tau: Tau::ONE, law: law.clone() };
            slots.readout.put(at);
            target(&channel, question(2));
            assert_eq!((slots.target.take(), answers.is_empty()), (Some(question(2)), true), "T = {smoothing}");
            slots.readout.take();
            slots.target.put(question(3));
            target(&channel, question(2));
            assert_eq!((slots.target.take(), answers.is_empty()), (Some(question(3)), true), "T = {smoothing}");
            target(&channel, question(3));
            let Ok(Event::Bayes(answer)) = answers.try_recv() else { panic!("no answer at T = {smoothing}") };
            assert!(matches!(*answer, Answer::Target { generation: 3, outcome: Ok(_), .. }), "{answer:?}");
        }
    }
}
