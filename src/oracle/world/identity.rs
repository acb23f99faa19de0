//! What tells a world from others.

use super::World;
use crate::data::{HeldNoise, Home, world_id};

impl World {
    /// The same, known by the SHA-256 of its weights, and by how pixels enter where no record of their training
    /// says so.
    #[must_use]
    pub fn of_weights(self, sha256: &str, assumed_pixels: Option<String>) -> Self {
        Self { weights_sha256: sha256.to_owned(), assumed_pixels, ..self }
    }

    /// What tells it from other worlds where images are opened.
    pub fn home(&self) -> Home<'_> {
        let Self { weights_sha256, class_names, .. } = self;
        let (pixels, assumed) = (self.flow.pixels(), self.assumed_pixels.is_some());
        Home { weights_sha256, pixels: pixels.word(), assumed, pixel_range: pixels.range(), class_names }
    }

    /// How pixels enter, in a word, where no record of a training says so of the weights.
    pub fn assumed_pixels(&self) -> Option<&str> {
        self.assumed_pixels.as_deref()
    }

    /// What tells it from other worlds, in a word: as `OracleInfo::world_id`.
    pub fn id(&self) -> String {
        world_id(&self.weights_sha256, self.assumed_pixels())
    }

    /// The noise that 8-bit pictures of its images hold; nothing where it lies within a level.
    pub fn held_noise(&self) -> Option<HeldNoise> {
        self.flow.pixels().held_noise(&self.weights_sha256)
    }
}
