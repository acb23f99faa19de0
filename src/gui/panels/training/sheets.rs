//! Samples of the same latents after every epoch.

use eframe::egui::{self, ColorImage, Slider, TextureHandle, Ui};

use crate::gui::paint::{NEAREST, picture};
use crate::gui::theme;
use crate::gui::widgets::{heading, hint};
use crate::run::{FixedSamples, TrainHistory};
use crate::worker::protocol::JobId;

/// Which sheet is shown, and its texture.
#[derive(Default)]
pub struct Sheets {
    /// Whose sheets they are.
    job: Option<JobId>,
    /// The epoch the user went back to; `None` for the newest.
    chosen: Option<usize>,
    /// By the stamp of its sheet.
    drawn: Option<(u64, TextureHandle)>,
}

impl Sheets {
    /// Shows one of them, and a slider over all.
    pub fn show(&mut self, ui: &mut Ui, job: JobId, train: &TrainHistory) {
        if self.job != Some(job) {
            *self = Self { job: Some(job), ..Self::default() };
        }
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
        if self.drawn.as_ref().is_none_or(|(stamp, _)| *stamp != sheet.stamp) {
            let texture = ui.ctx().load_texture("training samples", whole(sheet), NEAREST);
            self.drawn = Some((sheet.stamp, texture));
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

#[cfg(test)]
mod tests {
    use eframe::egui::{Color32, Context, ImageData, RawInput};

    use super::*;
    use crate::data::ImageShape;
    use crate::oracle::train::TrainEvent;

    const SHAPE: ImageShape = ImageShape { channels: 1, height: 8, width: 8 };

    /// A sheet of one picture, grey all over.
    fn sample(train: &mut TrainHistory, epoch: usize, grey: u8) {
        train.take(&TrainEvent::Samples { epoch, shape: SHAPE, pixels: vec![grey; SHAPE.dims()] });
    }

    /// The greys of the sheets that go to the screen in a frame.
    fn drawn(sheets: &mut Sheets, context: &Context, job: JobId, train: &TrainHistory) -> Vec<Color32> {
        let mut output = context.run_ui(RawInput::default(), |ui| sheets.show(ui, job, train));
        let images = output.textures_delta.set.values().flatten().map(|delta| {
            let ImageData::Color(image) = &delta.image;
            image
        });
        let greys = images.filter(|image| image.size == [9, 9]).map(|image| image.pixels[0]).collect();
        output.textures_delta.clear();
        greys
    }

    #[test]
    fn a_sheet_is_that_of_its_run_and_of_its_last_pass() {
        let (mut sheets, context) = (Sheets::default(), Context::default());
        let mut train = TrainHistory::default();
        sample(&mut train, 1, 10);
        assert_eq!(drawn(&mut sheets, &context, 1, &train), [Color32::from_gray(10)]);
        assert!(drawn(&mut sheets, &context, 1, &train).is_empty());
        // Training went back and has done the epoch again.
        sample(&mut train, 1, 20);
        assert_eq!(drawn(&mut sheets, &context, 1, &train), [Color32::from_gray(20)]);
        sheets.chosen = Some(1);
        let mut train = TrainHistory::default();
        sample(&mut train, 1, 25);
        sample(&mut train, 1, 30);
        assert_eq!(drawn(&mut sheets, &context, 2, &train), [Color32::from_gray(30)]);
        assert_eq!(sheets.chosen, None, "nobody went back in this run");
    }
}
