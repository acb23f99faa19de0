//! Reads predictions of any framework, in the order of a world's images and classes.
//!
//! | file | what is read |
//! |---|---|
//! | `.npz` | one of `logits`, `log_probs`, `probs`, `probabilities`, `predictions` [n, K]; optionally `id`, `class_names`, `weights_sha256`, `dataset_sha256` |
//! | `.npy` | one array [n, K] in the order of the images |
//! | `.csv`, `.tsv`, `.txt` | an id column and K columns by class names, `0`…, `p0`…, `class_0`…; or numbers without a header |
//! | `.parquet` | the same columns, or one column of lists |
//!
//! Unambiguous problems are repaired and reported ([`Note`]); others are refused with the row and a
//! remedy. Logits, probabilities or log-probabilities are detected unless told.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Truth;
use crate::data::sha256_of_file;
use crate::error::{Error, Result};
use crate::events::silent;

mod columns;
mod csv;
mod ids;
mod kind;
mod note;
mod npz;
mod pages;
mod parquet;
mod raw;
#[cfg(test)]
mod tests;

pub use kind::{Kind, look_like_probabilities};
pub use note::Note;
pub(super) use npz::Pairing;
use raw::{DECISIONS, ID_NAMES, NAMES, Raw, listed, most_bytes};

/// What a caller knows about a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadOptions {
    /// What the numbers are, in place of looking.
    pub kind: Option<Kind>,
    /// What to call the model; the stem of the file otherwise.
    pub name: Option<String>,
}

/// Predictions of one model for every image of a [`Truth`], in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// What the model is called.
    pub name: String,
    /// Where they came from; absent for those computed here.
    pub path: Option<PathBuf>,
    /// SHA-256 of that file.
    pub sha256: Option<String>,
    /// SHA-256 of the file of the network that was run here.
    pub network_sha256: Option<String>,
    /// What the numbers were.
    pub kind: Kind,
    /// What was repaired, ignored or decided.
    pub notes: Vec<Note>,
    /// log q(y|x), [n, K], natural, finite, rows normalised.
    pub log_q: Vec<f64>,
    /// Places in `log_q` where q was 0 and is now the smallest normal f32.
    pub clamped: Vec<usize>,
}

/// log q(y|x) [n, K] of numbers of a known kind: natural, finite, rows normalised; and how many
/// probabilities were 0 and became the smallest normal f32.
///
/// # Errors
/// Names the image by its number in the array: NaN, infinity, a negative probability, a row that
/// does not add up to 1.
pub fn log_q(values: Vec<f64>, classes: usize, kind: Kind) -> Result<(Vec<f64>, usize), String> {
    let named = |i: usize| format!("image {i}");
    kind::finite(&values, classes, &named)?;
    let way_out = kind::mended(&values, classes).map_or_else(String::new, |way_out| format!("; {way_out}"));
    let (log_q, clamped) = kind::log_probabilities(values, classes, kind, &named, &mut Vec::new())
        .map_err(|cause| format!("{cause}{way_out}"))?;
    Ok((log_q, clamped.len()))
}

/// What numbers [n, K] of a command with `--kind` are, as told or by their values and what they are called; their
/// log q, and where it was −∞.
///
/// # Errors
/// Names the row and the remedy.
pub(super) fn understood(
    values: Vec<f64>,
    classes: usize,
    (told, called): (Option<Kind>, Option<&str>),
    named: &dyn Fn(usize) -> String,
    notes: &mut Vec<Note>,
) -> Result<(Kind, Vec<f64>, Vec<usize>), String> {
    let kind = kind::decide(&values, classes, told, called, named, notes)?;
    let way_out = kind::mended(&values, classes).unwrap_or("if these are logits, say so with --kind logits");
    let (log_q, clamped) =
        kind::log_probabilities(values, classes, kind, named, notes).map_err(|cause| format!("{cause}; {way_out}"))?;
    Ok((kind, log_q, clamped))
}

impl Predictions {
    /// Reads a file of predictions for the images of `truth`.
    ///
    /// # Errors
    /// Names the file, the row with its id, and the remedy: a format that is not read; another
    /// world or dataset; a wrong number of classes or rows; columns that are no classes; ids that
    /// are missing, doubled or invalid; NaN, infinity, negative probabilities; numbers that are
    /// neither probabilities nor logits.
    pub fn read(path: &Path, truth: &Truth, options: &ReadOptions) -> Result<Self> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let raw = match extension.as_str() {
            "npz" => npz::read_npz(path, truth),
            "npy" => npz::read_npy(path, truth),
            "csv" | "tsv" | "txt" => csv::read(path, truth),
            "parquet" | "pq" => parquet::read(path, truth),
            _ => Err(Error::file(path, "predictions are read from .npz, .npy, .csv and .parquet files")),
        }?;
        let bad = |cause: String| Error::file(path, cause);
        raw.check_world(truth).map_err(bad)?;
        let Raw { values, called, ids, mut notes, .. } = raw;
        let k = truth.classes;
        let rows = ids::rows(ids.as_deref(), values.len() / k, truth, &mut notes).map_err(bad)?;
        let columns: Vec<usize> = (0..k).collect();
        let values = npz::arranged(&values, values.len() / k, &rows, &columns);
        let named = |i: usize| match &ids {
            Some(ids) => format!("row {} (id {})", rows[i], ids[rows[i]]),
            None => format!("row {i}"),
        };
        let known = (options.kind, called.as_deref());
        let (kind, log_q, clamped) = understood(values, k, known, &named, &mut notes).map_err(bad)?;
        let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self {
            name: options.name.clone().unwrap_or_else(stem),
            path: Some(path.to_owned()),
            sha256: Some(sha256_of_file(path, &mut silent())?),
            network_sha256: None,
            kind,
            notes,
            log_q,
            clamped,
        })
    }

    /// Predictions computed here: a network's logits or log-probabilities [n, K].
    ///
    /// # Errors
    /// When there are not n·K of them, or one is NaN or infinite.
    pub fn of_logits(name: impl Into<String>, logits: &[f64], truth: &Truth) -> Result<Self> {
        let (n, k) = (truth.len(), truth.classes);
        if logits.len() != n * k {
            return Err(Error::input(format!("{} logits are not those of {n} images and {k} classes", logits.len())));
        }
        let (name, mut notes, kind) = (name.into(), Vec::new(), Kind::Logits);
        let named = |i: usize| format!("image {}", truth.image_name(i));
        kind::finite(logits, k, &named)
            .and_then(|()| kind::log_probabilities(logits.to_vec(), k, kind, &named, &mut notes))
            .map(|(log_q, clamped)| Self {
                name: name.clone(),
                path: None,
                sha256: None,
                network_sha256: None,
                kind,
                notes,
                log_q,
                clamped,
            })
            .map_err(|cause| Error::input(format!("{name}: {cause}")))
    }
}
