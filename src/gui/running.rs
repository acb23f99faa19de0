//! The inspector while the classes of an image are still being evaluated.

use eframe::egui::{self, Image, Rect, RichText, Sense, TextureHandle, Ui, vec2};

use super::context::Cx;
use super::format;
use super::paint::{NEAREST, picture};
use super::theme::{BAR_HEIGHT, Badge, Theme};
use super::widgets::{class_cell, fact, facts, heading, hint, names_width};
use crate::worker::protocol::{RunningPosterior, Subject};

/// What the figures are, and are not.
const MEANING: &str = "p(y|x) among the classes evaluated so far. Every further class adds to the denominator and nothing else, so \
                       each value can only shrink: it is an upper bound.";
const ASSUMED: &str = "What it would be if every class still open made the image as likely as the best one so far. An assumption, \
                       not a bound: an open class may be likelier.";
/// Classes listed, the most probable first.
const LISTED: usize = 20;

/// The texture of the picture.
#[derive(Default)]
pub struct RunningSection {
    drawn: Option<(u64, TextureHandle)>,
}

impl RunningSection {
    pub fn show(&mut self, ui: &mut Ui, cx: &Cx, one: &RunningPosterior) {
        if self.drawn.as_ref().is_none_or(|(generation, _)| *generation != one.generation) {
            let texture = ui.ctx().load_texture("running", picture(one.shape, &one.pixels), NEAREST);
            self.drawn = Some((one.generation, texture));
        }
        let running = &one.running;
        let name = match &one.subject {
            Subject::Sample { index, .. } => format!("Sample {index}"),
            Subject::External(image) => format!("Image {}", image.index),
        };
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            ui.label(RichText::new(&name).size(15.0).strong());
            ui.horizontal_top(|ui| {
                if let Some((_, texture)) = &self.drawn {
                    let side = (ui.available_width() * 0.42).clamp(96.0, 192.0);
                    let size = vec2(side, side * one.shape.height as f32 / one.shape.width as f32);
                    ui.add(Image::new((texture.id(), size)).alt_text(&name));
                }
                facts(ui, "running facts", |ui| {
                    let best = cx.session.class_name(running.best).to_owned();
                    fact(ui, "Best so far", best, "The most probable of the classes evaluated.");
                    fact(ui, "p at most", format::sig4(running.upper[running.best]), MEANING);
                    fact(ui, "p if open = best", format::sig4(running.lower[running.best]), ASSUMED);
                    fact(ui, "Open share", format!("{:.1} %", 100.0 * running.open), ASSUMED);
                });
            });
            heading(ui, "p(y|x) at most", Some((Badge::Bounded, MEANING)));
            let (done, total) = (running.evaluated, running.classes);
            let bar = egui::ProgressBar::new(done as f32 / total.max(1) as f32);
            let text = format!("{} of {} classes evaluated", format::count(done), format::count(total));
            ui.add(bar.text(text.as_str())).widget_info(|| {
                egui::WidgetInfo::labeled(egui::Role::ProgressIndicator, true, text.as_str())
            });
            bars(ui, cx, one);
            hint(ui, "Full bar: upper bound. Darker part: if every open class were as likely as the best so far (an assumption).");
        });
    }
}

fn bars(ui: &mut Ui, cx: &Cx, one: &RunningPosterior) {
    let running = &one.running;
    let theme = Theme::of(ui);
    let mut order: Vec<usize> = (0..running.evaluated).collect();
    order.sort_by(|&a, &b| running.upper[b].total_cmp(&running.upper[a]));
    let names = names_width(ui, cx.session);
    let width = (ui.available_width() - names - 186.0).clamp(40.0, 240.0);
    egui::Grid::new("running table").num_columns(4).striped(true).spacing(vec2(8.0, 2.0)).show(ui, |ui| {
        for title in ["class", "", "p at most", "p if open = best"] {
            ui.label(RichText::new(title).small().color(theme.weak()));
        }
        ui.end_row();
        for class in order.into_iter().take(LISTED) {
            let colour = theme.class(class, running.classes);
            class_cell(ui, cx.session, class, names);
            let (rect, _) = ui.allocate_exact_size(vec2(width, BAR_HEIGHT), Sense::hover());
            ui.painter().rect_filled(rect, 2.0, theme.trough());
            for (share, colour) in [(running.upper[class], colour.gamma_multiply(0.4)), (running.lower[class], colour)]
            {
                let part = Rect::from_min_size(rect.min, vec2(rect.width() * share as f32, rect.height()));
                ui.painter().rect_filled(part, 2.0, colour);
            }
            ui.label(RichText::new(format::sig4(running.upper[class])).monospace()).on_hover_text(MEANING);
            ui.label(RichText::new(format::sig4(running.lower[class])).monospace()).on_hover_text(ASSUMED);
            ui.end_row();
        }
    });
}
