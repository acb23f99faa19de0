//! The inspector's answer: the image itself first, then the same latent at other temperatures, one after the other.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::protocol::{InspectRequest, Inspection, Subject};
use super::{Interactive, Place, external_tile, gone, put, tile};
use crate::error::Result;
use crate::oracle::world::Settings;
use crate::units::Tau;

/// Unfinished answers are published this far apart.
const PUBLISH_EVERY: Duration = Duration::from_millis(120);
/// Where a sample costs more than this, every second of the other temperatures is left out.
const DEAR: Duration = Duration::from_millis(300);

/// An inspection under way.
pub struct Inspecting {
    request: InspectRequest,
    answer: Option<Inspection>,
    waiting: VecDeque<Tau>,
}

impl Inspecting {
    /// Nothing done yet.
    pub fn new(request: InspectRequest) -> Self {
        let waiting = request.taus.iter().copied().collect();
        Self { request, answer: None, waiting }
    }
}

impl Interactive {
    /// Goes on with the inspection until it is finished, or until somebody else should have a turn.
    pub(super) fn inspect_piece(&self, place: &Place<'_>) -> Result<()> {
        let mut slot = self.inspecting.borrow_mut();
        let Some(inspecting) = slot.as_mut() else { return Ok(()) };
        let (line, began) = (place.line, Instant::now());
        loop {
            let more = self.inspect_step(place, inspecting)?;
            let late = began.elapsed() > PUBLISH_EVERY;
            if let Some(answer) = inspecting.answer.as_ref().filter(|_| late || !more) {
                put(line, &line.shared.inspection, answer.clone());
            }
            if !more {
                *slot = None;
                return Ok(());
            }
            if late || line.shared.inspect_request.is_full() {
                return Ok(());
            }
        }
    }

    /// The image, or the next temperature; whether there is more.
    fn inspect_step(&self, place: &Place<'_>, inspecting: &mut Inspecting) -> Result<bool> {
        match (&mut inspecting.answer, &inspecting.request) {
            (None, request) => {
                let mut answer = self.begin(place, request)?;
                if self.cost.get() > DEAR {
                    let spread = inspecting.waiting.iter().copied().step_by(2).collect();
                    inspecting.waiting = spread;
                }
                if matches!(request.subject, Subject::External(_)) {
                    inspecting.waiting.clear();
                }
                answer.missing = inspecting.waiting.len();
                inspecting.answer = Some(answer);
            }
            (Some(answer), InspectRequest { subject: Subject::Sample { spec, index }, settings, .. }) => {
                let Some(&tau) = inspecting.waiting.front() else { return Ok(false) };
                let sample = self.sample(place, spec, &Settings { tau, ..settings.clone() }, *index)?;
                answer.morph.push((tau, tile(place.world, &sample)));
                inspecting.waiting.pop_front();
                answer.missing = inspecting.waiting.len();
            }
            _ => {}
        }
        Ok(!inspecting.waiting.is_empty())
    }

    /// The image itself.
    fn begin(&self, place: &Place<'_>, request: &InspectRequest) -> Result<Inspection> {
        let InspectRequest { generation, subject, settings, .. } = request;
        let world = place.world;
        let (tile, rounding) = match subject {
            Subject::Sample { spec, index } => {
                let began = Instant::now();
                let known = self.kept.borrow().get(spec, settings, *index).is_some();
                let sample = self.sample(place, spec, settings, *index)?;
                if !known {
                    self.cost.set(began.elapsed());
                    self.remember(spec, settings, &sample);
                }
                let rounding = world.rounding(std::slice::from_ref(&*sample), settings)?.first().copied();
                (tile(world, &sample), rounding)
            }
            Subject::External(index) => {
                let external = self.external.borrow();
                let classified = external.as_ref().filter(|c| *index < c.ids.len());
                let classified = classified.ok_or_else(gone)?;
                (external_tile(world, classified, *index, settings), None)
            }
        };
        let (generation, subject, shape) = (*generation, subject.clone(), world.shape());
        Ok(Inspection { generation, subject, shape, tile, rounding, morph: Vec::new(), missing: 0 })
    }
}
