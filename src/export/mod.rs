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
//! | `task` | what the window and the command line run |

mod arrays;
mod depth;
mod manifest;
mod parquet;
mod pictures;
mod pieces;
mod rounded;
mod task;

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::{
    Kind, Levels, Split, alone, bytes_within, is_vacant, joined, least_of_picture, nothing_else_in, range_of,
    read_bytes, room_for, write_atomically,
};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::Facts;
use crate::oracle::world::{Settings, World};
use crate::units::Seed;

pub use depth::{COSTLY_NATS, Depth, DepthCost, DepthCurve, depth_curve};
pub use manifest::{Manifest, SplitRecord};
pub use task::{ExportDataset, MeasureDepth};

use pieces::Pieces;

/// What was asked for, in the folder of an export from its first moment on.
const TICKET: &str = "export.json";
/// Where pieces lie until the dataset is complete.
const PARTS: &str = ".parts";
/// Held among them by who writes the dataset.
const LOCK: &str = "lock";

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

/// What the folder was begun with: another export does not go on in it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Ticket {
    weights_sha256: String,
    spec: ExportSpec,
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
    work.begin()?;
    let manifest = match Manifest::read(folder)? {
        Some(manifest) => manifest,
        None => work.make(events)?,
    };
    if let Err(error) = work.tidy() {
        tracing::warn!("the dataset is complete, but the pieces it was made of could not be removed: {error}");
    }
    Ok(manifest)
}

impl Work<'_> {
    /// The lock of who is at work in the folder.
    fn alone(&self) -> Result<File> {
        let lock = self.folder.join(PARTS).join(LOCK);
        alone(&lock, "another process is writing this dataset: wait for it, or stop it")
    }

    /// Draws what is missing, puts the files together, and writes `dataset.json`.
    fn make(&self, events: &mut dyn Events<ExportEvent>) -> Result<Manifest> {
        let parts = self.folder.join(PARTS);
        std::fs::create_dir_all(&parts).map_err(|e| Error::io(&parts, e))?;
        let _lock = self.alone()?;
        // Another process may have written the last file just before this one came in.
        if let Some(manifest) = Manifest::read(self.folder)? {
            return Ok(manifest);
        }
        self.room()?;
        for split in self.spec.splits() {
            Pieces::new(self, split).draw(events)?;
        }
        let pictures = self.pictures(events)?;
        let facts = self.facts(events)?;
        let mut manifest = Manifest::of(self, facts);
        for split in self.spec.splits() {
            manifest.splits.insert(split.to_string(), Pieces::new(self, split).record(&pictures)?);
        }
        for split in self.spec.splits() {
            let pieces = Pieces::new(self, split);
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
        let ranges = self.spec.splits().map(|split| Pieces::new(self, split).range());
        let range = ranges.collect::<Result<Vec<_>>>()?.into_iter().fold(range_of(&[]), joined);
        let levels = depths.into_iter().map(|bits| Levels::new(bits, range)).collect::<Result<Vec<_>>>()?;
        for split in self.spec.splits() {
            for levels in &levels {
                Pieces::new(self, split).round(*levels, events)?;
            }
        }
        Ok(levels)
    }

    /// Removes the pieces of a complete dataset: as large as itself, and of no more use.
    fn tidy(&self) -> Result<()> {
        let parts = self.folder.join(PARTS);
        if !parts.exists() {
            return Ok(());
        }
        // Not held while the folder goes: some systems do not remove what is open.
        self.alone().map(drop)?;
        std::fs::remove_dir_all(&parts).map_err(|e| Error::io(&parts, e))
    }

    /// Takes the folder: a new one, or one in which this very export was begun.
    fn begin(&self) -> Result<()> {
        let ticket = Ticket { weights_sha256: self.weights_sha256.to_owned(), spec: self.spec.clone() };
        let (folder, path) = (self.folder, self.folder.join(TICKET));
        nothing_else_in(folder, Some(Kind::Dataset))?;
        if !path.is_file() {
            // Refused before the folder is taken, so that it is free for a smaller one.
            self.room()?;
        }
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        if path.is_file() {
            let text = read_bytes(&path).map_err(|e| Error::io(&path, e))?;
            let found: Ticket = serde_json::from_slice(&text).map_err(|e| Error::file(&path, e.to_string()))?;
            if found != ticket {
                return Err(Error::file(folder, "holds another export; choose another folder, or delete this one"));
            }
        } else {
            if !is_vacant(folder, PARTS)? {
                return Err(Error::file(folder, "is not empty; choose a new folder for the dataset"));
            }
            let text = serde_json::to_vec_pretty(&ticket).map_err(|e| Error::file(&path, e.to_string()))?;
            write_atomically(&path, |out| out.write_all(&text))?;
        }
        Ok(())
    }

    /// Figures of the world, kept for the case that the export is stopped.
    fn facts(&self, events: &mut dyn Events<ExportEvent>) -> Result<Facts> {
        let path = self.folder.join(PARTS).join("facts.json");
        if let Ok(text) = read_bytes(&path)
            && let Ok(facts) = serde_json::from_slice(&text)
        {
            return Ok(facts);
        }
        let mut told = |progress| events.emit(ExportEvent { stage: Stage::Figures, progress });
        let facts = Facts::of(self.world, &self.spec.settings, self.spec.seed.split("figures"), &mut told)?;
        let text = serde_json::to_vec(&facts).map_err(|e| Error::file(&path, e.to_string()))?;
        write_atomically(&path, |out| out.write_all(&text))?;
        Ok(facts)
    }
}
