//! Images from outside in a world: read, mapped in, scored.

use std::sync::OnceLock;

use crate::data::{ClassMap, Dataset, Input, WorldBatch, as_numbers, listed};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Scores;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::cells::{CellEstimate, estimate};
use crate::oracle::numbering::{named, renumber};
use crate::oracle::pictures::{Picture, Reading, together};
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Settings, World};
use crate::units::ClassId;

/// Images from outside as a world sees them. Posteriors at any τ, T and π follow from their
/// statistics without another pass.
#[derive(Debug, Clone)]
pub struct ExternalImages {
    /// Where they came from.
    pub name: String,
    /// A name for each.
    pub ids: Vec<String>,
    /// Labels as classes of the world, where the source has them; `None` of an image whose class the world does
    /// not have.
    pub labels: Option<Vec<Option<ClassId>>>,
    /// What is to be said of the labels, or by [`Reading::note`], once.
    pub note: Option<String>,
    /// World-space images, NCHW.
    pub x: Vec<f32>,
    /// How pixels were dequantised; nothing where x was given.
    pub dequantisation: Option<Dequantisation>,
    /// How each picture got the world's shape; empty where they are no single pictures.
    pub pictures: Vec<Picture>,
    /// Posteriors that came with them, at the knobs they were drawn at.
    pub known: Option<(Settings, Vec<Posterior>)>,
    /// Their statistics, once computed.
    pub scores: OnceLock<Scores>,
    /// Statistics of the further draws of `mean:R`.
    pub further: Vec<Scores>,
}

impl ExternalImages {
    /// Images of which nothing else is known.
    pub fn new(name: String, ids: Vec<String>, labels: Option<Vec<ClassId>>, x: Vec<f32>) -> Self {
        Self {
            name,
            ids,
            labels: labels.map(|labels| labels.into_iter().map(Some).collect()),
            note: None,
            x,
            dequantisation: None,
            pictures: Vec::new(),
            known: None,
            scores: OnceLock::new(),
            further: Vec::new(),
        }
    }

    /// The label of image `i`, where it has one.
    pub fn label(&self, i: usize) -> Option<ClassId> {
        self.labels.as_ref()?.get(i).copied().flatten()
    }

    /// Whether every image has a label.
    pub fn labelled(&self) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.iter().all(Option::is_some))
    }

    /// World-space image `i`, CHW.
    pub fn image(&self, world: &World, i: usize) -> &[f32] {
        let dims = world.shape().dims();
        &self.x[i * dims..(i + 1) * dims]
    }

    /// The posteriors that came with the images, where they are at these knobs.
    fn known(&self, settings: &Settings) -> Option<&[Posterior]> {
        self.known.as_ref().filter(|(at, _)| at == settings).map(|(_, posteriors)| posteriors.as_slice())
    }

    /// The statistics, computed where they are not known.
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn scores(&self, world: &World, events: &mut dyn Events<Progress>) -> Result<&Scores> {
        if let Some(scores) = self.scores.get() {
            return Ok(scores);
        }
        let scores = world.score(&self.x, events).map_err(|error| named(error, &self.ids))?;
        Ok(self.scores.get_or_init(|| scores))
    }

    /// Makes posteriors at these knobs cost no further pass of the flow.
    ///
    /// # Errors
    /// As [`Self::scores`].
    pub fn prepare(&self, world: &World, settings: &Settings, events: &mut dyn Events<Progress>) -> Result<()> {
        if self.known(settings).is_some() { Ok(()) } else { self.scores(world, events).map(drop) }
    }

    /// The posterior of image `i`: as it came with the image, or from the statistics, of this image
    /// alone where there are none. Over several draws the estimate for its pixels, and how far that
    /// holds.
    ///
    /// # Errors
    /// When the device fails.
    pub fn posterior(&self, world: &World, i: usize, settings: &Settings) -> Result<(Posterior, Option<CellEstimate>)> {
        if let Some(known) = self.known(settings).and_then(|known| known.get(i)) {
            return Ok((known.clone(), None));
        }
        let Some(scores) = self.scores.get() else {
            let scores = world.flow().score(self.image(world, i));
            let scores = scores.map_err(|error| named(renumber(error, i), &self.ids))?;
            return Ok((world.posterior(&scores, 0, settings), None));
        };
        if self.further.is_empty() {
            return Ok((world.posterior(scores, i, settings), None));
        }
        let of = |scores: &Scores| scores.log_likelihoods(i, settings.tau);
        let draws: Vec<Vec<f64>> = std::iter::once(scores).chain(&self.further).map(of).collect();
        let (posterior, cell) = estimate(&draws, settings);
        Ok((posterior, Some(cell)))
    }

    /// log p(x), nats, of image `i` itself: over several draws that of the first, which is a point as
    /// samples are.
    ///
    /// # Errors
    /// When the device fails.
    pub fn log_px(&self, world: &World, i: usize, settings: &Settings) -> Result<f64> {
        match self.scores.get().filter(|_| !self.further.is_empty()) {
            Some(scores) => Ok(world.posterior(scores, i, settings).log_px),
            None => self.posterior(world, i, settings).map(|(posterior, _)| posterior.log_px),
        }
    }

    /// How far the posterior that came with image `i` moves when it is computed again from its
    /// 32-bit x; none where it was computed from x.
    ///
    /// # Errors
    /// When the device fails.
    pub fn rounding(&self, world: &World, i: usize, settings: &Settings) -> Result<Option<f64>> {
        let Some(posterior) = self.known(settings).and_then(|known| known.get(i)) else { return Ok(None) };
        let moved = world.rounded(self.image(world, i), &posterior.probabilities, settings, &mut silent())?;
        Ok(Some(moved.max_drift))
    }
}

impl World {
    /// Maps what was read into this world.
    ///
    /// # Errors
    /// When the images do not fit.
    pub fn read(&self, reading: impl Into<Reading>, how: Dequantisation) -> Result<ExternalImages> {
        let Reading { input, pictures, ids: named, note, .. } = reading.into();
        match input {
            Input::Pixels(dataset) => {
                let (name, ids) = (dataset.name.clone(), dataset.ids.clone());
                let (labels, of_labels) = labels_in(&dataset, self.class_names());
                let note = together(note, of_labels);
                let images = ExternalImages::new(name, ids, None, self.map_in(dataset, how)?);
                Ok(ExternalImages { labels, note, dequantisation: Some(how), pictures, ..images })
            }
            Input::World(batch) => {
                self.fits(&batch)?;
                let numbers = || (0..batch.len()).map(|i| i.to_string()).collect();
                let ids = if named.len() == batch.len() { named } else { numbers() };
                let classes = self.class_names().len();
                let label = |&y: &i64| usize::try_from(y).ok().filter(|&y| y < classes);
                let labels = batch.y.as_ref().map(|y| y.iter().map(label).collect());
                let images = ExternalImages::new("world-space images".into(), ids, None, batch.x);
                Ok(ExternalImages { labels, note, ..images })
            }
        }
    }

    /// Maps what was read into this world and scores it, batch after batch; pixels as often as `how` has
    /// draws.
    ///
    /// # Errors
    /// When the images do not fit, the device fails, or the caller stops.
    pub fn classify(
        &self,
        reading: impl Into<Reading>,
        how: Dequantisation,
        events: &mut dyn Events<Progress>,
    ) -> Result<ExternalImages> {
        let reading = reading.into();
        let pixels = match &reading.input {
            Input::Pixels(dataset) if how.further().next().is_some() => Some(dataset.clone()),
            _ => None,
        };
        let mut images = self.read(reading, how)?;
        images.scores(self, events)?;
        if let Some(pixels) = pixels {
            for draw in how.further() {
                let scores = self.score(&self.map_in(pixels.clone(), draw)?, events);
                images.further.push(scores.map_err(|error| named(error, &images.ids))?);
            }
        }
        Ok(images)
    }

    fn fits(&self, batch: &WorldBatch) -> Result<()> {
        if batch.shape == self.shape() {
            return Ok(());
        }
        Err(Error::input(format!("the images are {}, this world's are {}", batch.shape, self.shape())))
    }
}

/// The labels of images as classes of a world: those of an image whose class it has. With a sentence where not
/// all are labels of it by name.
fn labels_in(images: &Dataset, world: &[String]) -> (Option<Vec<Option<ClassId>>>, Option<String>) {
    let Some(labels) = &images.labels else { return (None, None) };
    let (name, theirs) = (&images.name, &images.class_names);
    if theirs == world {
        return (Some(labels.iter().map(|&label| Some(label)).collect()), None);
    }
    let Some(map) = ClassMap::of(theirs, world) else {
        let (theirs, ours) = (listed(theirs), listed(world));
        let note =
            format!("{name}: its classes ({theirs}) are not those of the world ({ours}); its labels are left out");
        return (None, Some(note));
    };
    let strangers: Vec<String> =
        theirs.iter().zip(&map.numbers).filter(|(_, number)| number.is_none()).map(|(name, _)| name.clone()).collect();
    let note = match () {
        () if !strangers.is_empty() => Some(format!(
            "{name}: images of classes that the world does not have have no label: {}",
            listed(&strangers)
        )),
        () if !map.by_name && as_numbers(theirs).is_none() => {
            Some(format!("{name}: its classes have other names than the world's and were matched by number"))
        }
        () => None,
    };
    (Some(labels.iter().map(|&label| map.numbers.get(label).copied().flatten()).collect()), note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// The labels of an image of each of these classes, and what is said of them.
    fn labels(classes: &str, world: &str) -> (Option<Vec<Option<ClassId>>>, Option<String>) {
        let (class_names, n) = (names(classes), names(classes).len());
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        let (name, labels) = ("zoo".into(), Some((0..n).collect()));
        let (ids, noises) = (class_names.clone(), Default::default());
        let images = Dataset { name, shape, pixels: vec![0; n], labels, ids, class_names, noises };
        labels_in(&images, &names(world))
    }

    #[test]
    fn labels_are_classes_of_the_world() {
        // Folders are sorted by name; the world's classes are not.
        let (found, note) = labels("Ankle_boot Bag T-shirt_top", "T-shirt/top Bag Ankle_boot");
        assert_eq!((found, note), (Some(vec![Some(2), Some(1), Some(0)]), None));
        assert_eq!(labels("3 7", "0 1 2 3 4 5 6 7 8 9"), (Some(vec![Some(3), Some(7)]), None));
        assert_eq!(labels("0 1", "cat dog wild"), (Some(vec![Some(0), Some(1)]), None));
    }

    #[test]
    fn a_class_that_the_world_does_not_have_is_no_label() {
        let (found, note) = labels("fox wild", "cat dog wild");
        assert_eq!(found, Some(vec![None, Some(2)]));
        assert!(note.unwrap().ends_with("no label: fox"));
        let (found, note) = labels("frog toad", "cat dog wild");
        assert!(found.is_none() && note.unwrap().contains("(frog, toad) are not those of the world (cat, dog, wild)"));
        let (found, note) = labels("Katze Hund Wild", "cat dog wild");
        assert_eq!(found, Some(vec![Some(0), Some(1), Some(2)]));
        assert!(note.unwrap().ends_with("matched by number"));
    }
}
