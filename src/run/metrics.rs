//! A cell's course: a file of lines, each whole or not there.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::write_atomically;
use crate::error::{Error, Result};
use crate::experiment::Watched;

const METRICS: &str = "metrics.jsonl";

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

/// The whole lines of a cell's metrics; a torn last one is left out.
///
/// # Errors
/// Names a file that is there and cannot be read.
pub fn read(cell: &Path) -> Result<Vec<Line>> {
    let path = cell.join(METRICS);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io(&path, e)),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).map_err(|e| Error::file(&path, e.to_string()))).collect()
}

/// Appends lines.
pub struct Writer {
    file: File,
    path: std::path::PathBuf,
    /// Steps whose mean makes one line.
    each: usize,
    /// Sum of losses, and how many.
    sum: (f64, usize),
}

/// Lines of a cell's training curve, at most about so many.
const POINTS: usize = 1000;

impl Writer {
    /// Goes on after step `step` of `steps`: what was written of later ones, before a kill, is dropped.
    ///
    /// # Errors
    /// Names the file.
    pub fn resume(cell: &Path, step: usize, steps: usize) -> Result<Self> {
        let path = cell.join(METRICS);
        let kept: Vec<String> = read(cell)?
            .iter()
            .filter(|line| line.step() <= step)
            .filter_map(|line| serde_json::to_string(line).ok().map(|line| line + "\n"))
            .collect();
        write_atomically(&path, |file| file.write_all(kept.concat().as_bytes()))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|e| Error::io(&path, e))?;
        Ok(Self { file, path, each: steps.div_ceil(POINTS).max(1), sum: (0.0, 0) })
    }

    /// Takes one step's loss.
    ///
    /// # Errors
    /// Names the file.
    pub fn step(&mut self, step: usize, loss: f64, rate: f64) -> Result<()> {
        self.sum = (self.sum.0 + loss, self.sum.1 + 1);
        if !step.is_multiple_of(self.each) {
            return Ok(());
        }
        let (sum, count) = std::mem::take(&mut self.sum);
        self.line(&Line::Train { step, loss: sum / count as f64, rate })
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
}
