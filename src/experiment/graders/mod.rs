//! Grade the graders: estimators of the Bayes error from samples, and measures of a classifier's
//! uncertainty, against the truth of the world. Estimators get what a real dataset would give:
//! drawn labels with pixels or features, or an ensemble's belief. The truth is the Bayes error of
//! the world and the exact posteriors of the test images.
//!
//! | file | what |
//! |---|---|
//! | `spec` | what an experiment is told, and what a cell finds |
//! | `run` | one cell: an ensemble trained, every estimator asked |
//! | `features` | what estimators see; those from the features of the cell's own network |
//! | `grades`, `figures` | what all cells say of the estimators; its figures and tables |

mod features;
mod figures;
mod grades;
mod run;
mod spec;

use std::borrow::Cow;
use std::path::Path;

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::form::{Choices, Field, chosen, count, text, typed_path};
use super::kind::{About, CellPlace, Experiment, Kind};
use super::output::Analysis;
use super::presets::preset;
use super::spec::ExperimentSpec;
use super::taus;
use super::train::{CellEvent, CellJob};
use crate::data::in_folder;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::units::Tau;
use spec::{is_two, only_pixels};

pub use features::Features;
pub use grades::Grades;
pub use spec::{Estimated, GradersSpec, Grading};

pub(super) const ABOUT: About = About {
    name: "graders",
    label: "Grade the graders",
    question: "Which estimators of the Bayes error and of uncertainty can be trusted?",
    presets: &[preset!("graders-quick"), preset!("graders")],
};

/// Labels drawn for a test image, at most: all are drawn at once, each by a random number.
const MOST_ANNOTATORS: usize = 10_000;

/// Labels of the fields of its form.
const MEMBERS: &str = "Members";
const SEE: &str = "Estimators see";
const FILES: &str = "Features from files";

impl Kind for GradersSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn taus(&self) -> &[Tau] {
        &self.taus
    }

    fn wants_bayes_error(&self) -> bool {
        true
    }

    fn content(&self, _spec: &ExperimentSpec, _cell: &Cell) -> Option<serde_json::Value> {
        let mut content = serde_json::json!({ "members": self.members, "annotators": self.annotators });
        // A cell of before there was a choice keeps its name.
        // Of files the content counts, which is not known here, and not where they lie.
        let own: Vec<Features> = self.features.iter().filter(|one| one.file().is_none()).cloned().collect();
        if !only_pixels(&own) {
            content["features"] = serde_json::json!(own);
        }
        if !is_two(&self.sharpening) {
            content["sharpening"] = serde_json::json!(self.sharpening);
        }
        Some(content)
    }

    fn files(&self) -> Vec<&Path> {
        self.feature_files().collect()
    }

    /// What features permit is measured by them.
    fn needs_posteriors(&self) -> bool {
        true
    }

    fn reads_beside_training(&self) -> bool {
        true
    }

    fn relative_to(&self, folder: &Path) -> Result<Option<Experiment>> {
        let mut spec = self.clone();
        for features in &mut spec.features {
            if let Features::File(path) = features {
                *path = in_folder(folder, path)?;
            }
        }
        Ok(Some(Experiment::new(spec)))
    }

    fn trained_on(&self, cell: &Cell) -> Vec<usize> {
        vec![cell.train_size; self.members]
    }

    fn trainings(&self, _largest: usize) -> usize {
        self.members
    }

    fn validate(&self, _spec: &ExperimentSpec) -> Result<()> {
        taus::check(&self.taus)?;
        let repeated = (1..self.features.len()).any(|i| self.features[..i].contains(&self.features[i]));
        if self.features.is_empty() || repeated {
            let known = r#""pixels", "trained" or { file = "….npz" }"#;
            return Err(Error::input(format!("experiment.features must name {known}, one or several, each once")));
        }
        // In figures a file goes by its name.
        let names: Vec<Cow<'_, str>> = self.features.iter().map(Features::label).collect();
        if let Some(at) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            return Err(Error::input(format!("experiment.features: two files are called {}", names[at])));
        }
        if let Some(empty) = self.feature_files().find(|path| path.file_name().is_none()) {
            return Err(Error::input(format!("experiment.features: {:?} is no name of a file", empty.display())));
        }
        if self.members < 2 {
            return Err(Error::input(
                "experiment.members must be at least 2: one classifier has nobody to disagree with",
            ));
        }
        if !(self.sharpening.is_finite() && self.sharpening > 0.0) {
            return Err(Error::input(format!(
                "experiment.sharpening must be above 0, not {}: soft labels are raised to this power",
                self.sharpening
            )));
        }
        if !(1..=MOST_ANNOTATORS).contains(&self.annotators) {
            return Err(Error::input(format!(
                "experiment.annotators must lie between 1 and {MOST_ANNOTATORS}, not at {}",
                self.annotators
            )));
        }
        Ok(())
    }

    fn run(&self, place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        run::run(self, place, job, events)
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(Grades::of(spec, self, cells, truths)))
    }

    fn fields(&self) -> Vec<Field> {
        let see = Features::OWN.map(|features| (features.kind(), self.features.contains(&features)));
        let files: Vec<String> = self.feature_files().map(|path| path.display().to_string()).collect();
        let meaning = "Features of the training images that a network of your own made, as .npz files, apart by semicolons. For every \
                       RUN/pool/train-….npz a file has two arrays of that name: train-…, a row of numbers an image, and train-…-y, the \
                       pool's labels. May be empty.";
        let members = "Of the ensemble that is trained in every cell.";
        vec![
            taus::field(&self.taus),
            Field::count(MEMBERS, members, " classifiers", 0.1, self.members),
            Field::Choices(Choices { label: SEE, meaning: "", each: SEE, all: see.into() }),
            Field::text(FILES, meaning, files.join("; ")),
        ]
    }

    /// Features are those that are ticked, then the files.
    fn with_fields(&self, fields: &[Field]) -> Result<Option<Experiment>, String> {
        let files = text(fields, FILES).split(';').map(str::trim).filter(|path| !path.is_empty());
        let files = files.map(|path| typed_path(path).map(Features::File));
        let own: Vec<Features> = self.features.iter().filter(|one| one.file().is_none()).cloned().collect();
        let own = chosen(fields, SEE, &Features::OWN, &own).into_iter().map(Ok);
        let features = own.chain(files).collect::<Result<_, _>>()?;
        let (taus, members) = (taus::of_fields(fields)?, count(fields, MEMBERS));
        Ok(Some(Experiment::new(Self { taus, members, features, ..self.clone() })))
    }
}
