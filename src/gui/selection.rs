//! How the user points at images and sides of the window.

/// Where the images on show come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Source {
    /// Samples of the world.
    #[default]
    World,
    /// Images from outside.
    Outside,
}

/// A side of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Side {
    #[default]
    WorldCard,
    Inspector,
}

/// How a click selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Click {
    /// This image alone.
    Only,
    /// This image too, or no longer.
    Toggle,
    /// Everything from the last plain click to here.
    Range,
}

/// One step through the gallery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Left,
    Right,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}
