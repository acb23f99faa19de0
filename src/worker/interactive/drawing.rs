//! The float image of a drawing.

use std::sync::Arc;

use super::super::protocol::{Ground, Sketch};
use crate::flow::preprocess::{Dequantisation, Preprocessing};

/// What is drawn on.
#[derive(Clone)]
pub struct GroundImage {
    /// As it was asked for.
    pub of: Ground,
    /// World space, CHW.
    pub x: Arc<Vec<f32>>,
    /// For the eye.
    pub picture: Arc<Vec<u8>>,
}

/// The world-space image of a drawing: pixels with ink are 8-bit levels with the noise of the world,
/// as those of a file are; the others stay as they are in the ground.
pub fn compose(pixels: Preprocessing, sketch: &Sketch, ground: Option<&[f32]>) -> Vec<f32> {
    let mut x = pixels.map_in(&sketch.levels, sketch.levels.len(), 0, Dequantisation::default());
    let area = sketch.inked.len().max(1);
    for (i, (value, before)) in x.iter_mut().zip(ground.into_iter().flatten()).enumerate() {
        if !sketch.inked[i % area] {
            *value = *before;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_is_as_in_a_file_and_the_rest_stays_as_it_was() {
        let levels: Vec<u8> = (0..2 * 9).map(|i| i * 14).collect();
        let inked: Vec<bool> = (0..9).map(|i| i % 3 == 0).collect();
        let ground: Vec<f32> = (0..2 * 9).map(|i| -0.125 + i as f32).collect();
        for pixels in [Preprocessing::Uniform, Preprocessing::Gaussian { std: 0.05 }] {
            let from_file = pixels.map_in(&levels, 18, 0, Dequantisation::default());
            let mut sketch = Sketch { revision: 1, ground: None, levels: levels.clone(), inked: inked.clone() };
            assert_eq!(compose(pixels, &sketch, None), from_file);
            let drawn = compose(pixels, &sketch, Some(&ground));
            for (i, value) in drawn.iter().enumerate() {
                assert_eq!(*value, if i % 9 % 3 == 0 { from_file[i] } else { ground[i] }, "pixel {i}");
            }
            sketch.inked.fill(false);
            assert_eq!(compose(pixels, &sketch, Some(&ground)), ground, "without ink it is the ground to the bit");
        }
    }
}
