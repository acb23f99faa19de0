//! Task: an oracle is trained; what it has reported so far.

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::data::ImageShape;
use crate::error::Result;
use crate::oracle::evaluate::Evaluation;
use crate::oracle::folder::OracleInfo;
use crate::oracle::train::{ORACLE, TrainEvent, TrainSpec, train_oracle};
use crate::task::{Done, Task, TaskContext};

/// Trains an oracle in a folder, or goes on with that.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainOracle {
    /// What.
    pub spec: TrainSpec,
    /// Where.
    pub folder: PathBuf,
}

impl Task for TrainOracle {
    type Event = TrainEvent;
    type Live = TrainHistory;
    type Report = OracleInfo;

    fn title(&self) -> String {
        format!("Train {}", self.spec.name)
    }

    fn lets_oracles_open(&self) -> bool {
        true
    }

    fn fold(&self, live: &mut TrainHistory, event: &TrainEvent) {
        live.take(event);
    }

    fn run(&self, cx: &mut TaskContext<'_, TrainEvent>) -> Result<Done<OracleInfo>> {
        let chosen = cx.chosen;
        let info = train_oracle(&self.spec, &self.folder, chosen, &mut |event| tell(cx, event))?;
        let sentence = format!("oracle {} is in {}", info.name, self.folder.join(ORACLE).display());
        Ok(Done::new(info, sentence))
    }
}

/// Tells what a training says: of its steps a few, of everything else all.
fn tell(cx: &mut TaskContext<'_, TrainEvent>, event: TrainEvent) -> ControlFlow<()> {
    if event.progress().is_none_or(|at| cx.progress(at.stage, at.note)) {
        cx.event(event);
    }
    cx.check()
}

/// One finished epoch.
#[derive(Debug, Clone)]
pub struct EpochPoint {
    /// Epoch, from 1.
    pub epoch: usize,
    /// Mean training NLL, nats per image.
    pub train_nll: f64,
    /// On the held-out images.
    pub held_out: Evaluation,
}

/// Images of fixed latents after an epoch.
#[derive(Debug, Clone)]
pub struct FixedSamples {
    /// The epoch.
    pub epoch: usize,
    /// Which sheet of the run, from 1: an epoch done again has another one.
    pub stamp: u64,
    /// Shape of each.
    pub shape: ImageShape,
    /// 8-bit pictures, CHW.
    pub pictures: Vec<Vec<u8>>,
}

/// What a training has reported so far.
#[derive(Debug, Default)]
pub struct TrainHistory {
    /// A sentence about data and size.
    pub headline: String,
    /// Finished epochs.
    pub points: Vec<EpochPoint>,
    /// Training NLL of single steps against epochs, thinned.
    pub steps: Vec<[f64; 2]>,
    /// The best epoch so far.
    pub best: Option<usize>,
    /// Learning rate of the last step.
    pub learning_rate: Option<f64>,
    /// Steps that moved nothing because they were not finite.
    pub skipped: usize,
    /// What the learning rate is multiplied by since training diverged.
    pub rate_scale: Option<f64>,
    /// Images of the fixed latents after the epochs that are kept, oldest first.
    pub sheets: Vec<FixedSamples>,
    /// Sheets that have come so far.
    stamps: u64,
    /// The newest epoch without a sheet, and why.
    pub sheetless: Option<(usize, String)>,
    /// Epochs finished in an earlier sitting.
    pub resumed_at: usize,
    /// Whether an earlier sitting left a checkpoint.
    resumed: bool,
    /// Dimensions D of one image; 0 before the run has begun.
    pub dims: usize,
}

/// Memory for sheets, bytes.
const SHEETS: usize = 64 << 20;
/// Points kept of the curve of steps.
const MAX_STEPS: usize = 4000;

impl TrainHistory {
    /// Bits per dimension of an NLL in nats per image of 8-bit pixels.
    pub fn bits_per_dim(&self, nats: f64) -> f64 {
        nats / (self.dims.max(1) as f64 * std::f64::consts::LN_2)
    }

    /// Keeps a sheet, cut into images; where there is no room, every second of the older ones goes.
    fn keep(&mut self, epoch: usize, shape: ImageShape, pixels: &[u8]) {
        self.stamps += 1;
        let pictures = pixels.chunks_exact(shape.dims()).map(<[u8]>::to_vec).collect();
        self.sheets.retain(|old| old.epoch < epoch);
        self.sheets.push(FixedSamples { epoch, stamp: self.stamps, shape, pictures });
        let bytes = |sheets: &[FixedSamples]| -> usize {
            sheets.iter().map(|sheet| sheet.pictures.iter().map(Vec::len).sum::<usize>()).sum()
        };
        while self.sheets.len() > 2 && bytes(&self.sheets) > SHEETS {
            let last = self.sheets.len() - 1;
            let mut place = 0;
            self.sheets.retain(|_| {
                place += 1;
                place - 1 == last || (place - 1) % 2 == 0
            });
        }
    }

    /// Takes an event of the training into what is known of it.
    pub fn take(&mut self, event: &TrainEvent) {
        match event {
            TrainEvent::Started { images, held_out, parameters, dims, resumed_at, steps_done, .. } => {
                (self.dims, self.resumed_at) = (*dims, *resumed_at);
                self.resumed = *resumed_at > 0 || *steps_done > 0;
                self.headline = format!("{images} training images, {held_out} held out, {parameters} trained numbers");
                match (*resumed_at, *steps_done) {
                    (0, 0) => {}
                    (epochs, 0) => self.headline += &format!(", resumed after epoch {epochs}"),
                    (epochs, steps) => {
                        self.headline += &format!(", resumed after step {steps} of epoch {}", epochs + 1);
                    }
                }
            }
            TrainEvent::Step { epoch, step, steps, loss, learning_rate, .. } => {
                self.learning_rate = Some(*learning_rate);
                let at = (epoch - 1) as f64 + *step as f64 / (*steps).max(1) as f64;
                self.steps.push([at, loss.nll]);
                if self.steps.len() > MAX_STEPS {
                    let mut keep = false;
                    self.steps.retain(|_| {
                        keep = !keep;
                        keep
                    });
                }
            }
            TrainEvent::Unrecorded(missing) => self.headline += &format!(". {missing}"),
            TrainEvent::LongWarmUp(long) => self.headline += &format!(". {long}"),
            TrainEvent::WidePadding(wide) => self.headline += &format!(". {wide}"),
            TrainEvent::AsRead(read) => self.headline += &format!(". {read}"),
            TrainEvent::SecondNoise(noise) => self.headline += &format!(". {noise}"),
            TrainEvent::Measuring(_) => {}
            TrainEvent::Skipped { .. } => self.skipped += 1,
            TrainEvent::RolledBack { rate_scale, .. } => self.rate_scale = Some(*rate_scale),
            TrainEvent::Epoch { epoch, train_nll, held_out, best, .. } => {
                if *best {
                    self.best = Some(*epoch);
                }
                self.points.retain(|point| point.epoch < *epoch);
                self.points.push(EpochPoint { epoch: *epoch, train_nll: *train_nll, held_out: held_out.clone() });
            }
            TrainEvent::NoSamples { epoch, why } => self.sheetless = Some((*epoch, why.clone())),
            TrainEvent::Samples { epoch, shape, pixels } => self.keep(*epoch, *shape, pixels),
        }
    }

    /// Whether a step was done, in this sitting or an earlier one.
    pub fn can_go_on(&self) -> bool {
        self.resumed || self.has_begun()
    }

    /// Whether there is anything to draw.
    pub fn has_begun(&self) -> bool {
        !self.steps.is_empty() || !self.points.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_cut_into_images() {
        let mut history = TrainHistory::default();
        let pixels = [0, 1, 128, 255].repeat(20);
        let shape = ImageShape { channels: 1, height: 2, width: 2 };
        history.take(&TrainEvent::Samples { epoch: 1, shape, pixels });
        let samples = &history.sheets[0];
        assert_eq!(samples.pictures.len(), 20);
        assert_eq!(samples.pictures[3], [0, 1, 128, 255]);
    }

    #[test]
    fn old_sheets_make_room_and_an_epoch_done_again_replaces_itself() {
        let mut history = TrainHistory::default();
        let shape = ImageShape { channels: 1, height: 1024, width: 1024 };
        for epoch in (1..=100).chain([99, 100]) {
            history.take(&TrainEvent::Samples { epoch, shape, pixels: vec![0; shape.dims()] });
        }
        let epochs: Vec<usize> = history.sheets.iter().map(|sheet| sheet.epoch).collect();
        assert!(epochs.len() <= 64 && epochs.len() > 16, "{epochs:?}");
        assert_eq!((epochs[0], epochs[epochs.len() - 1]), (1, 100));
        assert!(epochs.is_sorted_by(|a, b| a < b));
        history.dims = 1024;
        assert!((history.bits_per_dim(1024.0 * 2f64.ln()) - 1.0).abs() < 1e-12);
    }
}
