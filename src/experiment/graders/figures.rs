//! Figures and tables of the grades.

use super::features::Features;
use super::grades::{Asked, Grades, Marked, Rated};
use crate::experiment::feature_file::FeatureFile;
use crate::experiment::repeats::{SeedGain, SeedMean, cell, distinct};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Table, Value, Way};
use crate::measure::Interval;
use crate::measure::grade::Estimator;
use crate::measure::uncertainty::{Score, TOP};
use crate::stats::Z95;

/// Its figures, of the largest N first.
pub fn figures(grades: &Grades) -> Vec<Figure> {
    let Some(most) = grades.estimators.iter().map(|marked| marked.n).max() else { return Vec::new() };
    let largest: Vec<&Marked> = grades.estimators.iter().filter(|marked| marked.n == most).collect();
    let said = one_seed(grades);
    let mut figures = vec![beside_truth(&largest, most, said), bounds(&largest, most)];
    if grades.estimators.iter().any(|marked| marked.n < most) {
        figures.extend(taus(grades).into_iter().map(|tau| over_n(grades, tau, said)));
    }
    let read = |file: &FeatureFile| {
        let name = Features::File(file.path.clone());
        (format!("{} SHA-256", name.label()), file.sha256.clone())
    };
    figures.iter_mut().for_each(|figure| figure.provenance.extend(grades.files.iter().map(read)));
    figures.extend(ratings(grades, most, said));
    figures
}

/// Its tables.
pub fn tables(grades: &Grades) -> Vec<Table> {
    if grades.estimators.is_empty() { Vec::new() } else { vec![estimator_table(grades), score_table(grades)] }
}

fn taus(grades: &Grades) -> Vec<f64> {
    let mut taus: Vec<f64> = grades.estimators.iter().map(|marked| marked.tau).collect();
    taus.sort_by(f64::total_cmp);
    taus.dedup();
    taus
}

/// What has to be said where nothing was repeated.
fn one_seed(grades: &Grades) -> &'static str {
    match grades.estimators.iter().any(|one| one.estimate.interval.is_some()) {
        true => {
            "Intervals are 95 % over seeds (Student) and, of what is formed on the test images, over these, added in quadrature."
        }
        false => "One seed says nothing of the spread: no interval is drawn.",
    }
}

fn colour(estimator: Estimator) -> usize {
    Estimator::ALL.iter().position(|one| *one == estimator).unwrap_or(0)
}

fn series(name: String, colour: usize, style: Style, points: Vec<Point>) -> Series {
    Series { name, style, colour, points, ..Series::default() }
}

/// A series for each estimator, and for each network where it is what that network believes.
fn curves(marked: &[&Marked], point: impl Fn(&Marked) -> Point) -> Vec<Series> {
    let mut all = Vec::new();
    for estimator in Estimator::ALL {
        let of = || marked.iter().filter(|marked| marked.estimator == estimator);
        for (i, (features, asked)) in distinct(of().map(|marked| marked.whose())).into_iter().enumerate() {
            // The colour after the estimators' is that of the truth.
            let colour = if i == 0 { colour(estimator) } else { Estimator::ALL.len() + i };
            let points =
                of().filter(|marked| marked.whose() == (features, asked)).map(|marked| point(marked)).collect();
            all.push(series(of_whom(&seen(estimator, features), asked), colour, Style::LinePoints, points));
        }
    }
    all
}

/// The name of an estimator, with what it saw where that is not pixels.
fn seen(estimator: Estimator, features: &Features) -> String {
    match features {
        Features::Pixels => estimator.label().into(),
        Features::Trained => format!("{} on features", estimator.label()),
        Features::File(_) => format!("{} on {}", estimator.label(), features.label()),
    }
}

/// The name of an estimator or a score, with whose it is where the grid has several classifiers.
fn of_whom(name: &str, asked: Option<Asked>) -> String {
    asked.map_or_else(|| name.into(), |asked| format!("{name} ({})", asked.label()))
}

/// Estimates against the truth: on the diagonal they are right.
fn beside_truth(largest: &[&Marked], most: usize, said: &str) -> Figure {
    let top = largest.iter().map(|marked| 100.0 * marked.truth.value).fold(0.0, f64::max);
    let mut all = curves(largest, |marked| marked.estimate.point(100.0 * marked.truth.value, 100.0));
    let diagonal = vec![Point::new(0.0, 0.0), Point::new(top, top)];
    let right = series("right".into(), Estimator::ALL.len(), Style::Line, diagonal);
    all.push(Series { dashed: true, ..right });
    Figure {
        id: "graders-truth".into(),
        title: format!("Estimates beside the Bayes error of the world, {most} samples"),
        caption: format!(
            "Every point is an estimator at one temperature, the mean over seeds; on the dashed line it would be right. Those of neighbours, \
             trees and kernels see pixels and drawn labels of the training images, as of a real dataset; 'on features', what a network trained on \
             these makes of the test images; 'on' a file, what it says of the training images. Features can have a larger Bayes error than the \
             world: at most what k-NN says that is told exact posteriors. Soft labels, counts of labels and a classifier's \
             belief are formed on the test images; the learning curve is the floor of a network's test error over all N. {said}"
        ),
        x: Axis::linear("Bayes error of the world").in_unit("%"),
        y: Axis::linear("estimate").in_unit("%"),
        series: all,
        ..Figure::default()
    }
}

/// Bounds of those that have them, around the truth.
fn bounds(largest: &[&Marked], most: usize) -> Figure {
    let bounded: Vec<(&Marked, SeedGain, SeedGain)> =
        largest.iter().filter_map(|marked| Some((*marked, marked.lower?, marked.upper?))).collect();
    let mut sorted = bounded;
    let place = |marked: &Marked| (colour(marked.estimator), marked.features.clone());
    sorted.sort_by(|a, b| place(a.0).cmp(&place(b.0)).then(a.0.tau.total_cmp(&b.0.tau)));
    let of = |estimator: Estimator| {
        let here = sorted.iter().enumerate().filter(|(_, (marked, ..))| marked.estimator == estimator);
        let points = here.map(|(i, (marked, lower, upper))| {
            Point::new(i as f64, 100.0 * marked.estimate.value).within(100.0 * lower.value, 100.0 * upper.value)
        });
        series(format!("{}: bounds", estimator.label()), colour(estimator), Style::Points, points.collect())
    };
    let mut all: Vec<Series> = Estimator::ALL.into_iter().map(of).filter(|one| !one.points.is_empty()).collect();
    let truth =
        sorted.iter().enumerate().map(|(i, (marked, ..))| Point::new(i as f64, 100.0 * marked.truth.value)).collect();
    let exact = series("Bayes error of the world".into(), Estimator::ALL.len(), Style::Points, truth);
    all.push(Series { dashed: true, ..exact });
    Figure {
        id: "graders-bounds".into(),
        title: format!("Do the bounds hold? {most} samples"),
        caption: "Bars run from the lower to the upper bound of each estimator, the means over seeds; the point on the bar is its estimate, \
                  the hollow one the Bayes error of the world. Bounds are theorems for infinitely many samples."
            .into(),
        x: Axis::named(
            "estimator and world",
            sorted.iter().map(|(marked, ..)| format!("{}, τ = {}", seen(marked.estimator, &marked.features), marked.tau)),
        ),
        y: Axis::linear("Bayes error").in_unit("%"),
        series: all,
        ..Figure::default()
    }
}

/// How each estimate changes with more samples.
fn over_n(grades: &Grades, tau: f64, said: &str) -> Figure {
    let here: Vec<&Marked> = grades.estimators.iter().filter(|marked| marked.tau == tau).collect();
    let rule = |marked: &&Marked| Rule {
        way: Way::Horizontal,
        at: 100.0 * marked.truth.value,
        low: Some(100.0 * marked.truth.interval.0),
        high: Some(100.0 * marked.truth.interval.1),
        label: "Bayes error of the world".into(),
    };
    Figure {
        id: format!("graders-samples-tau-{tau}"),
        title: format!("Estimates of the Bayes error over the number of samples, τ = {tau}"),
        caption: format!(
            "The mean of each estimator over seeds beside the Bayes error of the world. Soft labels and counts of labels are formed on \
             the test images whatever N is. {said}"
        ),
        provenance: vec![("τ".into(), tau.to_string())],
        x: Axis::log10("samples N"),
        y: Axis::linear("Bayes error").in_unit("%"),
        series: curves(&here, |marked| marked.estimate.point(marked.n as f64, 100.0)),
        rules: here.first().map(rule).into_iter().collect(),
        ..Figure::default()
    }
}

/// A measure of a score, its name, the title of its figure.
struct Rating {
    id: &'static str,
    title: &'static str,
    axis: &'static str,
    part: fn(&Rated) -> Option<SeedMean>,
}

const RATINGS: [Rating; 3] = [
    Rating {
        id: "graders-auroc",
        title: "Finding the images a classifier is farthest from the truth on",
        axis: "area under the ROC curve",
        part: |rated| rated.auroc,
    },
    Rating {
        id: "graders-epistemic",
        title: "Scores of uncertainty beside the exact epistemic KL(p || q)",
        axis: "Spearman's correlation",
        part: |rated| rated.epistemic,
    },
    Rating {
        id: "graders-aleatoric",
        title: "Scores of uncertainty beside the exact aleatoric H(p)",
        axis: "Spearman's correlation",
        part: |rated| rated.aleatoric,
    },
];

/// Correlations and areas of the scores.
fn ratings(grades: &Grades, most: usize, said: &str) -> Vec<Figure> {
    let here: Vec<&Rated> = grades.scores.iter().filter(|rated| rated.n == most).collect();
    let mut names: Vec<String> = Vec::new();
    for rated in &here {
        if !names.contains(&name(rated)) {
            names.push(name(rated));
        }
    }
    let top = format!(
        "Sought are the {:.0} % of test images with the largest exact KL; ½ is no better than chance.",
        100.0 * TOP
    );
    let figure = |rating: &Rating| {
        let at = |rated: &Rated| names.iter().position(|known| *known == name(rated)).unwrap_or(0) as f64;
        let of = |(colour, tau): (usize, f64)| {
            let points = here.iter().filter(|rated| rated.tau == tau);
            let points = points.filter_map(|rated| Some((rating.part)(rated)?.point(at(rated), 1.0)));
            series(format!("τ = {tau}"), colour, Style::Points, points.collect())
        };
        let meaning = if rating.id == "graders-auroc" {
            top.as_str()
        } else {
            "1 orders the images as the truth does, 0 says nothing."
        };
        Figure {
            id: rating.id.into(),
            title: rating.title.into(),
            caption: format!(
                "Scores of one classifier and of an ensemble, trained on {most} images, over the test images; means over seeds. {meaning} {said}"
            ),
            x: Axis::named("score", names.clone()),
            y: Axis::linear(rating.axis),
            series: taus(grades).into_iter().enumerate().map(of).collect(),
            ..Figure::default()
        }
    };
    if here.is_empty() { Vec::new() } else { RATINGS.iter().map(figure).collect() }
}

/// A score's name, with whose it is where several have it.
fn name(rated: &Rated) -> String {
    let score = match (rated.score, rated.ensemble) {
        (Score::OneMinusConfidence, true) => "Ensemble: 1 − confidence",
        (score, _) => score.label(),
    };
    of_whom(score, rated.asked)
}

/// The error of an estimate. Both numbers are uncertain, and know nothing of each other.
fn error(m: &Marked) -> Value {
    let (error, half) = (m.estimate.value - m.truth.value, Z95 * m.truth.std_error);
    let around = |of: Interval| Interval {
        low: error - (m.estimate.value - of.low).hypot(half),
        high: error + (of.high - m.estimate.value).hypot(half),
    };
    cell(error, m.estimate.interval.map(around), 100.0)
}

fn estimator_table(grades: &Grades) -> Table {
    let cited = Estimator::ALL.map(|one| format!("{}: {}", one.label(), one.cite())).join("; ");
    let caption = format!(
        "Means over seeds beside the Bayes error of the world; 'encloses' counts the draws whose bounds hold the truth. The Bayes error of \
         what an estimator saw, pixels or features, is at least that of the world and 'at most' the error of neighbours that are told exact \
         posteriors, but for chance. {} Those of the bounds are over seeds alone; of a learning curve over seeds, sizes and test images. After: {cited}.",
        one_seed(grades)
    );
    let percent = |number: SeedGain| number.cell(100.0);
    let truth = |m: &Marked| {
        let [value, low, high] = [m.truth.value, m.truth.interval.0, m.truth.interval.1].map(|share| 100.0 * share);
        Value::within(value, low, high)
    };
    Table::of(&grades.estimators)
        .words("estimator", |m| of_whom(&seen(m.estimator, &m.features), m.asked))
        .column("τ", "", 2, |m| m.tau)
        .words("N", |m| m.n)
        .column("truth", "%", 3, truth)
        .column("estimate", "%", 2, |m| m.estimate.cell(100.0))
        .column("error", "pp", 2, error)
        .column("of what it saw, at most", "%", 2, |m| grades.at_most(m).map(|most| most.cell(100.0)))
        .column("lower bound", "%", 2, |m| m.lower.map(percent))
        .column("upper bound", "%", 2, |m| m.upper.map(percent))
        .words("encloses", |m| (m.bounded > 0).then(|| format!("{} of {}", m.enclosed, m.bounded)))
        .words("bias, by theory", |m| m.estimator.bias())
        .named("graders-estimators", "Estimators of the Bayes error", caption)
}

fn score_table(grades: &Grades) -> Table {
    let caption = format!(
        "Spearman's correlation with the exact aleatoric H(p) and epistemic KL(p || q) of the test images, the area under the ROC curve for the \
         {:.0} % of largest KL, and the mean error as an estimate in nats of what the score is said to measure; means over seeds. {}",
        100.0 * TOP,
        one_seed(grades)
    );
    let show = |number: Option<SeedMean>| number.map(|number| number.cell(1.0));
    Table::of(&grades.scores)
        .words("score", name)
        .column("τ", "", 2, |r| r.tau)
        .words("N", |r| r.n)
        .column("with H(p)", "", 3, |r| show(r.aleatoric))
        .column("with KL", "", 3, |r| show(r.epistemic))
        .column("AUROC", "", 3, |r| show(r.auroc))
        .column("mean error", "nats", 4, |r| show(r.signed_error))
        .named("graders-uncertainty", "Scores of uncertainty", caption)
}
