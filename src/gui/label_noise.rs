//! Label noise on the world card: a field that takes it in words.

use std::path::Path;

use eframe::egui::{self, Key, TextEdit, Ui};

use super::background::BackgroundTask;
use super::context::Cx;
use super::format;
use super::theme::Theme;
use super::widgets::hint;
use crate::error::Result;
use crate::oracle::label_noise::LabelNoise;

const ABOUT: &str = "Labels are drawn by a matrix C, row y for class y, whatever the image: symmetric:0.2 (with probability 0.2 any other \
                     label), pair:0.2 (that of the next class), by-class:0.1,0.2,…, or a file of K rows of K numbers (.csv, .json). Then \
                     Enter. Posteriors become those of the drawn label, exactly; images stay. Empty: labels are the classes.";

/// The field, and what it says at present.
pub fn section(ui: &mut Ui, cx: &mut Cx) {
    if let Some(read) = cx.view.label_noise_file.poll() {
        accept(cx, read);
    }
    let title = if cx.prefs.label_noise.is_some() { "Label noise C (on)" } else { "Label noise C (none)" };
    egui::CollapsingHeader::new(title).id_salt("label noise").show(ui, |ui| {
        ui.horizontal(|ui| {
            let field = TextEdit::singleline(&mut cx.view.label_noise).desired_width(150.0).hint_text("symmetric:0.2");
            let field = ui.add(field).accessible_name("Label noise").on_hover_text(ABOUT);
            if field.changed() {
                cx.view.label_noise_complaint = None;
            }
            if (field.lost_focus() || field.has_focus()) && ui.input(|input| input.key_pressed(Key::Enter)) {
                take(ui.ctx(), cx);
            }
            if cx.prefs.label_noise.is_some() && ui.button("None").on_hover_text("Labels are the classes").clicked() {
                cx.prefs.label_noise = None;
                cx.view.forget_label_noise();
            }
        });
        if cx.view.label_noise_file.waiting() {
            hint(ui, "Reading the file…");
        }
        if let Some(why) = &cx.view.label_noise_complaint {
            ui.colored_label(Theme::of(ui).error(), why);
        }
        match &cx.prefs.label_noise {
            None => hint(ui, "Labels are the classes."),
            // Of other classes than the prior there is no sum.
            Some(noise) if noise.check(cx.prefs.prior.len()).is_err() => {
                hint(ui, format!("Labels are drawn by {}.", noise.describe()));
            }
            Some(noise) => {
                let floor = format::sig4(100.0 * noise.floor(&cx.prefs.prior));
                let law = noise.describe();
                hint(ui, format!("Labels are drawn by {law}. Nobody errs less than {floor} %, even of images that tell their class."));
            }
        }
    });
}

/// Takes over what is in the field; a file that it names is read on a thread.
fn take(ctx: &egui::Context, cx: &mut Cx) {
    // An answer that is still on its way is not wanted any more.
    cx.view.forget_label_noise();
    let text = cx.view.label_noise.trim();
    if text.is_empty() {
        cx.prefs.label_noise = None;
        return;
    }
    match LabelNoise::unread(text) {
        Ok(file) if file.is_unread() => {
            let read = move || file.relative_to(Path::new(""));
            cx.view.label_noise_file = BackgroundTask::start(ctx, "label noise", read);
        }
        found => accept(cx, found),
    }
}

/// Takes over a matrix that fits the world; says what is wrong with another.
fn accept(cx: &mut Cx, found: Result<LabelNoise>) {
    match found.and_then(|noise| noise.check(cx.prefs.prior.len()).map(|()| noise)) {
        Ok(noise) => {
            cx.prefs.label_noise = Some(noise).filter(|noise| !noise.is_none());
            cx.view.label_noise_complaint = None;
        }
        Err(error) => cx.view.label_noise_complaint = Some(error.to_string()),
    }
}
