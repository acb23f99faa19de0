//! EMNIST (Cohen et al. 2017, arXiv:1702.05373): one zip of gzipped IDX files for six splits.
//!
//! Its images are stored column by column, so readers of MNIST see them transposed; they are
//! written upright here. Labels of the split `letters` count from 1; they are written from 0.

use std::borrow::Cow;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use zip::ZipArchive;

use super::FetchEvent;
use crate::data::source::open_regular;
use crate::data::write_whole;
use crate::error::{Error, Result};
use crate::events::Events;

/// Images between two checks for cancellation.
const EVERY: u64 = 1000;
/// Largest image that is read, in pixels; EMNIST's have 784.
const MAX_PIXELS: usize = 1 << 20;

/// Writes the four files of a split under the names of MNIST's.
pub(super) fn unpack(
    archive: &Path,
    split: &str,
    first_label: u8,
    staging: &Path,
    events: &mut dyn Events<FetchEvent>,
) -> Result<()> {
    let file = open_regular(archive).map_err(|e| Error::io(archive, e))?;
    let mut zip = ZipArchive::new(BufReader::new(file))
        .map_err(|e| Error::file(archive, format!("is no whole zip archive: {e}")))?;
    for (theirs, ours) in [("train", "train"), ("test", "t10k")] {
        for (kind, dims) in [("images", 3), ("labels", 1)] {
            let entry = format!("emnist-{split}-{theirs}-{kind}-idx{dims}-ubyte.gz");
            let path = staging.join(format!("{ours}-{kind}-idx{dims}-ubyte.gz"));
            let name =
                zip.file_names().flatten().find(|name| name.rsplit('/').next() == Some(&entry)).map(Cow::into_owned);
            let name = name.ok_or_else(|| Error::file(archive, format!("holds no {entry}")))?;
            let reader = zip.by_name(&name).map_err(|e| Error::file(archive, format!("{entry}: {e}")))?;
            let mut piece = Converted { archive, entry: &entry, reader: MultiGzDecoder::new(reader) };
            write_whole(&path, |out| {
                let mut out = GzEncoder::new(out, Compression::fast());
                match kind {
                    "images" => piece.images(&mut out, &path, events),
                    _ => piece.labels(&mut out, &path, first_label),
                }?;
                out.finish().map(drop).map_err(|e| Error::io(&path, e))
            })?;
        }
    }
    Ok(())
}

/// An IDX file of the archive.
struct Converted<'a, R> {
    archive: &'a Path,
    entry: &'a str,
    reader: R,
}

impl<R: Read> Converted<'_, R> {
    fn damaged(&self, cause: impl std::fmt::Display) -> Error {
        Error::file(self.archive, format!("{}: {cause}", self.entry))
    }

    /// Sizes, after the magic number of unsigned bytes of `N` dimensions.
    fn sizes<const N: usize>(&mut self) -> Result<[u32; N]> {
        let mut magic = [0; 4];
        self.reader.read_exact(&mut magic).map_err(|e| self.damaged(e))?;
        if magic != [0, 0, 8, N as u8] {
            return Err(self.damaged(format!("is no IDX file of bytes in {N} dimension(s)")));
        }
        let mut sizes = [0; N];
        for size in &mut sizes {
            let mut bytes = [0; 4];
            self.reader.read_exact(&mut bytes).map_err(|e| self.damaged(e))?;
            *size = u32::from_be_bytes(bytes);
        }
        Ok(sizes)
    }

    /// Nothing may follow, and the checksum at the end is looked at.
    fn end(&mut self) -> Result<()> {
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("is longer than its sizes say")),
            Err(e) => Err(self.damaged(e)),
        }
    }

    fn images(&mut self, out: &mut dyn Write, path: &Path, events: &mut dyn Events<FetchEvent>) -> Result<()> {
        let [count, columns, rows] = self.sizes::<3>()?;
        let (width, height) = (columns as usize, rows as usize);
        if width.saturating_mul(height) > MAX_PIXELS {
            return Err(self.damaged(format!("images of {height}×{width}")));
        }
        let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(|e| Error::io(path, e));
        write(&[0, 0, 8, 3])?;
        // What they call columns are rows once the images stand upright.
        [count, rows, columns].iter().try_for_each(|size| write(&size.to_be_bytes()))?;
        let (mut stored, mut upright) = (vec![0; width * height], vec![0; width * height]);
        let file = crate::data::source::file_name(path);
        for i in 0..u64::from(count) {
            if i % EVERY == 0 {
                events.report(FetchEvent::Unpacking { file: file.clone(), done: i, total: count.into() })?;
            }
            self.reader.read_exact(&mut stored).map_err(|e| self.damaged(e))?;
            transpose(&stored, height, &mut upright);
            write(&upright)?;
        }
        self.end()
    }

    fn labels(&mut self, out: &mut dyn Write, path: &Path, first: u8) -> Result<()> {
        let [count] = self.sizes::<1>()?;
        let mut labels = Vec::new();
        (&mut self.reader).take(count.into()).read_to_end(&mut labels).map_err(|e| self.damaged(e))?;
        if labels.len() != count as usize {
            return Err(self.damaged(format!("{} labels, {count} were announced", labels.len())));
        }
        for label in &mut labels {
            *label = label.checked_sub(first).ok_or_else(|| self.damaged(format!("a label below {first}")))?;
        }
        self.end()?;
        let write = out.write_all(&[0, 0, 8, 1]).and_then(|()| out.write_all(&count.to_be_bytes()));
        write.and_then(|()| out.write_all(&labels)).map_err(|e| Error::io(path, e))
    }
}

/// Columns of `height` values each, as rows.
pub(super) fn transpose(columns: &[u8], height: usize, rows: &mut [u8]) {
    let width = columns.len() / height.max(1);
    for (x, column) in columns.chunks_exact(height.max(1)).enumerate() {
        for (y, &value) in column.iter().enumerate() {
            rows[y * width + x] = value;
        }
    }
}
