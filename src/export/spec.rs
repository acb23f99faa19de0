//! Spec and events of an export, and its working state.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bayes::sampling::Cache;
use crate::data::{Split, least_png_size};
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::flow::Precision;
use crate::oracle::folder::OracleInfo;
use crate::oracle::world::{Settings, World};
use crate::units::Seed;

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
    /// `parquet/train.parquet`: pictures for Hugging Face's `datasets`, of 16 bits a value unless
    /// only 8-bit pictures are requested beside it.
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
    pub(super) fn bits(self) -> Option<u32> {
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
    /// Arithmetic of the passes.
    #[serde(default, skip_serializing_if = "Precision::is_usual")]
    pub precision: Precision,
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
    pub(super) fn splits(&self) -> impl Iterator<Item = Split> {
        [Split::Train, Split::Test].into_iter().filter(|split| self.images(*split) > 0)
    }

    /// Bits of a value in parquet files: as in the pictures beside them, else 16.
    pub(super) fn parquet_bits(&self) -> u32 {
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

    /// Least bytes that the dataset takes while it is made, of images of `dims` values in `classes`
    /// classes: its arrays and its pieces, which are removed when it is complete.
    pub fn least_bytes(&self, dims: usize, classes: usize) -> u64 {
        let k = classes as u64;
        let arrays = 4 * dims as u64 + 12 * k + 16;
        let written = self.formats.iter().map(|format| match format {
            Format::Npz => arrays,
            Format::Png => least_png_size(dims, 8),
            Format::Png16 => least_png_size(dims, 16),
            Format::Parquet => least_png_size(dims, self.parquet_bits()),
        });
        // Of pictures, the posteriors of the rounded images, twice.
        let rounded = self.depths().len() as u64 * 8 * k;
        let images = (self.train as u64).saturating_add(self.test as u64);
        images.saturating_mul(arrays + written.sum::<u64>() + rounded)
    }

    pub(super) fn has(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    /// Checks the spec.
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
        self.settings.check_density()
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
    /// The stage as shown beside its progress.
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

/// Where draws for the figures of a world are kept.
pub struct KeptDraws<'a> {
    /// The cache; one that keeps nothing where passes are not of 32 bits.
    pub cache: &'a Cache,
    /// The device in words.
    pub device: &'a str,
}

/// An export under way.
pub(super) struct Work<'a> {
    pub world: &'a World,
    pub info: &'a OracleInfo,
    pub spec: &'a ExportSpec,
    pub folder: &'a Path,
    pub kept: &'a KeptDraws<'a>,
}
