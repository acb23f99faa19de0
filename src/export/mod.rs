//! A dataset of a world to take away: images of it at one temperature with their exact posteriors, as arrays, as pictures, or both.
//!
//! The float tensors are the reference: for them alone posteriors are exact (theory §1). Pictures have 16 bits a value, which hardly
//! change a posterior, or 8, which may lose it: beside them stand the posteriors of the rounded images, and how far these are from the
//! exact ones.
//!
//! An export is made of pieces of a few thousand images, each written whole. A killed one goes on with the first piece that is missing;
//! the files of the dataset are put together at the end, piece by piece, so that no more than one is ever in memory. `dataset.json` is
//! written last: where it is, the dataset is complete.
//!
//! | file | what |
//! |---|---|
//! | `mod` | what is asked for, and the order of the work |
//! | `pieces` | images drawn and kept piece by piece |
//! | `rounded`, `depth` | pictures of samples and what rounding does to posteriors; the same over all depths |
//! | `arrays`, `parquet`, `pictures` | the files |
//! | `manifest` | `dataset.json` and the card beside it |

mod arrays;
mod depth;
mod manifest;
mod parquet;
mod pictures;
mod pieces;
mod rounded;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::{
    Kind, Levels, Split, Store, StoreKind, Ticket, bytes_within, joined, least_of_picture, range_of, room_for,
};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::Facts;
use crate::oracle::world::{Settings, World};
use crate::units::Seed;

pub use depth::{COSTLY_NATS, Depth, DepthCost, DepthCurve, depth_curve};
pub use manifest::{Manifest, SplitRecord};

use pieces::SplitImages;

/// What its pieces are kept for.
const EXPORT: StoreKind =
    StoreKind { ticket: "export.json", work: "export", result: "dataset", folder: Some(Kind::Dataset) };

/// A form in which a dataset is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `train.npz`, `test.npz`: float32 images, labels, exact posteriors. The reference.
    Npz,
    /// `train/CLASS/000123.png`: 8-bit pictures as torchvision's ImageFolder reads them.
    Png,
    /// `png16/train/CLASS/000123.png`: the same with 16 bits a value, which keep the posteriors.
    Png16,
    /// `parquet/train.parquet`: pictures as Hugging Face's `datasets` reads them: of 16 bits a value, unless 8-bit pictures alone are
    /// asked for beside it.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Npz, Self::Png16, Self::Parquet, Self::Png];

    /// The kinds of folders of pictures.
    pub(crate) const PNG: [Self; 2] = [Self::Png, Self::Png16];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npz => "npz",
            Self::Png => "png",
            Self::Png16 => "png16",
            Self::Parquet => "parquet",
        }
    }

    /// Bits of a value of its pictures, where they are its own choice.
    fn bits(self) -> Option<u32> {
        match self {
            Self::Png => Some(8),
            Self::Png16 => Some(16),
            Self::Npz | Self::Parquet => None,
        }
    }
}

/// A dataset to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportSpec {
    /// Name of a bundled oracle, an oracle folder or a checkpoint.
    pub oracle: String,
    /// Training images.
    pub train: usize,
    /// Test images.
    pub test: usize,
    /// The world's knobs.
    pub settings: Settings,
    /// Seed of classes, latents and labels; training and test images share nothing.
    pub seed: Seed,
    /// In which forms.
    pub formats: Vec<Format>,
}

impl ExportSpec {
    /// Images of a split.
    pub fn images(&self, split: Split) -> usize {
        match split {
            Split::Train => self.train,
            Split::Test => self.test,
        }
    }

    /// The splits that have images.
    fn splits(&self) -> impl Iterator<Item = Split> {
        [Split::Train, Split::Test].into_iter().filter(|split| self.images(*split) > 0)
    }

    /// Bits of a value in parquet files: as in the folders of pictures beside them, 16 where there is a choice.
    fn parquet_bits(&self) -> u32 {
        if self.has(Format::Png) && !self.has(Format::Png16) { 8 } else { 16 }
    }

    /// Bits of the pictures that are made, each once.
    pub fn depths(&self) -> Vec<u32> {
        let own = self.formats.iter().filter_map(|format| match format {
            Format::Parquet => Some(self.parquet_bits()),
            other => other.bits(),
        });
        own.collect::<std::collections::BTreeSet<u32>>().into_iter().collect()
    }

    /// Bytes that the dataset takes while it is made, at least, of images of `dims` values in `classes` classes: its arrays, and the
    /// pieces they are put together from, which go when it is complete.
    pub fn least_bytes(&self, dims: usize, classes: usize) -> u64 {
        let k = classes as u64;
        let arrays = 4 * dims as u64 + 12 * k + 16;
        let written = self.formats.iter().map(|format| match format {
            Format::Npz => arrays,
            Format::Png => least_of_picture(dims, 8),
            Format::Png16 => least_of_picture(dims, 16),
            Format::Parquet => least_of_picture(dims, self.parquet_bits()),
        });
        // Of pictures, the posteriors of the rounded images, twice.
        let rounded = self.depths().len() as u64 * 8 * k;
        let images = (self.train as u64).saturating_add(self.test as u64);
        images.saturating_mul(arrays + written.sum::<u64>() + rounded)
    }

    fn has(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    /// Whether it can be made.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        if self.train == 0 && self.test == 0 {
            return Err(Error::input("there is nothing to export: both --train and --test are 0"));
        }
        if self.formats.is_empty() {
            return Err(Error::input("choose a format at least: npz, png16, parquet or png"));
        }
        if self.settings.tau.get() == 0.0 {
            return Err(Error::input(
                "at τ = 0 every image of a class is the same and has no density: choose a τ above 0",
            ));
        }
        Ok(())
    }
}

/// What an export is doing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExportEvent {
    /// What.
    pub stage: Stage,
    /// How far with it.
    pub progress: Progress,
}

/// A part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "stage", content = "of")]
pub enum Stage {
    /// Images are drawn.
    Drawing(Split),
    /// Pictures of so many bits are made, and their posteriors computed.
    Rounding(Split, u32),
    /// The world's Bayes error and entropies are computed.
    Figures,
    /// Files are put together.
    Writing(Split, Format),
    /// Files are hashed.
    Hashing,
}

impl Stage {
    /// In words.
    pub fn label(self) -> String {
        match self {
            Self::Drawing(split) => format!("drawing {split} images"),
            Self::Rounding(split, bits) => format!("scoring {bits}-bit pictures of {split}"),
            Self::Figures => "computing the world's Bayes error".into(),
            Self::Writing(split, format) => format!("writing {split} as {}", format.name()),
            Self::Hashing => "hashing files".into(),
        }
    }
}

/// An export under way.
struct Work<'a> {
    world: &'a World,
    weights_sha256: &'a str,
    spec: &'a ExportSpec,
    folder: &'a Path,
}

/// Makes a dataset of a world in a folder, or goes on with one that was stopped there; a complete one is returned as it is.
///
/// # Errors
/// When the spec cannot be made in this world, the folder holds something else, the device or the disk fails, or the caller stops: then
/// nothing already computed is lost.
pub fn export(
    world: &World,
    weights_sha256: &str,
    spec: &ExportSpec,
    folder: &Path,
    events: &mut dyn Events<ExportEvent>,
) -> Result<Manifest> {
    spec.validate()?;
    let work = Work { world, weights_sha256, spec, folder };
    let store = work.begin()?;
    let manifest = match Manifest::read(folder)? {
        Some(manifest) => manifest,
        None => work.make(&store, events)?,
    };
    // As large as the dataset itself, and of no more use.
    store.finish();
    Ok(manifest)
}

impl Work<'_> {
    /// Takes the folder: a new one, or one in which this very export was begun.
    fn begin(&self) -> Result<Store> {
        if !EXPORT.is_begun(self.folder) {
            // Refused before the folder is taken, so that it is free for a smaller one.
            self.room()?;
        }
        let ticket = Ticket { weights_sha256: self.weights_sha256.to_owned(), spec: self.spec.clone() };
        Store::begin(self.folder, &EXPORT, &ticket)
    }

    /// Draws what is missing, puts the files together, and writes `dataset.json`.
    fn make(&self, store: &Store, events: &mut dyn Events<ExportEvent>) -> Result<Manifest> {
        let _lock = store.lock()?;
        // Another process may have written the last file just before this one came in.
        if let Some(manifest) = Manifest::read(self.folder)? {
            return Ok(manifest);
        }
        self.room()?;
        for split in self.spec.splits() {
            SplitImages::new(self, split).draw(events)?;
        }
        let pictures = self.pictures(events)?;
        let facts = store.value("facts.json", || {
            let mut told = |progress| events.emit(ExportEvent { stage: Stage::Figures, progress });
            Facts::of(self.world, &self.spec.settings, self.spec.seed.split("figures"), &mut told)
        })?;
        let mut manifest = Manifest::of(self, facts);
        for split in self.spec.splits() {
            manifest.splits.insert(split.to_string(), SplitImages::new(self, split).record(&pictures)?);
        }
        for split in self.spec.splits() {
            let pieces = SplitImages::new(self, split);
            let written = self.spec.formats.iter().map(|&format| match format {
                Format::Npz => arrays::write(&pieces, events),
                Format::Png | Format::Png16 => pictures::list(&pieces, format, events),
                Format::Parquet => {
                    let bits = self.spec.parquet_bits();
                    let levels = pictures.iter().find(|levels| levels.bits == bits);
                    let costly = manifest.is_costly(bits);
                    levels.map_or(Ok(Vec::new()), |levels| parquet::write(&pieces, *levels, costly, events))
                }
            });
            let mut names: Vec<String> = written.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
            for levels in &pictures {
                names.push(arrays::write_rounded(&pieces, levels.bits, manifest.is_costly(levels.bits))?);
            }
            manifest.hash(self, names.into_iter(), events)?;
        }
        manifest.write(self.folder)?;
        Ok(manifest)
    }

    /// Whether the disk holds what is still to be written.
    fn room(&self) -> Result<()> {
        let needed = self.spec.least_bytes(self.world.shape().dims(), self.world.class_names().len());
        room_for(self.folder, needed.saturating_sub(bytes_within(self.folder)))
    }

    /// Makes the pictures of every split and depth, over the range of all values.
    fn pictures(&self, events: &mut dyn Events<ExportEvent>) -> Result<Vec<Levels>> {
        let depths = self.spec.depths();
        if depths.is_empty() {
            return Ok(Vec::new());
        }
        let ranges = self.spec.splits().map(|split| SplitImages::new(self, split).range());
        let range = ranges.collect::<Result<Vec<_>>>()?.into_iter().fold(range_of(&[]), joined);
        let levels = depths.into_iter().map(|bits| Levels::new(bits, range)).collect::<Result<Vec<_>>>()?;
        for split in self.spec.splits() {
            for levels in &levels {
                SplitImages::new(self, split).round(*levels, events)?;
            }
        }
        Ok(levels)
    }
}
