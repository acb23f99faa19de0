//! World-space images of an npz archive, read as they are needed: a set need not fit into memory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use zip::CompressionMethod;

use super::archive::Archive;
use super::npy::{Types, read_header};
use super::{ImageShape, Input, WorldBatch, read_npz};
use crate::data::source::open_regular;
use crate::error::{Error, Result};

/// The array that holds the images, and the type this reads straight from the disk.
const IMAGES: &str = "x";
const TYPE: &str = "<f4";

/// Array `x` of an npz archive, float32 [N, C, H, W]. Where it is uncompressed, in C order and
/// little-endian, as NumPy's `savez` and this program write it, images are read from the disk on
/// request; otherwise the whole array is held.
#[derive(Debug)]
pub struct NpzImages {
    path: PathBuf,
    shape: ImageShape,
    images: usize,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// The open file and the offset of its first value.
    Disk(File, u64),
    Memory(WorldBatch),
}

/// Returns whether a file holds so many images of a shape; does not read their values.
pub fn holds_images(path: &Path, shape: ImageShape, images: usize) -> bool {
    NpzImages::open(path).is_ok_and(|found| found.is_some_and(|found| (found.shape, found.images) == (shape, images)))
}

impl NpzImages {
    /// Opens the archive; `None` where its `x` are pixels.
    ///
    /// # Errors
    /// As [`read_npz`]. Of images on the disk only size and type are checked here.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        if let Some(streamed) = Self::on_disk(path)? {
            return Ok(Some(streamed));
        }
        Ok(match read_npz(path)? {
            Input::Pixels(_) => None,
            Input::World(batch) => Some(Self {
                path: path.to_owned(),
                shape: batch.shape,
                images: batch.len(),
                source: Source::Memory(batch),
            }),
        })
    }

    fn on_disk(path: &Path) -> Result<Option<Self>> {
        let bad = |cause: String| Error::file(path, cause);
        let mut archive = Archive::open(path, Types::Numbers)?;
        let Some(mut entry) = archive.entry(IMAGES)? else { return Ok(None) };
        if entry.compression() != CompressionMethod::Stored {
            return Ok(None);
        }
        let Some(start) = entry.data_start() else { return Ok(None) };
        let size = entry.size();
        let (header, taken) = read_header(&mut entry).map_err(|cause| bad(format!("array x: {cause}")))?;
        let [images, channels @ (1 | 3), height, width] = header.shape[..] else { return Ok(None) };
        if header.descr != TYPE || header.fortran {
            return Ok(None);
        }
        let shape = ImageShape { channels, height, width };
        let bytes = [4, images, channels, height, width].iter().try_fold(1u64, |all, &n| all.checked_mul(n as u64));
        // Images of no pixels could be any number.
        if bytes == Some(0) || bytes != Some(size.saturating_sub(taken)) {
            return Err(bad(format!(
                "array x: shape {:?} does not account for the entry's {size} bytes",
                header.shape
            )));
        }
        drop(entry);
        let file = open_regular(path).map_err(|e| Error::io(path, e))?;
        // The archive's word for its size alone: as much would be asked of the memory.
        let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
        if start.checked_add(size).is_none_or(|end| end > length) {
            return Err(bad(format!("array x: {size} bytes from byte {start} on do not fit into a file of {length}")));
        }
        Ok(Some(Self { path: path.to_owned(), shape, images, source: Source::Disk(file, start + taken) }))
    }

    /// Shape of every image.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.images
    }

    /// Returns whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.images == 0
    }

    /// The images of a range within 0..[`Self::len`], NCHW.
    ///
    /// # Errors
    /// When the file cannot be read or is too short, or a value is not finite (names the image).
    pub fn read(&self, range: Range<usize>) -> Result<Vec<f32>> {
        let dims = self.shape.dims();
        let (mut file, start) = match &self.source {
            Source::Memory(batch) => return Ok(batch.x[range.start * dims..range.end * dims].to_vec()),
            Source::Disk(file, start) => (file, start),
        };
        let mut bytes = vec![0u8; range.len() * dims * 4];
        file.seek(SeekFrom::Start(start + (range.start * dims * 4) as u64))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|e| Error::io(&self.path, e))?;
        let (values, _) = bytes.as_chunks::<4>();
        let x: Vec<f32> = values.iter().map(|&value| f32::from_le_bytes(value)).collect();
        match x.iter().position(|v| !v.is_finite()) {
            None => Ok(x),
            Some(at) => {
                let image = range.start + at / dims;
                Err(Error::file(&self.path, format!("array x: image {image} is not finite ({})", x[at])))
            }
        }
    }

    /// Reads everything once and compares it with the archive's checksum.
    ///
    /// # Errors
    /// When the archive is damaged.
    pub fn verify(&self) -> Result<()> {
        let Source::Disk(file, _) = &self.source else { return Ok(()) };
        let bad = |cause: String| Error::file(&self.path, format!("array x: {cause}"));
        let file = file.try_clone().map_err(|e| Error::io(&self.path, e))?;
        let mut archive = Archive::of(&self.path, BufReader::new(file), Types::Numbers)?;
        let mut entry = archive.entry(IMAGES)?.ok_or_else(|| bad("missing".into()))?;
        std::io::copy(&mut entry, &mut std::io::sink()).map_err(|e| bad(e.to_string()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Writes an archive with an array x of a shape and some numbers; the length of the array's header.
    fn write(path: &Path, shape: &str, numbers: usize) -> usize {
        let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
        let stored = zip::write::SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file("x.npy", stored).unwrap();
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(header.as_bytes()).unwrap();
        zip.write_all(&vec![0; 4 * numbers]).unwrap();
        zip.finish().unwrap();
        header.len()
    }

    /// An archive with an array x of four numbers, whose directory and header speak of 64 MiB.
    #[test]
    fn more_than_the_file_holds_is_not_believed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("boast.npz");
        let header = write(&path, "(1048576, 1, 4, 4)", 4);
        let mut bytes = std::fs::read(&path).unwrap();
        let entry = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
        let size = 10 + header as u32 + 64 * (1 << 20);
        // Its sizes, packed and unpacked.
        for at in [20, 24] {
            bytes[entry + at..entry + at + 4].copy_from_slice(&size.to_le_bytes());
        }
        std::fs::write(&path, bytes).unwrap();
        let refused = NpzImages::open(&path).unwrap_err().to_string();
        assert!(refused.contains("boast.npz"), "{refused}");
        write(&path, "(1152921504606846976, 1, 0, 4)", 0);
        let refused = NpzImages::open(&path).unwrap_err().to_string();
        assert!(refused.contains("boast.npz: array x: shape [1152921504606846976, 1, 0, 4]"), "{refused}");
    }
}
