//! Heat maps: values as colours, a pixel each.

use eframe::egui::{Color32, ColorImage};

use crate::device::ImageSource;

/// Steps of a colour scale: too many to be seen, and odd, so that 0 has its own.
const STEPS: usize = 4095;

/// Values as colours.
pub struct HeatMap<'a> {
    /// Columns and rows.
    pub size: [usize; 2],
    /// The values, row-major.
    pub values: &'a [f64],
    /// They once more where the window paints them, if they were computed there.
    pub in_place: Option<&'a ImageSource>,
    /// The value at the upper end of the colours; minus that at the lower end.
    pub extent: f64,
    /// The colours.
    pub ramp: Ramp,
}

/// Colours of the shares −1 to 1.
#[derive(Clone)]
pub struct Ramp(pub Vec<Color32>);

impl Ramp {
    /// From the colour of a share.
    pub fn new(colour: impl Fn(f32) -> Color32) -> Self {
        let last = (STEPS - 1) as f32;
        Self((0..STEPS).map(|step| colour(2.0 * step as f32 / last - 1.0)).collect())
    }

    /// The colour of a share, as the shader finds it.
    fn at(&self, share: f32) -> Color32 {
        let last = (self.0.len() - 1) as f32;
        self.0[(0.5 * (share.clamp(-1.0, 1.0) + 1.0) * last + 0.5).floor() as usize]
    }
}

impl HeatMap<'_> {
    /// The upper end of the colours, never 0.
    pub fn end(&self) -> f32 {
        (self.extent as f32).max(f32::MIN_POSITIVE)
    }

    /// As a picture, from the values on the host.
    pub fn picture(&self) -> ColorImage {
        let colour = |value: &f64| self.ramp.at(*value as f32 / self.end());
        ColorImage::new(self.size, self.values.iter().map(colour).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gui::theme::pixel;

    #[test]
    fn ends_and_middle_have_their_colours() {
        let ramp = Ramp::new(|share| pixel(0, (100.0 + 100.0 * share) as u8, 0));
        let values = [-5.0, -2.0, 0.0, 1.0, 2.0, f64::NAN];
        let map = HeatMap { size: [3, 2], values: &values, in_place: None, extent: 2.0, ramp };
        let greens: Vec<u8> = map.picture().pixels.iter().map(|pixel| pixel.g()).collect();
        assert_eq!(greens, [0, 0, 100, 150, 200, 0]);
    }
}
