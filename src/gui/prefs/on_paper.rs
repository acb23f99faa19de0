//! How figures are saved and copied: their size on paper and their ground.

use serde::{Deserialize, Serialize};

use crate::figure::RenderOptions;

/// Widths of figures, millimetres.
pub const WIDTHS: std::ops::RangeInclusive<f64> = 40.0..=400.0;
/// Sizes of their letters, points.
pub const FONTS: std::ops::RangeInclusive<f64> = 4.0..=24.0;

/// The look of saved figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnPaper {
    /// Width, millimetres.
    pub width: f64,
    /// Size of labels, points; titles are larger by the same factor.
    pub font: f64,
    /// Light on dark.
    pub dark: bool,
    /// Title, caption and provenance stand in the picture; else in its properties alone.
    pub captioned: bool,
}

impl Default for OnPaper {
    fn default() -> Self {
        Self { width: 175.0, font: 9.0, dark: false, captioned: true }
    }
}

impl OnPaper {
    /// Brings numbers of an older or damaged file into range.
    pub fn fit(&mut self) {
        let usual = Self::default();
        let into = |value: f64, range: std::ops::RangeInclusive<f64>, usual: f64| {
            if value.is_finite() { value.clamp(*range.start(), *range.end()) } else { usual }
        };
        self.width = into(self.width, WIDTHS, usual.width);
        self.font = into(self.font, FONTS, usual.font);
    }

    /// As the renderers want it.
    pub fn look(self) -> RenderOptions {
        let Self { width, font, dark, captioned } = self;
        RenderOptions { dark, bare: !captioned, ..RenderOptions::on_paper(width, font) }
    }
}
