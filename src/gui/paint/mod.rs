//! Textures of pictures: uploaded from the host, or painted by a shader on the device.

#[cfg(feature = "wgpu")]
pub mod bench;
#[cfg(feature = "wgpu")]
mod gpu;
mod heat;
#[cfg(all(test, feature = "wgpu"))]
mod tests;

use eframe::egui::{self, Color32, ColorImage, Id, TextureHandle, TextureId, TextureOptions};

use super::theme;
use crate::data::ImageShape;
use crate::device::ImageSource;

#[cfg(feature = "wgpu")]
use eframe::egui::LayerId;
#[cfg(feature = "wgpu")]
use eframe::egui_wgpu::Callback;
pub use heat::{HeatMap, Ramp};

#[cfg(feature = "wgpu")]
use gpu::{Before, Gpu, Own};

/// Pixels are squares, not smears.
pub const NEAREST: TextureOptions = TextureOptions::NEAREST;

/// What paints textures: the window's graphics device, or egui alone in tests.
#[derive(Clone, Default)]
pub struct Canvas {
    #[cfg(feature = "wgpu")]
    gpu: Option<std::sync::Arc<Gpu>>,
}

impl Canvas {
    /// Prepares to paint on this window's device.
    #[cfg(feature = "wgpu")]
    pub fn install(ctx: &egui::Context, state: &eframe::egui_wgpu::RenderState, window: crate::device::Lender) {
        let canvas = Self { gpu: Some(std::sync::Arc::new(Gpu::new(state, window))) };
        ctx.data_mut(|data| data.insert_temp(Id::NULL, canvas));
    }

    /// The one of this window.
    pub fn of(ctx: &egui::Context) -> Self {
        ctx.data(|data| data.get_temp(Id::NULL)).unwrap_or_default()
    }

    /// Has textures filled before this frame is painted. To be called when it is laid out.
    pub fn fill(&self, ctx: &egui::Context) {
        #[cfg(feature = "wgpu")]
        if let Some(gpu) = self.gpu.as_ref().filter(|gpu| gpu.is_wanted()) {
            let before = Callback::new_paint_callback(ctx.content_rect(), Before(gpu.clone()));
            ctx.layer_painter(LayerId::background()).add(before);
        }
        #[cfg(not(feature = "wgpu"))]
        let _ = ctx;
    }

    /// The fill of panels that lie on the window itself. A window is cleared with this colour before each frame, so
    /// panels need no fill, which saves a painter in software a layer of the whole window. Surfaces in an sRGB format
    /// would convert the clear colour: there panels keep their fill.
    pub fn ground(ui: &egui::Ui) -> egui::Color32 {
        #[cfg(feature = "wgpu")]
        if Self::of(ui.ctx()).gpu.is_some_and(|gpu| gpu.clears()) {
            return crate::gui::theme::EMPTY;
        }
        ui.visuals().panel_fill
    }

    /// Frees the textures that were dropped before this frame.
    pub fn sweep(&self) {
        #[cfg(feature = "wgpu")]
        if let Some(gpu) = &self.gpu {
            gpu.sweep();
        }
    }
}

/// A texture that pictures are put into.
pub enum Sheet {
    /// Of egui's own.
    Egui(TextureHandle),
    /// On the window's device, for pictures from anywhere.
    #[cfg(feature = "wgpu")]
    Own(Own),
}

impl Sheet {
    /// An empty one of so many pixels.
    pub fn new(ctx: &egui::Context, name: &str, [width, height]: [usize; 2]) -> Self {
        #[cfg(feature = "wgpu")]
        if let Some(gpu) = Canvas::of(ctx).gpu {
            return Self::Own(Own::new(&gpu, name, [width, height]));
        }
        let blank = ColorImage::filled([width, height], theme::EMPTY);
        Self::Egui(ctx.load_texture(name, blank, NEAREST))
    }

    /// One with a single picture.
    pub fn of(ctx: &egui::Context, name: &str, shape: ImageShape, source: &ImageSource) -> Self {
        let mut sheet = Self::new(ctx, name, [shape.width, shape.height]);
        sheet.put(shape, &[([0, 0], source)]);
        sheet
    }

    /// What egui calls it.
    pub fn id(&self) -> TextureId {
        match self {
            Self::Egui(texture) => texture.id(),
            #[cfg(feature = "wgpu")]
            Self::Own(own) => own.id(),
        }
    }

    /// Puts pictures at their upper left corners, pixels.
    pub fn put(&mut self, shape: ImageShape, pictures: &[([usize; 2], &ImageSource)]) {
        match self {
            Self::Egui(texture) => {
                for (corner, source) in pictures {
                    texture.set_partial(*corner, picture(shape, source.bytes().unwrap_or_default()), NEAREST);
                }
            }
            #[cfg(feature = "wgpu")]
            Self::Own(own) => own.put(shape, pictures),
        }
    }

    /// Becomes a heat map, a pixel for each value.
    pub fn heat(&mut self, map: &HeatMap<'_>) {
        match self {
            Self::Egui(texture) => texture.set(map.picture(), NEAREST),
            #[cfg(feature = "wgpu")]
            Self::Own(own) => own.heat(map),
        }
    }
}

/// CHW bytes as a picture.
pub fn picture(shape: ImageShape, pixels: &[u8]) -> ColorImage {
    let area = shape.height * shape.width;
    let plane = |channel: usize| &pixels[channel * area..(channel + 1) * area];
    let colours: Vec<Color32> = if pixels.len() < shape.dims() {
        vec![theme::EMPTY; area]
    } else if shape.channels >= 3 {
        let (r, g, b) = (plane(0), plane(1), plane(2));
        (0..area).map(|i| theme::pixel(r[i], g[i], b[i])).collect()
    } else {
        plane(0).iter().map(|&v| theme::pixel(v, v, v)).collect()
    };
    ColorImage::new([shape.width, shape.height], colours)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn channels_come_out_in_their_places() {
        let shape = ImageShape { channels: 3, height: 1, width: 2 };
        let image = picture(shape, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(image.pixels, [theme::pixel(1, 3, 5), theme::pixel(2, 4, 6)]);
    }
}
