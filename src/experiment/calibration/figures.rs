//! Figures and tables of the grades of calibration, each classifier at its largest N in figures.

use super::findings::{CalibrationGrades, GradedCalibrator, GradedEce};
use crate::experiment::bayes_gap::Who;
use crate::experiment::output::Findings;
use crate::experiment::repeats::{SEED_GAIN, SEED_GAIN_HERE, SEED_MEAN, SeedGain, distinct, only};
use crate::figure::{Axis, Figure, Point, Rule, Series, Table, Way};
use crate::measure::{Calibration, EceEstimator};

/// What captions say of the grades of an estimator.
const OVER_SEEDS: &str = "Means over seeds with Student's 95 % interval over seeds, given the test images; no interval where a single seed is finished.";

impl Findings for CalibrationGrades {
    fn figures(&self) -> Vec<Figure> {
        let whose = distinct(self.calibrators.iter().map(|one| one.who().0));
        let largest = self.calibrators.iter().map(|one| one.train_size).max();
        let Some(n) = largest else { return Vec::new() };
        let mut figures: Vec<Figure> = whose.iter().flat_map(|who| self.of_calibrators((*who, n))).collect();
        figures.extend(whose.iter().flat_map(|who| self.of_estimators((*who, n))));
        figures
    }

    fn tables(&self) -> Vec<Table> {
        if self.calibrators.is_empty() { Vec::new() } else { vec![self.calibrator_table(), self.estimator_table()] }
    }
}

impl CalibrationGrades {
    /// KL and exact calibration error over the number of labels.
    fn of_calibrators(&self, whose: (Who, usize)) -> Vec<Figure> {
        let here: Vec<&GradedCalibrator> = self.calibrators.iter().filter(|one| one.who() == whose).collect();
        let gain = |one: &GradedCalibrator| one.gain.point(one.n as f64, 1.0);
        let error = |one: &GradedCalibrator| one.exact_calibration_error.point(one.n as f64, 100.0);
        let before = here.iter().find(|one| one.method == Calibration::None);
        let of = |method: Calibration| here.iter().copied().filter(move |one| one.method == method);
        let fitted = || Calibration::ALL.into_iter().enumerate().filter(|(_, method)| *method != Calibration::None);
        let curves = |point: &dyn Fn(&GradedCalibrator) -> Point| -> Vec<Series> {
            fitted()
                .map(|(colour, method)| Series::markers_joined(method.label().into(), colour, of(method).map(point)))
                .collect()
        };
        let nothing = Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "no gain".into() };
        let gains = Figure {
            y: Axis::linear("KL saved").in_unit("nats"),
            series: curves(&gain),
            rules: vec![nothing],
            ..self.figure(
                "calibration-gain",
                "what calibration saves",
                format!(
                    "Exact KL(p || q) of the test images before less after; below 0 calibration does harm. {SEED_GAIN}"
                ),
                whose,
            )
        };
        let rule = before.map(|one| {
            let (at, interval) = (100.0 * one.exact_calibration_error.value, one.exact_calibration_error.interval);
            let (low, high) = (interval.map(|i| 100.0 * i.low), interval.map(|i| 100.0 * i.high));
            Rule { way: Way::Horizontal, at, low, high, label: "not calibrated".into() }
        });
        let errors = Figure {
            y: Axis::linear("exact calibration error").in_unit("%"),
            series: curves(&error),
            rules: rule.into_iter().collect(),
            ..self.figure(
                "calibration-error",
                "what is left of the calibration error",
                format!("Exact calibration error (15 bins, exact posteriors in place of hits) of the test images. {SEED_MEAN}"),
                whose,
            )
        };
        vec![gains, errors]
    }

    /// Bias and scatter of estimates over the number of labels.
    fn of_estimators(&self, whose: (Who, usize)) -> Vec<Figure> {
        let here: Vec<&GradedEce> = self.estimators.iter().filter(|one| one.who() == whose).collect();
        let curves = |of: &dyn Fn(&GradedEce) -> SeedGain| -> Vec<Series> {
            let one = |(colour, estimator): (usize, EceEstimator)| {
                let here = here.iter().filter(move |one| one.estimator == estimator);
                let dashed = !matches!(estimator, EceEstimator::Width(_));
                let points = here.map(|one| of(one).point(one.n as f64, 100.0));
                Series { dashed, ..Series::markers_joined(estimator.label(), colour, points) }
            };
            EceEstimator::ALL.into_iter().enumerate().map(one).filter(|one| !one.points.is_empty()).collect()
        };
        let right = Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "right on average".into() };
        let bias = Figure {
            y: Axis::linear("mean estimate − exact value").in_unit("pp"),
            series: curves(&|one| one.bias),
            rules: vec![right],
            ..self.figure(
                "ece-bias",
                "how far estimates of the calibration error are off on average",
                format!(
                    "Mean over draws of n test images and their labels, less the exact calibration error of all test images; of squares, less \
                     its root mean square. {OVER_SEEDS}"
                ),
                whose,
            )
        };
        let scatter = Figure {
            y: Axis::linear("standard deviation").in_unit("pp"),
            series: curves(&|one| one.deviation),
            ..self.figure(
                "ece-scatter",
                "how far estimates of the calibration error scatter",
                format!("Standard deviation over draws of n test images and their labels. {OVER_SEEDS}"),
                whose,
            )
        };
        vec![bias, scatter]
    }

    /// A figure of one classifier, without its y and what it shows.
    fn figure(&self, id: &str, what: &str, caption: String, (who, n): (Who, usize)) -> Figure {
        let whose = distinct(self.calibrators.iter().map(|one| one.who().0));
        let several =
            if whose.len() > 1 { format!("-{}-{}", who.architecture.name(), who.labels.name()) } else { String::new() };
        Figure {
            id: format!("{id}{several}"),
            title: format!("{} on {n} images: {what}", who.name()),
            caption,
            provenance: only(&self.provenance, "N", n.to_string()),
            x: Axis::log10("labels n"),
            ..Figure::default()
        }
    }

    fn calibrator_table(&self) -> Table {
        let caption = format!(
            "Of the test images, after calibration on n labels. 'impossible': mean exact probability of the classes to which the fitted map \
             gives probability 0; each then gets 1/(n + 1)·1/K. {SEED_MEAN} {SEED_GAIN} {SEED_GAIN_HERE} \
             The interval of 'impossible' is over seeds alone, too."
        );
        Table::of(&self.calibrators)
            .words("classifier", |one| one.who().0.name())
            .words("N", |one| one.train_size)
            .words("calibrator", |one| one.method.label())
            .words("labels n", |one| (one.n > 0).then_some(one.n))
            .column("KL", "nats", 4, |one| one.epistemic.cell(1.0))
            .column("KL saved", "nats", 4, |one| one.gain.cell(1.0))
            .column("exact calibration error", "%", 2, |one| one.exact_calibration_error.cell(100.0))
            .column("less", "pp", 2, |one| one.less_error.cell(100.0))
            .column("impossible", "%", 3, |one| one.impossible.cell(100.0))
            .named("calibrators", "Calibrators, graded", caption)
    }

    fn estimator_table(&self) -> Table {
        let caption = format!(
            "Mean estimate less exact value, and standard deviation, over draws of n test images and their labels; 'hidden': what the estimator is \
             off with all test images and exact probabilities in place of hits. {OVER_SEEDS}"
        );
        Table::of(&self.estimators)
            .words("classifier", |one| one.who().0.name())
            .words("N", |one| one.train_size)
            .words("estimator", |one| one.estimator.label())
            .words("labels n", |one| one.n)
            .column("exact", "%", 2, |one| one.exact.cell(100.0))
            .column("bias", "pp", 2, |one| one.bias.cell(100.0))
            .column("hidden", "pp", 2, |one| one.hidden.map(|hidden| hidden.cell(100.0)))
            .column("deviation", "pp", 2, |one| one.deviation.cell(100.0))
            .column("root mean square", "pp", 2, |one| one.rms.cell(100.0))
            .named("calibration-error-estimators", "Estimators of the calibration error, graded", caption)
    }
}
