//! Samples of the same latents after every epoch.

use eframe::egui::{self, ColorImage, Slider, TextureHandle, Ui};

use crate::gui::paint::{NEAREST, picture};
use crate::gui::session::train::{FixedSamples, TrainHistory};
use crate::gui::theme;
use crate::gui::widgets::{heading, hint};

/// Which sheet is shown, and its texture.
#[derive(Default)]
pub struct Sheets {
    /// The epoch the user went back to; the newest where nobody did.
    chosen: Option<usize>,
    drawn: Option<(usize, TextureHandle)>,
}

impl Sheets {
    /// Shows one of them, and a slider over all.
    pub fn show(&mut self, ui: &mut Ui, train: &TrainHistory) {
        if let Some((epoch, why)) = &train.sheetless {
            hint(ui, format!("No samples after epoch {epoch}: {why}. The inverse of an unfinished flow can overflow."));
        }
        let Some(newest) = train.sheets.len().checked_sub(1) else { return };
        let place = self.chosen.and_then(|epoch| train.sheets.iter().position(|sheet| sheet.epoch >= epoch));
        let mut place = place.unwrap_or(newest);
        heading(ui, &format!("Samples after epoch {}", train.sheets[place].epoch), None);
        hint(ui, "The same latents after every epoch, class after class.");
        if newest > 0 {
            ui.horizontal(|ui| {
                let label = ui
                    .label("Sheet")
                    .on_hover_text("Sheets of older epochs are thinned where they need too much memory");
                let epochs: Vec<usize> = train.sheets.iter().map(|sheet| sheet.epoch).collect();
                let epoch = move |place: f64, _| {
                    let epoch = epochs.get(place as usize).or(epochs.last()).copied().unwrap_or(0);
                    format!("epoch {epoch}")
                };
                let slider = Slider::new(&mut place, 0..=newest).custom_formatter(epoch);
                if ui.add(slider).labelled_by(label.id).changed() {
                    self.chosen = (place < newest).then(|| train.sheets[place].epoch);
                }
                if ui.add_enabled(self.chosen.is_some(), egui::Button::new("Newest sheet")).clicked() {
                    self.chosen = None;
                }
            });
        }
        let sheet = &train.sheets[place.min(newest)];
        if self.drawn.as_ref().is_none_or(|(epoch, _)| *epoch != sheet.epoch) {
            let texture = ui.ctx().load_texture("training samples", whole(sheet), NEAREST);
            self.drawn = Some((sheet.epoch, texture));
        }
        if let Some((_, texture)) = &self.drawn {
            let scale = (ui.available_width() / texture.size_vec2().x).clamp(0.5, 2.0);
            let image = egui::Image::new((texture.id(), texture.size_vec2() * scale));
            ui.add(image.alt_text("Samples of fixed latents"));
        }
    }
}

/// All pictures on one sheet.
fn whole(samples: &FixedSamples) -> ColorImage {
    let (w, h) = (samples.shape.width, samples.shape.height);
    let columns = samples.pictures.len().clamp(1, 20);
    let rows = samples.pictures.len().div_ceil(columns);
    let mut sheet = ColorImage::filled([columns * (w + 1), rows * (h + 1)], theme::EMPTY);
    let width = sheet.width();
    for (i, pixels) in samples.pictures.iter().enumerate() {
        let image = picture(samples.shape, pixels);
        let (x, y) = (i % columns * (w + 1), i / columns * (h + 1));
        for row in 0..h {
            let at = (y + row) * width + x;
            sheet.pixels[at..at + w].copy_from_slice(&image.pixels[row * w..(row + 1) * w]);
        }
    }
    sheet
}
