//! The panel *What if*: images are pinned, held against each other, mapped under every class, and grids lie between them. The engine
//! is the real one, of the bundled digits.

use bayescope::flow::Precision;
use bayescope::gui::App;
use bayescope::oracle::folder::{self, Oracle};
use bayescope::task::{ExternalImage, Task};
use bayescope::worker::protocol::{Event, Subject};
use bayescope::worker::what_if::{CompareImages, GridBetween, MOST_PINS, UnderEveryClass};
use burn::tensor::Device;
use eframe::egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::click;
use super::fake::Fake;
use super::{full, shows, tables, tasks};

fn oracle() -> Oracle {
    folder::open("mnist", &Device::flex(), Precision::F32, 16).unwrap()
}

fn panel(harness: &mut Harness<'_, App>) {
    harness.state_mut().show_panel("what if");
    harness.run_steps(4);
}

/// The last job that was asked for is carried out, and told as the worker does.
fn answer<T: Task + Clone>(harness: &mut Harness<'_, App>, fake: &Fake, oracle: &Oracle) -> T {
    let (id, task) = tasks::asked::<T>(fake);
    fake.send(Event::JobStarted { id });
    let (news, done) = tasks::told(&task, Some(("mnist", oracle)));
    news.into_iter().for_each(|news| fake.send(Event::Task { id, news }));
    tasks::done::<T>(fake, id, done);
    harness.run_steps(6);
    task
}

/// Pins a sample by the button of the inspector.
fn pin(harness: &mut Harness<'_, App>, fake: &Fake, sample: usize) {
    harness.state_mut().show_panel("gallery");
    harness.run_steps(4);
    harness.get_by_label_contains(&format!("Sample {sample},")).click();
    harness.run_steps(3);
    fake.answer();
    harness.run_steps(3);
    click(harness, "Pin image");
}

fn names(task: &CompareImages) -> Vec<&str> {
    task.pins.iter().map(|pin| pin.name.as_str()).collect()
}

#[test]
fn pinned_images_lie_side_by_side_and_stay_what_they_were() {
    let oracle = oracle();
    let (mut harness, fake) = full();
    panel(&mut harness);
    assert!(shows(&harness, "Select images in the gallery and pin them here"));
    click(&mut harness, "Pin the selected image");
    answer::<CompareImages>(&mut harness, &fake, &oracle);
    assert!(shows(&harness, "Sample 0, pinned") && !shows(&harness, "the first has"));
    pin(&mut harness, &fake, 3);
    assert!(harness.get_by_label("Pin image").accesskit_node().is_disabled(), "it is pinned already");
    let task = answer::<CompareImages>(&mut harness, &fake, &oracle);
    assert_eq!(names(&task), ["Sample 0", "Sample 3"]);
    panel(&mut harness);
    assert!(shows(&harness, "Evidence of Sample 3: ") && shows(&harness, "the first has "));
    let report = harness.state().session().tasks.get::<CompareImages>().unwrap().report.unwrap();
    let [a, b] = [0, 1].map(|i| report.images[i].evidence.as_ref().unwrap().total);
    let difference = report.images[1].difference.as_ref().unwrap();
    assert!((difference.sum() - difference.total).abs() <= 1e-6 * (1.0 + difference.total.abs()));
    assert!((difference.total - (a - b)).abs() < 1e-9);
    harness.check_accessibility();
    assert!(tables::all(&mut harness).iter().any(|title| title == "pinned images"));

    // Another one first: its values are known by now, and are kept.
    click(&mut harness, "Make first 2: Sample 3");
    let task = answer::<CompareImages>(&mut harness, &fake, &oracle);
    assert_eq!(names(&task), ["Sample 3", "Sample 0"]);
    assert!(task.pins.iter().all(|pin| pin.x.is_some()));
    // The knobs move: the images stay, their posteriors are asked for.
    let asked = fake.jobs().len();
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(1.5);
    harness.run_steps(4);
    assert!(shows(&harness, "the knobs have moved since") && fake.jobs().len() == asked);
    click(&mut harness, "Compare at these knobs");
    let again = answer::<CompareImages>(&mut harness, &fake, &oracle);
    assert!(again.settings.tau.get() == 1.5 && again.pins == task.pins && !shows(&harness, "have moved since"));
    click(&mut harness, "Unpin 1: Sample 3");
    assert_eq!(names(&answer::<CompareImages>(&mut harness, &fake, &oracle)), ["Sample 0"]);
    // In another world they are no images.
    fake.open_classes(vec!["a".into(), "b".into()]);
    harness.run_steps(5);
    assert!(shows(&harness, "Select images in the gallery and pin them here"));
}

#[test]
fn a_right_click_in_the_gallery_pins_and_leads_on() {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 5,").click_secondary();
    harness.run_steps(4);
    assert_eq!(harness.state().view().cursor, Some(5));
    harness.get_by_label("Pin this image").click();
    harness.run_steps(4);
    let (_, task) = tasks::asked::<CompareImages>(&fake);
    assert_eq!(names(&task), ["Sample 5"]);
    harness.get_by_label_contains("Sample 6,").click_secondary();
    harness.run_steps(4);
    harness.get_by_label("Walk from here").click();
    harness.run_steps(4);
    assert!(shows(&harness, "No walk yet") && shows(&harness, "sample 6 (seed 0)"));
}

#[test]
fn no_more_are_pinned_than_have_room() {
    let oracle = oracle();
    let (mut harness, fake) = full();
    for sample in 0..MOST_PINS {
        pin(&mut harness, &fake, sample);
        answer::<CompareImages>(&mut harness, &fake, &oracle);
    }
    harness.get_by_label_contains("Sample 9,").click();
    harness.run_steps(3);
    assert!(harness.get_by_label("Pin image").accesskit_node().is_disabled());
    panel(&mut harness);
    assert!(shows(&harness, "8 of at most 8") && shows(&harness, "Sample 7, pinned"));
    click(&mut harness, "Unpin all");
    assert!(shows(&harness, "0 of at most 8"));
}

#[test]
fn a_grid_lies_between_pins_and_a_latent_is_mapped_under_every_class() {
    let oracle = oracle();
    let (mut harness, fake) = full();
    panel(&mut harness);
    assert!(
        harness.get_by_label("Make grid").accesskit_node().is_disabled() && shows(&harness, "Pin more images first")
    );
    for sample in [0, 3] {
        pin(&mut harness, &fake, sample);
        answer::<CompareImages>(&mut harness, &fake, &oracle);
    }
    panel(&mut harness);
    click(&mut harness, "Make grid");
    let task = answer::<GridBetween>(&mut harness, &fake, &oracle);
    let corners: Vec<&Subject> = task.corners.iter().map(|pin| &pin.subject).collect();
    assert!(matches!(corners[..], [Subject::Sample { index: 0, .. }, Subject::Sample { index: 3, .. }]));
    assert!(task.corners.iter().all(|pin| pin.x.is_some()) && task.columns == 9);
    assert!(shows(&harness, "bilinear in the latent space that all classes share"));
    assert!(shows(&harness, "Row 1, column 1: decision ") && shows(&harness, "Row 1, column 9: decision "));
    assert!(!shows(&harness, "Row 2,"));
    click(&mut harness, "the first four");
    assert!(shows(&harness, "Pin more images first"));

    click(&mut harness, "Map the selected image under every class");
    let task = answer::<UnderEveryClass>(&mut harness, &fake, &oracle);
    assert!(matches!(task.image.subject, Subject::Sample { index: 3, .. }));
    for class in 0..10 {
        assert!(shows(&harness, &format!("Under {class}: decision ")), "{class}");
    }
    assert!(shows(&harness, "it is the image itself"));
    harness.check_accessibility();
    let titles = tables::all(&mut harness);
    for title in ["grid between pinned images", "latent under every class"] {
        assert!(titles.iter().any(|known| known == title), "{titles:?}");
    }
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(0.0);
    harness.run_steps(4);
    assert!(shows(&harness, "At τ = 0 no image has a density"));
}

#[test]
fn an_image_from_outside_that_was_not_looked_at_does_not_become_another() {
    let (mut harness, fake) = full();
    let disabled = |harness: &Harness<'_, App>| harness.get_by_label("Pin image").accesskit_node().is_disabled();
    let tau = |harness: &mut Harness<'_, App>, tau: f64| {
        harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(tau);
        harness.run_steps(4);
        fake.answer();
        harness.run_steps(3);
    };
    fake.send(super::fake::external(3));
    harness.run_steps(4);
    fake.answer();
    harness.run_steps(3);
    tau(&mut harness, 0.0);
    assert!(disabled(&harness), "nothing looks at it at τ = 0");
    tau(&mut harness, 1.0);
    assert!(!disabled(&harness));
    click(&mut harness, "Pin image");
    let asked = tasks::asked::<CompareImages>(&fake).1;
    let pinned = |task: &CompareImages| task.pins.iter().map(|pin| pin.subject.clone()).collect::<Vec<_>>();
    let first = |set: u64| Subject::External(ExternalImage { set, index: 0 });
    assert_eq!(pinned(&asked), [first(1)]);
    assert!(disabled(&harness), "it is pinned already");
    // Others come before the engine has looked at it: of other names, and of the same, as all that is pasted.
    for (set, name) in [(2, "other"), (3, "other")] {
        let mut event = super::fake::external(2);
        if let Event::External { set: of, name: called, .. } = &mut event {
            (*of, *called) = (set, name.into());
        }
        fake.send(event);
        harness.run_steps(4);
        fake.answer();
        harness.run_steps(3);
        click(&mut harness, "Pin image");
        assert_eq!(pinned(&tasks::asked::<CompareImages>(&fake).1), [first(set)]);
    }
}
