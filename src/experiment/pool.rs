//! Images on disk with all that is known about them, made once and read by whoever needs them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::images::{Batch, Images};
use super::spec::ExperimentSpec;
use crate::data::{ImageShape, Input, Pieces, WorldBatch, add_npz_in_pieces, holds_images, read_npz, with_way_out};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::world::{SampleSpec, Settings, World, to_world_batch};
use crate::units::{ClassId, Seed};

/// What the names of a condition's images end in, where its world is another one.
fn of_world(spec: &ExperimentSpec, condition: usize) -> String {
    spec.experiment.tau(condition).map_or(String::new(), |tau| format!("-tau-{}", tau.get()))
}

/// Name of the test images under a condition.
pub fn test_pool(spec: &ExperimentSpec, condition: usize) -> String {
    format!("test{}", of_world(spec, condition))
}

/// Name of the training images of a seed under a condition.
pub fn train_pool(spec: &ExperimentSpec, condition: usize, seed: u64) -> String {
    format!("train-{seed}{}", of_world(spec, condition))
}

/// Images of a part, at least: what is lost, at most, when a process is killed.
const PART: usize = 256;
/// What the names of the files of parts end in.
const ENDING: &str = "npz";

/// A file of images to come. Large ones are made in parts beside it, so that an interrupted one
/// resumes.
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a> {
    /// The file.
    pub file: &'a Path,
    /// Shape of every image.
    pub shape: ImageShape,
    /// How many.
    pub n: usize,
    /// How many are made at a time.
    pub batch: usize,
}

/// Makes the images of a range, at most a batch, and tells how many of them are done.
type Produce<'a> = dyn FnMut(Range<usize>, &mut dyn Events<Progress>) -> Result<WorldBatch> + 'a;

impl Pool<'_> {
    /// Draws the first images of a world under a seed, unless the file is there.
    ///
    /// The posteriors are those before x is rounded to 32 bits, as in `sample`. Labels are drawn
    /// from them, so cross-entropy and accuracy have no bias, and their mean entropy is the world's
    /// own. What rounding hides from a classifier counts as epistemic; [`World::rounded`] says
    /// whether there is any.
    ///
    /// # Errors
    /// As [`Self::fill`].
    pub fn draw(
        &self,
        world: &World,
        settings: &Settings,
        seed: Seed,
        events: &mut dyn Events<Progress>,
    ) -> Result<()> {
        let (spec, classes) = (SampleSpec::new(self.n, seed), world.class_names().len());
        self.fill(events, &mut |range, _| {
            let indices: Vec<usize> = range.collect();
            Ok(to_world_batch(self.shape, classes, &world.sample_indices(&spec, settings, &indices)?))
        })
    }

    /// Fills the file with what `produce` makes of one range after another, unless it is there.
    /// Several processes may do so at once: all read what the first has made.
    ///
    /// # Errors
    /// When a file cannot be written, or the caller stops; finished parts stay and are not made
    /// again.
    pub fn fill(&self, events: &mut dyn Events<Progress>, produce: &mut Produce<'_>) -> Result<()> {
        let parts = Pieces {
            folder: self.file.with_extension("parts"),
            prefix: String::new(),
            digits: 8,
            items: self.n,
            each: PART.next_multiple_of(self.batch),
        };
        let done = self.gather(&parts, events, produce);
        if matches!(done, Err(Error::Cancelled)) || !self.file.exists() {
            return done;
        }
        // Another process has finished the file, and perhaps removed the parts under this one.
        if let Err(error) = parts.remove() {
            tracing::warn!("{error}");
        }
        Ok(())
    }

    fn gather(&self, parts: &Pieces, events: &mut dyn Events<Progress>, produce: &mut Produce<'_>) -> Result<()> {
        if self.file.exists() {
            return Ok(());
        }
        if self.n <= parts.each {
            return self.write(self.file, 0..self.n, events, produce);
        }
        std::fs::create_dir_all(&parts.folder).map_err(|e| Error::io(&parts.folder, e))?;
        for range in parts.missing(ENDING, |path, images| holds_images(path, self.shape, images)) {
            if self.file.exists() {
                return Ok(());
            }
            self.write(&parts.file(&range, ENDING), range, events, produce)?;
        }
        add_npz_in_pieces(self.file, self.shape, self.n, |sink| {
            parts.ranges().try_for_each(|range| sink(&self.read_part(parts.file(&range, ENDING), range.len())?))
        })
    }

    /// Makes a range of images into one file.
    fn write(
        &self,
        file: &Path,
        range: Range<usize>,
        events: &mut dyn Events<Progress>,
        produce: &mut Produce<'_>,
    ) -> Result<()> {
        add_npz_in_pieces(file, self.shape, range.len(), |sink| {
            for first in range.clone().step_by(self.batch) {
                let piece = first..range.end.min(first + self.batch);
                let mut within = |p: Progress| events.emit(Progress { done: first + p.done, total: self.n });
                let images = produce(piece.clone(), &mut within)?;
                sink(&images)?;
                events.report(Progress { done: piece.end, total: self.n })?;
            }
            Ok(())
        })
    }

    fn read_part(&self, file: PathBuf, n: usize) -> Result<WorldBatch> {
        match read_npz(&file).map_err(|error| with_way_out(error, MADE_AGAIN))? {
            Input::World(batch) if batch.shape == self.shape && batch.len() == n => Ok(batch),
            _ => Err(other_images(&file)),
        }
    }
}

/// What to do about a file of images that cannot be used.
pub(super) const MADE_AGAIN: &str = "delete it: its images are made again, the same ones";

fn other_images(file: &Path) -> Error {
    Error::file(file, format!("holds other images than this run needs; {MADE_AGAIN}"))
}

/// Reads what [`Pool::fill`] wrote. Posteriors are computed again from the stored log-likelihoods
/// in f64, so that writer and readers have the same images to the bit.
///
/// # Errors
/// When the file holds other images than `n` of `shape`, or cannot be read.
pub fn read_pool(file: &Path, settings: &Settings, n: usize, shape: ImageShape) -> Result<Images> {
    let read = read_npz(file).map_err(|error| with_way_out(error, MADE_AGAIN))?;
    let Input::World(batch) = read else { return Err(other_images(file)) };
    let (true, Some(labels), Some(logp)) = (batch.shape == shape && batch.len() == n, &batch.y, &batch.logp) else {
        return Err(other_images(file));
    };
    let posterior = logp.chunks_exact(batch.classes).flat_map(|logp| settings.posterior(logp.to_vec()).probabilities);
    let all =
        Batch { labels: labels.iter().map(|&y| y as ClassId).collect(), posterior: posterior.collect(), x: batch.x };
    Ok(Images { shape, classes: batch.classes, all })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::events::silent;

    const SHAPE: ImageShape = ImageShape { channels: 1, height: 1, width: 2 };
    const N: usize = 1000;

    /// Image i is (i, −i), of class i mod 3, and a third as likely in each class.
    fn images(range: Range<usize>) -> WorldBatch {
        let n = range.len();
        WorldBatch {
            shape: SHAPE,
            x: range.clone().flat_map(|i| [i as f32, -(i as f32)]).collect(),
            classes: 3,
            y: Some(range.clone().map(|i| (i % 3) as i64).collect()),
            posterior: Some(vec![1.0 / 3.0; 3 * n]),
            logp: Some(range.flat_map(|i| [-(i as f64) / 7.0; 3]).collect()),
            aleatoric: Some(vec![3f64.ln(); n]),
        }
    }

    /// Fills a pool whose caller stops after so many ranges; how many were made.
    fn fill(file: &Path, stop_after: usize) -> (usize, Result<()>) {
        let pool = Pool { file, shape: SHAPE, n: N, batch: 60 };
        let (mut told, mut made) = (0, 0);
        let mut stop = |_: Progress| {
            told += 1;
            if told >= stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done = pool.fill(&mut stop, &mut |range, _| {
            made += 1;
            Ok(images(range))
        });
        (made, done)
    }

    #[test]
    fn an_interrupted_pool_goes_on_where_it_stopped_to_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, broken) = (folder.path().join("whole.npz"), folder.path().join("broken.npz"));
        let (all, done) = fill(&whole, usize::MAX);
        done.unwrap();
        assert_eq!(all, 17, "300 images a part of 5 ranges, 100 in the last one of 2");
        let (first, stopped) = fill(&broken, 8);
        assert!(matches!(stopped, Err(Error::Cancelled)) && first == 8);
        assert!(!broken.exists() && folder.path().join("broken.parts/00000000.npz").exists());
        // The first part, of five ranges, is not made again.
        let (rest, done) = fill(&broken, usize::MAX);
        done.unwrap();
        assert_eq!(rest, all - 5);
        assert_eq!(std::fs::read(&broken).unwrap(), std::fs::read(&whole).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no parts are left");
        assert_eq!(fill(&broken, usize::MAX).0, 0);
        let one = folder.path().join("one.npz");
        add_npz_in_pieces(&one, SHAPE, N, |sink| sink(&images(0..N))).unwrap();
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&whole).unwrap(), "parts change the file");
    }

    #[test]
    fn a_pool_that_another_process_finishes_is_that_processs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pool.npz");
        let pool = Pool { file: &file, shape: SHAPE, n: N, batch: 60 };
        let mut made = 0;
        // In the middle of the second part the file is there, and the parts are gone.
        let done = pool.fill(&mut silent(), &mut |range, _| {
            made += 1;
            if made == 7 {
                fill(&file, usize::MAX).1.unwrap();
            }
            Ok(images(range))
        });
        done.unwrap();
        assert!(made <= 10 && !file.with_extension("parts").exists());
        let settings = Settings::default_for(3);
        assert_eq!(read_pool(&file, &settings, N, SHAPE).unwrap().all.x[2 * 999], 999.0);
    }

    #[test]
    fn a_damaged_pool_is_named_with_the_way_out_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pool.npz");
        fill(&file, usize::MAX).1.unwrap();
        let whole = std::fs::read(&file).unwrap();
        let read = || read_pool(&file, &Settings::default_for(3), N, SHAPE);
        for damaged in [&whole[..whole.len() / 2], b"", b"no archive"] {
            std::fs::write(&file, damaged).unwrap();
            let said = read().map(drop).unwrap_err().to_string();
            assert!(said.contains("pool.npz") && said.contains("delete it: its images are made again"), "{said}");
        }
        std::fs::remove_file(&file).unwrap();
        fill(&file, usize::MAX).1.unwrap();
        assert!(std::fs::read(&file).unwrap() == whole && read().is_ok());
    }

    #[test]
    fn a_part_of_other_images_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, file) = (folder.path().join("whole.npz"), folder.path().join("pool.npz"));
        fill(&whole, usize::MAX).1.unwrap();
        fill(&file, 8).1.unwrap_err();
        let part = folder.path().join("pool.parts/00000000.npz");
        std::fs::remove_file(&part).unwrap();
        add_npz_in_pieces(&part, SHAPE, 2, |sink| sink(&images(0..2))).unwrap();
        fill(&file, usize::MAX).1.unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&whole).unwrap());
    }
}
