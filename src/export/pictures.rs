//! `train/CLASS/000123.png`, `png16/train/CLASS/000123.png`: pictures with 8 and 16 bits a value as
//! torchvision's ImageFolder reads them.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::pieces::SplitImages;
use super::{ExportEvent, Format, Stage};
use crate::data::{ImageShape, class_folders, encode_png, encode_png16, read_bytes, sha256, write_atomically};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::parallel;

/// Folder of the pictures of a split.
fn root(pieces: &SplitImages<'_>, format: Format) -> String {
    match format {
        Format::Png16 => format!("{}/{}", format.name(), pieces.split),
        _ => pieces.split.to_string(),
    }
}

/// The PNG of an image of whole levels, CHW.
pub(super) fn encode(shape: ImageShape, bits: u32, levels: &[u16]) -> Result<Vec<u8>> {
    match bits {
        16 => encode_png16(shape, levels),
        // Levels of 8 bits are below 256.
        _ => encode_png(shape, &levels.iter().map(|&level| level as u8).collect::<Vec<_>>()),
    }
}

/// Name of the picture of an image within its class.
pub(super) fn picture(id: usize) -> String {
    format!("{id:06}.png")
}

/// Writes the pictures of a piece; they are on the disk when this returns. A picture gets its name
/// when it is complete: a full disk or a kill leaves no truncated file.
pub(super) fn write(pieces: &SplitImages<'_>, format: Format, range: &Range<usize>, levels: &[u16]) -> Result<()> {
    let (world, bits) = (pieces.work.world, format.bits().unwrap_or(8));
    let root = pieces.work.folder.join(root(pieces, format));
    let folders: Vec<PathBuf> = class_folders(world.class_names()).iter().map(|name| root.join(name)).collect();
    folders.iter().try_for_each(|folder| std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e)))?;
    let (shape, labels) = (world.shape(), pieces.labels(range)?);
    let dims = shape.dims();
    parallel::try_map(range.len(), |i| {
        let name = picture(range.start + i);
        let path = folders[labels[i]].join(&name);
        let begun = path.with_file_name(format!(".{name}"));
        let png = encode(shape, bits, &levels[i * dims..(i + 1) * dims])?;
        let written = File::create(&begun).and_then(|mut file| file.write_all(&png));
        let named = written.and_then(|()| std::fs::rename(&begun, &path));
        named.map_err(|e| {
            // The next attempt overwrites a file that cannot be removed.
            let _ = std::fs::remove_file(&begun);
            Error::io(path, e)
        })
    })?;
    sync_all(&root).map_err(|e| Error::io(root, e))
}

/// Syncs the file system: one wait instead of one for every picture.
#[cfg(target_os = "linux")]
fn sync_all(folder: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

/// Elsewhere there is no such call: what a power cut tears, `sha256sum -c` finds.
#[cfg(not(target_os = "linux"))]
fn sync_all(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Lists the pictures with their sums for `sha256sum -c` in `SPLIT[.16bit].sha256`.
pub(super) fn list(
    pieces: &SplitImages<'_>,
    format: Format,
    events: &mut dyn Events<ExportEvent>,
) -> Result<Vec<String>> {
    let name = format!("{}{}.sha256", pieces.split, if format == Format::Png16 { ".16bit" } else { "" });
    let (root, folder, total) = (root(pieces, format), pieces.work.folder, pieces.images());
    let folders = class_folders(pieces.work.world.class_names());
    let mut text = String::new();
    for range in pieces.ranges() {
        let labels = pieces.labels(&range)?;
        let line = |i: usize| -> Result<String> {
            let name = format!("{root}/{}/{}", folders[labels[i]], picture(range.start + i));
            let path = folder.join(&name);
            let png = read_bytes(&path).map_err(|e| Error::io(&path, e))?;
            Ok(format!("{}  {name}\n", sha256(&png)))
        };
        text += &parallel::try_map(range.len(), line)?.concat();
        let progress = Progress { done: range.end, total };
        events.report(ExportEvent { stage: Stage::Writing(pieces.split, format), progress })?;
    }
    write_atomically(&folder.join(&name), |out| out.write_all(text.as_bytes()))?;
    Ok(vec![name])
}
