//! Finding out what a path holds, by its name where that is telling and by its content otherwise.

use std::path::{Path, PathBuf};

use super::cifar::{Cifar, records_of_len};
use super::folder::{is_image_name, read_folder_within, read_image_files_within};
use super::npz::{has_test, read_npz_split};
use super::source::{entries, file_name, head, open_file};
use super::{Dataset, Input, Split, batches, idx, read_batches, read_cifar10, read_cifar100, read_idx};
use crate::error::{Error, Result};

const SUPPORTED: &str = "supported are NumPy archives (.npz), IDX files (*-images-idx3-ubyte, also .gz), CIFAR-10 and \
     CIFAR-100 binary files (.bin), pickled batches of CIFAR and of downsampled ImageNet (data_batch_1, train_data_batch_1), images (PNG, JPEG, BMP, GIF, WebP, PPM, PGM, TIFF), and folders with one of these or \
     with one subfolder of images per class";

/// Reads any supported file or folder; of a folder with a training and a test split, the training split.
///
/// # Errors
/// What the reader of the format says, or a list of what is supported.
pub fn open(path: &Path) -> Result<Input> {
    open_split(path, Split::Train)
}

/// Reads the pixels of one split.
///
/// In a folder, the split is `train-*`/`t10k-*` IDX files, `data_batch_*.bin`/`test_batch.bin` (CIFAR-10),
/// `train.bin`/`test.bin` (CIFAR-100), `train.npz`/`test.npz`, the pickled `data_batch_*`/`test_batch` (CIFAR-10) or
/// `train`/`test` (CIFAR-100), `train_data_batch_*`/`val_data` (downsampled ImageNet, also .npz), or the subfolders `train`/`test`
/// (also `val`); in an npz archive, `x_train`/`x_test`. **A file or folder that knows no splits is taken whole, whichever split is asked for.**
///
/// # Errors
/// As [`open`]; also when only the other split is there, or when the file holds world-space tensors instead of pixels.
pub fn open_dataset(path: &Path, split: Split) -> Result<Dataset> {
    open_dataset_within(path, split, None)
}

/// [`open_dataset`], image files with a side beyond `most` scaled down while they are read ([`super::read_folder`]).
///
/// # Errors
/// As [`open_dataset`].
pub fn open_dataset_within(path: &Path, split: Split, most: Option<usize>) -> Result<Dataset> {
    match open_split_within(path, split, most)? {
        Input::Pixels(dataset) => Ok(dataset),
        Input::World(_) => {
            Err(Error::file(path, "holds world-space tensors (array x of floats), but 8-bit images are needed here"))
        }
    }
}

/// Reads one split of any supported file or folder, as [`open_dataset`] finds it, world-space tensors included.
///
/// # Errors
/// As [`open`]; also when only the other split is there.
pub fn open_split(path: &Path, split: Split) -> Result<Input> {
    open_split_within(path, split, None)
}

fn open_split_within(path: &Path, split: Split, most: Option<usize>) -> Result<Input> {
    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if !meta.is_dir() {
        return open_file_of_any_kind(path, split, most);
    }
    if let Some(found) = find_split(path, split)? {
        return found.read(most);
    }
    if find_split(path, split.other())?.is_some() {
        return Err(Error::file(path, format!("has a {} split, but no {split} split", split.other())));
    }
    read_folder_within(path, most).map(Input::Pixels).map_err(|error| match error {
        Error::File { path: at, cause } if at == path => Error::file(path, format!("{cause}; {SUPPORTED}")),
        other => other,
    })
}

/// Reads the test split that lies in a folder or an archive beside a training split; `None` where there is none.
///
/// # Errors
/// As [`open`].
pub fn open_test(path: &Path) -> Result<Option<Input>> {
    open_test_within(path, None)
}

/// [`open_test`], image files with a side beyond `most` scaled down while they are read.
///
/// # Errors
/// As [`open`].
pub fn open_test_within(path: &Path, most: Option<usize>) -> Result<Option<Input>> {
    let there = if path.is_dir() { find_split(path, Split::Test)?.is_some() } else { is_npz(path)? && has_test(path)? };
    there.then(|| open_split_within(path, Split::Test, most)).transpose()
}

/// Whether a file is an npz archive, by its name or its first bytes.
fn is_npz(path: &Path) -> Result<bool> {
    Ok(file_name(path).to_ascii_lowercase().ends_with(".npz") || head(path, 4)? == b"PK\x03\x04")
}

/// The files of one split.
enum Found {
    Idx(PathBuf),
    Cifar10(Vec<PathBuf>),
    Cifar100(PathBuf),
    Npz(PathBuf),
    Batches(Vec<PathBuf>),
    Folder(PathBuf),
}

impl Found {
    fn read(self, most: Option<usize>) -> Result<Input> {
        match self {
            Self::Idx(images) => read_idx(&images, None).map(Input::Pixels),
            Self::Cifar10(files) => read_cifar10(&files).map(Input::Pixels),
            Self::Cifar100(file) => read_cifar100(&file).map(Input::Pixels),
            Self::Npz(file) => super::read_npz(&file),
            Self::Batches(files) => read_batches(&files).map(Input::Pixels),
            Self::Folder(folder) => read_folder_within(&folder, most).map(Input::Pixels),
        }
    }
}

/// Looks for the files of a split in a folder.
fn find_split(folder: &Path, split: Split) -> Result<Option<Found>> {
    let paths = entries(folder)?;
    if let Some(images) = find_idx(folder, &paths, split)? {
        return Ok(Some(Found::Idx(images)));
    }
    let batches: Vec<PathBuf> = paths.iter().filter(|path| is_cifar10_name(path, split)).cloned().collect();
    if !batches.is_empty() {
        return Ok(Some(Found::Cifar10(batches)));
    }
    let file = |extension: &str| Some(folder.join(format!("{split}.{extension}"))).filter(|path| path.is_file());
    Ok(file("bin")
        .map(Found::Cifar100)
        .or_else(|| file("npz").map(Found::Npz))
        .or_else(|| Some(batches::of_split(&paths, split)).filter(|files| !files.is_empty()).map(Found::Batches))
        .or_else(|| find_subfolder(&paths, split).map(Found::Folder)))
}

/// The subfolder of a split, unless it looks like a class that happens to be called `train`: the subfolders are taken
/// for splits when a training and a test one are there, or when there are no others.
fn find_subfolder(paths: &[PathBuf], split: Split) -> Option<PathBuf> {
    let folders: Vec<(String, &PathBuf)> =
        paths.iter().filter(|path| path.is_dir()).map(|path| (file_name(path), path)).collect();
    let named = |name: &str| folders.iter().find(|(folder, _)| folder == name).map(|(_, path)| (*path).clone());
    let train = named("train");
    let test = named("test").or_else(|| named("val"));
    let no_others = folders.iter().all(|(name, _)| ["train", "test", "val"].contains(&name.as_str()));
    if !no_others && (train.is_none() || test.is_none()) {
        return None;
    }
    match split {
        Split::Train => train,
        Split::Test => test,
    }
}

/// The one IDX image file of a split; the plain one where it is also there gzipped.
fn find_idx(folder: &Path, paths: &[PathBuf], split: Split) -> Result<Option<PathBuf>> {
    let mut found: Vec<&PathBuf> = paths
        .iter()
        .filter(|path| {
            let name = file_name(path);
            let in_split = match split {
                Split::Train => name.contains("train"),
                Split::Test => name.contains("t10k") || name.contains("test"),
            };
            in_split && name.contains("images") && name.contains("idx3") && path.is_file()
        })
        .collect();
    found.dedup_by_key(|path| file_name(path).trim_end_matches(".gz").to_owned());
    match found[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [first, second, ..] => Err(Error::file(
            folder,
            format!("several {split} sets ({}, {}): name one of the files", file_name(first), file_name(second)),
        )),
    }
}

fn is_cifar10_name(path: &Path, split: Split) -> bool {
    let name = file_name(path);
    match split {
        Split::Train => name.starts_with("data_batch_") && name.ends_with(".bin"),
        Split::Test => name == "test_batch.bin",
    }
}

/// A file: names that are telling first, so that a damaged file meets the reader that can say what is wrong with it.
fn open_file_of_any_kind(path: &Path, split: Split, most: Option<usize>) -> Result<Input> {
    let name = file_name(path).to_ascii_lowercase();
    if name.ends_with(".npz") {
        return read_npz_split(path, split);
    }
    if name.contains("idx3") || name.contains("idx1") {
        return read_idx(path, None).map(Input::Pixels);
    }
    if name.ends_with(".bin") {
        return open_cifar(path).map(Input::Pixels);
    }
    if is_image_name(path) {
        return read_image_files_within(&[path.to_owned()], most).map(Input::Pixels);
    }
    let start = head(path, 16)?;
    if start.starts_with(b"PK\x03\x04") {
        return read_npz_split(path, split);
    }
    if idx::is_idx(path)? {
        return read_idx(path, None).map(Input::Pixels);
    }
    if batches::is_pickle(&start) {
        return read_batches(&[path.to_owned()]).map(Input::Pixels);
    }
    if image::guess_format(&start).is_ok() {
        return read_image_files_within(&[path.to_owned()], most).map(Input::Pixels);
    }
    Err(Error::file(path, format!("is of no kind that can be read; {SUPPORTED}")))
}

/// A CIFAR file: by its usual name, else by which record size divides its length.
fn open_cifar(path: &Path) -> Result<Dataset> {
    let name = file_name(path);
    let kind = if name.contains("_batch") {
        Some(Cifar::Ten)
    } else if name == "train.bin" || name == "test.bin" {
        Some(Cifar::Hundred)
    } else {
        let meta = open_file(path)?.get_ref().metadata().map_err(|e| Error::io(path, e))?;
        records_of_len(meta.len())
    };
    match kind {
        Some(Cifar::Ten) => read_cifar10(&[path.to_owned()]),
        Some(Cifar::Hundred) => read_cifar100(path),
        None => Err(Error::file(path, "is no CIFAR binary file (its length is no multiple of 3,073 or 3,074 bytes)")),
    }
}
