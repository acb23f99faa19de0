//! One image of the gallery: its marks, its words, and what a right click offers.

use eframe::egui::{self, Rect, Response, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2};

use crate::events::Progress;
use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::panels::walk;
use crate::gui::selection::Click;
use crate::gui::session::gallery::{DraftSlot, Slot};
use crate::gui::theme::Theme;
use crate::gui::widgets::{hint, tooltip};
use crate::gui::{format, guidance, inspected, pins, verdict};

/// What can be done with an image, by a right click.
pub(super) fn menu(response: &Response, cx: &mut Cx, index: usize) {
    if response.secondary_clicked() {
        cx.view.choose(index, Click::Only);
    }
    // Of hundreds of images one at most has its menu open.
    if cx.view.cursor != Some(index) {
        return;
    }
    response.context_menu(|ui| {
        pins::button(ui, cx, "Pin this image");
        for (text, command) in [
            ("Inspect", Command::Inspect),
            ("Copy values", Command::CopyValues),
            ("Copy as command", Command::CopyCommandLine),
            ("Walk from here", Command::ShowPanel(walk::ID)),
        ] {
            if ui.button(text).clicked() {
                cx.commands.push(command);
                ui.close();
            }
        }
    });
}

/// The mark of a draft: half a strip, where moving τ cannot change the label. It is then the class it is drawn from.
pub(super) fn half_strip(ui: &Ui, cx: &Cx, rect: Rect, slot: Option<&Slot>) {
    let fixed = cx.prefs.smoothing == 1.0 && cx.prefs.label_noise.is_none();
    if let Some(slot) = slot.filter(|_| fixed) {
        let strip = Rect::from_min_max(pos2(rect.min.x, rect.max.y - 3.0), pos2(rect.center().x, rect.max.y));
        ui.painter().rect_filled(strip, 0.0, Theme::of(ui).class(slot.tile.source, cx.session.class_names().len()));
    }
}

pub(super) fn draft_words(response: Response, index: usize, tau: f64) -> Response {
    let text = format!("Sample {index}, a draft for τ = {}", format::sig4(tau));
    response.widget_info(|| WidgetInfo::labeled(egui::Role::Button, true, &text));
    response.on_hover_text(format!(
        "{text}: levels between those of two temperatures beside it, no image of the world. It is exact, with figures, \
         when τ rests."
    ))
}

/// The marks of an image that is still being made: veiled, its blocks counted.
pub(super) fn unfinished(ui: &Ui, theme: Theme, rect: Rect, draft: &DraftSlot) {
    let Progress { done, total } = draft.blocks;
    let painter = ui.painter();
    painter.rect_filled(rect, 0.0, theme.unfinished());
    let (font, text) = match rect.width() {
        ..76.0 => (10.0, format!("{done}/{total}")),
        _ => (11.0, format!("block {done} of {total}")),
    };
    let galley = painter.layout_no_wrap(text, egui::FontId::proportional(font), theme.on_unfinished());
    let place = egui::Align2::CENTER_CENTER.anchor_size(rect.center(), galley.size());
    painter.rect_filled(place.expand2(vec2(3.0, 1.0)), 3.0, theme.unfinished_label());
    painter.galley(place.min, galley, theme.on_unfinished());
    let share = done as f32 / total.max(1) as f32;
    let strip = Rect::from_min_max(pos2(rect.min.x, rect.max.y - 3.0), rect.max);
    painter.rect_filled(strip, 0.0, theme.trough());
    painter.rect_filled(Rect::from_min_size(strip.min, vec2(strip.width() * share, 3.0)), 0.0, theme.accent());
}

pub(super) fn unfinished_words(response: Response, index: usize, draft: &DraftSlot) -> Response {
    let Progress { done, total } = draft.blocks;
    let text = format!("Sample {index}, unfinished: block {done} of {total}");
    response.widget_info(|| WidgetInfo::labeled(egui::Role::Button, true, &text));
    response.on_hover_text(format!("{text}. It has figures when it is finished."))
}

pub(super) fn outline(
    ui: &Ui,
    theme: Theme,
    rect: Rect,
    mismatch: Option<egui::Color32>,
    (selected, cursor): (bool, bool),
) {
    if let Some(colour) = mismatch {
        ui.painter().rect_stroke(rect, 0.0, Stroke::new(2.0, colour), StrokeKind::Inside);
    }
    if selected || cursor {
        let width = if cursor { 3.0 } else { 2.0 };
        ui.painter().rect_stroke(rect, 0.0, Stroke::new(width, theme.accent()), StrokeKind::Outside);
    }
}

/// Name, for screen readers and tests, and tooltip of a tile; whether it is of the knobs before.
pub(super) fn describe(response: Response, cx: &Cx, (index, before): (usize, bool), slot: &Slot) -> Response {
    let class = |class| cx.session.class_name(class);
    let posterior = &slot.tile.posterior;
    let name = inspected::name(cx.session, cx.view.source, index);
    let verdict = verdict::of(cx.session, cx.view.source, index);
    response.widget_info(|| {
        let kl = verdict.map_or(String::new(), |verdict| format!(", KL {} nats", format::sig4(verdict.kl)));
        let age = if before { ", of the knobs before" } else { "" };
        let (label, decision) = (class(slot.tile.label), class(posterior.decision));
        let text = format!("{name}{kl}, label {label}, decision {decision}{age}");
        WidgetInfo::selected(egui::Role::Button, true, cx.view.selection.contains(&index), text)
    });
    tooltip(response, |ui| {
        ui.strong(&name);
        if before {
            hint(ui, "of the knobs before");
        }
        let p = format::exp_sig4(posterior.log_probabilities[posterior.decision]);
        ui.label(format!("label {}", class(slot.tile.label)));
        ui.label(format!("Bayes decision {}, p = {p}", class(posterior.decision)));
        ui.label(format!("entropy {} nats", format::sig4(posterior.entropy_nats)));
        if slot.tile.label != posterior.decision {
            ui.colored_label(Theme::of(ui).mismatch(), "label ≠ Bayes decision");
        }
        if let Some(looked) = &slot.tile.look {
            hint(
                ui,
                format!("picture: {}; every figure is that of the sample itself", guidance::describe(&looked.look)),
            );
        }
        if let Some(verdict) = verdict {
            verdict::words(cx.session, verdict).into_iter().for_each(|line| drop(ui.label(line)));
        }
        hint(ui, "strip: colour of the label");
    })
}
