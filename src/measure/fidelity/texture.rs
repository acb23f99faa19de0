//! Texture: how much pixels vary within small windows, generated over real (BLC App. A.6:
//! "pixel-level texture variance is 56–69% of real images across all classes").
//!
//! The paper says no more. Here an image's texture is the population variance of the pixels of a
//! window, averaged over all positions of the window and over channels. What a large window adds to
//! a small one is shape and light, not texture: [`WINDOW`] is small. With `None` for the whole
//! image it is the plain variance of its pixels, the other way to read the paper. Both sets must be
//! of the same size and in the same units; a common scale leaves the ratio alone.

use super::features::{Real, by_class};
use super::ratio::Positive;
use crate::error::{Error, Result};
use crate::measure::Estimate;
use crate::parallel;
use crate::units::ClassId;

/// Pixels along a side of the window unless a caller wants others.
pub const WINDOW: usize = 8;

/// Texture of every image [n], in squared pixel units, of `pixels` [n, c, h, w], `shape` [c, h, w].
///
/// # Errors
/// When the pixels are no whole number of images, one is not finite (with its image), or the window
/// has less than two pixels a side or does not fit.
pub fn texture<T: Real>(pixels: &[T], shape: [usize; 3], window: Option<usize>) -> Result<Vec<f64>> {
    let [channels, height, width] = shape;
    let dims = channels * height * width;
    if dims == 0 || pixels.is_empty() || !pixels.len().is_multiple_of(dims) {
        let count = pixels.len();
        return Err(Error::input(format!("{count} pixels are no images of {channels}×{height}×{width}")));
    }
    let [rows, columns] = window.map_or([height, width], |side| [side, side]);
    if rows > height || columns > width || rows * columns < 2 || window == Some(1) {
        return Err(Error::input(format!("no window of {rows}×{columns} pixels in images of {height}×{width}")));
    }
    let of_channel = |plane: &[T]| local_variance(plane, [height, width], [rows, columns]);
    let one = |i: usize| {
        let planes = pixels[i * dims..(i + 1) * dims].chunks_exact(height * width);
        planes.map(of_channel).sum::<f64>() / channels as f64
    };
    let found = parallel::map(pixels.len() / dims, one);
    match found.iter().position(|t| !t.is_finite()) {
        Some(image) => Err(Error::Numeric(format!("image {image} has a pixel that is not a finite number"))),
        None => Ok(found),
    }
}

/// Ratio of the mean texture of generated to real images by class, with its 95 % interval by the
/// delta method over both sets; `None` below three images of either, or without texture.
///
/// # Errors
/// When labels do not match.
pub fn texture_ratios(
    real: (&[f64], &[ClassId]),
    generated: (&[f64], &[ClassId]),
    classes: usize,
) -> Result<Vec<Option<Estimate>>> {
    let means = |(textures, labels): (&[f64], &[ClassId])| -> Result<Vec<Option<Positive>>> {
        let of = |images: &Vec<usize>| Positive::mean(&images.iter().map(|&i| textures[i]).collect::<Vec<_>>());
        Ok(by_class(labels, textures.len(), classes)?.iter().map(of).collect())
    };
    Ok(means(real)?.into_iter().zip(means(generated)?).map(|(real, made)| made?.over(real?)).collect())
}

/// Mean over all positions of the variance within a window of a plane [h, w], by sums over the
/// rectangles from the corner (Crow 1984) of pixels less their mean.
fn local_variance<T: Real>(plane: &[T], [height, width]: [usize; 2], [rows, columns]: [usize; 2]) -> f64 {
    let mean = plane.iter().map(|&x| x.into()).sum::<f64>() / plane.len() as f64;
    let stride = width + 1;
    let mut sums = vec![(0.0, 0.0); stride * (height + 1)];
    for (y, line) in plane.chunks_exact(width).enumerate() {
        let mut row = (0.0, 0.0);
        for (x, &pixel) in line.iter().enumerate() {
            let value = pixel.into() - mean;
            row = (row.0 + value, row.1 + value * value);
            let above = sums[y * stride + x + 1];
            sums[(y + 1) * stride + x + 1] = (above.0 + row.0, above.1 + row.1);
        }
    }
    let count = (rows * columns) as f64;
    let mut total = 0.0;
    for y in 0..=height - rows {
        for x in 0..=width - columns {
            let at = |dy: usize, dx: usize| sums[(y + dy) * stride + x + dx];
            let corners = [at(rows, columns), at(0, columns), at(rows, 0), at(0, 0)];
            let over = |part: fn((f64, f64)) -> f64| {
                let [end, above, left, start] = corners.map(part);
                (end - above - left + start) / count
            };
            let (first, second) = (over(|c| c.0), over(|c| c.1));
            // Rounding may leave −1e-17, which the mean can bear; `max` would swallow a NaN.
            total += second - first * first;
        }
    }
    total / ((height - rows + 1) * (width - columns + 1)) as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::units::Seed;

    #[test]
    fn windows_are_those_of_plain_sums() {
        let (shape, side) = ([2usize, 7, 9], 3);
        let pixels: Vec<f32> = normal(Seed(1), 3 * 126).iter().map(|x| 100.0 + *x as f32).collect();
        let found = texture(&pixels, shape, Some(side)).unwrap();
        for (image, found) in pixels.chunks(126).zip(&found) {
            let (mut total, mut count) = (0.0, 0.0);
            for plane in image.chunks(63) {
                for (y, x) in (0..5).flat_map(|y| (0..7).map(move |x| (y, x))) {
                    let window: Vec<f64> = (0..9).map(|i| f64::from(plane[(y + i / 3) * 9 + x + i % 3])).collect();
                    let mean = window.iter().sum::<f64>() / 9.0;
                    total += window.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 9.0;
                    count += 1.0;
                }
            }
            assert!((found - total / count).abs() < 1e-12, "{found} {}", total / count);
        }
    }

    #[test]
    fn a_slope_has_shape_but_little_texture() {
        let slope: Vec<f64> = (0..32 * 32).map(|i| f64::from(i % 32)).collect();
        // Variance of 0..w − 1 is (w² − 1)/12.
        assert!((texture(&slope, [1, 32, 32], Some(8)).unwrap()[0] - 63.0 / 12.0).abs() < 1e-9);
        assert!((texture(&slope, [1, 32, 32], None).unwrap()[0] - 1023.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn smoothing_is_seen_class_by_class() {
        let of = |seed, scale: f64| -> Vec<f64> { normal(Seed(seed), 40 * 256).iter().map(|x| scale * x).collect() };
        let labels: Vec<usize> = (0..40).map(|i| i / 20).collect();
        let mut made = of(3, 1.0);
        made[..20 * 256].iter_mut().for_each(|x| *x *= 0.8);
        let texture_of = |pixels: &[f64]| texture(pixels, [1, 16, 16], Some(WINDOW)).unwrap();
        let ratios = texture_ratios((&texture_of(&of(2, 1.0)), &labels), (&texture_of(&made), &labels), 3).unwrap();
        let [first, second] = [ratios[0].unwrap(), ratios[1].unwrap()];
        assert!(first.interval.contains(0.64) && !first.interval.contains(1.0), "{first:?}");
        assert!(second.interval.contains(1.0) && ratios[2].is_none(), "{second:?}");
    }

    #[test]
    fn windows_that_do_not_fit_are_refused() {
        let pixels = [0.5f32; 36];
        for (shape, window) in [([1, 6, 6], Some(7)), ([1, 6, 6], Some(1)), ([1, 6, 5], None), ([1, 0, 6], None)] {
            assert!(texture(&pixels, shape, window).is_err());
        }
        let error = texture(&[0.0, f32::NAN, 0.0, 1.0], [1, 2, 2], None).unwrap_err().to_string();
        assert!(error.contains("image 0"), "{error}");
        assert!(texture_ratios((&[1.0], &[0, 0]), (&[1.0], &[0]), 1).is_err());
    }
}
