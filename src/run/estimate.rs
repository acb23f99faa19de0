//! How long a run will take, from a few steps of every classifier.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::cells::Run;
use super::execute::RunContext;
use super::folder::RunFolder;
use crate::classifier::{Architecture, ClassifierConfig, Trainee, TrainingSpec};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::experiment::{Cell, ExperimentSpec};
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
    /// Seconds of one step on the images that a step of its largest unfinished cell has, measured.
    pub step_secs: f64,
    /// Seconds of them all, at most; drawing and measuring are not counted.
    pub seconds: f64,
}

/// Steps that warm the device up, and those that are timed.
const WARM: usize = 1;
const TIMED: usize = 2;

/// Times a few steps of every architecture with unfinished cells, on images of zeros, and adds up
/// what these cells need. Every step is reported.
///
/// # Errors
/// When a network does not fit the images, the device fails, or the caller stops.
pub fn estimate(
    folder: &RunFolder,
    context: &RunContext<'_>,
    events: &mut dyn Events<Progress>,
) -> Result<Vec<Estimate>> {
    let spec = &folder.spec;
    let left = |architecture: &Architecture| -> Vec<&Cell> {
        let of = folder.plan.iter().filter(|planned| planned.cell.architecture == *architecture);
        of.filter(|planned| !folder.finished(&planned.id)).map(|planned| &planned.cell).collect()
    };
    let left = spec.grid.architectures.iter().map(|architecture| (*architecture, left(architecture)));
    let left: Vec<(Architecture, Vec<&Cell>)> = left.filter(|(_, cells)| !cells.is_empty()).collect();
    let total = left.len() * (WARM + TIMED);
    let mut estimates = Vec::new();
    for (i, (architecture, cells)) in left.iter().enumerate() {
        let done = i * (WARM + TIMED);
        let mut told = |step: usize| events.report(Progress { done: done + step, total });
        let (parameters, step_secs) = time(spec, *architecture, cells, context, &mut told)?;
        let steps = cells.iter().map(|cell| spec.steps(cell)).sum::<Result<usize>>()?;
        estimates.push(Estimate {
            architecture: *architecture,
            parameters,
            cells: cells.len(),
            steps,
            step_secs,
            seconds: step_secs * steps as f64,
        });
    }
    Ok(estimates)
}

/// Trained numbers of an architecture, and the mean seconds of a step of its largest cell; `told`
/// gets the number of every step.
fn time(
    spec: &ExperimentSpec,
    architecture: Architecture,
    cells: &[&Cell],
    context: &RunContext<'_>,
    told: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<(usize, f64)> {
    let (training, n) = largest_step(spec, architecture, cells)?;
    let (shape, classes) = (context.world.shape(), context.world.class_names().len());
    let config = ClassifierConfig { architecture, shape, classes, resize: training.resize };
    let mut trainee = Trainee::new(&config, &training, Seed(0), context.device)?;
    let (images, targets) = (vec![0.0; n * shape.dims()], vec![1.0 / classes as f32; n * classes]);
    let mut timed = Duration::ZERO;
    for step in 0..WARM + TIMED {
        let started = Instant::now();
        trainee.step(&images, &targets, 0.0, step)?;
        if step >= WARM {
            timed += started.elapsed();
        }
        told(step + 1)?;
    }
    Ok((trainee.classifier().parameters(), timed.as_secs_f64() / TIMED as f64))
}

/// The largest training of some cells, and the images of its step: an epoch is cut into equal steps,
/// none above the batch. Of trainings on equally many images that with the larger step.
fn largest_step(spec: &ExperimentSpec, architecture: Architecture, cells: &[&Cell]) -> Result<(TrainingSpec, usize)> {
    let (mut found, mut most) = ((spec.training_of(architecture, 0)?, 1), (0, 0));
    for cell in cells {
        let training = spec.training_of(architecture, cell.condition)?;
        let largest = spec.experiment.trained_on(cell).into_iter().max().unwrap_or(1);
        let images = largest.div_ceil(training.epoch_steps(largest));
        if (largest, images) > most {
            (found, most) = ((training, images), (largest, images));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_images_that_training_gives_it() {
        let of = |rest: &str| {
            let text = format!(
                "name = 'x'\n[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [100, 30]\n{rest}"
            );
            let spec: ExperimentSpec = toml::from_str(&text).unwrap();
            spec.validate().unwrap();
            let cells = spec.cells();
            largest_step(&spec, Architecture::Linear, &cells.iter().collect::<Vec<_>>()).unwrap().1
        };
        assert_eq!(of("[training]\nbatch = 32\n"), 25, "4 steps an epoch");
        assert_eq!(of("[training]\nbatch = 4096\n"), 100);
        assert_eq!(of("[training]\nbatch = 1000000000000\n"), 100);
        // A shift keeps a fifth for validation.
        let shift = "[experiment]\nkind = 'shift'\npool = 100\nsettings = [{ name = 'none' }]\n";
        assert_eq!(of(&format!("[training]\nbatch = 4096\n{shift}")), 80);
    }
}
