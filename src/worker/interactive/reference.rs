//! Samples that images are held against: drawn while nothing else is asked for, once at each τ and π.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::super::protocol::Event;
use super::referring::Referring;
use super::{Interactive, unless};
use crate::bayes::sampling::{Cache, ReferenceDraws};
use crate::device::explain;
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::measure::typicality::FEWEST;
use crate::oracle::world::{Settings, World};
use crate::worker::channels::Channels;
use crate::worker::remote_device::is_lost;

/// Knobs that moved less than this ago may be moving still.
const SETTLED: Duration = Duration::from_millis(250);

impl Interactive {
    /// Samples at these knobs are wanted.
    pub(super) fn refer_to(&self, settings: &Settings) {
        let mut slot = self.referring.borrow_mut();
        let same = |now: &Referring| (now.tau, &now.prior) == (settings.tau, &settings.prior);
        if !slot.as_ref().is_some_and(same) {
            *slot = Some(Referring::new(settings)).filter(|_| settings.tau.get() > 0.0);
        }
    }

    /// How long nothing needs to be drawn.
    pub fn reference_due(&self) -> Duration {
        let slot = self.referring.borrow();
        let under_way = slot.as_ref().filter(|referring| !referring.finished);
        under_way.map_or(Duration::MAX, |referring| SETTLED.saturating_sub(referring.since.elapsed()))
    }

    /// Draws what is missing of the reference, at most so many pieces, unless its knobs have just
    /// moved, and tells of every piece; stops for any request, and for what is `urgent`. Returns
    /// whether more is to be drawn now.
    pub fn refer(
        &self,
        channels: &Channels,
        world: Option<&World>,
        (urgent, pieces): (&dyn Fn() -> bool, usize),
    ) -> bool {
        let Some(world) = world.filter(|_| !self.lost() && self.reference_due().is_zero()) else { return false };
        let mut slot = self.referring.borrow_mut();
        let Some(referring) = slot.as_mut() else { return false };
        let drawn = self.draw_reference(channels, world, (urgent, pieces), referring);
        let device = self.device.get();
        match drawn {
            Ok(()) => return !referring.finished,
            Err(Error::Cancelled) => return true,
            Err(loss @ Error::DeviceLost { .. }) => self.lose(loss),
            Err(error) => {
                let error = explain(error, Some(device));
                if is_lost(device) {
                    self.lose(error);
                    return false;
                }
                referring.finished = true;
                channels.send(Event::Reference(Box::new(referring.news(Err(error.to_string())))));
            }
        }
        false
    }

    fn draw_reference(
        &self,
        channels: &Channels,
        world: &World,
        (urgent, pieces): (&dyn Fn() -> bool, usize),
        referring: &mut Referring,
    ) -> Result<()> {
        let (weights, device) = (self.world.borrow(), self.label.borrow());
        let mut draws = ReferenceDraws::new(world, &Cache::of_user(), &weights, &referring.prior, &device);
        let mut undisturbed =
            |_: Progress| -> ControlFlow<()> { unless(channels.stopping() || urgent() || channels.shared.asked()) };
        for _ in 0..pieces {
            if referring.finished {
                break;
            }
            let (began, to) = (Instant::now(), referring.next());
            let drawn = draws.extend(referring.tau, &mut referring.have, to, &mut undisturbed);
            referring.spent += began.elapsed();
            referring.finished = referring.is_enough();
            if referring.have.len() >= FEWEST && (referring.finished || drawn.is_ok()) {
                channels.send(Event::Reference(Box::new(referring.news(Ok(referring.have.clone())))));
            }
            drawn?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::typicality::SAMPLES;
    use crate::units::Tau;

    #[test]
    fn knobs_that_move_begin_a_reference_anew_and_smoothing_does_not() {
        let interactive = Interactive::default();
        assert_eq!(interactive.reference_due(), Duration::MAX);
        let settings = Settings::default_for(3);
        let at = |tau: f64| Settings { tau: Tau::new(tau).unwrap(), ..settings.clone() };
        interactive.refer_to(&at(1.0));
        assert!(interactive.reference_due() <= SETTLED);
        if let Some(referring) = interactive.referring.borrow_mut().as_mut() {
            (referring.have, referring.finished) = (vec![0.0; SAMPLES], true);
        }
        let smoothed = Settings { smoothing: crate::units::Smoothing::new(4.0).unwrap(), ..at(1.0) };
        interactive.refer_to(&smoothed);
        assert_eq!(interactive.reference_due(), Duration::MAX, "it is there");
        interactive.refer_to(&at(1.5));
        assert!(interactive.referring.borrow().as_ref().is_some_and(|now| now.have.is_empty()));
        interactive.refer_to(&at(0.0));
        assert!(interactive.referring.borrow().is_none(), "there is no density at τ = 0");
    }
}
