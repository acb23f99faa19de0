//! Training a conditional Glow on a dataset (EBO §4.1): NLL plus λ times a classification loss.

mod batch;
mod checkpoint;
mod publish;
mod spec;
mod step;

use std::borrow::Cow;
use std::path::Path;
use std::time::Instant;

use burn::module::Module;
use burn::tensor::Device;
use rand::seq::SliceRandom;
use serde::Serialize;

use crate::data::{Dataset, ImageShape, Split, open_dataset, write_atomically};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::glow::{Glow, GlowConfig, GlowFlow};
use crate::flow::preprocess::Dequantisation;
use crate::flow::weights::{Storage, Weights};
use crate::flow::{Flow, Precision};
use crate::oracle::evaluate::{Evaluation, evaluate};
use crate::oracle::folder::sha256;
use crate::units::Tau;

use batch::{logit_space, moved};
use checkpoint::{Best, Checkpoint, State};
pub use publish::{ORACLE, train_oracle};
pub use spec::{Classification, DataSpec, ModelSpec, OptimSpec, TrainSpec};
pub use step::StepLoss;
use step::{Batch, adam, average, step, upload};

/// Images in the batch that initialises the normalisations.
const INIT_IMAGES: usize = 256;
/// Base samples whose images are shown after every epoch, `SAMPLES_PER_CLASS` for each class.
const SAMPLES_PER_CLASS: usize = 2;
/// Steps in a row that may fail before the run goes back to its last checkpoint.
const MAX_SKIPPED: usize = 5;
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
    /// Training diverged and goes on from the last checkpoint with half the learning rate.
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
    /// Images of the same latents as after every other epoch, class after class.
    Samples {
        /// Epoch, from 1.
        epoch: usize,
        /// Shape of each.
        shape: ImageShape,
        /// World-space images, NCHW.
        #[serde(skip)]
        x: Vec<f32>,
    },
}

/// A finished run.
#[derive(Debug)]
pub struct Trained {
    /// Architecture.
    pub config: GlowConfig,
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
    /// SHA-256 of the pixels of the whole training part, as padded: identifies the data wherever it lay.
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
    config: GlowConfig,
    train: Dataset,
    labels: Vec<usize>,
    held_out: Dataset,
    glow: Glow,
    average: Glow,
    optimizer: burn::optim::ModuleOptimizer,
    state: State,
}

/// Trains in `folder`, going on from its last checkpoint if there is one. Every epoch ends in a checkpoint; the averaged
/// weights of the best epoch by held-out NLL are in `best.safetensors`.
///
/// # Errors
/// Bad data or spec, a full disk, a failing device, or [`Error::Cancelled`]; what was checkpointed stays.
pub fn train(spec: &TrainSpec, folder: &Path, device: &Device, events: &mut dyn Events<TrainEvent>) -> Result<Trained> {
    spec.validate()?;
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    keep_spec(spec, folder)?;
    let mut run = Run::open(spec, folder, device)?;
    let epochs = spec.training.epochs;
    events.report(TrainEvent::Started {
        images: run.train.len(),
        held_out: run.held_out.len(),
        parameters: run.glow.num_params(),
        resumed_at: run.state.epoch,
        epochs,
    })?;
    while run.state.epoch < epochs {
        let sitting = Instant::now();
        let epoch = run.state.epoch + 1;
        let passed = match run.epoch(epoch, events) {
            Ok(Some(train_nll)) => run.finish_epoch(epoch, train_nll, sitting, events),
            Ok(None) => Err(Error::Numeric(format!("{MAX_SKIPPED} steps in a row were not finite"))),
            Err(error) => Err(error),
        };
        match passed {
            Ok(()) => {}
            // The parameters are beyond repair: a loss that is not finite, a singular 1×1 convolution.
            Err(Error::Numeric(_)) => run = run.roll_back(epoch, device, events)?,
            Err(error) => return Err(error),
        }
    }
    run.finish()
}

/// The spec is the first thing in a run folder; a folder of another spec is not touched.
fn keep_spec(spec: &TrainSpec, folder: &Path) -> Result<()> {
    let path = folder.join("train.toml");
    let text = toml::to_string_pretty(spec).map_err(|e| Error::file(&path, e.to_string()))?;
    match std::fs::read_to_string(&path) {
        Ok(old) if old == text => Ok(()),
        Ok(_) => Err(Error::file(&path, "this folder holds a run of another spec; choose another --out")),
        Err(_) => write_atomically(&path, |file| file.write_all(text.as_bytes())),
    }
}

impl<'a> Run<'a> {
    fn open(spec: &'a TrainSpec, folder: &'a Path, device: &Device) -> Result<Self> {
        let mut all = open_dataset(&spec.data.path, Split::Train)?.pad_to(spec.data.pad_to)?;
        if let Some(limit) = spec.data.limit {
            all = all.subset(0..limit.min(all.len()))?;
        }
        let split = all.len().checked_sub(spec.data.held_out).filter(|&n| n > 0).ok_or_else(|| {
            Error::input(format!(
                "{} has {} images; holding out {} leaves none to train on",
                all.name,
                all.len(),
                spec.data.held_out
            ))
        })?;
        let train = all.subset(0..split)?;
        let held_out = all.subset(split..all.len())?;
        let labels = train.labels.clone().ok_or_else(|| Error::input(format!("{} has no labels", all.name)))?;
        let config = GlowConfig {
            shape: all.shape,
            classes: all.class_names.len(),
            hidden: spec.model.hidden,
            levels: spec.model.levels,
            steps: spec.model.steps,
        };
        let device = device.clone().autodiff();
        let build = |weights, device: &Device| Glow::from_weights(&config, weights, device, Precision::F32);
        let (glow, average, optimizer, state) = match checkpoint::load(folder)? {
            Some(saved) => (
                build(saved.weights, &device)?,
                build(saved.average, &device.clone().inner())?,
                saved.optimizer,
                saved.state,
            ),
            None => {
                let glow = initial(spec, &config, &train, &device)?;
                let average = build(glow.to_weights()?, &device.clone().inner())?;
                (glow, average, adam(), State { epoch: 0, best: None, seconds: 0.0, rate_scale: 1.0 })
            }
        };
        Ok(Self { spec, folder, device, config, train, labels, held_out, glow, average, optimizer, state })
    }

    /// The last checkpoint again, with half the learning rate: the data come in the same order, so that the same rate would
    /// fail in the same way.
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

    /// One pass over the training images in the epoch's own order; `None` when the run must go back to its checkpoint.
    fn epoch(&mut self, epoch: usize, events: &mut dyn Events<TrainEvent>) -> Result<Option<f64>> {
        let t = &self.spec.training;
        let mut order: Vec<usize> = (0..self.train.len()).collect();
        order.shuffle(&mut t.seed.split("order").rng(epoch as u64));
        let steps = order.len().div_ceil(t.batch);
        let (mut sum, mut seen, mut skipped) = (0.0, 0usize, 0usize);
        for (k, chosen) in order.chunks(t.batch).enumerate() {
            let batch = self.batch(epoch, chosen);
            let learning_rate = self.state.rate_scale * self.spec.learning_rate((epoch - 1) * steps + k, steps);
            let (glow, loss) =
                step(self.spec, &self.config, self.glow.clone(), &mut self.optimizer, batch, learning_rate)?;
            self.glow = glow;
            if loss.grad_norm.is_finite() {
                skipped = 0;
                sum += loss.nll * chosen.len() as f64;
                seen += chosen.len();
                self.average = average(self.average.clone(), &self.glow, self.decay((epoch - 1) * steps + k));
                events.report(TrainEvent::Step { epoch, epochs: t.epochs, step: k + 1, steps, loss, learning_rate })?;
            } else {
                skipped += 1;
                events.report(TrainEvent::Skipped { epoch, step: k + 1 })?;
                if skipped > MAX_SKIPPED {
                    return Ok(None);
                }
            }
        }
        Ok(Some(sum / seen.max(1) as f64))
    }

    /// Decay of the moving average: shorter at the start, so that it never remembers the random weights.
    fn decay(&self, step: usize) -> f64 {
        let step = step as f64;
        self.spec.training.ema_decay.min((1.0 + step) / (10.0 + step))
    }

    /// Dequantised with this epoch's noise, in logit space.
    fn batch(&self, epoch: usize, chosen: &[usize]) -> Batch {
        let seed = self.spec.training.seed.split(&format!("dequantisation {epoch}"));
        let classes = chosen.iter().map(|&i| self.labels[i]).collect();
        let shifts = self.spec.training.seed.split(&format!("shift {epoch}"));
        let moved = |i| moved(&self.train, i, self.spec.data.shift, shifts);
        let (y, mean_log_det) = logit_space(self.train.shape.dims(), chosen, moved, Dequantisation::Uniform(seed));
        Batch { y, mean_log_det, classes }
    }

    /// Evaluates the averaged weights, keeps them if they are the best, writes the checkpoint, reports.
    fn finish_epoch(
        &mut self,
        epoch: usize,
        train_nll: f64,
        sitting: Instant,
        events: &mut dyn Events<TrainEvent>,
    ) -> Result<()> {
        let flow = GlowFlow::freeze(&self.config, &self.average)?;
        let mut silent = |_: Progress| std::ops::ControlFlow::Continue(());
        let seed = self.spec.training.seed.split("held-out");
        let held_out = evaluate(&flow, &self.held_out, seed, &mut silent)?;
        let average = self.average.to_weights()?;
        let best = self.state.best.is_none_or(|best| held_out.nll_nats < best.nll);
        if best {
            average.write(&self.folder.join("best.safetensors"), Storage::F32)?;
            self.state.best = Some(Best { epoch, nll: held_out.nll_nats });
        }
        self.state.epoch = epoch;
        self.state.seconds += sitting.elapsed().as_secs_f64();
        let state = self.state.clone();
        checkpoint::save(
            self.folder,
            &Checkpoint { state, weights: self.glow.to_weights()?, average, optimizer: self.optimizer.clone() },
        )?;
        let (epochs, seconds) = (self.spec.training.epochs, self.state.seconds);
        events.report(TrainEvent::Epoch { epoch, epochs, train_nll, held_out, best, seconds })?;
        events.report(TrainEvent::Samples { epoch, shape: self.config.shape, x: self.samples(&flow)? })
    }

    /// Images of fixed latents.
    fn samples(&self, flow: &GlowFlow) -> Result<Vec<f32>> {
        let classes: Vec<usize> = (0..self.config.classes * SAMPLES_PER_CLASS).map(|i| i / SAMPLES_PER_CLASS).collect();
        let seed = self.spec.training.seed.split("samples");
        let noise = crate::flow::base::latents(seed, 0, classes.len(), self.config.shape.dims());
        Ok(flow.decode(&noise, &classes, Tau::ONE)?.x)
    }

    /// The best epoch, on the held-out and the test images.
    fn finish(self) -> Result<Trained> {
        let best = self.state.best.ok_or_else(|| Error::Numeric("no epoch was finished".into()))?;
        let weights = Weights::read(&self.folder.join("best.safetensors"))?;
        let flow = GlowFlow::new(&self.config, weights.clone(), &self.device.clone().inner(), Precision::F32)?;
        let mut silent = |_: Progress| std::ops::ControlFlow::Continue(());
        let seed = self.spec.training.seed;
        let held_out = evaluate(&flow, &self.held_out, seed.split("held-out"), &mut silent)?;
        let test = match open_dataset(&self.spec.data.path, Split::Test) {
            Ok(test) => Some(evaluate(&flow, &test.pad_to(self.spec.data.pad_to)?, seed.split("test"), &mut silent)?),
            Err(_) => None,
        };
        Ok(Trained {
            config: self.config,
            weights,
            epoch: best.epoch,
            held_out,
            test,
            images: self.train.len(),
            pixels_sha256: sha256(&[&self.train.pixels[..], &self.held_out.pixels].concat()),
            class_names: self.train.class_names,
            seconds: self.state.seconds,
        })
    }
}

/// A fresh Glow whose normalisations fit the first training images.
fn initial(spec: &TrainSpec, config: &GlowConfig, train: &Dataset, device: &Device) -> Result<Glow> {
    let seed = spec.training.seed;
    let plain = device.clone().inner();
    let weights = config.initial_weights(seed.split("weights"), spec.training.mean_std);
    let mut glow = Glow::from_weights(config, weights, &plain, Precision::F32)?;
    let first: Vec<usize> = (0..INIT_IMAGES.min(train.len())).collect();
    let as_is = |i| Cow::Borrowed(train.image(i));
    let noise = Dequantisation::Uniform(seed.split("initialisation"));
    let (y, _) = logit_space(train.shape.dims(), &first, as_is, noise);
    glow.initialise(&upload(config, y, &plain));
    Glow::from_weights(config, glow.to_weights()?, device, Precision::F32)
}
