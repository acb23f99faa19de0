//! A cell's course: a file of lines, each whole or not there.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::{open_regular, read_json, write_atomically, write_json};
use crate::error::{Error, Result};
use crate::experiment::Watched;

const METRICS: &str = "metrics.jsonl";
/// Losses of a training that goes on which no line has yet.
const REST: &str = "metrics-rest.json";

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Line {
    /// Mean over some steps.
    Train {
        /// The last of them.
        step: usize,
        /// Cross-entropy, nats, against what the classifier is told.
        loss: f64,
        /// Learning rate of the last.
        rate: f64,
    },
    /// A look at the watched test images.
    Watched(Watched),
}

impl Line {
    /// Steps done when it was written.
    pub fn step(&self) -> usize {
        match self {
            Self::Train { step, .. } => *step,
            Self::Watched(watched) => watched.step,
        }
    }
}

/// Most bytes of a log that are read for its course: some ten times what this program writes.
const COURSE: u64 = 4 << 20;

/// Bytes in which the last line of a log surely ends and begins.
const LAST: u64 = 64 << 10;

/// The whole lines of a cell's metrics, at most those of its last 4 MiB; a torn last one is left
/// out.
///
/// # Errors
/// Names a file that is there and cannot be read.
pub fn read(cell: &Path) -> Result<Vec<Line>> {
    tail(&cell.join(METRICS), COURSE)
}

/// The last whole line, whatever the length of the file.
///
/// # Errors
/// Those of [`read`].
pub fn last(cell: &Path) -> Result<Option<Line>> {
    Ok(tail(&cell.join(METRICS), LAST)?.pop())
}

/// The whole lines of the last `bytes` bytes.
fn tail(path: &Path, bytes: u64) -> Result<Vec<Line>> {
    let read = || {
        let mut file = open_regular(path)?;
        let begin = file.metadata()?.len().saturating_sub(bytes);
        // One byte more tells whether a line begins where the part does.
        file.seek(SeekFrom::Start(begin.saturating_sub(1)))?;
        let mut text = Vec::new();
        (&mut file).take(bytes + 1).read_to_end(&mut text)?;
        std::io::Result::Ok((begin, text))
    };
    let (begin, text) = match read() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|e| Error::io(path, e))?,
    };
    let first = if begin == 0 { 0 } else { text.iter().position(|&c| c == b'\n').map_or(text.len(), |at| at + 1) };
    let end = text.iter().rposition(|&c| c == b'\n').map_or(0, |at| at + 1);
    let whole = text.get(first..end).unwrap_or_default();
    let lines = whole.split(|&c| c == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|e| Error::file(path, e.to_string()))).collect()
}

/// Passes on the lines up to step `step`, one by one.
fn copy_until(path: &Path, step: usize, out: &mut dyn Write) -> std::io::Result<()> {
    let file = match open_regular(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut reader).take(LAST).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        if serde_json::from_slice::<Line>(&line)?.step() <= step {
            out.write_all(&line)?;
        }
    }
}

/// Losses that no line has yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Rest {
    /// The step of the last of them.
    step: usize,
    /// Their sum.
    sum: f64,
    /// How many.
    count: usize,
}

/// Appends lines.
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Steps in all.
    steps: usize,
    /// Steps whose mean makes one line.
    each: usize,
    rest: Rest,
}

/// Lines of a cell's training curve, at most about so many.
const POINTS: usize = 1000;

impl Writer {
    /// Resumes after step `step` of `steps`: lines of later steps, written before a kill, are
    /// dropped, and losses that [`Self::keep`] has kept at that step go into the next line.
    ///
    /// # Errors
    /// Names the file.
    pub fn resume(cell: &Path, step: usize, steps: usize) -> Result<Self> {
        let path = cell.join(METRICS);
        write_atomically(&path, |file| copy_until(&path, step, file))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|e| Error::io(&path, e))?;
        let kept: Option<Rest> = read_json(&cell.join(REST))?;
        let rest = kept.filter(|rest| rest.step == step).unwrap_or_default();
        Ok(Self { file, path, steps, each: steps.div_ceil(POINTS).max(1), rest })
    }

    /// Takes one step's loss.
    ///
    /// # Errors
    /// Names the file.
    pub fn step(&mut self, step: usize, loss: f64, rate: f64) -> Result<()> {
        self.rest = Rest { step, sum: self.rest.sum + loss, count: self.rest.count + 1 };
        if !step.is_multiple_of(self.each) && step != self.steps {
            return Ok(());
        }
        let Rest { sum, count, .. } = std::mem::take(&mut self.rest);
        self.line(&Line::Train { step, loss: sum / count as f64, rate })
    }

    /// Keeps the losses that no line has yet: to be called where a checkpoint is left.
    ///
    /// # Errors
    /// Names the file.
    pub fn keep(&self) -> Result<()> {
        if self.rest.count == 0 { Ok(()) } else { write_json(&self.path.with_file_name(REST), &self.rest) }
    }

    /// Writes one line.
    ///
    /// # Errors
    /// Names the file.
    pub fn line(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line).map_err(|e| Error::file(&self.path, e.to_string()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush()).map_err(|e| Error::io(&self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_writer_goes_on_from_its_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::resume(folder.path(), 0, 4).unwrap();
        (1..=3).for_each(|step| writer.step(step, step as f64, 0.1).unwrap());
        drop(writer);
        let path = folder.path().join(METRICS);
        let torn = std::fs::read_to_string(&path).unwrap() + "{\"kind\":\"tra";
        std::fs::write(&path, torn).unwrap();
        assert_eq!(read(folder.path()).unwrap().len(), 3);
        let mut writer = Writer::resume(folder.path(), 2, 4).unwrap();
        writer.step(3, 9.0, 0.1).unwrap();
        let lines = read(folder.path()).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2], Line::Train { step: 3, loss: 9.0, rate: 0.1 });
    }

    #[test]
    fn long_trainings_write_few_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::resume(folder.path(), 0, 5000).unwrap();
        (1..=5000).for_each(|step| writer.step(step, step as f64, 0.1).unwrap());
        let lines = read(folder.path()).unwrap();
        assert_eq!(lines.len(), 1000);
        assert_eq!(lines[0], Line::Train { step: 5, loss: 3.0, rate: 0.1 });
    }

    #[test]
    fn a_resumed_writer_writes_what_an_undisturbed_one_does() {
        let place = tempfile::tempdir().unwrap();
        let loss = |step: usize| (step as f64).sqrt();
        let go = |writer: &mut Writer, steps: std::ops::RangeInclusive<usize>| {
            steps.for_each(|step| writer.step(step, loss(step), 0.1).unwrap());
        };
        let [whole, killed] = ["whole", "killed"].map(|name| place.path().join(name));
        [&whole, &killed].into_iter().for_each(|cell| std::fs::create_dir(cell).unwrap());
        // Lines of three steps, and a last one of two.
        let steps = 2 * POINTS + 600;
        go(&mut Writer::resume(&whole, 0, steps).unwrap(), 1..=steps);
        let mut writer = Writer::resume(&killed, 0, steps).unwrap();
        go(&mut writer, 1..=1000);
        writer.keep().unwrap();
        // Lost with the kill.
        go(&mut writer, 1001..=1009);
        drop(writer);
        go(&mut Writer::resume(&killed, 1000, steps).unwrap(), 1001..=steps);
        assert_eq!(read(&killed).unwrap(), read(&whole).unwrap());
        let last = (loss(steps - 1) + loss(steps)) / 2.0;
        assert_eq!(read(&whole).unwrap().pop(), Some(Line::Train { step: steps, loss: last, rate: 0.1 }));
        // What was kept at another step is of another sitting.
        let mut other = Writer::resume(&killed, 999, steps).unwrap();
        go(&mut other, 1000..=1002);
        assert_eq!(read(&killed).unwrap().pop().unwrap().step(), 1002);
    }

    /// A log of 60 MB is read from its end, in the memory and the time of a short one.
    #[test]
    fn a_long_log_is_read_from_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(METRICS);
        let steps = 1_000_000;
        let line = |step| serde_json::to_string(&Line::Train { step, loss: 1.0, rate: 0.5 }).unwrap() + "\n";
        write_atomically(&path, |file| (1..=steps).try_for_each(|step| file.write_all(line(step).as_bytes()))).unwrap();
        let begun = std::time::Instant::now();
        assert_eq!(last(folder.path()).unwrap().unwrap().step(), steps);
        let course = read(folder.path()).unwrap();
        let took = begun.elapsed();
        assert!(took.as_secs_f64() < 1.0, "{took:?}");
        let first = course[0].step();
        assert!((10_000..200_000).contains(&course.len()), "{}", course.len());
        assert!(course.iter().map(Line::step).eq(first..=steps), "a line is lost at the seam");
        Writer::resume(folder.path(), 3, 10).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), [1, 2, 3].map(line).concat());
    }
}
