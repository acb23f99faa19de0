//! The images along the path.

use eframe::egui::{
    self, Align2, Image, Rect, RichText, Role, ScrollArea, Sense, Stroke, StrokeKind, TextStyle, TextWrapMode, Ui,
    WidgetInfo, WidgetText, pos2, vec2,
};

use super::{Pictures, position, title};
use crate::gui::format;
use crate::gui::session::Session;
use crate::gui::theme::{TILE_GAP, Theme};
use crate::gui::widgets::tooltip;
use crate::worker::walk::{Mark, WalkDot, WalkHistory};

/// Height of a picture, points.
const HEIGHT: f32 = 52.0;
/// Height of the line below it, points.
const CAPTION: f32 = 16.0;
/// Size of the names in it.
const NAME: f32 = 11.0;

/// Paints the strip. Returns the place that was clicked.
pub fn show(
    ui: &mut Ui,
    session: &Session,
    walk: &WalkHistory,
    pictures: &Pictures,
    (mark, reveal, under_way): (Mark, bool, bool),
) -> Option<Mark> {
    let shape = walk.shape?;
    let width = (HEIGHT * shape.width as f32 / shape.height.max(1) as f32).clamp(0.5 * HEIGHT, 3.0 * HEIGHT);
    let mut clicked = None;
    ui.add_space(4.0);
    let scroll = ScrollArea::horizontal().id_salt("walk strip").auto_shrink([false, true]);
    scroll.stick_to_right(under_way && walk.arrival.is_none()).show(ui, |ui| {
        ui.spacing_mut().item_spacing.x = TILE_GAP;
        ui.horizontal(|ui| {
            ui.add_space(TILE_GAP);
            for (place, dot) in walk.along() {
                let (rect, response) = ui.allocate_exact_size(vec2(width, HEIGHT + CAPTION), Sense::click());
                if reveal && place == mark {
                    response.scroll_to_me(None);
                }
                let name = title(walk, place);
                let decision = session.class_name(dot.tile.posterior.decision);
                response.widget_info(|| {
                    let text = format!("{name} at {}, decision {decision}", position(walk, dot.position));
                    WidgetInfo::selected(Role::Button, true, place == mark, text)
                });
                let picture = Rect::from_min_size(rect.min, vec2(width, HEIGHT));
                paint(ui, session, pictures, (place, dot), picture);
                let outline = match (place == mark, place) {
                    (true, _) => Some(Theme::of(ui).accent()),
                    (false, Mark::Middle) => Some(ui.visuals().strong_text_color()),
                    _ => None,
                };
                if let Some(colour) = outline {
                    ui.painter().rect_stroke(picture, 0.0, Stroke::new(2.0, colour), StrokeKind::Inside);
                }
                if response.has_focus() {
                    let focus = Stroke::new(1.0, Theme::of(ui).accent());
                    ui.painter().rect_stroke(rect, 2.0, focus, StrokeKind::Outside);
                }
                if response.clicked() {
                    clicked = Some(place);
                }
                tooltip(response, |ui| describe(ui, session, walk, &name, dot));
            }
        });
        ui.add_space(4.0);
    });
    clicked
}

fn paint(ui: &Ui, session: &Session, pictures: &Pictures, (place, dot): (Mark, &WalkDot), rect: Rect) {
    let theme = Theme::of(ui);
    if !ui.is_rect_visible(rect) {
        return;
    }
    ui.painter().rect_filled(rect, 0.0, theme.placeholder());
    if let Some(texture) = pictures.at(place) {
        Image::new((texture.id(), rect.size())).paint_at(ui, rect);
    }
    let (text, colour) = if place == Mark::Middle {
        ("50/50", ui.visuals().strong_text_color())
    } else {
        let decision = dot.tile.posterior.decision;
        (session.class_name(decision), theme.class(decision, session.class_names().len()))
    };
    let caption = Rect::from_min_size(pos2(rect.min.x, rect.max.y), vec2(rect.width(), CAPTION));
    // Long names are cut off; the pointer tells them.
    let words = WidgetText::from(RichText::new(text).size(NAME));
    let words = words.into_galley(ui, Some(TextWrapMode::Truncate), caption.width(), TextStyle::Small);
    let at = Align2::CENTER_CENTER.align_size_within_rect(words.size(), caption);
    ui.painter().galley(at.min, words, colour);
}

fn describe(ui: &mut egui::Ui, session: &Session, walk: &WalkHistory, name: &str, dot: &WalkDot) {
    ui.strong(format!("{name} at {}", position(walk, dot.position)));
    let p = &dot.tile.posterior;
    let mut classes: Vec<usize> = (0..p.probabilities.len()).collect();
    classes.sort_by(|&a, &b| p.log_probabilities[b].total_cmp(&p.log_probabilities[a]));
    for class in classes.into_iter().take(3) {
        ui.label(format!("p({}|x) = {}", session.class_name(class), format::exp_sig4(p.log_probabilities[class])));
    }
}
