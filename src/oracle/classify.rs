//! Images from outside in a world: read, mapped in, scored.

use std::path::PathBuf;

use crate::data::{self, Dataset, Input, WorldBatch};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Scores;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::world::World;

/// Images as a world sees them, with their statistics: posteriors at any τ, T and π follow without another pass.
#[derive(Debug, Clone)]
pub struct Classified {
    /// Where they came from.
    pub name: String,
    /// A name for each.
    pub ids: Vec<String>,
    /// Labels, where the source has them.
    pub labels: Option<Vec<usize>>,
    /// World-space images, NCHW.
    pub x: Vec<f32>,
    /// Their statistics.
    pub scores: Scores,
}

/// Reads files or a folder. 8-bit images are zero-padded and dequantised (mid-point unless told otherwise); world-space
/// tensors are taken as they are.
///
/// # Errors
/// Names the file and the cause.
pub fn read_input(paths: &[PathBuf]) -> Result<Input> {
    match paths {
        [] => Err(Error::input("no file given")),
        [path] => data::open(path),
        files => data::read_image_files(files).map(Input::Pixels),
    }
}

/// Images mapped into a world, without statistics.
#[derive(Debug, Clone)]
pub struct Read {
    /// Where they came from.
    pub name: String,
    /// A name for each.
    pub ids: Vec<String>,
    /// Labels, where the source has them.
    pub labels: Option<Vec<usize>>,
    /// World-space images, NCHW.
    pub x: Vec<f32>,
}

impl World {
    /// Maps `input` into this world.
    ///
    /// # Errors
    /// When the images do not fit.
    pub fn read(&self, input: Input, how: Option<Dequantisation>) -> Result<Read> {
        match input {
            Input::Pixels(dataset) => {
                let Dataset { name, ids, labels, .. } = dataset.clone();
                Ok(Read { name, ids, labels, x: self.map_in(dataset, how)? })
            }
            Input::World(batch) => {
                self.fits(&batch)?;
                let ids = (0..batch.len()).map(|i| i.to_string()).collect();
                let label = |&y: &i64| usize::try_from(y).ok();
                let labels = batch.y.as_ref().and_then(|y| y.iter().map(label).collect());
                Ok(Read { name: "world-space images".into(), ids, labels, x: batch.x })
            }
        }
    }

    /// Maps `input` into this world and scores it, batch after batch.
    ///
    /// # Errors
    /// When the images do not fit, the device fails, or the caller stops.
    pub fn classify(
        &self,
        input: Input,
        how: Option<Dequantisation>,
        events: &mut dyn Events<Progress>,
    ) -> Result<Classified> {
        let Read { name, ids, labels, x } = self.read(input, how)?;
        let scores = self.score(&x, events)?;
        Ok(Classified { name, ids, labels, x, scores })
    }

    fn fits(&self, batch: &WorldBatch) -> Result<()> {
        if batch.shape == self.shape() {
            return Ok(());
        }
        Err(Error::input(format!("the images are {}, this world's are {}", batch.shape, self.shape())))
    }
}
