//! The gallery: every image of the world or from outside as a thumbnail.

mod line;
mod shown;
mod tile;

use std::sync::Arc;

use eframe::egui::{self, ComboBox, Rect, Sense, Slider, Ui, pos2, vec2};

use super::fields::together;
use crate::gui::atlas::{Atlas, Meshes};
use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::guidance;
use crate::gui::landmarks::Landmark;
use crate::gui::prefs::{Sort, THUMBNAILS};
use crate::gui::selection::{Click, Source};
use crate::gui::session::gallery::{Arrangement, Gallery};
use crate::gui::theme::{Badge, TILE_GAP, Theme, UNTINTED};
use crate::gui::verdict;
use crate::gui::widgets::{badge, empty_state};
use crate::worker::protocol::Asked;
use shown::Shown;
use tile::{describe, draft_words, half_strip, menu, outline, unfinished, unfinished_words};

pub const ID: &str = "gallery";
/// Tiles uploaded in one frame.
const UPLOADS: usize = 160;

/// The gallery and its textures.
#[derive(Default)]
pub struct GalleryPanel {
    world: Atlas,
    outside: Atlas,
}

impl Panel for GalleryPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        controls(ui, cx);
        let arrangement = cx.view.arrangement(cx.session, cx.prefs);
        second_line(ui, cx, &arrangement);
        legend(ui, cx);
        ui.separator();
        cx.view.in_view.clear();
        cx.view.landmarks.mark(ui, Landmark::Gallery, ui.available_rect_before_wrap());
        let gallery = cx.view.gallery(cx.session);
        match gallery.filter(|_| !arrangement.order.is_empty()) {
            Some(gallery) => self.grid(ui, cx, gallery, &arrangement),
            None => nothing(ui, cx, &arrangement),
        }
    }
}

fn controls(ui: &mut Ui, cx: &mut Cx) {
    ui.horizontal_wrapped(|ui| {
        let external = cx.session.external.as_ref();
        let outside = external.map_or(0, |external| external.ids.len());
        // What a classifier says something of are images of the world's own.
        let judged = external.is_some_and(|external| !external.verdicts.is_empty());
        let (outside, about) = match judged {
            _ if cx.session.lacks_outside() => {
                ("From outside".into(), "Reads the images of before for this world, and shows them")
            }
            true => (format!("Test images ({outside})"), "Test images with what a classifier says of them"),
            false => (format!("From outside ({outside})"), "Images from files, as the world sees them"),
        };
        for (source, text, about) in [
            (Source::World, "World samples".into(), "Images that were drawn from the world, with their labels"),
            (Source::Outside, outside, about),
        ] {
            if ui.selectable_label(cx.view.source == source, text).on_hover_text(about).clicked() {
                cx.commands.push(Command::ShowSource(source));
            }
        }
        if !together(ui, 150.0) {
            ui.separator();
        }
        class_filter(ui, cx);
        together(ui, 250.0);
        let label = ui.label("Sort by");
        let combo = ComboBox::from_id_salt("sort").width(100.0).selected_text(cx.prefs.sort.name());
        let response = combo.show_ui(ui, |ui| {
            for sort in Sort::ALL {
                ui.selectable_value(&mut cx.prefs.sort, sort, sort.name());
            }
        });
        response.response.labelled_by(label.id);
        let direction = if cx.prefs.descending { "descending" } else { "ascending" };
        if ui.button(direction).on_hover_text("Smallest or largest first").clicked() {
            cx.prefs.descending = !cx.prefs.descending;
        }
    });
}

/// What is shown, and how large.
fn second_line(ui: &mut Ui, cx: &mut Cx, arrangement: &Arrangement) {
    let look = guidance::options(cx.session, cx.prefs);
    ui.horizontal(|ui| {
        let halts = cx.view.source == Source::World && line::halting(cx);
        let room = if halts { 210.0 } else { 150.0 };
        let size = vec2(ui.available_width() - room, ui.spacing().interact_size.y);
        let text = egui::Label::new(line::count(cx, arrangement)).truncate().halign(egui::Align::Min);
        ui.allocate_ui_with_layout(size, egui::Layout::left_to_right(egui::Align::Center), |ui| {
            ui.set_min_width(size.x);
            if let Some(look) = look.filter(|_| cx.view.source == Source::World) {
                let about = "Pictures still to be made show the sample itself.";
                badge(ui, Badge::Illustrative, &format!("{}. {about} {}", guidance::describe(&look), guidance::WHY));
            }
            ui.add(text);
        });
        if halts {
            line::halt(ui, cx);
        }
        let label = ui.label("Size").on_hover_text("Side of a thumbnail, points");
        ui.spacing_mut().slider_width = 90.0;
        let slider = Slider::new(&mut cx.prefs.thumbnail, THUMBNAILS).show_value(false);
        ui.add(slider).labelled_by(label.id);
    });
}

/// Classes up to which their colours can be told apart.
const COLOURS: usize = 12;

/// The classes in their colours, as the tiles have them.
fn legend(ui: &mut Ui, cx: &Cx) {
    let (theme, names) = (Theme::of(ui), cx.session.class_names());
    if names.is_empty() || names.len() > COLOURS {
        return;
    }
    let mut text = egui::text::LayoutJob::default();
    let font = egui::TextStyle::Small.resolve(ui.style());
    let mut add = |words: &str, colour| text.append(words, 3.0, egui::TextFormat::simple(font.clone(), colour));
    add("Colours of the labels:", theme.weak());
    for (class, name) in names.iter().enumerate() {
        // A line may end before a square, and not between it and the name or inside that.
        let name = name.replace(' ', "\u{a0}");
        add(&format!(" ■\u{a0}{name}"), theme.class(class, names.len()));
    }
    ui.add(egui::Label::new(text).wrap());
}

fn class_filter(ui: &mut Ui, cx: &mut Cx) {
    let label = ui.label("Label").on_hover_text("Shows the images of one label alone");
    let shown = cx.prefs.class_filter.map_or("all classes", |class| cx.session.class_name(class)).to_owned();
    let combo = ComboBox::from_id_salt("class filter").width(90.0).truncate().selected_text(shown);
    let response = combo.show_ui(ui, |ui| {
        ui.selectable_value(&mut cx.prefs.class_filter, None, "all classes");
        for (class, name) in cx.session.class_names().iter().enumerate() {
            ui.selectable_value(&mut cx.prefs.class_filter, Some(class), name);
        }
    });
    response.response.labelled_by(label.id);
}

fn nothing(ui: &mut Ui, cx: &mut Cx, arrangement: &Arrangement) {
    if let (true, Some(class)) = (arrangement.total > 0, cx.prefs.class_filter) {
        let name = cx.session.class_name(class).to_owned();
        empty_state(ui, &format!("No image has the label {name}"), "Choose another label above.");
        ui.vertical_centered(|ui| {
            if ui.button("Show all classes").clicked() {
                cx.prefs.class_filter = None;
            }
        });
        return;
    }
    match cx.view.source {
        Source::Outside if cx.session.reads_outside() => empty_state(ui, "Being read…", "Their posteriors come next."),
        Source::Outside => empty_state(
            ui,
            "No images from outside yet",
            "Drop image files, a folder or an .npz here, or press Ctrl+O, to see their exact posteriors in this world.",
        ),
        Source::World if cx.session.oracle.is_some() => no_samples(ui, cx),
        Source::World if cx.session.stuck.is_some() => {
            let why = cx.session.stuck.as_deref().unwrap_or_default();
            empty_state(ui, "No oracle is open", &format!("{why}\nChoose another on the left, or press Ctrl+O."));
        }
        Source::World => empty_state(ui, "Opening the oracle…", "Choose another on the left, or press Ctrl+O."),
    }
}

fn no_samples(ui: &mut Ui, cx: &Cx) {
    match (&cx.session.preparing, cx.session.unanswered.get(&Asked::Gallery)) {
        (Some(what), _) => empty_state(ui, &format!("{what}…"), "A graphics device compiles them at their first use."),
        (None, Some(why)) => empty_state(
            ui,
            "The samples cannot be drawn",
            &format!("{why}\nMove a knob, or press Space, to try again."),
        ),
        (None, None) if cx.session.gallery.complete() => {
            empty_state(ui, "No sample can be made", "All leave the finite numbers: choose a smaller τ.")
        }
        (None, None) => empty_state(ui, "Drawing the first samples…", ""),
    }
}

/// Where the tiles lie.
struct Raster {
    columns: usize,
    side: f32,
    pitch: f32,
    rows: usize,
}

impl Raster {
    fn new(width: f32, side: f32, images: usize) -> Self {
        let pitch = side + TILE_GAP;
        let columns = (((width + TILE_GAP) / pitch) as usize).max(1);
        Self { columns, side, pitch, rows: images.div_ceil(columns) }
    }

    fn rect(&self, origin: egui::Pos2, place: usize) -> Rect {
        let (row, column) = (place / self.columns, place % self.columns);
        let corner = vec2(column as f32, row as f32) * self.pitch;
        Rect::from_min_size(origin + corner, vec2(self.side, self.side))
    }
}

impl GalleryPanel {
    fn grid(&mut self, ui: &mut Ui, cx: &mut Cx, gallery: &Gallery, arrangement: &Arc<Arrangement>) {
        let order = &arrangement.order;
        let reveal = std::mem::take(&mut cx.view.reveal);
        let cursor = cx.view.cursor.filter(|_| reveal).and_then(|c| order.iter().position(|&index| index == c));
        let scroll = egui::ScrollArea::vertical().auto_shrink([false, false]).id_salt(cx.view.source);
        scroll.show_viewport(ui, |ui, viewport| {
            let raster = Raster::new(ui.available_width() - 6.0, cx.prefs.thumbnail, order.len());
            ui.set_height(raster.rows as f32 * raster.pitch + 6.0);
            // Room for the outlines of the first row and column.
            let origin = ui.max_rect().min + vec2(3.0, 3.0);
            cx.view.columns = raster.columns;
            cx.view.page_rows = ((viewport.height() / raster.pitch) as usize).max(1);
            if let Some(place) = cursor {
                ui.scroll_to_rect(raster.rect(origin, place).expand(TILE_GAP), None);
            }
            let first = (viewport.min.y / raster.pitch).max(0.0) as usize * raster.columns;
            let last = (((viewport.max.y / raster.pitch).max(0.0) as usize + 1) * raster.columns).min(order.len());
            let visible = order.get(first..last).unwrap_or_default();
            cx.view.in_view.extend_from_slice(visible);
            let atlas = match cx.view.source {
                Source::World => &mut self.world,
                Source::Outside => &mut self.outside,
            };
            let shown = Shown::new(cx, gallery, visible);
            let viewed = shown.viewed(cx.prefs.tau, visible, gallery);
            // The line above says how many, and was painted already.
            if viewed.drafts != cx.view.drafts {
                ui.ctx().request_repaint();
            }
            (cx.view.drafts, cx.view.viewed) = (viewed.drafts, Some(viewed));
            // Drafts come all at once: a part of them would be a mixture of two worlds.
            let budget = UPLOADS.max(viewed.drafts);
            let picture = |index| shown.picture(gallery, index);
            let left = gallery.shape().map_or(0, |shape| atlas.prepare(ui.ctx(), shape, (visible, budget), picture));
            if left > 0 {
                ui.ctx().request_repaint();
            }
            paint(
                ui,
                cx,
                (gallery, &shown),
                atlas,
                visible.iter().enumerate().map(|(i, &index)| (index, raster.rect(origin, first + i))),
            );
        });
    }
}

fn paint(
    ui: &mut Ui,
    cx: &mut Cx,
    (gallery, shown): (&Gallery, &Shown),
    atlas: &Atlas,
    tiles: impl Iterator<Item = (usize, Rect)> + Clone,
) {
    let theme = Theme::of(ui);
    let classes = cx.session.class_names().len();
    let mut meshes = Meshes::default();
    for (index, rect) in tiles.clone() {
        let late = shown.picture(gallery, index).is_some_and(|(stamp, _)| !atlas.holds(index, stamp));
        let tint = if late || shown.is_before(index) { theme.before() } else { UNTINTED };
        if !atlas.add(&mut meshes, index, rect, tint) {
            ui.painter().rect_filled(rect, 0.0, theme.placeholder());
        }
    }
    meshes.paint(ui.painter());
    for (index, rect) in tiles {
        let chosen = (cx.view.selection.contains(&index), cx.view.cursor == Some(index));
        let response = ui.interact(rect, ui.scope_id().with(("tile", index)), Sense::CLICK);
        let response = match (gallery.draft(index), gallery.get(index)) {
            _ if shown.is_draft(index) => {
                half_strip(ui, cx, rect, gallery.get(index));
                outline(ui, theme, rect, None, chosen);
                draft_words(response, index, cx.prefs.tau)
            }
            (Some(draft), _) => {
                unfinished(ui, theme, rect, draft);
                outline(ui, theme, rect, None, chosen);
                unfinished_words(response, index, draft)
            }
            (None, Some(slot)) => {
                let strip = Rect::from_min_max(pos2(rect.min.x, rect.max.y - 3.0), rect.max);
                let before = shown.has_figures_before(index);
                let tint = if before { theme.before() } else { UNTINTED };
                ui.painter().rect_filled(strip, 0.0, theme.class(slot.tile.label, classes) * tint);
                if let Some(verdict) = verdict::of(cx.session, cx.view.source, index) {
                    verdict::caption(ui, rect, verdict);
                }
                let mismatch = slot.tile.label != slot.tile.posterior.decision;
                outline(ui, theme, rect, mismatch.then(|| theme.mismatch() * tint), chosen);
                describe(response, cx, (index, before), slot)
            }
            (None, None) => continue,
        };
        if response.clicked() {
            let modifiers = ui.input(|input| input.modifiers);
            let click = match modifiers {
                m if m.shift => Click::Range,
                m if m.command => Click::Toggle,
                _ => Click::Only,
            };
            cx.view.choose(index, click);
            if response.double_clicked() {
                cx.commands.push(Command::Inspect);
            }
        }
        menu(&response, cx, index);
    }
}
