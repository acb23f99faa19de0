//! The figures of every step of an external run, computed once a record.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::record::{self, Header, Stamp};
use super::spec::{ExternalFolder, PREDICTIONS, TestTruth};
use crate::error::{Error, Result};
use crate::judge::log_q;
use crate::measure::{Bootstrap, Estimate, Interval, Measured, PerImage, Reliability, mean};

/// Most steps whose figures are kept; of more, every second, fourth … and the last.
pub const STEPS: usize = 20_000;

/// A classifier after a step, on the test images of its run. Intervals are 95 % over those images:
/// that of a share of hits is Wilson's, those of means are 1.96 s/√n, which do not fall below 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepFigures {
    /// Steps done.
    pub step: u64,
    /// Epochs done, where the record says so; likewise the next three.
    pub epoch: Option<f64>,
    /// Training images seen.
    pub images: Option<u64>,
    /// Seconds since the training began.
    pub seconds: Option<f64>,
    /// Training loss, nats, as the writer computed it.
    pub train_loss: Option<f64>,
    /// L = mean −Σ_y p log q, nats.
    pub cross_entropy: Estimate,
    /// A = mean H(p), nats: the same at every step.
    pub aleatoric: Estimate,
    /// mean KL(p‖q), nats.
    pub epistemic: Estimate,
    /// mean −log q(drawn label), nats.
    pub nll: Estimate,
    /// Share of images whose decision is not the drawn label.
    pub error: Estimate,
    /// mean 1 − p(argmax q): the mean error over all possible labels.
    pub expected_error: Estimate,
    /// mean 1 − max p: the Bayes error of the same images, the same at every step.
    pub bayes_error: Estimate,
    /// Expected calibration error against drawn labels, 15 bins.
    pub ece: f64,
    /// The same against the exact posteriors.
    pub exact_calibration_error: f64,
    /// Probabilities that were 0 and count as the smallest normal float32.
    pub zeros: usize,
}

/// A record that says nothing of a classifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its step.
    pub step: u64,
    /// Why, in words.
    pub why: String,
}

/// What the records of an external run say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    known: BTreeMap<u64, (Stamp, Result<StepFigures, String>)>,
    /// Records in the folder.
    pub records: usize,
    /// Of how many records one is read, but for the last.
    pub every: usize,
    /// Records that are still to be read.
    pub waiting: usize,
    /// Whether nothing more comes.
    pub finished: bool,
    /// By what the folder of records is known to be unchanged; nothing where it had changed just before it was listed.
    still: Option<Stamp>,
    /// Records that may change where they lie: the last, and those that could not be read.
    open: Vec<(PathBuf, Stamp)>,
}

impl Course {
    /// A course of these steps.
    #[cfg(test)]
    pub(crate) fn of(steps: impl IntoIterator<Item = StepFigures>) -> Self {
        let stamp = Stamp::of(Path::new(".")).unwrap();
        let known: BTreeMap<_, _> = steps.into_iter().map(|step| (step.step, (stamp, Ok(step)))).collect();
        Self { records: known.len(), known, every: 1, ..Self::default() }
    }

    /// Figures of the steps, by rising step.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &StepFigures> {
        self.known.values().filter_map(|(_, figures)| figures.as_ref().ok())
    }

    /// Records that are no predictions on the test images.
    pub fn refused(&self) -> Vec<Refused> {
        let refused = self.known.iter().filter_map(|(&step, (_, figures))| Some((step, figures.as_ref().err()?)));
        refused.map(|(step, why)| Refused { step, why: why.clone() }).collect()
    }

    /// When the newest record was written, seconds since 1970.
    pub fn heard(&self) -> Option<f64> {
        self.known.values().filter_map(|(stamp, _)| stamp.seconds()).max_by(f64::total_cmp)
    }
}

impl ExternalFolder {
    /// Writes what a classifier predicts after a step, [n, K], as its contract says; a step that was
    /// logged before is replaced.
    ///
    /// # Errors
    /// When there are not n·K numbers; names the file that cannot be written.
    pub fn log(&self, step: u64, header: &Header, values: &[f32]) -> Result<()> {
        record::write(&self.path.join(PREDICTIONS), step, header, &self.spec, values)
    }

    /// The last step that was logged, if any: a resumed writer may ask.
    ///
    /// # Errors
    /// Names the folder that cannot be listed.
    pub fn last_step(&self) -> Result<Option<u64>> {
        Ok(record::list(&self.path.join(PREDICTIONS))?.last().map(|(step, _)| *step))
    }

    /// Reads the records that are new or changed since `before`, at most `most` of them: the last,
    /// then some all over the course, so that a long one is seen as a whole at once.
    ///
    /// # Errors
    /// Names the folder that cannot be listed, or a file of test images that is wrong.
    pub fn look(&self, before: Option<&Course>, most: usize) -> Result<Course> {
        let finished = self.finished();
        let folder = self.path.join(PREDICTIONS);
        let still = Stamp::of(&folder).filter(Stamp::is_settled);
        let files = record::list(&folder)?;
        let (records, every) = (files.len(), stride(files.len()));
        let kept = |i: usize| i.is_multiple_of(every) || i + 1 == records;
        let (mut known, mut fresh) = (BTreeMap::new(), Vec::new());
        for (i, (step, path)) in files.iter().enumerate().filter(|(i, _)| kept(*i)) {
            // A file that is gone since it was listed.
            let Some(stamp) = Stamp::of(path) else { continue };
            match before.and_then(|before| before.known.get(step)).filter(|(old, _)| *old == stamp) {
                Some(same) => drop(known.insert(*step, same.clone())),
                None => fresh.push((i, *step, path, stamp)),
            }
        }
        fresh.sort_by_key(|(i, ..)| Reverse(if i + 1 == records { u32::MAX } else { i.trailing_zeros() }));
        let waiting = fresh.len().saturating_sub(most);
        if !fresh.is_empty() {
            let truth = self.truth()?;
            for (_, step, path, stamp) in fresh.into_iter().take(most) {
                let figures = self.figures(step, path, &truth);
                known.insert(step, (stamp, figures));
            }
        }
        let is_open = |i: usize, step: &u64| i + 1 == records || known.get(step).is_some_and(|(_, read)| read.is_err());
        let open =
            files.into_iter().enumerate().filter(|(i, (step, _))| is_open(*i, step)).filter_map(|(_, (step, path))| {
                let stamp = known.get(&step)?.0;
                Some((path, stamp))
            });
        let open = open.collect();
        Ok(Course { known, records, every, waiting, finished, still, open })
    }

    /// Whether a look would find what is known: then thousands of files need not be asked. Records appear by being renamed,
    /// which changes their folder.
    pub fn is_known(&self, course: &Course) -> bool {
        course.waiting == 0
            && course.still.is_some()
            && course.still == Stamp::of(&self.path.join(PREDICTIONS))
            && course.finished == self.finished()
            && course.open.iter().all(|(path, stamp)| Stamp::of(path) == Some(*stamp))
    }

    fn figures(&self, step: u64, path: &Path, truth: &TestTruth) -> Result<StepFigures, String> {
        let (header, images, zeros) = self.images(path, truth)?;
        Ok(StepFigures::of(step, &header, &images, zeros))
    }

    /// What a record says: log q, nats, [N, K], and how many probabilities were 0.
    pub(super) fn answers(&self, path: &Path) -> Result<(Header, Vec<f64>, usize), String> {
        let (header, values) = record::read(path, &self.spec)?;
        let (classes, kind) = (self.spec.test.classes.len(), self.spec.external.predictions);
        let (log_q, zeros) = log_q(values, classes, kind)
            .map_err(|cause| format!("{cause}; run.toml says that predictions are {}", kind.describe()))?;
        Ok((header, log_q, zeros))
    }

    /// The figures of every image after a step.
    fn images(&self, path: &Path, truth: &TestTruth) -> Result<(Header, PerImage, usize), String> {
        let (header, log_q, zeros) = self.answers(path)?;
        Ok((header, self.per_image(&log_q, truth)?, zeros))
    }

    /// The figures of every image of such answers.
    pub(super) fn per_image(&self, log_q: &[f64], truth: &TestTruth) -> Result<PerImage, String> {
        let classes = self.spec.test.classes.len();
        let measured = PerImage::new(classes).and_then(|mut images| {
            images.extend(&truth.posterior, log_q, &truth.labels)?;
            Ok(images)
        });
        measured.map_err(|error| error.to_string())
    }

    /// The record of a step.
    ///
    /// # Errors
    /// When there is none, or the folder cannot be listed.
    pub(super) fn record_of(&self, step: u64) -> Result<PathBuf> {
        let folder = self.path.join(PREDICTIONS);
        let found = record::list(&folder)?.into_iter().find(|(known, _)| *known == step);
        found.map(|(_, path)| path).ok_or_else(|| Error::file(&folder, format!("has no record of step {step}")))
    }

    /// All figures of a step that was read, with bootstrap intervals, as those of a trained cell.
    ///
    /// # Errors
    /// Names the record or the file of test images that cannot be read.
    pub fn measured(&self, step: u64) -> Result<Measured> {
        let (_, images) = self.images_at(step, &self.truth()?)?;
        images.measured(&self.draws())
    }

    /// log q after a step, [N, K], and the figures of every image.
    pub(super) fn images_at(&self, step: u64, truth: &TestTruth) -> Result<(Vec<f64>, PerImage)> {
        let path = self.record_of(step)?;
        let images = self.answers(&path).and_then(|(_, log_q, _)| {
            let images = self.per_image(&log_q, truth)?;
            Ok((log_q, images))
        });
        images.map_err(|why| Error::file(&path, why))
    }

    /// The draws behind all intervals over its test images.
    pub(super) fn draws(&self) -> Bootstrap {
        Bootstrap::new(self.spec.test.seed.split("external intervals"))
    }
}

/// The smallest power of two that leaves at most [`STEPS`] of so many records: a growing run keeps
/// what was read of it.
fn stride(records: usize) -> usize {
    records.div_ceil(STEPS).next_power_of_two()
}

impl StepFigures {
    /// The step with the smallest KL.
    pub fn best<'a>(steps: impl IntoIterator<Item = &'a Self>) -> Option<&'a Self> {
        steps.into_iter().min_by(|a, b| a.epistemic.value.total_cmp(&b.epistemic.value))
    }

    fn of(step: u64, header: &Header, images: &PerImage, zeros: usize) -> Self {
        let Header { epoch, images: seen, seconds, train_loss } = *header;
        let hits = (0..images.len()).filter(|&i| images.hit(i)).count();
        let reliability = Reliability::of(images);
        let kl: Vec<f64> = images.kl.iter().map(|kl| kl.max(0.0)).collect();
        Self {
            step,
            epoch,
            images: seen,
            seconds,
            train_loss,
            cross_entropy: around(&images.cross_entropy),
            aleatoric: around(&images.entropy),
            epistemic: around(&kl),
            nll: around(&images.nll),
            error: Estimate::proportion(hits, images.len()).complement(),
            expected_error: around(&complements(&images.expected)),
            bayes_error: around(&complements(&images.best)),
            ece: reliability.ece(),
            exact_calibration_error: reliability.exact_calibration_error(),
            zeros,
        }
    }
}

fn complements(shares: &[f64]) -> Vec<f64> {
    shares.iter().map(|share| 1.0 - share).collect()
}

/// The mean of numbers ≥ 0.
fn around(values: &[f64]) -> Estimate {
    let (value, half) = mean(values);
    Estimate { value, interval: Interval { low: (value - half).max(0.0), high: value + half } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_run_keeps_what_was_read_of_it() {
        let kept = |records: usize| (0..records).step_by(stride(records));
        for records in [1, STEPS, STEPS + 1, 3 * STEPS, 50 * STEPS + 7] {
            let shorter = kept(records.div_ceil(2)).collect::<Vec<_>>();
            assert!(kept(records).count() <= STEPS);
            assert!(kept(records).filter(|i| *i < records.div_ceil(2)).all(|i| shorter.contains(&i)));
        }
        assert_eq!((stride(0), stride(STEPS), stride(STEPS + 1)), (1, 1, 2));
    }
}
