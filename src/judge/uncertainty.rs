//! Uncertainty of other programs: members of an ensemble, scores an image, sets of classes, held
//! against the truth of a dataset.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::alarms::{self, Alarm, LabelCheck, examine};
use super::predictions::{Pairing, understood};
use super::{Kind, Note, Origin, PosteriorSource, Truth};
use crate::data::{Archive, Array, Types, Values};
use crate::error::{Error, Result, check_name};
use crate::events::{Events, Progress};
use crate::measure::uncertainty::{
    EnsembleScores, RiskCoverage, Score, Scored, SetCoverage, SingleScores, Truth as True, grade_score,
};
use crate::measure::{Bootstrap, Estimate, NATS, PerImage, SHARE};
use crate::units::Seed;

/// Most numbers of all members: 2 GiB of float64.
const NUMBERS: usize = 1 << 28;

/// What the uncertainty in a file is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UncertaintyReport {
    /// World and dataset.
    pub origin: Origin,
    /// Where the posteriors came from.
    pub source: PosteriorSource,
    /// Images.
    pub n: usize,
    /// Members of the ensemble, where there is one.
    pub members: Option<usize>,
    /// The array of the predictions that are scored; absent where the mean of the members is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictions: Option<String>,
    /// Of the classifier, or the mean of the members; absent for sets alone.
    pub classifier: Option<ScoredClassifier>,
    /// Each score.
    pub scores: Vec<GradedScore>,
    /// Sets of classes by the name of their array.
    pub sets: Vec<NamedSets>,
    /// What the predictions were taken for, and what was done to them.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// What no honest classifier does, of the one that is scored.
    #[serde(default)]
    pub alarms: Vec<Alarm>,
    /// Arrays that were not understood.
    pub ignored: Vec<String>,
}

/// The classifier whose uncertainty is scored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoredClassifier {
    /// mean H(p), nats.
    pub aleatoric: Estimate,
    /// mean KL(p‖q), nats.
    pub epistemic: Estimate,
    /// mean 1 − p(argmax q).
    pub expected_error: Estimate,
}

/// A score and its grades.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradedScore {
    /// Its name: that of its array, or of what was computed from members or predictions.
    pub name: String,
    /// Ranks, ROC curve and bias against the true parts.
    pub scored: Scored,
    /// What it is worth to a classifier that may leave images to others.
    pub risk: RiskCoverage,
}

/// Sets of classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedSets {
    /// The name of their array.
    pub name: String,
    /// What they cover.
    pub found: SetCoverage,
}

/// log q [.., n, K] of an array.
struct Predicted {
    /// The array's name.
    name: String,
    log_q: Vec<f64>,
    /// Places where q was 0.
    clamped: Vec<usize>,
}

/// Arrays of a file, by what their shapes make of them, in the order of the images and classes.
#[derive(Default)]
struct Given {
    members: Option<Predicted>,
    classifier: Option<Predicted>,
    scores: Vec<(String, Vec<f64>)>,
    sets: Vec<(String, Vec<bool>)>,
    notes: Vec<Note>,
    ignored: Vec<String>,
}

/// Judges the uncertainty in an `.npz` archive: floating-point [M, N, K] are members, [N, K] the
/// predictions of one classifier (both of that kind, or what each is seen to be), [N] scores; booleans or whole numbers
/// [N, K] sets. Rows and columns are paired with the images and classes of `truth` as those of predictions: by an array of ids and
/// one of the names of the classes, else by their order. Every score and array of sets is reported.
///
/// # Errors
/// When there is a single image. Names the file and the array: damage, ids or columns that do not fit, numbers that are no
/// predictions, scores without a classifier, nothing to judge; or the caller stops.
pub fn judge_uncertainty(
    path: &Path,
    truth: &Truth,
    kind: Option<Kind>,
    seed: Seed,
    events: &mut dyn Events<Progress>,
) -> Result<UncertaintyReport> {
    truth.check_enough()?;
    let bad = |cause: String| Error::file(path, cause);
    let given = Given::read(path, truth, kind)?;
    let bootstrap = Bootstrap::new(seed);
    let mut report = UncertaintyReport {
        origin: truth.origin.clone(),
        source: truth.source,
        n: truth.len(),
        members: given.members.as_ref().map(|members| members.log_q.len() / truth.posterior.len()),
        predictions: given.classifier.as_ref().map(|classifier| classifier.name.clone()),
        classifier: None,
        scores: Vec::new(),
        sets: Vec::new(),
        notes: given.notes.iter().cloned().chain(Note::rounded(truth)).collect(),
        alarms: Vec::new(),
        ignored: given.ignored.clone(),
    };
    let mut progress = Progress { done: 0, total: given.sets.len() };
    if let Some((q, computed)) = given.computed(truth).map_err(bad)? {
        report.notes.extend(Note::infinite(truth, &q, &given.zeros(truth)));
        let theirs = given.scores.into_iter().map(|(name, values)| (Score::Given, name, values));
        let scores: Vec<NamedScore> = computed.into_iter().chain(theirs).collect();
        progress.total += alarms::STEPS + scores.len();
        events.report(progress)?;
        let mut step = || {
            progress.done += 1;
            events.report(progress)
        };
        report.grade(truth, &q, scores, (&bootstrap, seed), &mut step)?;
    } else if let Some((name, _)) = given.scores.first() {
        return Err(bad(format!(
            "array {name}: a score is held against KL(p‖q) of a classifier; add its predictions [{}, {}] or those of members",
            truth.len(),
            truth.classes
        )));
    }
    for (name, sets) in given.sets {
        let found = SetCoverage::of(&sets, &truth.posterior, &truth.labels, truth.classes, &bootstrap)?;
        report.sets.push(NamedSets { name, found });
        progress.done += 1;
        events.report(progress)?;
    }
    if report.classifier.is_none() && report.sets.is_empty() {
        let (n, classes) = (truth.len(), truth.classes);
        return Err(bad(format!(
            "has no array of shape [members, {n}, {classes}] or [{n}, {classes}]: nothing to judge"
        )));
    }
    Ok(report)
}

impl UncertaintyReport {
    /// Grades scores of the classifier `q` [n, K], log-probabilities; examines it as [`judge`](super::judge) does. `step`
    /// is called [`alarms::STEPS`] times, and after each score.
    fn grade(
        &mut self,
        truth: &Truth,
        q: &[f64],
        scores: Vec<NamedScore>,
        (bootstrap, seed): (&Bootstrap, Seed),
        step: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut images = PerImage::new(truth.classes)?;
        images.extend(&truth.posterior, q, &truth.labels)?;
        images.doubts = truth.doubts(&images.decision);
        let [of_class, of_decision] = images.in_doubt();
        let risk: Vec<f64> = images.expected.iter().map(|expected| 1.0 - expected).collect();
        let kl: Vec<f64> = images.kl.iter().map(|kl| kl.max(0.0)).collect();
        let parts = True { aleatoric: &images.entropy, epistemic: &kl };
        self.classifier = Some(ScoredClassifier {
            aleatoric: bootstrap.mean_of_seen(&images.entropy, of_class, [0.0, (truth.classes as f64).ln()]),
            epistemic: bootstrap.mean(&kl, NATS),
            expected_error: bootstrap.mean_of_seen(&risk, of_decision, SHARE),
        });
        self.alarms = examine(truth, &LabelCheck::of(truth), q, &images, seed, step)?.alarms;
        for (score, name, values) in scores {
            let scored = grade_score(score, &values, parts, bootstrap)?;
            self.scores.push(GradedScore { name, scored, risk: RiskCoverage::of(&values, &risk, bootstrap)? });
            step()?;
        }
        Ok(())
    }
}

/// A score of every image, and its name in the report.
type NamedScore = (Score, String, Vec<f64>);

/// A classifier's log-probabilities, and the scores that are computed from it and from members.
type Computed = (Vec<f64>, Vec<NamedScore>);

impl Given {
    fn read(path: &Path, truth: &Truth, kind: Option<Kind>) -> Result<Self> {
        let mut archive = Archive::open(path, Types::All)?;
        let pairing = Pairing::read(&mut archive, truth)?;
        let mut given = Self { notes: pairing.notes.clone(), ..Self::default() };
        for name in archive.names() {
            check_name(&name).map_err(|cause| Error::file(path, cause))?;
            if !pairing.is_said_by(&name) {
                given.add(&mut archive, name, (truth, &pairing), kind)?;
            }
        }
        Ok(given)
    }

    /// Adds an array by its shape.
    fn add(
        &mut self,
        archive: &mut Archive<'_>,
        name: String,
        (truth, pairing): (&Truth, &Pairing),
        kind: Option<Kind>,
    ) -> Result<()> {
        let path = archive.path().to_owned();
        let wrong = |cause: String| Error::file(&path, format!("array {name}: {cause}"));
        let (rows, n, classes) = (pairing.rows, truth.len(), truth.classes);
        let (shape, _) = archive.shape(&name)?.unwrap_or_default();
        let fits = |rows: usize| shape.ends_with(&[rows, classes]) && shape.len() <= 3 || shape == [rows];
        if !fits(rows) {
            if fits(n) {
                return Err(wrong(format!("its shape {shape:?} does not fit the {rows} ids of this file")));
            }
            self.ignored.push(name);
            return Ok(());
        }
        let numbers = shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        let Some(numbers) = numbers.filter(|numbers| *numbers <= NUMBERS) else {
            return Err(wrong(format!("its shape {shape:?} has more than {NUMBERS} numbers")));
        };
        let Some(Array { values, .. }) = archive.read_known(&name, 8 * numbers as u64)? else { return Ok(()) };
        match (&shape[..], values) {
            ([_, _], values @ (Values::U8(_) | Values::I64(_))) => {
                let values = values.integers().unwrap_or_default();
                if let Some(other) = values.iter().find(|value| ![0, 1].contains(*value)) {
                    return Err(wrong(format!("holds {other}; a set says 1 for a class in it, 0 for others")));
                }
                let sets: Vec<bool> = values.into_iter().map(|value| value == 1).collect();
                self.sets.push((name, pairing.of_classes(&sets)));
            }
            (shape, values) => match (shape, values.floats()) {
                ([_], Some(values)) => {
                    let values = pairing.of_images(&values);
                    if let Some(i) = values.iter().position(|value| !value.is_finite()) {
                        return Err(wrong(format!("image {i}: the score is {}", values[i])));
                    }
                    self.scores.push((name, values));
                }
                ([_, _], Some(values)) if self.classifier.is_none() => {
                    let found = self.predicted(pairing.of_classes(&values), truth, (kind, &name)).map_err(wrong)?;
                    self.classifier = Some(found);
                }
                ([_, _, _], Some(values)) if self.members.is_none() && !values.is_empty() => {
                    let found = self.predicted(pairing.of_classes(&values), truth, (kind, &name)).map_err(wrong)?;
                    self.members = Some(found);
                }
                _ => self.ignored.push(name),
            },
        }
        Ok(())
    }

    /// log q of an array by its name, of one classifier or of all members.
    fn predicted(
        &mut self,
        values: Vec<f64>,
        truth: &Truth,
        (told, name): (Option<Kind>, &str),
    ) -> Result<Predicted, String> {
        let (n, several) = (truth.len(), values.len() > truth.len() * truth.classes);
        let named = |row: usize| match several {
            true => format!("member {}, image {}", row / n, row % n),
            false => format!("image {row}"),
        };
        let (_, log_q, clamped) = understood(values, truth.classes, (told, Some(name)), &named, &mut self.notes)?;
        Ok(Predicted { name: name.to_owned(), log_q, clamped })
    }

    /// The classifier that is scored, the given one before the mean of the members, and the scores
    /// that follow from both. Where there are both, those of the given one bear its array's name.
    fn computed(&self, truth: &Truth) -> Result<Option<Computed>, String> {
        let owned = |(score, values): (Score, &[f64])| (score, score.name().to_owned(), values.to_vec());
        let named = |of: &Predicted, error: Error| format!("array {}: {error}", of.name);
        let mut computed = None;
        if let Some(of) = &self.members {
            let members: Vec<&[f64]> = of.log_q.chunks(truth.posterior.len()).collect();
            let scores = EnsembleScores::new(&members, truth.classes).map_err(|error| named(of, error))?;
            let all = scores.all().map(owned).into();
            computed = Some((scores.log_mean, all));
        }
        let Some(of) = &self.classifier else { return Ok(computed) };
        let scores = SingleScores::new(&of.log_q, truth.classes).map_err(|error| named(of, error))?;
        let mut all = scores.all().map(owned);
        if computed.is_some() {
            all.iter_mut().for_each(|(_, name, _)| *name = format!("{}: {name}", of.name));
        }
        let of_members = computed.map(|(_, of_members)| of_members);
        Ok(Some((of.log_q.clone(), all.into_iter().chain(of_members.into_iter().flatten()).collect())))
    }

    /// Places in [n, K] where the classifier that is scored had probability 0: of the mean of the members, where all had.
    fn zeros(&self, truth: &Truth) -> Vec<usize> {
        let size = truth.posterior.len();
        let Some(Predicted { log_q, clamped, .. }) = self.classifier.as_ref().or(self.members.as_ref()) else {
            return Vec::new();
        };
        let mut zeros = vec![0; size];
        clamped.iter().for_each(|at| zeros[at % size] += 1);
        (0..size).filter(|&at| zeros[at] == log_q.len() / size).collect()
    }
}
