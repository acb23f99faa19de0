//! Every plot has its numbers as a table.

use bayescope::gui::App;
use bayescope::run::Run;
use eframe::egui::Key;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::{click, glance, open, panel, run};
use super::{bayes, fake, full, shows};

/// Titles of the plots on show, by their buttons.
fn titles(harness: &Harness<'_, App>) -> Vec<String> {
    let labels = harness.root().children_recursive().filter_map(|node| node.accesskit_node().label());
    labels.filter_map(|label| Some(label.strip_prefix("Table of ")?.to_owned())).collect()
}

/// The table of a plot, head first, as it is copied.
pub fn read(harness: &mut Harness<'_, App>, title: &str) -> Vec<Vec<String>> {
    click(harness, &format!("Table of {title}"));
    assert!(shows(harness, &format!("Table: {title}")), "the table of '{title}' did not open");
    harness.get_by_label("Copy as TSV").click();
    let text = bayes::copied(harness);
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    assert!(!shows(harness, &format!("Table: {title}")), "the table of '{title}' did not close");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Opens the table of every plot on show; the plots' titles. Each has rows, as wide as their head, and numbers in them.
pub fn all(harness: &mut Harness<'_, App>) -> Vec<String> {
    let titles = titles(harness);
    for title in &titles {
        let table = read(harness, title);
        assert!(table.len() > 1, "{title}: no rows: {table:?}");
        assert!(table.iter().all(|row| row.len() == table[0].len()), "{title}: {table:?}");
        let number = |cell: &String| cell.parse::<f64>().is_ok_and(f64::is_finite);
        assert!(table[1..].iter().all(|row| row.iter().any(number)), "{title}: a row without a number: {table:?}");
    }
    titles
}

/// The lines above the table of a plot, as it is copied.
fn origin(harness: &mut Harness<'_, App>, title: &str) -> String {
    click(harness, &format!("Table of {title}"));
    harness.get_by_label("Copy as CSV").click();
    let text = bayes::copied(harness);
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// A window with sample 7 inspected and the Bayes errors computed.
fn inspected() -> (Harness<'static, App>, fake::Fake) {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    fake.answer();
    harness.state_mut().show_panel("bayes error");
    harness.run_steps(3);
    bayes::answer_all(&mut harness, &fake);
    (harness, fake)
}

#[test]
fn tables_of_a_world_say_what_they_are_of() {
    let (mut harness, _) = inspected();
    let sha = harness.state().session().oracle.as_ref().unwrap().weights_sha256.clone();
    let knobs =
        ["# world: ", &format!("# weights SHA-256: {sha}\n"), "# τ: 1\n", "# T: 1\n", "# class prior π: uniform\n"];
    for (title, of_an_image) in [
        ("posterior p(y|x)", true),
        ("evidence map", true),
        ("Class hardness", false),
        ("Bayes errors of pairs", false),
    ] {
        let text = origin(&mut harness, title);
        assert!(knobs.iter().all(|line| text.contains(line)), "{title}: {text}");
        assert_eq!(text.to_lowercase().contains("# image: sample 7 (seed 0)\n"), of_an_image, "{title}: {text}");
    }
}

fn number(table: &[Vec<String>], row: usize, column: &str) -> f64 {
    let column = table[0].iter().position(|name| name == column).unwrap_or_else(|| panic!("{:?}", table[0]));
    table[row + 1][column].parse().unwrap()
}

#[test]
fn the_tables_of_a_world_hold_what_its_plots_show() {
    let (mut harness, fake) = inspected();
    click(&mut harness, "Draw Figure 1");
    bayes::answer_all(&mut harness, &fake);
    let mut found = all(&mut harness);
    found.sort();
    let expected = [
        "Bayes error over τ",
        "Bayes errors of pairs",
        "Class hardness",
        "Figure 1 of EBO",
        "Ranking of classes over τ",
        "evidence map",
        "posterior p(y|x)",
    ];
    assert_eq!(found, expected);
    let posterior = read(&mut harness, "posterior p(y|x)");
    let known = fake::tile(7, 1.0).posterior;
    for (class, p) in known.probabilities.iter().enumerate() {
        assert_eq!(number(&posterior, class, "posterior"), *p, "{posterior:?}");
        assert_eq!(number(&posterior, class, "log_likelihood_nats"), known.log_likelihood[class]);
    }
    // A bar a class, and each pair of classes once.
    assert_eq!(read(&mut harness, "Class hardness").len(), 1 + 10);
    assert_eq!(read(&mut harness, "Bayes errors of pairs").len(), 1 + 45);
    // Ten classes at three τ.
    assert_eq!(read(&mut harness, "Ranking of classes over τ").len(), 1 + 3 * 10);
}

#[test]
fn the_table_of_a_training_holds_its_curves() {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("training");
    fake.train(&mut harness);
    let found = all(&mut harness);
    assert!(found.contains(&"NLL of the training run".to_owned()), "{found:?}");
    let table = read(&mut harness, "NLL of the training run");
    let holds = |value: f64| table[1..].iter().any(|row| row.iter().any(|cell| cell.parse() == Ok(value)));
    // Held-out NLL of the three epochs.
    for epoch in 1..=3 {
        let nll = 900.0 + 400.0 / f64::from(epoch) + 15.0;
        assert!(holds(nll), "{nll} is not in {table:?}");
    }
}

#[test]
fn the_tables_of_an_experiment_hold_what_its_plots_show() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mine");
    let folder = run(&path, "mine", 16);
    let id = &folder.plan[15].id;
    let train =
        |step: usize| format!("{{\"kind\":\"train\",\"step\":{step},\"loss\":{},\"rate\":0.1}}\n", 1.0 / step as f64);
    std::fs::write(folder.cell(id).join("metrics.jsonl"), (1..=8).map(train).collect::<String>()).unwrap();
    open(&mut harness, &fake, &path);
    click(&mut harness, "Cell: ConvNet on 800 images, seed 1");
    glance(&mut harness, &fake, &path);
    let found = all(&mut harness);
    for title in ["scaling law", "reliability diagram", "training of one cell"] {
        assert!(found.iter().any(|one| one == title), "{title} has no table: {found:?}");
    }
    let result = folder.result(id).unwrap().unwrap();
    let bins = &result.measured.reliability.bins;
    assert_eq!(read(&mut harness, "reliability diagram").len(), 1 + 2 * bins.len());
    let course = read(&mut harness, "training of one cell");
    assert!(course.iter().any(|row| row.contains(&"4".to_owned()) && row.contains(&"0.25".to_owned())), "{course:?}");
}
