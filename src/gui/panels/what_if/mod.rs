//! The panel *What if*: pinned images side by side, grids between them, and the latent of an image under every class.

mod mosaic;
mod tray;

use eframe::egui::{self, DragValue, Ui};

use crate::data::ImageShape;
use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::format;
use crate::gui::moved;
use crate::gui::pins;
use crate::gui::plot::of_world;
use crate::gui::primary_action::primary_button;
use crate::gui::session::tasks::TaskView;
use crate::gui::table_window;
use crate::gui::theme::Badge;
use crate::gui::widgets::{complain, heading, no_world, standing};
use crate::oracle::walk::Way;
use crate::oracle::walk::grid::MOST_ACROSS;
use crate::oracle::world::Settings;
use crate::worker::what_if::{GridBetween, UnderEveryClass};
use mosaic::Mosaic;
use tray::Tray;

pub const ID: &str = "what if";

/// Words of a pass under every class.
const UNDER: &str = "The noise that the image has under the class it was drawn from, or is decided as, mapped under every class: where \
                     all classes share a map, the latent moves by the difference of their means; where the map depends on the class, \
                     it is the other class's map. Each image with its own exact posterior.";

/// Of images under way.
const IN_TURN: &str = "The images appear one after the other.";

/// The form and the textures.
pub struct WhatIfPanel {
    tray: Tray,
    corners: usize,
    columns: usize,
    rows: usize,
    grid: Mosaic,
    strip: Mosaic,
}

impl Default for WhatIfPanel {
    fn default() -> Self {
        let (tray, grid, strip) = Default::default();
        Self { tray, corners: 2, columns: 9, rows: 9, grid, strip }
    }
}

impl Panel for WhatIfPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let Some(oracle) = &cx.session.oracle else { return no_world(ui, cx.session) };
        let shape = oracle.architecture.shape();
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            self.tray.show(ui, cx, shape);
            self.between(ui, cx, shape);
            self.under(ui, cx, shape);
            ui.add_space(12.0);
        });
    }
}

impl WhatIfPanel {
    /// The grid between the first two or four pinned images.
    fn between(&mut self, ui: &mut Ui, cx: &mut Cx, shape: ImageShape) {
        heading(
            ui,
            "Grid between pinned images",
            Some((Badge::Exact, "Each image of the grid with its own posterior.")),
        );
        let view = cx.session.tasks.get::<GridBetween>();
        let busy = view.as_ref().is_some_and(TaskView::under_way);
        ui.horizontal_wrapped(|ui| {
            ui.label("Between");
            let about = "A row: its ends are the first two pinned images";
            ui.selectable_value(&mut self.corners, 2, "the first two").on_hover_text(about);
            let about = "A square: the first two pinned images above, the next two below";
            ui.selectable_value(&mut self.corners, 4, "the first four").on_hover_text(about);
            self.sizes(ui);
            let pins = cx.view.pins(cx.session).clone();
            let why = match (cx.prefs.tau == 0.0, pins.len() < self.corners) {
                _ if busy => "A grid is being made.",
                (true, _) => "At τ = 0 no image has a density: choose a larger τ.",
                (_, true) => "Pin more images first: the grid lies between the first two or four.",
                _ => "",
            };
            let about = "Images between them, straight in their latents where they have some in common";
            if primary_button(ui, &mut cx.view.primary, "Make grid", about, why) {
                let corners = pins.into_iter().take(self.corners).collect();
                let (columns, rows, settings) = (self.columns, self.rows, cx.prefs.settings());
                cx.commands.push(Command::task(GridBetween { corners, columns, rows, settings }));
            }
            if !why.is_empty() && !busy {
                complain(ui, why);
            }
        });
        let Some(view) = view else { return };
        standing(ui, cx.session, &view, IN_TURN, "The grid was stopped: what was made stays.");
        if view.live.is_empty() {
            return;
        }
        let names: Vec<&str> = view.task.corners.iter().map(|pin| pin.name.as_str()).collect();
        let mut text = format!("Between {}", names.join(", "));
        if let Some(facts) = &view.report {
            text += &format!(", {}.", way(facts.way));
            if let Some(rounding) = facts.rounding {
                let moved = format::sig4(rounding);
                text += &format!(" Rounding x to 32 bits moved no p(y|x) by more than {moved}.");
            }
        }
        ui.add(egui::Label::new(text).wrap());
        moved_since(ui, cx, &view.task.settings);
        let session = cx.session;
        let columns = view.task.columns;
        let subject = [("between", names.join(", "))];
        let csv =
            || mosaic::csv(session, view.live, Some(columns), of_world(session, Some(&view.task.settings), &subject));
        table_window::button(ui, cx.view, "grid between pinned images", "grid.csv", csv);
        self.grid.show(ui, cx, shape, (view.job, view.live.as_slice()), Some(columns));
    }

    fn sizes(&mut self, ui: &mut Ui) {
        let columns = DragValue::new(&mut self.columns).range(2..=MOST_ACROSS).speed(0.1).update_while_editing(false);
        let columns = ui.add(columns.suffix(" columns")).accessible_name("Columns of the grid");
        columns.on_hover_text("Images from the left to the right, the pinned ones among them");
        if self.corners == 4 {
            let rows = DragValue::new(&mut self.rows).range(2..=MOST_ACROSS).speed(0.1).update_while_editing(false);
            let rows = ui.add(rows.suffix(" rows")).accessible_name("Rows of the grid");
            rows.on_hover_text("Images from above to below, the pinned ones among them");
        }
    }

    /// The selected image under every class.
    fn under(&mut self, ui: &mut Ui, cx: &mut Cx, shape: ImageShape) {
        heading(ui, "The same latent under every class", Some((Badge::Exact, UNDER)));
        let view = cx.session.tasks.get::<UnderEveryClass>();
        let busy = view.as_ref().is_some_and(TaskView::under_way);
        let image = pins::selected(cx);
        ui.horizontal_wrapped(|ui| {
            let why = match &image {
                _ if busy => "It is under way.",
                _ if cx.prefs.tau == 0.0 => "At τ = 0 every class is a point: choose a larger τ.",
                None => "Select an image in the gallery first.",
                Some(_) => "",
            };
            let button = ui.add_enabled(why.is_empty(), egui::Button::new("Map the selected image under every class"));
            let button = button.on_hover_text(UNDER).on_disabled_hover_text(why);
            if let Some(image) = image.filter(|_| button.clicked()) {
                let settings = cx.prefs.settings();
                cx.commands.push(Command::task(UnderEveryClass { image, settings }));
            }
        });
        let Some(view) = view else { return };
        standing(ui, cx.session, &view, IN_TURN, "It was stopped: what was made stays.");
        if view.live.is_empty() {
            return;
        }
        let from = view.report.as_ref().map_or(String::new(), |of| {
            let class = cx.session.class_name(**of);
            format!(
                ": its noise under {class}, and what that is under every class. Under {class} it is the image itself."
            )
        });
        ui.add(egui::Label::new(format!("{}{from}", view.task.image.name)).wrap());
        moved_since(ui, cx, &view.task.settings);
        let session = cx.session;
        let subject = [("image", view.task.image.name.clone())];
        let csv = || mosaic::csv(session, view.live, None, of_world(session, Some(&view.task.settings), &subject));
        table_window::button(ui, cx.view, "latent under every class", "under-every-class.csv", csv);
        self.strip.show(ui, cx, shape, (view.job, view.live.as_slice()), None);
    }
}

/// Says so where the knobs are others than those of what is shown.
fn moved_since(ui: &mut Ui, cx: &Cx, settings: &Settings) {
    if let Some(moved) = moved::since(settings, &cx.prefs.settings()) {
        complain(ui, &format!("Computed {moved}"));
    }
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Latent => "bilinear in the latent space that all classes share",
        Way::ClassLatent => "bilinear in the latent space of the class they are all decided as",
        Way::Pixels => {
            "pixel by pixel, since they are of several classes, and here each class has a latent space of its own: what lies between need not look like an image of this world"
        }
        Way::Gradient => "up a gradient",
    }
}
