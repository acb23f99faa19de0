//! What a training of a flow tells while it runs.

use std::ops::ControlFlow;

use serde::Serialize;

use super::as_read::AsRead;
use super::checkpoint::Unrecorded;
use super::padding::WidePadding;
use super::schedule::LongWarmUp;
use super::second_noise::SecondNoise;
use super::step::StepLoss;
use crate::data::ImageShape;
use crate::events::{Events, Progress};
use crate::oracle::evaluate::Evaluation;

/// What a flow in training is measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// The images on which the best epoch is chosen.
    HeldOut,
    /// The test images, once, by the weights of the best epoch.
    Test,
    /// Images by those weights as trained and as stored in 16 bits.
    Stored,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HeldOut => "held-out images",
            Self::Test => "test images",
            Self::Stored => "what storing in 16 bits changes",
        })
    }
}

/// How far a measurement of the averaged weights has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Measurement {
    /// The epoch whose weights they are, from 1.
    pub epoch: usize,
    /// Epochs that training has passed.
    pub passed: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// Which images, and what for.
    pub what: Measured,
    /// How many of them are through.
    pub progress: Progress,
}

impl std::fmt::Display for Measurement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { epoch, epochs, what, progress: Progress { done, total }, .. } = self;
        write!(f, "epoch {epoch} of {epochs} · measuring {what}, {done} of {total}")
    }
}

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
        /// Steps already done of the epoch after those.
        steps_done: usize,
        /// Epochs in all.
        epochs: usize,
    },
    /// Said at the start of a sitting: what a checkpoint does not say, and is not compared.
    Unrecorded(Unrecorded),
    /// Said at the start of a sitting: the training is too short for its warm-up.
    LongWarmUp(LongWarmUp),
    /// Said there, too: zeros are much of what is trained on.
    WidePadding(WidePadding),
    /// Said there, too: images are trained on otherwise than a viewer shows them.
    AsRead(AsRead),
    /// Said there, too: noise is added to pictures that hold some already.
    SecondNoise(SecondNoise),
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
    /// Training diverged and resumes from the last epoch on disk, or the beginning, with half the learning rate.
    RolledBack {
        /// The epoch that diverged, from 1.
        epoch: usize,
        /// What the learning rate is multiplied by from now on.
        rate_scale: f64,
    },
    /// Between two epochs, or after the last one: images pass through the averaged weights, a batch at a time.
    Measuring(Measurement),
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

/// How far a training is, as one of its events says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainProgress {
    /// Of what it is at: steps of all epochs, or images of a measurement. The last step is not counted as done, since the oracle is
    /// yet to be measured and written then.
    pub stage: Progress,
    /// Of the whole training: steps or epochs.
    pub whole: Progress,
    /// What it is at, in words.
    pub note: String,
}

impl TrainEvent {
    /// How far the training is, for an event that says so; there may be hundreds of these in a second.
    pub fn progress(&self) -> Option<TrainProgress> {
        match self {
            Self::Step { epoch, epochs, step, steps, loss, .. } => {
                let whole = Progress { done: (epoch - 1) * steps + step, total: epochs * steps };
                let stage = Progress { done: whole.done.min(whole.total.saturating_sub(1)), ..whole };
                let note = format!("epoch {epoch} of {epochs} · NLL {:.0} nats", loss.nll);
                Some(TrainProgress { stage, whole, note })
            }
            Self::Measuring(now) => {
                let whole = Progress { done: now.passed, total: now.epochs };
                Some(TrainProgress { stage: now.progress, whole, note: now.to_string() })
            }
            _ => None,
        }
    }
}

/// Passes on how far a measurement of the weights of `epoch` has come, after `passed` of `epochs` epochs.
pub(super) fn measuring<'a>(
    [epoch, passed, epochs]: [usize; 3],
    what: Measured,
    events: &'a mut dyn Events<TrainEvent>,
) -> impl FnMut(Progress) -> ControlFlow<()> + 'a {
    move |progress| events.emit(TrainEvent::Measuring(Measurement { epoch, passed, epochs, what, progress }))
}
