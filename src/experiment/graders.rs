//! Grade the graders: estimators of the Bayes error that see samples alone, and measures of a classifier's uncertainty, against the truth of
//! the world. The estimators get what a real dataset would give them, the drawn labels of a cell's training images with their pixels or
//! with the features of a network, or what an ensemble trained on these believes; the truth is the Bayes error of the world and the exact
//! posteriors of the test images.
//!
//! | file | what |
//! |---|---|
//! | `features` | what estimators see; those from the features of the cell's own network |
//! | `given` | features from files |
//! | `grades`, `drawn` | what all cells say of the estimators; its figures and tables |

mod drawn;
mod features;
mod given;
mod grades;

use std::borrow::Cow;
use std::path::Path;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::cell::{Cell, CellResult};
use super::images::Images;
use super::kinds::{Found, Place, check_taus};
use super::spec::placed;
use super::told::{Told, member_seed};
use super::train::{CellEvent, Job, train_cell};
use super::trained::{Trained, measuring};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::measure::grade::{self, Estimator, Sample};
use crate::measure::uncertainty::{EnsembleScores, Score, Scored, SingleScores, Truth, grade_score};
use crate::measure::{Measured, PerImage};
use crate::oracle::posterior::draw;
use crate::units::{Seed, Tau};

use features::of_features;

pub use features::Features;
pub use given::FeatureFile;
pub use grades::Grades;

/// Labels drawn for a test image, at most: all are drawn at one go, each by a random number.
const MOST_ANNOTATORS: usize = 10_000;

/// What is graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradersSpec {
    /// Base temperatures τ: worlds of different Bayes error; they stand in place of `world.tau`.
    pub taus: Vec<Tau>,
    /// Classifiers in an ensemble.
    #[serde(default = "five")]
    pub members: usize,
    /// Labels drawn for each test image from its exact posterior, as annotators would give them; 1 to 10,000.
    #[serde(default = "ten")]
    pub annotators: usize,
    /// What the estimators that learn from samples see, each in turn: pixels, features of the trained network, features from files.
    #[serde(default = "pixels", skip_serializing_if = "only_pixels")]
    pub features: Vec<Features>,
}

fn five() -> usize {
    5
}

fn ten() -> usize {
    10
}

fn pixels() -> Vec<Features> {
    vec![Features::Pixels]
}

fn only_pixels(features: &[Features]) -> bool {
    features == [Features::Pixels]
}

/// What estimators say of a world, from the training images of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grading {
    /// Estimates of the Bayes error, one an estimator.
    pub estimates: Vec<Estimated>,
    /// Scores of the uncertainty of single images: of the first classifier, then of the ensemble.
    pub scores: Vec<Scored>,
    /// The files of features that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FeatureFile>,
    /// The ensemble's mean prediction on the test images.
    pub ensemble: Measured,
}

/// An estimate of the Bayes error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// Who made it.
    pub estimator: Estimator,
    /// What it saw, where it learns from samples.
    #[serde(default, skip_serializing_if = "Features::is_pixels")]
    pub features: Features,
    /// The estimate; absent where a sentence says why.
    pub graded: Option<grade::Graded>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl Grading {
    /// How many of [`Self::scores`] are those of the first classifier alone.
    const SINGLE: usize = 2;
}

impl GradersSpec {
    /// What a cell's numbers depend on.
    pub(super) fn content(&self) -> serde_json::Value {
        let mut content = serde_json::json!({ "members": self.members, "annotators": self.annotators });
        // A cell of before there was a choice keeps its name.
        // Of files the content counts, which is not known here, and not where they lie.
        let own: Vec<Features> = self.features.iter().filter(|one| one.file().is_none()).cloned().collect();
        if !only_pixels(&own) {
            content["features"] = serde_json::json!(own);
        }
        content
    }

    /// The files of features, in order.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.features.iter().filter_map(Features::file)
    }

    /// Takes their relative paths from a folder.
    ///
    /// # Errors
    /// When the present folder cannot be told.
    pub(super) fn put_beside(&mut self, folder: &Path) -> Result<()> {
        for features in &mut self.features {
            if let Features::File(path) = features {
                *path = placed(folder, path)?;
            }
        }
        Ok(())
    }

    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        check_taus(&self.taus)?;
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
        if let Some(empty) = self.files().find(|path| path.file_name().is_none()) {
            return Err(Error::input(format!("experiment.features: {:?} is no name of a file", empty.display())));
        }
        if self.members < 2 {
            return Err(Error::input(
                "experiment.members must be at least 2: one classifier has nobody to disagree with",
            ));
        }
        if !(1..=MOST_ANNOTATORS).contains(&self.annotators) {
            return Err(Error::input(format!(
                "experiment.annotators must lie between 1 and {MOST_ANNOTATORS}, not at {}",
                self.annotators
            )));
        }
        Ok(())
    }
}

/// Trains an ensemble, and asks every estimator.
///
/// # Errors
/// As [`train_cell`].
pub fn run(
    spec: &GradersSpec,
    place: &Place<'_>,
    job: &Job<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    // What cannot be graded should be known before an ensemble is trained.
    let mut estimates = estimates(spec, place, job)?;
    let (first, members, featured) = ensemble(spec, job, events)?;
    estimates.extend(featured);
    let (test, k) = (job.test, job.test.classes);
    let all: Vec<&[f64]> = members.iter().map(Vec::as_slice).collect();
    let (single, together) = (SingleScores::new(all[0], k)?, EnsembleScores::new(&all, k)?);
    let figures = |log_q: &[f64]| -> Result<PerImage> {
        let mut figures = PerImage::new(k)?;
        figures.extend(&test.all.posterior, log_q, &test.all.labels)?;
        Ok(figures)
    };
    let (of_first, of_all) = (figures(all[0])?, figures(&together.log_mean)?);
    let mut scores = scored(&single.all(), &of_first)?;
    scores.extend(scored(&together.all(), &of_all)?);
    let counts = annotate(test, spec.annotators, Seed(job.cell.seed).split("annotators"));
    let asked = |estimator, graded: Result<grade::Graded>| {
        Estimated::of(estimator, &Features::Pixels, graded.map_err(|e| e.to_string()))
    };
    estimates.extend([
        asked(Estimator::SoftLabels, grade::soft_labels(&test.all.posterior, k)),
        asked(Estimator::LabelCounts, grade::label_counts(&counts, k)),
        asked(Estimator::PlugIn, grade::plug_in(&together.log_mean, k)),
    ]);
    let files = place.features.to_vec();
    let grading = Grading { estimates, scores, files, ensemble: of_all.measured(&measuring())? };
    Ok(CellResult { id: job.id.to_owned(), found: Some(Found::Graders(Box::new(grading))), ..first })
}

impl Estimated {
    fn of(estimator: Estimator, features: &Features, graded: std::result::Result<grade::Graded, String>) -> Self {
        let (graded, why_not) = match graded {
            Ok(graded) => (Some(graded), None),
            Err(why) => (None, Some(why)),
        };
        Self { estimator, features: features.clone(), graded, why_not }
    }

    /// Of every estimator that learns from samples the reason why it says nothing.
    fn none(features: &Features, why: &str) -> Vec<Self> {
        FROM_SAMPLES.map(|estimator| Self::of(estimator, features, Err(why.to_owned()))).into()
    }
}

/// Those that need a labelled sample alone, in the order of [`grade::grade`].
const FROM_SAMPLES: [Estimator; 6] =
    [Estimator::OneNn, Estimator::Devijver, Estimator::Knn, Estimator::Ghp, Estimator::KdePlugIn, Estimator::KdeError];

/// What can be said from the labelled training images alone: from their pixels, from their features in files.
fn estimates(spec: &GradersSpec, place: &Place<'_>, job: &Job<'_>) -> Result<Vec<Estimated>> {
    let seen: Vec<&Features> = spec.features.iter().filter(|one| **one != Features::Trained).collect();
    let n = job.cell.train_size;
    // More than they take is not even brought into memory.
    if n > grade::MOST {
        let why = format!("estimators of the Bayes error take up to {} samples, not {n}", grade::MOST);
        return Ok(seen.into_iter().flat_map(|features| Estimated::none(features, &why)).collect());
    }
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    let images = job.train.take(&(0..n).collect::<Vec<_>>())?;
    let mut all = Vec::new();
    for features in seen {
        let (x, dim) = match features.file() {
            Some(path) => {
                let file = place.features.iter().find(|file| file.path == path);
                let unplanned = || Error::file(path, "the run was planned without it");
                let (x, dim) = file.ok_or_else(unplanned)?.read((&place.pool.0, place.pool.1), &images.labels)?;
                (Cow::Owned(x), dim)
            }
            None => (Cow::Borrowed(&images.x[..]), job.test.shape.dims()),
        };
        let sample = Sample::new(&x, dim, &images.labels, job.test.classes);
        match sample.and_then(grade::grade) {
            Ok(graded) => all.extend(graded.into_iter().map(|(one, graded)| Estimated::of(one, features, graded))),
            Err(error) => all.extend(Estimated::none(features, &error.to_string())),
        }
    }
    Ok(all)
}

/// Trains the members one after another: the first one's result, log q of each on the test images, [N, K], and what estimators say of
/// the first one's features, where they are asked.
fn ensemble(
    spec: &GradersSpec,
    job: &Job<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<(CellResult, Vec<Vec<f64>>, Vec<Estimated>)> {
    let (mut first, mut log_q, mut featured) = (None, Vec::with_capacity(spec.members), Vec::new());
    let each = job.training.total_steps(job.cell.train_size);
    let mut told = Told { before: 0, total: spec.members * each, started: false, events };
    for member in 0..spec.members {
        // The first one lives in the cell's own folder: its worst images are the cell's.
        let folder = match member {
            0 => job.folder.to_owned(),
            _ => job.folder.join(format!("member-{member}")),
        };
        let seed = member_seed(&job.cell, member);
        let own = Job { cell: Cell { seed, ..job.cell }, folder: &folder, ..*job };
        told.before = member * each;
        let (result, trained) = train_cell(&own, &mut told)?;
        log_q.push(answers(&trained, job.test)?);
        if member == 0 && spec.features.contains(&Features::Trained) {
            featured = of_features(&trained, job.test)?;
        }
        first.get_or_insert(CellResult { cell: job.cell, steps: spec.members * each, ..result });
    }
    let first = first.ok_or_else(|| Error::input("an ensemble needs members"))?;
    Ok((first, log_q, featured))
}

fn answers(trained: &Trained, test: &Images) -> Result<Vec<f64>> {
    trained.log_q(test.all.x.clone())
}

/// Every score beside the truth about the classifier it belongs to.
fn scored(scores: &[(Score, &[f64])], figures: &PerImage) -> Result<Vec<Scored>> {
    let truth = Truth { aleatoric: &figures.entropy, epistemic: &figures.kl };
    scores.iter().map(|(score, values)| grade_score(*score, values, truth, &measuring())).collect()
}

/// How often each class was named by so many annotators of each image, [N, K].
fn annotate(test: &Images, annotators: usize, seed: Seed) -> Vec<u32> {
    let mut counts = vec![0; test.len() * test.classes];
    for (i, (counts, p)) in
        counts.chunks_mut(test.classes).zip(test.all.posterior.chunks_exact(test.classes)).enumerate()
    {
        let mut rng = seed.rng(i as u64);
        (0..annotators).for_each(|_| counts[draw(p, rng.random())] += 1);
    }
    counts
}
