//! Images from outside, kept for the inspector, the evidence map and walks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Interactive, gone};
use crate::error::{Error, Result};
use crate::experiment::WorstImage;
use crate::oracle::classify::ExternalImages;
use crate::oracle::world::{Settings, World};
use crate::task::ExternalImage;
use crate::units;
use crate::worker::channels::Channels;
use crate::worker::loaded_images::LoadedImages;
use crate::worker::protocol::{Event, JobId, Outcome, Subject, Tile};
use crate::worker::shared::Shared;

/// The images from outside that are open.
#[derive(Clone)]
pub struct ExternalSet {
    /// Which set they are: what [`ExternalImage`] names.
    pub set: u64,
    pub images: ExternalImages,
    /// What a classifier says of each; empty where none was asked.
    pub verdicts: Vec<WorstImage>,
}

/// How images from outside come to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Brought {
    /// The job that brings them.
    pub by: JobId,
    /// The job that opened them, where they are brought again.
    pub again: Option<JobId>,
    /// Whether they were drawn at their knobs: the window takes these over.
    pub own_knobs: bool,
}

impl Brought {
    /// Opened by a job, at the knobs of the window.
    pub fn by(job: JobId) -> Self {
        Self { by: job, again: None, own_knobs: false }
    }
}

impl Interactive {
    /// Sends the images from outside of a job to the window and keeps them for its inspector; a sentence
    /// about them.
    ///
    /// # Errors
    /// When the knobs are of another number of classes, or a posterior is not known and the device fails; then those before stay.
    pub fn show_external(
        &self,
        channels: &Channels,
        world: &World,
        (images, verdicts): (ExternalImages, Vec<WorstImage>),
        settings: &Settings,
        brought: Brought,
    ) -> Result<String> {
        world.check(settings)?;
        let n = images.ids.len();
        let tiles = (0..n).map(|i| external_tile(&images, world, i, settings)).collect::<Result<Vec<Tile>>>()?;
        // Only now: images that cannot be shown do not come between those on show and the same ones read again.
        let set = channels.shared.sets.of(&images, &self.world.borrow());
        self.drop_questions(&channels.shared, set);
        channels.shared.show_images_of(brought.again.unwrap_or(brought.by));
        channels.send(Event::External {
            job: brought.by,
            set,
            name: images.name.clone(),
            shape: world.shape(),
            ids: images.ids.clone(),
            tiles,
            labelled: images.labelled(),
            settings: settings.clone(),
            own_knobs: brought.own_knobs,
            verdicts: verdicts.clone(),
            pictures: images.pictures.clone(),
        });
        let note = images.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        let sentence = format!("posteriors of {} from {}{note}", units::images(n), images.name);
        *self.external.borrow_mut() = Some(ExternalSet { set, images, verdicts });
        Ok(sentence)
    }

    /// Drops questions about images whose place this set takes. The window asks about the new ones by itself,
    /// and need not hear that the others are gone.
    fn drop_questions(&self, shared: &Shared, set: u64) {
        let replaced = |subject: &Subject| !subject.is_open(Some(set));
        self.inspecting.borrow_mut().take_if(|one| replaced(&one.request.subject));
        self.explaining.borrow_mut().take_if(|one| replaced(&one.subject));
        shared.inspect_request.take_if(|one| replaced(&one.subject));
        shared.evidence_request.take_if(|one| replaced(&one.subject));
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
        let brought = Brought { own_knobs: true, ..Brought::by(id) };
        let outcome =
            match here.map(|world| self.show_external(channels, world, (images, verdicts), &settings, brought)) {
                Some(Ok(sentence)) => Outcome::Done(sentence),
                Some(Err(Error::Cancelled)) => Outcome::Cancelled,
                Some(Err(error)) => Outcome::Failed(error.to_string()),
                None => Outcome::Failed("another oracle was opened meanwhile: ask for these images again".into()),
            };
        channels.shared.forget(id);
        channels.send(Event::JobEnded { id, outcome });
    }

    /// The images from outside.
    pub fn external(&self) -> Option<ExternalSet> {
        self.external.borrow().clone()
    }

    /// Whether this set is open.
    pub fn holds(&self, set: u64) -> bool {
        self.external.borrow().as_ref().is_some_and(|open| open.set == set)
    }

    /// An image from outside, world space.
    ///
    /// # Errors
    /// As [`among`].
    pub fn external_image(&self, image: ExternalImage, dims: usize) -> Result<Vec<f32>> {
        let external = self.external.borrow();
        let images = among(external.as_ref(), image)?;
        images.x.chunks_exact(dims).nth(image.index).map(<[f32]>::to_vec).ok_or_else(gone)
    }
}

/// The images that this one is among, where they are open.
///
/// # Errors
/// When others have taken their place, or none are open.
pub fn among(open: Option<&ExternalSet>, image: ExternalImage) -> Result<&ExternalImages> {
    let open = open.filter(|open| open.set == image.set && image.index < open.images.ids.len());
    open.map(|open| &open.images).ok_or_else(gone)
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
    use crate::oracle::world::SampleSpec;
    use crate::units::Seed;
    use crate::worker::channels::tests::alone;
    use crate::worker::interactive::inspect::Inspecting;
    use crate::worker::protocol::{EvidenceRequest, InspectRequest};

    fn one(x: f32) -> ExternalImages {
        ExternalImages::new("one".into(), vec!["0".into()], None, vec![x])
    }

    fn image(set: u64, index: usize) -> ExternalImage {
        ExternalImage { set, index }
    }

    #[test]
    fn an_image_of_a_set_that_is_not_open_is_refused() {
        let interactive = Interactive::default();
        let asked = |image| interactive.external_image(image, 1);
        let is_gone = |image| asked(image).unwrap_err().to_string().contains("no longer open");
        assert!(is_gone(image(1, 0)), "nothing is open");
        let open =
            |set, x| *interactive.external.borrow_mut() = Some(ExternalSet { set, images: one(x), verdicts: vec![] });
        open(1, 0.5);
        assert_eq!(asked(image(1, 0)).unwrap(), [0.5]);
        assert!(is_gone(image(1, 1)) && interactive.holds(1));
        open(2, 0.75);
        assert!(is_gone(image(1, 0)) && !interactive.holds(1), "another image lies in its place");
        assert_eq!(asked(image(2, 0)).unwrap(), [0.75]);
    }

    #[test]
    fn questions_about_images_go_with_them_and_no_others_do() {
        let ((channels, _told), interactive) = (alone(), Interactive::default());
        let (shared, settings) = (&channels.shared, Settings::default_for(2));
        let ask = |subject: Subject| {
            let (settings, taus) = (settings.clone(), Vec::new());
            let inspect = InspectRequest { generation: 1, subject, settings, taus, look: None };
            let InspectRequest { subject, settings, .. } = inspect.clone();
            let explain = EvidenceRequest { generation: 2, subject, settings, a: 0, b: 1 };
            *interactive.inspecting.borrow_mut() = Some(Inspecting::new(inspect.clone()));
            *interactive.explaining.borrow_mut() = Some(explain.clone());
            shared.inspect_request.put(inspect);
            shared.evidence_request.put(explain);
        };
        let left = |set: u64| {
            interactive.drop_questions(shared, set);
            let under_way = [interactive.inspecting.borrow().is_some(), interactive.explaining.borrow().is_some()];
            (under_way, [shared.inspect_request.is_full(), shared.evidence_request.is_full()])
        };
        ask(Subject::External(image(4, 0)));
        assert_eq!(left(4), ([true; 2], [true; 2]), "the same images at other knobs");
        assert_eq!(left(5), ([false; 2], [false; 2]));
        ask(Subject::Sample { spec: SampleSpec::new(1, Seed(0)), index: 0 });
        assert_eq!(left(6), ([true; 2], [true; 2]));
    }

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
                images: one(0.5),
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
