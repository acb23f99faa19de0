//! Images in rows, each with what it is decided as.

use eframe::egui::{self, Rect, Role, Sense, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2};

use crate::data::ImageShape;
use crate::figure::Records;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::paint::Sheet;
use crate::gui::plot::comments;
use crate::gui::session::Session;
use crate::gui::theme::{Theme, UNTINTED};
use crate::gui::widgets::{hint, tooltip};
use crate::worker::protocol::{JobId, Tile};

/// Largest and smallest side of an image, points.
const LARGEST: f32 = 72.0;
const SMALLEST: f32 = 20.0;
/// Space between images: their frames lie in it, points.
const GAP: f32 = 4.0;
/// Height of the line below an image, points.
const CAPTION: f32 = 14.0;
/// Textures that are made in a frame.
const SHEETS: usize = 64;

/// The textures of the images of one job.
#[derive(Default)]
pub struct Mosaic {
    job: Option<JobId>,
    sheets: Vec<Sheet>,
}

impl Mosaic {
    /// Shows what a job has made so far: in so many columns as a grid, or one after the other with the class each is made under.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        cx: &Cx,
        shape: ImageShape,
        (job, tiles): (JobId, &[Tile]),
        columns: Option<usize>,
    ) {
        if self.job != Some(job) {
            *self = Self { job: Some(job), sheets: Vec::new() };
        }
        let known = self.sheets.len().min(tiles.len());
        let until = tiles.len().min(known + SHEETS);
        self.sheets.extend(tiles[known..until].iter().map(|tile| Sheet::of(ui.ctx(), "what if", shape, &tile.pixels)));
        if until < tiles.len() {
            ui.ctx().request_repaint();
        }
        let room = ui.available_width();
        let width = match columns {
            Some(columns) => (room / columns.max(1) as f32 - GAP).clamp(SMALLEST, LARGEST),
            None => LARGEST,
        };
        let across = columns.unwrap_or(((room / (width + GAP)) as usize).max(1));
        let size = vec2(width, width * shape.height as f32 / shape.width.max(1) as f32);
        let cell = size + vec2(GAP, GAP + if columns.is_none() { CAPTION } else { 0.0 });
        egui::ScrollArea::horizontal().id_salt(("mosaic", columns.is_some())).auto_shrink([false, true]).show(
            ui,
            |ui| {
                let rows = tiles.len().div_ceil(across);
                let whole = vec2(cell.x * across as f32, cell.y * rows as f32);
                let (place, _) = ui.allocate_exact_size(whole, Sense::hover());
                for (i, tile) in tiles.iter().enumerate() {
                    let corner = pos2(
                        place.left() + cell.x * (i % across) as f32 + GAP / 2.0,
                        place.top() + cell.y * (i / across) as f32 + GAP / 2.0,
                    );
                    let name = match columns {
                        Some(columns) => format!("Row {}, column {}", 1 + i / columns, 1 + i % columns),
                        None => format!("Under {}", cx.session.class_name(tile.label)),
                    };
                    let rect = Rect::from_min_size(corner, size);
                    self.image(ui, cx.session, rect, (i, tile), (&name, columns.is_none()));
                }
            },
        );
        if columns.is_some() {
            hint(ui, "Frames have the colour of the decision; pointing at an image says more.");
        }
    }

    fn image(
        &self,
        ui: &Ui,
        session: &Session,
        rect: Rect,
        (i, tile): (usize, &Tile),
        (name, captioned): (&str, bool),
    ) {
        let (p, classes) = (&tile.posterior, session.class_names().len());
        let decision = session.class_name(p.decision);
        let response = ui.interact(rect, ui.scope_id().with(("mosaic image", i)), Sense::hover());
        let best = format::exp_sig4(p.log_probabilities[p.decision]);
        response
            .widget_info(|| WidgetInfo::labeled(Role::Image, true, format!("{name}: decision {decision}, p = {best}")));
        if ui.is_rect_visible(rect) {
            let theme = Theme::of(ui);
            ui.painter().rect_filled(rect, 0.0, theme.placeholder());
            if let Some(sheet) = self.sheets.get(i) {
                let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
                ui.painter().image(sheet.id(), rect, whole, UNTINTED);
            }
            let frame = Stroke::new(1.5, theme.class(p.decision, classes));
            ui.painter().rect_stroke(rect, 0.0, frame, StrokeKind::Outside);
            // The class it was made under; what it is decided as is in the frame.
            if captioned {
                let line = Rect::from_min_size(rect.left_bottom() + vec2(0.0, 1.0), vec2(rect.width(), CAPTION));
                let painter = ui.painter().with_clip_rect(line.intersect(ui.clip_rect()));
                let colour = theme.class(tile.label, classes);
                let font = egui::FontId::proportional(11.0);
                painter.text(line.left_top(), egui::Align2::LEFT_TOP, session.class_name(tile.label), font, colour);
            }
        }
        tooltip(response, |ui| describe(ui, session, tile, name));
    }
}

fn describe(ui: &mut Ui, session: &Session, tile: &Tile, name: &str) {
    let p = &tile.posterior;
    ui.strong(name);
    for class in most_probable(tile, 3) {
        ui.label(format!("p({}|x) = {}", session.class_name(class), format::exp_sig4(p.log_probabilities[class])));
    }
    ui.label(format!("Entropy {} nats, log p(x) {} nats", format::sig4(p.entropy_nats), format::nats(p.log_px)));
}

/// The most probable classes, in order.
pub fn most_probable(tile: &Tile, n: usize) -> Vec<usize> {
    let p = &tile.posterior.log_probabilities;
    let mut classes: Vec<usize> = (0..p.len()).collect();
    classes.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
    classes.truncate(n);
    classes
}

/// The images as comma-separated values: by row and column of a grid, or by the class each is made under.
pub fn csv(session: &Session, tiles: &[Tile], columns: Option<usize>, origin: Vec<(String, String)>) -> String {
    let all = Records::of(tiles.iter().enumerate());
    let about = match columns {
        Some(_) => "grid between images",
        None => "the same latent under every class",
    };
    let mut lines = match columns {
        Some(columns) => {
            let columns = columns.max(1);
            all.field("row", |(i, _)| 1 + i / columns).field("column", |(i, _)| 1 + i % columns)
        }
        None => all.field("under", |(_, tile)| session.class_name(tile.label)),
    };
    lines = lines
        .field("decision", |(_, tile)| session.class_name(tile.posterior.decision))
        .field("entropy_nats", |(_, tile)| tile.posterior.entropy_nats)
        .field("log_px_nats", |(_, tile)| tile.posterior.log_px);
    for (class, name) in session.class_names().iter().enumerate() {
        lines = lines.field(&format!("p({name})"), |(_, tile)| tile.posterior.probabilities[class]);
    }
    format!("# plot: {about}, exact posteriors\n{}{}", comments(&origin), lines.text())
}
