//! Drawings: their float images and posteriors, as the pen moves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::protocol::{Ground, Sketch, SketchAnswer, Subject};
use super::{Interactive, PieceContext, gone, put};
use crate::error::{Error, Result};
use crate::flow::preprocess::{Dequantisation, Preprocessing};
use crate::oracle::classify::ExternalImages;
use crate::oracle::evidence::leaders;
use crate::oracle::running::score_by_classes;
use crate::oracle::world::{Settings, World};
use crate::worker::channels::Channels;

/// A drawing whose classes take longer gives way to a newer one. Quicker ones are finished, so that
/// figures follow the pen while it moves.
const YIELDS_AFTER: Duration = Duration::from_millis(150);

/// What is drawn on.
#[derive(Clone)]
pub struct GroundImage {
    of: Ground,
    /// World space, CHW.
    x: Arc<Vec<f32>>,
    /// For the eye.
    picture: Arc<Vec<u8>>,
}

/// The world-space image of a drawing: pixels with ink are 8-bit levels with the noise of the world,
/// as those of a file are; the others stay as they are in the ground.
pub fn compose(pixels: Preprocessing, sketch: &Sketch, ground: Option<&[f32]>) -> Vec<f32> {
    let mut x = pixels.map_in(&sketch.levels, sketch.levels.len(), 0, Dequantisation::default());
    let area = sketch.inked.len().max(1);
    for (i, (value, before)) in x.iter_mut().zip(ground.into_iter().flatten()).enumerate() {
        if !sketch.inked[i % area] {
            *value = *before;
        }
    }
    x
}

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
            Subject::External(index) => self.external_image(*index, cx.world.shape().dims()).ok_or_else(gone)?,
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
        channels: &Channels,
        world: &World,
        (sketch, settings): (&Sketch, &Settings),
    ) -> Result<String> {
        let cx = PieceContext { channels, world, urgent: &|| false };
        let ground = self.ground(&cx, sketch)?;
        let x = self.drawn(world, sketch, ground.as_ref())?;
        let images = ExternalImages::new("drawing".into(), vec!["Drawing".into()], None, x);
        self.show_external(channels, world, (images, Vec::new()), settings, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_is_as_in_a_file_and_the_rest_stays_as_it_was() {
        let levels: Vec<u8> = (0..2 * 9).map(|i| i * 14).collect();
        let inked: Vec<bool> = (0..9).map(|i| i % 3 == 0).collect();
        let ground: Vec<f32> = (0..2 * 9).map(|i| -0.125 + i as f32).collect();
        for pixels in [Preprocessing::Uniform, Preprocessing::Gaussian { std: 0.05 }] {
            let from_file = pixels.map_in(&levels, 18, 0, Dequantisation::default());
            let mut sketch = Sketch { revision: 1, ground: None, levels: levels.clone(), inked: inked.clone() };
            assert_eq!(compose(pixels, &sketch, None), from_file);
            let drawn = compose(pixels, &sketch, Some(&ground));
            for (i, value) in drawn.iter().enumerate() {
                assert_eq!(*value, if i % 9 % 3 == 0 { from_file[i] } else { ground[i] }, "pixel {i}");
            }
            sketch.inked.fill(false);
            assert_eq!(compose(pixels, &sketch, Some(&ground)), ground, "without ink it is the ground to the bit");
        }
    }
}
