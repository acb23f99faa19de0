//! Images from outside in a world: read, mapped in, scored.

use std::path::PathBuf;

use crate::data::{self, Dataset, Input, WorldBatch};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Scores;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::cells::{CellEstimate, estimate};
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Settings, World};

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
    /// Statistics of the further draws of `mean:R`.
    pub further: Vec<Scores>,
    /// How pixels were dequantised; nothing where x was given.
    pub dequantisation: Option<Dequantisation>,
}

impl Classified {
    /// The posterior of image `i` in `world`; over several draws the estimate for its pixels, and how far that holds.
    pub fn posterior(&self, world: &World, i: usize, settings: &Settings) -> (Posterior, Option<CellEstimate>) {
        if self.further.is_empty() {
            return (world.posterior(&self.scores, i, settings), None);
        }
        let of = |scores: &Scores| scores.log_likelihoods(i, settings.tau);
        let draws: Vec<Vec<f64>> = std::iter::once(&self.scores).chain(&self.further).map(of).collect();
        let (posterior, cell) = estimate(&draws, settings);
        (posterior, Some(cell))
    }
}

/// Reads files or a folder. 8-bit images are zero-padded and dequantised as told; world-space
/// tensors are taken as they are.
///
/// # Errors
/// Names the file and the cause.
pub fn read_input(paths: &[PathBuf]) -> Result<Input> {
    match paths {
        [] => Err(Error::input("no file given")),
        [path] => data::open(path),
        files => data::read_image_files(files, None).map(Input::Pixels),
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
    /// How pixels were dequantised; nothing where x was given.
    pub dequantisation: Option<Dequantisation>,
}

impl World {
    /// Maps `input` into this world.
    ///
    /// # Errors
    /// When the images do not fit.
    pub fn read(&self, input: Input, how: Dequantisation) -> Result<Read> {
        match input {
            Input::Pixels(dataset) => {
                let Dataset { name, ids, labels, .. } = dataset.clone();
                Ok(Read { name, ids, labels, x: self.map_in(dataset, how)?, dequantisation: Some(how) })
            }
            Input::World(batch) => {
                self.fits(&batch)?;
                let ids = (0..batch.len()).map(|i| i.to_string()).collect();
                let label = |&y: &i64| usize::try_from(y).ok();
                let labels = batch.y.as_ref().and_then(|y| y.iter().map(label).collect());
                Ok(Read { name: "world-space images".into(), ids, labels, x: batch.x, dequantisation: None })
            }
        }
    }

    /// Maps `input` into this world and scores it, batch after batch; pixels as often as `how` has draws.
    ///
    /// # Errors
    /// When the images do not fit, the device fails, or the caller stops.
    pub fn classify(&self, input: Input, how: Dequantisation, events: &mut dyn Events<Progress>) -> Result<Classified> {
        let pixels = match &input {
            Input::Pixels(dataset) if how.further().next().is_some() => Some(dataset.clone()),
            _ => None,
        };
        let Read { name, ids, labels, x, dequantisation } = self.read(input, how)?;
        let scores = self.score(&x, events)?;
        let mut further = Vec::new();
        if let Some(pixels) = pixels {
            for draw in how.further() {
                further.push(self.score(&self.map_in(pixels.clone(), draw)?, events)?);
            }
        }
        Ok(Classified { name, ids, labels, x, scores, further, dequantisation })
    }

    fn fits(&self, batch: &WorldBatch) -> Result<()> {
        if batch.shape == self.shape() {
            return Ok(());
        }
        Err(Error::input(format!("the images are {}, this world's are {}", batch.shape, self.shape())))
    }
}
