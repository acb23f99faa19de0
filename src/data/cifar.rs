//! The binary versions of CIFAR-10 and CIFAR-100 (Krizhevsky 2009,
//! <https://www.cs.toronto.edu/~kriz/cifar.html>).
//!
//! A record: a label byte (CIFAR-100: coarse, then fine) and 3,072 pixels, 3×32×32, channel first.

use std::path::{Path, PathBuf};

use super::reader::Reader;
use super::source::{file_name, open_file, read_bounded};
use super::space::check_memory;
use super::{Dataset, HeldNoises, ImageShape, Input, Split, names, numbered};
use crate::error::{Error, Result};

const SHAPE: ImageShape = ImageShape { channels: 3, height: 32, width: 32 };
const PIXELS: usize = 3 * 32 * 32;
/// Class names of CIFAR-10, for files that lie apart from their `batches.meta.txt`.
pub(super) const CIFAR10_NAMES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// The two layouts of a record.
struct Layout {
    label_bytes: usize,
    classes: usize,
    /// File beside the data that names the classes, one a line.
    names_file: &'static str,
}

const CIFAR10: Layout = Layout { label_bytes: 1, classes: 10, names_file: "batches.meta.txt" };
const CIFAR100: Layout = Layout { label_bytes: 2, classes: 100, names_file: "fine_label_names.txt" };

impl Layout {
    fn record(&self) -> usize {
        self.label_bytes + PIXELS
    }
}

/// Reads CIFAR-10 batches (3,073 bytes a record) into one dataset of 3×32×32 images.
///
/// Class names come from a complete `batches.meta.txt` beside the first file, else the usual ten.
///
/// # Errors
/// A length that is no multiple of 3,073 or 0, or a label above 9; names file, record and offset.
pub fn read_cifar10(files: &[PathBuf]) -> Result<Dataset> {
    let standard = CIFAR10_NAMES.map(str::to_owned).to_vec();
    read_records(files, &CIFAR10, standard)
}

/// Reads a file of CIFAR-100 (3,074 bytes a record) with its 100 *fine* labels.
///
/// Class names come from a complete `fine_label_names.txt`, else `class 0` … `class 99`.
///
/// # Errors
/// A length that is no multiple of 3,074 or 0, or a fine label above 99; names record and offset.
pub fn read_cifar100(file: &Path) -> Result<Dataset> {
    let standard = (0..CIFAR100.classes).map(|i| format!("class {i}")).collect();
    read_records(&[file.to_owned()], &CIFAR100, standard)
}

/// The format, as [`super::open`] knows it.
pub(super) struct Cifar;

impl Reader for Cifar {
    fn words(&self) -> &'static str {
        "CIFAR-10 and CIFAR-100 binary files (.bin)"
    }

    fn label(&self) -> Option<&'static str> {
        Some("CIFAR")
    }

    fn is_named(&self, name: &str) -> bool {
        name.ends_with(".bin")
    }

    fn begins(&self, _: &Path, _: &[u8]) -> Result<bool> {
        Ok(false)
    }

    fn files_of(&self, folder: &Path, paths: &[PathBuf], split: Split) -> Result<Vec<PathBuf>> {
        let matches = |path: &&PathBuf| {
            let name = file_name(path);
            match split {
                Split::Train => name.starts_with("data_batch_") && name.ends_with(".bin"),
                Split::Test => name == "test_batch.bin",
            }
        };
        let mut found: Vec<PathBuf> = paths.iter().filter(matches).cloned().collect();
        if found.is_empty() {
            found.extend(Some(folder.join(format!("{split}.bin"))).filter(|path| path.is_file()));
        }
        Ok(found)
    }

    /// Which of the two, the usual names tell, else which record size divides the length.
    fn read(&self, files: &[PathBuf], _: Split, _: Option<usize>) -> Result<Input> {
        let path = &files[0];
        let name = file_name(path);
        let length = open_file(path)?.get_ref().metadata().map_err(|e| Error::io(path, e))?.len();
        let holds = |layout: &Layout| length > 0 && length.is_multiple_of(layout.record() as u64);
        let dataset = match () {
            () if name.contains("_batch") => read_cifar10(files),
            () if name == "train.bin" || name == "test.bin" => read_cifar100(path),
            () if holds(&CIFAR10) => read_cifar10(files),
            () if holds(&CIFAR100) => read_cifar100(path),
            () => {
                let cause = "is no CIFAR binary file (its length is no multiple of 3,073 or 3,074 bytes)";
                return Err(Error::file(path, cause));
            }
        };
        dataset.map(Input::Pixels)
    }
}

fn read_records(files: &[PathBuf], layout: &Layout, standard: Vec<String>) -> Result<Dataset> {
    let Some(first) = files.first() else {
        return Err(Error::input("no CIFAR file was named"));
    };
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for file in files {
        append_file(file, layout, &mut pixels, &mut labels)?;
    }
    let names = names::beside(first, layout.names_file)?;
    Ok(Dataset {
        name: file_name(first),
        shape: SHAPE,
        pixels,
        ids: numbered(labels.len()),
        noises: HeldNoises::default(),
        labels: Some(labels),
        class_names: names.filter(|names| names.len() == layout.classes).unwrap_or(standard),
    })
}

fn append_file(file: &Path, layout: &Layout, pixels: &mut Vec<u8>, labels: &mut Vec<usize>) -> Result<()> {
    let length = open_file(file)?.get_ref().metadata().map_err(|e| Error::io(file, e))?.len();
    let record = layout.record();
    let (whole, rest) = (length / record as u64, length % record as u64);
    if rest != 0 || whole == 0 {
        return Err(Error::file(
            file,
            format!(
                "byte {}: {length} bytes are {whole} whole CIFAR-{} records of {record} and {rest} bytes more",
                length - rest,
                layout.classes
            ),
        ));
    }
    check_memory(&format!("the images of {}", file.display()), length, "take a part of them")?;
    let bytes = read_bounded(file, length).map_err(|e| Error::io(file, e))?;
    for (i, item) in bytes.chunks_exact(record).enumerate() {
        let (head, image) = item.split_at(layout.label_bytes);
        let label = head.last().copied().map_or(0, usize::from);
        if label >= layout.classes {
            return Err(Error::file(
                file,
                format!(
                    "byte {}: record {i} has label {label}; CIFAR-{} ends at {}",
                    i * record + layout.label_bytes - 1,
                    layout.classes,
                    layout.classes - 1
                ),
            ));
        }
        labels.push(label);
        pixels.extend_from_slice(image);
    }
    Ok(())
}
