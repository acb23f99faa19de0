//! One image file decoded, within bounds of memory that its length sets.

use std::io::Cursor;
use std::path::Path;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};

use super::tiff;
use crate::error::{Error, Result};

/// Largest side of an image that is read, in pixels.
const MAX_SIDE: u32 = 16_384;
/// Largest allocation of a decoder, in bytes.
pub(super) const MAX_ALLOC: u64 = 512 << 20;
/// Bytes of pixels that any file may claim, and a larger file for each of its bytes: an empty
/// picture packs by a few hundred; a larger claim is a damaged header.
const FREE: u64 = 12 << 20;
const PACKED: u64 = 4096;

/// An image as its file has it.
pub(super) struct Decoded {
    /// The first frame, as stored.
    pub image: DynamicImage,
    /// How it is to be turned to stand upright.
    pub orientation: Orientation,
    /// The format of the file.
    pub format: ImageFormat,
}

/// Decodes `bytes`, the content of `file`. Refuses a header that claims more pixels than fit into a
/// file of that length. (From memory alone: the decoders of every format are compiled for one source.)
pub(super) fn decoded(file: &Path, bytes: &[u8]) -> Result<Decoded> {
    let length = bytes.len() as u64;
    if !tiff::fields_fit(bytes).map_err(|e| Error::io(file, e))? {
        return Err(Error::file(file, "damaged image: a field of its directory claims more than the file holds"));
    }
    let room = length.saturating_mul(PACKED).max(FREE);
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| Error::io(file, e))?;
    let Some(format) = reader.format() else {
        return Err(Error::file(file, "is not an image (its content is of no image format that can be read)"));
    };
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    // For the pixels, and as much again.
    limits.max_alloc = Some(room.saturating_mul(2).min(MAX_ALLOC));
    reader.limits(limits.clone());
    let bad = |e: ImageError| Error::file(file, format!("damaged or unsupported image: {e}"));
    let mut decoder = reader.into_decoder().map_err(bad)?;
    let (claimed, (width, height)) = (decoder.total_bytes(), decoder.dimensions());
    if claimed > room {
        let cause = format!("damaged image: its header claims {height}×{width} pixels, in a file of {length} bytes");
        return Err(Error::file(file, cause));
    }
    limits.reserve(claimed).and_then(|()| decoder.set_limits(limits)).map_err(bad)?;
    // Broken metadata turn nothing.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(bad)?;
    if image.width() == 0 || image.height() == 0 {
        return Err(Error::file(file, "is an image without pixels"));
    }
    Ok(Decoded { image, orientation, format })
}
