//! Gains over N (BLC figure 7), accuracy, KL and calibration of each kind of labels, training
//! curves.

use super::{Curve, Gain, Gains, LabelFigures};
use crate::classifier::{Architecture, Labels};
use crate::experiment::bayes_gap::across;
use crate::experiment::output::Findings;
use crate::experiment::repeats::{SEED_GAIN, SEED_MEAN, SeedMean, distinct, only};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Table, Way};

/// BLC App. D: "near-perfect calibration (ECE = 0.018)" of soft labels, without the N.
const PAPER_ECE: f64 = 0.018;
/// BLC App. D: "accuracy gains up to ∼1 %" of soft over hard labels, percentage points.
const PAPER_GAIN: f64 = 1.0;
/// The ends of BLC's N in App. D.
const PAPER_SIZES: [f64; 2] = [100.0, 5000.0];

/// Numbers of training curves' N that are shown: the smallest, the middle and the largest.
const CURVES: usize = 3;

const ANOTHER_WORLD: &str =
    "Pale: the one number that BLC App. D prints, over the range of its N, in another world (AFHQ).";

/// A kind's name in a legend, with the paper's word for it.
fn name(labels: Labels) -> String {
    let word = match labels {
        Labels::Posterior => " (soft)",
        Labels::Argmax => " (hard)",
        Labels::Drawn | Labels::Smoothed => "",
    };
    format!("{}{word}", labels.label())
}

/// A kind's colour, the same in every run.
fn colour(labels: Labels) -> usize {
    match labels {
        Labels::Posterior => 0,
        Labels::Argmax => 1,
        Labels::Drawn => 2,
        Labels::Smoothed => 3,
    }
}

/// A number of the paper over the range of its N.
fn printed(name: &str, at: f64) -> Series {
    let points = PAPER_SIZES.map(|n| Point::new(n, at)).to_vec();
    Series { name: format!("BLC App. D (AFHQ), {name}"), colour: 4, points, faint: true, ..Series::default() }
}

fn sizes() -> Axis {
    Axis::log10("training images N")
}

impl Findings for Gains {
    /// Gain, accuracy, KL and calibration against N, then training curves; for each architecture.
    fn figures(&self) -> Vec<Figure> {
        let architectures = distinct(self.told.iter().map(|told| told.architecture));
        let several = architectures.len() > 1;
        let of = |&architecture: &Architecture| {
            let figures = [
                self.gain(architecture),
                self.accuracy(architecture),
                self.epistemic(architecture),
                self.ece(architecture),
                self.exact_calibration(architecture),
            ];
            let end = if several { format!("-{}", architecture.name()) } else { String::new() };
            figures.into_iter().chain(self.curves(architecture)).map(move |figure| Figure {
                id: format!("soft-labels-{}{end}", figure.id),
                title: format!("{}, {}", figure.title, architecture.label()),
                ..figure
            })
        };
        architectures.iter().flat_map(of).collect()
    }

    /// Every kind of labels at every N, and what exact posteriors gain.
    fn tables(&self) -> Vec<Table> {
        vec![self.told_table(), self.gain_table()]
    }
}

impl Gains {
    /// One series a kind of labels: a figure of it against N.
    fn against_n(&self, architecture: Architecture, of: fn(&LabelFigures) -> SeedMean, times: f64) -> Vec<Series> {
        let here = || self.told.iter().filter(move |told| told.architecture == architecture);
        let series = |labels: Labels| Series {
            name: name(labels),
            style: Style::LinePoints,
            colour: colour(labels),
            points: here()
                .filter(|told| told.labels == labels)
                .map(|told| of(told).point(told.train_size as f64, times))
                .collect(),
            ..Series::default()
        };
        distinct(here().map(|told| told.labels)).into_iter().map(series).collect()
    }

    fn gain(&self, architecture: Architecture) -> Figure {
        let here = || self.gains.iter().filter(move |gain| gain.architecture == architecture);
        let mut series = vec![printed("gain over hard labels, up to", PAPER_GAIN)];
        series.extend(distinct(here().map(|gain| gain.over)).into_iter().map(|over| {
            Series {
                name: format!("over {}", name(over)),
                style: Style::LinePoints,
                colour: colour(over),
                points: here()
                    .filter(|gain| gain.over == over)
                    .map(|gain| gain.expected_accuracy.point(gain.train_size as f64, 100.0))
                    .collect(),
                ..Series::default()
            }
        }));
        let hard: Vec<&Gain> = here().filter(|gain| gain.over == Labels::Argmax).collect();
        let (ahead, surely) = (
            hard.iter().filter(|gain| gain.expected_accuracy.value > 0.0).count(),
            hard.iter().filter(|gain| gain.expected_accuracy.interval.is_some_and(|i| i.low > 0.0)).count(),
        );
        let count = if hard.is_empty() {
            String::new()
        } else {
            format!(
                " Exact posteriors are ahead of hard labels at {ahead} of {} sizes, by more than the interval at {surely} (in the paper \
                 at 4 of 5, N = 500 being the exception).",
                hard.len()
            )
        };
        let caption = format!(
            "Expected accuracy of classifiers told the exact posterior minus that of those told another kind of labels, on the same \
             test images. {SEED_GAIN}{count} {ANOTHER_WORLD}"
        );
        let rules = vec![Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "no gain".into() }];
        let y = Axis::linear("gain of expected accuracy").in_unit("pp");
        Figure { rules, ..self.figure(["gain", "What exact posteriors gain as labels"], caption, y, series) }
    }

    /// A figure of something of every kind of labels against N.
    fn figure(&self, [id, title]: [&str; 2], caption: String, y: Axis, series: Vec<Series>) -> Figure {
        let provenance = self.provenance.clone();
        Figure { id: id.into(), title: title.into(), caption, provenance, x: sizes(), y, series, ..Figure::default() }
    }

    fn accuracy(&self, architecture: Architecture) -> Figure {
        let line = self.test_bayes_accuracy.map(|found| {
            let label = format!("Bayes accuracy of the test images, {:.2} %", 100.0 * found.value);
            across(label, found.value, (found.interval.low, found.interval.high))
        });
        let caption = format!(
            "Expected accuracy: the mean of the accuracy over all labels that could have been drawn; against drawn labels in the \
             table. {SEED_MEAN} The intervals over images are common to all kinds of labels: differences have their own figure."
        );
        let series = self.against_n(architecture, |told| told.expected_accuracy, 100.0);
        let y = Axis::linear("expected accuracy").in_unit("%");
        let rules = line.into_iter().collect();
        Figure { rules, ..self.figure(["accuracy", "Expected accuracy"], caption, y, series) }
    }

    fn epistemic(&self, architecture: Architecture) -> Figure {
        let caption = format!("Mean KL from the exact posterior of the test images to the classifier's. {SEED_MEAN}");
        let series = self.against_n(architecture, |told| told.epistemic, 1.0);
        let y = Axis::log10("KL(p || q)").in_unit("nats");
        self.figure(["epistemic", "Epistemic part KL(p || q)"], caption, y, series)
    }

    fn ece(&self, architecture: Architecture) -> Figure {
        let caption = format!(
            "Expected calibration error against drawn labels, 15 bins of equal width. {SEED_MEAN} {ANOTHER_WORLD}"
        );
        let mut series = vec![printed("ECE of soft labels", PAPER_ECE)];
        series.extend(self.against_n(architecture, |told| told.ece, 1.0));
        self.figure(["ece", "Expected calibration error"], caption, Axis::linear("ECE"), series)
    }

    fn exact_calibration(&self, architecture: Architecture) -> Figure {
        let caption = format!(
            "The 15 bins of the expected calibration error, with the exact posterior of each image's decision in the place of hits: \
             what the noise of drawn labels adds is gone. {SEED_MEAN}"
        );
        let series = self.against_n(architecture, |told| told.exact_calibration_error, 1.0);
        let y = Axis::linear("exact calibration error");
        self.figure(["exact-calibration", "Exact calibration error"], caption, y, series)
    }

    /// Training curves at up to three N.
    fn curves(&self, architecture: Architecture) -> Vec<Figure> {
        let here = || self.courses.iter().filter(move |curve| curve.architecture == architecture);
        let all = distinct(here().map(|curve| curve.train_size));
        let last = all.len().saturating_sub(1);
        let chosen = (0..CURVES).filter_map(|i| all.get(i * last / (CURVES - 1)));
        let figure = |n: usize| Figure {
            id: format!("course-n{n}"),
            title: format!("Training curves at N = {n}"),
            caption: format!(
                "Expected accuracy on the watched test images, the first of all, while training goes on. Bands: {SEED_MEAN}"
            ),
            provenance: only(&self.provenance, "N", n.to_string()),
            x: Axis::linear("epochs"),
            y: Axis::linear("expected accuracy").in_unit("%"),
            series: here().filter(|curve| curve.train_size == n).map(course).collect(),
            ..Figure::default()
        };
        distinct(chosen.copied()).into_iter().map(figure).collect()
    }

    fn told_table(&self) -> Table {
        Table::of(&self.told)
            .words("architecture", |told| told.architecture.label())
            .words("N", |told| told.train_size)
            .words("labels", |told| name(told.labels))
            .words("seeds", |told| told.accuracy.seeds)
            .column("accuracy", "%", 2, |told| told.accuracy.cell(100.0))
            .column("expected accuracy", "%", 2, |told| told.expected_accuracy.cell(100.0))
            .column("KL(p || q)", "nats", 4, |told| told.epistemic.cell(1.0))
            .column("ECE", "", 4, |told| told.ece.cell(1.0))
            .column("exact calibration error", "", 4, |told| told.exact_calibration_error.cell(1.0))
            .named("soft-labels", "What classifiers are told", SEED_MEAN)
    }

    fn gain_table(&self) -> Table {
        Table::of(&self.gains)
            .words("architecture", |gain| gain.architecture.label())
            .words("N", |gain| gain.train_size)
            .words("over", |gain| name(gain.over))
            .words("seeds", |gain| gain.accuracy.seeds)
            .column("gain of expected accuracy", "pp", 2, |gain| gain.expected_accuracy.cell(100.0))
            .column("gain of accuracy", "pp", 2, |gain| gain.accuracy.cell(100.0))
            .named("soft-labels-gain", "What exact posteriors gain as labels", SEED_GAIN)
    }
}

/// A training curve as a line with a band.
fn course(curve: &Curve) -> Series {
    Series {
        name: name(curve.labels),
        colour: colour(curve.labels),
        points: curve.points.iter().map(|point| point.expected_accuracy.point(point.epoch as f64, 100.0)).collect(),
        band: true,
        ..Series::default()
    }
}
