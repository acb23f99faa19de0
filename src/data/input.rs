//! What a path may hold: pixels or world-space images.

use super::{Dataset, WorldBatch};

/// What a file or folder turned out to hold.
#[derive(Debug, Clone)]
pub enum Input {
    /// 8-bit pixels, to be mapped into a world by its documented preprocessing.
    Pixels(Dataset),
    /// Tensors already in world space.
    World(WorldBatch),
}
