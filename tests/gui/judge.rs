//! The panel *My classifier*: what is asked, what is shown, what is written.

use std::path::PathBuf;

use bayescope::data::Split;
use bayescope::events::Progress;
use bayescope::judge::{Candidate, ReadOptions};
use bayescope::run::JudgeModels;
use bayescope::worker::judged_images::WorstBy;
use bayescope::worker::protocol::{Event, Outcome};
use eframe::egui::Role;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, rewrite};
use super::{full, shows, tables, tasks};

fn reference(name: &str) -> PathBuf {
    std::path::absolute(format!("tests/reference/judge/{name}")).unwrap()
}

#[test]
fn networks_are_told_what_their_files_do_not_say() {
    let (mut harness, _) = full();
    click(&mut harness, "My classifier");
    rewrite(&mut harness, "Exported dataset", &reference("dataset").display().to_string());
    rewrite(&mut harness, "Model 1", "/models/mine.onnx");
    rewrite(&mut harness, "Normalisation", "stretched");
    assert!(shows(&harness, "stretched"), "what is wrong is said at once");
    rewrite(&mut harness, "Normalisation", "mean=0.5;std=0.25");
    click(&mut harness, "Copy judgement as command");
    let command = format!(
        "bayescope evaluate {} --onnx /models/mine.onnx --normalisation 'mean=0.5;std=0.25'",
        reference("dataset").display()
    );
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(&command)));
    // A state dict says nothing of itself; a folder is that of a run or a cell.
    rewrite(&mut harness, "Model 1", "/models/mine.pth");
    rewrite(&mut harness, "Scaled to side (px)", "large");
    assert!(shows(&harness, "The side large is no number of pixels"));
    rewrite(&mut harness, "Scaled to side (px)", "224");
    harness.get_by_role_and_label(Role::ComboBox, "Architecture").click();
    harness.run_steps(4);
    click(&mut harness, "ResNet-18");
    click(&mut harness, "Add model");
    rewrite(&mut harness, "Model 2", "/runs/scaling");
    click(&mut harness, "Copy judgement as command");
    let command = "--checkpoint /models/mine.pth /runs/scaling --architecture resnet-18 --side 224 --normalisation 'mean=0.5;std=0.25'";
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(command)));
    click(&mut harness, "Remove model 2");
}

#[test]
fn a_model_is_judged_shown_and_reported() {
    let (mut harness, fake) = full();
    click(&mut harness, "My classifier");
    assert!(shows(&harness, "Nothing judged yet") && shows(&harness, "Give the folder of an exported dataset"));
    rewrite(&mut harness, "Exported dataset", &reference("dataset").display().to_string());
    let predictions = reference("logits.npz");
    rewrite(&mut harness, "Model 1", &predictions.display().to_string());
    rewrite_away(&mut harness);
    click(&mut harness, "Judge");
    let (id, request) = tasks::asked::<JudgeModels>(&fake);
    assert_eq!(request.candidates, [Candidate::Predictions { path: predictions, options: ReadOptions::default() }]);
    assert_eq!(request.split, Split::Test);
    tasks::done::<JudgeModels>(&fake, id, tasks::carry_out(&request, None));
    harness.run_steps(6);
    for text in ["The Bayes gap", "% Bayes error", "pp to win", "% unavoidable", "aleatoric (unavoidable)"] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    let judged = format!("test images of {}", reference("dataset").display());
    assert!(shows(&harness, &judged), "{judged}: {:?}", super::labels(&harness));
    harness.check_accessibility();
    assert!(!tables::all(&mut harness).is_empty(), "its figures have tables");
    // Each judgement has a line of its own, however often it is made.
    let other = Candidate::Predictions { path: reference("half.npz"), options: ReadOptions::default() };
    let other = JudgeModels { candidates: vec![other], ..request };
    for _ in 0..2 {
        let made = tasks::carry_out(&other, None).made;
        made.into_iter().for_each(|made| fake.send(Event::Made(Box::new(made))));
    }
    harness.run_steps(4);
    let lines = harness.state().session().ledger.iter().map(|made| made.what.as_str());
    let lines: Vec<&str> = lines.filter(|what| what.starts_with("judgement")).collect();
    let on = format!("on {}, test", reference("dataset").display());
    assert_eq!(lines, [format!("judgement of logits {on}"), format!("judgement of half {on}")]);
    click(&mut harness, "Worst images of logits by gap");
    let asked = fake.judged();
    let [(id, request)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((request.model.as_str(), request.by, request.images.len()), ("logits", WorstBy::Gap, 20));
    let why = "these images are of another world than mnist: open digits first";
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Failed(why.into()) });
    harness.run_steps(4);
    assert!(shows(&harness, why));
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("report");
    rewrite(&mut harness, "Folder of the report", &folder.display().to_string());
    click(&mut harness, "Write report");
    for _ in 0..3000 {
        if folder.join("report.json").exists() {
            return;
        }
        harness.run_steps(1);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("no report was written");
}

/// A second model is added and removed again: the first stays.
fn rewrite_away(harness: &mut egui_kittest::Harness<'_, bayescope::gui::App>) {
    click(harness, "Add model");
    assert!(harness.query_by_label("Model 2").is_some() || shows(harness, "Model 2"));
    click(harness, "Remove model 2");
}

#[test]
fn a_judgement_says_how_it_goes_and_how_it_ended() {
    let (mut harness, fake) = full();
    click(&mut harness, "My classifier");
    rewrite(&mut harness, "Exported dataset", "/data/exported");
    rewrite(&mut harness, "Model 1", "/models/mine.npz");
    click(&mut harness, "Judge");
    let (id, _) = fake.jobs().pop().unwrap();
    assert!(shows(&harness, "On its way"), "{:?}", super::labels(&harness));
    fake.send(Event::JobStarted { id });
    let progress = Progress { done: 300, total: 2000 };
    fake.send(Event::JobProgress { id, progress, note: "images: 300 of 2000".into() });
    harness.run_steps(4);
    assert!(shows(&harness, "On its way") && shows(&harness, "A judgement is on its way."));
    harness.check_accessibility();
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(4);
    assert!(shows(&harness, "Stopped: press 'Judge' again.") && !shows(&harness, "On its way"));
    click(&mut harness, "Judge");
    let (id, _) = fake.jobs().pop().unwrap();
    assert!(!shows(&harness, "Stopped:") && shows(&harness, "On its way"));
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed("/models/mine.npz: not there".into()) });
    harness.run_steps(4);
    click(&mut harness, "Clear finished");
    assert!(shows(&harness, "/models/mine.npz: not there") && !shows(&harness, "Stopped:"));
}
