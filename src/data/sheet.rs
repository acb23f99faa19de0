//! Contact sheets: many images in one picture, which says how to take them out again.

use std::io::{BufRead, BufReader, Cursor, Seek};
use std::path::Path;

use ::png::{Decoder, Limits};

use super::ImageShape;
use super::decode::decoded;
use super::held_noise::HeldNoise;
use super::source::open_regular;
use super::write::{MAX_SIDE, encode_png, encode_png_with, write_atomically};
use crate::error::{Error, Result};

/// Pixels between the images, and their value: white.
const GAP: usize = 2;
const GAP_VALUE: u8 = 255;
/// The name of the text of a PNG that says how its sheet is laid out.
const KEY: &str = "bayescope-sheet";
/// Bytes that a text of a PNG may take.
const TEXT: usize = 1 << 16;
/// Images that are taken out of a sheet, at most.
const MOST: usize = 1 << 16;

/// How images lie in a sheet: row by row, with a gap between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// Of an image.
    shape: ImageShape,
    count: usize,
    columns: usize,
    /// Pixels of the sheet along a side of a pixel of an image.
    scale: usize,
}

impl Layout {
    /// That of images (`pixels`, NCHW, each of `shape`) in at most `columns` columns.
    fn of(shape: ImageShape, pixels: &[u8], columns: usize, scale: usize) -> Result<Self> {
        let dims = shape.dims().max(1);
        if pixels.is_empty() || !pixels.len().is_multiple_of(dims) {
            return Err(Error::input(format!("{} values are no images of shape {shape}", pixels.len())));
        }
        let count = pixels.len() / dims;
        Ok(Self { shape, count, columns: columns.min(count), scale })
    }

    /// Shape of the sheet.
    fn sheet(&self) -> Result<ImageShape> {
        let Self { shape, count, columns, scale } = *self;
        if [shape.channels, shape.height, shape.width, count].contains(&0) || columns == 0 || scale == 0 {
            return Err(Error::input(format!("{count} images of shape {shape} in {columns} columns are no sheet")));
        }
        let side = |cells: usize, pixels: usize| {
            let length = pixels.saturating_mul(scale).saturating_add(GAP).saturating_mul(cells).saturating_sub(GAP);
            (length <= MAX_SIDE).then_some(length).ok_or_else(|| {
                Error::input(format!(
                    "a sheet of {count} images of shape {shape} at scale {scale} exceeds {MAX_SIDE} pixels a side"
                ))
            })
        };
        let (height, width) = (side(count.div_ceil(columns), shape.height)?, side(columns, shape.width)?);
        Ok(ImageShape { channels: shape.channels, height, width })
    }

    /// Row and column of the upper left corner of image `i`.
    fn corner(&self, i: usize) -> [usize; 2] {
        let side = |pixels: usize| pixels * self.scale + GAP;
        [i / self.columns * side(self.shape.height), i % self.columns * side(self.shape.width)]
    }

    /// Shape and CHW pixels of the sheet of these images.
    fn drawn(&self, pixels: &[u8]) -> Result<(ImageShape, Vec<u8>)> {
        let Self { shape, scale, .. } = *self;
        let sheet = self.sheet()?;
        let mut out = vec![GAP_VALUE; sheet.dims()];
        for (i, image) in pixels.chunks_exact(shape.dims()).enumerate() {
            let [top, left] = self.corner(i);
            for (row, line) in image.chunks_exact(shape.width).enumerate() {
                let (channel, row) = (row / shape.height, row % shape.height);
                let enlarged: Vec<u8> = line.iter().flat_map(|&v| std::iter::repeat_n(v, scale)).collect();
                for y in 0..scale {
                    let at = (channel * sheet.height + top + row * scale + y) * sheet.width + left;
                    out[at..at + enlarged.len()].copy_from_slice(&enlarged);
                }
            }
        }
        Ok((sheet, out))
    }

    /// Count, columns, scale, channels, height and width, apart by spaces.
    fn text(&self) -> String {
        let Self { shape: ImageShape { channels, height, width }, count, columns, scale } = self;
        format!("{count} {columns} {scale} {channels} {height} {width}")
    }

    fn of_text(text: &str) -> Option<Self> {
        let numbers: Vec<usize> = text.split(' ').map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
        let [count, columns, scale, channels, height, width] = numbers[..] else { return None };
        Some(Self { shape: ImageShape { channels, height, width }, count, columns, scale })
    }

    /// The layout of a PNG that is a sheet; `None` for other pictures, and where the size has been changed since.
    fn of_png(source: impl BufRead + Seek) -> Option<Self> {
        let reader = Decoder::new_with_limits(source, Limits { bytes: TEXT }).read_info().ok()?;
        let info = reader.info();
        let text = info.uncompressed_latin1_text.iter().find(|text| text.keyword == KEY)?;
        let read_back = |layout: &Self| layout.count <= MOST && matches!(layout.shape.channels, 1 | 3);
        let layout = Self::of_text(&text.text).filter(read_back)?;
        let sheet = layout.sheet().ok()?;
        ([sheet.height, sheet.width] == [info.height as usize, info.width as usize]).then_some(layout)
    }
}

/// Shape of a contact sheet of so many images.
///
/// # Errors
/// When there is none: as [`contact_sheet`].
pub fn sheet_shape(shape: ImageShape, count: usize, columns: usize, scale: usize) -> Result<ImageShape> {
    Layout { shape, count, columns, scale }.sheet()
}

/// Lays images (`pixels`, NCHW, each of `shape`) out in `columns` columns with white lines between,
/// each pixel `scale`×`scale`. Returns shape and CHW pixels of the sheet.
///
/// # Errors
/// When `pixels` is empty or no whole number of images, `columns` or `scale` is 0, or a side of the
/// sheet exceeds 65,536 pixels.
pub fn contact_sheet(shape: ImageShape, pixels: &[u8], columns: usize, scale: usize) -> Result<(ImageShape, Vec<u8>)> {
    Layout::of(shape, pixels, columns, scale)?.drawn(pixels)
}

/// Writes images (`pixels`, NCHW, each of `shape`) as a contact sheet from which [`split_sheet`] takes them again, if they are at
/// most 65,536 and its sides as long as those of other pictures that are read. It says which noise they hold, if any.
///
/// # Errors
/// As [`contact_sheet`], when no PNG has so many channels, and the system's error on `path`.
pub fn write_sheet(
    path: &Path,
    shape: ImageShape,
    pixels: &[u8],
    columns: usize,
    scale: usize,
    held: Option<&HeldNoise>,
) -> Result<()> {
    let layout = Layout::of(shape, pixels, columns, scale)?;
    let (sheet, pixels) = layout.drawn(pixels)?;
    let texts: Vec<(&str, String)> = [(KEY, layout.text())].into_iter().chain(held.map(HeldNoise::text)).collect();
    let png = encode_png_with(sheet, &pixels, &texts);
    let png = png.map_err(|e| Error::input(format!("{}: {e}", path.display())))?;
    write_atomically(path, |out| out.write_all(&png))
}

/// How many images a file holds: those of a contact sheet that was written here, else one.
pub fn images_in(path: &Path) -> usize {
    let layout = open_regular(path).ok().and_then(|file| Layout::of_png(BufReader::new(file)));
    layout.map_or(1, |layout| layout.count)
}

/// The images of a contact sheet that was written here, as PNG, in their order; none where it is none. `name` is
/// for messages.
///
/// # Errors
/// When the sheet is damaged.
pub fn split_sheet(name: &Path, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let Some(layout) = Layout::of_png(Cursor::new(bytes)) else { return Ok(Vec::new()) };
    let image = decoded(name, bytes)?.image;
    let Layout { shape, count, scale, .. } = layout;
    let (width, channels) = (image.width() as usize, shape.channels);
    let pixels = if channels == 1 { image.into_luma8().into_raw() } else { image.into_rgb8().into_raw() };
    let one = |i: usize| {
        let [top, left] = layout.corner(i);
        let at =
            |channel: usize, y: usize, x: usize| ((top + y * scale) * width + left + x * scale) * channels + channel;
        let rows = |channel: usize| (0..shape.height).map(move |y| (channel, y));
        let places = (0..channels).flat_map(rows).flat_map(|(c, y)| (0..shape.width).map(move |x| (c, y, x)));
        let of_one: Option<Vec<u8>> = places.map(|(c, y, x)| pixels.get(at(c, y, x)).copied()).collect();
        let of_one = of_one.ok_or_else(|| Error::file(name, "damaged contact sheet: it ends within an image"))?;
        encode_png(shape, &of_one)
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_sheet_has_every_image_in_its_place() {
        let shape = ImageShape { channels: 1, height: 1, width: 2 };
        let (sheet, pixels) = contact_sheet(shape, &[1, 2, 3, 4, 5, 6], 2, 1).unwrap();
        assert_eq!((sheet.height, sheet.width), (4, 6));
        let w = GAP_VALUE;
        assert_eq!(pixels[..6], [1, 2, w, w, 3, 4]);
        assert_eq!(pixels[6..18], [w; 12]);
        assert_eq!(pixels[18..], [5, 6, w, w, w, w]);
        let (sheet, pixels) = contact_sheet(shape, &[1, 2], 9, 2).unwrap();
        assert_eq!((sheet.height, sheet.width, pixels), (2, 4, vec![1, 1, 2, 2, 1, 1, 2, 2]));
        for (values, columns, scale) in [(3, 1, 1), (0, 1, 1), (2, 0, 1), (2, 1, 0), (2, 1, usize::MAX)] {
            assert!(contact_sheet(shape, &vec![0; values], columns, scale).is_err());
        }
    }

    #[test]
    fn the_images_of_a_sheet_are_taken_out_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sheet.png");
        for (channels, count, scale) in [(1, 5, 1), (3, 4, 3), (1, 1, 2)] {
            let shape = ImageShape { channels, height: 3, width: 2 };
            let pixels: Vec<u8> = (0..count * shape.dims()).map(|i| (i * 37 % 251) as u8).collect();
            write_sheet(&path, shape, &pixels, 2, scale, None).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let images = split_sheet(&path, &bytes).unwrap();
            assert_eq!((images.len(), images_in(&path)), (count, count));
            for (png, image) in images.iter().zip(pixels.chunks_exact(shape.dims())) {
                assert_eq!(*png, encode_png(shape, image).unwrap());
            }
            // What is no sheet, and a sheet that another program has scaled but not renamed.
            let plain = encode_png(shape, &pixels[..shape.dims()]).unwrap();
            let layout = Layout { shape, count, columns: 2, scale: scale + 1 };
            let grey = ImageShape { channels: 1, ..shape };
            let scaled = encode_png_with(grey, &[0; 6], &[(KEY, layout.text())]).unwrap();
            for other in [&plain, &scaled, &b"no picture".to_vec()] {
                assert!(split_sheet(&path, other).unwrap().is_empty());
                std::fs::write(&path, other).unwrap();
                assert_eq!(images_in(&path), 1);
            }
            // Cut off: of its pixels nothing is made up.
            assert!(split_sheet(&path, &bytes[..bytes.len() - 20]).is_err());
        }
    }
}
