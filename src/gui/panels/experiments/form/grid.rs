//! Which classifiers, on how many images, trained how.

use std::str::FromStr;

use eframe::egui::{self, TextEdit, Ui};

use crate::classifier::{Architecture, Labels, TrainingSpec};
use crate::experiment::ExperimentSpec;
use crate::experiment::form::words;
use crate::gui::glossary;
use crate::gui::panels::fields::{number, seed};
use crate::gui::widgets::hint;

/// All kinds of labels.
const LABELS: [Labels; 4] = [Labels::Drawn, Labels::Posterior, Labels::Argmax, Labels::Smoothed];

/// The whole numbers of a list.
pub fn numbers<N: FromStr>(text: &str, name: &str) -> Result<Vec<N>, String> {
    words(text).map(|word| word.parse().map_err(|_| format!("{name}: '{word}' is no whole number ≥ 0."))).collect()
}

/// The fields.
pub fn show(ui: &mut Ui, spec: &mut ExperimentSpec, sizes: &mut String, seeds: &mut String) {
    ui.horizontal_wrapped(|ui| {
        glossary::label(ui, "Architectures".into());
        choices(ui, "Architecture", &Architecture::ALL, &mut spec.grid.architectures, Architecture::label);
    });
    let chosen = &spec.grid.architectures;
    spec.overrides.retain(|architecture, _| chosen.contains(architecture));
    ui.horizontal_wrapped(|ui| {
        ui.label("Training labels").on_hover_text("What the classifiers are told about the class of an image.");
        choices(ui, "Tell", &LABELS, &mut spec.grid.labels, Labels::label);
    });
    ui.horizontal_wrapped(|ui| {
        let meaning = "Numbers of training images, separated by commas: three make a law, four a law with a floor.";
        let label = ui.label("Training images N").on_hover_text(meaning);
        ui.add(TextEdit::singleline(sizes).desired_width(270.0)).labelled_by(label.id).on_hover_text(meaning);
        let meaning = "Seeds of the images drawn, the initial weights and the order, separated by commas.";
        let label = ui.label("Seeds").on_hover_text(meaning);
        ui.add(TextEdit::singleline(seeds).desired_width(70.0)).labelled_by(label.id).on_hover_text(meaning);
    });
    let mut fixed = spec.training.steps.is_some();
    let meaning = "Every training takes the same number of steps, however many images it has. With a number of epochs, more images are more \
                   steps, too: what data bring cannot be told from what steps bring.";
    if ui.checkbox(&mut fixed, "Steps, not epochs").on_hover_text(meaning).changed() {
        let t = &mut spec.training;
        (t.epochs, t.steps) = if fixed { (0, Some(1000)) } else { (10, None) };
    }
    egui::Grid::new("experiment numbers").num_columns(4).spacing([12.0, 4.0]).show(ui, |ui| {
        let t = &mut spec.training;
        length(ui, t);
        number(ui, "Batch", &mut t.batch, " images", 0.5, "Images in one step.");
        ui.end_row();
        number(ui, "Learning rate", &mut t.learning_rate, "", 1e-5, "Peak; then a cosine down to its end.");
        number(
            ui,
            "Weight decay",
            &mut t.weight_decay,
            "",
            1e-3,
            "Weight decay per step, multiplied by the learning rate; decoupled in AdamW (BLC: 0.01).",
        );
        ui.end_row();
        number(ui, "Test images", &mut spec.test.images, " images", 10.0, "Every finished cell is measured on them.");
        let meaning = "How many of the test images are looked at while training goes on.";
        number(ui, "Watched in training", &mut spec.test.watched, " images", 5.0, meaning);
        ui.end_row();
        let meaning = "Epistemic KL that is near enough to Bayes: the forecast says how many images get there.";
        number(ui, "KL that is near Bayes", &mut spec.distance, " nats", 1e-3, meaning);
        let meaning = "Of the world's images: other seeds draw others.";
        seed(ui, "World seed", &mut spec.world.seed, 0.1, meaning);
        ui.end_row();
    });
    for (architecture, table) in &spec.overrides {
        let changes: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        hint(ui, format!("{} differs: {}", architecture.label(), changes.join(", ")));
    }
}

/// How long each training takes.
fn length(ui: &mut Ui, training: &mut TrainingSpec) {
    match &mut training.steps {
        Some(steps) => number(ui, "Steps", steps, " steps", 10.0, "Optimisation steps of every training."),
        None => number(ui, "Epochs", &mut training.epochs, " epochs", 0.2, "Passes over the training images."),
    };
}

/// A check box for each of `all`; those checked are kept in the order of `all`.
fn choices<T: Copy + PartialEq>(ui: &mut Ui, what: &str, all: &[T], chosen: &mut Vec<T>, label: fn(T) -> &'static str) {
    let mut ticked: Vec<_> = all.iter().map(|&one| (label(one), chosen.contains(&one))).collect();
    if boxes(ui, what, &mut ticked) {
        *chosen = all.iter().zip(ticked).filter(|(_, (_, ticked))| *ticked).map(|(&one, _)| one).collect();
    }
}

/// A check box for each label. Returns whether one changed.
pub fn boxes(ui: &mut Ui, what: &str, all: &mut [(&'static str, bool)]) -> bool {
    let mut changed = false;
    for (label, ticked) in all {
        let name = format!("{what} {label}");
        let shown = glossary::explain(ui.checkbox(ticked, *label), &name);
        changed |= shown.accessible_name(name).changed();
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::form::list;

    #[test]
    fn lists_are_read_as_they_are_written() {
        assert_eq!(numbers::<usize>(&list(&[100, 3200]), "N"), Ok(vec![100, 3200]));
        assert_eq!(numbers::<u64>("0;1  2\n", "Seeds"), Ok(vec![0, 1, 2]));
        assert!(numbers::<usize>("1.5", "N").unwrap_err().contains("'1.5'"));
    }
}
