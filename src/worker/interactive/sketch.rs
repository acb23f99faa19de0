//! Drawings: their float images and posteriors, as the pen moves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::protocol::{JobId, Sketch, SketchAnswer, Subject};
use super::drawing::{GroundImage, compose};
use super::external::Brought;
use super::{Interactive, PieceContext, put};
use crate::error::{Error, Result};
use crate::oracle::classify::ExternalImages;
use crate::oracle::evidence::leaders;
use crate::oracle::running::score_by_classes;
use crate::oracle::world::{Settings, World};
use crate::worker::channels::Channels;

/// A drawing whose classes take longer gives way to a newer one. Quicker ones are finished, so that
/// figures follow the pen while it moves.
const YIELDS_AFTER: Duration = Duration::from_millis(150);

impl Interactive {
    /// Answers the newest drawing.
    pub(super) fn sketch(&self, cx: &PieceContext<'_>) -> Result<()> {
        let Some(request) = self.sketching.borrow().clone() else { return Ok(()) };
        let (channels, world, began) = (cx.channels, cx.world, Instant::now());
        let ground = self.ground(cx, &request.sketch)?;
        let x = self.drawn(world, &request.sketch, ground.as_ref())?;
        let scores = score_by_classes(world.flow(), &x, &mut |_| {
            let newer = channels.shared.sketch_request.is_full() && began.elapsed() > YIELDS_AFTER;
            if newer || cx.called_away() { Err(Error::Cancelled) } else { Ok(()) }
        })?;
        let posterior = world.posterior(&scores, 0, &request.settings).defined("this drawing")?;
        let evidence = match leaders(&posterior).filter(|_| request.evidence) {
            Some((a, b)) => Some(([a, b], world.evidence(&x, a, b, request.settings.tau)?)),
            None => None,
        };
        let (shape, ground, took) = (world.shape(), ground.map(|ground| ground.picture), began.elapsed());
        put(channels, &channels.shared.sketch, SketchAnswer { request, shape, ground, posterior, evidence, took });
        *self.sketching.borrow_mut() = None;
        Ok(())
    }

    /// The world-space image of a drawing.
    fn drawn(&self, world: &World, sketch: &Sketch, ground: Option<&GroundImage>) -> Result<Vec<f32>> {
        let shape = world.shape();
        if (sketch.levels.len(), sketch.inked.len()) != (shape.dims(), shape.height * shape.width) {
            return Err(Error::input(format!("the drawing is not {shape}: begin a new one")));
        }
        Ok(compose(world.flow().pixels(), sketch, ground.map(|ground| ground.x.as_slice())))
    }

    /// What a drawing is drawn on: as it was when it was first asked for.
    fn ground(&self, cx: &PieceContext<'_>, sketch: &Sketch) -> Result<Option<GroundImage>> {
        let Some(wanted) = &sketch.ground else { return Ok(None) };
        if let Some(known) = self.ground.borrow().as_ref().filter(|known| known.of == *wanted) {
            return Ok(Some(known.clone()));
        }
        let x = match &wanted.subject {
            Subject::Sample { spec, index } => self.sample(cx, spec, &wanted.settings, *index)?.x.clone(),
            Subject::External(image) => self.external_image(*image, cx.world.shape().dims())?,
        };
        let picture = Arc::new(cx.world.flow().pixels().picture(&x));
        let found = GroundImage { of: wanted.clone(), x: Arc::new(x), picture };
        *self.ground.borrow_mut() = Some(found.clone());
        Ok(Some(found))
    }

    /// A drawing takes the place of the images from outside. Returns a sentence about it.
    ///
    /// # Errors
    /// When what it was drawn on is not open any more, or the device fails.
    pub fn send_sketch(
        &self,
        (channels, job): (&Channels, JobId),
        world: &World,
        (sketch, settings): (&Sketch, &Settings),
    ) -> Result<String> {
        let cx = PieceContext { channels, world, urgent: &|| false };
        let ground = self.ground(&cx, sketch)?;
        let x = self.drawn(world, sketch, ground.as_ref())?;
        let images = ExternalImages::new("drawing".into(), vec!["Drawing".into()], None, x);
        self.show_external(channels, world, (images, Vec::new()), settings, Brought::by(job))
    }
}
