//! Pinned images: they stay what they were, and lie side by side in the panel What if.

use eframe::egui::{Button, Ui};

use super::command::Command;
use super::context::Cx;
use super::inspected;
use super::session::tasks::TaskView;
use crate::units::ClassId;
use crate::worker::protocol::Subject;
use crate::worker::what_if::{CompareImages, MOST_PINS, Pin};

/// The inspected image as one that could be pinned.
pub fn selected(cx: &Cx) -> Option<Pin> {
    let (subject, index) = (cx.view.subject(cx.session, cx.prefs)?, cx.view.cursor?);
    let name = inspected::name(cx.session, cx.view.source, index);
    Some(Pin { name, subject, settings: cx.prefs.settings(), x: None })
}

/// Whether both are the same images in the same order.
fn same(a: &[Pin], b: &[Pin]) -> bool {
    let alike = |(a, b): (&Pin, &Pin)| (&a.name, &a.subject, &a.settings) == (&b.name, &b.subject, &b.settings);
    a.len() == b.len() && a.iter().zip(b).all(alike)
}

/// The comparison of the images that are pinned now, if it was asked for.
pub fn compared<'a>(cx: &mut Cx<'a>) -> Option<TaskView<'a, CompareImages>> {
    let session = cx.session;
    let pins = cx.view.pins(session);
    let view = session.tasks.get::<CompareImages>().filter(|view| same(&view.task.pins, pins))?;
    // What the engine has looked at stays, whatever takes its place outside.
    for (pin, image) in pins.iter_mut().zip(view.report.iter().flat_map(|report| &report.images)) {
        pin.x.get_or_insert_with(|| image.x.clone());
    }
    Some(view)
}

/// The classes that were named for the evidence of pinned images, if any were.
pub fn pair(cx: &Cx) -> Option<(ClassId, ClassId)> {
    cx.session.tasks.get::<CompareImages>().and_then(|view| view.task.pair)
}

/// Has the pinned images looked at side by side, at the present knobs.
pub fn compare(cx: &mut Cx, pair: Option<(ClassId, ClassId)>) {
    let pins = cx.view.pins(cx.session).clone();
    // At τ = 0 no image has a density.
    if !pins.is_empty() && cx.prefs.tau > 0.0 {
        cx.commands.push(Command::task(CompareImages { pins, pair, settings: cx.prefs.settings() }));
    }
}

/// The button that pins the inspected image.
pub fn button(ui: &mut Ui, cx: &mut Cx, text: &str) {
    // What the engine has found is taken over first.
    compared(cx);
    let (pair, pin) = (pair(cx), selected(cx));
    let pins = cx.view.pins(cx.session);
    let known = |pin: &Pin| pins.iter().any(|other| same(std::slice::from_ref(pin), std::slice::from_ref(other)));
    let why = match &pin {
        None => "Select an image in the gallery first.",
        // The engine looks at no image at τ = 0, and what it has not looked at is gone with the images beside it.
        Some(pin) if matches!(pin.subject, Subject::External(_)) && cx.prefs.tau == 0.0 => {
            "At τ = 0 no image has a density: choose a larger τ to pin one from outside."
        }
        Some(_) if pins.len() >= MOST_PINS => "As many images are pinned as have room: unpin one first.",
        Some(pin) if known(pin) => "It is pinned already.",
        Some(_) => "",
    };
    let button = ui.add_enabled(why.is_empty(), Button::new(text)).on_disabled_hover_text(why);
    let about = "Keeps it beside others in the panel What if: posteriors, the evidence of their differences, and grids between them";
    if let Some(pin) = pin.filter(|_| button.on_hover_text(about).clicked()) {
        pins.push(pin);
        compare(cx, pair);
    }
}
