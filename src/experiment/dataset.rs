//! Images of a dataset in place of samples of the world, brought into it as `posterior` brings
//! them. The truth about them is the world's: exact for the tensors a classifier sees, an opinion
//! about the photographs behind them.

mod classes;
mod manifest;
mod record;
mod scored;
#[cfg(test)]
mod tests;

use std::path::Path;

use rand::seq::SliceRandom;
use sha2::{Digest, Sha256};

pub use self::classes::Mapped;
use self::classes::numbers_of;
pub use self::manifest::Manifest;
pub use self::record::{DataRecord, PartRecord};
use super::images::{Batch, Source};
use super::spec::ExperimentSpec;
use crate::data::{Dataset, ImageShape, InWorld, Input, Split, WorldBatch, has_test, in_world, open_split};
use crate::error::{Error, Result};
use crate::flow::preprocess::{Dequantisation, Preprocessing};
use crate::oracle::world::{Settings, World};
use crate::units::{ClassId, Seed};

/// Values hashed at a time.
const HASHED: usize = 1 << 14;
/// Number of the first test image in the noise. Training images count from 0, and no dataset has so many: no image to learn
/// and none to test on has the same noise.
const TEST_NOISE: usize = 1 << 31;

/// The images of an experiment that come from a dataset.
#[derive(Debug, Clone)]
pub struct Data {
    /// To train on.
    pub train: Part,
    /// To measure on; samples of the world where there are none.
    pub test: Option<Part>,
    /// Whether cells are measured on samples of the world, and on `test` beside them.
    pub both: bool,
}

/// Labelled images of a dataset, brought into a world when they are asked for.
#[derive(Debug, Clone)]
pub struct Part {
    shape: ImageShape,
    values: Values,
    labels: Vec<ClassId>,
    classes: usize,
    /// log p(x|y), [N, K], where the dataset's own are provably of this world at this τ, whatever π
    /// and T.
    logp: Option<Vec<f64>>,
    record: PartRecord,
}

#[derive(Debug, Clone)]
enum Values {
    World(Vec<f32>),
    /// As padded, a byte a value.
    Pixels(Vec<u8>, Preprocessing, Dequantisation),
}

/// Where images are to go.
struct Place<'a> {
    world: &'a World,
    settings: Settings,
    dequantise: Option<Dequantisation>,
}

impl Data {
    /// Opens the dataset of a spec, if it names one, for a world.
    ///
    /// # Errors
    /// Names what cannot be read, is not the file that was exported, has no labels, does not fit the
    /// world, has too few images for the spec, or tests on the training images.
    pub fn open(spec: &ExperimentSpec, world: &World) -> Result<Option<Self>> {
        let Some(data) = &spec.data else { return Ok(None) };
        let settings = spec.world.settings(world.class_names().len())?;
        let place = Place { world, settings, dequantise: data.dequantise };
        let part = |path, split, input| Part::new(&place, path, split, in_world(input, path, &world.home())?);
        let train = part(&data.train, Split::Train, open_split(&data.train, Split::Train, None)?)?;
        let test = match &data.test {
            Some(path) => Some((path, open_split(path, Split::Test, None)?)),
            None if has_test(&data.train)? => Some((&data.train, open_split(&data.train, Split::Test, None)?)),
            None => None,
        };
        let test = test.map(|(path, input)| part(path, Split::Test, input)).transpose()?;
        test.as_ref().map_or(Ok(()), |test| test.is_not(&train))?;
        enough(&train, spec.largest(), "grid.train_sizes", "training")?;
        let both = spec.experiment.tests_on_both();
        match &test {
            Some(test) => enough(test, spec.test.images, "test.images", "test")?,
            None if both => {
                return Err(Error::file(&data.train, "has no test images beside it: name some under data.test"));
            }
            None => {}
        }
        if spec.world.label_noise.is_some() {
            [Some(&train), test.as_ref()].into_iter().flatten().try_for_each(Part::has_the_noise)?;
        }
        Ok(Some(Self { train, test, both }))
    }

    /// What is written down about it.
    pub fn record(&self) -> DataRecord {
        let (train, test) = (self.train.record.clone(), self.test.as_ref().map(|test| test.record.clone()));
        DataRecord { train, test, both: self.both }
    }
}

/// Number of the first image of a split in the noise, where there is any.
fn noise_from(split: Split, how: Option<Dequantisation>) -> usize {
    let noisy = how.is_some_and(|how| how.seed().is_some());
    if noisy && split == Split::Test { TEST_NOISE } else { 0 }
}

fn enough(part: &Part, asked: usize, who: &str, what: &str) -> Result<()> {
    let there = part.len();
    if asked <= there {
        return Ok(());
    }
    Err(Error::file(&part.record.path, format!("has {there} {what} images, {who} asks for {asked}: lower it")))
}

impl Part {
    fn new(place: &Place<'_>, path: &Path, split: Split, read: InWorld) -> Result<Self> {
        let InWorld { input, note, .. } = read;
        let bad = |cause: String| Error::file(path, cause);
        let unlabelled = || {
            // Where the labels are another world's, the note says so.
            let why = note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
            bad(format!("its {split} images have no labels, and a classifier is told one for each{why}"))
        };
        let (world, manifest) = (place.world, Manifest::beside(path, split));
        manifest.as_ref().map_or(Ok(()), Manifest::check_archive)?;
        let names = match (&note, &manifest) {
            // Exported pictures of another world: labelled with the classes of this one.
            (Some(_), _) => world.class_names().to_vec(),
            (None, Some(manifest)) => manifest.class_names.clone(),
            (None, None) => Vec::new(),
        };
        let mut of_noise = None;
        let (shape, values, labels, names, counted, logp) = match input {
            Input::Pixels(images) => {
                let Dataset { shape, pixels, labels, class_names, noises, .. } =
                    world.fit(images).map_err(|e| bad(e.to_string()))?;
                let held = world.noise_held(&noises, &[path.to_owned(), path.join(split.to_string())]);
                let (how, said) = held.settled(place.dequantise, Dequantisation::default());
                of_noise = said;
                let labels = labels.ok_or_else(unlabelled)?;
                (shape, Values::Pixels(pixels, world.flow().pixels(), how), labels, class_names, None, None)
            }
            Input::World(WorldBatch { shape, x, classes, y, logp, .. }) => {
                let label =
                    |&y: &i64| usize::try_from(y).map_err(|_| bad(format!("has the label {y}; classes count from 0")));
                let labels = y.ok_or_else(unlabelled)?.iter().map(label).collect::<Result<Vec<_>>>()?;
                (shape, Values::World(x), labels, names, Some(classes).filter(|k| *k > 0), logp)
            }
        };
        if shape != world.shape() {
            return Err(bad(format!("its images are {shape}, this world's {}", world.shape())));
        }
        let (classes, numbers) = numbers_of(&names, counted, &labels, world.class_names()).map_err(bad)?;
        let labels: Vec<ClassId> = labels.into_iter().map(|label| numbers[label]).collect();
        // Stored likelihoods follow the dataset's own order of classes; in another order images are
        // scored anew.
        let ordered = numbers.iter().enumerate().all(|(i, k)| i == *k);
        let stored = matches!(values, Values::World(_)) && ordered;
        let proves = |manifest: &Manifest| manifest.proves_likelihoods(&world.home(), &place.settings);
        let proved = manifest.filter(|manifest| stored && proves(manifest));
        let logp = logp.filter(|_| proved.is_some());
        let of_this_world = proved.is_some_and(|manifest| manifest.has_labels_of(&place.settings));
        let dequantisation = match &values {
            Values::World(_) => None,
            Values::Pixels(_, _, how) => Some(*how),
        };
        let noise_from = noise_from(split, dequantisation);
        let (path, images) = (path.display().to_string(), labels.len());
        let (sha256, note) = (String::new(), of_noise);
        let record = PartRecord { path, images, sha256, dequantisation, noise_from, note, classes, of_this_world };
        let mut part = Self { shape, values, labels, classes: world.class_names().len(), logp, record };
        part.record.sha256 = part.hash();
        Ok(part)
    }

    /// Whether its labels were drawn by the world's label noise: posteriors are those of the noisy label.
    fn has_the_noise(&self) -> Result<()> {
        match self.record.of_this_world {
            true => Ok(()),
            false => Err(Error::file(
                &self.record.path,
                "its labels were not drawn by world.label_noise: export it from this world with --label-noise, or leave the noise out",
            )),
        }
    }

    /// Refuses test images that are those to train on, whatever their labels: a file that knows no splits is taken whole as
    /// either.
    fn is_not(&self, train: &Self) -> Result<()> {
        let same = match (&self.values, &train.values) {
            (Values::World(x), Values::World(other)) => x == other,
            (Values::Pixels(x, ..), Values::Pixels(other, ..)) => x == other,
            _ => false,
        };
        if !same {
            return Ok(());
        }
        let why = "its test images are the training images; name test images of their own under data.test";
        Err(Error::file(&self.record.path, why))
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether stored log-likelihoods are used: those of images before they were rounded to 32
    /// bits.
    pub fn has_likelihoods(&self) -> bool {
        self.logp.is_some()
    }

    /// The first `n` images in the random order of a seed: fewer of them are the first of these.
    pub fn order(&self, seed: Seed, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.shuffle(&mut seed.split("dataset").rng(0));
        order.truncate(n);
        order
    }

    fn hash(&self) -> String {
        let mut hash = Sha256::new();
        let ImageShape { channels, height, width } = self.shape;
        let numbers = [self.len(), channels, height, width, self.classes];
        numbers.iter().chain(&self.labels).for_each(|n| hash.update((*n as u64).to_le_bytes()));
        match &self.values {
            Values::World(x) => {
                hash.update("world-space");
                for x in x.chunks(HASHED) {
                    hash.update(x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
                }
            }
            Values::Pixels(pixels, ..) => {
                hash.update("pixels");
                hash.update(pixels);
            }
        }
        self.logp.iter().flatten().for_each(|v| hash.update(v.to_le_bytes()));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// World-space x of an image: the same in whatever batch it comes, with other noise than any image of the other split.
    fn x(&self, i: usize) -> Vec<f32> {
        self.drawn(i, None)
    }

    /// The same with another dequantisation, where there are pixels.
    fn drawn(&self, i: usize, other: Option<Dequantisation>) -> Vec<f32> {
        let dims = self.shape.dims();
        let part = i * dims..(i + 1) * dims;
        match &self.values {
            Values::World(x) => x[part].to_vec(),
            Values::Pixels(pixels, how_they_lie, how) => {
                how_they_lie.map_in(&pixels[part], dims, self.record.noise_from + i, other.unwrap_or(*how))
            }
        }
    }
}

impl Source for Part {
    fn take(&self, indices: &[usize]) -> Result<Batch> {
        Ok(Batch {
            x: indices.iter().flat_map(|&i| self.x(i)).collect(),
            labels: indices.iter().map(|&i| self.labels[i]).collect(),
            posterior: Vec::new(),
        })
    }
}
