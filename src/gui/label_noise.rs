//! Label noise on the world card: a field that takes it in words.

use std::path::Path;

use eframe::egui::{self, Id, Key, TextEdit, Ui};

use super::background::BackgroundTask;
use super::context::Cx;
use super::format;
use super::theme::Theme;
use super::view::View;
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
    let id = Id::unique("label noise field");
    let typing = ui.memory(|memory| memory.has_focus(id));
    follow(cx.view, cx.prefs.label_noise.as_ref(), typing);
    let title = if cx.prefs.label_noise.is_some() { "Label noise C (on)" } else { "Label noise C (none)" };
    egui::CollapsingHeader::new(title).id_salt("label noise").show(ui, |ui| {
        ui.horizontal(|ui| {
            let field = TextEdit::singleline(&mut cx.view.label_noise).id(id).desired_width(150.0).hint_text("symmetric:0.2");
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
                follow(cx.view, None, false);
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

/// Brings the field in line with label noise that has changed elsewhere: by undo, by another world, at the start. Text that is
/// being typed stays.
fn follow(view: &mut View, now: Option<&LabelNoise>, typing: bool) {
    if view.label_noise_seen.as_ref() == now {
        return;
    }
    let written = |noise: Option<&LabelNoise>| noise.map_or_else(String::new, LabelNoise::describe);
    let typed = typing && view.label_noise != written(view.label_noise_seen.as_ref());
    view.label_noise_seen = now.cloned();
    if !typed {
        view.label_noise = written(now);
        view.forget_label_noise();
    }
}

/// Takes over what is in the field; a file that it names is read on a thread.
fn take(ctx: &egui::Context, cx: &mut Cx) {
    // An answer that is still on its way is not wanted any more.
    cx.view.forget_label_noise();
    let text = cx.view.label_noise.trim();
    if text.is_empty() {
        set(cx, None);
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

/// What the field says becomes the state, and stays as it was typed.
fn set(cx: &mut Cx, noise: Option<LabelNoise>) {
    cx.view.label_noise_seen.clone_from(&noise);
    cx.prefs.label_noise = noise;
}

/// Takes over a matrix that fits the world; says what is wrong with another.
fn accept(cx: &mut Cx, found: Result<LabelNoise>) {
    match found.and_then(|noise| noise.check(cx.prefs.prior.len()).map(|()| noise)) {
        Ok(noise) => {
            set(cx, Some(noise).filter(|noise| !noise.is_none()));
            cx.view.label_noise_complaint = None;
        }
        Err(error) => cx.view.label_noise_complaint = Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_follows_what_changes_elsewhere_and_keeps_what_is_typed() {
        let (some, mut view) = (LabelNoise::symmetric(0.2).unwrap(), View::default());
        follow(&mut view, Some(&some), false);
        assert_eq!(view.label_noise, "symmetric:0.2");
        view.label_noise = "pair:0.".into();
        for typing in [false, true] {
            follow(&mut view, Some(&some), typing);
            assert_eq!(view.label_noise, "pair:0.", "nothing has changed");
        }
        // Undone in the meantime.
        for typing in [true, false] {
            follow(&mut view, None, typing);
            assert_eq!(view.label_noise, "pair:0.", "what was typed is lost");
        }
        follow(&mut view, Some(&some), false);
        (view.label_noise, view.label_noise_complaint) = ("pair:2".into(), Some("no probability".into()));
        follow(&mut view, None, false);
        assert!(view.label_noise.is_empty() && view.label_noise_complaint.is_none());
    }
}
