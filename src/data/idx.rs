//! IDX, the format of MNIST and its kin (LeCun, Cortes & Burges,
//! <http://yann.lecun.com/exdb/mnist/>), plain or gzipped.
//!
//! A file is `00 00 type ndim`, then `ndim` big-endian u32 sizes, then the elements. Only unsigned
//! bytes (type 08) are read: 3 dimensions for images, 1 for labels. Offsets in messages are offsets
//! into the uncompressed bytes.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::folder::is_image_name;
use super::reader::Reader;
use super::source::{file_name, open_unzipped};
use super::space::check_memory;
use super::{Dataset, HeldNoises, ImageShape, Input, Split, names, numbered};
use crate::error::{Error, Result};

const UNSIGNED_BYTE: u8 = 0x08;

/// Most bytes that a byte of a gzip file can unpack to (deflate).
const MOST_UNPACKED: u64 = 1032;

/// The format, as [`super::open`] knows it.
pub(super) struct Idx;

impl Reader for Idx {
    fn words(&self) -> &'static str {
        "IDX files (*-images-idx3-ubyte, also .gz)"
    }

    fn label(&self) -> Option<&'static str> {
        Some("IDX")
    }

    fn is_named(&self, name: &str) -> bool {
        (name.contains("idx3") || name.contains("idx1")) && !name.ends_with(".npz") && !is_image_name(Path::new(name))
    }

    /// Looks at the uncompressed bytes.
    fn begins(&self, path: &Path, _: &[u8]) -> Result<bool> {
        let mut magic = [0u8; 4];
        let read = open_unzipped(path)?.read_exact(&mut magic);
        Ok(read.is_ok() && matches!(magic, [0, 0, UNSIGNED_BYTE, 1 | 3]))
    }

    /// The one image file of a split; the plain one where it is also there gzipped.
    fn files_of(&self, folder: &Path, paths: &[PathBuf], split: Split) -> Result<Vec<PathBuf>> {
        let matches = |path: &&PathBuf| {
            let name = file_name(path);
            let in_split = match split {
                Split::Train => name.contains("train"),
                Split::Test => name.contains("t10k") || name.contains("test"),
            };
            in_split && name.contains("images") && name.contains("idx3") && !is_image_name(path) && path.is_file()
        };
        let mut found: Vec<PathBuf> = paths.iter().filter(matches).cloned().collect();
        found.dedup_by_key(|path| file_name(path).trim_end_matches(".gz").to_owned());
        if let [first, second, ..] = &found[..] {
            let names = format!("{}, {}", file_name(first), file_name(second));
            return Err(Error::file(folder, format!("several {split} sets ({names}): name one of the files")));
        }
        Ok(found)
    }

    fn read(&self, files: &[PathBuf], _: Split, _: Option<usize>) -> Result<Input> {
        read_idx(&files[0], None).map(Input::Pixels)
    }
}

/// What a file is expected to hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Images,
    Labels,
}

impl Kind {
    fn ndim(self) -> u8 {
        match self {
            Self::Images => 3,
            Self::Labels => 1,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Images => "image",
            Self::Labels => "label",
        }
    }
}

/// Reads the grey images of an IDX3 file and the labels of the IDX1 file that goes with it.
///
/// `images` may be gzipped (detected by content). Without `labels`, the label file is looked for
/// beside it under its usual name (`train-images-idx3-ubyte` → `train-labels-idx1-ubyte`, with or
/// without `.gz`); without one, the dataset has no labels. Class names come from `class_names.txt`
/// beside it (one a line, at least as many as classes), else they are numbers.
///
/// # Errors
/// Names the file, the byte offset and the cause: wrong magic (images and labels swapped),
/// truncated, trailing bytes, no images, impossible sizes, a wrong number of labels. Memory is
/// allocated for bytes that were read, never for sizes a header claims.
pub fn read_idx(images: &Path, labels: Option<&Path>) -> Result<Dataset> {
    let (dims, pixels) = read_array(images, Kind::Images)?;
    let [count, height, width] = dims[..] else {
        return Err(Error::file(images, "an image file has three sizes"));
    };
    if count == 0 || height == 0 || width == 0 {
        return Err(Error::file(images, format!("byte 4: holds no pixels ({count} images of {height}×{width})")));
    }
    let labels = match labels.map(Path::to_owned).or_else(|| labels_file(images)) {
        Some(path) => Some(read_labels(&path, images, count)?),
        None => None,
    };
    let classes = labels.iter().flatten().max().map_or(0, |last| last + 1);
    let names = names::beside(images, names::FILE)?;
    Ok(Dataset {
        name: file_name(images),
        shape: ImageShape { channels: 1, height, width },
        pixels,
        labels,
        class_names: names.filter(|names| names.len() >= classes).unwrap_or_else(|| numbered(classes)),
        ids: numbered(count),
        noises: HeldNoises::default(),
    })
}

fn read_labels(path: &Path, images: &Path, count: usize) -> Result<Vec<usize>> {
    let (dims, labels) = read_array(path, Kind::Labels)?;
    if labels.len() != count {
        return Err(Error::file(
            path,
            format!(
                "byte 4: {} labels, but {} holds {count} images",
                dims.first().copied().unwrap_or(0),
                images.display()
            ),
        ));
    }
    Ok(labels.into_iter().map(usize::from).collect())
}

/// The label file beside an image file, if it is there under one of its usual names.
fn labels_file(images: &Path) -> Option<PathBuf> {
    let name = images.file_name()?.to_str()?;
    let labels = name.replace("images", "labels").replace("idx3", "idx1");
    if labels == name {
        return None;
    }
    let other = match labels.strip_suffix(".gz") {
        Some(plain) => plain.to_owned(),
        None => format!("{labels}.gz"),
    };
    [labels, other].into_iter().map(|name| images.with_file_name(name)).find(|path| path.is_file())
}

/// Sizes and elements of an IDX file; as many elements as the product of the sizes.
fn read_array(path: &Path, kind: Kind) -> Result<(Vec<usize>, Vec<u8>)> {
    let mut reader = open_unzipped(path)?;
    let dims = read_header(path, &mut reader, kind)?;
    let header = 4 + 4 * dims.len() as u64;
    let announced = dims
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(dim as u64))
        .filter(|&bytes| bytes < u64::MAX - header)
        .ok_or_else(|| Error::file(path, format!("byte 4: impossible sizes {dims:?}")))?;
    let stored = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.len();
    if announced > stored.saturating_mul(MOST_UNPACKED) {
        let cause = format!("byte 4: impossible sizes {dims:?}: {announced} bytes do not fit into a file of {stored}");
        return Err(Error::file(path, cause));
    }
    check_memory(&format!("the values of {}", path.display()), announced, "take a part of them")?;
    let mut data = Vec::new();
    let end = reader.take(announced + 1).read_to_end(&mut data);
    let found = data.len() as u64;
    let at = header + found;
    if let Err(e) = end {
        return Err(Error::file(path, format!("byte {at}: unreadable after {found} of {announced} data bytes: {e}")));
    }
    if found < announced {
        let cause = format!("byte {at}: truncated: sizes {dims:?} need {announced} data bytes, found {found}");
        return Err(Error::file(path, cause));
    }
    if found > announced {
        return Err(Error::file(
            path,
            format!("byte {}: trailing bytes after the {announced} that sizes {dims:?} need", header + announced),
        ));
    }
    Ok((dims, data))
}

/// Reads the magic number and the sizes, leaving `reader` at the first element.
fn read_header(path: &Path, reader: &mut dyn Read, kind: Kind) -> Result<Vec<usize>> {
    let size = 4 + 4 * usize::from(kind.ndim());
    let mut header = Vec::new();
    let end = reader.take(size as u64).read_to_end(&mut header);
    if let Some(magic) = header.first_chunk::<4>() {
        check_magic(*magic, kind).map_err(|cause| Error::file(path, cause))?;
    }
    if let Err(e) = end {
        return Err(Error::file(path, format!("byte {}: unreadable header: {e}", header.len())));
    }
    if header.len() < size {
        let found = header.len();
        let cause = format!("byte {found}: truncated: the header takes {size} bytes, found {found}");
        return Err(Error::file(path, cause));
    }
    let (sizes, _) = header.as_chunks::<4>();
    Ok(sizes.iter().skip(1).map(|dim| u32::from_be_bytes(*dim) as usize).collect())
}

fn check_magic(magic: [u8; 4], kind: Kind) -> Result<(), String> {
    let noun = kind.noun();
    match magic {
        [0, 0, UNSIGNED_BYTE, ndim] if ndim == kind.ndim() => Ok(()),
        [0, 0, UNSIGNED_BYTE, 1] => {
            Err(format!("byte 0: this is an IDX label file, not an {noun} file (name contains `images-idx3`)"))
        }
        [0, 0, UNSIGNED_BYTE, 3] => {
            Err(format!("byte 0: this is an IDX image file, not a {noun} file (name contains `labels-idx1`)"))
        }
        [0, 0, UNSIGNED_BYTE, ndim] => {
            Err(format!("byte 3: an IDX {noun} file has {} dimension(s), this one has {ndim}", kind.ndim()))
        }
        [0, 0, kind @ (0x09 | 0x0b..=0x0e), 1..=8] => Err(format!(
            "byte 2: elements of IDX type {kind:#04x}; only unsigned bytes ({UNSIGNED_BYTE:#04x}) are read"
        )),
        [a, b, c, d] => Err(format!(
            "byte 0: not an IDX file (it begins {a:02x} {b:02x} {c:02x} {d:02x}, an {noun} file with 00 00 08 {:02x})",
            kind.ndim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_no_idx_file_whatever_it_is_called() {
        assert!(Idx.is_named("train-images-idx3-ubyte") && Idx.is_named("t10k-labels-idx1-ubyte.gz"));
        assert!(!Idx.is_named("cell_idx17.png") && !Idx.is_named("cell_idx3.jpeg"));
    }

    #[test]
    fn a_swap_of_images_and_labels_is_called_by_its_name() {
        assert!(check_magic([0, 0, 8, 3], Kind::Images).is_ok());
        assert!(check_magic([0, 0, 8, 1], Kind::Labels).is_ok());
        let cause = check_magic([0, 0, 8, 1], Kind::Images).unwrap_err();
        assert!(cause.contains("label file, not an image file"), "{cause}");
        let cause = check_magic([0, 0, 8, 3], Kind::Labels).unwrap_err();
        assert!(cause.contains("image file, not a label file"), "{cause}");
        for magic in [[0x50, 0x4b, 3, 4], [0, 0, 0x0d, 3], [0, 0, 8, 4], [0; 4], [0xff; 4]] {
            assert!(check_magic(magic, Kind::Images).is_err());
        }
    }
}
