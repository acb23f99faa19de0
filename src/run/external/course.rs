//! The figures of every step of an external run, computed once a record.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::record::{self, Header, Listing, Misnamed, Stamp};
use super::refused::{self, Refused};
use super::spec::{ExternalFolder, PREDICTIONS, TestTruth};
use super::step::{Floor, Row, StepFigures};
use crate::error::{Error, Result};
use crate::measure::{Bootstrap, Measured, PerImage};

/// Most steps whose figures are kept; of more, every second, fourth … and the last.
pub const STEPS: usize = 20_000;

/// For so many records more at a time memory is asked.
const ROOM: usize = 1024;

/// What the records of an external run say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// Of every record that was read, by rising step.
    rows: Vec<Row>,
    /// What they have in common; nothing before the first.
    floor: Option<Floor>,
    /// Records that are no predictions, by step.
    refused: BTreeMap<u64, (Record, String)>,
    /// The last record, which may change where it lies, as those that are refused.
    last: Option<Record>,
    /// Files that are no records by their names.
    pub misnamed: Option<Misnamed>,
    /// Records in the folder.
    pub records: usize,
    /// Of how many records one is read, but for the last.
    pub every: usize,
    /// Records that are still to be read.
    pub waiting: usize,
    /// Whether nothing more comes.
    pub finished: bool,
    /// When the newest record was written, seconds since 1970.
    pub heard: Option<f64>,
    /// By what the folder of records is known to be unchanged; nothing where it had changed just before it was listed.
    still: Option<Stamp>,
    /// By what the test images are known to be those of the run; nothing where that is to be asked again.
    images: Option<Stamp>,
}

/// A record as it was found.
type Record = (PathBuf, Stamp);

impl Course {
    /// A course of these steps, on a thousand images.
    #[cfg(test)]
    pub(crate) fn of(steps: impl IntoIterator<Item = StepFigures>) -> Self {
        const IMAGES: usize = 1000;
        let steps: Vec<StepFigures> = steps.into_iter().collect();
        let floor = steps.first().map(|step| step.floor(IMAGES));
        let rows: Vec<Row> = steps.iter().map(|step| Row::of(step, IMAGES, 0)).collect();
        Self { records: rows.len(), rows, floor, every: 1, ..Self::default() }
    }

    /// Figures of the steps, by rising step.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = StepFigures> {
        self.floor.iter().flat_map(|floor| self.rows.iter().map(|row| row.figures(floor)))
    }

    /// How many steps were read.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// A step by its place among those that were read.
    pub fn step(&self, place: usize) -> Option<u64> {
        self.rows.get(place).map(|row| row.step)
    }

    /// The place of the step nearest to a number; of two the first.
    pub fn nearest(&self, wanted: f64) -> usize {
        let after = self.rows.partition_point(|row| (row.step as f64) < wanted);
        let off = |place: &usize| self.step(*place).map_or(f64::INFINITY, |step| (step as f64 - wanted).abs());
        [after.saturating_sub(1), after].into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(0)
    }

    /// The step with the smallest KL.
    pub fn best(&self) -> Option<StepFigures> {
        let best = self.rows.iter().min_by(|a, b| a.kl().total_cmp(&b.kl()))?;
        Some(best.figures(self.floor.as_ref()?))
    }

    /// Records that are no predictions on the test images.
    pub fn refused(&self) -> Vec<Refused> {
        self.refused.iter().map(|(&step, (_, why))| Refused { step, why: why.clone() }).collect()
    }

    /// What is not read, in sentences: records that are no predictions, one for each reason, and files that are not
    /// called by a step.
    pub fn unread(&self) -> Vec<String> {
        let refused = refused::sentences(self.refused.iter().map(|(&step, (_, why))| (step, why.as_str())));
        refused.into_iter().chain(self.misnamed.as_ref().map(Misnamed::sentence)).collect()
    }

    /// What was read at a step.
    fn row(&self, step: u64) -> Option<&Row> {
        self.rows.binary_search_by_key(&step, |row| row.step).ok().map(|place| &self.rows[place])
    }

    /// Whether a record of this step was read.
    fn has(&self, step: u64) -> bool {
        self.row(step).is_some() || self.refused.contains_key(&step)
    }

    /// The stamp of a record, if it is still there; remembers when it was written.
    fn hear(&mut self, path: &Path) -> Option<Stamp> {
        let stamp = Stamp::of(path)?;
        self.heard = stamp.seconds().into_iter().chain(self.heard).max_by(f64::total_cmp);
        Some(stamp)
    }

    /// What is known of a record, if it is unchanged.
    fn known(&self, step: u64, stamp: &Stamp) -> Option<Result<Row, &str>> {
        if let Some(row) = self.row(step) {
            return Some(Ok(*row)).filter(|_| row.mark == stamp.mark());
        }
        self.refused.get(&step).filter(|((_, old), _)| old == stamp).map(|(_, why)| Err(why.as_str()))
    }
}

impl ExternalFolder {
    /// Writes what a classifier predicts after a step, [n, K], as its contract says; a step that was
    /// logged before is replaced. A run that was finished goes on.
    ///
    /// # Errors
    /// When there are not n·K numbers, or a reader would refuse them, in its words: nothing is written then. Names the file that
    /// cannot be written or removed.
    pub fn log(&self, step: u64, header: &Header, values: &[f32]) -> Result<()> {
        record::write(&self.path.join(PREDICTIONS), step, header, &self.spec, values)?;
        self.go_on()
    }

    /// The last step that was logged, if any: a resumed writer may ask.
    ///
    /// # Errors
    /// Names the folder that cannot be listed.
    pub fn last_step(&self) -> Result<Option<u64>> {
        Ok(record::list(&self.path.join(PREDICTIONS))?.steps.last().map(|(step, _)| *step))
    }

    /// The seconds in the last record before a step that can be read, if it says them: the time of a training that goes
    /// on with this step begins there.
    ///
    /// # Errors
    /// Names the folder that cannot be listed.
    pub fn seconds_before(&self, step: u64) -> Result<Option<f64>> {
        let files = record::list(&self.path.join(PREDICTIONS))?.steps;
        let before = files.iter().rev().skip_while(|(known, _)| *known >= step);
        let last = before.map(|(_, path)| record::read(path, &self.spec)).find_map(Result::ok);
        Ok(last.and_then(|(header, _)| header.seconds))
    }

    /// Reads the records that are new or changed since `before`, at most `most` of them: the last,
    /// then some all over the course, so that a long one is seen as a whole at once.
    ///
    /// # Errors
    /// Names the folder that cannot be listed, or a file of test images that is wrong.
    pub fn look(&self, before: Option<&Course>, most: usize) -> Result<Course> {
        let images = self.check_images(before.and_then(|before| before.images))?;
        let finished = self.finished();
        let folder = self.path.join(PREDICTIONS);
        let still = Stamp::of(&folder).filter(Stamp::is_settled);
        let Listing { steps: files, misnamed } = record::list(&folder)?;
        let (records, every) = (files.len(), stride(files.len()));
        let mut course = Course { records, misnamed, every, finished, still, images, ..Course::default() };
        course.floor = before.and_then(|before| before.floor);
        // Nothing was renamed into the folder since: what was read of it need not be asked for one by one.
        let unchanged = before.filter(|before| still.is_some() && before.still == still);
        course.heard = unchanged.and_then(|before| before.heard);
        // Room for all that will be read, in whole steps: each look takes the memory that an earlier one gave back.
        course.rows.reserve_exact(records.div_ceil(every).next_multiple_of(ROOM));
        let mut fresh = Vec::new();
        for (i, (step, path)) in files.into_iter().enumerate() {
            let last = i + 1 == records;
            if !i.is_multiple_of(every) && !last {
                continue;
            }
            if let Some(row) = unchanged.filter(|_| !last).and_then(|before| before.row(step)) {
                course.rows.push(*row);
                continue;
            }
            let place = if last { u32::MAX } else { i.trailing_zeros() };
            if !last && !before.is_some_and(|before| before.has(step)) {
                fresh.push((place, step, path));
                continue;
            }
            // A file that is gone since it was listed.
            let Some(stamp) = course.hear(&path) else { continue };
            if last {
                course.last = Some((path.clone(), stamp));
            }
            match before.and_then(|before| before.known(step, &stamp)) {
                Some(Ok(row)) => course.rows.push(row),
                Some(Err(why)) => drop(course.refused.insert(step, ((path, stamp), why.to_owned()))),
                None => fresh.push((place, step, path)),
            }
        }
        fresh.sort_by_key(|(place, ..)| Reverse(*place));
        course.waiting = fresh.len().saturating_sub(most);
        if !fresh.is_empty() {
            let truth = self.truth()?;
            for (_, step, path) in fresh.into_iter().take(most) {
                let Some(stamp) = course.hear(&path) else { continue };
                match self.read(step, &path, &truth, stamp.mark(), &mut course.floor) {
                    Ok(row) => course.rows.push(row),
                    Err(why) => drop(course.refused.insert(step, ((path, stamp), why))),
                }
            }
            course.rows.sort_by_key(|row| row.step);
        }
        Ok(course)
    }

    /// Whether a look would find what is known: then thousands of files need not be asked. Records appear by being renamed,
    /// which changes their folder.
    pub fn is_known(&self, course: &Course) -> bool {
        let unchanged = |(path, stamp): &Record| Stamp::of(path) == Some(*stamp);
        course.waiting == 0
            && course.still.is_some()
            && course.still == Stamp::of(&self.path.join(PREDICTIONS))
            && course.finished == self.finished()
            && self.has_images(course.images)
            && course.last.iter().chain(course.refused.values().map(|(record, _)| record)).all(unchanged)
    }

    /// What a record says: log q, nats, [N, K], and how many probabilities were 0.
    pub(super) fn answers(&self, path: &Path) -> Result<(Header, Vec<f64>, usize), String> {
        let (header, values) = record::read(path, &self.spec)?;
        let (log_q, zeros) = record::answers(values, &self.spec)?;
        Ok((header, log_q, zeros))
    }

    /// What a record says, beside what all steps have in common: from the first of them.
    fn read(
        &self,
        step: u64,
        path: &Path,
        truth: &TestTruth,
        mark: u64,
        floor: &mut Option<Floor>,
    ) -> Result<Row, String> {
        let (header, log_q, zeros) = self.answers(path)?;
        let images = self.per_image(&log_q, truth)?;
        let known = floor.map_or_else(|| self.floor(&images), Ok)?;
        let of = [&truth.posterior[..], &log_q[..]];
        let figures = StepFigures::of(step, &header, &images, of, zeros, floor.insert(known));
        Ok(Row::of(&figures, truth.labels.len(), mark))
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
        let steps = record::list(&folder)?.steps;
        let last = steps.last().map_or_else(String::new, |(last, _)| format!("; the last one is of step {last}"));
        let found = steps.into_iter().find(|(known, _)| *known == step);
        found.map(|(_, path)| path).ok_or_else(|| Error::file(&folder, format!("has no record of step {step}{last}")))
    }

    /// What all steps have in common, from the images of any.
    fn floor(&self, images: &PerImage) -> Result<Floor, String> {
        images.measured(&self.draws()).map(|measured| Floor::of(&measured)).map_err(|why| why.to_string())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rand::RngExt;

    use super::*;
    use crate::measure::log_softmax;
    use crate::run::monitor::{Alarm, Named, Quantity, Steps, Track, alarms};
    use crate::units::{ClassId, Seed};

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

    #[test]
    fn where_errors_are_rare_only_who_knows_the_labels_is_told_to() {
        const IMAGES: usize = 500;
        let rare = |i: usize| 0.001 + 0.002 * i as f64 / IMAGES as f64;
        let p: Vec<f64> = (0..IMAGES).flat_map(|i| [1.0 - rare(i), rare(i)]).collect();
        let mut common: Option<Floor> = None;
        let mut told = |labels: &[ClassId], log_q: &[f64]| {
            let mut images = PerImage::new(2).unwrap();
            images.extend(&p, log_q, labels).unwrap();
            // The same for all, whatever the labels.
            let floor = *common.get_or_insert_with(|| Floor::of(&images.measured(&Bootstrap::new(Seed(1))).unwrap()));
            let figures = StepFigures::of(1, &Header::default(), &images, [&p[..], log_q], 0, &floor);
            let rows = vec![Row::of(&figures, IMAGES, 0)];
            let course = Course { rows, floor: Some(floor), records: 1, ..Course::default() };
            let (of, steps) = (Named::default(), Steps::Logged(Arc::new(course)));
            (figures.below_floors()[0], alarms(&Track { of, steps, finished: false, one_training: true }))
        };
        let exact: Vec<f64> = p.iter().map(|p| p.ln()).collect();
        let sharper = log_softmax(&exact.iter().map(|log_p| 2.0 * log_p).collect::<Vec<_>>(), 2);
        let mut below = 0;
        for draw in 0..300 {
            let mut rng = Seed(7).rng(draw);
            let labels: Vec<ClassId> = p.chunks(2).map(|p| usize::from(rng.random::<f64>() < p[1])).collect();
            for log_q in [&exact, &sharper] {
                let (nll, alarms) = told(&labels, log_q);
                below += usize::from(nll);
                assert_eq!(alarms, [], "draw {draw}");
            }
        }
        // Every third draw has no rare label: the NLL has hardly any width there.
        assert!(below > 100, "{below} of 600 are below the floor");
        let labels: Vec<ClassId> = (0..IMAGES).map(|i| usize::from(i % 100 == 99)).collect();
        let copied: Vec<f64> = labels.iter().flat_map(|&y| [[0.999, 0.001], [0.001, 0.999]][y].map(f64::ln)).collect();
        let (_, found) = told(&labels, &copied);
        assert!(matches!(found[..], [Alarm::BelowFloor { quantity: Quantity::Nll, .. }]), "{found:?}");
    }
}
