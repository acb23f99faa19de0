//! Images of a split, drawn and kept piece by piece.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::manifest::SplitRecord;
use super::rounded::{Drift, Rounded};
use super::{ExportEvent, PARTS, Stage, Work, pictures};
use crate::bayes::{Figure, of_samples};
use crate::data::{NpzImages, Split, read_array, write_atomically, write_npz};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::measure::{Estimate, Interval, mean};
use crate::oracle::posterior::Posterior;
use crate::oracle::rounding::Rounding;
use crate::oracle::world::{Sample, SampleSpec, to_world_batch};
use crate::units::Seed;

/// Bytes of images in a piece, at most (but for one image), and images, at most.
const BYTES: usize = 64 << 20;
const IMAGES: usize = 4096;

/// The images of a split.
pub(super) struct Pieces<'a> {
    pub work: &'a Work<'a>,
    pub split: Split,
    /// Images in a piece; fewer in the last one.
    each: usize,
}

/// What is known of a piece beside its images; written before them, which come last.
#[derive(Debug, Serialize, Deserialize)]
struct PieceRecord {
    rounding: Rounding,
}

impl<'a> Pieces<'a> {
    pub fn new(work: &'a Work<'a>, split: Split) -> Self {
        let bytes = work.world.shape().dims() * size_of::<f32>();
        Self { work, split, each: (BYTES / bytes).clamp(1, IMAGES) }
    }

    /// Images of the split.
    pub fn images(&self) -> usize {
        self.work.spec.images(self.split)
    }

    /// Classes K.
    pub fn classes(&self) -> usize {
        self.work.world.class_names().len()
    }

    /// Running numbers of the images of every piece.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (each, images) = (self.each, self.images());
        (0..images).step_by(each).map(move |first| first..(first + each).min(images))
    }

    /// Seed of the split's images: image i is sample i under it.
    pub fn seed(&self) -> Seed {
        self.work.spec.seed.split("export").split(&self.split.to_string())
    }

    fn file(&self, range: &Range<usize>, ending: &str) -> PathBuf {
        self.work.folder.join(PARTS).join(format!("{}-{:09}.{ending}", self.split, range.start))
    }

    fn piece(&self, range: &Range<usize>) -> PathBuf {
        self.file(range, "npz")
    }

    /// The numbers of the rounded pixels of a piece.
    pub fn rounded(&self, range: &Range<usize>) -> PathBuf {
        self.file(range, "8bit.npz")
    }

    /// World-space images of a piece, NCHW.
    pub fn x(&self, range: &Range<usize>) -> Result<Vec<f32>> {
        let path = self.piece(range);
        let images = NpzImages::open(&path)?.filter(|images| images.len() == range.len());
        images.ok_or_else(|| self.damaged(range))?.read(0..range.len())
    }

    /// An array of numbers of a piece, a row an image.
    pub fn numbers(&self, range: &Range<usize>, name: &str) -> Result<Vec<f64>> {
        read_array(&self.piece(range), name)
    }

    fn damaged(&self, range: &Range<usize>) -> Error {
        Error::file(self.piece(range), "is damaged; delete it and export again: only this piece is drawn anew")
    }

    /// Labels of a piece.
    pub fn labels(&self, range: &Range<usize>) -> Result<Vec<usize>> {
        Ok(self.numbers(range, "y")?.into_iter().map(|label| label as usize).collect())
    }

    /// Exact posteriors of a piece, in f64.
    pub fn posteriors(&self, range: &Range<usize>) -> Result<Vec<Posterior>> {
        Ok(self.posteriors_of(&self.numbers(range, "logp")?))
    }

    /// Posteriors of log p(x|y), [n, K], nats.
    fn posteriors_of(&self, logp: &[f64]) -> Vec<Posterior> {
        let settings = &self.work.spec.settings;
        let of = |logp: &[f64]| Posterior::new(logp.to_vec(), &settings.prior, settings.smoothing);
        logp.chunks_exact(self.classes()).map(of).collect()
    }

    /// Draws the pieces that are not there yet.
    pub fn draw(&self, events: &mut dyn Events<ExportEvent>) -> Result<()> {
        let total = self.images();
        for range in self.ranges() {
            if !self.piece(&range).is_file() {
                self.draw_piece(&range, events)?;
            }
            let progress = Progress { done: range.end, total };
            events.report(ExportEvent { stage: Stage::Drawing(self.split), progress })?;
        }
        Ok(())
    }

    fn draw_piece(&self, range: &Range<usize>, events: &mut dyn Events<ExportEvent>) -> Result<()> {
        let Work { world, spec, .. } = self.work;
        let settings = &spec.settings;
        let samples_of = SampleSpec::new(self.images(), self.seed());
        let (mut samples, mut rounding) = (Vec::with_capacity(range.len()), Rounding::default());
        let indices: Vec<usize> = range.clone().collect();
        for batch in indices.chunks(world.batch()) {
            // A slow world may be stopped within a batch.
            let now = self.drawing(range, samples.len(), 0);
            events.report(now)?;
            let drawn = world.sample_watched(&samples_of, settings, batch, &mut |_| events.emit(now))?;
            rounding.add(&world.rounding(&drawn, settings)?);
            samples.extend(drawn);
        }
        events.report(self.drawing(range, samples.len(), 0))?;
        if spec.is_eight_bit() {
            self.round(range, &samples, events)?;
        }
        let path = self.file(range, "json");
        let text = serde_json::to_vec(&PieceRecord { rounding }).map_err(|e| Error::file(&path, e.to_string()))?;
        write_atomically(&path, |out| out.write_all(&text))?;
        write_npz(&self.piece(range), &to_world_batch(world.shape(), self.classes(), &samples))
    }

    /// How far the drawing is, so many images of a piece drawn and, where there are 8-bit images, so many rounded: half the work each.
    fn drawing(&self, range: &Range<usize>, drawn: usize, rounded: usize) -> ExportEvent {
        let finished = if self.work.spec.is_eight_bit() { (drawn + rounded) / 2 } else { drawn };
        let progress = Progress { done: range.start + finished, total: self.images() };
        ExportEvent { stage: Stage::Drawing(self.split), progress }
    }

    /// Pictures, and the posteriors of their pixels.
    fn round(&self, range: &Range<usize>, samples: &[Sample], events: &mut dyn Events<ExportEvent>) -> Result<()> {
        let mut watch = |progress: Progress| events.emit(self.drawing(range, samples.len(), progress.done));
        let rounded = Rounded::of(self.work, samples, &mut watch)?;
        if self.work.spec.has(super::Format::Png) {
            pictures::write(self, samples, &rounded.pixels)?;
        }
        rounded.write(&self.rounded(range))
    }

    /// What `dataset.json` says of the split.
    pub fn record(&self) -> Result<SplitRecord> {
        let (mut counts, mut doubts, mut entropies) = (vec![0; self.classes()], Vec::new(), Vec::new());
        let mut rounding = Rounding::default();
        let mut drift = self.work.spec.is_eight_bit().then(|| Drift::new(self.work));
        for range in self.ranges() {
            self.labels(&range)?.into_iter().for_each(|label| counts[label] += 1);
            let posteriors = self.posteriors(&range)?;
            if posteriors.len() != range.len() {
                return Err(self.damaged(&range));
            }
            doubts.extend(posteriors.iter().map(doubt));
            entropies.extend(posteriors.iter().map(|posterior| posterior.entropy_nats));
            let path = self.file(&range, "json");
            let text = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
            let record: PieceRecord = serde_json::from_slice(&text).map_err(|e| Error::file(&path, e.to_string()))?;
            rounding.merge(&record.rounding);
            if let Some(drift) = &mut drift {
                let rounded = self.rounded(&range);
                let after = self.posteriors_of(&read_array(&rounded, "logp")?);
                drift.add(&posteriors, &after, &read_array(&rounded, "drift")?);
            }
        }
        let [bayes_error, aleatoric_nats] = estimates(&doubts, &entropies, self.classes());
        Ok(SplitRecord {
            images: self.images(),
            seed: self.seed(),
            counts,
            bayes_error,
            aleatoric_nats,
            rounding,
            eight_bit: drift.map(|drift| drift.finish(self.classes())),
        })
    }
}

/// 1 − max p, without the rounding of that difference.
pub(super) fn doubt(posterior: &Posterior) -> f64 {
    let others = posterior.probabilities.iter().enumerate().filter(|(k, _)| *k != posterior.decision);
    others.map(|(_, p)| p).sum()
}

/// Bayes error and aleatoric uncertainty (nats) of images, with the 95 % intervals of the world they are samples of.
pub(super) fn estimates(doubts: &[f64], entropies: &[f64], classes: usize) -> [Estimate; 2] {
    let of = |values, most| {
        let Figure { value, interval: (low, high), .. } = of_samples(values, doubts, most);
        Estimate { value, interval: Interval { low, high } }
    };
    [of(doubts, 1.0), of(entropies, (classes as f64).ln())]
}

/// A mean with the 95 % interval of what the values are a sample of.
pub(super) fn average(values: &[f64]) -> Estimate {
    let (value, half) = mean(values);
    Estimate { value, interval: Interval { low: (value - half).max(0.0), high: (value + half).min(f64::MAX) } }
}
