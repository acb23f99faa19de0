//! The panel *Experiments*: several cells chosen by mouse and keys, and their courses in one plot.

use std::path::Path;

use bayescope::gui::App;
use bayescope::run::{Run, RunFolder};
use eframe::egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::{click, glance, open, panel, run};
use super::fake::Fake;
use super::tables::read;
use super::{labels, shows};

/// A run of 16 finished cells in a window; the metrics of some of them, by their places in the plan, fall from a loss of the place.
fn watched(place: &Path, told: &[usize]) -> (Harness<'static, App>, Fake, RunFolder) {
    let (mut harness, fake) = panel();
    let folder = run(place, "mine", 16);
    for &cell in told {
        let loss = |step: usize| cell as f64 / step as f64;
        let train = |step| format!("{{\"kind\":\"train\",\"step\":{step},\"loss\":{},\"rate\":0.1}}\n", loss(step));
        let watched = format!(
            "{{\"kind\":\"watched\",\"step\":8,\"epoch\":2,\"train_loss\":0.4,\"cross_entropy\":{cell},\"aleatoric\":0.25,\
             \"epistemic\":0.5,\"expected_accuracy\":0.8}}\n"
        );
        let lines: String = (1..=8).map(train).chain([watched]).collect();
        std::fs::write(folder.cell(&folder.plan[cell].id).join("metrics.jsonl"), lines).unwrap();
    }
    open(&mut harness, &fake, place);
    (harness, fake, folder)
}

fn named(folder: &RunFolder, cell: usize) -> String {
    format!("Cell: {}", folder.plan[cell].label())
}

fn choose(harness: &mut Harness<'_, App>, modifiers: Modifiers, label: &str) {
    harness.get_by_label(label).scroll_to_me();
    harness.run_steps(6);
    harness.get_by_label(label).click_modifiers(modifiers);
    harness.run_steps(4);
}

/// Places in the plan of the chosen cells.
fn chosen(harness: &Harness<'_, App>, folder: &RunFolder) -> Vec<usize> {
    let cells = &harness.state().view().cells;
    (0..folder.plan.len()).filter(|&i| cells.contains(&folder.plan[i].id)).collect()
}

fn unfold(harness: &mut Harness<'_, App>, list: &str) {
    harness.get_by_role_and_label(Role::ComboBox, list).scroll_to_me();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::ComboBox, list).click();
    harness.run_steps(4);
}

fn from_list(harness: &mut Harness<'_, App>, list: &str, entry: &str) {
    unfold(harness, list);
    click(harness, entry);
}

#[test]
fn the_monitor_has_the_courses_of_all_cells_and_groups_them() {
    let place = tempfile::tempdir().unwrap();
    let [mine, bare] = ["mine", "bare"].map(|name| place.path().join(name));
    let (mut harness, fake, folder) = watched(&mine, &[11, 14, 15]);
    run(&bare, "bare", 16);
    open(&mut harness, &fake, &bare);
    assert!(!fake.watched().all_cells);
    harness.state_mut().show_panel("monitor");
    harness.run_steps(4);
    assert!(fake.watched().all_cells);
    for path in [&mine, &bare] {
        glance(&mut harness, &fake, path);
    }
    let line = |cell: usize| format!("mine: {}", folder.plan[cell].label());
    for cell in [11, 14, 15] {
        assert!(shows(&harness, &line(cell)), "{}: {:?}", line(cell), labels(&harness));
    }
    assert!(shows(&harness, "courses of 3 of 16 cells"), "{:?}", labels(&harness));
    assert!(shows(&harness, "no courses: its cells are finished"), "{:?}", labels(&harness));
    from_list(&mut harness, "Group and colour by", "seed");
    for cell in [11, 14, 15] {
        let seed = format!("seed = {}", folder.plan[cell].cell.seed);
        assert!(shows(&harness, &seed) && !shows(&harness, &line(cell)), "{seed}: {:?}", labels(&harness));
    }
    harness.check_accessibility();
}

#[test]
fn the_courses_of_several_cells_lie_in_one_plot() {
    let place = tempfile::tempdir().unwrap();
    let (mut harness, fake, folder) = watched(place.path(), &[11, 14, 15]);
    choose(&mut harness, Modifiers::NONE, &named(&folder, 14));
    assert!(shows(&harness, "Training of one cell"));
    choose(&mut harness, Modifiers::COMMAND, &named(&folder, 15));
    assert_eq!(chosen(&harness, &folder), [14, 15]);
    let asked = fake.watched().cells.unwrap();
    assert_eq!(asked, (place.path().to_owned(), [15, 14].map(|i| folder.plan[i].id.clone()).to_vec()));
    glance(&mut harness, &fake, place.path());
    assert!(shows(&harness, "Training of the chosen cells") && !shows(&harness, "Training of one cell"));
    let (one, two) = ("ConvNet on 800 images, seed 0", "ConvNet on 800 images, seed 1");
    let rows = |harness: &mut Harness<'_, App>, title: &str| -> Vec<[String; 3]> {
        let row = |row: &Vec<String>| [0, 1, 2].map(|i| row[i].clone());
        read(harness, title)[1..].iter().map(row).collect()
    };
    let losses = rows(&mut harness, "cross-entropy L over optimisation step");
    assert_eq!(losses, [[one, "8", "14"], [two, "8", "15"]].map(|row| row.map(str::to_owned)));
    // The training loss has every step; two seeds have a mean.
    from_list(&mut harness, "Figure of the cells", "training loss");
    click(&mut harness, "Means over seeds");
    let means = rows(&mut harness, "training loss over optimisation step");
    let mean = "ConvNet on 800 images, mean of 2 seeds";
    assert_eq!((means.len(), &means[1]), (8, &[mean, "2", "7.25"].map(str::to_owned)));
    from_list(&mut harness, "Axis of the cells", "epoch");
    let means = rows(&mut harness, "training loss over epoch");
    let epoch = folder.spec.training.epoch_steps(800) as f64;
    assert!((means[7][1].parse::<f64>().unwrap() - 8.0 / epoch).abs() < 1e-6, "{means:?}");
    unfold(&mut harness, "Axis of the cells");
    assert!(shows(&harness, "training images seen"), "{:?}", labels(&harness));
    assert!(!shows(&harness, "time (s)"), "no cell writes down times");
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    // From the last click to here, as the list has them; two of them have said nothing.
    choose(&mut harness, Modifiers::SHIFT, &named(&folder, 11));
    assert_eq!(chosen(&harness, &folder), [11, 12, 13, 14, 15]);
    glance(&mut harness, &fake, place.path());
    // The figure is made again now and then.
    harness.run_steps(40);
    assert!(shows(&harness, "5 cells chosen"), "{:?}", labels(&harness));
    assert!(shows(&harness, "Of 2 of the chosen cells no step is known"), "{:?}", labels(&harness));
    assert!(shows(&harness, "ConvNet on 400 images, seed 1"), "{:?}", labels(&harness));
    harness.check_accessibility();
    choose(&mut harness, Modifiers::COMMAND, &named(&folder, 11));
    assert_eq!(chosen(&harness, &folder), [12, 13, 14, 15]);
    choose(&mut harness, Modifiers::NONE, &named(&folder, 15));
    assert_eq!(chosen(&harness, &folder), [15]);
    click(&mut harness, "Follow the newest");
    assert!(chosen(&harness, &folder).is_empty() && fake.watched().cells.is_none());
}

#[test]
fn arrows_move_through_the_cells_shift_extends_and_space_toggles() {
    let place = tempfile::tempdir().unwrap();
    let (mut harness, _, folder) = watched(place.path(), &[]);
    choose(&mut harness, Modifiers::NONE, &named(&folder, 13));
    let mut press = |modifiers, key, expected: &[usize]| {
        harness.key_press_modifiers(modifiers, key);
        harness.run_steps(4);
        assert_eq!(chosen(&harness, &folder), expected, "after {key:?}");
    };
    let (plain, shift) = (Modifiers::NONE, Modifiers::SHIFT);
    press(plain, Key::ArrowDown, &[14]);
    press(shift, Key::ArrowUp, &[13, 14]);
    press(shift, Key::ArrowUp, &[12, 13, 14]);
    press(shift, Key::ArrowDown, &[13, 14]);
    press(plain, Key::Space, &[14]);
    press(plain, Key::Space, &[13, 14]);
    // Far up: the list scrolls along, and ends at its first cell.
    for row in (0..13).rev() {
        press(plain, Key::ArrowUp, &[row]);
    }
    let first = named(&folder, 0);
    let cell = harness.get_by_label(&first);
    assert!(cell.accesskit_node().is_focused(), "{:?}", labels(&harness));
    assert_eq!(harness.state().prefs().seed, 0, "Space in the list draws no new samples");
}

#[test]
fn a_smoothed_course_has_what_was_logged_behind_it_and_its_axes() {
    let place = tempfile::tempdir().unwrap();
    let (mut harness, fake, folder) = watched(place.path(), &[15]);
    choose(&mut harness, Modifiers::NONE, &named(&folder, 15));
    assert_eq!(chosen(&harness, &folder), [15]);
    glance(&mut harness, &fake, place.path());
    let logged = "training cross-entropy, as logged";
    assert!(!shows(&harness, logged));
    harness.get_by_role_and_label(Role::Slider, "Smoothing").set_value_accesskit(0.5);
    harness.run_steps(4);
    assert!(shows(&harness, logged), "{:?}", labels(&harness));
    for axis in ["log x", "log y"] {
        click(&mut harness, axis);
    }
    from_list(&mut harness, "Axis of the cells", "training images seen");
    assert!(shows(&harness, logged) && shows(&harness, "Training of ConvNet on 800 images, seed 1"));
    harness.check_accessibility();
}
