//! Arrays of predictions.

use std::path::Path;

use super::columns::{Layout, wrong_number};
use super::ids::rows;
use super::{DECISIONS, ID_NAMES, NAMES, Note, Raw, listed, most_bytes};
use crate::data::{Archive, Array, Types, Values, read_npy_file};
use crate::error::{Error, Result};
use crate::judge::{Truth, arrays};

/// Arrays that name the columns.
const CLASS_NAMES: [&str; 3] = ["class_names", "classes", "labels_names"];
/// What `np.savez` calls its first array when nobody names it.
const UNNAMED: &str = "arr_0";
/// Arrays that say of which world and which images an archive is.
const WEIGHTS: &str = "weights_sha256";
const IMAGES: &str = "dataset_sha256";

/// Reads an archive.
pub(super) fn read_npz(path: &Path, truth: &Truth) -> Result<Raw> {
    let bad = |cause: String| Error::file(path, cause);
    let mut archive = Archive::open(path, Types::All)?;
    let names = archive.names();
    let holds = |name: &&&str| names.iter().any(|there| there == *name);
    let Some(&name) = NAMES.iter().chain([&UNNAMED]).find(holds) else {
        return Err(bad(format!(
            "no predictions among the arrays {}; call the array [images, classes] logits, probs or log_probs",
            listed(&names)
        )));
    };
    let array = bounded(&mut archive, name, truth)?.ok_or_else(|| bad(format!("array {name}: missing")))?;
    let values = matrix(array, truth).map_err(|cause| bad(format!("array {name}: {cause}")))?;
    let said = Said::read(&mut archive, truth)?;
    let mut raw = Raw { values, called: (name != UNNAMED).then(|| name.to_owned()), ..said.raw };
    let columns = said.columns.as_ref().map(|(columns, _)| *columns);
    let is_read =
        |array: &str| [Some(name), said.id, columns].contains(&Some(array)) || [WEIGHTS, IMAGES].contains(&array);
    let unread: Vec<String> = names.iter().filter(|array| !is_read(array)).cloned().collect();
    if !unread.is_empty() {
        raw.notes.push(Note::ColumnsIgnored { names: unread });
    }
    let rows = raw.values.len() / truth.classes;
    if let Some((id, ids)) = said.id.zip(raw.ids.as_ref()).filter(|(_, ids)| ids.len() != rows) {
        return Err(bad(format!("array {id}: {} ids for {rows} rows of predictions", ids.len())));
    }
    if let Some((name, columns)) = said.columns {
        let layout = named_columns(&columns, truth).map_err(|cause| bad(format!("array {name}: {cause}")))?;
        layout.add_notes(&mut raw.notes);
        let as_they_came: Vec<usize> = (0..rows).collect();
        raw.values = arranged(&raw.values, rows, &as_they_came, &layout.classes);
    }
    Ok(raw)
}

/// What an archive says beside its numbers: of which world they are, and which rows and columns.
struct Said {
    /// Without values.
    raw: Raw,
    /// The array of the ids.
    id: Option<&'static str>,
    /// The array that names the columns, and the names.
    columns: Option<(&'static str, Vec<String>)>,
}

impl Said {
    fn read(archive: &mut Archive<'_>, truth: &Truth) -> Result<Self> {
        let names = archive.names();
        let path = archive.path().to_owned();
        let holds = |name: &&&str| names.iter().any(|there| there == *name);
        let mut read = |name: &str| bounded(archive, name, truth);
        let mut said = Self { raw: Raw::default(), id: None, columns: None };
        if let Some(&id) = ID_NAMES.iter().filter(|name| !name.is_empty()).find(|name| holds(name))
            && let Some(array) = read(id)?
        {
            said.raw.ids = Some(ids(array).map_err(|cause| Error::file(&path, format!("array {id}: {cause}")))?);
            said.id = Some(id);
        }
        said.raw.weights_sha256 = read(WEIGHTS)?.and_then(arrays::single_text);
        said.raw.dataset_sha256 = read(IMAGES)?.and_then(arrays::single_text);
        if let Some(&name) = CLASS_NAMES.iter().find(|name| holds(name)) {
            said.columns = read(name)?.and_then(|array| columns(array, truth.classes)).map(|columns| (name, columns));
        }
        Ok(said)
    }
}

/// Which row and which column of the arrays of an archive each image and each class has.
#[derive(Debug)]
pub(in crate::judge) struct Pairing {
    /// Rows that arrays have.
    pub rows: usize,
    /// The row of each image.
    images: Vec<usize>,
    /// The column of each class.
    classes: Vec<usize>,
    /// Arrays that say it, and which world they are of.
    said_by: Vec<&'static str>,
    /// What has to be said about it.
    pub notes: Vec<Note>,
}

impl Pairing {
    /// As for predictions: rows by ids, columns by the names of the classes, without them by order.
    ///
    /// # Errors
    /// Names the file: another world or dataset, ids that are missing, doubled or of no image, columns that are no classes.
    pub fn read(archive: &mut Archive<'_>, truth: &Truth) -> Result<Self> {
        let path = archive.path().to_owned();
        let bad = |cause: String| Error::file(&path, cause);
        let Said { raw, id, columns } = Said::read(archive, truth)?;
        raw.check_world(truth).map_err(bad)?;
        let mut pairing = Self {
            rows: raw.ids.as_ref().map_or(truth.len(), Vec::len),
            images: Vec::new(),
            classes: (0..truth.classes).collect(),
            said_by: [WEIGHTS, IMAGES].into_iter().chain(id).collect(),
            notes: Vec::new(),
        };
        if let Some((name, columns)) = columns {
            let layout = named_columns(&columns, truth).map_err(|cause| bad(format!("array {name}: {cause}")))?;
            layout.add_notes(&mut pairing.notes);
            pairing.classes = layout.classes;
            pairing.said_by.push(name);
        }
        pairing.images = rows(raw.ids.as_deref(), pairing.rows, truth, &mut pairing.notes).map_err(bad)?;
        Ok(pairing)
    }

    /// Whether an array was read for this.
    pub fn is_said_by(&self, name: &str) -> bool {
        self.said_by.contains(&name)
    }

    /// Values [.., rows, K] as [.., n, K], in the order of images and classes.
    pub fn of_classes<T: Copy>(&self, values: &[T]) -> Vec<T> {
        arranged(values, self.rows, &self.images, &self.classes)
    }

    /// Values [rows] as [n], in the order of images.
    pub fn of_images<T: Copy>(&self, values: &[T]) -> Vec<T> {
        arranged(values, self.rows, &self.images, &[0])
    }
}

/// The given rows and columns of tables [.., rows, columns.len()].
pub(super) fn arranged<T: Copy>(values: &[T], rows: usize, images: &[usize], columns: &[usize]) -> Vec<T> {
    let width = columns.len();
    let mut found = Vec::with_capacity(values.len());
    for table in values.chunks_exact((rows * width).max(1)) {
        for row in images.iter().map(|row| &table[row * width..(row + 1) * width]) {
            found.extend(columns.iter().map(|&column| row[column]));
        }
    }
    found
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

/// Names of columns: texts, or one whole number for each class, as scikit-learn's `classes_` are where labels were read as
/// floats. Others, such as a class for each image, are no names.
fn columns(array: Array, classes: usize) -> Option<Vec<String>> {
    let one_each = array.shape == [classes];
    match array.values {
        Values::Text(columns) => Some(columns),
        values @ (Values::I64(_) | Values::U8(_)) if one_each => {
            Some(values.integers()?.iter().map(ToString::to_string).collect())
        }
        values if one_each => {
            let whole = |number: f64| (number.fract() == 0.0).then(|| number.to_string());
            values.floats()?.into_iter().map(whole).collect()
        }
        _ => None,
    }
}

/// Reads a single array from a file that is no larger than its images need ([`most_bytes`]): its shape must account for
/// every byte of it.
pub(super) fn read_npy(path: &Path, truth: &Truth) -> Result<Raw> {
    if std::fs::metadata(path).map_err(|e| Error::io(path, e))?.len() > most_bytes(truth) {
        let (n, k) = (truth.len(), truth.classes);
        return Err(Error::file(path, format!("is larger than {n} images of {k} classes need")));
    }
    let values = matrix(read_npy_file(path, Types::All)?, truth).map_err(|cause| Error::file(path, cause))?;
    Ok(Raw { values, ..Raw::default() })
}

/// Numbers [rows, K].
fn matrix(array: Array, truth: &Truth) -> Result<Vec<f64>, String> {
    if let (&[_] | &[_, 1], Values::I64(_) | Values::U8(_)) = (&array.shape[..], &array.values) {
        return Err(format!("{}: {DECISIONS}", arrays::described(&array)));
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
fn ids(array: Array) -> Result<Vec<String>, String> {
    if !matches!(array.shape[..], [_] | [_, 1]) {
        return Err(format!("{}; ids are numbers or names of shape [images]", arrays::described(&array)));
    }
    Ok(match array.values {
        Values::U8(ids) => ids.iter().map(ToString::to_string).collect(),
        Values::I64(ids) => ids.iter().map(ToString::to_string).collect(),
        Values::F32(ids) => ids.iter().map(|&id| f64::from(id).to_string()).collect(),
        Values::F64(ids) => ids.iter().map(ToString::to_string).collect(),
        Values::Text(ids) => ids,
    })
}

/// Where the classes are among columns of given names.
fn named_columns(columns: &[String], truth: &Truth) -> Result<Layout, String> {
    match columns.len() == truth.classes {
        true => Layout::of(columns, truth),
        false => Err(format!("names of {}", wrong_number(columns.len(), truth))),
    }
}
