//! Another world opens: nothing of the one before is asked for, computed or shown in it. And what comes to the front by itself.

use bayescope::gui::App;
use bayescope::units::Tau;
use bayescope::worker::protocol::{Event, Job, JobId, Outcome};
use bayescope::worker::walk::WalkToBoundary;
use eframe::egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::fake::{self, Fake};
use super::{full, shows, tasks, until};

/// The same images from outside, brought by this job.
fn brought(fake: &Fake, by: JobId) {
    let mut event = fake::external(3);
    if let Event::External { job, .. } = &mut event {
        *job = by;
    }
    fake.send(event);
}

#[test]
fn a_job_says_of_which_world_it_is_where_that_matters() {
    let (mut harness, fake) = full();
    let here = harness.state().session().oracle.as_ref().map(|oracle| oracle.world_id());
    assert!(here.is_some());
    harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    harness.run_steps(3);
    harness.key_press(Key::Enter);
    super::disk::looked(&mut harness);
    super::disk::drop_in(&mut harness, ["/data/other.safetensors"]);
    harness.run_steps(2);
    assert_eq!(fake.meant(), [here, None], "samples are of the world shown, an oracle is opened in any");
}

#[test]
fn what_the_world_before_still_answers_is_not_shown() {
    let (mut harness, fake) = full();
    harness.state_mut().slide(2.0);
    until(&mut harness, |_| fake.pending().is_some_and(|pending| pending.settings.tau.get() == 2.0));
    assert!(fake.asked_inspection().is_some());
    // The answers lie in their slots when the window hears of the other world.
    fake.answer();
    fake.open_classes((0..8).map(|class| format!("kind {class}")).collect());
    harness.step();
    let session = harness.state().session();
    assert_eq!((session.class_names().len(), session.gallery_count()), (8, 0));
    assert!(session.inspection.is_none());
    until(&mut harness, |_| fake.pending().is_some_and(|pending| pending.settings.prior.classes() == 8));
}

#[test]
fn posteriors_that_follow_a_knob_do_not_take_the_view_and_images_that_are_opened_do() {
    let (mut harness, fake) = full();
    super::disk::drop_in(&mut harness, ["/data/folder"]);
    harness.run_steps(2);
    brought(&fake, 1);
    harness.run_steps(4);
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.0);
    harness.run_steps(3);
    let jobs = fake.jobs();
    let [_, (refresh, Job::Classify { .. })] = jobs.as_slice() else { panic!("{jobs:?}") };
    harness.get_by_label("World samples").click();
    harness.run_steps(3);
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    brought(&fake, *refresh);
    harness.run_steps(4);
    assert_eq!(harness.state().view().cursor, Some(7), "the view was taken");
    super::disk::drop_in(&mut harness, ["/data/folder"]);
    harness.run_steps(2);
    let (opened, _) = fake.jobs().pop().unwrap();
    brought(&fake, opened);
    harness.run_steps(4);
    assert_eq!(harness.state().view().cursor, Some(0), "what is opened comes to the front, though it was open before");
}

/// The engine drops what is read again of images that were opened before those on show.
#[test]
fn images_that_are_read_again_name_their_opening_and_those_opened_last_stay() {
    let (mut harness, fake) = full();
    super::disk::drop_in(&mut harness, ["/data/folder"]);
    harness.run_steps(2);
    brought(&fake, 1);
    harness.run_steps(4);
    super::disk::drop_in(&mut harness, ["/data/b.png"]);
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.0);
    harness.run_steps(3);
    let jobs = fake.jobs();
    let again: Vec<_> = jobs.iter().map(|(id, job)| (*id, job.reads_again())).collect();
    assert_eq!(again, [(1, None), (2, None), (3, Some(1))], "{jobs:?}");
    let other = |by: JobId, tau: f64| {
        let mut event = fake::external(1);
        if let Event::External { job, set, name, ids, settings, .. } = &mut event {
            (*job, *set, *name, *ids) = (by, 2, "b.png".into(), vec!["b.png".into()]);
            settings.tau = Tau::new(tau).unwrap();
        }
        fake.send(event);
    };
    // They were asked for at the knobs of before: as long as they are on show they follow, too.
    other(2, 1.0);
    harness.run_steps(4);
    let jobs = fake.jobs();
    let Some((4, Job::Classify { paths, settings, again, .. })) = jobs.last() else { panic!("{jobs:?}") };
    assert_eq!((paths.as_slice(), settings.tau.get(), *again), (&["/data/b.png".into()][..], 2.0, Some(2)));
    fake.send(Event::JobEnded { id: 3, outcome: Outcome::Done("other images were opened meanwhile".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, "b.png") && !shows(&harness, "outside-2.png"), "{:?}", super::labels(&harness));
    other(4, 2.0);
    harness.run_steps(4);
    assert!(!harness.state().session().reads_outside(), "it waits for images that do not come");
    assert!(shows(&harness, "b.png") && fake.jobs().len() == 4, "{:?}", fake.jobs());
}

#[test]
fn the_panel_behind_a_question_is_not_started() {
    let (mut harness, fake) = full();
    harness.get_by_role_and_label(Role::Button, "Walk").click();
    harness.run_steps(4);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
    harness.run_steps(3);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Enter);
    harness.run_steps(4);
    assert!(fake.jobs().is_empty(), "{:?}", fake.jobs());
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Enter);
    harness.run_steps(4);
    tasks::asked::<WalkToBoundary>(&fake);
}

#[test]
fn no_key_changes_what_lies_behind_a_question() {
    let (mut harness, _) = full();
    let asked_for = |harness: &Harness<'_, App>| {
        ["Command", "Path"].map(|field| harness.query_all_by_label(field).next().is_some())
    };
    let mut press = |modifiers, key| {
        harness.key_press_modifiers(modifiers, key);
        harness.run_steps(3);
        asked_for(&harness)
    };
    assert_eq!(press(Modifiers::COMMAND, Key::O), [false, true]);
    assert_eq!(press(Modifiers::COMMAND, Key::P), [false, true], "the palette lies over the question");
    assert_eq!(press(Modifiers::NONE, Key::Escape), [false; 2]);
    assert_eq!(press(Modifiers::COMMAND, Key::P), [true, false]);
}
