//! A batch of world-space images with labels and posteriors, and its npz file.

use std::io::{self, Write};
use std::path::Path;

use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use super::ImageShape;
use super::npy::MAGIC;
use super::write::{IfPresent, Out, place_file};
use crate::error::{Error, Result};

/// How far above 1 a probability in f32 may lie, as sums of exponentials in f32 do.
const ROUNDING: f32 = 1e-4;
/// Bytes encoded at a time.
const CHUNK: usize = 1 << 18;

/// Images in world space, as the flow sees them, with labels and posteriors (theory §1).
#[derive(Debug, Clone, PartialEq)]
pub struct WorldBatch {
    /// Shape of every image.
    pub shape: ImageShape,
    /// World-space values, NCHW, all finite.
    pub x: Vec<f32>,
    /// Number of classes K of `posterior` and `logp`; 0 where both are absent and K is not known.
    pub classes: usize,
    /// Class of each image, [N]; within 0..K where K is known.
    pub y: Option<Vec<i64>>,
    /// p(y|x), [N, K], each within [0, 1] up to rounding (1e-4).
    pub posterior: Option<Vec<f32>>,
    /// log p(x|y) in nats, total, [N, K]; −∞ is allowed.
    pub logp: Option<Vec<f64>>,
    /// H(p(y|x)) in nats, [N].
    pub aleatoric: Option<Vec<f64>>,
}

impl WorldBatch {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.x.len() / self.shape.dims().max(1)
    }

    /// Returns whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of image `i` (below [`WorldBatch::len`]), CHW.
    pub fn image(&self, i: usize) -> &[f32] {
        let dims = self.shape.dims();
        &self.x[i * dims..(i + 1) * dims]
    }

    /// Checks sizes and values of all parts; the message names array and image.
    pub(super) fn check(&self) -> Result<(), String> {
        let (n, k) = (self.len(), self.classes);
        if n == 0 || n * self.shape.dims() != self.x.len() {
            return Err(format!("array x: {} values are no images of {}", self.x.len(), self.shape));
        }
        if let Some(at) = self.x.iter().position(|v| !v.is_finite()) {
            return Err(format!("array x: image {} is not finite ({})", at / self.shape.dims(), self.x[at]));
        }
        if k == 0 && (self.posterior.is_some() || self.logp.is_some()) {
            return Err("arrays posterior and logp: no classes".into());
        }
        let known = |label: &i64| k == 0 || usize::try_from(*label).is_ok_and(|label| label < k);
        check_part("y", self.y.as_deref(), n, 1, known)?;
        check_part("posterior", self.posterior.as_deref(), n, k, |p| (0.0..=1.0 + ROUNDING).contains(p))?;
        check_part("logp", self.logp.as_deref(), n, k, |l| !l.is_nan() && *l < f64::INFINITY)?;
        check_part("aleatoric", self.aleatoric.as_deref(), n, 1, |h| h.is_finite())
    }
}

/// Returns whether a part has `each` allowed values per image.
fn check_part<T: std::fmt::Display>(
    name: &str,
    values: Option<&[T]>,
    images: usize,
    each: usize,
    allowed: impl Fn(&T) -> bool,
) -> Result<(), String> {
    let Some(values) = values else { return Ok(()) };
    if values.len() != images * each {
        return Err(format!("array {name}: {} values for {images} images with {each} each", values.len()));
    }
    match values.iter().enumerate().find(|(_, value)| !allowed(value)) {
        Some((at, value)) => Err(format!("array {name}: image {} has the impossible value {value}", at / each)),
        None => Ok(()),
    }
}

/// Writes a batch as npz: `x` float32 [N, C, H, W] and, where present, `y` int64, `posterior`
/// float32, `logp` and `aleatoric` float64. Uncompressed, no timestamps: same batch, same bytes.
/// Atomic.
///
/// # Errors
/// When parts disagree in size or hold impossible values, or the system refuses to write.
pub fn write_npz(path: &Path, batch: &WorldBatch) -> Result<()> {
    write_npz_in_pieces(path, batch.shape, batch.len(), |sink| sink(batch))
}

/// [`write_npz`] of `n` images in pieces: `produce` passes batches to its sink. Images go straight
/// to the disk; only the numbers beside them are held.
///
/// # Errors
/// As [`write_npz`], and whatever `produce` returns; then the file is as it was before.
pub fn write_npz_in_pieces(
    path: &Path,
    shape: ImageShape,
    n: usize,
    produce: impl FnOnce(&mut dyn FnMut(&WorldBatch) -> Result<()>) -> Result<()>,
) -> Result<()> {
    place_npz(path, IfPresent::Replace, shape, n, produce)
}

/// [`write_npz_in_pieces`] of a file that several processes write equally: the first stays.
///
/// # Errors
/// As [`write_npz_in_pieces`].
pub fn add_npz_in_pieces(
    path: &Path,
    shape: ImageShape,
    n: usize,
    produce: impl FnOnce(&mut dyn FnMut(&WorldBatch) -> Result<()>) -> Result<()>,
) -> Result<()> {
    place_npz(path, IfPresent::Keep, shape, n, produce)
}

fn place_npz(
    path: &Path,
    present: IfPresent,
    shape: ImageShape,
    n: usize,
    produce: impl FnOnce(&mut dyn FnMut(&WorldBatch) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let io = |e: io::Error| Error::io(path, e);
    place_file(path, present, |file| {
        let mut zip = ZipWriter::new(file);
        start_array(&mut zip, "x", "<f4", &[n, shape.channels, shape.height, shape.width]).map_err(io)?;
        let mut rest: Option<WorldBatch> = None;
        let mut images = 0;
        let mut sink = |batch: &WorldBatch| {
            batch.check().map_err(|cause| Error::input(format!("{}: {cause}", path.display())))?;
            write_values(&mut zip, &batch.x, f32::to_le_bytes).map_err(io)?;
            images += batch.len();
            match &mut rest {
                None => rest = Some(batch.without_images()),
                Some(rest) => rest.extend(batch),
            }
            Ok(())
        };
        produce(&mut sink)?;
        if images != n {
            return Err(Error::input(format!("{}: {images} images came, {n} were announced", path.display())));
        }
        if let Some(rest) = rest {
            write_numbers(&mut zip, &rest, n).map_err(io)?;
        }
        zip.finish().map(drop).map_err(|e| io(e.into()))
    })
}

impl WorldBatch {
    fn without_images(&self) -> Self {
        let Self { shape, x: _, classes, y, posterior, logp, aleatoric } = self;
        Self {
            shape: *shape,
            x: Vec::new(),
            classes: *classes,
            y: y.clone(),
            posterior: posterior.clone(),
            logp: logp.clone(),
            aleatoric: aleatoric.clone(),
        }
    }

    /// Appends the numbers, not the images, of `other`.
    fn extend(&mut self, other: &Self) {
        fn both<T: Clone>(a: &mut Option<Vec<T>>, b: &Option<Vec<T>>) {
            if let (Some(a), Some(b)) = (a, b) {
                a.extend_from_slice(b);
            }
        }
        both(&mut self.y, &other.y);
        both(&mut self.posterior, &other.posterior);
        both(&mut self.logp, &other.logp);
        both(&mut self.aleatoric, &other.aleatoric);
    }
}

pub(super) type Zip<'a, 'b> = ZipWriter<&'a mut Out<'b>>;

fn write_numbers(zip: &mut Zip<'_, '_>, batch: &WorldBatch, n: usize) -> io::Result<()> {
    let k = batch.classes;
    write_array(zip, "y", "<i8", &[n], batch.y.as_ref(), i64::to_le_bytes)?;
    write_array(zip, "posterior", "<f4", &[n, k], batch.posterior.as_ref(), f32::to_le_bytes)?;
    write_array(zip, "logp", "<f8", &[n, k], batch.logp.as_ref(), f64::to_le_bytes)?;
    write_array(zip, "aleatoric", "<f8", &[n], batch.aleatoric.as_ref(), f64::to_le_bytes)
}

fn write_array<T: Copy, const N: usize>(
    zip: &mut Zip<'_, '_>,
    name: &str,
    descr: &str,
    shape: &[usize],
    values: Option<&Vec<T>>,
    bytes: fn(T) -> [u8; N],
) -> io::Result<()> {
    let Some(values) = values else { return Ok(()) };
    start_array(zip, name, descr, shape)?;
    write_values(zip, values, bytes)
}

/// Opens the entry of one array and writes its header.
pub(super) fn start_array(zip: &mut Zip<'_, '_>, name: &str, descr: &str, shape: &[usize]) -> io::Result<()> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        // Zip64 where header and data could reach 4 GiB; no element here is larger than 8 bytes.
        .large_file(shape.iter().product::<usize>().saturating_mul(8) >= (u32::MAX - (1 << 16)) as usize);
    zip.start_file(format!("{name}.npy"), options)?;
    let mut header = Vec::new();
    write_header(&mut header, descr, shape)?;
    zip.write_all(&header)
}

/// Writes the header of a C-ordered array, padded as NumPy pads it (to a multiple of 64 bytes).
pub(super) fn write_header(out: &mut dyn Write, descr: &str, shape: &[usize]) -> io::Result<()> {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    let padding = (MAGIC.len() + 4 + dict.len() + 1).next_multiple_of(64) - (MAGIC.len() + 4 + dict.len() + 1);
    let length = u16::try_from(dict.len() + padding + 1).map_err(io::Error::other)?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&length.to_le_bytes())?;
    writeln!(out, "{dict}{}", " ".repeat(padding))
}

/// Writes values as little-endian bytes.
pub(super) fn write_values<T: Copy, const N: usize>(
    out: &mut dyn Write,
    values: &[T],
    bytes: fn(T) -> [u8; N],
) -> io::Result<()> {
    for chunk in values.chunks(CHUNK / N.max(1)) {
        let encoded: Vec<u8> = chunk.iter().flat_map(|&value| bytes(value)).collect();
        out.write_all(&encoded)?;
    }
    Ok(())
}
