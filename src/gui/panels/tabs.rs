//! The bar of tabs: in a narrow window it has several rows, and no tab is hidden.

use eframe::egui::{
    FontId, Id, Rect, Response, RichText, Role, Sense, Stroke, StrokeKind, TextStyle, TextWrapMode, Ui, WidgetInfo,
    WidgetText, pos2, vec2,
};
use egui_tiles::{Behavior, Container, TabState, Tile, TileId, Tiles, Tree};

use super::{Dock, Pane};
use crate::gui::theme::Theme;

/// Text size and spacing of a tab, points: small, so that few rows are needed.
const TEXT: f32 = 12.0;
const SPACING: f32 = 5.0;
/// Height of a row, points.
pub const ROW: f32 = 24.0;

/// A title as it stands on its tab.
pub fn title(text: &str) -> RichText {
    RichText::new(text).size(TEXT)
}

/// Row and left edge of each tab, points, where tabs of these widths stand in a bar of so much room: a
/// tab that does not fit begins a row of its own.
fn placed(widths: impl IntoIterator<Item = f32>, room: f32) -> Vec<(usize, f32)> {
    let (mut row, mut left) = (0, 0.0);
    let place = |width: f32| {
        if left > 0.0 && left + width > room {
            (row, left) = (row + 1, 0.0);
        }
        let at = (row, left);
        left += width;
        at
    };
    widths.into_iter().map(place).collect()
}

/// Where a tab stands in its bar: row, left edge and width, points.
pub type Place = (usize, f32, f32);

impl Dock<'_, '_> {
    fn width(&mut self, ui: &Ui, tiles: &Tiles<Pane>, tile: TileId) -> f32 {
        let title = self.tab_title_for_tile(tiles, tile);
        title.into_galley(ui, Some(TextWrapMode::Extend), f32::INFINITY, font(ui)).size().x + 2.0 * SPACING
    }

    /// Finds where every tab of every bar stands. All bars have as many rows as the longest needs. To be
    /// called before the tree is shown: while a bar is, the tree does not hold it.
    pub fn arrange(&mut self, ui: &Ui, tree: &Tree<Pane>) {
        for (bar, tile) in tree.tiles.iter() {
            let Tile::Container(Container::Tabs(tabs)) = tile else { continue };
            // Of all but the root the width of the last frame is known.
            let rect = tree.tiles.rect(*bar).filter(|_| tree.root != Some(*bar));
            let room = rect.map_or(ui.available_width(), |rect| rect.width());
            let widths: Vec<f32> = tabs.children.iter().map(|tile| self.width(ui, &tree.tiles, *tile)).collect();
            let places = placed(widths.iter().copied(), room);
            for ((tile, (row, left)), width) in tabs.children.iter().zip(places).zip(widths) {
                self.rows = self.rows.max(row + 1);
                self.places.insert(*tile, (row, left, width));
            }
        }
    }

    /// Paints a tab in its row.
    pub fn tab(&mut self, tiles: &mut Tiles<Pane>, ui: &mut Ui, id: Id, tile: TileId, state: &TabState) -> Response {
        let (row, left, width) = self.places.get(&tile).copied().unwrap_or_default();
        let corner = ui.max_rect().left_top();
        let rect = Rect::from_min_size(pos2(corner.x + left, corner.y + row as f32 * ROW), vec2(width, ROW));
        let response = ui.interact(rect, id, Sense::click_and_drag()).on_hover_cursor(self.tab_hover_cursor_icon());
        let text: WidgetText = self.tab_title_for_tile(tiles, tile);
        let galley = text.into_galley(ui, Some(TextWrapMode::Extend), f32::INFINITY, font(ui));
        response.widget_info(|| WidgetInfo::selected(Role::Button, ui.is_enabled(), state.active, galley.text()));
        // A gap stands where it is dragged from.
        if ui.is_rect_visible(rect) && !state.is_being_dragged {
            let ground = self.tab_bg_color(ui.visuals(), tiles, tile, state);
            let stroke = self.tab_outline_stroke(ui.visuals(), tiles, tile, state);
            ui.painter().rect(rect.shrink(0.5), 0.0, ground, stroke, StrokeKind::Inside);
            if state.active && row + 1 == self.rows {
                // It opens to what it is the tab of.
                ui.painter().hline(rect.x_range(), rect.bottom(), Stroke::new(stroke.width + 1.0, ground));
            }
            let colour = self.tab_text_color(ui.visuals(), tiles, tile, state);
            let at = pos2(rect.left() + SPACING, rect.center().y - galley.size().y / 2.0);
            ui.painter().galley(at, galley, colour);
            if response.has_focus() {
                focus_ring(ui, rect);
            }
        }
        self.on_tab_button(tiles, tile, response)
    }
}

/// Where the keyboard enters a panel: a stop above its first control, which bears its name.
pub fn entrance(ui: &Ui, title: &str, entered: bool) {
    let rect = ui.max_rect();
    let edge = rect.with_max_y(rect.top() + 1.0);
    let response = ui.interact(edge, ui.scope_id().with("entrance"), Sense::focusable_noninteractive());
    response.widget_info(|| WidgetInfo::labeled(Role::Group, ui.is_enabled(), format!("Panel {title}")));
    if entered {
        response.request_focus();
    }
    if response.has_focus() {
        focus_ring(ui, rect);
    }
}

fn focus_ring(ui: &Ui, rect: Rect) {
    ui.painter().rect_stroke(rect.shrink(1.0), 2.0, Stroke::new(2.0, Theme::of(ui).accent()), StrokeKind::Inside);
}

fn font(ui: &Ui) -> FontId {
    TextStyle::Button.resolve(ui.style())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_wrap_in_order_and_every_one_of_them_is_in_view() {
        let widths = [60.0, 80.0, 40.0, 90.0, 30.0, 200.0, 20.0];
        for room in [150.0f32, 210.0, 300.0, 1000.0] {
            let places = placed(widths, room);
            let ends = places.iter().zip(widths).map(|((_, left), width)| left + width);
            assert!(ends.clone().zip(widths).all(|(end, width)| end <= room.max(width)), "{room}");
            for ((before, after), end) in places.iter().zip(&places[1..]).zip(ends) {
                let next = (after.0 == before.0 && after.1 == end) || (after.0 == before.0 + 1 && after.1 == 0.0);
                assert!(next, "{room}: {before:?} {after:?}");
            }
        }
        assert!(placed(widths, 1000.0).iter().all(|(row, _)| *row == 0), "one row where there is room");
    }
}
