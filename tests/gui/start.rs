//! Ctrl+Enter: the panel in front does what it is for.

use std::path::Path;

use bayescope::export::ExportDataset;
use bayescope::gui::App;
use eframe::egui::{Event, Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::rewrite;
use super::{full, tasks};

fn go(harness: &mut Harness<'_, App>) {
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Enter);
    harness.run_steps(4);
}

fn said(harness: &Harness<'_, App>, text: &str) -> bool {
    harness.state().session().log.iter().any(|entry| entry.text.contains(text))
}

fn tab(harness: &mut Harness<'_, App>, title: &str) {
    harness.get_by_role_and_label(Role::Button, title).click();
    harness.run_steps(4);
}

#[test]
fn the_panel_in_front_does_what_it_is_for() {
    let (mut harness, fake) = full();
    tab(&mut harness, "Export");
    go(&mut harness);
    assert!(fake.jobs().is_empty() && said(&harness, "Give the folder it is to go to"), "{:?}", fake.jobs());
    rewrite(&mut harness, "Folder of the dataset", "/data/digits");
    // The number is taken over though the field still has the focus.
    harness.get_by_role_and_label(Role::SpinButton, "Train").focus();
    harness.run_steps(2);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
    harness.event(Event::Text("1234".into()));
    harness.run_steps(2);
    go(&mut harness);
    let (_, ExportDataset { spec, folder, .. }) = tasks::asked(&fake);
    assert_eq!((spec.train, folder.as_path()), (1234, Path::new("/data/digits")));
    // Another panel is in front now, and nothing is left over for it.
    harness.state_mut().show_panel("judge");
    harness.run_steps(4);
    assert_eq!(fake.jobs().len(), 1);
    go(&mut harness);
    assert_eq!(fake.jobs().len(), 1);
    tab(&mut harness, "Gallery");
    go(&mut harness);
    assert!(said(&harness, "has nothing to start") && fake.jobs().len() == 1);
}
