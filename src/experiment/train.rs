//! One cell from start to result: train, look at the test images now and then, checkpoint, measure.

use std::path::Path;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Serialize;

use super::cell::{Cell, CellResult};
use super::checkpoint::{self, State, Training};
use super::images::{Batch, Images, Source};
use super::trained::{Trained, measure};
use super::validated::{Validated, Validation};
use super::watched::Watched;
use crate::classifier::{ClassifierConfig, Description, InputScale, Scaled, Trainee, TrainingSpec};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::weights::Weights;
use crate::units::Seed;

/// Name of a cell's state in its folder.
pub const LAST: &str = "last.safetensors";
/// Images by which the scale of the input is set, at most.
const SCALE_IMAGES: usize = 1000;

/// What a cell reports. Breaking off after any event leaves a checkpoint.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum CellEvent {
    /// The network stands.
    Started {
        /// Trained numbers.
        parameters: usize,
        /// Steps in all.
        steps: usize,
        /// Steps done in an earlier sitting.
        resumed_at: usize,
    },
    /// One step.
    Step {
        /// Steps done.
        step: usize,
        /// Its mean cross-entropy, nats, against what the classifier is told.
        loss: f64,
        /// Its learning rate.
        rate: f64,
    },
    /// The watched test images, between epochs.
    Watched(Watched),
    /// The cell draws images of its own from the world, before the network stands.
    Drawing(Progress),
    /// Something is measured, piece by piece: by the trained classifier, or before it is trained.
    Measuring {
        /// What.
        what: String,
        /// How many pieces of it.
        #[serde(flatten)]
        progress: Progress,
    },
    /// Between trainings the cell asks its classifiers which labels to buy; all that was trained is on
    /// disk. It may be the first word of a resumed cell, before the start of its next training.
    Choosing {
        /// Steps done.
        step: usize,
        /// Steps in all.
        steps: usize,
    },
    /// The state is on disk.
    Checkpoint {
        /// Steps done.
        step: usize,
    },
}

/// What a cell needs.
#[derive(Clone, Copy)]
pub struct CellJob<'a> {
    /// The cell.
    pub cell: Cell,
    /// Hash of its content.
    pub id: &'a str,
    /// How it is trained.
    pub training: TrainingSpec,
    /// Weights it starts from, where not at random.
    pub pretrained: Option<&'a Weights>,
    /// Its training images.
    pub train: &'a dyn Source,
    /// The test images.
    pub test: &'a Images,
    /// How many of them are watched.
    pub watched: usize,
    /// Ends of the range that pixels fill in the world, in units of x.
    pub range: [f32; 2],
    /// SHA-256 of the weights of that world, where it is known.
    pub weights_sha256: Option<&'a str>,
    /// Where it keeps its state.
    pub folder: &'a Path,
    /// How often, at most, that is written.
    pub every: Duration,
    /// What computes.
    pub device: &'a Device,
}

/// Trains and measures one cell, going on from its last checkpoint if there is one.
///
/// # Errors
/// A network that does not fit the images, a full disk, a failing device, or [`Error::Cancelled`],
/// after a checkpoint.
pub fn run_cell(job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
    train_cell(job, events).map(|(result, _)| result)
}

/// [`run_cell`], with the trained classifier, to be asked about other images.
///
/// # Errors
/// As [`run_cell`].
pub fn train_cell(job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<(CellResult, Trained)> {
    validate_cell(job, None, events).map(|(result, trained, _)| (result, trained))
}

/// [`train_cell`], and what held-out labels said meanwhile, all sittings together.
///
/// # Errors
/// As [`run_cell`].
pub(super) fn validate_cell(
    job: &CellJob<'_>,
    validation: Option<Validation<'_>>,
    events: &mut dyn Events<CellEvent>,
) -> Result<(CellResult, Trained, Vec<Validated>)> {
    let run = run_to_the_end(job, validation, events)?;
    let trained = run.trained();
    let (measured, blocks) = measure(job, &trained, events)?;
    let (id, cell, steps) = (job.id.to_owned(), job.cell, run.total);
    let (parameters, train_loss) = (run.trainee.classifier().parameters(), run.state.last_loss);
    let result = CellResult { id, cell, parameters, steps, train_loss, measured, blocks: Some(blocks), output: None };
    Ok((result, trained, run.state.validated))
}

/// Trains a cell as [`run_cell`] does, and measures nothing.
///
/// # Errors
/// As [`run_cell`].
pub(super) fn train_only(job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<Trained> {
    Ok(run_to_the_end(job, None, events)?.trained())
}

/// The training, from its last checkpoint if there is one.
fn run_to_the_end<'a>(
    job: &'a CellJob<'a>,
    validation: Option<Validation<'a>>,
    events: &mut dyn Events<CellEvent>,
) -> Result<Run<'a>> {
    std::fs::create_dir_all(job.folder).map_err(|e| Error::io(job.folder, e))?;
    let mut run = Run::open(job, validation)?;
    let parameters = run.trainee.classifier().parameters();
    events.report(CellEvent::Started { parameters, steps: run.total, resumed_at: run.state.step })?;
    while !run.done() {
        if let Err(error) = run.epoch(events) {
            if matches!(error, Error::Cancelled) {
                run.checkpoint()?;
            }
            return Err(error);
        }
    }
    if run.undescribed {
        run.checkpoint()?;
    }
    Ok(run)
}

struct Run<'a> {
    job: &'a CellJob<'a>,
    validation: Option<Validation<'a>>,
    seed: Seed,
    scale: InputScale,
    trainee: Trainee,
    state: State,
    /// Whether the checkpoint on disk, an older version's, does not say what it is.
    undescribed: bool,
    /// Steps in an epoch, and in all.
    steps: usize,
    total: usize,
    since: Instant,
    written: Instant,
}

impl<'a> Run<'a> {
    fn open(job: &'a CellJob<'a>, validation: Option<Validation<'a>>) -> Result<Self> {
        let (cell, training) = (&job.cell, &job.training);
        let seed = Seed(cell.seed).split("classifier");
        let config = ClassifierConfig {
            architecture: cell.architecture,
            shape: job.test.shape,
            classes: job.test.classes,
            resize: training.resize,
        };
        let (steps, total) = (training.epoch_steps(cell.train_size), training.total_steps(cell.train_size));
        let of = Training { id: job.id.to_owned(), seed: cell.seed, images: cell.train_size };
        let file = job.folder.join(LAST);
        let unfit = |cause: String| {
            Error::file(&file, format!("does not fit this cell: {cause}; remove it and the cell starts again"))
        };
        let (trainee, mut state) = match (checkpoint::read(&file)?, job.pretrained) {
            (Some((state, saved)), _) => {
                state.refusal(&of, [steps, total]).map_or(Ok(()), |why| Err(unfit(format!("it {why}"))))?;
                let resumed = Trainee::resume(&config, training, saved, seed, job.device);
                let resumed = resumed.map_err(|error| match error {
                    Error::Input(cause) => unfit(cause),
                    other => other,
                });
                (resumed?, state)
            }
            (None, Some(weights)) => {
                let trainee = Trainee::from_pretrained(&config, training, weights.clone(), seed, job.device)?;
                (trainee, State::default())
            }
            (None, None) => (Trainee::new(&config, training, seed, job.device)?, State::default()),
        };
        state.of = Some(of);
        let first: Vec<usize> = (0..cell.train_size.min(SCALE_IMAGES)).collect();
        let scale = InputScale::of(training.input, job.test.shape, job.range, || Ok(job.train.take(&first)?.x))?;
        let now = Instant::now();
        let description = Description {
            name: cell.label(),
            network: config,
            scale: scale.clone(),
            steps: total,
            range: Some(job.range),
            weights_sha256: job.weights_sha256.map(str::to_owned),
        };
        let undescribed = state.classifier.replace(description).is_none() && state.step > 0;
        Ok(Self { job, validation, seed, scale, trainee, state, undescribed, steps, total, since: now, written: now })
    }

    /// Whether the last epoch is over and looked at.
    fn done(&self) -> bool {
        self.state.step == self.total && self.state.seen == 0
    }

    /// The rest of the epoch in which the run stands: after its last step, what follows the steps.
    fn epoch(&mut self, events: &mut dyn Events<CellEvent>) -> Result<()> {
        let begun = self.state.seen > 0;
        let (n, epoch) = (self.job.cell.train_size, (self.state.step - usize::from(begun)) / self.steps);
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut self.seed.split("order").rng(epoch as u64));
        // A fixed number of steps may end within an epoch.
        let last = self.steps.min(self.total - epoch * self.steps);
        for k in self.state.step - epoch * self.steps..last {
            let chosen = &order[k * n / self.steps..(k + 1) * n / self.steps];
            let (step, rate) = (self.state.step, self.job.training.rate(self.state.step, self.total));
            let loss = self.step(chosen, epoch, rate)?;
            self.state.step = step + 1;
            self.state.loss += loss * chosen.len() as f64;
            self.state.seen += chosen.len();
            events.report(CellEvent::Step { step: step + 1, loss, rate })?;
            if self.written.elapsed() >= self.job.every && k + 1 < last {
                self.checkpoint()?;
                events.report(CellEvent::Checkpoint { step: step + 1 })?;
            }
        }
        self.state.last_loss = self.state.loss / self.state.seen.max(1) as f64;
        (self.state.loss, self.state.seen) = (0.0, 0);
        let done = epoch + 1;
        if is_watched(done, self.total.div_ceil(self.steps)) {
            let watched = self.watch(done)?;
            let validated = self.validation.map(|validation| self.validate(done, validation)).transpose()?;
            self.state.course.push(watched);
            self.state.validated.extend(validated);
            events.report(CellEvent::Watched(watched))?;
        }
        if self.written.elapsed() >= self.job.every || self.state.step == self.total {
            self.checkpoint()?;
            events.report(CellEvent::Checkpoint { step: self.state.step })?;
        }
        Ok(())
    }

    fn step(&mut self, chosen: &[usize], epoch: usize, rate: f64) -> Result<f64> {
        let (cell, training, shape) = (&self.job.cell, &self.job.training, self.job.test.shape);
        let mut batch = self.job.train.take(chosen)?;
        let seed = self.seed.split("augmentation").split(&epoch.to_string());
        augment(&mut batch, shape, training, chosen, seed);
        self.scale.apply(&mut batch.x, shape);
        let targets = batch.targets(cell.labels, self.job.test.classes, training.label_smoothing);
        let loss = self.trainee.step(&batch.x, &targets, rate, self.state.step)?;
        if loss.cross_entropy.is_finite() && loss.grad_norm.is_finite() {
            return Ok(loss.cross_entropy);
        }
        Err(Error::Numeric(format!(
            "{}: the loss of step {} is no finite number; lower training.learning_rate",
            cell.label(),
            self.state.step + 1
        )))
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.state.seconds += self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        checkpoint::write(&self.job.folder.join(LAST), &self.state, &self.trainee.saved()?)?;
        (self.written, self.undescribed) = (Instant::now(), false);
        Ok(())
    }

    fn watch(&self, epoch: usize) -> Result<Watched> {
        let images = self.trained().per_image(self.job.test, self.job.watched)?;
        Ok(Watched::of(&images, self.state.step, epoch, self.state.last_loss))
    }

    fn validate(&self, epoch: usize, validation: Validation<'_>) -> Result<Validated> {
        let (trained, Validation { images, labels }, test) = (self.trained(), validation, self.job.test);
        let figures = |images: &Images| trained.per_image(images, images.len());
        Validated::of(epoch, &figures(images)?, labels, &figures(test)?)
    }

    /// The classifier as it is now.
    fn trained(&self) -> Trained {
        Trained::new(Scaled::new(self.trainee.classifier(), self.scale.clone()), self.state.course.clone())
    }
}

/// After the first epochs, and then ever more rarely: about ten a decade; and after the last.
fn is_watched(epoch: usize, epochs: usize) -> bool {
    let mark = |epoch: usize| (10.0 * (epoch as f64).log10()).floor();
    epoch == epochs || epoch <= 10 || mark(epoch) > mark(epoch - 1)
}

/// Moves and mirrors the images of a step at random, by each image's number and the epoch's seed
/// alone.
fn augment(batch: &mut Batch, shape: ImageShape, training: &TrainingSpec, chosen: &[usize], seed: Seed) {
    if training.shift == 0 && !training.mirror {
        return;
    }
    for (image, &i) in batch.x.chunks_exact_mut(shape.dims()).zip(chosen) {
        let mut rng = seed.rng(i as u64);
        let mut offset = || rng.random_range(0..=2 * training.shift) as isize - training.shift as isize;
        let (down, right) = (offset(), offset());
        let mirrored = training.mirror && rng.random();
        moved(image, shape, [down, right], mirrored);
    }
}

/// Moves an image down and right, its border pixels repeated, and then mirrors it if asked.
fn moved(image: &mut [f32], shape: ImageShape, [down, right]: [isize; 2], mirrored: bool) {
    let before = image.to_vec();
    let inside = |at: usize, by: isize, side: usize| (at as isize - by).clamp(0, side as isize - 1) as usize;
    for (row, pixels) in image.chunks_exact_mut(shape.width).enumerate() {
        let (channel, y) = (row / shape.height, row % shape.height);
        let from = &before[(channel * shape.height + inside(y, down, shape.height)) * shape.width..][..shape.width];
        for (x, pixel) in pixels.iter_mut().enumerate() {
            let x = if mirrored { shape.width - 1 - x } else { x };
            *pixel = from[inside(x, right, shape.width)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { channels: 2, height: 2, width: 3 };

    #[test]
    fn images_move_and_turn_as_told() {
        let image: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let after = |by, mirrored| {
            let mut image = image.clone();
            moved(&mut image, SHAPE, by, mirrored);
            image
        };
        assert_eq!(after([0, 0], false), image);
        assert_eq!(after([0, 0], true)[..6], [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
        assert_eq!(after([1, 0], false)[..6], [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
        assert_eq!(after([0, -1], false)[6..], [7.0, 8.0, 8.0, 10.0, 11.0, 11.0]);
    }

    #[test]
    fn watching_gets_rare() {
        let marks: Vec<usize> = (1..=1000).filter(|&epoch| is_watched(epoch, 1000)).collect();
        assert!(marks.len() < 35 && marks[..10] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] && marks.last() == Some(&1000));
    }
}
