//! Images from outside.

use std::path::PathBuf;

use super::gallery::Gallery;
use super::log::Level;
use super::{Effect, Session};
use crate::experiment::WorstImage;
use crate::oracle::pictures::{Fits, Picture};
use crate::oracle::world::Settings;
use crate::task::ExternalImage;
use crate::worker::protocol::{Event, Job, JobId, Pasted};

/// Images from outside.
#[derive(Debug)]
pub struct External {
    /// Where they came from.
    pub name: String,
    /// A name for each.
    pub ids: Vec<String>,
    pub gallery: Gallery,
    /// Whether labels are labels; otherwise they repeat the decision.
    pub labelled: bool,
    /// What a classifier says of each; empty where none was asked.
    pub verdicts: Vec<WorstImage>,
    /// The knobs their posteriors were computed at; unknown after the engine lost them.
    pub settings: Option<Settings>,
    /// How each picture got the world's shape; empty where they are no single pictures.
    pub pictures: Vec<Picture>,
    /// How that was asked for.
    fits: Fits,
    /// Which set they are: what [`ExternalImage`] names.
    pub set: u64,
}

/// What the last images from outside were read from beside files, and how.
#[derive(Debug, Clone, Default)]
pub struct OutsideInput {
    /// How pictures got the world's shape.
    pub fits: Fits,
    /// The picture, if it came from the clipboard.
    pub pasted: Option<Pasted>,
    /// Whether they wait for a world: its classes are not known before.
    pub awaits: bool,
    /// Whether this world was asked to read them.
    pub asked: bool,
    /// The job that opened them, however often they were read since.
    pub opened_by: Option<JobId>,
}

impl Session {
    /// The job that reads the images from outside once more; none where they came from neither files
    /// nor the clipboard.
    pub fn read_outside_again(&self, settings: Settings) -> Option<Job> {
        let OutsideInput { fits, pasted, opened_by: again, .. } = self.outside.clone();
        match pasted {
            Some(picture) => Some(Job::ClassifyPasted { picture, fit: fits.of(0), settings, again }),
            None if self.external_paths.is_empty() => None,
            None => Some(Job::Classify { paths: self.external_paths.clone(), fits, settings, again }),
        }
    }

    /// Returns whether images from outside that another world had are still to be read for this one.
    pub fn lacks_outside(&self) -> bool {
        let known = self.outside.pasted.is_some() || !self.external_paths.is_empty();
        known && self.external.is_none() && self.oracle.is_some() && !self.outside.asked
    }

    /// The images that this one is among, where they are still on show.
    pub fn among(&self, image: ExternalImage) -> Option<&External> {
        self.external.as_ref().filter(|external| external.set == image.set)
    }

    /// The set of images from outside that is on show.
    pub fn open_set(&self) -> Option<u64> {
        self.external.as_ref().map(|external| external.set)
    }

    /// Returns whether images from outside are on their way.
    pub fn reads_outside(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Keeps files until a world is open that can look at them.
    pub fn await_world(&mut self, paths: Vec<PathBuf>) {
        let what = if paths.len() == 1 { "The file".to_owned() } else { format!("{} files", paths.len()) };
        self.notify(Level::Info, format!("{what} will be read as soon as a world is open."));
        self.external_paths = paths;
        self.outside = OutsideInput { awaits: true, ..OutsideInput::default() };
    }

    /// Another world is open: it has to look at them itself. Single pictures can be brought into its shape; what they
    /// were read from stays for that. A dataset is of the world it was read for.
    pub(super) fn leave_outside(&mut self) {
        self.outside.asked = false;
        if self.external.take().is_some_and(|left| left.pictures.is_empty()) {
            self.external_paths.clear();
            self.outside = OutsideInput::default();
        }
    }

    /// A job that brings images from outside was submitted. What they are read from counts from when they
    /// are there: others may come before them.
    pub(super) fn asks_outside(&mut self, id: JobId, job: &Job) {
        let opened = OutsideInput { opened_by: job.reads_again().or(Some(id)), ..OutsideInput::default() };
        let (paths, input) = match job {
            Job::Classify { paths, fits, .. } => (paths.clone(), OutsideInput { fits: fits.clone(), ..opened }),
            // These images have no files.
            Job::ClassifyPasted { picture, fit, .. } => {
                let (fits, pasted) = (Fits::all(*fit), Some(picture.clone()));
                (Vec::new(), OutsideInput { fits, pasted, ..opened })
            }
            Job::SendWalk { .. } | Job::SendSketch { .. } => (Vec::new(), opened),
            _ => return,
        };
        self.coming.insert(id, (paths, input));
    }

    /// A job brings the images from outside again because a knob has moved.
    pub fn refreshes_outside(&mut self, id: JobId) {
        self.refreshing.insert(id);
    }

    /// A job that was to bring images from outside has ended. Where it brought none, those on show were asked for as they were.
    pub(super) fn lack_outside(&mut self, id: JobId) {
        if self.coming.remove(&id).is_none() {
            return;
        }
        self.outside.asked = false;
        // What is still to come has its own.
        if let Some(external) = self.external.as_ref().filter(|_| self.coming.is_empty()) {
            self.outside.fits.clone_from(&external.fits);
        }
    }

    /// Images from outside take the place of those before.
    pub(super) fn take_outside(&mut self, event: Event) -> Effect {
        let Event::External { job, set, name, shape, ids, tiles, labelled, settings, own_knobs, verdicts, pictures } =
            event
        else {
            return Effect::None;
        };
        if let Some(of) = self.coming.remove(&job) {
            (self.external_paths, self.outside) = of;
        }
        self.log.add(Level::Info, format!("{name}: {} images, exact posteriors", tiles.len()));
        self.clock += 1 << 32;
        let gallery = Gallery::from_tiles(shape, tiles, self.clock);
        // Names, not the set: a picture that is fitted in another way keeps its place, though it is another image.
        let same = self.external.as_ref().is_some_and(|old| old.ids == ids && old.name == name) && !own_knobs;
        let knobs = own_knobs.then(|| settings.clone());
        if own_knobs {
            // They lie in a run folder, not in files of their own.
            self.external_paths.clear();
            self.outside = OutsideInput { opened_by: Some(job), ..OutsideInput::default() };
            if let Some(images) = &mut self.runs.cell_images {
                images.shown = Some(name.clone());
            }
        }
        let (settings, fits) = (Some(settings), self.outside.fits.clone());
        self.external = Some(External { name, ids, gallery, labelled, verdicts, settings, pictures, fits, set });
        Effect::Outside { same, opened: !self.refreshing.contains(&job), knobs }
    }
}
