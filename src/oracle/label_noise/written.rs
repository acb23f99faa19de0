//! How label noise is written down: as words, as a matrix, in a file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Form, LabelNoise};
use crate::data::read_text;
use crate::error::{Error, Result};

/// What a table is, at the end of a refusal.
const TABLE: &str = "a line is a row of the matrix, as many numbers as there are rows, with commas between; lines that begin \
                     with # do not count";
/// Signs of a field that a message repeats.
const SHOWN: usize = 40;

/// As a spec, a manifest and a record hold it.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "label noise is symmetric:η, pair:η, by-class:η,η,…, a file, or a matrix of numbers")]
pub(super) enum Written {
    /// `symmetric:0.2`, `pair:0.2`, `by-class:0.1,0.2`, or a file.
    Words(String),
    /// Row by row.
    Matrix(Vec<Vec<f64>>),
}

impl TryFrom<Written> for LabelNoise {
    type Error = Error;
    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::Words(words) => Self::unread(&words),
            Written::Matrix(rows) => Self::matrix(rows),
        }
    }
}

impl From<LabelNoise> for Written {
    fn from(noise: LabelNoise) -> Self {
        let words = match noise.0 {
            Form::Matrix(rows, _) => return Self::Matrix(rows),
            Form::Symmetric(rate) => format!("symmetric:{rate}"),
            Form::Pair(rate) => format!("pair:{rate}"),
            Form::ByClass(rates) => {
                format!("by-class:{}", rates.iter().map(f64::to_string).collect::<Vec<_>>().join(","))
            }
            Form::File(path) => path.display().to_string(),
        };
        Self::Words(words)
    }
}

impl LabelNoise {
    /// What the words say; a file that they name is not read yet.
    ///
    /// # Errors
    /// When they say nothing.
    pub fn unread(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = |why: String| {
            Error::input(format!(
                "label noise {text:?}: {why}; it is symmetric:0.2, pair:0.2, by-class:0.1,0.2,…, a matrix [[…],…], or a file .csv or .json"
            ))
        };
        if text.starts_with('[') {
            return Self::matrix(
                serde_json::from_slice(text.as_bytes()).map_err(|e| wrong(format!("is no list of lists: {e}")))?,
            );
        }
        let number = |text: &str| {
            let text = text.trim();
            text.parse::<f64>().map_err(|_| wrong(format!("{text:?} is no number")))
        };
        if let Some((kind, numbers)) = text.split_once(':') {
            match kind.trim() {
                "symmetric" => return Self::symmetric(number(numbers)?),
                "pair" => return Self::pair(number(numbers)?),
                "by-class" => return Self::by_class(numbers.split(',').map(number).collect::<Result<_>>()?),
                _ => {}
            }
        }
        let path = PathBuf::from(text);
        match is(&path, "csv") || is(&path, "json") {
            true => Ok(Self(Form::File(path))),
            false => Err(wrong("unknown".into())),
        }
    }
}

fn is(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending))
}

/// The matrix of a file: rows of numbers between commas (`.csv`; lines that begin with # do not count), or a list of
/// lists (`.json`).
pub(super) fn read(path: &Path) -> Result<LabelNoise> {
    let text = read_text(path).map_err(|e| Error::io(path, e))?;
    let text = text.trim_start_matches('\u{feff}');
    let rows = match is(path, "json") {
        true => serde_json::from_slice(text.as_bytes())
            .map_err(|e| Error::file(path, format!("is no list of lists of numbers, [[…],…]: {e}")))?,
        false => rows(text).map_err(|cause| Error::file(path, format!("{cause}; {TABLE}")))?,
    };
    LabelNoise::matrix(rows).map_err(|e| Error::file(path, e.to_string()))
}

/// The rows of a table. There is room for a row once it is as long as the first, and for as many rows as that has numbers: so
/// few bytes as `1` and a line end would else ask for a row each.
fn rows(text: &str) -> Result<Vec<Vec<f64>>, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (at, line) in lines {
        let given = line.split(',').count();
        let classes = rows.first().map_or(given, Vec::len);
        if given != classes {
            return Err(format!("line {at}: {given} numbers, and the first row has {classes}"));
        }
        if rows.len() == classes {
            return Err(format!("line {at}: a row more than the {classes} numbers of each"));
        }
        let mut row = Vec::with_capacity(classes);
        for cell in line.split(',').map(str::trim) {
            let shown = || cell.chars().take(SHOWN).collect::<String>();
            row.push(cell.parse().map_err(|_| format!("line {at}: {:?} is no number", shown()))?);
        }
        rows.push(row);
    }
    Ok(rows)
}
