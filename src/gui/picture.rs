//! The picture behind an image from outside: what was done to it, and the frame that is cut out of it,
//! which can be moved.

use eframe::egui::{
    self, Button, ColorImage, CursorIcon, DragValue, Rect, Sense, Stroke, StrokeKind, TextureHandle, TextureOptions,
    Ui, WidgetInfo, pos2, vec2,
};

use super::command::Command;
use super::context::Cx;
use super::selection::Source;
use super::theme::{Theme, UNTINTED};
use super::widgets::{heading, hint};
use crate::data::{Fit, Frame, ImageShape, Way};
use crate::oracle::pictures::Picture;
use crate::worker::protocol::Pasted;

/// Largest side of the picture in the inspector, in points.
const LARGEST: f32 = 200.0;
/// The ways, with their names and what they do.
const WAYS: [(Way, &str, &str); 4] = [
    (Way::Crop, "crop", "Cut a frame of the world's proportions out, and scale it"),
    (Way::Pad, "pad", "Scale all of it, and add margins of the colour of the world's borders"),
    (Way::Stretch, "stretch", "Scale all of it, each direction by itself"),
    (Way::None, "none", "Scale nothing: too large a picture is refused"),
];

/// The section of the inspector.
#[derive(Default)]
pub struct PictureSection {
    /// The preview on show, and of which image it is.
    shown: Option<((u64, usize), TextureHandle)>,
    /// A fit on its way: it is carried out when the hand lets go.
    edited: Option<(usize, Fit)>,
    /// Where the frame stood when the hand took it.
    taken: Option<Frame>,
}

/// A picture that was pasted in this frame.
pub fn pasted(ctx: &egui::Context) -> Option<Pasted> {
    let image = ctx.input(|input| {
        input.events.iter().rev().find_map(|event| match event {
            egui::Event::PasteImage(image) => Some(image.clone()),
            _ => None,
        })
    })?;
    Some(Pasted::of_rgba(image.size, image.pixels.iter().map(|pixel| pixel.to_srgba_unmultiplied())))
}

impl PictureSection {
    /// Shows what was done to image `index`, if it is a picture from outside.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, index: usize, stamp: u64) {
        let session = cx.session;
        let external = session.external.as_ref().filter(|_| cx.view.source == Source::Outside);
        let Some((external, picture)) = external.and_then(|all| Some((all, all.pictures.get(index)?))) else { return };
        let Some(shape) = external.gallery.shape() else { return };
        heading(ui, "The picture", None);
        hint(ui, picture.treatment.describe());
        let asked = session.outside.fits.of(index);
        let mut fit = self.edited.filter(|(of, _)| *of == index).map_or(asked, |(_, fit)| fit);
        ways(ui, &mut fit);
        if fit.way == Way::Crop {
            self.frame(ui, &mut fit, (picture, shape), (index, stamp));
        }
        invert(ui, &mut fit, picture);
        let held = ui.input(|input| input.pointer.any_down());
        self.edited = (fit != asked).then_some((index, fit));
        if self.edited.is_some() && !held {
            self.edited = None;
            cx.commands.push(Command::Fit(index, fit));
        }
    }

    /// The whole picture with the frame in it, and the numbers of the frame.
    fn frame(&mut self, ui: &mut Ui, fit: &mut Fit, of: (&Picture, ImageShape), key: (usize, u64)) {
        let (picture, shape) = of;
        let Some(now) = fit.frame.or_else(|| picture.frame()) else { return };
        let mut frame = now;
        self.preview(ui, &mut frame, of, key);
        let [width, height] = picture.treatment.upright();
        let most = most_width([width, height], shape);
        ui.horizontal_wrapped(|ui| {
            let tall = tall(frame.width, shape);
            number(
                ui,
                "Frame x",
                &mut frame.x,
                0..=width.saturating_sub(frame.width),
                "Columns to the left of the frame",
            );
            number(ui, "Frame y", &mut frame.y, 0..=height.saturating_sub(tall), "Rows above the frame");
            number(ui, "Frame width", &mut frame.width, 1..=most, "Columns of the frame; its height follows");
        });
        frame.x = frame.x.min(width.saturating_sub(frame.width));
        frame.y = frame.y.min(height.saturating_sub(tall(frame.width, shape)));
        if frame != now {
            fit.frame = Some(frame);
        }
    }

    fn preview(&mut self, ui: &mut Ui, frame: &mut Frame, of: (&Picture, ImageShape), (index, stamp): (usize, u64)) {
        let (picture, shape) = of;
        let Some(preview) = &picture.preview else { return };
        let key = (stamp, index);
        if self.shown.as_ref().is_none_or(|(shown, _)| *shown != key) {
            let image = ColorImage::from_rgb([preview.width, preview.height], &preview.rgb);
            self.shown = Some((key, ui.ctx().load_texture("picture from outside", image, TextureOptions::LINEAR)));
        }
        let Some(texture) = self.shown.as_ref().map(|(_, texture)| texture.id()) else { return };
        let [width, height] = picture.treatment.upright().map(|side| side.max(1) as f32);
        let scale = LARGEST.min(ui.available_width()) / width.max(height);
        let (rect, response) = ui.allocate_exact_size(vec2(width, height) * scale, Sense::drag());
        let response =
            response.on_hover_cursor(CursorIcon::Grab).on_hover_text("Drag to move the frame that is cut out");
        response.widget_info(|| WidgetInfo::labeled(egui::Role::Image, true, "The whole picture with its frame"));
        if response.drag_started() {
            self.taken = Some(*frame);
        }
        // From where it was taken: steps of less than a pixel of the picture add up.
        if let (true, Some(Frame { x, y, .. }), Some(way)) =
            (response.dragged(), self.taken, response.total_drag_delta())
        {
            let moved = |at: u32, by: f32, most: f32| (at as f32 + by / scale).clamp(0.0, most.max(0.0)).round() as u32;
            frame.x = moved(x, way.x, width - frame.width as f32);
            frame.y = moved(y, way.y, height - tall(frame.width, shape) as f32);
        }
        ui.painter().image(texture, rect, Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0)), UNTINTED);
        let size = vec2(frame.width as f32, tall(frame.width, shape) as f32) * scale;
        let place = Rect::from_min_size(rect.min + vec2(frame.x as f32, frame.y as f32) * scale, size);
        let theme = Theme::of(ui);
        // Two lines, so that one is seen on every ground.
        ui.painter().rect_stroke(place, 0.0, Stroke::new(3.0, theme.unfinished_label()), StrokeKind::Inside);
        ui.painter().rect_stroke(place, 0.0, Stroke::new(1.0, theme.on_unfinished()), StrokeKind::Inside);
    }
}

/// Rows of a frame of so many columns, as they will be cut.
fn tall(width: u32, shape: ImageShape) -> u32 {
    let (columns, rows) = (shape.width.max(1) as u64, shape.height as u64);
    ((u64::from(width) * rows + columns / 2) / columns).max(1) as u32
}

/// The widest frame of the world's proportions.
fn most_width([width, height]: [u32; 2], shape: ImageShape) -> u32 {
    let by_height = u64::from(height) * shape.width as u64 / shape.height.max(1) as u64;
    width.min(by_height.min(u64::from(u32::MAX)) as u32).max(1)
}

fn ways(ui: &mut Ui, fit: &mut Fit) {
    ui.horizontal_wrapped(|ui| {
        ui.label("Fit");
        for (way, name, about) in WAYS {
            ui.selectable_value(&mut fit.way, way, name).on_hover_text(about);
        }
    });
}

fn invert(ui: &mut Ui, fit: &mut Fit, picture: &Picture) {
    let about = "For a dark drawing on white in a world of light on dark";
    ui.checkbox(&mut fit.invert, "Exchange light and dark").on_hover_text(about);
    if let Some(why) = picture.treatment.offer() {
        ui.colored_label(Theme::of(ui).warning(), format!("It may be dark where this world is light: {why}."));
        if ui.add(Button::new("Invert it")).on_hover_text(about).clicked() {
            fit.invert = true;
        }
    }
}

fn number(ui: &mut Ui, name: &str, value: &mut u32, range: std::ops::RangeInclusive<u32>, about: &str) {
    let label = ui.label(name);
    let field = DragValue::new(value).range(range).update_while_editing(false);
    ui.add(field).labelled_by(label.id).on_hover_text(about);
}
