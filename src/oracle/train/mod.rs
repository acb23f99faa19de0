//! Training a flow on a dataset: one loop for both families.

mod batch;
mod bench;
mod checkpoint;
mod data;
pub(super) mod describe;
mod gaussians;
mod glow;
mod learner;
mod presets;
mod publish;
mod so_far;
mod spec;
mod step;
mod tarflow;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use rand::seq::SliceRandom;
use serde::Serialize;

use crate::data::{Dataset, ImageShape, Split, claim_text, lock_file};
use crate::error::{Error, Result};
use crate::events::{Events, silent};
use crate::flow::preprocess::Preprocessing;
use crate::flow::weights::Weights;
use crate::flow::{Architecture, Flow, Precision};
use crate::oracle::evaluate::{Evaluation, evaluate};
use crate::units::Tau;

pub use crate::device::MatmulPrecision;
use batch::Draw;
pub use bench::bench_steps;
use checkpoint::{Best, Checkpoint, State};
pub use data::{corpus, test_corpus, training_images};
use learner::{Learner, architecture, learner};
pub use presets::{PRESETS, Preset, SPEC};
pub use publish::{ORACLE, train_oracle};
pub use so_far::{SO_FAR, oracle_so_far};
pub use spec::{Classification, DataSpec, ModelSpec, OptimSpec, TarFlowSpec, TrainSpec};
pub use step::StepLoss;

/// Base samples whose images are shown after every epoch, `SAMPLES_PER_CLASS` for each class.
const SAMPLES_PER_CLASS: usize = 2;
/// Steps in a row that may fail before the run goes back to its last checkpoint.
const MAX_SKIPPED: usize = 5;
/// Held by who trains in a folder: two would write into one checkpoint.
const LOCK: &str = ".lock";
/// Below this share of its learning rate a run gives up.
const SMALLEST_SCALE: f64 = 1.0 / 64.0;

/// What a training run reports.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum TrainEvent {
    /// The data is read and the flow stands.
    Started {
        /// Training images.
        images: usize,
        /// Images the best epoch is chosen on.
        held_out: usize,
        /// Trained numbers.
        parameters: usize,
        /// Dimensions D of one image.
        dims: usize,
        /// Epochs already finished in an earlier sitting.
        resumed_at: usize,
        /// Epochs in all.
        epochs: usize,
    },
    /// One optimisation step.
    Step {
        /// Epoch, from 1.
        epoch: usize,
        /// Epochs in all.
        epochs: usize,
        /// Step in the epoch, from 1.
        step: usize,
        /// Steps in an epoch.
        steps: usize,
        /// Its losses.
        loss: StepLoss,
        /// Its learning rate.
        learning_rate: f64,
    },
    /// A step whose loss or gradient was not finite, and which therefore moved nothing.
    Skipped {
        /// Epoch, from 1.
        epoch: usize,
        /// Step in the epoch, from 1.
        step: usize,
    },
    /// Training diverged and resumes from the last checkpoint with half the learning rate.
    RolledBack {
        /// The epoch that diverged, from 1.
        epoch: usize,
        /// What the learning rate is multiplied by from now on.
        rate_scale: f64,
    },
    /// One epoch, evaluated and on disk.
    Epoch {
        /// Epoch, from 1.
        epoch: usize,
        /// Epochs in all.
        epochs: usize,
        /// Mean training NLL over the epoch, nats per image, 8-bit pixels.
        train_nll: f64,
        /// The averaged weights on the held-out images.
        held_out: Evaluation,
        /// Whether this is the best epoch so far.
        best: bool,
        /// Seconds of training so far, all sittings.
        seconds: f64,
    },
    /// The images of this epoch could not be made: the inverse of an unfinished flow may leave the
    /// finite numbers.
    NoSamples {
        /// Epoch, from 1.
        epoch: usize,
        /// What happened.
        why: String,
    },
    /// Images of the same latents as after every other epoch, class after class.
    Samples {
        /// Epoch, from 1.
        epoch: usize,
        /// Shape of each.
        shape: ImageShape,
        /// 8-bit pictures, NCHW.
        #[serde(skip)]
        pixels: Vec<u8>,
    },
}

/// A finished run.
#[derive(Debug)]
pub struct Trained {
    /// Architecture.
    pub architecture: Architecture,
    /// How pixels entered.
    pub pixels: Preprocessing,
    /// Averaged weights of the best epoch.
    pub weights: Weights,
    /// That epoch, from 1.
    pub epoch: usize,
    /// Its figures on the held-out part of the training images.
    pub held_out: Evaluation,
    /// The full test part of the data, evaluated once, if there is one.
    pub test: Option<Evaluation>,
    /// Images trained on.
    pub images: usize,
    /// SHA-256 of the pixels of the whole training part, as padded: identifies the data.
    pub pixels_sha256: String,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// Seconds of training, all sittings.
    pub seconds: f64,
}

/// A run in progress.
struct Run<'a> {
    spec: &'a TrainSpec,
    folder: &'a Path,
    device: Device,
    architecture: Architecture,
    pixels: Preprocessing,
    train: Dataset,
    labels: Vec<usize>,
    held_out: Dataset,
    test: Option<Dataset>,
    /// SHA-256 of the training part as padded, held-out images included.
    pixels_sha256: String,
    learner: Box<dyn Learner>,
    state: State,
    /// Steps in a row that moved nothing, the newest among them, those of the epoch before included.
    skipped: usize,
}

/// Trains in `folder`, from its last checkpoint if there is one. Every epoch ends in a checkpoint;
/// the averaged weights of the best epoch by held-out NLL are in `best.safetensors`.
///
/// # Errors
/// Bad data or spec, a full disk, a failing device, or [`Error::Cancelled`]; checkpoints stay.
pub fn train(spec: &TrainSpec, folder: &Path, device: &Device, events: &mut dyn Events<TrainEvent>) -> Result<Trained> {
    spec.validate()?;
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    keep_spec(spec, folder)?;
    let _lock = lock_file(&folder.join(LOCK), "another process is training in this folder: wait for it, or stop it")?;
    let mut run = Run::open(spec, folder, device)?;
    let epochs = spec.training.epochs;
    events.report(TrainEvent::Started {
        images: run.train.len(),
        held_out: run.held_out.len(),
        parameters: run.learner.parameters(),
        dims: run.train.shape.dims(),
        resumed_at: run.state.epoch,
        epochs,
    })?;
    while run.state.epoch < epochs {
        let sitting = Instant::now();
        let epoch = run.state.epoch + 1;
        let passed = match run.epoch(epoch, events) {
            Ok(Some(train_nll)) => run.finish_epoch(epoch, train_nll, sitting, events),
            Ok(None) => Err(Error::Numeric(format!("{} steps in a row were not finite", run.skipped))),
            Err(error) => Err(error),
        };
        match passed {
            Ok(()) => {}
            // The parameters are unusable: a loss that is not finite, a singular 1×1 convolution.
            Err(Error::Numeric(_)) => run = run.roll_back(epoch, device, events)?,
            Err(error) => return Err(error),
        }
    }
    run.finish()
}

/// The spec is the first thing in a run folder; a folder of another spec is not touched.
fn keep_spec(spec: &TrainSpec, folder: &Path) -> Result<()> {
    let path = folder.join(SPEC);
    let text = toml::to_string_pretty(spec).map_err(|e| Error::file(&path, e.to_string()))?;
    claim_text(&path, &text, "this folder holds a run of another spec; choose another --out")
}

impl<'a> Run<'a> {
    fn open(spec: &'a TrainSpec, folder: &'a Path, device: &Device) -> Result<Self> {
        let all = corpus(&spec.data, Split::Train)?;
        let (train, held_out) = data::split(&all, spec)?;
        let labels = train.labels.clone().ok_or_else(|| Error::input(format!("{} has no labels", all.name)))?;
        // Looked at now, so that hours of training do not end in a complaint about it.
        let test = data::test_like(&spec.data, &train)?;
        let (architecture, pixels) = architecture(spec, &train);
        let pixels_sha256 = data::pixels_sha256(&train, &held_out);
        let images_sha256 = data::images_sha256(&pixels_sha256, &train, &held_out);
        let (saved, state) = match checkpoint::load(folder, &spec.training)? {
            Some(Checkpoint { state, saved }) => (Some(saved), state.going_on(images_sha256, &spec.data.path)?),
            None => (None, State::new(images_sha256)),
        };
        let learner = learner(spec, &train, saved, device)?;
        let device = device.clone();
        Ok(Self {
            spec,
            folder,
            device,
            architecture,
            pixels,
            train,
            labels,
            held_out,
            test,
            pixels_sha256,
            learner,
            state,
            skipped: 0,
        })
    }

    /// The last checkpoint again, with half the learning rate: the data come in the same order, so
    /// that the same rate would fail in the same way.
    fn roll_back(self, epoch: usize, device: &Device, events: &mut dyn Events<TrainEvent>) -> Result<Self> {
        let rate_scale = self.state.rate_scale / 2.0;
        let rate = self.spec.training.learning_rate;
        if rate_scale < SMALLEST_SCALE {
            return Err(Error::Numeric(format!(
                "training diverges again and again in epoch {epoch}, even at {:.1e} of training.learning_rate = {rate}; lower it and start again",
                self.state.rate_scale
            )));
        }
        let mut run = Self::open(self.spec, self.folder, device)?;
        run.state.rate_scale = rate_scale;
        events.report(TrainEvent::RolledBack { epoch, rate_scale })?;
        Ok(run)
    }

    /// One pass over the training images in the epoch's own order; `None` when the run must go back
    /// to its checkpoint.
    fn epoch(&mut self, epoch: usize, events: &mut dyn Events<TrainEvent>) -> Result<Option<f64>> {
        let t = &self.spec.training;
        let mut order: Vec<usize> = (0..self.train.len()).collect();
        order.shuffle(&mut t.seed.split("order").rng(epoch as u64));
        let steps = order.len().div_ceil(t.batch);
        let (mut sum, mut seen) = (0.0, 0usize);
        for (k, chosen) in order.chunks(t.batch).enumerate() {
            let draw = Draw {
                train: &self.train,
                labels: &self.labels,
                chosen,
                epoch,
                seed: t.seed,
                shift: self.spec.data.shift,
                mirror: self.spec.data.mirror,
                turn: self.spec.data.turn,
            };
            let learning_rate = self.state.rate_scale * self.spec.learning_rate((epoch - 1) * steps + k, steps);
            let loss = self.learner.step(&draw, learning_rate, self.decay((epoch - 1) * steps + k))?;
            if loss.grad_norm.is_finite() {
                self.skipped = 0;
                sum += loss.nll * chosen.len() as f64;
                seen += chosen.len();
                events.report(TrainEvent::Step { epoch, epochs: t.epochs, step: k + 1, steps, loss, learning_rate })?;
            } else {
                self.skipped += 1;
                events.report(TrainEvent::Skipped { epoch, step: k + 1 })?;
                if self.skipped > MAX_SKIPPED {
                    return Ok(None);
                }
            }
        }
        Ok((seen > 0).then(|| sum / seen as f64))
    }

    /// Decay of the moving average: shorter at the start, so that it forgets the random weights.
    fn decay(&self, step: usize) -> f64 {
        let step = step as f64;
        self.spec.training.ema_decay.min((1.0 + step) / (10.0 + step))
    }

    /// Evaluates the averaged weights, keeps them if they are the best, writes the checkpoint. An
    /// epoch that ended in skipped steps is not kept: the parameters may be unusable, and the
    /// checkpoint before is the way back.
    fn finish_epoch(
        &mut self,
        epoch: usize,
        train_nll: f64,
        sitting: Instant,
        events: &mut dyn Events<TrainEvent>,
    ) -> Result<()> {
        let flow = self.learner.frozen()?;
        let seed = self.spec.training.seed.split("held-out");
        let held_out = evaluate(flow.as_ref(), &self.held_out, seed, &mut silent())?;
        let kept = self.skipped == 0;
        let best = kept && self.state.best.is_none_or(|best| held_out.nll_nats < best.nll);
        if best {
            let seconds = self.state.seconds + sitting.elapsed().as_secs_f64();
            let trained = self.trained(self.learner.average()?, epoch, (held_out.clone(), None), seconds);
            so_far::keep(self.folder, self.spec, &trained, &format!("{:?}", self.device))?;
            self.state.best = Some(Best { epoch, nll: held_out.nll_nats });
        }
        self.state.epoch = epoch;
        self.state.seconds += sitting.elapsed().as_secs_f64();
        if kept {
            let state = self.state.clone();
            checkpoint::save(self.folder, &Checkpoint { state, saved: self.learner.saved()? })?;
        }
        let (epochs, seconds) = (self.spec.training.epochs, self.state.seconds);
        events.report(TrainEvent::Epoch { epoch, epochs, train_nll, held_out, best, seconds })?;
        match self.samples(flow.as_ref()) {
            Ok(pixels) => events.report(TrainEvent::Samples { epoch, shape: self.train.shape, pixels }),
            // The inverse of an unfinished flow may overflow while its density is fine.
            Err(Error::Numeric(why)) => events.report(TrainEvent::NoSamples { epoch, why }),
            Err(error) => Err(error),
        }
    }

    /// 8-bit pictures of fixed latents.
    fn samples(&self, flow: &dyn Flow) -> Result<Vec<u8>> {
        let classes: Vec<usize> = (0..flow.classes() * SAMPLES_PER_CLASS).map(|i| i / SAMPLES_PER_CLASS).collect();
        let seed = self.spec.training.seed.split("samples");
        let noise = crate::flow::base::latents(seed, 0, classes.len(), self.train.shape.dims());
        Ok(self.pixels.picture(&flow.decode(&noise, &classes, Tau::ONE, &mut silent())?.x))
    }

    /// The best epoch, on the held-out and the test images.
    fn finish(self) -> Result<Trained> {
        let best = self.state.best.ok_or_else(|| Error::Numeric("no epoch ended in a finite step".into()))?;
        let weights = Weights::read(&self.folder.join(so_far::BEST))?;
        let flow = self.architecture.build(weights.clone(), self.pixels, &self.device, Precision::F32)?;
        let seed = self.spec.training.seed;
        let held_out = evaluate(flow.as_ref(), &self.held_out, seed.split("held-out"), &mut silent())?;
        let tested = |test: &Dataset| evaluate(flow.as_ref(), test, seed.split("test"), &mut silent());
        let test = self.test.as_ref().map(tested).transpose()?;
        Ok(self.trained(weights, best.epoch, (held_out, test), self.state.seconds))
    }

    /// The run with the weights of one epoch and their figures on held-out and test images.
    fn trained(
        &self,
        weights: Weights,
        epoch: usize,
        (held_out, test): (Evaluation, Option<Evaluation>),
        seconds: f64,
    ) -> Trained {
        Trained {
            architecture: self.architecture,
            pixels: self.pixels,
            weights,
            epoch,
            held_out,
            test,
            images: self.train.len(),
            pixels_sha256: self.pixels_sha256.clone(),
            class_names: self.train.class_names.clone(),
            seconds,
        }
    }
}
