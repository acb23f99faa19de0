//! The course of a run, of whatever kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::experiment::Watched;
use crate::measure::Estimate;
use crate::run::external::{Course, ExternalSpec, StepFigures};

/// A number and its 95 % interval, where that is known.
pub type Number = (f64, Option<[f64; 2]>);

/// Whose a course is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named {
    /// What the run is called.
    pub name: String,
    /// Fields of its spec, with dots between their names.
    pub fields: BTreeMap<String, String>,
}

/// The course of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// Whose it is.
    pub of: Named,
    /// What was seen of it.
    pub steps: Steps,
    /// Whether nothing more comes.
    pub finished: bool,
    /// Whether it is one training. Of several, steps count over all; with each of them epochs begin anew, and KL rises.
    pub one_training: bool,
}

impl Track {
    /// Of an external run that is called so.
    pub fn external(name: String, spec: &ExternalSpec, course: Arc<Course>) -> Self {
        let (of, finished) = (Named::new(name).with(spec), course.finished);
        Self { of, steps: Steps::Logged(course), finished, one_training: true }
    }

    /// Where it stands with something that was seen of it; `None` where nobody said. Several trainings have no common epoch.
    pub fn at(&self, seen: &Seen, over: Over) -> Option<f64> {
        if over == Over::Epochs && !self.one_training { None } else { seen.at(over) }
    }
}

/// The steps of a run, rising.
#[derive(Debug, Clone, PartialEq)]
pub enum Steps {
    /// Of another program; shared, as there may be thousands.
    Logged(Arc<Course>),
    /// Of a cell of ours.
    Watched(Vec<Watched>),
}

impl Steps {
    /// One after the other.
    pub fn iter(&self) -> Box<dyn DoubleEndedIterator<Item = Seen> + '_> {
        match self {
            Self::Logged(course) => Box::new(course.steps().map(Seen::Logged)),
            Self::Watched(watched) => Box::new(watched.iter().copied().map(Seen::Watched)),
        }
    }
}

/// A classifier in its training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    /// As another program logged it.
    Logged(StepFigures),
    /// As a grid of ours watched it.
    Watched(Watched),
}

/// What is drawn of a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Quantity {
    #[default]
    CrossEntropy,
    Epistemic,
    ExpectedError,
    Error,
    Nll,
    TrainLoss,
    Ece,
    ExactCalibration,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::CrossEntropy,
        Self::Epistemic,
        Self::ExpectedError,
        Self::Error,
        Self::Nll,
        Self::TrainLoss,
        Self::Ece,
        Self::ExactCalibration,
    ];

    /// As it is read.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross-entropy L",
            Self::Epistemic => "epistemic KL",
            Self::ExpectedError => "expected error",
            Self::Error => "error on drawn labels",
            Self::Nll => "NLL of drawn labels",
            Self::TrainLoss => "training loss",
            Self::Ece => "ECE",
            Self::ExactCalibration => "exact calibration error",
        }
    }

    /// Its unit, if it has one.
    pub fn unit(self) -> Option<&'static str> {
        matches!(self, Self::CrossEntropy | Self::Epistemic | Self::Nll | Self::TrainLoss).then_some("nats per image")
    }

    /// What it cannot fall below in the mean: its name.
    pub fn floor(self) -> Option<&'static str> {
        match self {
            Self::CrossEntropy | Self::Nll => Some("aleatoric A"),
            Self::ExpectedError | Self::Error => Some("Bayes error"),
            // Training images are others than those that A is of, and can be learned by heart.
            Self::Epistemic | Self::TrainLoss | Self::Ece | Self::ExactCalibration => None,
        }
    }

    /// The least and the largest value that it can have.
    pub(super) fn range(self) -> [f64; 2] {
        match self {
            Self::ExpectedError | Self::Error | Self::Ece | Self::ExactCalibration => [0.0, 1.0],
            // Whatever a script logs as its training loss.
            Self::TrainLoss => [f64::NEG_INFINITY, f64::INFINITY],
            Self::CrossEntropy | Self::Epistemic | Self::Nll => [0.0, f64::INFINITY],
        }
    }
}

/// What a course is drawn over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Over {
    #[default]
    Steps,
    Epochs,
    Images,
    Seconds,
}

impl Over {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Steps, Self::Epochs, Self::Images, Self::Seconds];

    /// As it is read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "optimisation step",
            Self::Epochs => "epoch",
            Self::Images => "training images seen",
            Self::Seconds => "time (s)",
        }
    }
}

impl Seen {
    /// Steps done.
    pub fn step(&self) -> f64 {
        match self {
            Self::Logged(logged) => logged.step as f64,
            Self::Watched(watched) => watched.step as f64,
        }
    }

    /// Where its training stands; `None` where nobody said.
    fn at(&self, over: Over) -> Option<f64> {
        match (self, over) {
            (_, Over::Steps) => Some(self.step()),
            (Self::Logged(logged), Over::Epochs) => logged.epoch,
            (Self::Logged(logged), Over::Images) => logged.images.map(|images| images as f64),
            (Self::Logged(logged), Over::Seconds) => logged.seconds,
            (Self::Watched(watched), Over::Epochs) => Some(watched.epoch as f64),
            (Self::Watched(_), Over::Images | Over::Seconds) => None,
        }
    }

    /// A number of it; `None` where it is not known.
    pub fn number(&self, quantity: Quantity) -> Option<Number> {
        let whole = |Estimate { value, interval }: Estimate| Some((value, Some([interval.low, interval.high])));
        match (self, quantity) {
            (Self::Logged(logged), Quantity::CrossEntropy) => whole(logged.cross_entropy),
            (Self::Logged(logged), Quantity::Epistemic) => whole(logged.epistemic),
            (Self::Logged(logged), Quantity::ExpectedError) => whole(logged.expected_error),
            (Self::Logged(logged), Quantity::Error) => whole(logged.error),
            (Self::Logged(logged), Quantity::Nll) => whole(logged.nll),
            (Self::Logged(logged), Quantity::TrainLoss) => Some((logged.train_loss?, None)),
            (Self::Logged(logged), Quantity::Ece) => Some((logged.ece, None)),
            (Self::Logged(logged), Quantity::ExactCalibration) => Some((logged.exact_calibration_error, None)),
            (Self::Watched(watched), Quantity::CrossEntropy) => Some(watched.cross_entropy()),
            (Self::Watched(watched), Quantity::Epistemic) => Some(watched.epistemic()),
            (Self::Watched(watched), Quantity::TrainLoss) => Some((watched.train_loss, None)),
            (Self::Watched(watched), Quantity::ExpectedError) => Some(watched.expected_error()),
            (Self::Watched(_), Quantity::Error | Quantity::Nll | Quantity::Ece | Quantity::ExactCalibration) => None,
        }
    }

    /// What a quantity cannot fall below in the mean.
    pub fn floor(&self, quantity: Quantity) -> Option<f64> {
        match (self, quantity.floor()?) {
            (Self::Logged(logged), "Bayes error") => Some(logged.bayes_error.value),
            (Self::Watched(_), "Bayes error") => None,
            (Self::Logged(logged), _) => Some(logged.aleatoric.value),
            (Self::Watched(watched), _) => Some(watched.aleatoric),
        }
    }
}

impl Named {
    /// A run of this name.
    pub fn new(name: String) -> Self {
        Self { name, fields: BTreeMap::new() }
    }

    /// Adds the fields of a spec: what is a word, a number or a choice, wherever it stands in it.
    #[must_use]
    pub fn with(mut self, spec: &impl Serialize) -> Self {
        if let Ok(value) = toml::Value::try_from(spec) {
            flatten("", &value, &mut self.fields);
        }
        self
    }

    /// Whether a text stands in its name or in a field (`name = value`), capital letters or not; an empty one does.
    pub fn matches(&self, text: &str) -> bool {
        let wanted = text.trim().to_lowercase();
        let holds = |said: &str| said.to_lowercase().contains(&wanted);
        holds(&self.name) || self.fields.iter().any(|(name, value)| holds(&format!("{name} = {value}")))
    }
}

/// Hashes and lists say nothing to people who choose a field.
fn flatten(place: &str, value: &toml::Value, fields: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let name = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                flatten(&name, value, fields);
            }
        }
        toml::Value::Array(_) => {}
        toml::Value::String(text) if text.len() == 64 => {}
        toml::Value::String(text) => drop(fields.insert(place.to_owned(), text.clone())),
        other => drop(fields.insert(place.to_owned(), other.to_string())),
    }
}

/// Fields in which some courses differ from others: those worth grouping by.
pub fn differing(tracks: &[&Named]) -> Vec<String> {
    let names: BTreeSet<&String> = tracks.iter().flat_map(|track| track.fields.keys()).collect();
    let differs = |name: &&String| {
        let values: BTreeSet<Option<&String>> = tracks.iter().map(|track| track.fields.get(*name)).collect();
        values.len() > 1
    };
    names.into_iter().filter(differs).cloned().collect()
}
