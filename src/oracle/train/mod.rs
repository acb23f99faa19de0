//! Training a flow on a dataset: one loop for both families.

mod as_read;
mod batch;
mod bench;
mod checkpoint;
mod claim;
mod data;
pub(super) mod describe;
mod events;
mod form;
mod gaussians;
mod glow;
mod learner;
mod order;
mod padding;
mod presets;
mod publish;
mod schedule;
mod second_noise;
mod so_far;
mod spec;
mod step;
mod tarflow;
#[cfg(test)]
mod tests;
mod trained;
mod unread;

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;

use crate::data::{Dataset, ImageShape, Split};
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::{Events, silent};
use crate::flow::preprocess::{Dequantisation, Preprocessing};
use crate::flow::{Architecture, Flow};
use crate::oracle::evaluate::{Evaluation, evaluate};
use crate::units::Tau;

pub use crate::device::MatmulPrecision;
pub use as_read::AsRead;
use batch::Draw;
pub use bench::bench_steps;
pub use checkpoint::Unrecorded;
use checkpoint::{Best, Checkpoint, State, Within};
pub use claim::ORACLE;
pub use data::{corpus, test_corpus, test_like, training_images};
use events::measuring;
pub use events::{Measured, Measurement, TrainEvent, TrainProgress};
pub use form::Form;
use learner::{Learner, architecture, learner};
pub use padding::WidePadding;
pub use presets::{PRESETS, Preset, SPEC};
pub use publish::train_oracle;
pub use schedule::LongWarmUp;
pub use second_noise::SecondNoise;
pub use so_far::{SO_FAR, oracle_so_far};
pub use spec::{Classification, DataSpec, ModelSpec, OptimSpec, TarFlowSpec, TrainSpec};
pub use step::StepLoss;
pub use trained::Trained;

/// Base samples whose images are shown after every epoch, `SAMPLES_PER_CLASS` for each class.
const SAMPLES_PER_CLASS: usize = 2;
/// Steps in a row that may fail before the run goes back to its last epoch on disk.
const MAX_SKIPPED: usize = 5;
/// After so long a training, measuring not counted, the next step that moves something is followed by a checkpoint:
/// epochs of a large world take hours.
const EVERY: Duration = Duration::from_secs(300);
/// Below this share of its learning rate a run gives up.
const SMALLEST_SCALE: f64 = 1.0 / 64.0;

/// A run in progress.
struct Run<'a> {
    spec: &'a TrainSpec,
    folder: &'a Path,
    chosen: OpenDevice,
    architecture: Architecture,
    pixels: Preprocessing,
    /// Shape of the images before they were padded.
    read: ImageShape,
    train: Dataset,
    labels: Vec<usize>,
    held_out: Dataset,
    test: Option<Dataset>,
    /// SHA-256 of the training part as padded, held-out images included.
    pixels_sha256: String,
    learner: Box<dyn Learner>,
    state: State,
    /// What its checkpoint does not say.
    unrecorded: Option<Unrecorded>,
    /// Steps in a row that moved nothing, the newest among them, those of the epoch before included.
    skipped: usize,
    /// From when on time is not yet in the state.
    since: Instant,
    /// When the last checkpoint was written, or the run opened.
    kept: Instant,
}

/// Trains all epochs in `folder`, from its last checkpoint if there is one. Every epoch ends in a checkpoint, and
/// there is one after every five minutes of training and where the caller stops;
/// the averaged weights of the best epoch by held-out NLL are in `best.safetensors`. Returns the run with the lock of its
/// folder, which nobody else writes into as long as that lives.
///
/// # Errors
/// Bad data or spec, a folder of another spec or with another oracle, a full disk, a failing device, or
/// [`Error::Cancelled`]; checkpoints stay.
fn all_epochs<'a>(
    spec: &'a TrainSpec,
    folder: &'a Path,
    chosen: &OpenDevice,
    events: &mut dyn Events<TrainEvent>,
) -> Result<(Run<'a>, File)> {
    spec.validate()?;
    let entered = claim::enter(folder)?;
    let mut run = match Run::begin(spec, folder, chosen) {
        Ok(run) => run,
        Err(error) => {
            entered.leave();
            return Err(error);
        }
    };
    run.restore_best()?;
    run.tell_start(events)?;
    while run.state.epoch < spec.training.epochs {
        let epoch = run.state.epoch + 1;
        let passed = match run.epoch(epoch, events) {
            Ok(Some(train_nll)) => run.finish_epoch(epoch, train_nll, events),
            Ok(None) => Err(Error::Numeric(format!("{} steps in a row were not finite", run.skipped))),
            Err(error) => Err(error),
        };
        match passed {
            Ok(()) => {}
            // The parameters are unusable: a loss that is not finite, a singular 1×1 convolution.
            Err(why) if why.is_numeric() => run = run.roll_back(epoch, events)?,
            Err(error) => return Err(error),
        }
    }
    Ok((run, entered.lock))
}

impl<'a> Run<'a> {
    /// [`Self::open`] in a folder that may be of another training; it is this one's from then on.
    fn begin(spec: &'a TrainSpec, folder: &'a Path, chosen: &OpenDevice) -> Result<Self> {
        claim::check_folder(spec, folder)?;
        let run = Self::open(spec, folder, chosen)?;
        claim::check_oracles(spec, Some(&run.pixels_sha256), folder)?;
        // Not before: a spec that cannot start claims no folder.
        claim::keep_spec(spec, folder)?;
        Ok(run)
    }

    fn open(spec: &'a TrainSpec, folder: &'a Path, chosen: &OpenDevice) -> Result<Self> {
        let (all, read) = data::corpus_and_shape(&spec.data, Split::Train)?;
        let (train, held_out) = data::split(&all, spec)?;
        drop(all);
        let labels = train.labels.clone().ok_or_else(|| data::without_labels(&train.name))?;
        // Looked at now, so that hours of training do not end in a complaint about it.
        let test = data::test_like(&spec.data, &train)?;
        let (architecture, pixels) = architecture(spec, &train);
        let pixels_sha256 = data::pixels_sha256(&train, &held_out);
        let images_sha256 = data::images_sha256(&pixels_sha256, &train, &held_out);
        let mut unrecorded = None;
        let (saved, state) = match checkpoint::load(folder, &spec.training)? {
            Some(Checkpoint { state, saved }) => {
                unrecorded = state.unrecorded(folder.join(SPEC).exists());
                (Some(saved), state.going_on(spec, images_sha256)?)
            }
            None => (None, State::new(spec, images_sha256)),
        };
        let learner = learner(spec, &train, saved, &chosen.device)?;
        let chosen = chosen.clone();
        Ok(Self {
            spec,
            folder,
            chosen,
            architecture,
            pixels,
            read,
            train,
            labels,
            held_out,
            test,
            pixels_sha256,
            learner,
            state,
            unrecorded,
            skipped: 0,
            since: Instant::now(),
            kept: Instant::now(),
        })
    }

    /// Reports how the sitting begins.
    fn tell_start(&mut self, events: &mut dyn Events<TrainEvent>) -> Result<()> {
        let (images, epochs) = (self.train.len(), self.spec.training.epochs);
        let started = TrainEvent::Started {
            images,
            held_out: self.held_out.len(),
            parameters: self.learner.parameters(),
            dims: self.train.shape.dims(),
            resumed_at: self.state.epoch,
            steps_done: self.state.within.steps,
            epochs,
        };
        self.tell(started, events)?;
        if let Some(unrecorded) = self.unrecorded {
            self.tell(TrainEvent::Unrecorded(unrecorded), events)?;
        }
        if self.state.epoch >= epochs {
            return Ok(());
        }
        let second_noise = self.spec.second_noise(&self.train.noises).map(TrainEvent::SecondNoise);
        let long_warm_up = self.spec.long_warm_up(images).map(TrainEvent::LongWarmUp);
        let wide_padding = self.spec.wide_padding(self.read).map(TrainEvent::WidePadding);
        let as_read = AsRead::of(&self.train).map(TrainEvent::AsRead);
        let mut said = [as_read, wide_padding, second_noise, long_warm_up].into_iter().flatten();
        said.try_for_each(|said| self.tell(said, events))
    }

    /// Reports an event. A pause, or what is done above this job meanwhile, is no time of training.
    fn tell(&mut self, event: TrainEvent, events: &mut dyn Events<TrainEvent>) -> Result<()> {
        let told = Instant::now();
        let answer = events.report(event);
        self.since += told.elapsed();
        answer
    }

    /// The checkpoint of the last epoch again, with half the learning rate: the data come in the same order, so
    /// that the same rate would fail in the same way.
    fn roll_back(self, epoch: usize, events: &mut dyn Events<TrainEvent>) -> Result<Self> {
        let rate_scale = self.state.rate_scale / 2.0;
        let rate = self.spec.training.learning_rate;
        if rate_scale < SMALLEST_SCALE {
            return Err(Error::Numeric(format!(
                "training diverges again and again in epoch {epoch}, even at {:.1e} of training.learning_rate = {rate}; lower it and start again",
                self.state.rate_scale
            )));
        }
        let (spec, folder, chosen) = (self.spec, self.folder, self.chosen.clone());
        // Its images and its flow make room for the same once more.
        drop(self);
        checkpoint::forget_within(folder)?;
        let mut run = Self::open(spec, folder, &chosen)?;
        run.state.rate_scale = rate_scale;
        // Whoever goes on after a stop at this place does not diverge at the old rate again.
        checkpoint::rewrite(run.folder, &run.state)?;
        run.tell(TrainEvent::RolledBack { epoch, rate_scale }, events)?;
        Ok(run)
    }

    /// One pass over the training images in the epoch's own order, or what is left of it. Returns the mean training NLL;
    /// `None` when the run must go back to its checkpoint.
    fn epoch(&mut self, epoch: usize, events: &mut dyn Events<TrainEvent>) -> Result<Option<f64>> {
        let t = &self.spec.training;
        let mut order: Vec<usize> = (0..self.train.len()).collect();
        order.shuffle(&mut t.seed.split("order").rng(epoch as u64));
        let steps = order.len().div_ceil(t.batch);
        let mut stop = None;
        for (k, chosen) in order.chunks(t.batch).enumerate().skip(self.state.within.steps) {
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
            self.state.within.steps = k + 1;
            let told = if loss.grad_norm.is_finite() {
                self.skipped = 0;
                self.state.within.images += chosen.len();
                self.state.within.nll += loss.nll * chosen.len() as f64;
                let step = TrainEvent::Step { epoch, epochs: t.epochs, step: k + 1, steps, loss, learning_rate };
                self.tell(step, events)
            } else {
                self.skipped += 1;
                if self.skipped > MAX_SKIPPED {
                    self.tell(TrainEvent::Skipped { epoch, step: k + 1 }, events)?;
                    return Ok(None);
                }
                self.tell(TrainEvent::Skipped { epoch, step: k + 1 }, events)
            };
            // A stop waits for a step whose parameters can be kept; where the epoch ends before, its end hears of it.
            stop = stop.or(told.err());
            if self.skipped == 0 {
                if stop.is_some() || self.kept.elapsed() > EVERY {
                    self.keep()?;
                }
                if let Some(stop) = stop {
                    return Err(stop);
                }
            }
        }
        let Within { images, nll, .. } = std::mem::take(&mut self.state.within);
        Ok((images > 0).then(|| nll / images as f64))
    }

    /// Writes a checkpoint, unless the newest step moved nothing: the parameters may be unusable then, and the
    /// checkpoint before is the way back.
    fn keep(&mut self) -> Result<()> {
        self.count_time();
        if self.skipped == 0 {
            let state = self.state.clone();
            checkpoint::save(self.folder, &Checkpoint { state, saved: self.learner.saved()? })?;
            self.kept = Instant::now();
        }
        Ok(())
    }

    /// Adds the time that has passed to that of the run.
    fn count_time(&mut self) {
        let now = Instant::now();
        self.state.seconds += (now - self.since).as_secs_f64();
        self.since = now;
    }

    /// Decay of the moving average: shorter at the start, so that it forgets the random weights.
    fn decay(&self, step: usize) -> f64 {
        let step = step as f64;
        self.spec.training.ema_decay.min((1.0 + step) / (10.0 + step))
    }

    /// Evaluates the averaged weights, writes the checkpoint, and after that the weights if they are
    /// the best: a training that is killed in between has them in its checkpoint. Weights of an epoch
    /// that ended in skipped steps are not kept, as [`Self::keep`] says.
    fn finish_epoch(&mut self, epoch: usize, train_nll: f64, events: &mut dyn Events<TrainEvent>) -> Result<()> {
        let flow = self.learner.frozen()?;
        let held_out = self.held_out_figures(flow.as_ref(), epoch, events)?;
        let best = self.skipped == 0 && self.state.best.as_ref().is_none_or(|best| held_out.nll_nats < best.nll);
        if best {
            let weights_sha256 = Some(so_far::hash(&self.learner.average()?)?);
            let (nll, held_out) = (held_out.nll_nats, Some(held_out.clone()));
            self.state.best = Some(Best { epoch, nll, held_out, weights_sha256 });
        }
        self.state.epoch = epoch;
        self.keep()?;
        if best {
            self.keep_best(self.learner.average()?)?;
        }
        let (epochs, seconds) = (self.spec.training.epochs, self.state.seconds);
        self.tell(TrainEvent::Epoch { epoch, epochs, train_nll, held_out, best, seconds }, events)?;
        match self.samples(flow.as_ref()) {
            Ok(pixels) => self.tell(TrainEvent::Samples { epoch, shape: self.train.shape, pixels }, events),
            // The inverse of an unfinished flow may overflow while its density is fine.
            Err(why) if why.is_numeric() => self.tell(TrainEvent::NoSamples { epoch, why: why.to_string() }, events),
            Err(error) => Err(error),
        }
    }

    /// Figures of an epoch's averaged weights. Who asks for a stop meanwhile waits until the epoch is on disk: the
    /// event after that ends the run.
    fn held_out_figures(
        &mut self,
        flow: &dyn Flow,
        epoch: usize,
        events: &mut dyn Events<TrainEvent>,
    ) -> Result<Evaluation> {
        let training = &self.spec.training;
        let mut told = measuring([epoch, epoch, training.epochs], Measured::HeldOut, events);
        let since = &mut self.since;
        let mut going_on = |progress| -> ControlFlow<()> {
            let begun = Instant::now();
            let _ = told(progress);
            *since += begun.elapsed();
            ControlFlow::Continue(())
        };
        let how = Dequantisation::Seeded(training.seed.split("held-out"));
        evaluate(flow, &self.held_out, how, &mut going_on)
    }

    /// 8-bit pictures of fixed latents.
    fn samples(&self, flow: &dyn Flow) -> Result<Vec<u8>> {
        let classes: Vec<usize> = (0..flow.classes() * SAMPLES_PER_CLASS).map(|i| i / SAMPLES_PER_CLASS).collect();
        let seed = self.spec.training.seed.split("samples");
        let noise = crate::flow::base::latents(seed, 0, classes.len(), self.train.shape.dims());
        Ok(self.pixels.picture(&flow.decode(&noise, &classes, Tau::ONE, &mut silent())?.x))
    }
}
