//! Uncertainty of other programs: members of an ensemble, scores an image, sets of classes, held
//! against the truth of a dataset.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::arrays::single_text;
use super::predictions::understood;
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
    /// Of the classifier, or the mean of the members; absent for sets alone.
    pub classifier: Option<ScoredClassifier>,
    /// Each score.
    pub scores: Vec<GradedScore>,
    /// Sets of classes by the name of their array.
    pub sets: Vec<NamedSets>,
    /// What the predictions were taken for, and what was done to them.
    #[serde(default)]
    pub notes: Vec<Note>,
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
    /// Its name: that of its array, or of what was computed from members.
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

/// Arrays of a file, by what their shapes make of them.
#[derive(Default)]
struct Given {
    members: Vec<Vec<f64>>,
    classifier: Option<Vec<f64>>,
    scores: Vec<(String, Vec<f64>)>,
    sets: Vec<(String, Vec<bool>)>,
    notes: Vec<Note>,
    ignored: Vec<String>,
}

/// Judges the uncertainty in an `.npz` archive: floating-point [M, N, K] are members, [N, K] the
/// predictions of one classifier (both of that kind, or what each is seen to be), [N] scores; booleans or whole numbers
/// [N, K] sets. Rows are the images of `truth`, columns its classes. Every score and array of sets is reported.
///
/// # Errors
/// Names the file and the array: damage, numbers that are no predictions, scores without a
/// classifier, nothing to judge; or the caller stops.
pub fn judge_uncertainty(
    path: &Path,
    truth: &Truth,
    kind: Option<Kind>,
    seed: Seed,
    events: &mut dyn Events<Progress>,
) -> Result<UncertaintyReport> {
    let bad = |cause: String| Error::file(path, cause);
    let given = Given::read(path, truth, kind)?;
    let bootstrap = Bootstrap::new(seed);
    let mut report = UncertaintyReport {
        origin: truth.origin.clone(),
        source: truth.source,
        n: truth.len(),
        members: (!given.members.is_empty()).then_some(given.members.len()),
        classifier: None,
        scores: Vec::new(),
        sets: Vec::new(),
        notes: given.notes.clone(),
        ignored: given.ignored.clone(),
    };
    let mut progress = Progress { done: 0, total: given.sets.len() };
    if let Some((q, computed)) = given.computed(truth.classes)? {
        let theirs = given.scores.into_iter().map(|(name, values)| (Score::Given, name, values));
        let computed = computed.into_iter().map(|(score, values)| (score, score.name().to_owned(), values));
        let scores: Vec<(Score, String, Vec<f64>)> = computed.chain(theirs).collect();
        progress.total += scores.len();
        events.report(progress)?;
        let mut step = || {
            progress.done += 1;
            events.report(progress)
        };
        report.grade(truth, &q, scores, &bootstrap, &mut step)?;
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
    /// Grades scores of the classifier `q` [n, K], log-probabilities; `step` is called after each.
    fn grade(
        &mut self,
        truth: &Truth,
        q: &[f64],
        scores: Vec<(Score, String, Vec<f64>)>,
        bootstrap: &Bootstrap,
        step: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut images = PerImage::new(truth.classes)?;
        images.extend(&truth.posterior, q, &truth.labels)?;
        let risk: Vec<f64> = images.expected.iter().map(|expected| 1.0 - expected).collect();
        let doubts: Vec<f64> = images.best.iter().map(|best| 1.0 - best).collect();
        let kl: Vec<f64> = images.kl.iter().map(|kl| kl.max(0.0)).collect();
        let parts = True { aleatoric: &images.entropy, epistemic: &kl };
        self.classifier = Some(ScoredClassifier {
            aleatoric: bootstrap.mean_in_doubt(&images.entropy, &doubts, [0.0, (truth.classes as f64).ln()]),
            epistemic: bootstrap.mean(&kl, NATS),
            expected_error: bootstrap.mean_in_doubt(&risk, &risk, SHARE),
        });
        for (score, name, values) in scores {
            let scored = grade_score(score, &values, parts, bootstrap)?;
            self.scores.push(GradedScore { name, scored, risk: RiskCoverage::of(&values, &risk, bootstrap)? });
            step()?;
        }
        Ok(())
    }
}

/// A classifier's log-probabilities, and the scores that are computed from it.
type Computed = (Vec<f64>, Vec<(Score, Vec<f64>)>);

impl Given {
    fn read(path: &Path, truth: &Truth, kind: Option<Kind>) -> Result<Self> {
        let (n, classes) = (truth.len(), truth.classes);
        let mut archive = Archive::open(path, Types::All)?;
        let mut given = Self::default();
        for name in archive.names() {
            let wrong = |cause: String| Error::file(path, format!("array {name}: {cause}"));
            check_name(&name).map_err(|cause| Error::file(path, cause))?;
            if let Some(hash) = own_hash(&name, truth) {
                let found = archive.require(&name).map(single_text)?;
                if found.zip(hash).is_some_and(|(found, hash)| !found.eq_ignore_ascii_case(hash)) {
                    return Err(wrong("is that of another world or dataset".into()));
                }
                continue;
            }
            let (shape, _) = archive.shape(&name)?.unwrap_or_default();
            let fits = shape.ends_with(&[n, classes]) && shape.len() <= 3 || shape == [n];
            let numbers = shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
            if !fits {
                given.ignored.push(name);
                continue;
            }
            if numbers.is_none_or(|numbers| numbers > NUMBERS) {
                return Err(wrong(format!("its shape {shape:?} has more than {NUMBERS} numbers")));
            }
            let members = if shape.len() == 3 { shape[0] } else { 1 };
            let known = truth.table_bytes().saturating_mul(members as u64);
            let Some(Array { values, .. }) = archive.read_known(&name, known)? else { continue };
            match (&shape[..], values) {
                ([_, _], values @ (Values::U8(_) | Values::I64(_))) => {
                    let values = values.integers().unwrap_or_default();
                    if let Some(other) = values.iter().find(|value| ![0, 1].contains(*value)) {
                        return Err(wrong(format!("holds {other}; a set says 1 for a class in it, 0 for others")));
                    }
                    given.sets.push((name, values.into_iter().map(|value| value == 1).collect()));
                }
                (shape, values) => match (shape, values.floats()) {
                    ([_], Some(values)) => given.scores.push((name, values)),
                    ([_, _], Some(values)) if given.classifier.is_none() => {
                        given.classifier = Some(given.predicted(values, truth, (kind, &name)).map_err(wrong)?);
                    }
                    ([_, _, _], Some(values)) if given.members.is_empty() && !values.is_empty() => {
                        let members = given.predicted(values, truth, (kind, &name)).map_err(wrong)?;
                        given.members = members.chunks(n * classes).map(<[f64]>::to_vec).collect();
                    }
                    _ => given.ignored.push(name),
                },
            }
        }
        Ok(given)
    }

    /// log q of an array by its name, of one classifier or of all members.
    fn predicted(
        &mut self,
        values: Vec<f64>,
        truth: &Truth,
        (told, name): (Option<Kind>, &str),
    ) -> Result<Vec<f64>, String> {
        let (n, several) = (truth.len(), values.len() > truth.len() * truth.classes);
        let named = |row: usize| match several {
            true => format!("member {}, image {}", row / n, row % n),
            false => format!("image {row}"),
        };
        let (_, log_q, _) = understood(values, truth.classes, (told, Some(name)), &named, &mut self.notes)?;
        Ok(log_q)
    }

    /// The classifier that is scored, the given one before the mean of the members, and the scores
    /// that follow from either.
    fn computed(&self, classes: usize) -> Result<Option<Computed>> {
        let owned = |(score, values): (Score, &[f64])| (score, values.to_vec());
        if self.members.is_empty() {
            let Some(q) = &self.classifier else { return Ok(None) };
            let scores = SingleScores::new(q, classes)?;
            return Ok(Some((q.clone(), scores.all().map(owned).into())));
        }
        let members: Vec<&[f64]> = self.members.iter().map(Vec::as_slice).collect();
        let scores = EnsembleScores::new(&members, classes)?;
        let computed = scores.all().map(owned).into();
        Ok(Some((self.classifier.clone().unwrap_or(scores.log_mean), computed)))
    }
}

/// For an array that names a hash: the hash that it should be, where it is known.
fn own_hash<'a>(name: &str, truth: &'a Truth) -> Option<Option<&'a String>> {
    match name {
        "weights_sha256" => Some(truth.origin.weights_sha256.as_ref()),
        "dataset_sha256" => Some(Some(&truth.origin.dataset_sha256)),
        _ => None,
    }
}
