//! Detects what a path holds, by its name, else by its content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::batches::Batches;
use super::cifar::Cifar;
use super::exported::is_exported;
use super::folder::{ImageFiles, Images, list_folder, read_folder};
use super::idx::Idx;
use super::npz::Npz;
use super::reader::Reader;
use super::source::{entries, file_name, head};
use super::{Dataset, Input, Split};
use crate::error::{Error, Result};

/// All readers. The first that knows a file or finds a split reads it.
const READERS: &[&dyn Reader] = &[&Idx, &Cifar, &Npz, &Batches, &Images];

/// The short names of all dataset formats: `IDX, CIFAR or .npz`.
pub fn dataset_formats() -> String {
    let labels: Vec<&str> = READERS.iter().filter_map(|reader| reader.label()).collect();
    match labels.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// All formats, for a message that refuses a file or folder.
fn supported() -> String {
    let words: Vec<&str> = READERS.iter().map(|reader| reader.words()).collect();
    format!(
        "supported are {}, and folders with one of these or with one subfolder of images per class",
        words.join(", ")
    )
}

/// Reads any supported file or folder; of a folder with two splits, the training split.
///
/// # Errors
/// What the reader of the format says, or a list of what is supported.
pub fn open(path: &Path) -> Result<Input> {
    open_split(path, Split::Train, None)
}

/// Reads the pixels of one split; image files beyond `max_side` are scaled down
/// ([`super::read_image_files`]).
///
/// In a folder, the split is `train-*`/`t10k-*` IDX files, `data_batch_*.bin`/`test_batch.bin`
/// (CIFAR-10), `train.bin`/`test.bin` (CIFAR-100), `train.npz`/`test.npz`, the pickled
/// `data_batch_*`/`test_batch` (CIFAR-10) or `train`/`test` (CIFAR-100),
/// `train_data_batch_*`/`val_data` (downsampled ImageNet, also .npz), or the subfolders
/// `train`/`test` (also `val`); in an npz archive, `x_train`/`x_test`. **A file or folder that
/// knows no splits is taken whole, whichever split is asked for.**
///
/// These are photographs, to train an oracle on or to compare it with. Pictures that an export of a world wrote are none
/// ([`super::in_world`]).
///
/// # Errors
/// As [`open`]; also when only the other split is there, or when there are world-space tensors or pictures of an exported
/// dataset instead of photographs.
pub fn open_dataset(path: &Path, split: Split, max_side: Option<usize>) -> Result<Dataset> {
    are_photographs(path)?;
    match open_split(path, split, max_side)? {
        Input::Pixels(dataset) => Ok(dataset),
        Input::World(_) => {
            Err(Error::file(path, "holds world-space tensors (array x of floats), but 8-bit images are needed here"))
        }
    }
}

/// Refuses pictures that an export of a world wrote.
fn are_photographs(path: &Path) -> Result<()> {
    if !is_exported(path) {
        return Ok(());
    }
    let cause = "holds pictures of an exported dataset, whose levels stand for values of a world and not for brightness; \
                 photographs are needed here: an oracle is trained on them and compared with them";
    Err(Error::file(path, cause))
}

/// Reads one split as [`open_dataset`] does, world-space tensors included, and the levels of exported pictures as they
/// are, of which [`super::in_world`] makes values of a world.
///
/// # Errors
/// As [`open`]; also when only the other split is there.
pub fn open_split(path: &Path, split: Split, max_side: Option<usize>) -> Result<Input> {
    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if !meta.is_dir() {
        let reader = reader_of(path)?
            .ok_or_else(|| Error::file(path, format!("is of no kind that can be read; {}", supported())))?;
        return reader.read(&[path.to_owned()], split, max_side);
    }
    if let Some((reader, files)) = find_split(path, split)? {
        // Each of these files has one split: its `x` is meant.
        return reader.read(&files, Split::Train, max_side);
    }
    if let Some((_, files)) = find_split(path, split.other())? {
        let other = split.other();
        // A single file or folder knows no splits and is taken whole.
        let way = match files.as_slice() {
            [one] => format!("; to take its {other} images here, name {}", one.display()),
            _ => String::new(),
        };
        return Err(Error::file(path, format!("has a {other} split, but no {split} split{way}")));
    }
    read_folder(path, max_side).map(Input::Pixels).map_err(|error| match error {
        Error::File { path: at, cause } if at == path => Error::file(path, format!("{cause}; {}", supported())),
        other => other,
    })
}

/// The image files that [`open`] would read: of a folder the training split. `None` where it would
/// read a dataset of another format, or what is read is of an exported dataset ([`super::in_world`]).
///
/// # Errors
/// As [`open`], what is in the files aside; also when one of several files is of an exported dataset.
pub fn image_files(paths: &[PathBuf]) -> Result<Option<ImageFiles>> {
    let [path] = paths else {
        // One look into each folder: there may be thousands of files.
        let of_folders: BTreeMap<Option<&Path>, &PathBuf> =
            paths.iter().rev().map(|path| (path.parent(), path)).collect();
        if let Some(file) = of_folders.into_values().find(|file| is_exported(file)) {
            let cause = "is of an exported dataset, whose pictures have values of the world and not brightness: open its folder, or one picture";
            return Err(Error::file(file, cause));
        }
        return Ok(Some(ImageFiles::of(paths)));
    };
    if is_exported(path) {
        return Ok(None);
    }
    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if !meta.is_dir() {
        let reader = reader_of(path)?;
        return Ok(reader.filter(|reader| reader.label().is_none()).map(|_| ImageFiles::of(paths)));
    }
    match find_split(path, Split::Train)? {
        Some((reader, files)) if reader.label().is_none() => match files.as_slice() {
            [folder] => list_folder(folder).map(Some),
            _ => Ok(None),
        },
        Some(_) => Ok(None),
        // Another split, or nothing that is known: `open` says so.
        None if find_split(path, Split::Test)?.is_some() => Ok(None),
        None => Ok(list_folder(path).ok()),
    }
}

/// Returns whether a folder or archive has a test split that is told apart.
///
/// # Errors
/// As [`open`].
pub fn has_test(path: &Path) -> Result<bool> {
    match path.is_dir() {
        true => Ok(find_split(path, Split::Test)?.is_some()),
        false => reader_of(path)?.map_or(Ok(false), |reader| reader.has_test(path)),
    }
}

/// What [`open`] and [`image_files`] leave unread of a folder or archive with two splits, and how it is had: a sentence.
///
/// # Errors
/// As [`open`].
pub fn left_unread(path: &Path) -> Result<Option<String>> {
    let how = if path.is_dir() {
        let (read, unread) = (find_split(path, Split::Train)?, find_split(path, Split::Test)?);
        let (Some((_, read)), Some((_, unread))) = (read, unread) else { return Ok(None) };
        if read == unread {
            return Ok(None);
        }
        let names: Vec<String> = unread.iter().map(|file| file.display().to_string()).collect();
        format!("for its test images name {}", names.join(", "))
    } else if has_test(path)? {
        "its test images are arrays of the same archive: for these, write them into an archive of their own".into()
    } else {
        return Ok(None);
    };
    Ok(Some(format!("{}: only its training images are read; {how}", path.display())))
}

/// The photographs of the test split of a folder or archive, if there is one.
///
/// # Errors
/// As [`open_dataset`].
pub fn open_test(path: &Path, max_side: Option<usize>) -> Result<Option<Dataset>> {
    are_photographs(path)?;
    has_test(path)?.then(|| open_dataset(path, Split::Test, max_side)).transpose()
}

/// Bytes at the begin of a file by which a text is told.
const TEXT: usize = 512;

/// What a file is, in words, for a message that refuses it; `None` where that cannot be told. Archives and
/// pickles are told by their names alone: they may be checkpoints.
pub fn kind_of(path: &Path) -> Option<String> {
    let name = file_name(path).to_ascii_lowercase();
    let start = head(path, TEXT).ok()?;
    let begins = |reader: &&&dyn Reader| reader.begins(path, &start).unwrap_or(false);
    let told_by_bytes: [&dyn Reader; 2] = [&Idx, &Images];
    let reader = READERS.iter().find(|reader| reader.is_named(&name)).or_else(|| told_by_bytes.iter().find(begins));
    if let Some(reader) = reader {
        return Some(
            reader.label().map_or_else(|| "a picture".into(), |label| format!("a file of the format {label}")),
        );
    }
    // A sign may be cut at the end.
    let printed = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    let is_text =
        start.iter().all(printed) && std::str::from_utf8(&start).err().is_none_or(|e| e.error_len().is_none());
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("onnx") => Some("a network (ONNX)".into()),
        Some("npy") => Some("a NumPy array".into()),
        Some("json") => Some("a JSON file".into()),
        _ if start.is_empty() => Some("an empty file".into()),
        _ => is_text.then(|| "a text".into()),
    }
}

/// The reader of a file: by its name, else by its first bytes.
fn reader_of(path: &Path) -> Result<Option<&'static dyn Reader>> {
    let name = file_name(path).to_ascii_lowercase();
    if let Some(reader) = READERS.iter().find(|reader| reader.is_named(&name)) {
        return Ok(Some(*reader));
    }
    let start = head(path, 16)?;
    for reader in READERS {
        if reader.begins(path, &start)? {
            return Ok(Some(*reader));
        }
    }
    Ok(None)
}

/// The reader that finds a split in a folder, and the files of the split.
fn find_split(folder: &Path, split: Split) -> Result<Option<(&'static dyn Reader, Vec<PathBuf>)>> {
    let paths = entries(folder)?;
    for reader in READERS {
        let files = reader.files_of(folder, &paths, split)?;
        if !files.is_empty() {
            return Ok(Some((*reader, files)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_unread_is_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for folder in ["digits", "pictures/train/a", "pictures/test/a"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let [train, test] = ["train", "t10k"].map(|split| at(&format!("digits/{split}-images-idx3-ubyte")));
        std::fs::write(&train, []).unwrap();
        assert_eq!(left_unread(&at("digits")).unwrap(), None);
        std::fs::write(&test, []).unwrap();
        for (folder, unread) in [("digits", test), ("pictures", at("pictures/test"))] {
            let said = left_unread(&at(folder)).unwrap().unwrap();
            assert!(said.ends_with(&format!("for its test images name {}", unread.display())), "{said}");
        }
        assert_eq!(left_unread(&train).unwrap(), None);
        assert_eq!(left_unread(&at("pictures/train")).unwrap(), None);
    }
}
