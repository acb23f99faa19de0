//! The panel *Walk*: asking, watching, choosing points, saving, sending.

use std::sync::Arc;

use bayescope::events::Progress;
use bayescope::gui::{App, Prefs, ThemePreference};
use bayescope::oracle::posterior::{Posterior, Prior};
use bayescope::oracle::walk::{Boundary, Walk, WalkPoint, Way};
use bayescope::oracle::world::Settings;
use bayescope::task::{Done, ExternalImage, News};
use bayescope::units::{ClassId, Smoothing};
use bayescope::worker::protocol::{Event, Job, JobId, Outcome, Subject, Tile};
use bayescope::worker::walk::{Arrival, Destination, SaveWalk, WalkDot, WalkNews, WalkToBoundary, Walked};
use bayescope::worker::what_if::UnderEveryClass;
use eframe::egui::{Key, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::click;
use super::fake::{self, Fake, SHAPE};
use super::{full, shows, tables, tasks};

/// The first image of a set from outside.
fn outside(set: u64) -> Subject {
    Subject::External(ExternalImage { set, index: 0 })
}

/// A point between two classes, a third in the middle.
fn dot(index: usize, position: f64, [a, b]: [ClassId; 2]) -> WalkDot {
    let third = (0..10).find(|class| *class != a && *class != b).unwrap();
    let mut log_likelihood = vec![1000.0; 10];
    log_likelihood[a] = 1012.0 + 12.0 * (0.5 - position);
    log_likelihood[b] = 1012.0 - 12.0 * (0.5 - position);
    log_likelihood[third] = 1013.0;
    let posterior = Posterior::new(log_likelihood, &Prior::uniform(10), Smoothing::ONE);
    let (source, pixels) = (posterior.decision, fake::tile(index, 1.0).pixels);
    let tile = Tile { index, source, label: source, pixels, posterior: Arc::new(posterior), look: None };
    WalkDot { position, tile }
}

fn news(fake: &Fake, id: JobId, news: WalkNews) {
    fake.send(Event::Task { id, news: News::of_event::<WalkToBoundary>(news) });
}

fn arrival(pair: [ClassId; 2], why_not: Option<String>) -> Arrival {
    let middle = dot(9, 0.5, pair);
    let posterior = &middle.tile.posterior;
    let third = Some((posterior.decision, posterior.probabilities[posterior.decision]));
    let [start, target] = pair;
    let (way, imbalance, rounding) = (Way::Latent, 2e-4, Some(1e-5));
    Arrival { way, start, target, middle, imbalance, third, why_not, rounding }
}

/// The walk that arrives so, without its points.
fn walked(arrival: &Arrival, settings: Settings) -> Walked {
    let Arrival { way, start, target, ref middle, imbalance, third, ref why_not, rounding } = *arrival;
    let posterior = (*middle.tile.posterior).clone();
    let point = WalkPoint { position: middle.position, x: vec![0.0; SHAPE.dims()], posterior };
    let boundary = Boundary { reached: why_not.is_none(), point, imbalance, third, why_not: why_not.clone() };
    let walk = Walk { way, start, target, points: Vec::new(), boundary, rounding };
    Walked { walk, settings, world: "00".into() }
}

/// The points of the walk of job `id`, the last one missing.
fn under_way(fake: &Fake, id: JobId, pair: [ClassId; 2]) {
    fake.send(Event::JobStarted { id });
    for i in 0..8 {
        news(fake, id, WalkNews::Point { shape: SHAPE, dot: dot(i, i as f64 / 7.0, pair) });
        let progress = Progress { done: i + 1, total: 33 };
        fake.send(Event::JobProgress { id, progress, note: format!("{} of at most 33 points", i + 1) });
    }
}

#[test]
fn a_walk_is_asked_for_watched_looked_at_saved_and_sent() {
    let (mut harness, fake) = full();
    harness.get_by_role_and_label(Role::Button, "Walk").click();
    harness.run_steps(4);
    assert!(shows(&harness, "No walk yet") && shows(&harness, "sample 0 (seed 0)"));
    click(&mut harness, "Walk to the boundary");
    let (id, request) = tasks::asked::<WalkToBoundary>(&fake);
    let start = fake::tile(0, 1.0).posterior.decision;
    let Destination::Class(goal) = request.to else { panic!("{request:?}") };
    assert!(matches!(request.from, Subject::Sample { index: 0, .. }) && goal != start && request.steps == 32);
    under_way(&fake, id, [start, goal]);
    harness.run_steps(4);
    assert!(shows(&harness, "8 of at most 33 points") && shows(&harness, "Point 7 of the walk, large"));
    click(&mut harness, "Stop walking");
    assert_eq!(fake.cancelled(), [id]);
    let arrival = arrival([start, goal], None);
    news(&fake, id, WalkNews::Arrived(Box::new(arrival.clone())));
    tasks::done::<WalkToBoundary>(&fake, id, Done::new(walked(&arrival, request.settings), "50/50"));
    harness.run_steps(4);
    for text in [
        "along a straight line in the latent space all classes share",
        "are equally probable at 0.5000",
        "A third class is larger there",
        "p(y|x) along the path",
        "50/50 point of the walk, large",
    ] {
        assert!(shows(&harness, text), "'{text}' is not shown");
    }
    harness.check_accessibility();
    assert!(tables::all(&mut harness).iter().any(|title| title == "p(y|x) along the path"));
    harness.get_by_label_contains("Point 2 at 0.2857 share of the way").click();
    harness.run_steps(4);
    assert!(shows(&harness, "Point 2 of the walk, large"));
    click(&mut harness, "Show the 50/50 point");
    assert!(shows(&harness, "50/50 point of the walk, large"));
    click(&mut harness, "Save walk…");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    harness.get_by_role_and_label(Role::Button, "Walk").click();
    click(&mut harness, "Send to gallery");
    let jobs = fake.jobs();
    let [_, (_, save), (sent, Job::SendWalk { .. })] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert!(
        tasks::task_of::<SaveWalk>(save).is_some_and(|save| save.path == std::path::absolute("walk.npz").unwrap()),
        "{save:?}"
    );
    fake.send(fake::external(10));
    fake.send(Event::JobEnded { id: *sent, outcome: Outcome::Done("sent".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, "From outside (10)"));
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.0);
    harness.run_steps(3);
    let last = fake.jobs().pop().unwrap();
    assert!(matches!(last.1, Job::RateAgain { settings } if settings.tau.get() == 2.0), "posteriors follow the knobs");
}

#[test]
fn a_walk_between_samples_says_what_it_did_not_reach() {
    let (mut harness, fake) = full();
    harness.get_by_role_and_label(Role::Button, "Walk").click();
    harness.run_steps(4);
    click(&mut harness, "Start here");
    click(&mut harness, "a sample");
    click(&mut harness, "Goal is the selection");
    assert!(shows(&harness, "Start and goal are one sample"));
    harness.get_by_role_and_label(Role::Button, "Gallery").click();
    harness.run_steps(4);
    harness.get_by_label_contains("Sample 3,").click();
    harness.get_by_role_and_label(Role::Button, "Walk").click();
    harness.run_steps(4);
    click(&mut harness, "Goal is the selection");
    click(&mut harness, "Walk to the boundary");
    let (id, request) = tasks::asked::<WalkToBoundary>(&fake);
    assert!(matches!(request.from, Subject::Sample { index: 0, .. }));
    assert_eq!(request.to, Destination::Sample(3));
    under_way(&fake, id, [4, 5]);
    let why = Some("5 is nowhere as probable as 4".into());
    news(&fake, id, WalkNews::Arrived(Box::new(arrival([4, 5], why))));
    fake.send(Event::JobEnded { id, outcome: Outcome::Done("not reached".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, "50/50 was not reached: 5 is nowhere as probable as 4"));
    assert!(shows(&harness, "Closest to 50/50 of the walk, large"));
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(0.0);
    harness.run_steps(4);
    assert!(shows(&harness, "no density") && shows(&harness, "the knobs have moved since"));
}

#[test]
fn without_a_world_the_panel_says_so_in_both_themes() {
    for look in [ThemePreference::Light, ThemePreference::Dark] {
        let (mut harness, _) = super::window(Prefs { theme: look, ..Prefs::default() });
        harness.run_steps(2);
        harness.get_by_role_and_label(Role::Button, "Walk").click();
        harness.run_steps(3);
        assert!(shows(&harness, "No world yet"));
    }
}

#[test]
fn a_walk_keeps_the_name_of_its_start_and_other_images_are_no_start_that_was_kept() {
    let (mut harness, fake) = full();
    let walks = |harness: &mut Harness<'_, App>| {
        harness.get_by_role_and_label(Role::Button, "Walk").click();
        harness.run_steps(4);
    };
    fake.send(fake::external(3));
    harness.run_steps(4);
    walks(&mut harness);
    click(&mut harness, "Start here");
    click(&mut harness, "Walk to the boundary");
    let (id, request) = tasks::asked::<WalkToBoundary>(&fake);
    assert_eq!(request.from, outside(1));
    under_way(&fake, id, [4, 5]);
    harness.run_steps(4);
    assert!(shows(&harness, "From outside-0.png towards") && shows(&harness, "Start at the selection"));
    let Event::External { job, shape, settings, .. } = fake::external(3) else { panic!("images from outside") };
    let (name, ids, tiles) = (
        "other".into(),
        ["a.png", "b.png", "c.png"].map(String::from).into(),
        (5..8).map(|i| fake::tile(i, 1.0)).collect(),
    );
    let (set, labelled, own_knobs, verdicts, pictures) = (2, false, false, Vec::new(), Vec::new());
    fake.send(Event::External { job, set, name, shape, ids, tiles, labelled, settings, own_knobs, verdicts, pictures });
    harness.run_steps(4);
    walks(&mut harness);
    assert!(shows(&harness, "From outside-0.png towards"), "{:?}", super::labels(&harness));
    assert!(shows(&harness, "a.png, decided as") && !shows(&harness, "Start at the selection"));
}

/// They may wait for hours behind a training, and are the same images all the while.
#[test]
fn a_walk_and_a_map_begin_while_the_same_images_are_read_again_at_other_knobs() {
    let (mut harness, fake) = full();
    super::disk::drop_in(&mut harness, ["/data/folder"]);
    harness.run_steps(2);
    fake.send(fake::external(3));
    fake.send(Event::JobEnded { id: 1, outcome: Outcome::Done("3 images".into()) });
    harness.run_steps(4);
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.0);
    harness.run_steps(3);
    assert!(matches!(fake.jobs().as_slice(), [_, (2, Job::Classify { .. })]), "{:?}", fake.jobs());
    assert!(harness.state().session().reads_outside());
    harness.get_by_role_and_label(Role::Button, "Walk").click();
    harness.run_steps(4);
    click(&mut harness, "Walk to the boundary");
    assert_eq!(tasks::asked::<WalkToBoundary>(&fake).1.from, outside(1));
    harness.state_mut().show_panel("what if");
    harness.run_steps(4);
    click(&mut harness, "Map the selected image under every class");
    assert_eq!(tasks::asked::<UnderEveryClass>(&fake).1.image.subject, outside(1));
}
