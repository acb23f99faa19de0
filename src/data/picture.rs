//! Any picture brought into the shape of a world's images, with a record of what was done to it.
//!
//! This is for single pictures that a person shows to a world. A dataset is read as torchvision
//! reads it (`folder`): there EXIF data and transparency are ignored.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use image::codecs::{gif::GifDecoder, png::PngDecoder, webp::WebPDecoder};
use image::imageops::{self, FilterType};
use image::{AnimationDecoder, DynamicImage, ImageBuffer, ImageFormat, Pixel, RgbImage, RgbaImage};
use serde::{Deserialize, Serialize};

use super::ImageShape;
use super::decode::{Decoded, MAX_ALLOC, decoded};
use super::pad::{luma, repeat_grey};
use super::source::read_bounded;
use super::treatment::{Colour, Cut, Scaling, Treatment, Turn};
use crate::error::{Error, Result};

/// What scales.
const FILTER: &str = "bilinear, antialiased";
/// Most pixels along a side of a preview.
const PREVIEW: u32 = 240;
/// A border is one pixel in so many along the shorter side.
const RING: usize = 16;
/// Visible pixels that differ by less than this, in levels, do not stand out from a background.
const STANDS_OUT: f64 = 64.0;

/// How a picture of another size becomes one of the world's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A frame of the world's proportions is cut out and scaled; a picture that is smaller in both
    /// directions stands in the middle as it is, on zeros.
    #[default]
    Crop,
    /// All of it is scaled down, and margins of the colour of the world's borders are added.
    Pad,
    /// All of it is scaled, each direction by itself.
    Stretch,
    /// It is not scaled: it must fit, and stands in the middle on zeros.
    None,
}

/// The frame of [`Way::Crop`] in pixels of the upright picture; its height follows from the world's
/// proportions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Columns to its left.
    pub x: u32,
    /// Rows above it.
    pub y: u32,
    /// Its columns.
    pub width: u32,
}

/// What is to be done to a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fit {
    /// How it gets its size.
    pub way: Way,
    /// What [`Way::Crop`] cuts out; the largest part in the middle if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// Exchange light and dark.
    #[serde(default)]
    pub invert: bool,
}

/// What pictures are made to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    /// Shape of the world's images.
    pub shape: ImageShape,
    /// Colour of their borders; the same three times where they are grey.
    pub border: [u8; 3],
}

/// A small upright picture, RGB, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Pixels, three bytes each.
    pub rgb: Arc<[u8]>,
}

/// A picture in the shape of a world's images.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// 8-bit pixels, CHW.
    pub pixels: Vec<u8>,
    /// What was done.
    pub treatment: Treatment,
    /// The picture before it was cut.
    pub preview: Preview,
}

/// The bytes of a picture's file.
///
/// # Errors
/// When it is no regular file, too large, or the system refuses.
pub fn read_picture(path: &Path) -> Result<Vec<u8>> {
    read_bounded(path, MAX_ALLOC).map_err(|e| Error::io(path, e))
}

/// Brings a picture into the shape of a world's images. `bytes` is the content of its file, in any
/// format that is read; `name` is for messages. Of an animation the first frame is taken.
///
/// # Errors
/// When it is no picture, is damaged, claims more pixels than its length can hold, does not fit
/// where it may not be scaled, or the frame lies outside of it.
pub fn fit_picture(name: &Path, bytes: &[u8], fit: &Fit, ground: &Ground) -> Result<Fitted> {
    if !matches!(ground.shape.channels, 1 | 3) {
        let channels = ground.shape.channels;
        return Err(Error::file(name, format!("no picture can become an image of {channels} channels")));
    }
    let Decoded { image, orientation, format } = decoded(name, bytes)?;
    let stored = [image.width(), image.height()];
    let bits = 8 * image.color().bytes_per_pixel() / image.color().channel_count();
    let (mut image, background) = flat(image, ground);
    image.apply_orientation(orientation);
    let upright = [image.width(), image.height()];
    let Plan { cut, to } = plan(fit, upright, ground.shape).map_err(|cause| Error::file(name, cause))?;
    let (mut pixels, shape, colour) = piece(&image, cut, to, ground.shape.channels);
    let border = level(border(shape, &pixels));
    if fit.invert {
        pixels.iter_mut().for_each(|pixel| *pixel = 255 - *pixel);
    }
    let margin = if fit.way == Way::Pad { ground.border } else { [0; 3] };
    let whole = cut == Cut { x: 0, y: 0, width: upright[0], height: upright[1] };
    let from = [cut.width, cut.height];
    let treatment = Treatment {
        stored,
        turned: Turn::of(orientation),
        first_frame: is_animated(format, bytes),
        bits: (bits != 8).then_some(bits),
        background,
        cropped: (!whole).then_some(cut),
        scaled: (from != to).then(|| Scaling { from, to, filter: FILTER.into() }),
        colour,
        inverted: fit.invert,
        margins: (shape != ground.shape).then_some(margin),
        border,
        world_border: level(ground.border),
    };
    Ok(Fitted { pixels: placed(shape, &pixels, ground.shape, margin), treatment, preview: preview(&image) })
}

/// Which part becomes how large.
struct Plan {
    cut: Cut,
    to: [u32; 2],
}

fn plan(fit: &Fit, [width, height]: [u32; 2], shape: ImageShape) -> Result<Plan, String> {
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX).max(1);
    let [columns, rows] = [side(shape.width), side(shape.height)];
    let whole = Cut { x: 0, y: 0, width, height };
    let small = width <= columns && height <= rows;
    let to = [columns, rows];
    match fit.way {
        Way::Stretch => Ok(Plan { cut: whole, to }),
        Way::Crop if fit.frame.is_some() || !small => Ok(Plan { cut: frame(fit.frame, [width, height], to)?, to }),
        _ if small => Ok(Plan { cut: whole, to: [width, height] }),
        Way::Pad => {
            let scale = (f64::from(columns) / f64::from(width)).min(f64::from(rows) / f64::from(height));
            let scaled = |side: u32, most: u32| ((f64::from(side) * scale).round() as u32).clamp(1, most);
            Ok(Plan { cut: whole, to: [scaled(width, columns), scaled(height, rows)] })
        }
        Way::Crop | Way::None => Err(format!(
            "has {width}×{height} pixels, which do not fit into this world's {columns}×{rows}: crop, pad or stretch it"
        )),
    }
}

/// The part of a picture that a frame takes, the largest in the middle where none is given.
fn frame(frame: Option<Frame>, [width, height]: [u32; 2], [columns, rows]: [u32; 2]) -> Result<Cut, String> {
    let (w, h, c, r) = (u64::from(width), u64::from(height), u64::from(columns), u64::from(rows));
    let tall = |width: u64| ((width * r + c / 2) / c).max(1);
    let Some(Frame { x, y, width: asked }) = frame else {
        let cut_width = w.min(h * c / r).max(1);
        let cut_height = tall(cut_width).min(h);
        let [x, y] = [(w - cut_width) / 2, (h - cut_height) / 2];
        return Ok(Cut { x: x as u32, y: y as u32, width: cut_width as u32, height: cut_height as u32 });
    };
    let tall = tall(u64::from(asked));
    if asked == 0 || u64::from(x) + u64::from(asked) > w || u64::from(y) + tall > h {
        return Err(format!(
            "the frame of {asked}×{tall} pixels at {x},{y} does not lie within the upright picture of {width}×{height}"
        ));
    }
    Ok(Cut { x, y, width: asked, height: tall as u32 })
}

/// The picture in 8 bits, grey or colour; and the colour under its transparent parts, if it has any.
fn flat(image: DynamicImage, ground: &Ground) -> (DynamicImage, Option<[u8; 3]>) {
    let colour = image.color().has_color();
    if image.color().has_alpha() {
        let image = image.into_rgba8();
        let transparent = image.pixels().any(|pixel| pixel[3] < 255);
        let under = if transparent { background(&image, ground) } else { [0; 3] };
        let image = DynamicImage::ImageRgb8(on(&image, under));
        let grey = !colour && under[0] == under[1] && under[1] == under[2];
        let image = if grey { DynamicImage::ImageLuma8(image.into_luma8()) } else { image };
        return (image, transparent.then_some(under));
    }
    let image = match colour {
        true => DynamicImage::ImageRgb8(image.into_rgb8()),
        false => DynamicImage::ImageLuma8(image.into_luma8()),
    };
    (image, None)
}

/// The colour of the world's borders, or where the drawing would not stand out from it, black or
/// white, whichever is farther.
fn background(image: &RgbaImage, ground: &Ground) -> [u8; 3] {
    let (mut sum, mut weight) = (0.0, 0.0);
    for pixel in image.pixels() {
        let alpha = f64::from(pixel[3]);
        sum += alpha * f64::from(level([pixel[0], pixel[1], pixel[2]]));
        weight += alpha;
    }
    let drawn = sum / f64::max(weight, 1.0);
    let of_world = level(ground.border);
    match (drawn - f64::from(of_world)).abs() < STANDS_OUT {
        false => ground.border,
        true if of_world < 128 => [255; 3],
        true => [0; 3],
    }
}

/// A transparent picture on a colour.
fn on(image: &RgbaImage, under: [u8; 3]) -> RgbImage {
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let pixel = image.get_pixel(x, y);
        let alpha = u32::from(pixel[3]);
        let mixed = |c: usize| ((u32::from(pixel[c]) * alpha + u32::from(under[c]) * (255 - alpha) + 127) / 255) as u8;
        image::Rgb([mixed(0), mixed(1), mixed(2)])
    })
}

/// A part of a picture, scaled, CHW with the channels of the world; its shape and what became of
/// its colours.
fn piece(image: &DynamicImage, cut: Cut, to: [u32; 2], channels: usize) -> (Vec<u8>, ImageShape, Colour) {
    let shape = ImageShape { channels, height: to[1] as usize, width: to[0] as usize };
    let plane = shape.height * shape.width;
    if let DynamicImage::ImageLuma8(grey) = image {
        let pixels = scaled(grey, cut, to);
        return match channels {
            3 => (repeat_grey(&pixels, plane), shape, Colour::GreyInEach),
            _ => (pixels, shape, Colour::Kept),
        };
    }
    let interleaved = match image {
        DynamicImage::ImageRgb8(rgb) => scaled(rgb, cut, to),
        other => scaled(&other.to_rgb8(), cut, to),
    };
    let (rgb, _) = interleaved.as_chunks::<3>();
    let pixels: Vec<u8> = (0..3).flat_map(|c| rgb.iter().map(move |pixel| pixel[c])).collect();
    match channels {
        1 => (luma(&pixels).collect(), shape, Colour::ToGrey),
        _ => (pixels, shape, Colour::Kept),
    }
}

fn scaled<P>(image: &ImageBuffer<P, Vec<u8>>, Cut { x, y, width, height }: Cut, to: [u32; 2]) -> Vec<u8>
where
    P: Pixel<Subpixel = u8> + 'static,
{
    let part = imageops::crop_imm(image, x, y, width, height);
    imageops::resize(&*part, to[0], to[1], FilterType::Triangle).into_raw()
}

/// An image in the middle of a larger one; an odd difference puts the extra row or column at the
/// bottom or right, as for datasets.
fn placed(from: ImageShape, pixels: &[u8], to: ImageShape, margin: [u8; 3]) -> Vec<u8> {
    if from == to {
        return pixels.to_vec();
    }
    let (top, left) = ((to.height - from.height) / 2, (to.width - from.width) / 2);
    let mut whole: Vec<u8> = (0..to.channels).flat_map(|c| vec![margin[c % 3]; to.height * to.width]).collect();
    let planes = pixels.chunks_exact((from.height * from.width).max(1));
    for (plane, whole) in planes.zip(whole.chunks_exact_mut((to.height * to.width).max(1))) {
        let rows = whole.chunks_exact_mut(to.width).skip(top);
        for (row, whole) in plane.chunks_exact(from.width).zip(rows) {
            whole[left..left + from.width].copy_from_slice(row);
        }
    }
    whole
}

/// The median colour of the borders of images (`pixels`, NCHW): one pixel in sixteen along the
/// shorter side, at least one. The same three times of grey images; black of none.
pub fn border(shape: ImageShape, pixels: &[u8]) -> [u8; 3] {
    let ImageShape { channels, height, width } = shape;
    let ring = (height.min(width) / RING).max(1);
    let edge = |at: usize, side: usize| at < ring || at + ring >= side;
    let plane = (height * width).max(1);
    let median = |channel: usize| {
        let planes = pixels.chunks_exact(plane).skip(channel).step_by(channels.max(1));
        let at_edge = |(i, _): &(usize, &u8)| edge(i / width.max(1), height) || edge(i % width.max(1), width);
        let mut levels: Vec<u8> =
            planes.flat_map(|plane| plane.iter().enumerate().filter(at_edge).map(|(_, level)| *level)).collect();
        levels.sort_unstable();
        levels.get(levels.len() / 2).copied().unwrap_or(0)
    };
    if channels == 3 { [median(0), median(1), median(2)] } else { [median(0); 3] }
}

/// Luma of a colour.
fn level(rgb: [u8; 3]) -> u8 {
    luma(&rgb).next().unwrap_or(0)
}

fn preview(image: &DynamicImage) -> Preview {
    let most = image.width().max(image.height()).min(PREVIEW);
    let small = image.thumbnail(most, most).to_rgb8();
    Preview { width: small.width() as usize, height: small.height() as usize, rgb: small.into_raw().into() }
}

/// Whether a file of a format that can be read holds more than one frame.
fn is_animated(format: ImageFormat, bytes: &[u8]) -> bool {
    let source = Cursor::new(bytes);
    match format {
        ImageFormat::Gif => {
            let frames = GifDecoder::new(source).map(|decoder| decoder.into_frames().take(2));
            frames.is_ok_and(|frames| frames.filter(Result::is_ok).count() > 1)
        }
        ImageFormat::WebP => WebPDecoder::new(source).is_ok_and(|decoder| decoder.has_animation()),
        ImageFormat::Png => {
            PngDecoder::new(source).is_ok_and(|decoder| decoder.is_apng().is_ok_and(|animated| animated))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
