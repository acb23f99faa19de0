//! Images and the training images nearest to them: does the oracle copy?

use eframe::egui::{self, Align, Layout, RichText, Sense, TextureHandle, Ui, vec2};

use crate::data::{ImageShape, contact_sheet};
use crate::gui::format;
use crate::gui::paint::{NEAREST, picture};
use crate::gui::theme::UNTINTED;
use crate::gui::widgets::{heading, hint};
use crate::validate::{Pair, Pairs};
use crate::worker::protocol::JobId;

/// Pairs shown.
const SHOWN: usize = 24;
/// Shorter side of an image on the screen, points.
const SIDE: f32 = 64.0;
/// Height of the distance below.
const LABEL: f32 = 20.0;

/// Which set is on show, and its textures.
#[derive(Default)]
pub struct PairViewer {
    held_out: bool,
    /// The validation and the set that the textures are of.
    of: Option<(JobId, bool)>,
    textures: Vec<TextureHandle>,
}

impl PairViewer {
    /// Paints the nearest pairs of one set.
    pub fn show(&mut self, ui: &mut Ui, job: JobId, Pairs { shape, pairs }: &Pairs) {
        heading(ui, "Nearest pairs", None);
        ui.horizontal(|ui| {
            ui.selectable_value(&mut self.held_out, false, "Generated");
            ui.selectable_value(&mut self.held_out, true, "Held-out");
        });
        hint(
            ui,
            "Left the image, right the training image nearest to it by features, in the form that is nearest; the nearest pair first. A world \
             that copies shows the same picture twice; how alike two different real images are, the held-out ones show.",
        );
        let set = if self.held_out { &pairs.held_out } else { &pairs.generated };
        if self.of != Some((job, self.held_out)) {
            let load = |(i, pair): (usize, &Pair)| texture(ui, *shape, i, pair);
            self.textures = set.iter().take(SHOWN).enumerate().filter_map(load).collect();
            self.of = Some((job, self.held_out));
        }
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(10.0, 8.0);
            for (pair, texture) in set.iter().zip(&self.textures) {
                one(ui, pair, texture);
            }
        });
    }
}

/// Both images side by side.
fn texture(ui: &Ui, shape: ImageShape, rank: usize, pair: &Pair) -> Option<TextureHandle> {
    let (sheet, pixels) = contact_sheet(shape, &pair.pixels.concat(), 2, 1).ok()?;
    Some(ui.ctx().load_texture(format!("nearest pair {rank}"), picture(sheet, &pixels), NEAREST))
}

fn one(ui: &mut Ui, pair: &Pair, texture: &TextureHandle) {
    let size = texture.size_vec2();
    let size = size * (SIDE / size.y);
    // Of a known size: an open end would be as wide as the row, and nothing would stand beside it.
    ui.allocate_ui_with_layout(size + vec2(0.0, LABEL), Layout::top_down(Align::Min), |ui| {
        let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
        let whole = egui::Rect::from_min_max(egui::pos2(0.0, 0.0), egui::pos2(1.0, 1.0));
        ui.painter().image(texture.id(), rect, whole, UNTINTED);
        let distance = format::sig4(pair.distance);
        let Pair { image, neighbour, form, .. } = pair;
        let about = format!("image {image} beside training image {neighbour}, {form}, distance {distance}");
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &about));
        response.on_hover_text(about);
        ui.label(RichText::new(distance).small());
    });
}
