//! The images of a job, asked for a range at a time.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::job::InputRecord;
use crate::data::{Dataset, Input, NpzImages};
use crate::error::{Error, Result};
use crate::flow::preprocess::Dequantisation;
use crate::oracle::pictures::{Fits, Reading, no_pixels, refuse_fit, summary};
use crate::oracle::world::World;

/// Images read at a time where all of them are read.
const BLOCK: usize = 256;

/// Images of a job: world-space x streamed from an npz archive, or 8-bit pixels held as they are (a
/// byte a value) and mapped in when they are asked for, each with its own noise whatever the range.
#[derive(Debug)]
pub struct Images {
    name: String,
    source: Source,
    /// What was done to pictures.
    fitted: Option<String>,
    /// Their identity, computed on demand: reading them all takes long.
    record: OnceLock<InputRecord>,
}

#[derive(Debug)]
enum Source {
    World(NpzImages),
    Pixels(Dataset, Dequantisation),
}

impl Images {
    /// Opens files or a folder as images of `world`; pictures are fitted, and pixels are dequantised
    /// as asked for, of several draws the first. What is to be done to pictures is refused for other images, and what is to be
    /// done to pixels where there are none.
    ///
    /// # Errors
    /// Names the file and the cause, or the shapes that do not fit.
    pub fn open(paths: &[PathBuf], fits: &Fits, asked: Option<Dequantisation>, world: &World) -> Result<Self> {
        let name = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
        let npz = |path: &PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"));
        if let [path] = paths
            && npz(path)
            && let Some(images) = NpzImages::open(path)?
        {
            refuse_fit(path, fits)?;
            if let Some(how) = asked {
                return Err(no_pixels(how));
            }
            if images.shape() != world.shape() {
                let (theirs, ours) = (images.shape(), world.shape());
                return Err(Error::input(format!("{name}: the images are {theirs}, this world's are {ours}")));
            }
            return Ok(Self { name, source: Source::World(images), fitted: None, record: OnceLock::new() });
        }
        let (Reading { input, pictures, .. }, how) = world.read_files(paths, fits)?.settled(asked)?;
        match input {
            Input::Pixels(dataset) => {
                let (source, fitted) = (Source::Pixels(world.fit(dataset)?, how), summary(&pictures));
                Ok(Self { name, source, fitted, record: OnceLock::new() })
            }
            Input::World(_) => {
                let way = "name their .npz file (train.npz or test.npz of an exported dataset)";
                Err(Error::input(format!(
                    "{name}: these are images in world space, which are read from one archive here: {way}"
                )))
            }
        }
    }

    /// What they were read from.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        match &self.source {
            Source::World(images) => images.len(),
            Source::Pixels(dataset, _) => dataset.len(),
        }
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// World-space x of a range within 0..[`Self::len`], NCHW.
    ///
    /// # Errors
    /// When a file cannot be read on, or holds values that are not finite.
    pub fn x(&self, range: Range<usize>, world: &World) -> Result<Vec<f32>> {
        match &self.source {
            Source::World(images) => images.read(range),
            Source::Pixels(dataset, how) => {
                let dims = world.shape().dims();
                let pixels = &dataset.pixels[range.start * dims..range.end * dims];
                Ok(world.flow().pixels().map_in(pixels, dims, range.start, *how))
            }
        }
    }

    /// What identifies these images: reads all of them once.
    ///
    /// # Errors
    /// As [`Self::x`], and when an archive is damaged.
    pub fn record(&self) -> Result<InputRecord> {
        if let Some(record) = self.record.get() {
            return Ok(record.clone());
        }
        let record = self.hashed()?;
        Ok(self.record.get_or_init(|| record).clone())
    }

    fn hashed(&self) -> Result<InputRecord> {
        let mut hash = Sha256::new();
        let (kind, dequantisation) = match &self.source {
            Source::Pixels(dataset, how) => {
                hash.update(&dataset.pixels);
                ("pixels", Some(*how))
            }
            Source::World(images) => {
                images.verify()?;
                for first in (0..images.len()).step_by(BLOCK) {
                    let x = images.read(first..images.len().min(first + BLOCK))?;
                    hash.update(x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
                }
                ("world-space", None)
            }
        };
        Ok(InputRecord {
            name: self.name.clone(),
            images: self.len(),
            kind: kind.into(),
            sha256: hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            dequantisation,
            fitted: self.fitted.clone(),
        })
    }
}
