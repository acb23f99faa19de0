//! One point of the path, large.

use eframe::egui::{self, Image, RichText, Ui, vec2};

use super::{Pictures, position, title};
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::inspector::bar;
use crate::gui::theme::Theme;
use crate::gui::widgets::{class_cell, fact, facts, hint, names_width};
use crate::oracle::posterior::Posterior;
use crate::worker::walk::{Mark, WalkHistory};

/// Side of the picture, points.
const SIDE: f32 = 176.0;
/// Classes in the table at most.
const ROWS: usize = 6;

/// The picture and its figures. Whether the 50/50 point should be shown again.
pub fn show(ui: &mut Ui, cx: &Cx, walk: &WalkHistory, pictures: &Pictures, mark: Mark) -> bool {
    let (Some(dot), Some(shape)) = (walk.at(mark), walk.shape) else { return false };
    let mut back = false;
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(title(walk, mark)).strong());
        if mark != Mark::Middle && walk.arrival.is_some() {
            back = ui.button("Show the 50/50 point").clicked();
        }
    });
    ui.horizontal_top(|ui| {
        let scale = SIDE / shape.width.max(shape.height).max(1) as f32;
        let size = vec2(shape.width as f32, shape.height as f32) * scale;
        if let Some(texture) = pictures.at(mark) {
            let image = Image::new((texture.id(), size)).alt_text(format!("{} of the walk, large", title(walk, mark)));
            ui.add(image)
                .on_hover_text("Clipped and rounded to 8 bits for the eye; the figures are of the float image.");
        }
        ui.vertical(|ui| {
            let p = &dot.tile.posterior;
            facts(ui, "walk point facts", |ui| {
                fact(ui, "Position", position(walk, dot.position), "Along the path.");
                fact(ui, "Decision", cx.session.class_name(p.decision), "The most probable class.");
                let entropy = format!("{} nats", format::sig4(p.entropy_nats));
                fact(ui, "Entropy", entropy, "H(p(y|x)).");
                let log_px = format!("{} nats", format::nats(p.log_px));
                fact(ui, "log p(x)", log_px, "log Σ_y π_y p(x|y), total, in world space.");
            });
            ui.add_space(4.0);
            table(ui, cx, walk, p);
        });
    });
    back
}

/// Shows the largest probabilities, always with the classes of start and goal.
fn table(ui: &mut Ui, cx: &Cx, walk: &WalkHistory, p: &Posterior) {
    let (theme, classes) = (Theme::of(ui), p.probabilities.len());
    let mut order: Vec<usize> = (0..classes).collect();
    order.sort_by(|&a, &b| p.log_probabilities[b].total_cmp(&p.log_probabilities[a]));
    let ends = walk.arrival.as_ref().map(|arrival| [arrival.start, arrival.target]);
    let wanted = |place: usize, class: usize| place < ROWS || ends.is_some_and(|ends| ends.contains(&class));
    let shown: Vec<usize> =
        order.iter().enumerate().filter(|(place, class)| wanted(*place, **class)).map(|(_, class)| *class).collect();
    let names = names_width(ui, cx.session);
    egui::Grid::new("walk probabilities").num_columns(3).striped(true).spacing(vec2(8.0, 2.0)).show(ui, |ui| {
        for &class in &shown {
            class_cell(ui, cx.session, class, names);
            bar(ui, 120.0, p.probabilities[class].clamp(0.0, 1.0) as f32, theme, theme.class(class, classes));
            ui.label(RichText::new(format::exp_sig4(p.log_probabilities[class])).monospace());
            ui.end_row();
        }
    });
    if shown.len() < classes {
        hint(ui, format!("p(y|x) of {} of {classes} classes", shown.len()));
    }
}
