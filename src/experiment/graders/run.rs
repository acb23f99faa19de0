//! One cell: an ensemble is trained, and every estimator and score is asked.

use std::borrow::Cow;

use rand::RngExt;

use super::features::{Features, PARTS, jackknife, of_features, without};
use super::spec::{Estimated, GradersSpec, Grading};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::experiment::cell::{Cell, CellResult};
use crate::experiment::images::Images;
use crate::experiment::kind::CellPlace;
use crate::experiment::output::CellOutput;
use crate::experiment::progress::{Measuring, Trainings, member_seed};
use crate::experiment::train::{CellEvent, CellJob, train_cell};
use crate::experiment::trained::{Trained, measuring};
use crate::measure::grade::{self, Estimator, Sample};
use crate::measure::uncertainty::{EnsembleScores, Score, Scored, SingleScores, Truth, grade_score};
use crate::measure::{PerImage, log_softmax};
use crate::oracle::posterior::draw;
use crate::units::{ClassId, Seed};

/// Trains an ensemble, and asks every estimator.
///
/// # Errors
/// As [`train_cell`].
pub(super) fn run(
    spec: &GradersSpec,
    place: &CellPlace<'_>,
    job: &CellJob<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    // What cannot be graded should be known before an ensemble is trained.
    let mut estimates = estimates(spec, place, job, events)?;
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
    let (of_one, of_members) = (single.all(), together.all());
    let mut pieces = Measuring::begin(events, "scores of uncertainty", of_one.len() + of_members.len())?;
    let mut scores = scored(&of_one, &of_first, &mut pieces)?;
    scores.extend(scored(&of_members, &of_all, &mut pieces)?);
    let counts = annotate(test, spec.annotators, Seed(job.cell.seed).split("annotators"));
    let asked = |estimator, graded: Result<grade::Graded>| {
        Estimated::of(estimator, &Features::Pixels, graded.map_err(|e| e.to_string()))
    };
    estimates.extend([
        asked(Estimator::SoftLabels, grade::soft_labels(&test.all.posterior, k)),
        asked(Estimator::LabelCounts, grade::label_counts(&counts, k)),
        asked(Estimator::PlugIn, grade::plug_in(&together.log_mean, k)),
        asked(Estimator::KnownDecision, grade::known_decision(&counts, &test.all.posterior, k)),
    ]);
    let log_u = sharpened(&test.all.posterior, spec.sharpening, k);
    let mut pieces = Measuring::begin(events, "estimates of the Bayes error from labels", 1 + PARTS)?;
    let isotonic = match calibrated(&log_u, &test.all.labels, k, &mut || pieces.done(1)) {
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        isotonic => isotonic,
    };
    estimates.extend([
        asked(Estimator::SharpenedSoft, grade::sharpened_soft(&log_u, k)),
        asked(Estimator::IsotonicSoft, isotonic),
    ]);
    let files = place.features.to_vec();
    let grading = Grading { estimates, scores, files, ensemble: of_all.measured(&measuring())? };
    Ok(CellResult { id: job.id.to_owned(), output: Some(CellOutput::new(grading)), ..first })
}

/// Estimates from the labelled training images alone: from their pixels and their features in
/// files.
fn estimates(
    spec: &GradersSpec,
    place: &CellPlace<'_>,
    job: &CellJob<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<Vec<Estimated>> {
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
        let what = format!("estimates of the Bayes error from {}", features.label());
        let mut pieces = Measuring::begin(events, what, grade::STEPS)?;
        let sample = Sample::new(&x, dim, &images.labels, job.test.classes);
        match sample.and_then(|sample| grade::grade(sample, Some(&images.posterior), &mut || pieces.done(1))) {
            Ok(graded) => all.extend(graded.into_iter().map(|(one, graded)| Estimated::of(one, features, graded))),
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => all.extend(Estimated::none(features, &error.to_string())),
        }
    }
    Ok(all)
}

/// Trains the members in turn. Returns the first one's result, log q of each on the test images,
/// [N, K], and the estimates from the first one's features, where they are asked for.
fn ensemble(
    spec: &GradersSpec,
    job: &CellJob<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<(CellResult, Vec<Vec<f64>>, Vec<Estimated>)> {
    let (mut first, mut log_q, mut featured) = (None, Vec::with_capacity(spec.members), Vec::new());
    let each = job.training.total_steps(job.cell.train_size);
    let mut trainings = Trainings::new(events, spec.members * each);
    for member in 0..spec.members {
        // The first one lives in the cell's own folder: its worst images are the cell's.
        let folder = match member {
            0 => job.folder.to_owned(),
            _ => job.folder.join(format!("member-{member}")),
        };
        let seed = member_seed(&job.cell, member);
        let own = CellJob { cell: Cell { seed, ..job.cell }, folder: &folder, ..*job };
        trainings.before = member * each;
        let (result, trained) = train_cell(&own, &mut trainings)?;
        log_q.push(answers(&trained, job.test)?);
        if member == 0 && spec.features.contains(&Features::Trained) {
            featured = of_features(&trained, job.test, &mut trainings)?;
        }
        first.get_or_insert(CellResult { cell: job.cell, steps: spec.members * each, ..result });
    }
    let first = first.ok_or_else(|| Error::input("an ensemble needs members"))?;
    Ok((first, log_q, featured))
}

/// log u of u ∝ p^s, [N, K].
fn sharpened(p: &[f64], power: f64, classes: usize) -> Vec<f64> {
    log_softmax(&p.iter().map(|p| power * p.ln()).collect::<Vec<f64>>(), classes)
}

/// The estimate from calibrated soft labels, with a jackknife interval over tenths of the images: they share
/// the calibration. `step` is called after all images, and after all but each tenth.
fn calibrated(
    log_u: &[f64],
    labels: &[ClassId],
    classes: usize,
    step: &mut dyn FnMut() -> Result<()>,
) -> Result<grade::Graded> {
    let all = grade::isotonic_soft(log_u, labels, classes)?;
    step()?;
    let left_out = |keep: Vec<usize>| -> Result<f64> {
        let log_u: Vec<f64> = keep.iter().flat_map(|&i| &log_u[i * classes..(i + 1) * classes]).copied().collect();
        let labels: Vec<ClassId> = keep.iter().map(|&i| labels[i]).collect();
        let estimate = grade::isotonic_soft(&log_u, &labels, classes)?.estimate;
        step().map(|()| estimate)
    };
    let values = without(labels.len()).map(left_out).collect::<Result<Vec<f64>>>()?;
    Ok(grade::Graded { interval: jackknife(all.estimate, &values, labels.len()), ..all })
}

fn answers(trained: &Trained, test: &Images) -> Result<Vec<f64>> {
    trained.log_q(test.all.x.clone())
}

/// Every score beside the truth about the classifier it belongs to.
fn scored(scores: &[(Score, &[f64])], figures: &PerImage, pieces: &mut Measuring<'_>) -> Result<Vec<Scored>> {
    let truth = Truth { aleatoric: &figures.entropy, epistemic: &figures.kl };
    let one = |(score, values): &(Score, &[f64])| {
        let scored = grade_score(*score, values, truth, &measuring())?;
        pieces.done(1).map(|()| scored)
    };
    scores.iter().map(one).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharpening_keeps_the_decision_and_impossible_classes() {
        let log_u = sharpened(&[0.6, 0.3, 0.1, 1.0, 0.0, 0.0], 2.0, 3);
        let u: Vec<f64> = log_u.iter().map(|u| u.exp()).collect();
        for (found, expected) in u.iter().zip([36.0 / 46.0, 9.0 / 46.0, 1.0 / 46.0, 1.0, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-12, "{u:?}");
        }
        let exact = sharpened(&[0.6, 0.3, 0.1], 1.0, 3);
        assert!((exact[1].exp() - 0.3).abs() < 1e-12);
        // Impossible classes and few images of a class do not stop the calibration.
        let (log_u, labels) = (sharpened(&[1.0, 0.0, 0.0, 1.0].repeat(20), 2.0, 2), [0, 1].repeat(20));
        let graded = calibrated(&log_u, &labels, 2, &mut || Ok(())).unwrap();
        assert!(graded.estimate == 0.0 && graded.interval.is_some(), "{graded:?}");
    }
}
