//! Training images on their way into a batch: drawn, moved, mirrored, dequantised.

use std::borrow::Cow;

use rand::RngExt;

use super::form::Form;
use crate::data::Dataset;
use crate::flow::preprocess::{Dequantisation, Front, Preprocessing};
use crate::units::Seed;

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
        self.form(i).of(self.train.image(i), self.train.shape)
    }

    /// The form in which this epoch shows image `i`.
    fn form(&self, i: usize) -> Form {
        let rng = |what: &str| self.seed.split(&format!("{what} {}", self.epoch)).rng(i as u64);
        let moved = match self.shift {
            0 => [0, 0],
            limit => {
                let mut rng = rng("shift");
                [(); 2].map(|()| rng.random_range(0..=2 * limit).cast_signed() - limit.cast_signed())
            }
        };
        let mirrored = self.mirror && rng("mirror").random();
        Form { moved, mirrored, turns: if self.turn { rng("turn").random_range(0..4) } else { 0 } }
    }

    /// Whether the label of image `i` is dropped, which happens to a share of them.
    pub fn label_dropped(&self, i: usize, share: f64) -> bool {
        let mut rng = self.seed.split(&format!("labels {}", self.epoch)).rng(i as u64);
        rng.random::<f64>() < share
    }
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
    use crate::data::ImageShape;
    use crate::oracle::train::DataSpec;

    #[test]
    fn an_epoch_shows_an_image_in_a_form_of_its_spec_and_epochs_show_all() {
        let shape = ImageShape { channels: 1, height: 4, width: 4 };
        let (name, ids, noises) = ("x".to_owned(), vec!["0".to_owned()], Default::default());
        let train = Dataset { name, shape, pixels: (1..=16).collect(), labels: None, class_names: vec![], ids, noises };
        let data = DataSpec { shift: 1, mirror: true, turn: true, ..DataSpec::at("anywhere") };
        let mut unseen = Form::all(&data, shape).unwrap();
        let forms = unseen.clone();
        for epoch in 1..=1500 {
            let DataSpec { shift, mirror, turn, .. } = data;
            let draw = Draw { train: &train, labels: &[0], chosen: &[0], epoch, seed: Seed(3), shift, mirror, turn };
            let shown = draw.image(0);
            assert!(forms.iter().any(|form| form.of(train.image(0), shape) == shown), "{shown:?}");
            unseen.retain(|form| form.of(train.image(0), shape) != shown);
            let still = Draw { shift: 0, mirror: false, turn: false, ..draw };
            assert_eq!(still.image(0), train.image(0));
        }
        assert!(unseen.is_empty(), "{unseen:?}");
    }
}
