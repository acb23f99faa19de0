//! The report: all rows, one sentence, and a file for a bug report.

use std::path::Path;

use serde::Serialize;

use super::checks::{Row, Verdict};
use crate::data::write_json;
use crate::device::{DeviceChoice, DeviceReport};
use crate::error::Result;
use crate::figure::Table;

/// Version of the file.
pub const FORMAT: u32 = 1;

/// All that a bug report needs.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// Of the program.
    pub version: &'static str,
    /// Operating system and architecture.
    pub system: String,
    /// The instruction set of the host's kernels, by which the references are computed.
    pub instructions: &'static str,
    /// What was asked for.
    pub asked: DeviceChoice,
    /// What was verified: device and driver, and why it was taken; none where there is no such
    /// device, or it fails at once.
    pub used: Option<DeviceReport>,
    /// Every comparison.
    pub rows: Vec<Row>,
    /// What was done about faults, such as fewer images at once where memory was short.
    pub notes: Vec<String>,
    /// Seconds in all.
    pub seconds: f64,
    /// Whether nothing failed and something passed.
    pub passed: bool,
    /// What came of it.
    pub sentence: String,
}

impl Report {
    /// Judges the rows, and says so.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let of = |verdict| self.rows.iter().filter(move |row| row.verdict == verdict);
        let (passed, failed) = (of(Verdict::Passed).count(), of(Verdict::Failed).count());
        let name = self.used.as_ref().map_or_else(|| self.asked.to_string(), |report| report.used.label());
        self.passed = failed == 0 && passed > 0;
        self.sentence = match of(Verdict::Failed).next() {
            None => format!("{name} computes correctly: all {passed} checks are within their bounds."),
            Some(first) => format!(
                "{failed} of {} checks failed on {name}, first {}, {}: do not trust figures that are computed there, and attach {} to a bug report.",
                passed + failed,
                first.case,
                first.check,
                self.file_name()
            ),
        };
        self
    }

    /// A name for its file.
    pub fn file_name(&self) -> String {
        let choice = self.used.as_ref().map_or(self.asked, |report| report.used.choice).to_string();
        let name: String = choice.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("bayescope-verify-{name}.json")
    }

    /// Writes it.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_json(path, self)
    }

    /// The rows, for the eye.
    pub fn table(&self) -> Table {
        let number = |value: Option<f64>| value.map(|value| format!("{value:.1e}"));
        Table::of(&self.rows)
            .words("case", |row: &Row| row.case)
            .words("check", |row| row.check.clone())
            .words("largest error", |row| number(row.error))
            .words("bound", |row| number(row.bound))
            .column("time", "s", 1, |row| row.seconds)
            .words("verdict", Row::judgement)
            .named(
                "verify",
                "Reference cases on this device",
                "Differences from 64-bit arithmetic on the CPU, or from the numbers of other implementations.",
            )
    }
}
