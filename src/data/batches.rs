//! Batches of images as rows of bytes: the "python version" of CIFAR-10/100 (Krizhevsky 2009) and
//! downsampled ImageNet (Chrabaszcz, Loshchilov & Hutter 2017, arXiv:1707.08819), pickled or npz.
//!
//! `data` is uint8 [N, 3·S·S], channel first. CIFAR's labels are `labels` or `fine_labels` from 0;
//! ImageNet's are `labels` from 1 to 1000.

use std::path::{Path, PathBuf};

use super::cifar::CIFAR10_NAMES;
use super::npz::read_npz_split;
use super::pickle::Batch;
use super::reader::Reader;
use super::source::{file_name, head};
use super::{Dataset, HeldNoises, ImageShape, Input, Split, names, numbered};
use crate::error::{Error, Result};

/// Classes of ImageNet, and the file with their names: lines of identifier, label, name.
const IMAGENET: usize = 1000;
const IMAGENET_NAMES: &str = "map_clsloc.txt";
/// Keys that only CIFAR's batches have.
const CIFAR_KEYS: [&str; 3] = ["fine_labels", "batch_label", "filenames"];

/// Returns whether a file begins like a pickle of protocol 2 to 5.
pub(super) fn is_pickle(start: &[u8]) -> bool {
    matches!(start, [0x80, 2..=5, ..])
}

/// The format, as [`super::open`] knows it.
pub(super) struct Batches;

impl Reader for Batches {
    fn words(&self) -> &'static str {
        "pickled batches of CIFAR and of downsampled ImageNet (data_batch_1, train_data_batch_1)"
    }

    fn label(&self) -> Option<&'static str> {
        Some("pickled batch")
    }

    fn is_named(&self, _: &str) -> bool {
        false
    }

    fn begins(&self, _: &Path, start: &[u8]) -> Result<bool> {
        Ok(is_pickle(start))
    }

    /// In the order of their numbers.
    fn files_of(&self, _: &Path, paths: &[PathBuf], split: Split) -> Result<Vec<PathBuf>> {
        let number = |name: &str, prefix: &str| {
            let number = name.strip_prefix(prefix)?;
            number.strip_suffix(".npz").filter(|_| prefix.starts_with("train")).unwrap_or(number).parse::<u32>().ok()
        };
        let place = |path: &PathBuf| {
            let name = file_name(path);
            let whole: &[&str] = match split {
                Split::Train => &["train"],
                Split::Test => &["test", "test_batch", "val_data", "val_data.npz"],
            };
            match split {
                _ if whole.contains(&name.as_str()) => Some(0),
                Split::Train => number(&name, "data_batch_").or_else(|| number(&name, "train_data_batch_")),
                Split::Test => None,
            }
        };
        // Anything may be called `train`.
        let known = |path: &PathBuf| {
            path.extension().is_some()
                || file_name(path).contains('_')
                || head(path, 2).is_ok_and(|start| is_pickle(&start))
        };
        let mut found: Vec<(u32, &PathBuf)> = paths
            .iter()
            .filter(|path| path.is_file())
            .filter_map(|path| Some((place(path)?, path)))
            .filter(|(_, path)| known(path))
            .collect();
        found.sort();
        // The same batch may be there pickled and as npz.
        found.dedup_by_key(|(number, path)| (*number, file_name(path).trim_end_matches(".npz").to_owned()));
        Ok(found.into_iter().map(|(_, path)| path.clone()).collect())
    }

    fn read(&self, files: &[PathBuf], _: Split, _: Option<usize>) -> Result<Input> {
        read_batches(files).map(Input::Pixels)
    }
}

/// Reads batches into one dataset. Pickles are not executed: they may hold arrays, lists and texts.
///
/// CIFAR's class names come from the pickled `batches.meta` or `meta` beside the first file, else
/// they are CIFAR-10's usual ten or `class 0` … (CIFAR-100). ImageNet's come from `map_clsloc.txt`,
/// else they are the labels `1` … `1000`. All of ImageNet-64 is 15.7 GB and must fit into memory; a
/// folder with some of its batches is a dataset as well.
///
/// # Errors
/// Names the file: no pickle of this kind, code to be run, rows that are no square RGB images,
/// labels that are missing or out of range, batches of different kinds.
pub fn read_batches(files: &[PathBuf]) -> Result<Dataset> {
    let mut whole: Option<Dataset> = None;
    for file in files {
        let batch = match file_name(file).to_ascii_lowercase().ends_with(".npz") {
            true => pixels_of(file)?,
            false => read_pickle(file)?,
        };
        let Some(whole) = &mut whole else {
            whole = Some(batch);
            continue;
        };
        if (batch.shape, batch.labels.is_some(), batch.class_names.len())
            != (whole.shape, whole.labels.is_some(), whole.class_names.len())
        {
            let cause = format!("does not go with {}, which has other images or labels", whole.name);
            return Err(Error::file(file, cause));
        }
        whole.pixels.extend(batch.pixels);
        whole.labels.iter_mut().zip(batch.labels).for_each(|(all, more)| all.extend(more));
        whole.ids = numbered(whole.ids.len() + batch.ids.len());
    }
    whole.ok_or_else(|| Error::input("no batch was named"))
}

fn pixels_of(file: &Path) -> Result<Dataset> {
    match read_npz_split(file, Split::Train)? {
        Input::Pixels(dataset) => Ok(dataset),
        Input::World(_) => Err(Error::file(file, "holds world-space tensors, but pixels are needed here")),
    }
}

fn read_pickle(file: &Path) -> Result<Dataset> {
    let mut pickle = Batch::open(file)?;
    let mut pixels = Vec::new();
    let size = pickle.rows("data", &mut pixels)?;
    if !CIFAR_KEYS.iter().any(|key| pickle.holds(key)) {
        let labels = pickle.holds("labels").then(|| pickle.integers("labels")).transpose()?;
        return imagenet(file, size, pixels, labels);
    }
    let (key, classes) = if pickle.holds("fine_labels") { ("fine_labels", 100) } else { ("labels", 10) };
    let labels = class_indices(file, key, &pickle.integers(key)?, 0, classes)?;
    let names = cifar_names(file, classes)?;
    dataset(file, size, pixels, Some(labels), names)
}

/// A batch of downsampled ImageNet: `size` rows of as many pixels.
pub(super) fn imagenet(
    file: &Path,
    size: (usize, usize),
    pixels: Vec<u8>,
    labels: Option<Vec<i64>>,
) -> Result<Dataset> {
    let labels = labels.map(|labels| class_indices(file, "labels", &labels, 1, IMAGENET)).transpose()?;
    let names = if labels.is_some() { imagenet_names(file)? } else { Vec::new() };
    dataset(file, size, pixels, labels, names)
}

/// Labels that count from `first` as indices of classes.
fn class_indices(file: &Path, key: &str, labels: &[i64], first: i64, classes: usize) -> Result<Vec<usize>> {
    let index = |(i, &label): (usize, &i64)| {
        label
            .checked_sub(first)
            .and_then(|index| usize::try_from(index).ok())
            .filter(|&index| index < classes)
            .ok_or_else(|| {
                let last = first + classes as i64 - 1;
                Error::file(
                    file,
                    format!("'{key}': image {i} has label {label}; labels here are from {first} to {last}"),
                )
            })
    };
    labels.iter().enumerate().map(index).collect()
}

fn dataset(
    file: &Path,
    (count, columns): (usize, usize),
    pixels: Vec<u8>,
    labels: Option<Vec<usize>>,
    class_names: Vec<String>,
) -> Result<Dataset> {
    let bad = |cause: String| Error::file(file, format!("'data': {cause}"));
    let side = (columns / 3).isqrt();
    if count == 0 || columns == 0 || 3 * side * side != columns {
        return Err(bad(format!("[{count}, {columns}]; rows are square RGB images of 3·S·S pixels")));
    }
    if let Some(labels) = labels.as_ref().filter(|labels| labels.len() != count) {
        return Err(bad(format!("{count} images, but {} labels", labels.len())));
    }
    let shape = ImageShape { channels: 3, height: side, width: side };
    let (ids, noises) = (numbered(count), HeldNoises::default());
    Ok(Dataset { name: file_name(file), shape, pixels, labels, class_names, ids, noises })
}

/// CIFAR's class names: from the pickle beside the batches, if it is there.
fn cifar_names(file: &Path, classes: usize) -> Result<Vec<String>> {
    let (meta, key) = if classes == 10 { ("batches.meta", "label_names") } else { ("meta", "fine_label_names") };
    let meta = file.with_file_name(meta);
    if meta.is_file() {
        let names = Batch::open(&meta)?.texts(key)?;
        if names.len() == classes {
            return Ok(names);
        }
    }
    Ok(match classes {
        10 => CIFAR10_NAMES.map(str::to_owned).to_vec(),
        _ => (0..classes).map(|i| format!("class {i}")).collect(),
    })
}

/// ImageNet's class names in the order of its labels.
fn imagenet_names(file: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = (1..=IMAGENET).map(|label| label.to_string()).collect();
    for line in names::beside(file, IMAGENET_NAMES)?.unwrap_or_default() {
        let mut words = line.split_whitespace().skip(1);
        let place = words.next().and_then(|label| label.parse::<usize>().ok()?.checked_sub(1));
        if let (Some(slot), Some(name)) = (place.and_then(|place| names.get_mut(place)), words.next()) {
            *slot = name.replace('_', " ");
        }
    }
    Ok(names)
}
