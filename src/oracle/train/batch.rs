//! Training images on their way into a batch: drawn, moved, mirrored, dequantised.

use std::borrow::Cow;

use rand::RngExt;

use crate::data::{Dataset, ImageShape};
use crate::flow::preprocess::{Dequantisation, Front, Preprocessing};
use crate::units::Seed;

/// Image `i`, moved by up to `limit` pixels in each direction; zeros come in.
fn moved(dataset: &Dataset, i: usize, limit: usize, seed: Seed) -> Cow<'_, [u8]> {
    let image = dataset.image(i);
    if limit == 0 {
        return Cow::Borrowed(image);
    }
    let mut rng = seed.rng(i as u64);
    let mut draw = || rng.random_range(0..=2 * limit);
    let (dy, dx) = (draw(), draw());
    let ImageShape { channels, height, width } = dataset.shape;
    let mut out = vec![0; image.len()];
    for (row, pixels) in out.chunks_mut(width).enumerate() {
        let (channel, y) = (row / height, row % height);
        let from = (y + dy).checked_sub(limit).filter(|from| *from < height && channel < channels);
        let Some(from) = from.map(|from| &image[(channel * height + from) * width..][..width]) else { continue };
        for (x, pixel) in pixels.iter_mut().enumerate() {
            *pixel = (x + dx).checked_sub(limit).and_then(|x| from.get(x)).copied().unwrap_or(0);
        }
    }
    Cow::Owned(out)
}

/// Which images a step sees, and the randomness of its epoch.
pub struct Draw<'a> {
    /// The training images.
    pub train: &'a Dataset,
    /// Their classes.
    pub labels: &'a [usize],
    /// Those of this step.
    pub chosen: &'a [usize],
    /// Epoch, from 1.
    pub epoch: usize,
    /// The run's seed.
    pub seed: Seed,
    /// Largest shift in pixels.
    pub shift: usize,
    /// Whether images are mirrored by chance.
    pub mirror: bool,
    /// Whether images are turned by quarter turns by chance.
    pub turn: bool,
}

impl<'a> Draw<'a> {
    /// Class of each chosen image.
    pub fn classes(&self) -> Vec<usize> {
        self.chosen.iter().map(|&i| self.labels[i]).collect()
    }

    /// This epoch's noise.
    pub fn noise(&self) -> Dequantisation {
        Dequantisation::Seeded(self.seed.split(&format!("dequantisation {}", self.epoch)))
    }

    /// Image `i` as this epoch sees it.
    pub fn image(&self, i: usize) -> Cow<'a, [u8]> {
        let image = moved(self.train, i, self.shift, self.seed.split(&format!("shift {}", self.epoch)));
        let side = self.train.shape.width;
        let mut coin = self.seed.split(&format!("mirror {}", self.epoch)).rng(i as u64);
        let image = if self.mirror && coin.random() { Cow::Owned(mirrored(&image, side)) } else { image };
        let mut turns = self.seed.split(&format!("turn {}", self.epoch)).rng(i as u64);
        match turns.random_range(0..4) {
            n if self.turn && n > 0 => Cow::Owned((0..n).fold(image.into_owned(), |image, _| turned(&image, side))),
            _ => image,
        }
    }

    /// Whether the label of image `i` is dropped, which happens to a share of them.
    pub fn label_dropped(&self, i: usize, share: f64) -> bool {
        let mut rng = self.seed.split(&format!("labels {}", self.epoch)).rng(i as u64);
        rng.random::<f64>() < share
    }
}

/// Rows of `width` pixels back to front.
fn mirrored(image: &[u8], width: usize) -> Vec<u8> {
    image.chunks(width).flat_map(|row| row.iter().rev().copied()).collect()
}

/// Square channels of `side`² pixels, turned by a quarter turn to the left.
fn turned(image: &[u8], side: usize) -> Vec<u8> {
    let channel = |pixels: &[u8]| -> Vec<u8> {
        (0..side * side).map(|i| pixels[(i % side) * side + side - 1 - i / side]).collect()
    };
    image.chunks(side * side).flat_map(channel).collect()
}

/// Images `chosen`, dequantised and mapped to the space in which a Glow's couplings work, and the
/// mean log-determinant of that map.
pub fn behind_the_front<'a>(
    pixels: Preprocessing,
    dims: usize,
    chosen: &[usize],
    image: impl Fn(usize) -> Cow<'a, [u8]>,
    dequantisation: Dequantisation,
) -> (Vec<f32>, f64) {
    let x: Vec<f32> = chosen.iter().flat_map(|&i| pixels.map_in(&image(i), dims, i, dequantisation)).collect();
    let (y, log_det) = Front::new(pixels, 0.9f32.into()).forward(&x, dims);
    let mean = log_det.iter().sum::<f64>() / log_det.len().max(1) as f64;
    (y.into_iter().map(|y| y as f32).collect(), mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirrored_image_has_its_rows_back_to_front() {
        assert_eq!(mirrored(&[1, 2, 3, 4, 5, 6], 3), [3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn a_turned_image_has_its_last_column_as_its_first_row() {
        assert_eq!(turned(&[1, 2, 3, 4, 5, 6, 7, 8], 2), [2, 4, 1, 3, 6, 8, 5, 7]);
        let image: Vec<u8> = (0..27).collect();
        assert_eq!((0..4).fold(image.clone(), |image, _| turned(&image, 3)), image);
    }

    #[test]
    fn a_moved_image_is_the_image_moved() {
        let shape = ImageShape { channels: 1, height: 4, width: 4 };
        let pixels: Vec<u8> = (1..=16).collect();
        let (name, ids, noises) = ("x".into(), vec!["0".into()], Default::default());
        let dataset = Dataset { name, shape, pixels, labels: None, class_names: vec![], ids, noises };
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..60 {
            let out = moved(&dataset, 0, 1, Seed(seed)).into_owned();
            let at =
                |y: i32, x: i32| if (0..4).contains(&y) && (0..4).contains(&x) { (4 * y + x + 1) as u8 } else { 0 };
            let shifts = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dy, dx)));
            let whole = |&(dy, dx): &(i32, i32)| (0..16).all(|i| out[i as usize] == at(i / 4 + dy, i % 4 + dx));
            seen.extend(shifts.filter(whole));
        }
        assert_eq!(seen.len(), 9);
        assert_eq!(moved(&dataset, 0, 0, Seed(0)), dataset.image(0));
    }
}
