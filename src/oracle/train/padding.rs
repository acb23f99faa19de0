//! Images that are small in the frame of their world.

use serde::Serialize;

use super::spec::TrainSpec;
use crate::data::ImageShape;

/// The share of zeros beyond which padding is told. MNIST's 28×28 in 32×32, as EBO pads them, have 0.23.
const WIDE: f64 = 0.25;

/// Images are padded with zeros to more than they need.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WidePadding {
    /// Height of the images as they were read, pixels.
    pub height: usize,
    /// Their width, pixels.
    pub width: usize,
    /// Side of the padded images, pixels.
    pub side: usize,
    /// Share of the pixels of a padded image that are padding.
    pub zeros: f64,
    /// The smallest side that holds the images and for which such a flow can be built, pixels; absent where that is `side`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_side: Option<usize>,
}

impl TrainSpec {
    /// What is to be said of images that have this shape before they are padded, where zeros are much of what is trained on.
    pub fn wide_padding(&self, read: ImageShape) -> Option<WidePadding> {
        let (ImageShape { height, width, .. }, side) = (read, self.data.pad_to);
        let zeros = 1.0 - (height * width) as f64 / (side * side) as f64;
        let possible = |&least: &usize| {
            let mut spec = self.clone();
            spec.data.pad_to = least;
            spec.validate().is_ok()
        };
        let least_side = (height.max(width)..side).find(possible);
        (zeros > WIDE).then_some(WidePadding { height, width, side, zeros, least_side })
    }
}

impl std::fmt::Display for WidePadding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { height, width, side, zeros, least_side } = self;
        write!(
            f,
            "images of {height}×{width} stand in the middle of {side}×{side}, and {:.0} % of each is zeros: pad_to is the side of \
             the world's images, 32 where a spec does not name it",
            100.0 * zeros
        )?;
        least_side.map_or(Ok(()), |least| write!(f, "; pad_to = {least} is enough for them"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_fill_a_corner_of_their_frame_are_told_of_with_the_side_that_is_enough() {
        let read = |side| ImageShape { channels: 1, height: side, width: side };
        let said = |model: &str, side| {
            let text = format!("name = 'x'\n[data]\npath = 'd'\n{model}");
            let spec: TrainSpec = toml::from_str(&text).unwrap();
            spec.wide_padding(read(side)).map(|wide| (wide.zeros, wide.least_side, wide.to_string()))
        };
        let glow = "[model]\nlevels = 2";
        let (zeros, least, words) = said(glow, 16).unwrap();
        assert_eq!((zeros, least), (0.75, Some(16)));
        assert!(words.contains("75 %") && words.ends_with("; pad_to = 16 is enough for them"), "{words}");
        // Sides are multiples of 2^levels.
        assert_eq!(said(glow, 17).unwrap().1, Some(20));
        assert_eq!(said("[model]\nlevels = 5", 17).unwrap().1, None);
        assert_eq!([said(glow, 28), said(glow, 32)], [None, None]);
    }
}
