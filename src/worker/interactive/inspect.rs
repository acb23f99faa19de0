//! The inspector's answer: the image itself first, then the same latent at other temperatures, one
//! after the other.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::protocol::{InspectRequest, Inspection, RunningPosterior, Subject};
use super::external::{among, external_tile};
use super::{Interactive, PieceContext, put, tile, unless};
use crate::error::{Error, Result};
use crate::flow::{Decoding, Scores};
use crate::oracle::running::Running;
use crate::oracle::world::{Sample, SampleSpec, Settings};
use crate::units::Tau;

/// Unfinished answers are published this far apart.
const PUBLISH_EVERY: Duration = Duration::from_millis(120);
/// Where a sample costs more than this, every second of the other temperatures is left out.
const DEAR: Duration = Duration::from_millis(300);
/// Where the classes take longer than this, the running posterior is sent.
const RUNNING_AFTER: Duration = Duration::from_millis(80);

/// An inspection under way.
pub struct Inspecting {
    pub(super) request: InspectRequest,
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
    /// Continues the inspection until it is finished or another request is due. While τ moves it does a step
    /// between key pictures.
    pub(super) fn inspect_piece(&self, cx: &PieceContext<'_>) -> Result<()> {
        let mut slot = self.inspecting.borrow_mut();
        let Some(inspecting) = slot.as_mut() else { return Ok(()) };
        let (channels, began) = (cx.channels, Instant::now());
        loop {
            let more = self.inspect_step(cx, inspecting)?;
            let late = began.elapsed() > PUBLISH_EVERY || self.keys.moving();
            if let Some(answer) = inspecting.answer.as_ref().filter(|_| late || !more) {
                put(channels, &channels.shared.inspection, answer.clone());
            }
            if !more {
                *slot = None;
                return Ok(());
            }
            if late || channels.shared.inspect_request.is_full() {
                return Ok(());
            }
        }
    }

    /// The image, or the next temperature; whether there is more.
    fn inspect_step(&self, cx: &PieceContext<'_>, inspecting: &mut Inspecting) -> Result<bool> {
        match (&mut inspecting.answer, &inspecting.request) {
            (None, request) => {
                let mut answer = self.begin(cx, request)?;
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
                match self.sample(cx, spec, &Settings { tau, ..settings.clone() }, *index) {
                    Ok(sample) => answer.morph.push((tau, tile(cx.world, &sample))),
                    // Far from τ = 1 a flow may overflow: the others are shown all the same.
                    Err(why) if why.is_numeric() => {}
                    Err(error) => return Err(error),
                }
                inspecting.waiting.pop_front();
                answer.missing = inspecting.waiting.len();
            }
            _ => {}
        }
        Ok(!inspecting.waiting.is_empty())
    }

    /// The image itself.
    fn begin(&self, cx: &PieceContext<'_>, request: &InspectRequest) -> Result<Inspection> {
        let InspectRequest { generation, subject, settings, look, .. } = request;
        let world = cx.world;
        let (tile, rounding) = match subject {
            Subject::Sample { spec, index } => {
                let began = Instant::now();
                let (sample, new) = match self.known(world, spec, settings, *index)? {
                    Some(sample) => (sample, false),
                    None => (make(cx, request, spec, *index)?, true),
                };
                if new {
                    self.cost.set(began.elapsed());
                    self.remember(spec, settings, &sample);
                }
                if let Some(look) = look {
                    let shared = &cx.channels.shared;
                    let mut watch = |_: Decoding| unless(cx.called_away() || shared.inspect_request.is_full());
                    let one = std::slice::from_ref(&sample);
                    match self.looks(cx, one, (spec, settings, look), &mut watch) {
                        Err(why) if why.is_numeric() => {}
                        other => other?,
                    }
                }
                let rounding = world.rounding(std::slice::from_ref(&*sample), settings)?.first().copied();
                let mut tile = self.tile(world, &sample, look.as_ref());
                // Painted where it is, as in the gallery.
                if let Some(resident) = self.cache.borrow().resident(spec, settings, *index) {
                    tile.pixels = resident.picture.clone();
                }
                (tile, rounding)
            }
            Subject::External(image) => {
                let (external, i) = (self.external.borrow(), image.index);
                let images = among(external.as_ref(), *image)?;
                (external_tile(images, world, i, settings)?, images.rounding(world, i, settings)?)
            }
        };
        let (generation, subject, shape) = (*generation, subject.clone(), world.shape());
        let settings = settings.clone();
        Ok(Inspection { generation, subject, settings, shape, tile, rounding, morph: Vec::new(), missing: 0 })
    }
}

/// The inspected sample; its running posterior is sent while classes are still evaluated.
fn make(cx: &PieceContext<'_>, request: &InspectRequest, spec: &SampleSpec, index: usize) -> Result<Arc<Sample>> {
    let (channels, world) = (cx.channels, cx.world);
    let InspectRequest { generation, subject, settings, .. } = request;
    let mut watch = |_: Decoding| unless(cx.called_away() || channels.shared.inspect_request.is_full());
    let began = Cell::new(None);
    let mut scored = |x: &[f32], scores: &Scores| {
        let began = began.get().unwrap_or_else(|| {
            let now = Instant::now();
            began.set(Some(now));
            now
        });
        let few = scores.classes < settings.prior.classes();
        // Open classes may add to the probability of any noisy label: nothing bounds it yet.
        let bounded = settings.label_noise.is_none();
        if few && bounded && began.elapsed() > RUNNING_AFTER {
            let running = Running::new(&scores.log_likelihoods(0, settings.tau), &settings.prior, settings.smoothing);
            let (generation, subject, shape) = (*generation, subject.clone(), world.shape());
            let pixels = world.flow().pixels().picture(x);
            put(channels, &channels.shared.running, RunningPosterior { generation, subject, shape, pixels, running });
        }
        Ok(())
    };
    let made = world.sample_running(spec, settings, &[index], &mut watch, &mut scored)?;
    made.into_iter().next().map(Arc::new).ok_or_else(|| Error::input("no such sample"))
}
