//! The quick thread: the Bayes error beside a slider that is being dragged, and τ of a typed one.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::channel::{Channel, REST};
use super::protocol::{Answer, At, TargetQuestion};
use crate::bayes::sampling::Cache;
use crate::bayes::{Estimate, Spec, information, information_at_zero, tau_of_error};
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
            target(channel, &question);
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
            0.0 => Some(information_at_zero(&classes)),
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

fn target(channel: &Channel, question: &TargetQuestion) {
    let &TargetQuestion { generation, error, ref law } = question;
    let spec = Spec { tolerance: TARGET, ..Spec::default() };
    let newer = |_: Estimate| {
        if channel.slots().target.is_full() || channel.stopping() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let mut newer = newer;
    let found = channel
        .classes(law)
        .and_then(|classes| channel.pool.install(|| tau_of_error(&classes, error, &spec, &mut newer)));
    match found {
        Err(Error::Cancelled) => {}
        found => {
            let outcome = found.map_err(|error| error.to_string());
            channel.send(Answer::Target { generation, error, outcome });
        }
    }
}
