//! Images from outside, kept for the inspector, the evidence map and walks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Interactive;
use crate::error::{Error, Result};
use crate::experiment::WorstImage;
use crate::oracle::classify::ExternalImages;
use crate::oracle::world::{Settings, World};
use crate::units;
use crate::worker::channels::Channels;
use crate::worker::loaded_images::LoadedImages;
use crate::worker::protocol::{Event, JobId, Outcome, Tile};

impl Interactive {
    /// Sends the images from outside of a job to the window and keeps them for its inspector; a sentence
    /// about them. The window takes over their knobs where these are their `own`.
    ///
    /// # Errors
    /// When the knobs are of another number of classes, or a posterior is not known and the device fails; then those before stay.
    pub fn show_external(
        &self,
        (channels, job): (&Channels, JobId),
        world: &World,
        (images, verdicts): (ExternalImages, Vec<WorstImage>),
        settings: &Settings,
        own: bool,
    ) -> Result<String> {
        world.check(settings)?;
        let n = images.ids.len();
        let tiles = (0..n).map(|i| external_tile(&images, world, i, settings)).collect::<Result<Vec<Tile>>>()?;
        channels.send(Event::External {
            job,
            name: images.name.clone(),
            shape: world.shape(),
            ids: images.ids.clone(),
            tiles,
            labelled: images.labelled(),
            settings: settings.clone(),
            own_knobs: own,
            verdicts: verdicts.clone(),
            pictures: images.pictures.clone(),
        });
        let note = images.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        let sentence = format!("posteriors of {} from {}{note}", units::images(n), images.name);
        *self.external.borrow_mut() = Some(images);
        *self.verdicts.borrow_mut() = verdicts;
        Ok(sentence)
    }

    /// Takes over images that another thread has read, if they are of the world that is open now and still
    /// wanted.
    pub(super) fn take_loaded(&self, channels: &Channels, world: Option<&World>) {
        let Some(LoadedImages { id, world: of, shape, settings, images, verdicts }) = channels.shared.loaded.take()
        else {
            return;
        };
        if channels.shared.control(id).cancelled.load(Ordering::Relaxed) {
            channels.shared.forget(id);
            return channels.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
        }
        let here = world.filter(|world| *self.world.borrow() == of && world.shape() == shape);
        let outcome =
            match here.map(|world| self.show_external((channels, id), world, (images, verdicts), &settings, true)) {
                Some(Ok(sentence)) => Outcome::Done(sentence),
                Some(Err(Error::Cancelled)) => Outcome::Cancelled,
                Some(Err(error)) => Outcome::Failed(error.to_string()),
                None => Outcome::Failed("another oracle was opened meanwhile: ask for these images again".into()),
            };
        channels.shared.forget(id);
        channels.send(Event::JobEnded { id, outcome });
    }

    /// The images from outside, and what a classifier says of each.
    pub fn external(&self) -> Option<(ExternalImages, Vec<WorstImage>)> {
        Some((self.external.borrow().clone()?, self.verdicts.borrow().clone()))
    }

    /// Whether these are the images from outside.
    pub fn holds(&self, images: &ExternalImages) -> bool {
        self.external.borrow().as_ref().is_some_and(|held| held.name == images.name && held.ids == images.ids)
    }

    /// Where they came from, and which one this is there.
    pub fn name_of_external(&self, index: usize) -> Option<[String; 2]> {
        let external = self.external.borrow();
        let images = external.as_ref()?;
        Some([images.name.clone(), images.ids.get(index)?.clone()])
    }

    /// One of them, world space.
    pub fn external_image(&self, index: usize, dims: usize) -> Option<Vec<f32>> {
        let external = self.external.borrow();
        external.as_ref()?.x.chunks_exact(dims).nth(index).map(<[f32]>::to_vec)
    }
}

/// Image `i` from outside under the given knobs.
///
/// # Errors
/// When its posterior is not known and the device fails.
pub fn external_tile(images: &ExternalImages, world: &World, i: usize, settings: &Settings) -> Result<Tile> {
    let (posterior, _) = images.posterior(world, i, settings)?;
    let label = images.label(i).unwrap_or(posterior.decision);
    let pixels = world.flow().pixels().picture(images.image(world, i)).into();
    Ok(Tile { index: i, source: label, label, pixels, posterior: Arc::new(posterior), look: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::worker::channels::tests::alone;

    #[test]
    fn images_that_are_cancelled_after_they_were_read_are_not_taken_over() {
        let (channels, told) = alone();
        let ended = |cancelled: bool| {
            let (shared, id) = (&channels.shared, 7);
            shared.control(id).cancelled.store(cancelled, Ordering::Relaxed);
            shared.loaded.put(LoadedImages {
                id,
                world: "another".into(),
                shape: ImageShape { channels: 1, height: 1, width: 1 },
                settings: Settings::default_for(2),
                images: ExternalImages::new("one".into(), vec!["0".into()], None, vec![0.5]),
                verdicts: Vec::new(),
            });
            Interactive::default().take_loaded(&channels, None);
            assert!(shared.known(id).is_none());
            match told.try_recv() {
                Ok(Event::JobEnded { id: 7, outcome }) => outcome,
                other => panic!("{other:?}"),
            }
        };
        assert!(matches!(ended(true), Outcome::Cancelled));
        assert!(matches!(ended(false), Outcome::Failed(why) if why.contains("another oracle was opened")));
    }
}
