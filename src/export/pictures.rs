//! `train/CLASS/000123.png`: 8-bit pictures as torchvision's ImageFolder reads them.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::pieces::Pieces;
use super::{ExportEvent, Format, Stage};
use crate::data::{encode_png, write_atomically};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::export::file_name;
use crate::oracle::folder::sha256;
use crate::oracle::world::Sample;

/// Folders of the classes. ImageFolder numbers classes in the order of their sorted names: where that is not the world's order, names begin
/// with their number.
pub fn class_folders(names: &[String]) -> Vec<String> {
    let folders: Vec<String> = names.iter().map(|name| file_name(name)).collect();
    if folders.is_sorted_by(|a, b| a < b) {
        return folders;
    }
    let digits = names.len().saturating_sub(1).to_string().len();
    folders.iter().enumerate().map(|(k, folder)| format!("{k:0digits$} {folder}")).collect()
}

/// Name of the picture of an image within its class.
pub(super) fn picture(id: usize) -> String {
    format!("{id:06}.png")
}

/// Writes the pictures of a piece. They are on the disk when this returns, and the piece is marked as done after them. A picture gets its
/// name when it is whole: a full disk or a kill leaves none that is cut short.
pub(super) fn write(pieces: &Pieces<'_>, samples: &[Sample], pixels: &[u8]) -> Result<()> {
    let (world, split) = (pieces.work.world, pieces.split);
    let root = pieces.work.folder.join(split.to_string());
    let folders: Vec<PathBuf> = class_folders(world.class_names()).iter().map(|name| root.join(name)).collect();
    folders.iter().try_for_each(|folder| std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e)))?;
    let shape = world.shape();
    let write = |(sample, pixels): (&Sample, &[u8])| {
        let path = folders[sample.label].join(picture(sample.index));
        let begun = path.with_file_name(format!(".{}", picture(sample.index)));
        let png = encode_png(shape, pixels)?;
        let written = File::create(&begun).and_then(|mut file| file.write_all(&png));
        let named = written.and_then(|()| std::fs::rename(&begun, &path));
        named.map_err(|e| {
            // What is left of it is written over by the next attempt, if it cannot be removed.
            let _ = std::fs::remove_file(&begun);
            Error::io(path, e)
        })
    };
    samples.par_iter().zip(pixels.par_chunks(shape.dims())).try_for_each(write)?;
    sync_all(&root).map_err(|e| Error::io(root, e))
}

/// Brings everything of the file system on the disk: one wait in place of one for every picture.
#[cfg(target_os = "linux")]
fn sync_all(folder: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

/// Elsewhere there is no such call: what a power cut tears, `sha256sum -c` finds.
#[cfg(not(target_os = "linux"))]
fn sync_all(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Lists the pictures with their sums, as `sha256sum -c` reads them, in `SPLIT.sha256`; returns its name.
pub(super) fn list(pieces: &Pieces<'_>, events: &mut dyn Events<ExportEvent>) -> Result<Vec<String>> {
    let name = format!("{}.sha256", pieces.split);
    let (split, folder, total) = (pieces.split, pieces.work.folder, pieces.images());
    let folders = class_folders(pieces.work.world.class_names());
    let mut text = String::new();
    for range in pieces.ranges() {
        let labels = pieces.labels(&range)?;
        let line = |(id, label): (usize, usize)| {
            let name = format!("{split}/{}/{}", folders[label], picture(id));
            let path = folder.join(&name);
            let png = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
            Ok(format!("{}  {name}\n", sha256(&png)))
        };
        let lines = range.clone().into_par_iter().zip(labels).map(line).collect::<Result<Vec<String>>>()?;
        text += &lines.concat();
        let progress = Progress { done: range.end, total };
        events.report(ExportEvent { stage: Stage::Writing(pieces.split, Format::Png), progress })?;
    }
    write_atomically(&folder.join(&name), |out| out.write_all(text.as_bytes()))?;
    Ok(vec![name])
}
