//! The panel *Experiments*: from a point or a cell to its worst images in the gallery.

use bayescope::experiment::WorstImage;
use bayescope::gui::App;
use bayescope::oracle::world::Settings;
use bayescope::units::Tau;
use bayescope::worker::protocol::{Event, Job, Outcome, Tile};
use eframe::egui::{self, Key, Modifiers, PointerButton, Pos2, pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, open, panel, run, run_of, spec};
use super::{fake, shows};

fn click_at(harness: &mut Harness<'_, App>, at: Pos2) {
    harness.hover_at(at);
    harness.run_steps(1);
    for pressed in [true, false] {
        let modifiers = Modifiers::NONE;
        harness.event(egui::Event::PointerButton { pos: at, button: PointerButton::Primary, pressed, modifiers });
        harness.run_steps(1);
    }
    harness.run_steps(1);
}

/// The worst images of a cell, as the engine sends them: the knobs of the run, and what the classifier says of each.
fn worst_images(n: usize, tau: f64) -> Event {
    let Event::External { shape, tiles, .. } = fake::external(n) else { panic!("images from outside") };
    let verdict = |(i, tile): (usize, &Tile)| {
        let p = tile.posterior.probabilities.clone();
        WorstImage { image: 10 + i, kl: 3.0 - 0.125 * i as f64, label: 1, q: vec![0.1; p.len()], p }
    };
    let verdicts = tiles.iter().enumerate().map(verdict).collect();
    let settings = Settings { tau: Tau::new(tau).unwrap(), ..Settings::default_for(10) };
    Event::External {
        job: 1,
        set: 2,
        name: format!("ConvNet on 800 images, seed 1: {n} worst of 60 test images by KL"),
        shape,
        ids: (0..n).map(|i| format!("Test image {}", 10 + i)).collect(),
        tiles,
        labelled: true,
        settings,
        own_knobs: true,
        verdicts,
        pictures: Vec::new(),
    }
}

#[test]
fn a_click_on_a_point_of_the_law_opens_its_worst_images() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let folder = run(place.path(), "mine", 16);
    open(&mut harness, &fake, place.path());
    let plot = "Loss over the number of training images";
    harness.get_by_label(plot).scroll_to_me();
    harness.run_steps(6);
    let area = harness.get_by_label(plot).rect();
    // Beside every point there is nothing to click.
    click_at(&mut harness, area.left_top() + vec2(2.0, 2.0));
    assert!(fake.cell_images().is_empty() && harness.state().view().cells.cursor().is_none());
    // Somewhere along the right edge stand the cells of the most images.
    let mut y = area.top();
    while fake.cell_images().is_empty() && y < area.bottom() {
        let mut x = area.right() - 60.0;
        while fake.cell_images().is_empty() && x < area.right() {
            click_at(&mut harness, pos2(x, y));
            x += 8.0;
        }
        y += 16.0;
    }
    let asked = fake.cell_images();
    let [(id, request)] = asked.as_slice() else { panic!("{asked:?}") };
    let cell = folder.plan.iter().find(|planned| planned.id == request.cell).expect("a cell of the run").cell;
    assert_eq!((request.folder.as_path(), request.oracle.as_str(), cell.train_size), (place.path(), "mnist", 800));
    assert_eq!(harness.state().view().cells.cursor(), Some(request.cell.as_str()));
    assert_eq!(request.title(), format!("Worst images of {}…", cell.label()));
    assert_eq!(harness.state().prefs().tau, 1.0);
    fake.send(worst_images(12, 1.3));
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Done("12 images".into()) });
    harness.run_steps(4);
    assert_eq!((harness.state().prefs().tau, harness.state().view().cursor), (1.3, Some(0)));
    for text in [
        "ConvNet on 800 images, seed 1: 12 worst of 60",
        "Test image 10, KL 3.000 nats",
        "The classifier and the truth",
        "classifier q(y|x)",
    ] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    harness.check_accessibility();
    assert!(fake.jobs().is_empty(), "posteriors came with the images: {:?}", fake.jobs());
    click(&mut harness, "Copy as command");
    let command = format!("bayescope summary {} --worst {}", place.path().display(), request.cell);
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(&command)));
    // Undo gives the knobs back.
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(4);
    assert_eq!(harness.state().prefs().tau, 1.0);
    let jobs = fake.jobs();
    assert!(matches!(jobs.as_slice(), [(_, Job::RateAgain { settings })] if settings.tau.get() == 1.0), "{jobs:?}");
}

#[test]
fn worst_images_that_cannot_be_shown_say_why_and_what_helps() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let mut other = spec("theirs");
    other.world.oracle = "/oracles/other".into();
    let folder = run_of(place.path(), &other, 16);
    open(&mut harness, &fake, place.path());
    click(&mut harness, "Cell: ConvNet on 800 images, seed 1");
    click(&mut harness, "Worst images");
    let (id, request) = fake.cell_images().pop().expect("images were asked for");
    assert_eq!(request.cell, folder.plan.last().unwrap().id);
    let old = "ConvNet on 800 images, seed 1 was measured before worst images were kept";
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed(old.into()) });
    harness.run_steps(4);
    assert!(shows(&harness, old));
    click(&mut harness, "Open /oracles/other and show them");
    let jobs = fake.jobs();
    let [(id, Job::OpenOracle(name))] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!((name.as_str(), fake.cell_images().len()), ("/oracles/other", 1));
    fake.open_classes((0..10).map(|class| format!("kind {class}")).collect());
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Done("open".into()) });
    harness.run_steps(4);
    let (_, again) = fake.cell_images().pop().unwrap();
    assert_eq!((fake.cell_images().len(), again.world.as_str(), again.cell), (2, "other", request.cell));
    assert!(!shows(&harness, "Open /oracles/other and show them"));
}
