//! Figures of a report.

use super::{PosteriorSource, Report, Verdict};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Way};
use crate::measure::Estimate;

/// Classes a figure shows; of more, those with the largest gaps.
const SHOWN_CLASSES: usize = 30;
/// Decades of KL, and bins in each.
const DECADES: [i32; 2] = [-8, 2];
const BINS_IN_DECADE: i32 = 2;

/// Error, loss, reliability, class gaps and KL of every model, with captions and provenance.
pub fn figures(report: &Report) -> Vec<Figure> {
    let mut figures = vec![errors(report), losses(report), reliability(report), class_gaps(report), kl(report)];
    for figure in &mut figures {
        figure.provenance = provenance(report);
    }
    figures
}

/// World, τ, T, π, hashes, badge: what stands on every figure and page.
pub(super) fn provenance(report: &Report) -> Vec<(String, String)> {
    let origin = &report.origin;
    let unknown = || "not known: no dataset.json".to_owned();
    let number = |value: Option<f64>| value.map_or_else(unknown, |value| value.to_string());
    let prior = match &origin.prior {
        None => unknown(),
        Some(prior) if prior.is_empty() => "uniform".into(),
        Some(prior) => format!("{prior:?}"),
    };
    let exact = match report.source {
        PosteriorSource::LogLikelihoods => "exact posteriors",
        PosteriorSource::Stored => "posteriors exact to float32",
    };
    let mut said = vec![
        ("badge".to_owned(), format!("estimated: {exact}, 95 % intervals over test images")),
        ("weights SHA-256".to_owned(), origin.weights_sha256.clone().unwrap_or_else(unknown)),
        ("τ".to_owned(), number(origin.tau)),
        ("T".to_owned(), number(origin.smoothing)),
        ("class prior π".to_owned(), prior),
        ("posteriors".to_owned(), report.source.describe().to_owned()),
        ("dataset".to_owned(), format!("{}, {}", origin.path, origin.split)),
        ("dataset SHA-256".to_owned(), origin.dataset_sha256.clone()),
    ];
    for model in &report.models {
        let (what, hash) = match &model.network_sha256 {
            Some(hash) => ("network", hash.clone()),
            None => ("predictions", model.predictions_sha256.clone().unwrap_or_else(|| "computed here".into())),
        };
        said.push((format!("{what} of {} SHA-256", model.name), hash));
    }
    said.extend(origin.label_noise.as_ref().map(|noise| ("label noise".to_owned(), noise.describe())));
    said.push(("program".to_owned(), format!("bayescope {}", env!("CARGO_PKG_VERSION"))));
    said
}

fn point(x: usize, estimate: Estimate, unit: f64) -> Point {
    let Estimate { value, interval } = estimate;
    Point::new(x as f64, unit * value).within(unit * interval.low, unit * interval.high)
}

fn names(report: &Report) -> Vec<String> {
    report.models.iter().map(|model| model.name.clone()).collect()
}

/// One figure of each model.
fn of_models(report: &Report, name: &str, colour: usize, unit: f64, of: impl Fn(&Verdict) -> Estimate) -> Series {
    let points = report.models.iter().enumerate().map(|(x, model)| point(x, of(model), unit)).collect();
    Series { name: name.into(), style: Style::Points, colour, points, ..Series::default() }
}

fn rule(report: &Report, label: &str, unit: f64, of: impl Fn(&Verdict) -> Estimate) -> Vec<Rule> {
    let rule = |model: &Verdict| {
        let Estimate { value, interval } = of(model);
        let (low, high) = (Some(unit * interval.low), Some(unit * interval.high));
        Rule { way: Way::Horizontal, at: unit * value, low, high, label: label.into() }
    };
    report.models.first().map(rule).into_iter().collect()
}

fn errors(report: &Report) -> Figure {
    Figure {
        id: "judge-error".into(),
        title: "Error beside the Bayes error".into(),
        caption: "Filled: error against the drawn labels. Hollow: its expectation 1 − p(argmax q) under the exact posteriors, which the noise \
                  of the labels does not reach. Line: Bayes error 1 − mean max p of the same images. The distance of the hollow marker from \
                  the line is what a better classifier could gain."
            .into(),
        x: Axis::named("model", names(report)),
        y: Axis::linear("error").in_unit("%"),
        series: vec![
            of_models(report, "against drawn labels", 0, 100.0, |v| v.measured.error),
            Series {
                dashed: true,
                ..of_models(report, "expected", 1, 100.0, |v| v.measured.expected_accuracy.complement())
            },
        ],
        rules: rule(report, "Bayes error", 100.0, |v| v.bayes_error),
        ..Figure::default()
    }
}

fn losses(report: &Report) -> Figure {
    Figure {
        id: "judge-loss".into(),
        title: "Cross-entropy taken apart".into(),
        caption: "L = aleatoric + epistemic: what no classifier avoids (line) and what this one has yet to learn, KL(p || q). Points of \
                  cross-entropy stand as far above the line as the epistemic part stands above 0."
            .into(),
        x: Axis::named("model", names(report)),
        y: Axis::linear("loss").in_unit("nats"),
        series: vec![
            of_models(report, "cross-entropy L", 0, 1.0, |v| v.measured.cross_entropy),
            of_models(report, "epistemic KL(p || q)", 1, 1.0, |v| v.measured.epistemic),
        ],
        rules: rule(report, "aleatoric floor H(p)", 1.0, |v| v.measured.aleatoric),
        ..Figure::default()
    }
}

fn reliability(report: &Report) -> Figure {
    let mut series = Vec::new();
    for (colour, model) in report.models.iter().enumerate() {
        let bins = &model.measured.reliability.bins;
        let exact = bins.iter().map(|bin| {
            let label = Some(format!("{} images", bin.count));
            Point { label, ..Point::new(bin.mean_confidence, bin.exact_rate) }
        });
        let drawn = bins.iter().map(|bin| {
            let Estimate { value, interval } = bin.hit_rate;
            Point::new(bin.mean_confidence, value).within(interval.low, interval.high)
        });
        let name = |what: &str| format!("{}: {what}", model.name);
        let one = |name, style, points| Series { name, style, colour, points, ..Series::default() };
        series.push(one(name("exact"), Style::LinePoints, exact.collect()));
        series.push(Series { dashed: true, ..one(name("drawn labels"), Style::Points, drawn.collect()) });
    }
    let diagonal = vec![Point::new(0.0, 0.0), Point::new(1.0, 1.0)];
    let right =
        Series { name: "calibrated".into(), colour: report.models.len(), points: diagonal, ..Series::default() };
    series.push(Series { dashed: true, ..right });
    Figure {
        id: "judge-reliability".into(),
        title: "Reliability against the exact posterior".into(),
        caption: "In 15 bins of the confidence max q: lines show the exact probability p(argmax q) of being right, hollow markers the share of \
                  hits of drawn labels with its 95 % interval."
            .into(),
        x: Axis { range: Some([0.0, 1.0]), ..Axis::linear("confidence max q") },
        y: Axis { range: Some([0.0, 1.0]), ..Axis::linear("probability of being right") },
        series,
        ..Figure::default()
    }
}

fn class_gaps(report: &Report) -> Figure {
    let largest = |class: usize| {
        let gaps = report.models.iter().filter_map(|model| model.per_class.get(class)?.gap);
        gaps.map(|gap| gap.value).fold(0.0, f64::max)
    };
    let mut classes: Vec<usize> = (0..report.class_names.len()).collect();
    let more = classes.len() > SHOWN_CLASSES;
    if more {
        classes.sort_by(|&a, &b| largest(b).total_cmp(&largest(a)));
        classes.truncate(SHOWN_CLASSES);
    }
    let of = |(colour, model): (usize, &Verdict)| {
        let gap = |(x, &class): (usize, &usize)| Some(point(x, model.per_class.get(class)?.gap?, 100.0));
        let points = classes.iter().enumerate().filter_map(gap).collect();
        Series { name: model.name.clone(), style: Style::Points, colour, points, ..Series::default() }
    };
    let shown = if more { format!(" The {SHOWN_CLASSES} classes with the largest gaps.") } else { String::new() };
    Figure {
        id: "judge-classes".into(),
        title: "Gap to Bayes of each class".into(),
        caption: format!(
            "mean max p − p(argmax q) over the images with each drawn label: expected accuracy lost to the Bayes decision.{shown}"
        ),
        x: Axis::named("drawn label", classes.iter().map(|&class| report.class_names[class].clone())),
        y: Axis::linear("gap to Bayes").in_unit("pp"),
        series: report.models.iter().enumerate().map(of).collect(),
        ..Figure::default()
    }
}

fn kl(report: &Report) -> Figure {
    let edges: Vec<f64> = (DECADES[0] * BINS_IN_DECADE..=DECADES[1] * BINS_IN_DECADE)
        .map(|at| 10f64.powf(f64::from(at) / f64::from(BINS_IN_DECADE)))
        .collect();
    let of = |(colour, model): (usize, &Verdict)| {
        let mut counts = vec![0usize; edges.len()];
        for kl in &model.images.kl {
            // Below the first edge and above the last as if on it.
            counts[edges.partition_point(|edge| edge <= kl).max(1) - 1] += 1;
        }
        let n = model.images.len().max(1) as f64;
        let points = edges.iter().zip(&counts).map(|(edge, count)| Point::new(*edge, 100.0 * *count as f64 / n));
        Series { name: model.name.clone(), style: Style::Steps, colour, points: points.collect(), ..Series::default() }
    };
    Figure {
        id: "judge-kl".into(),
        title: "KL(p || q) of single images".into(),
        caption: "Share of the test images in each half decade; those below 1e-8 nats are in the first, those above 100 in the last. The mean \
                  of this distribution is the epistemic part of the loss; a peak below 1e-6 is out of reach for models that saw labels only."
            .into(),
        x: Axis::log10("KL(p || q)").in_unit("nats"),
        y: Axis::linear("images").in_unit("%"),
        series: report.models.iter().enumerate().map(of).collect(),
        ..Figure::default()
    }
}
