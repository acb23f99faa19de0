//! What a corpus in training says, written down for those who watch and passed on.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use super::super::execute::HEARTBEAT;
use super::super::status::{State, Status};
use super::HardnessEvent;
use crate::error::Error;
use crate::events::Events;
use crate::oracle::train::TrainEvent;

/// Of one corpus in one sitting.
pub struct Diary<'a> {
    name: &'a str,
    path: &'a Path,
    /// Steps in all, once they are known.
    pub steps: usize,
    /// When this sitting's first step was done, and which it was.
    begun: Option<(Instant, usize)>,
    told: Option<Instant>,
    /// What the disk refused.
    pub trouble: Option<Error>,
}

impl<'a> Diary<'a> {
    /// For the corpus of that name, in its folder.
    pub fn new(name: &'a str, path: &'a Path) -> Self {
        Self { name, path, steps: 0, begun: None, told: None, trouble: None }
    }

    /// Notes a word and passes it on.
    pub fn note(&mut self, said: TrainEvent, events: &mut dyn Events<HardnessEvent>) -> ControlFlow<()> {
        let mut eta_secs = None;
        if let TrainEvent::Step { epoch, epochs, step, steps, .. } = said {
            self.steps = epochs * steps;
            let done = (epoch - 1) * steps + step;
            let (since, first) = *self.begun.get_or_insert((Instant::now(), done));
            let pace = since.elapsed().as_secs_f64() / done.saturating_sub(first).max(1) as f64;
            eta_secs = (done > first).then(|| pace * self.steps.saturating_sub(done) as f64);
            if self.told.is_none_or(|told| told.elapsed() >= HEARTBEAT) {
                self.told = Some(Instant::now());
                let status = Status::new(State::Running, done, self.steps, eta_secs);
                if let Err(error) = status.write(self.path) {
                    self.trouble = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        events.emit(HardnessEvent::Training { corpus: self.name.to_owned(), said: Box::new(said), eta_secs })
    }
}
