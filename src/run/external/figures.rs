//! Figures and the table of an external run.

use super::course::Course;
use super::spec::ExternalSpec;
use super::step::StepFigures;
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Way};
use crate::measure::{BIASED, Estimate};

/// Most points of a curve in a figure.
const POINTS: usize = 2000;

/// Loss, error and calibration over the steps, with their provenance; none before the first record.
pub fn figures(spec: &ExternalSpec, course: &Course) -> Vec<Figure> {
    let Some(last) = course.steps().next_back() else { return Vec::new() };
    let (count, each) = (course.count(), course.count().div_ceil(POINTS));
    let shown = course.steps().enumerate().filter(|(i, _)| i.is_multiple_of(each) || i + 1 == count);
    let shown: Vec<StepFigures> = shown.map(|(_, step)| step).collect();
    let mut figures = vec![loss(&shown, &last), error(&shown, &last), calibration(&shown)];
    for figure in &mut figures {
        figure.provenance =
            vec![("badge".to_owned(), "estimated: exact posteriors, 95 % intervals over test images".to_owned())];
        figure.provenance.extend(spec.chain());
        figure.provenance.push(("records".to_owned(), course.records.to_string()));
        figure.provenance.push(("program".to_owned(), format!("bayescope {}", env!("CARGO_PKG_VERSION"))));
    }
    figures
}

fn curve(steps: &[StepFigures], name: &str, colour: usize, unit: f64, of: fn(&StepFigures) -> Estimate) -> Series {
    let point = |step: &StepFigures| {
        let Estimate { value, interval } = of(step);
        Point::new(step.step as f64, unit * value).within(unit * interval.low, unit * interval.high)
    };
    Series { name: name.into(), colour, points: steps.iter().map(point).collect(), band: true, ..Series::default() }
}

fn plain(steps: &[StepFigures], name: &str, colour: usize, of: fn(&StepFigures) -> Option<f64>) -> Series {
    let point = |step: &StepFigures| of(step).map(|value| Point::new(step.step as f64, value));
    let points = steps.iter().filter_map(point).collect();
    Series { name: name.into(), style: Style::Line, colour, points, ..Series::default() }
}

fn rule(label: &str, unit: f64, Estimate { value, interval }: Estimate) -> Rule {
    let (low, high) = (Some(unit * interval.low), Some(unit * interval.high));
    Rule { way: Way::Horizontal, at: unit * value, low, high, label: label.into() }
}

fn loss(steps: &[StepFigures], last: &StepFigures) -> Figure {
    let mut series = vec![
        curve(steps, "test cross-entropy L", 0, 1.0, |step| step.cross_entropy),
        curve(steps, "epistemic KL(p || q)", 1, 1.0, |step| step.epistemic),
    ];
    let train = plain(steps, "training loss, as logged", 2, |step| step.train_loss);
    if !train.points.is_empty() {
        series.push(Series { dashed: true, ..train });
    }
    Figure {
        id: "external-loss".into(),
        title: "Loss taken apart".into(),
        caption: "Cross-entropy on the test images, L = aleatoric + epistemic: the line is the aleatoric floor H(p), which no classifier \
                  avoids; KL is what this one has yet to learn. Bands: 95 % over test images. A training loss below the floor learns \
                  labels by heart."
            .into(),
        x: Axis::linear("optimisation step"),
        y: Axis::linear("loss").in_unit("nats"),
        series,
        rules: vec![rule("aleatoric floor H(p)", 1.0, last.aleatoric)],
        ..Figure::default()
    }
}

fn error(steps: &[StepFigures], last: &StepFigures) -> Figure {
    let drawn = curve(steps, "against drawn labels", 0, 100.0, |step| step.error);
    Figure {
        id: "external-error".into(),
        title: "Error beside the Bayes error".into(),
        caption: "Error on the test images, against their drawn labels and as its expectation 1 − p(argmax q) under the exact posteriors, \
                  which the noise of the labels does not reach. Line: Bayes error 1 − mean max p of the same images. Bands: 95 % over \
                  test images, which move curves and line together."
            .into(),
        x: Axis::linear("optimisation step"),
        y: Axis::linear("error").in_unit("%"),
        series: vec![
            Series { dashed: true, ..drawn },
            curve(steps, "expected", 1, 100.0, |step| step.expected_error),
        ],
        rules: vec![rule("Bayes error", 100.0, last.bayes_error)],
        ..Figure::default()
    }
}

fn calibration(steps: &[StepFigures]) -> Figure {
    Figure {
        id: "external-calibration".into(),
        title: "Calibration error".into(),
        caption: format!(
            "Mean distance of the confidence max q from the share of hits of drawn labels (ECE) and from the exact probability \
             p(argmax q), in 15 bins. {BIASED}"
        ),
        x: Axis::linear("optimisation step"),
        y: Axis::linear("calibration error"),
        series: vec![
            Series { dashed: true, ..plain(steps, "ECE, drawn labels", 0, |step| Some(step.ece)) },
            plain(steps, "exact", 1, |step| Some(step.exact_calibration_error)),
        ],
        ..Figure::default()
    }
}

/// One line of comma-separated values a step; what a record does not say is empty.
pub fn csv(course: &Course) -> String {
    const MEANS: [&str; 7] =
        ["cross_entropy", "aleatoric", "epistemic", "nll", "error", "expected_error", "bayes_error"];
    let heads: Vec<String> = MEANS.iter().map(|name| format!("{name},{name}_low,{name}_high")).collect();
    let heads = heads.join(",");
    let mut text =
        format!("step,epoch,images,seconds,train_loss,{heads},ece,exact_calibration_error,zeros,label_chance\n");
    for step in course.steps() {
        let told = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let images = step.images.map_or_else(String::new, |images| images.to_string());
        let (epoch, seconds, train) = (told(step.epoch), told(step.seconds), told(step.train_loss));
        text += &format!("{},{epoch},{images},{seconds},{train}", step.step);
        let StepFigures { cross_entropy, aleatoric, epistemic, nll, error, expected_error, bayes_error, .. } = step;
        for Estimate { value, interval } in
            [cross_entropy, aleatoric, epistemic, nll, error, expected_error, bayes_error]
        {
            text += &format!(",{value},{},{}", interval.low, interval.high);
        }
        text += &format!(",{},{},{},{}\n", step.ece, step.exact_calibration_error, step.zeros, step.label_chance);
    }
    text
}
