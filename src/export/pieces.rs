//! Images of a split, drawn and kept piece by piece.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::depth::{Costs, sampled};
use super::manifest::SplitRecord;
use super::rounded::Rounded;
use super::{ExportEvent, Format, Stage, Work, pictures};
use crate::data::{
    Levels, NpzImages, PARTS, Pieces, Split, holds_images, range_of, read_array, read_json, union_range, write_json,
    write_npz,
};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::posterior::Posterior;
use crate::oracle::rounding::Rounding;
use crate::oracle::world::{SampleSpec, to_world_batch};
use crate::stats::above_least;
use crate::units::Seed;

/// Bytes of images in a piece, at most (but for one image), and images, at most.
const BYTES: usize = 64 << 20;
const IMAGES: usize = 4096;
/// Endings of the files of a piece: its images, and its record.
const IMAGE_FILE: &str = "npz";
const RECORD_FILE: &str = "json";

/// Ending of the file with the numbers beside a piece's pictures.
fn rounded_file(bits: u32) -> String {
    format!("{bits}bit.npz")
}

/// The images of a split.
pub(super) struct SplitImages<'a> {
    pub work: &'a Work<'a>,
    pub split: Split,
    pieces: Pieces,
}

/// The record of a piece, written before its images.
#[derive(Debug, Serialize, Deserialize)]
struct PieceRecord {
    rounding: Rounding,
    /// Smallest and largest value of x.
    range: [f32; 2],
}

impl<'a> SplitImages<'a> {
    pub fn new(work: &'a Work<'a>, split: Split) -> Self {
        let bytes = work.world.shape().dims() * size_of::<f32>();
        let pieces = Pieces {
            folder: work.folder.join(PARTS),
            prefix: format!("{split}-"),
            digits: 9,
            items: work.spec.images(split),
            each: (BYTES / bytes).clamp(1, IMAGES),
        };
        Self { work, split, pieces }
    }

    /// Images of the split.
    pub fn images(&self) -> usize {
        self.pieces.items
    }

    /// Classes K.
    pub fn classes(&self) -> usize {
        self.work.world.class_names().len()
    }

    /// Running numbers of the images of every piece.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.pieces.ranges()
    }

    /// Seed of the split's images: image i is sample i under it.
    pub fn seed(&self) -> Seed {
        self.work.spec.seed.split("export").split(&self.split.to_string())
    }

    fn piece(&self, range: &Range<usize>) -> PathBuf {
        self.pieces.file(range, IMAGE_FILE)
    }

    /// The numbers beside the pictures of a piece.
    pub fn rounded(&self, range: &Range<usize>, bits: u32) -> PathBuf {
        self.pieces.file(range, &rounded_file(bits))
    }

    fn piece_record(&self, range: &Range<usize>) -> Result<PieceRecord> {
        read_json(&self.pieces.file(range, RECORD_FILE)).ok().flatten().ok_or_else(|| self.damaged(range))
    }

    /// Smallest and largest value of x of all images.
    pub fn range(&self) -> Result<[f32; 2]> {
        self.ranges().try_fold(range_of(&[]), |all, range| Ok(union_range(all, self.piece_record(&range)?.range)))
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
        let of = |logp: &[f64]| settings.posterior(logp.to_vec());
        logp.chunks_exact(self.classes()).map(of).collect()
    }

    /// Draws the pieces that are not there yet.
    pub fn draw(&self, events: &mut dyn Events<ExportEvent>) -> Result<()> {
        let shape = self.work.world.shape();
        let known =
            |path: &Path| read_json::<PieceRecord>(&path.with_extension(RECORD_FILE)).is_ok_and(|r| r.is_some());
        let sound = |path: &Path, images: usize| holds_images(path, shape, images) && known(path);
        let mut missing = self.pieces.missing(IMAGE_FILE, sound);
        missing.try_for_each(|range| self.draw_piece(&range, events))
    }

    fn draw_piece(&self, range: &Range<usize>, events: &mut dyn Events<ExportEvent>) -> Result<()> {
        let Work { world, spec, .. } = self.work;
        let settings = &spec.settings;
        let samples_of = SampleSpec::new(self.images(), self.seed());
        let (mut samples, mut rounding) = (Vec::with_capacity(range.len()), Rounding::default());
        let indices: Vec<usize> = range.clone().collect();
        for batch in indices.chunks(world.batch()) {
            // A slow world may be stopped within a batch.
            let now = self.drawing(range, samples.len());
            events.report(now)?;
            let drawn = world.sample_watched(&samples_of, settings, batch, &mut |_| events.emit(now))?;
            rounding.add(&world.rounding(&drawn, settings)?);
            samples.extend(drawn);
        }
        events.report(self.drawing(range, samples.len()))?;
        let smallest_and_largest =
            samples.iter().fold(range_of(&[]), |all, sample| union_range(all, range_of(&sample.x)));
        let record = PieceRecord { rounding, range: smallest_and_largest };
        write_json(&self.pieces.file(range, RECORD_FILE), &record)?;
        write_npz(&self.piece(range), &to_world_batch(world.shape(), self.classes(), &samples))
    }

    /// Progress of the drawing with `drawn` images of a piece.
    fn drawing(&self, range: &Range<usize>, drawn: usize) -> ExportEvent {
        let progress = Progress { done: range.start + drawn, total: self.images() };
        ExportEvent { stage: Stage::Drawing(self.split), progress }
    }

    /// Writes the missing pictures of these levels, then the numbers beside them.
    pub fn round(&self, levels: Levels, events: &mut dyn Events<ExportEvent>) -> Result<()> {
        let (bits, total) = (levels.bits, self.images());
        let at = |done| ExportEvent { stage: Stage::Rounding(self.split, bits), progress: Progress { done, total } };
        let format = Format::PNG.into_iter().find(|png| png.bits() == Some(bits) && self.work.spec.has(*png));
        let classes = self.classes();
        let sound =
            |path: &Path, images: usize| read_array(path, "logp").is_ok_and(|logp| logp.len() == images * classes);
        for range in self.pieces.missing(&rounded_file(bits), sound) {
            let mut watch = |progress: Progress| events.emit(at(range.start + progress.done));
            let rounded = Rounded::of(self, &range, levels, &mut watch)?;
            if let Some(format) = format {
                pictures::write(self, format, &range, &rounded.pixels)?;
            }
            rounded.write(&self.rounded(&range, bits), classes)?;
            events.report(at(range.end))?;
        }
        Ok(())
    }

    /// What `dataset.json` says of the split.
    pub fn record(&self, pictures: &[Levels]) -> Result<SplitRecord> {
        let settings = &self.work.spec.settings;
        let mut counts = vec![0; self.classes()];
        let (mut doubts, mut entropies, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
        let mut rounding = Rounding::default();
        let mut costs = vec![Costs::default(); pictures.len()];
        for range in self.ranges() {
            self.labels(&range)?.into_iter().for_each(|label| counts[label] += 1);
            let posteriors = self.posteriors(&range)?;
            if posteriors.len() != range.len() {
                return Err(self.damaged(&range));
            }
            doubts.extend(posteriors.iter().map(|posterior| posterior.doubt(posterior.decision)));
            entropies.extend(posteriors.iter().map(|posterior| posterior.entropy_nats));
            unsure.extend(posteriors.iter().map(|posterior| settings.class_doubt(posterior)));
            rounding.merge(&self.piece_record(&range)?.rounding);
            for (levels, costs) in pictures.iter().zip(&mut costs) {
                let logp = read_array(&self.rounded(&range, levels.bits), "logp")?;
                costs.add(settings, &posteriors, &self.posteriors_of(&logp));
            }
        }
        let classes = self.classes();
        let (most, seen) = ((classes as f64).ln(), above_least(unsure.into_iter()).count());
        let costs = pictures.iter().zip(costs).map(|(levels, costs)| (levels.bits, costs.finish(*levels, classes)));
        Ok(SplitRecord {
            images: self.images(),
            seed: self.seed(),
            counts,
            bayes_error: sampled(&doubts, seen, 1.0),
            aleatoric_nats: sampled(&entropies, seen, most),
            rounding,
            pictures: costs.collect(),
        })
    }
}
