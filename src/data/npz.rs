//! NumPy archives (`np.savez`): world-space tensors with labels and posteriors, or pixels.

use std::path::{Path, PathBuf};

use super::archive::{Archive, MAX_LABEL, table_bytes};
use super::npy::{Array, Types, Values};
use super::reader::Reader;
use super::source::file_name;
use super::{Dataset, HeldNoises, ImageShape, Input, Split, WorldBatch, batches, numbered};
use crate::error::{Error, Result};

/// Names under which images and their labels are found, per split; the first that is there counts.
const TRAIN_KEYS: [[&str; 2]; 5] =
    [["x", "y"], ["images", "labels"], ["x_train", "y_train"], ["train_images", "train_labels"], [FLAT, "labels"]];
const TEST_KEYS: [[&str; 2]; 2] = [["x_test", "y_test"], ["test_images", "test_labels"]];
/// Name of the images of downsampled ImageNet, which are rows of pixels and whose labels count from
/// 1.
const FLAT: &str = "data";
/// Bytes before the numbers of an array of ours, at most.
const HEADER: u64 = 4096;

/// Reads an npz archive, stored or compressed, in C or Fortran order.
///
/// Array `x` of float32 or float64 [N, C, H, W] (C 1 or 3; float64 is rounded to float32) is world
/// space, with optional `y` [N], `posterior` [N, K], `logp` [N, K] and `aleatoric` [N]. Images of
/// uint8 [N, C, H, W], [N, H, W] or [N, H, W, 3] under `x`, `images`, `x_train` or `train_images`
/// are pixels, with labels under the name that goes with it; so are rows of pixels [N, 3·S·S] under
/// `data`, as downsampled ImageNet has them, with `labels` that count from 1.
///
/// # Errors
/// Names the file, the array and the cause: no images, wrong type or rank, sizes that disagree,
/// values that are not finite (with the image), a shape the entry has no bytes for, a damaged
/// archive.
pub fn read_npz(path: &Path) -> Result<Input> {
    read_npz_split(path, Split::Train)
}

/// Array `logp` of a world-space archive: log p(x|y) in nats, [N, K], and K. Skips the images.
///
/// # Errors
/// Names the file and what is missing or wrong in it.
pub fn read_logp(path: &Path) -> Result<(Vec<f64>, usize)> {
    let found = Archive::open(path, Types::Numbers)?.floats("logp", 2, 0)?;
    found.ok_or_else(|| Error::file(path, "array logp: missing"))
}

/// The numbers of an array of an archive of ours, of whatever rank, as float64; integers up to 2⁵³
/// are kept to the last digit. The other arrays are not read.
///
/// # Errors
/// Names the file and what is missing or wrong in it.
pub fn read_array(path: &Path, name: &str) -> Result<Vec<f64>> {
    let array = Archive::open(path, Types::Numbers)?.require(name)?;
    let cause = format!("array {name}: {} are no numbers", array.values.type_name());
    array.values.numbers().ok_or_else(|| Error::file(path, cause))
}

/// [`read_array`] of one number a row and so many rows. A larger or compressed array is not read: a
/// foreign file can only ask for as much as it brings.
///
/// # Errors
/// As [`read_array`]; when the array is of another size or compressed, or a number is not finite.
pub fn read_rows(path: &Path, name: &str, rows: usize) -> Result<Vec<f64>> {
    let length = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.len();
    let size = Archive::open(path, Types::Numbers)?.entry(name)?.map_or(0, |entry| entry.size());
    let bad = |cause: &str| Error::file(path, format!("array {name}: {cause}"));
    if size > length {
        return Err(bad("is compressed; ours are not"));
    }
    let fits = size <= (rows as u64).saturating_mul(8).saturating_add(HEADER);
    let values = if fits { read_array(path, name)? } else { Vec::new() };
    match fits && values.len() == rows && values.iter().all(|value| value.is_finite()) {
        true => Ok(values),
        false => Err(bad(&format!("does not hold {rows} finite numbers"))),
    }
}

/// [`read_npz`] of one split: `x_test` and its kin where the archive has them, else what there is.
pub(super) fn read_npz_split(path: &Path, split: Split) -> Result<Input> {
    let mut archive = Archive::open(path, Types::Numbers)?;
    let mut keys = match split {
        Split::Train => TRAIN_KEYS.to_vec(),
        Split::Test => [&TEST_KEYS[..], &TRAIN_KEYS[..2], &TRAIN_KEYS[4..]].concat(),
    };
    keys.retain(|[images, _]| archive.holds(images));
    let Some(&[images, label_key]) = keys.first() else {
        let mut names = archive.names();
        names.truncate(20);
        let names = if names.is_empty() { "none".into() } else { names.join(", ") };
        let cause = format!("no {split} images (an array called x, images or x_{split}) among the arrays: {names}");
        return Err(Error::file(path, cause));
    };
    let x = archive.require(images)?;
    let bad = |cause: String| Error::file(path, cause);
    // A small archive can hold a very large array.
    if let Some((shape, _)) = archive.shape(label_key)?
        && numbers(&shape) > numbers(&x.shape)
    {
        let cause = format!("array {label_key}: shape {shape:?} is larger than that of the images, {:?}", x.shape);
        return Err(bad(cause));
    }
    let y = archive.read(label_key)?;
    match x.values {
        Values::U8(pixels) if images == FLAT && x.shape.len() == 2 => {
            let labels = y.map(integers).transpose().map_err(|cause| bad(format!("array {label_key}: {cause}")))?;
            batches::imagenet(path, (x.shape[0], x.shape[1]), pixels, labels).map(Input::Pixels)
        }
        Values::F32(values) if images == "x" => world(&mut archive, &x.shape, values, y).map(Input::World),
        Values::F64(values) if images == "x" => {
            let values = values.into_iter().map(|v| v as f32).collect();
            world(&mut archive, &x.shape, values, y).map(Input::World)
        }
        Values::U8(pixels) => {
            let (count, shape, pixels) =
                pixels_nchw(&x.shape, pixels).map_err(|cause| bad(format!("array {images}: {cause}")))?;
            let labels = y.map(|y| class_labels(y, count)).transpose();
            let labels = labels.map_err(|cause| bad(format!("array {label_key}: {cause}")))?;
            let classes = labels.iter().flatten().max().map_or(0, |last| last + 1);
            let (class_names, ids, noises) = (numbered(classes), numbered(count), HeldNoises::default());
            Ok(Input::Pixels(Dataset { name: file_name(path), shape, pixels, labels, class_names, ids, noises }))
        }
        other => Err(bad(format!(
            "array {images}: type {}; world-space images are an array x of float32 or float64, pixels are uint8",
            other.type_name()
        ))),
    }
}

/// How many numbers an array of a shape has.
fn numbers(shape: &[usize]) -> usize {
    shape.iter().fold(1, |all, &size| all.saturating_mul(size))
}

/// The format, as [`super::open`] knows it.
pub(super) struct Npz;

impl Reader for Npz {
    fn words(&self) -> &'static str {
        "NumPy archives (.npz)"
    }

    fn label(&self) -> Option<&'static str> {
        Some(".npz")
    }

    fn is_named(&self, name: &str) -> bool {
        name.ends_with(".npz")
    }

    fn begins(&self, _: &Path, start: &[u8]) -> Result<bool> {
        Ok(start.starts_with(b"PK\x03\x04"))
    }

    fn files_of(&self, folder: &Path, _: &[PathBuf], split: Split) -> Result<Vec<PathBuf>> {
        Ok(Vec::from_iter(Some(folder.join(format!("{split}.npz"))).filter(|path| path.is_file())))
    }

    fn has_test(&self, path: &Path) -> Result<bool> {
        let archive = Archive::open(path, Types::Numbers)?;
        Ok(TEST_KEYS.iter().any(|[images, _]| archive.holds(images)))
    }

    fn read(&self, files: &[PathBuf], split: Split, _: Option<usize>) -> Result<Input> {
        read_npz_split(&files[0], split)
    }
}

/// Pixels in any accepted layout as NCHW. An ambiguous shape is taken as channels first.
fn pixels_nchw(shape: &[usize], pixels: Vec<u8>) -> Result<(usize, ImageShape, Vec<u8>), String> {
    let of = |channels, height, width| ImageShape { channels, height, width };
    let (n, shape, last) = match *shape {
        [n, h, w] => (n, of(1, h, w), false),
        [n, c @ (1 | 3), h, w] => (n, of(c, h, w), false),
        [n, h, w, c @ (1 | 3)] => (n, of(c, h, w), true),
        _ => {
            return Err(format!("shape {shape:?}; pixels are [N,C,H,W], [N,H,W] or [N,H,W,3]"));
        }
    };
    if pixels.is_empty() {
        return Err(format!("shape [{n}] of {shape} holds no pixels"));
    }
    if !last || shape.channels == 1 {
        return Ok((n, shape, pixels));
    }
    let channel_first = |image: &[u8]| {
        (0..shape.channels).flat_map(|c| image.iter().skip(c).step_by(shape.channels).copied()).collect::<Vec<u8>>()
    };
    let pixels = pixels.chunks_exact(shape.dims()).flat_map(channel_first).collect();
    Ok((n, shape, pixels))
}

/// Labels [N] or [N, 1] of any integer type.
fn integers(array: Array) -> Result<Vec<i64>, String> {
    let (kind, shape) = (array.values.type_name(), array.shape);
    let vector = matches!(shape[..], [_] | [_, 1]);
    let labels = array.values.integers().filter(|_| vector);
    labels.ok_or_else(|| format!("{kind} of shape {shape:?}; labels are integers [N]"))
}

/// Labels as class indices of `count` images of pixels.
fn class_labels(array: Array, count: usize) -> Result<Vec<usize>, String> {
    let labels = integers(array)?;
    if labels.len() != count {
        return Err(format!("{} labels for {count} images", labels.len()));
    }
    if let Some(i) = labels.iter().position(|label| !(0..=MAX_LABEL).contains(label)) {
        return Err(format!("image {i} has label {}; labels are from 0 to {MAX_LABEL}", labels[i]));
    }
    Ok(labels.into_iter().filter_map(|label| usize::try_from(label).ok()).collect())
}

/// The other arrays of a world-space batch, and the check that all agree.
fn world(archive: &mut Archive, shape: &[usize], x: Vec<f32>, y: Option<Array>) -> Result<WorldBatch> {
    let path = archive.path();
    let bad = |cause: String| Error::file(path, cause);
    let [images, channels @ (1 | 3), height, width] = *shape else {
        return Err(bad(format!("array x: shape {shape:?}; world-space images are [N,C,H,W] with C 1 or 3")));
    };
    if x.is_empty() {
        return Err(bad(format!("array x: shape {shape:?} holds no images")));
    }
    let y = y.map(integers).transpose().map_err(|cause| bad(format!("array y: {cause}")))?;
    let known = y.as_ref().filter(|y| y.len() == images).map_or(0, |y| table_bytes(y, None));
    let posterior = archive.floats("posterior", 2, known)?;
    let logp = archive.floats("logp", 2, known)?;
    let (of_posterior, of_logp) = (posterior.as_ref().map(|p| p.1), logp.as_ref().map(|l| l.1));
    if let (Some(a), Some(b)) = (of_posterior, of_logp)
        && a != b
    {
        return Err(bad(format!("arrays posterior and logp: {a} and {b} classes")));
    }
    let batch = WorldBatch {
        shape: ImageShape { channels, height, width },
        x,
        classes: of_posterior.or(of_logp).unwrap_or(0),
        y,
        posterior: posterior.map(|(values, _)| values.into_iter().map(|v| v as f32).collect()),
        logp: logp.map(|(values, _)| values),
        aleatoric: archive.floats("aleatoric", 1, known)?.map(|(values, _)| values),
    };
    batch.check().map_err(bad)?;
    Ok(batch)
}
