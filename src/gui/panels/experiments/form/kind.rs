//! Which experiment, and what only it has: its temperatures, shifts, strategies.

mod shift;

use eframe::egui::{self, TextEdit, Ui};

use super::super::super::fields::number;
use super::grid::{choices, list};
use super::placed;
use crate::experiment::{
    ActiveSpec, Experiment, ExperimentSpec, Features, GradersSpec, PRESETS, Preset, Strategy, TemperatureSpec,
};
use crate::gui::glossary::explain;
use crate::gui::widgets::hint;
use crate::units::Tau;
use shift::ShiftFields;

/// What of an experiment is edited as text.
#[derive(Default)]
pub struct KindFields {
    taus: String,
    /// Paths of files of features, apart by semicolons.
    files: String,
    shift: ShiftFields,
}

/// The kinds, as the presets have them: name in specs, label, and what they ask.
#[derive(Default)]
pub struct Kinds(Vec<(&'static str, &'static str, &'static str)>);

impl Kinds {
    /// The row of kinds; the preset to load, where another kind was chosen.
    pub fn show(&mut self, ui: &mut Ui, spec: &ExperimentSpec) -> Option<&'static Preset> {
        if self.0.is_empty() {
            let kinds = PRESETS.iter().filter_map(|preset| Some(preset.spec().ok()?.experiment));
            self.0 = kinds.map(|kind| (kind.name(), kind.label(), kind.question())).collect();
            self.0.dedup();
        }
        let mut chosen = None;
        ui.horizontal_wrapped(|ui| {
            for (name, label, question) in &self.0 {
                let button = ui.selectable_label(spec.experiment.name() == *name, *label).on_hover_text(*question);
                if button.accessible_name(format!("New experiment: {label}")).clicked() {
                    chosen = Some(*name);
                }
            }
        });
        hint(ui, spec.experiment.question());
        PRESETS.iter().find(|preset| Some(preset.name) == chosen.map(|name| format!("{name}-quick")).as_deref())
    }
}

impl KindFields {
    /// Those of a spec.
    pub fn of(spec: &ExperimentSpec) -> Self {
        let texts = |taus: &[Tau]| list(&taus.iter().map(|tau| tau.get()).collect::<Vec<_>>());
        let taus = match &spec.experiment {
            Experiment::Temperature(TemperatureSpec { taus }) | Experiment::Graders(GradersSpec { taus, .. }) => {
                texts(taus)
            }
            _ => String::new(),
        };
        let shift = match &spec.experiment {
            Experiment::Shift(spec) => ShiftFields::of(spec),
            _ => ShiftFields::default(),
        };
        let files: Vec<String> = spec.experiment.files().iter().map(|path| path.display().to_string()).collect();
        Self { taus, files: files.join("; "), shift }
    }

    /// The fields.
    pub fn show(&mut self, ui: &mut Ui, spec: &mut ExperimentSpec) {
        match &mut spec.experiment {
            Experiment::Scaling | Experiment::SelfValidation | Experiment::SoftLabels => {}
            Experiment::Temperature(_) => self.taus(ui),
            Experiment::Graders(own) => {
                self.taus(ui);
                ui.horizontal(|ui| {
                    number(
                        ui,
                        "Members",
                        &mut own.members,
                        " classifiers",
                        0.1,
                        "Of the ensemble that is trained in every cell.",
                    );
                });
                ui.horizontal_wrapped(|ui| {
                    explain(ui.label("Estimators see"), "Estimators see");
                    choices(ui, "Estimators see", &Features::OWN, &mut own.features, |features| features.kind());
                });
                self.files(ui);
            }
            Experiment::ActiveLearning(own) => active(ui, own),
            Experiment::Shift(own) => self.shift.show(ui, own),
        }
    }

    fn files(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            let meaning = "Features of the training images that a network of your own made, as .npz files, apart by semicolons. For every \
                           RUN/pool/train-….npz a file has two arrays of that name: train-…, a row of numbers an image, and train-…-y, the \
                           pool's labels. May be empty.";
            let label = ui.label("Features from files").on_hover_text(meaning);
            ui.add(TextEdit::singleline(&mut self.files).desired_width(270.0))
                .labelled_by(label.id)
                .on_hover_text(meaning);
        });
    }

    fn taus(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            let meaning = "Base temperatures τ, apart by commas: a world each, from easy to hard.";
            let label = ui.label("Temperatures τ").on_hover_text(meaning);
            ui.add(TextEdit::singleline(&mut self.taus).desired_width(270.0))
                .labelled_by(label.id)
                .on_hover_text(meaning);
        });
    }

    /// The experiment of the fields, or what is wrong with them.
    pub fn ready(&self, experiment: &Experiment) -> Result<Experiment, String> {
        Ok(match experiment {
            Experiment::Temperature(_) => Experiment::Temperature(TemperatureSpec { taus: self.read_taus()? }),
            Experiment::Graders(own) => {
                let (taus, features) = (self.read_taus()?, self.read_features(&own.features)?);
                Experiment::Graders(GradersSpec { taus, features, ..own.clone() })
            }
            Experiment::Shift(own) => Experiment::Shift(self.shift.ready(own)?),
            other => other.clone(),
        })
    }

    /// What is ticked, then the files.
    fn read_features(&self, chosen: &[Features]) -> Result<Vec<Features>, String> {
        let ticked = chosen.iter().filter(|features| features.file().is_none()).cloned().map(Ok);
        let files = self.files.split(';').map(str::trim).filter(|path| !path.is_empty());
        ticked.chain(files.map(|path| placed(path).map(Features::File))).collect()
    }

    fn read_taus(&self) -> Result<Vec<Tau>, String> {
        let words = self.taus.split([',', ';', ' ', '\n']).map(str::trim).filter(|word| !word.is_empty());
        let tau = |word: &str| {
            let number = word.parse().map_err(|_| format!("Temperatures τ: '{word}' is no number."))?;
            Tau::new(number).map_err(|error| error.to_string())
        };
        words.map(tau).collect()
    }
}

fn active(ui: &mut Ui, own: &mut ActiveSpec) {
    ui.horizontal_wrapped(|ui| {
        ui.label("Strategies").on_hover_text("Who chooses the images whose labels are bought.");
        choices(ui, "Strategy", &Strategy::ALL, &mut own.strategies, Strategy::label);
    });
    egui::Grid::new("active learning numbers").num_columns(4).spacing([12.0, 4.0]).show(ui, |ui| {
        number(ui, "Pool", &mut own.pool, " images", 10.0, "Images of the world whose labels can be bought.");
        number(
            ui,
            "At the start",
            &mut own.initial,
            " labels",
            1.0,
            "Chosen at random, the same ones for every strategy.",
        );
        ui.end_row();
        number(ui, "A round", &mut own.batch, " labels", 1.0, "Bought before the classifier is trained anew.");
        number(ui, "Members", &mut own.members, " classifiers", 0.1, "Of the ensemble that BALD asks.");
        ui.end_row();
    });
    hint(ui, "Training images N is the budget: how many labels are bought in all.");
}
