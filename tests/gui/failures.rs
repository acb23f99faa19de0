//! A failure is said once where the user looks.

use bayescope::export::ExportDataset;
use bayescope::gui::App;
use bayescope::worker::protocol::{Event, Outcome};
use eframe::egui::Shape;
use egui_kittest::Harness;

use super::experiments::{click, rewrite};
use super::fake::Fake;
use super::{full, tasks};

const WHY: &str = "/data/digits: the disk is full";

/// How many texts of the last frame hold these words. Notices are painted without a label.
fn painted(harness: &Harness<'_, App>, words: &str) -> usize {
    fn texts<'a>(shape: &'a Shape, out: &mut Vec<&'a str>) {
        match shape {
            Shape::Text(text) => out.push(text.galley.text()),
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| texts(shape, out)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    harness.output().shapes.iter().for_each(|clipped| texts(&clipped.shape, &mut found));
    found.iter().filter(|text| text.contains(words)).count()
}

/// Starts an export, which fails while this panel is in front.
fn fail(harness: &mut Harness<'_, App>, fake: &Fake, front: &'static str) {
    harness.state_mut().show_panel("export");
    harness.run_steps(4);
    click(harness, "Start export");
    let (id, _) = tasks::asked::<ExportDataset>(fake);
    harness.state_mut().show_panel(front);
    harness.run_steps(4);
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed(WHY.into()) });
    harness.run_steps(6);
}

#[test]
fn a_failure_is_said_once_by_the_panel_that_shows_it_and_else_by_a_notice() {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("export");
    harness.run_steps(4);
    rewrite(&mut harness, "Folder of the dataset", "/data/digits");
    fail(&mut harness, &fake, "export");
    assert_eq!(painted(&harness, WHY), 1, "the panel alone: {:?}", super::labels(&harness));
    // Elsewhere the list of jobs keeps it; a notice would come too late.
    harness.state_mut().show_panel("gallery");
    harness.run_steps(6);
    assert_eq!(painted(&harness, WHY), 1, "the list of jobs: {:?}", super::labels(&harness));
    click(&mut harness, "Clear finished");
    fail(&mut harness, &fake, "gallery");
    assert_eq!(painted(&harness, WHY), 2, "the list of jobs and a notice: {:?}", super::labels(&harness));
}
