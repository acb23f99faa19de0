//! The line above the grid: how many images there are, and whether more are to come.

use eframe::egui::Ui;

use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::selection::Source;
use crate::gui::session::gallery::Arrangement;
use crate::worker::protocol::Asked;

/// Returns the line of counts.
pub fn count(cx: &Cx, arrangement: &Arrangement) -> String {
    let Arrangement { order, total, mismatches } = arrangement;
    if *total == 0 {
        return if order.is_empty() { String::new() } else { format!("{} being made", order.len()) };
    }
    // Images still being made are in the order and have no figures.
    let (shown, filtered) = (order.len().min(*total), order.len() < *total);
    let showing = format!("showing {} of {} · ", format::count(shown), format::count(*total));
    let differ = format!("{} where label ≠ Bayes decision", format::count(*mismatches));
    let mut text = format!("{showing}{differ}");
    match (cx.view.source, &cx.session.external) {
        (Source::World, _) if !cx.session.gallery.complete() => {
            let progress = cx.session.gallery.progress();
            let stopped = if cx.view.halted { ", stopped" } else { "" };
            let (done, total) = (format::count(progress.done), format::count(progress.total));
            // Everything there is shown unless a label was chosen: the rest to come says more.
            let showing = if filtered { showing } else { String::new() };
            // Images of the knobs before are still among those counted.
            let renewed = arrangement.total <= progress.done;
            let differ = if renewed { differ } else { "the others still show the last knobs".into() };
            text = format!("{done} of {total} computed{stopped} · {showing}{differ}");
        }
        (Source::Outside, Some(external)) => {
            let shown = if filtered { showing } else { String::new() };
            let labels = match external.labelled {
                true => differ,
                false => "no labels given, shown by decision".into(),
            };
            let of = match &external.settings {
                Some(settings) if *settings == cx.prefs.settings() => "",
                Some(_) => "of the knobs before · ",
                // Files are read again.
                None if !cx.session.external_paths.is_empty() => "",
                None => "the engine no longer has them: open them again · ",
            };
            let name = match cx.session.external_paths.len() {
                0 | 1 => external.name.clone(),
                files => format!("{} and {} more", external.name, format::count(files - 1)),
            };
            text = format!("{name} · {of}{shown}{labels}");
        }
        _ => {}
    }
    if cx.view.source == Source::World && cx.view.drafts > 0 {
        let when = match () {
            () if cx.session.unanswered.contains_key(&Asked::Gallery) => "the samples cannot be drawn",
            () if cx.view.halted => "drawing is stopped",
            () => "exact when τ rests",
        };
        text = format!("τ = {}: {} drafts in view, {when}", format::sig4(cx.prefs.tau), cx.view.drafts);
    }
    let failed = cx.session.gallery.failed();
    if cx.view.source == Source::World && failed > 0 {
        text += &format!(" · {} left the finite numbers", format::count(failed));
    }
    if cx.view.selection.len() > 1 {
        text += &format!(" · {} selected", format::count(cx.view.selection.len()));
    }
    text
}

/// Returns whether there are samples still to be made.
pub fn halting(cx: &Cx) -> bool {
    let gallery = &cx.session.gallery;
    gallery.progress().total > 0 && !gallery.complete() && !cx.session.unanswered.contains_key(&Asked::Gallery)
}

/// Stops making them, or goes on.
pub fn halt(ui: &mut Ui, cx: &mut Cx) {
    let (text, about) = match cx.view.halted {
        false => ("Stop", "Draw no more of these samples: what is there stays"),
        true => ("Go on", "Draw the samples that are not there yet"),
    };
    let name = format!("{text} drawing samples");
    if ui.button(text).accessible_name(name).on_hover_text(about).clicked() {
        cx.commands.push(Command::Halt(!cx.view.halted));
    }
}
