//! Which world: what tells the one that images are opened in from others, and what a record of images says of theirs.
//!
//! A world is its weights and how 8-bit pixels enter it: the same weights are another world where pixels enter otherwise. Files
//! tell worlds apart in two ways. A record that says both is compared by [`OfWorld::is`]. What has room for one word holds
//! [`world_id`]: the SHA-256 of the weights alone where the record of their training says how pixels enter, as in all older
//! files, and both otherwise.

use serde::Deserialize;

/// A world that images are opened in.
#[derive(Debug, Clone)]
pub struct Home<'a> {
    /// SHA-256 of its weights; empty where unknown.
    pub weights_sha256: &'a str,
    /// How 8-bit pixels enter it, in a word.
    pub pixels: String,
    /// Whether no record of a training says that of its weights.
    pub assumed: bool,
    /// Ends of the range that pixels fill in x.
    pub pixel_range: [f32; 2],
    /// Names of its classes.
    pub class_names: &'a [String],
}

impl Home<'_> {
    /// What tells it from others in one word.
    pub fn id(&self) -> String {
        world_id(self.weights_sha256, self.assumed.then_some(&*self.pixels))
    }
}

/// What `dataset.json` says of the world of its images. Older programs, and others, write less.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct OfWorld {
    /// SHA-256 of its weights; empty where unknown.
    pub weights_sha256: String,
    /// How 8-bit pixels enter it, in a word.
    pub pixels: Option<String>,
    /// Ends of the range that pixels fill in x.
    pub pixel_range: Option<[f32; 2]>,
}

impl OfWorld {
    /// Whether that is this world, as far as the record says.
    pub fn is(&self, home: &Home<'_>) -> bool {
        let Self { weights_sha256, pixels, pixel_range } = self;
        !weights_sha256.is_empty()
            && weights_sha256 == home.weights_sha256
            && pixels.as_ref().is_none_or(|pixels| *pixels == home.pixels)
            && pixel_range.is_none_or(|range| range == home.pixel_range)
    }
}

/// What tells a world from others in one word. `assumed_pixels`: how pixels enter it, in a word, where no record of a
/// training says so of its weights.
pub fn world_id(weights_sha256: &str, assumed_pixels: Option<&str>) -> String {
    match assumed_pixels {
        None => weights_sha256.to_owned(),
        Some(pixels) => format!("{pixels}:{weights_sha256}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_weights_are_another_world_where_pixels_enter_otherwise() {
        let (pixels, pixel_range) = ("gaussian-0.05".to_owned(), [-1.0, 1.0]);
        let home = Home { weights_sha256: "ab", pixels, assumed: false, pixel_range, class_names: &[] };
        let is = |text: &str| serde_json::from_slice::<OfWorld>(text.as_bytes()).unwrap().is(&home);
        assert!(is(r#"{"weights_sha256": "ab"}"#) && is(r#"{"weights_sha256": "ab", "pixel_range": [-1.0, 1.0]}"#));
        assert!(is(r#"{"weights_sha256": "ab", "pixels": "gaussian-0.05", "pixel_range": [-1.0, 1.0]}"#));
        for other in [
            r#"{"weights_sha256": "ab", "pixel_range": [0.0, 1.0]}"#,
            r#"{"weights_sha256": "ab", "pixels": "gaussian-0.07", "pixel_range": [-1.0, 1.0]}"#,
            r#"{"weights_sha256": "cd"}"#,
            "{}",
        ] {
            assert!(!is(other), "{other}");
        }
        let nowhere = Home { weights_sha256: "", ..home.clone() };
        assert!(!OfWorld::default().is(&nowhere));
    }
}
