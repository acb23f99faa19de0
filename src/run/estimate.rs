//! How long a run will take, from a few steps of every classifier.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::execute::Computer;
use super::folder::{Planned, RunFolder};
use crate::classifier::{Architecture, ClassifierConfig, Trainee};
use crate::error::Result;
use crate::units::Seed;

/// How long a run will take, by architecture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Network.
    pub architecture: Architecture,
    /// Trained numbers.
    pub parameters: usize,
    /// Cells not finished.
    pub cells: usize,
    /// Their optimisation steps.
    pub steps: usize,
    /// Seconds of one step, measured.
    pub step_secs: f64,
    /// Seconds of them all; drawing and measuring are not counted.
    pub seconds: f64,
}

/// Times a few steps of every architecture on images of zeros, and adds up what the unfinished cells need.
///
/// # Errors
/// When a network does not fit the images, or the device fails.
pub fn estimate(folder: &RunFolder, computer: &Computer<'_>) -> Result<Vec<Estimate>> {
    const WARM: usize = 1;
    const TIMED: usize = 2;
    let spec = &folder.spec;
    let (shape, classes) = (computer.world.shape(), computer.world.class_names().len());
    let mut estimates = Vec::new();
    for &architecture in &spec.grid.architectures {
        let training = spec.training_of(architecture)?;
        let config = ClassifierConfig { architecture, shape, classes, resize: training.resize };
        let mut trainee = Trainee::new(&config, &training, Seed(0), computer.device)?;
        let images = vec![0.0; training.batch * shape.dims()];
        let targets = vec![1.0 / classes as f32; training.batch * classes];
        let mut timed = Duration::ZERO;
        for step in 0..WARM + TIMED {
            let started = Instant::now();
            trainee.step(&images, &targets, 0.0, step)?;
            if step >= WARM {
                timed += started.elapsed();
            }
        }
        let mut steps = Vec::new();
        for Planned { id, cell, .. } in folder.plan.iter().filter(|planned| planned.cell.architecture == architecture) {
            if !folder.finished(id) {
                steps.push(spec.steps(cell)?);
            }
        }
        let step_secs = timed.as_secs_f64() / TIMED as f64;
        let (cells, steps) = (steps.len(), steps.iter().sum::<usize>());
        let parameters = trainee.classifier().parameters();
        estimates.push(Estimate {
            architecture,
            parameters,
            cells,
            steps,
            step_secs,
            seconds: step_secs * steps as f64,
        });
    }
    Ok(estimates)
}
