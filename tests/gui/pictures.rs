//! Pictures from outside: pasted, what was done to them, and the frame that is moved.

use std::sync::Arc;

use bayescope::data::{Colour, Cut, Fit, Frame, Preview, Scaling, Treatment, Turn, Way};
use bayescope::gui::{App, Prefs};
use bayescope::oracle::pictures::Picture;
use bayescope::worker::protocol::{Event, Job};
use eframe::egui::{self, ColorImage, Pos2, Role, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::click;
use super::fake::{self, Fake};
use super::{full, shows, window};

/// A photograph of 400×300 as stored, which stands upright after a turn; its border is at a level.
fn photograph(border: u8, fit: Fit) -> Picture {
    let cut = fit.frame.map_or(Cut { x: 0, y: 50, width: 300, height: 300 }, |Frame { x, y, width }| Cut {
        x,
        y,
        width,
        height: width,
    });
    let treatment = Treatment {
        stored: [400, 300],
        turned: Some(Turn::Right),
        first_frame: false,
        bits: None,
        background: None,
        cropped: (fit.way == Way::Crop).then_some(cut),
        scaled: Some(Scaling { from: [cut.width, cut.height], to: [32, 32], filter: "bilinear, antialiased".into() }),
        colour: Colour::ToGrey,
        inverted: fit.invert,
        margins: None,
        border,
        world_border: 0,
    };
    let rgb: Arc<[u8]> = vec![120; 3 * 30 * 40].into();
    Picture { fit, treatment, preview: Some(Preview { width: 30, height: 40, rgb }) }
}

/// The engine has read one picture.
fn send(harness: &mut Harness<'_, App>, fake: &Fake, picture: Picture) {
    let Event::External { shape, tiles, settings, .. } = fake::external(1) else { panic!("images from outside") };
    let (name, ids, pictures) = ("photograph.jpg".into(), vec!["photograph.jpg".into()], vec![picture]);
    let (labelled, own_knobs, verdicts) = (false, false, Vec::new());
    let job = fake.jobs().last().map_or(1, |(id, _)| *id);
    // Fitted in another way it is another image.
    let set = job;
    fake.send(Event::External { job, set, name, shape, ids, tiles, labelled, settings, own_knobs, verdicts, pictures });
    harness.run_steps(3);
    fake.answer();
    harness.run_steps(3);
}

/// A window that shows a dropped photograph.
fn opened(border: u8) -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    super::disk::drop_in(&mut harness, ["/data/photograph.jpg"]);
    harness.run_steps(2);
    send(&mut harness, &fake, photograph(border, Fit::default()));
    (harness, fake)
}

/// What the last job does to the only picture.
fn asked(fake: &Fake) -> Fit {
    match fake.jobs().last() {
        Some((_, Job::Classify { paths, fits, .. })) if paths.len() == 1 => fits.of(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_done_is_shown_and_another_way_is_asked_for_once() {
    let (mut harness, fake) = opened(10);
    assert!(shows(&harness, "turned a quarter to the right") && shows(&harness, "cropped to 300×300 at 0,50"));
    assert!(!shows(&harness, "Invert it"), "nothing is offered where the border is the world's");
    let before = fake.jobs().len();
    click(&mut harness, "pad");
    harness.run_steps(4);
    assert_eq!((fake.jobs().len(), asked(&fake)), (before + 1, Fit { way: Way::Pad, ..Fit::default() }));
    assert_eq!(fake.jobs()[before].1.reads_again(), Some(1), "it is the picture that was opened");
    // The knobs ask again for the picture as it is now.
    send(&mut harness, &fake, photograph(10, asked(&fake)));
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(1.5);
    harness.run_steps(4);
    assert_eq!((fake.jobs().len(), asked(&fake).way), (before + 2, Way::Pad));
    // Another picture begins anew.
    super::disk::drop_in(&mut harness, ["/data/other.jpg"]);
    harness.run_steps(2);
    assert_eq!(asked(&fake), Fit::default());
}

#[test]
fn inversion_is_offered_and_waits_for_a_hand() {
    let (mut harness, fake) = opened(240);
    assert!(shows(&harness, "its border is at level 240 of 255, this world's at 0"));
    assert!(!asked(&fake).invert);
    click(&mut harness, "Invert it");
    harness.run_steps(4);
    assert!(asked(&fake).invert);
    send(&mut harness, &fake, photograph(240, asked(&fake)));
    assert!(shows(&harness, "light and dark exchanged") && !shows(&harness, "Invert it"));
}

#[test]
fn the_frame_follows_the_hand_and_is_read_when_it_lets_go() {
    let (mut harness, fake) = opened(10);
    let before = fake.jobs().len();
    harness.get_by_label("The whole picture with its frame").scroll_to_me();
    harness.run_steps(6);
    let place = harness.get_by_label("The whole picture with its frame").rect();
    // 400 upright pixels are as high as the picture: an eighth of it down is 50 of them, to the lower end.
    let at = place.center();
    harness.hover_at(at);
    harness.drag_at(at);
    harness.step();
    let to: Pos2 = at + vec2(0.0, place.height() / 8.0);
    harness.hover_at(to);
    harness.run_steps(2);
    assert_eq!(fake.jobs().len(), before, "nothing is read while it moves");
    harness.drop_at(to);
    harness.run_steps(4);
    let frame = asked(&fake).frame.expect("a frame");
    assert!(fake.jobs().len() == before + 1 && frame.x == 0 && frame.width == 300, "{frame:?}");
    assert!((90..=100).contains(&frame.y), "{frame:?}");
    // By the keyboard, too.
    send(&mut harness, &fake, photograph(10, asked(&fake)));
    let field = harness.get_by_role_and_label(Role::SpinButton, "Frame width");
    assert!(field.accesskit_node().numeric_value().is_some_and(|width| width == 300.0));
    field.set_value_accesskit(200.0);
    harness.run_steps(4);
    assert!(asked(&fake).frame.is_some_and(|frame| frame.width == 200), "{:?}", asked(&fake));
}

#[test]
fn a_pasted_picture_is_shown_to_the_world() {
    let (mut harness, fake) = full();
    let image = ColorImage::from_rgb([3, 2], &[200; 18]);
    harness.input_mut().events.push(egui::Event::PasteImage(Arc::new(image)));
    harness.run_steps(3);
    let jobs = fake.jobs();
    let [(_, Job::ClassifyPasted { picture, fit, .. })] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!(*fit, Fit::default());
    let ground = bayescope::data::Ground { shape: fake::SHAPE, border: [0; 3] };
    let fitted = bayescope::data::fit_picture("pasted".as_ref(), &picture.0, fit, &ground).unwrap();
    assert_eq!(fitted.treatment.stored, [3, 2]);
    assert_eq!(fitted.pixels.iter().filter(|level| **level == 200).count(), 6);
    // A knob asks for it again, though it has no file.
    send(&mut harness, &fake, photograph(10, Fit::default()));
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(1.5);
    harness.run_steps(4);
    assert!(matches!(fake.jobs().last(), Some((_, Job::ClassifyPasted { settings, .. })) if settings.tau.get() == 1.5));
    click(&mut harness, "Copy as command");
    harness.state_mut().show_panel("log");
    harness.run_steps(3);
    assert!(shows(&harness, "A pasted picture has no file"));
}

#[test]
fn a_picture_that_is_looked_at_is_shown_to_the_next_world_too() {
    let (mut harness, fake) = opened(10);
    click(&mut harness, "pad");
    harness.run_steps(4);
    send(&mut harness, &fake, photograph(10, asked(&fake)));
    let before = fake.jobs().len();
    fake.open_classes(["cat", "dog"].map(String::from).to_vec());
    harness.run_steps(4);
    let jobs = fake.jobs();
    let [(_, Job::Classify { settings, .. })] = &jobs[before..] else { panic!("{jobs:?}") };
    // As it was cut before, at the prior of the world that is open now.
    assert_eq!((asked(&fake).way, settings.prior.probabilities()), (Way::Pad, &[0.5, 0.5][..]));
    send(&mut harness, &fake, photograph(10, asked(&fake)));
    assert!(shows(&harness, "photograph.jpg"), "{:?}", super::labels(&harness));
    // Who looks at samples keeps looking at samples.
    click(&mut harness, "World samples");
    harness.run_steps(3);
    let before = fake.jobs().len();
    fake.open_tarflow(3);
    harness.run_steps(4);
    assert_eq!(fake.jobs().len(), before, "{:?}", fake.jobs());
    // Until they want to see it again, which is asked for once.
    click(&mut harness, "From outside");
    harness.run_steps(3);
    assert!(fake.jobs().len() == before + 1 && shows(&harness, "Being read…"), "{:?}", fake.jobs());
    click(&mut harness, "World samples");
    click(&mut harness, "From outside (0)");
    harness.run_steps(3);
    assert_eq!(fake.jobs().len(), before + 1, "{:?}", fake.jobs());
    send(&mut harness, &fake, photograph(10, asked(&fake)));
    assert!(shows(&harness, "photograph.jpg"), "{:?}", super::labels(&harness));
}

#[test]
fn pictures_that_are_named_at_the_start_wait_for_the_classes_of_a_world() {
    let (mut harness, fake) = window(Prefs::default());
    super::disk::drop_in(&mut harness, ["/data/photograph.jpg"]);
    harness.run_steps(3);
    let classify = || fake.jobs().into_iter().filter(|(_, job)| matches!(job, Job::Classify { .. })).count();
    assert_eq!(classify(), 0, "{:?}", fake.jobs());
    fake.open_classes(["cat", "dog", "horse"].map(String::from).to_vec());
    harness.run_steps(4);
    let jobs = fake.jobs();
    let Some((_, Job::Classify { settings, .. })) = jobs.last() else { panic!("{jobs:?}") };
    assert_eq!((classify(), settings.prior.probabilities()), (1, &[1.0 / 3.0; 3][..]));
    send(&mut harness, &fake, photograph(10, Fit::default()));
    assert!(shows(&harness, "photograph.jpg"), "{:?}", super::labels(&harness));
}
