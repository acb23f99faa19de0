//! Samples of a world on their way to a file: npz with everything known, a contact sheet, or a
//! folder of pictures.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::data::{
    HeldNoise, ImageShape, check_folder_kind, class_folders, least_png_size, sheet_shape, write_npz_in_pieces,
    write_png, write_png_of_world, write_sheet,
};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::provenance::picture_stem;
use crate::oracle::rounding::Rounding;
use crate::oracle::world::{Sample, SampleSpec, Settings, World, to_world_batch};
use crate::units::ClassId;

/// Where pictures and numbers go. A path alone is one without a contact sheet of a single picture.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The file or folder.
    pub path: &'a Path,
    /// Whether a single picture, too, becomes a contact sheet.
    pub sheet: bool,
}

impl<'a> From<&'a Path> for Target<'a> {
    fn from(path: &'a Path) -> Self {
        Self { path, sheet: false }
    }
}

impl<'a> From<&'a PathBuf> for Target<'a> {
    fn from(path: &'a PathBuf) -> Self {
        Self { path, sheet: false }
    }
}

/// Writes the samples `indices` of `spec` (all of them where empty) to `path`: `.npz` holds
/// world-space x, y, posterior, logp and aleatoric; `.png` is a contact sheet of pictures, or the
/// only one as it is; anything else a folder of pictures by label.
///
/// # Errors
/// Names the file; [`Error::Cancelled`]. A file that cannot be finished is not there at all.
pub fn save_samples<'a>(
    world: &World,
    spec: &SampleSpec,
    indices: &[usize],
    settings: &Settings,
    target: impl Into<Target<'a>>,
    events: &mut dyn Events<Progress>,
) -> Result<Rounding> {
    let mut saved = Rounding::default();
    write_samples(world, spec, indices, settings, target.into(), &mut |samples, progress| {
        saved.add(&world.rounding(samples, settings)?);
        events.report(progress)
    })
    .map_err(drawn_anew)?;
    Ok(saved)
}

/// Bytes that `n` samples take in a file or folder of that name, at least: exact for arrays of an
/// `.npz`, about for pictures of a folder; a contact sheet has a largest size of its own.
pub fn least_bytes(world: &World, n: usize, path: &Path) -> u64 {
    let (dims, classes) = (world.shape().dims(), world.class_names().len() as u64);
    let each = match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        // x, posterior and log p(x|y), label and H(p).
        Some("npz") => 4 * dims as u64 + 12 * classes + 16,
        Some("png") => 0,
        _ => least_png_size(dims, 8),
    };
    (n as u64).saturating_mul(each)
}

/// The error of a full disk where nothing is resumed: samples are drawn from the first one.
pub(super) fn drawn_anew(error: Error) -> Error {
    match error {
        Error::Io { path, source } if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            Error::file(
                path,
                format!(
                    "{source} (free some space, or choose another disk: the samples will be drawn from the first on)"
                ),
            )
        }
        other => other,
    }
}

/// Endings of files that we do not write: such a path is not meant as a folder.
const FILES: [&str; 14] =
    ["jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "npy", "csv", "json", "parquet", "zip", "pt", "safetensors"];

fn write_samples(
    world: &World,
    spec: &SampleSpec,
    indices: &[usize],
    settings: &Settings,
    target: Target<'_>,
    written: &mut dyn FnMut(&[Sample], Progress) -> Result<()>,
) -> Result<()> {
    let (total, path) = (asked(spec, indices), target.path);
    if total == 0 {
        return Err(Error::input("no samples to write: n is 0"));
    }
    match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("npz") if settings.tau.get() == 0.0 => Err(Error::input(format!(
            "{}: at τ = 0 every image of a class is the same and has no density: draw pictures (.png or a folder), or choose a τ above 0",
            path.display()
        ))),
        Some("npz") => write_npz_in_pieces(path, world.shape(), total, |sink| {
            in_batches(world, spec, indices, settings, written, &mut |samples| {
                sink(&to_world_batch(world.shape(), world.class_names().len(), samples))
            })
        }),
        Some(other) if FILES.contains(&other) => Err(Error::input(format!(
            "{}: samples are saved as .npz, as one .png, or as pictures in a folder",
            path.display()
        ))),
        _ => {
            let mut pictures = Pictures::open(world, target, total, world.held_noise())?;
            in_batches(world, spec, indices, settings, written, &mut |samples| {
                samples.iter().try_for_each(|sample| {
                    pictures.add(sample.label, sample.index, world.flow().pixels().picture(&sample.x))
                })
            })?;
            pictures.finish()
        }
    }
}

/// Pictures of a world on their way to a contact sheet (`.png`) or to a folder by class.
pub(super) struct Pictures<'a> {
    world: &'a World,
    path: &'a Path,
    /// Names of the classes' folders.
    folders: Vec<String>,
    /// Columns and pixels of the file.
    file: Option<(Columns, Vec<u8>)>,
    /// What each says of the noise it holds.
    held: Option<HeldNoise>,
}

/// How pictures lie in one file.
#[derive(Clone, Copy)]
enum Columns {
    /// There is one, as it is.
    Single,
    /// So many side by side, enlarged for the eye, with lines between.
    Sheet(usize),
}

impl<'a> Pictures<'a> {
    /// A place for `n` pictures that hold such noise.
    ///
    /// # Errors
    /// When a contact sheet would be too large, or the folder holds something else.
    pub fn open(
        world: &'a World,
        Target { path, sheet }: Target<'a>,
        n: usize,
        held: Option<HeldNoise>,
    ) -> Result<Self> {
        let file = match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
            true if n == 1 && !sheet => Some((Columns::Single, Vec::new())),
            true => Some((Columns::Sheet(columns(world.shape(), n)?), Vec::new())),
            false => {
                check_folder_kind(path, None)?;
                None
            }
        };
        Ok(Self { world, path, folders: class_folders(world.class_names()), file, held })
    }

    /// Takes the 8-bit picture of sample `index` of a class.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn add(&mut self, class: ClassId, index: usize, picture: Vec<u8>) -> Result<()> {
        if let Some((_, pixels)) = &mut self.file {
            pixels.extend(picture);
            return Ok(());
        }
        let folder = self.path.join(&self.folders[class]);
        std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        self.write(&folder.join(picture_stem(index) + ".png"), &picture)
    }

    /// Writes one picture as it is.
    fn write(&self, path: &Path, picture: &[u8]) -> Result<()> {
        match &self.held {
            Some(held) => write_png_of_world(path, self.world.shape(), picture, held),
            None => write_png(path, self.world.shape(), picture),
        }
    }

    /// Writes the file, if it is one.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(self) -> Result<()> {
        let Some((columns, pixels)) = &self.file else { return Ok(()) };
        let shape = self.world.shape();
        match *columns {
            Columns::Single => self.write(self.path, pixels),
            Columns::Sheet(columns) => write_sheet(self.path, shape, pixels, columns, scale(shape), self.held.as_ref()),
        }
    }
}

/// How many samples are asked for.
pub fn asked(spec: &SampleSpec, indices: &[usize]) -> usize {
    if indices.is_empty() { spec.n } else { indices.len() }
}

/// Their running numbers, so many at a time: those given, or the first n.
pub(super) fn passes<'a>(
    spec: &SampleSpec,
    indices: &'a [usize],
    batch: usize,
) -> Box<dyn Iterator<Item = Vec<usize>> + 'a> {
    if !indices.is_empty() {
        return Box::new(indices.chunks(batch).map(<[usize]>::to_vec));
    }
    let n = spec.n;
    Box::new((0..n).step_by(batch).map(move |first| (first..first.saturating_add(batch).min(n)).collect()))
}

/// Columns of a contact sheet of `n` pictures, about as wide as it is high.
///
/// # Errors
/// When the sheet would be too large, before a picture of it is drawn.
fn columns(shape: ImageShape, n: usize) -> Result<usize> {
    let columns = (n as f64).sqrt().ceil() as usize;
    sheet_shape(shape, n, columns, scale(shape))
        .map_err(|error| Error::input(format!("{error}; write them to a folder or an .npz, or lower n = {n}")))?;
    Ok(columns)
}

/// Small images are enlarged to about 64 pixels.
pub(super) fn scale(shape: ImageShape) -> usize {
    (64 / shape.width.max(1)).max(1)
}

fn in_batches(
    world: &World,
    spec: &SampleSpec,
    indices: &[usize],
    settings: &Settings,
    written: &mut dyn FnMut(&[Sample], Progress) -> Result<()>,
    sink: &mut dyn FnMut(&[Sample]) -> Result<()>,
) -> Result<()> {
    let total = asked(spec, indices);
    let mut done = 0;
    for piece in passes(spec, indices, world.batch()) {
        let samples = world.sample_indices(spec, settings, &piece)?;
        sink(&samples)?;
        done += piece.len();
        written(&samples, Progress { done, total })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_that_will_be_too_large_is_refused_before_its_pictures_are_drawn() {
        let of = |side: usize| ImageShape { channels: 1, height: side, width: side };
        // 993 columns of 64 pixels and a line of 2 between are 65,536 pixels.
        assert_eq!(columns(of(32), 993 * 993).unwrap(), 993);
        let refused = columns(of(32), 993 * 993 + 1).unwrap_err().to_string();
        assert!(refused.contains("65536") && refused.contains("lower n"), "{refused}");
        assert!(columns(of(256), 254 * 254).is_ok() && columns(of(256), 256 * 256).is_err());
    }

    #[test]
    fn a_full_disk_keeps_no_samples() {
        let full = drawn_anew(Error::io("a/x.npz", ErrorKind::StorageFull.into())).to_string();
        assert!(full.starts_with("a/x.npz: ") && full.contains("free some space") && !full.contains("kept"), "{full}");
        assert!(matches!(drawn_anew(Error::Cancelled), Error::Cancelled));
    }
}
