//! Pictures that hold a world's noise already, and get noise a second time in training.

use serde::Serialize;

use super::spec::TrainSpec;
use crate::data::HeldNoises;
use crate::flow::preprocess::Preprocessing;

/// Gaussian noise is added to pictures that hold some. Whether what they hold is a part of the images that the new world is to
/// have, only the spec can say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SecondNoise {
    /// Pictures of the corpus that hold noise.
    pub holding: usize,
    /// All pictures of the corpus.
    pub pictures: usize,
    /// Standard deviations of the noise that they hold, in units of x.
    pub held: Vec<f64>,
    /// That of the noise which training adds, in units of x.
    pub added: f64,
    /// The key of the spec that says which noise is added, and its word for noise that stays within the level of a pixel.
    remedy: (&'static str, &'static str),
}

impl TrainSpec {
    /// What is to be said of pictures that say that they hold noise, where training adds Gaussian noise to them.
    pub fn second_noise(&self, said: &HeldNoises) -> Option<SecondNoise> {
        let Preprocessing::Gaussian { std: added } = self.pixels() else { return None };
        let HeldNoises { pictures, holding, held, .. } = said;
        let mut held: Vec<f64> = held.iter().map(|noise| noise.std).collect();
        held.sort_by(f64::total_cmp);
        held.dedup();
        let remedy = match self.tarflow {
            Some(_) => ("tarflow.pixels", "uniform-symmetric"),
            None => ("model.pixels", "uniform"),
        };
        (*holding > 0).then_some(SecondNoise { holding: *holding, pictures: *pictures, held, added, remedy })
    }
}

impl std::fmt::Display for SecondNoise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { holding, pictures, held, added, remedy: (key, within) } = self;
        let held = held.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        write!(
            f,
            "{holding} of {pictures} pictures are of a world's own images and hold its noise (σ = {held}), and training adds noise of \
             σ = {added}: images of the new world have both. With {key} = {{ noise = \"{within}\" }} training adds none beyond the \
             levels of pixels"
        )
    }
}
