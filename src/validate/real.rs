//! The real images of a validation: those the oracle was trained on, where they are known, and
//! held-out ones. Image files larger than the world's images are scaled down while they are read, as far as they
//! were for its training.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use rand::seq::SliceRandom;
use serde::Serialize;

use super::pieces::fingerprint;
use super::reshaped::reshaped;
use super::{FEWEST, Work};
use crate::data::{ClassMap, Dataset, Split, listed, open_dataset, open_test};
use crate::error::{Error, Result};
use crate::flow::preprocess::{Dequantisation, Preprocessing};
use crate::oracle::folder::OracleInfo;
use crate::oracle::train::{Form, training_images};
use crate::oracle::world::World;
use crate::units::Seed;

/// Share of a corpus without a test part that is held out.
const HELD_OUT: f64 = 0.2;
/// Images that get their noise together: as numbers they take four times the room.
const PIECE: usize = 512;
/// Name of the seed of the noise of training images.
const NOISE: &str = "noise of training images";

/// What the real images are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Corpus {
    /// Its name.
    pub name: String,
    /// Training images that are compared with; 0 where nothing is compared and they were not read.
    pub train: usize,
    /// Held-out images: those of the test part, otherwise those that the notes tell of.
    pub held_out: usize,
    /// Whether the training images are exactly the oracle's; `None` where its record is silent, or they were not read.
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

    /// Whether the training images are the oracle's, as a sentence.
    pub fn sentence(&self) -> &'static str {
        match self.of_the_oracle {
            _ if self.train == 0 => "Nothing is compared with the training images: they were not read.",
            Some(true) => "The training images are, bit for bit, those the oracle was trained on.",
            Some(false) => {
                "The training images are not those the oracle was trained on: distances to them say nothing about copies."
            }
            None => "The oracle has no record of its training images; whether these are the same cannot be told.",
        }
    }
}

/// The images, in the shape and with the classes of the world.
pub struct Real {
    /// What the oracle was trained on, or stands for it.
    pub train: Dataset,
    /// Images it was not trained on, as far as its corpus has such a part: the notes tell.
    pub held_out: Dataset,
    /// How the pixels of the training images become real numbers.
    pub train_how: Dequantisation,
    /// How those of the held-out images do.
    pub held_out_how: Dequantisation,
    /// What they are.
    pub corpus: Corpus,
}

/// The test part of a corpus.
pub struct TestPart {
    /// Its images, in the shape and with the classes of the world.
    pub images: Dataset,
    /// Whether the corpus has such a part: one that knows no parts is taken whole.
    pub is_part: bool,
    /// How their pixels become real numbers.
    pub how: Dequantisation,
}

/// A name for images with their labels, and for the numbers that their pixels become with the seed of the validation.
pub fn name_of_values(images: &Dataset, how: Dequantisation) -> String {
    let held = if how == Dequantisation::Levels { "-levels" } else { "" };
    name_of(images) + held
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
        let (place, mut notes) = ((spec.data.as_path(), spec.seed), Vec::new());
        let name = spec.data.file_name().unwrap_or(spec.data.as_os_str()).to_string_lossy();
        if spec.images == 0 {
            // Nothing is compared: held-out images are all that is needed.
            let TestPart { images: held_out, how, .. } = test_part(world, work.info, place, &mut notes)?;
            let train = held_out.subset([])?;
            let corpus = Corpus::of(&name, (&train, &held_out), None, notes);
            return Ok(Self { corpus, train, held_out, train_how: how, held_out_how: how });
        }
        let (train, of_the_oracle) = trained_on(work, &mut notes)?;
        let train_how = dequantised(world, (&train, Split::Train), place, &mut notes);
        let (train, held_out, held_out_how) = match open_test(&spec.data, side(world, work.info))? {
            Some(test) => {
                let test = fitted((world, work.info), test, &mut notes)?;
                let how = dequantised(world, (&test, Split::Test), place, &mut notes);
                (train, test, how)
            }
            None => {
                let known = if of_the_oracle == Some(true) { "was" } else { "may have been" };
                notes.push(format!(
                    "the corpus has no test part: a random {:.0} % of it is held out, which the oracle {known} trained on",
                    100.0 * HELD_OUT
                ));
                let (train, held_out) = split_held_out(&train, spec.seed)?;
                (train, held_out, train_how)
            }
        };
        let train = match spec.limit.filter(|&limit| limit < train.len()) {
            Some(limit) => {
                notes.push(format!("{limit} of {} training images, evenly spread", train.len()));
                train.spread(limit)?
            }
            None => train,
        };
        for (what, set) in [("training", &train), ("held-out", &held_out)] {
            if set.len() < FEWEST {
                let n = set.len();
                return Err(Error::file(&spec.data, format!("has {n} {what} images; {FEWEST} are needed at least")));
            }
        }
        let corpus = Corpus::of(&name, (&train, &held_out), of_the_oracle, notes);
        Ok(Self { corpus, train, held_out, train_how, held_out_how })
    }

    /// The same images as the world has them, with its noise; none where they need no change.
    pub fn noisy(&self, work: &Work<'_>) -> Option<Self> {
        let Self { train_how, held_out_how, .. } = *self;
        let train = noisy(work.world, &self.train, named(work, train_how, NOISE))?;
        let held_out = noisy(work.world, &self.held_out, named(work, held_out_how, "noise of held-out images"))?;
        Some(Self { train, held_out, train_how, held_out_how, corpus: self.corpus.clone() })
    }

    /// Some of these training images in a form, as the world has them: pixels, NCHW. Every form has noise of its own, that of
    /// images as they are is the one of [`Self::noisy`].
    pub fn in_form(&self, work: &Work<'_>, form: Form, range: Range<usize>) -> Vec<u8> {
        let (train, first) = (&self.train, range.start);
        let pixels = range.map(|i| form.of(train.image(i), train.shape)).collect::<Vec<_>>().concat();
        let how = match named(work, self.train_how, NOISE) {
            Dequantisation::Seeded(seed) if form != Form::default() => {
                Dequantisation::Seeded(seed.split(&form.to_string()))
            }
            how => how,
        };
        noised(work.world, &pixels, first, how).unwrap_or(pixels)
    }
}

/// How pixels become real numbers with noise of a name of its own, unless they hold the world's.
fn named(work: &Work<'_>, how: Dequantisation, name: &str) -> Dequantisation {
    match how {
        Dequantisation::Levels => how,
        _ => Dequantisation::Seeded(work.spec.seed.split(name)),
    }
}

/// Images as the world has them: with its noise, where its images have Gaussian noise; none where they
/// need no change. Without it every figure of samples would tell nothing but that files have no noise.
/// Uniform dequantisation changes no level, and no more does that of pictures that hold the noise.
fn noisy(world: &World, images: &Dataset, how: Dequantisation) -> Option<Dataset> {
    Some(Dataset { pixels: noised(world, &images.pixels, 0, how)?, ..images.clone() })
}

/// [`noisy`] of pixels, NCHW, from the `first` image of their set on, which counts in the noise.
pub fn noised(world: &World, pixels: &[u8], first: usize, how: Dequantisation) -> Option<Vec<u8>> {
    let taken = world.flow().pixels();
    if !matches!(taken, Preprocessing::Gaussian { .. }) {
        return None;
    }
    let dims = world.shape().dims();
    let piece = |(i, images)| taken.picture(&taken.map_in(images, dims, first + i * PIECE, how));
    Some(pixels.chunks(PIECE * dims).enumerate().flat_map(piece).collect())
}

/// Side to which larger image files are scaled: that of the oracle's training, which may leave a border inside the
/// world's images.
fn side(world: &World, info: &OracleInfo) -> Option<usize> {
    let width = world.shape().width;
    let asked = info.training.as_ref().and_then(|record| record.spec.data.resize);
    Some(asked.map_or(width, |side| side.min(width)))
}

/// How the pixels of images become real numbers: with the noise of a seed, unless they hold the world's.
fn dequantised(
    world: &World,
    (images, split): (&Dataset, Split),
    (data, seed): (&Path, Seed),
    notes: &mut Vec<String>,
) -> Dequantisation {
    let held = world.noise_held(&images.noises, &[data.to_owned(), data.join(split.to_string())]);
    let (how, said) = held.settled(None, Dequantisation::Seeded(seed));
    let levels = (how == Dequantisation::Levels).then(|| format!("8-bit pixels {}", how.describe()));
    notes.extend(levels.into_iter().chain(said).map(|note| format!("{}: {note}", images.name)));
    how
}

/// The test part of a corpus, with the noise of a seed, unless it holds the world's.
pub fn test_part(
    world: &World,
    info: &OracleInfo,
    (data, seed): (&Path, Seed),
    notes: &mut Vec<String>,
) -> Result<TestPart> {
    let side = side(world, info);
    let (images, is_part) = match open_test(data, side)? {
        Some(images) => (images, true),
        None => (open_dataset(data, Split::Test, side)?, false),
    };
    let images = fitted((world, info), images, notes)?;
    if !is_part {
        notes.push("the corpus has no test part and was taken whole: the oracle may have been trained on it".into());
    }
    let how = dequantised(world, (&images, Split::Test), (data, seed), notes);
    Ok(TestPart { images, is_part, how })
}

/// The training part as the oracle's record describes it, if there is one for this corpus.
fn trained_on(work: &Work<'_>, notes: &mut Vec<String>) -> Result<(Dataset, Option<bool>)> {
    let path = &work.spec.data;
    if let Some(record) = &work.info.training
        && let Ok((images, pixels_sha256)) = training_images(&record.spec, path)
        && pixels_sha256 == record.pixels_sha256
    {
        let images = if record.spec.data.bootstrap.is_some() { once(&images, notes)? } else { images };
        return Ok((images, Some(true)));
    }
    let images = open_dataset(path, Split::Train, side(work.world, work.info))?;
    let images = fitted((work.world, work.info), images, notes)?;
    Ok((images, work.info.training.as_ref().map(|_| false)))
}

/// The images that a bootstrap drew, each once. An image that was drawn several times would be held out and lie among the
/// training images as well, at distance 0; and it would be its own nearest neighbours.
fn once(drawn: &Dataset, notes: &mut Vec<String>) -> Result<Dataset> {
    let mut seen = HashSet::new();
    // Names alone need not be unique in a corpus.
    let first: Vec<usize> = (0..drawn.len()).filter(|&i| seen.insert((&drawn.ids[i], drawn.image(i)))).collect();
    notes.push(format!(
        "the oracle was trained on {} draws with replacement of {} different images: each of these counts once",
        drawn.len(),
        first.len()
    ));
    drawn.subset(first)
}

/// Images in the world's shape with its classes, matched by name, else by number.
fn fitted((world, info): (&World, &OracleInfo), images: Dataset, notes: &mut Vec<String>) -> Result<Dataset> {
    let resize = info.training.as_ref().and_then(|record| record.spec.data.resize);
    notes.extend(reshaped(&images, world.shape(), resize));
    let names = world.class_names();
    if images.labels.is_none() || images.class_names == names {
        return world.fit(images);
    }
    world.fit(matched(&images, names, notes)?)
}

/// The images of the classes `names`, in their order.
fn matched(images: &Dataset, names: &[String], notes: &mut Vec<String>) -> Result<Dataset> {
    let (name, theirs) = (&images.name, &images.class_names);
    let map = ClassMap::of(theirs, names).ok_or_else(|| unknown_classes(images, names))?;
    if !map.by_name {
        notes.push(format!("{name}: classes have other names than the oracle's and were matched by number"));
        return map.among(images, names);
    }
    let left_out: Vec<String> =
        theirs.iter().zip(&map.numbers).filter(|(_, number)| number.is_none()).map(|(name, _)| name.clone()).collect();
    let absent = |(i, _): &(usize, &String)| !map.numbers.contains(&Some(*i));
    let absent: Vec<String> = names.iter().enumerate().filter(absent).map(|(_, name)| name.clone()).collect();
    if !left_out.is_empty() {
        notes.push(format!("{name}: classes that are not the oracle's were left out: {}", listed(&left_out)));
    }
    if !absent.is_empty() {
        notes.push(format!("{name}: of these classes of the oracle there is no image: {}", listed(&absent)));
    }
    map.among(images, names)
}

fn unknown_classes(images: &Dataset, names: &[String]) -> Error {
    let (given, expected) = (listed(&images.class_names), listed(names));
    Error::input(format!("{}: its classes ({given}) are not those of the oracle ({expected})", images.name))
}

/// A corpus cut in two at random.
fn split_held_out(all: &Dataset, seed: Seed) -> Result<(Dataset, Dataset)> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.shuffle(&mut seed.split("held out").rng(0));
    let (held_out, train) = order.split_at((HELD_OUT * all.len() as f64) as usize);
    Ok((all.subset(train.iter().copied())?, all.subset(held_out.iter().copied())?))
}

#[cfg(test)]
mod tests;
