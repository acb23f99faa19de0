//! Arrays of predictions.

use std::path::Path;

use super::columns::{Layout, wrong_number};
use super::{ID_NAMES, NAMES, Note, Raw, listed, most_bytes};
use crate::data::{Archive, Array, Types, Values, read_npy_file};
use crate::error::{Error, Result};
use crate::judge::{Truth, arrays};

/// Arrays that name the columns.
const CLASS_NAMES: [&str; 3] = ["class_names", "classes", "labels_names"];
/// What `np.savez` calls its first array when nobody names it.
const UNNAMED: &str = "arr_0";

/// Reads an archive.
pub(super) fn read_npz(path: &Path, truth: &Truth) -> Result<Raw> {
    let bad = |cause: String| Error::file(path, cause);
    let mut archive = Archive::open(path, Types::All)?;
    let names = archive.names();
    let holds = |name: &&&str| names.iter().any(|there| there == *name);
    let found: Vec<&str> = NAMES.iter().filter(|name| holds(name)).copied().collect();
    let Some(&name) = found.first().or(Some(&UNNAMED).filter(|name| holds(name))) else {
        return Err(bad(format!(
            "no predictions among the arrays {}; call the array [images, classes] logits, probs or log_probs",
            listed(&names)
        )));
    };
    let mut read = |name: &str| bounded(&mut archive, name, truth);
    let array = read(name)?.ok_or_else(|| bad(format!("array {name}: missing")))?;
    let values = matrix(array, truth).map_err(|cause| bad(format!("array {name}: {cause}")))?;
    let mut raw = Raw { values, called: (name != UNNAMED).then(|| name.to_owned()), ..Raw::default() };
    if found.len() > 1 {
        raw.notes.push(Note::ColumnsIgnored { names: found[1..].iter().map(|&name| name.to_owned()).collect() });
    }
    if let Some(&id) = ID_NAMES.iter().filter(|name| !name.is_empty()).find(|name| holds(name))
        && let Some(array) = read(id)?
    {
        raw.ids = Some(ids(array, raw.values.len() / truth.classes).map_err(|e| bad(format!("array {id}: {e}")))?);
    }
    raw.weights_sha256 = read("weights_sha256")?.and_then(arrays::single_text);
    raw.dataset_sha256 = read("dataset_sha256")?.and_then(arrays::single_text);
    if let Some(&name) = CLASS_NAMES.iter().find(|name| holds(name))
        && let Some(columns) = read(name)?.and_then(|array| columns(array, truth.classes))
    {
        raw.sort_columns(&columns, truth).map_err(|cause| bad(format!("array {name}: {cause}")))?;
    }
    Ok(raw)
}

/// An array, where it is no larger than one of these images needs: a small archive can hold a very large one.
fn bounded(archive: &mut Archive<'_>, name: &str, truth: &Truth) -> Result<Option<Array>> {
    let Some((shape, descr)) = archive.shape(name)? else { return Ok(None) };
    let item = item_bytes(&descr);
    let bytes = shape.iter().fold(item, |bytes, &size| bytes.saturating_mul(size as u64));
    if bytes > most_bytes(truth) {
        let (n, k) = (truth.len(), truth.classes);
        let why =
            format!("array {name}: type {descr} of shape {shape:?} is larger than {n} images of {k} classes need");
        return Err(Error::file(archive.path(), why));
    }
    // Predictions that are 0 and 1 pack into almost nothing.
    archive.read_known(name, truth.table_bytes())
}

/// Bytes of an item of a type as NPY says it: `<f8`, `|S5`, `<U12` (four bytes a sign).
fn item_bytes(descr: &str) -> u64 {
    let width: u64 = descr.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1);
    if descr.contains('U') { width.saturating_mul(4) } else { width }
}

/// Names of columns: texts, or one integer for each class as its number. Others, such as a class for each image, are
/// no names.
fn columns(array: Array, classes: usize) -> Option<Vec<String>> {
    let one_each = array.shape == [classes];
    match array.values {
        Values::Text(columns) => Some(columns),
        values @ (Values::I64(_) | Values::U8(_)) if one_each => {
            Some(values.integers()?.iter().map(ToString::to_string).collect())
        }
        _ => None,
    }
}

/// Reads a single array.
pub(super) fn read_npy(path: &Path, truth: &Truth) -> Result<Raw> {
    let values = matrix(read_npy_file(path, Types::All)?, truth).map_err(|cause| Error::file(path, cause))?;
    Ok(Raw { values, ..Raw::default() })
}

/// Numbers [rows, K].
fn matrix(array: Array, truth: &Truth) -> Result<Vec<f64>, String> {
    if let (&[_] | &[_, 1], Values::I64(_) | Values::U8(_)) = (&array.shape[..], &array.values) {
        return Err(format!(
            "{}: these are decisions. Loss and calibration need what the model gives each class: logits or probabilities",
            arrays::described(&array)
        ));
    }
    let shape = array.shape.clone();
    let (values, classes) = arrays::matrix(array)?;
    if classes == truth.classes {
        return Ok(values);
    }
    let turned = if shape[0] == truth.classes { ". Is it transposed?" } else { "" };
    Err(format!("shape {shape:?}: {}{turned}", wrong_number(classes, truth)))
}

/// Ids of any type, as text.
fn ids(array: Array, rows: usize) -> Result<Vec<String>, String> {
    if !matches!(array.shape[..], [_] | [_, 1]) {
        return Err(format!("{}; ids are numbers or names of shape [images]", arrays::described(&array)));
    }
    let ids: Vec<String> = match array.values {
        Values::U8(ids) => ids.iter().map(ToString::to_string).collect(),
        Values::I64(ids) => ids.iter().map(ToString::to_string).collect(),
        Values::F32(ids) => ids.iter().map(|&id| f64::from(id).to_string()).collect(),
        Values::F64(ids) => ids.iter().map(ToString::to_string).collect(),
        Values::Text(ids) => ids,
    };
    match ids.len() == rows {
        true => Ok(ids),
        false => Err(format!("{} ids for {rows} rows of predictions", ids.len())),
    }
}

impl Raw {
    /// Brings columns of given names into the order of the classes.
    fn sort_columns(&mut self, columns: &[String], truth: &Truth) -> Result<(), String> {
        if columns.len() != truth.classes {
            return Err(format!("names of {}", wrong_number(columns.len(), truth)));
        }
        let layout = Layout::of(columns, truth)?;
        layout.add_notes(&mut self.notes);
        for row in self.values.chunks_mut(truth.classes) {
            let sorted: Vec<f64> = layout.classes.iter().map(|&column| row[column]).collect();
            row.copy_from_slice(&sorted);
        }
        Ok(())
    }
}
