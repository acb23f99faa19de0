//! The real images of a validation: those the oracle was trained on, where they can be told, and held-out ones. Image files larger than the
//! world's images are scaled down as they are read.

use rand::seq::SliceRandom;
use serde::Serialize;

use super::kept::fingerprint;
use super::{FEWEST, Work};
use crate::data::{Dataset, Input, Split, open_dataset_within, open_test_within};
use crate::error::{Error, Result};
use crate::oracle::train::training_images;
use crate::oracle::world::World;
use crate::units::Seed;

/// Share of a corpus without a test part that is held out.
const HELD_OUT: f64 = 0.2;

/// What the real images are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Corpus {
    /// Its name.
    pub name: String,
    /// Training images that are compared with.
    pub train: usize,
    /// Held-out images: those the oracle never saw, where that is known.
    pub held_out: usize,
    /// Whether the training images are, bit for bit, those the oracle was trained on; `None` where its record does not say.
    pub of_the_oracle: Option<bool>,
    /// What was done to get them.
    pub notes: Vec<String>,
}

impl Corpus {
    fn of(
        name: &str,
        (train, held_out): (&Dataset, &Dataset),
        of_the_oracle: Option<bool>,
        notes: Vec<String>,
    ) -> Self {
        Self { name: name.to_owned(), train: train.len(), held_out: held_out.len(), of_the_oracle, notes }
    }
}

/// The images, in the shape and with the classes of the world.
pub struct Real {
    /// What the oracle was trained on, or stands for it.
    pub train: Dataset,
    /// What it was not trained on.
    pub held_out: Dataset,
    /// What is to be said about them.
    pub corpus: Corpus,
}

/// A name for images with their labels.
pub fn name_of(images: &Dataset) -> String {
    let labels: Vec<u8> = images.labels.iter().flatten().flat_map(|label| label.to_le_bytes()).collect();
    fingerprint(&[&images.pixels, &labels])
}

impl Real {
    /// Opens the corpus of a validation.
    pub fn open(work: &Work<'_>) -> Result<Self> {
        let (spec, world) = (work.spec, work.world);
        let side = world.shape().width;
        let mut notes = Vec::new();
        let name = spec.data.file_name().unwrap_or(spec.data.as_os_str()).to_string_lossy();
        if spec.images == 0 {
            // Nothing is compared: held-out images are all that is needed.
            let held_out = fitted(world, open_dataset_within(&spec.data, Split::Test, Some(side))?, &mut notes)?;
            let train = held_out.subset([])?;
            return Ok(Self { corpus: Corpus::of(&name, (&train, &held_out), None, notes), train, held_out });
        }
        let (train, of_the_oracle) = trained_on(work, &mut notes)?;
        let (train, held_out) = match open_test_within(&spec.data, Some(side))? {
            Some(Input::Pixels(test)) => (train, fitted(world, test, &mut Vec::new())?),
            Some(Input::World(_)) => {
                return Err(Error::file(&spec.data, "its test part holds world-space tensors, not 8-bit images"));
            }
            None => {
                notes.push(format!(
                    "the corpus has no test part: a random {:.0} % of it is held out, which the oracle may have been trained on",
                    100.0 * HELD_OUT
                ));
                set_apart(&train, spec.seed)?
            }
        };
        let train = match spec.limit.filter(|&limit| limit < train.len()) {
            Some(limit) => {
                notes.push(format!("{limit} of {} training images, evenly spread", train.len()));
                train.subset((0..limit).map(|i| i * train.len() / limit))?
            }
            None => train,
        };
        for (what, set) in [("training", &train), ("held-out", &held_out)] {
            if set.len() < FEWEST {
                let n = set.len();
                return Err(Error::file(&spec.data, format!("has {n} {what} images; {FEWEST} are needed at least")));
            }
        }
        Ok(Self { corpus: Corpus::of(&name, (&train, &held_out), of_the_oracle, notes), train, held_out })
    }
}

/// The training part as the oracle's record describes it; as it is where there is no record, or another corpus was given.
fn trained_on(work: &Work<'_>, notes: &mut Vec<String>) -> Result<(Dataset, Option<bool>)> {
    let path = &work.spec.data;
    if let Some(record) = &work.info.training
        && let Ok((images, pixels_sha256)) = training_images(&record.spec, path)
        && pixels_sha256 == record.pixels_sha256
    {
        return Ok((images, Some(true)));
    }
    let images = fitted(work.world, open_dataset_within(path, Split::Train, Some(work.world.shape().width))?, notes)?;
    Ok((images, work.info.training.as_ref().map(|_| false)))
}

/// Images with the classes of the world, in its shape.
fn fitted(world: &World, images: Dataset, notes: &mut Vec<String>) -> Result<Dataset> {
    let names = world.class_names();
    let known = |name: &String| images.class_names.contains(name);
    let images = if images.labels.is_none() || images.class_names == names {
        images
    } else if names.iter().all(known) {
        let left = images.class_names.len() - names.len();
        notes.push(format!("{left} classes of the corpus are not the oracle's and were left out"));
        images.of_classes(names)?
    } else if images.class_names.len() <= names.len() {
        notes.push("classes of the corpus have other names than the oracle's and were matched by number".into());
        images
    } else {
        let (given, expected) = (images.class_names.join(", "), names.join(", "));
        return Err(Error::input(format!(
            "{}: its classes ({given}) are not those of the oracle ({expected})",
            images.name
        )));
    };
    world.fit(images)
}

/// A corpus cut in two at random.
fn set_apart(all: &Dataset, seed: Seed) -> Result<(Dataset, Dataset)> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.shuffle(&mut seed.split("held out").rng(0));
    let (held_out, train) = order.split_at((HELD_OUT * all.len() as f64) as usize);
    Ok((all.subset(train.iter().copied())?, all.subset(held_out.iter().copied())?))
}
