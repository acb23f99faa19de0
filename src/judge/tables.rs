//! Tables of a report.

use super::{ClassGap, Report, Verdict, WorstImage};
use crate::figure::{Column, Table, Value};

/// Summary, pairs, classes, worst images and tests, as far as there is something in them.
pub fn tables(report: &Report) -> Vec<Table> {
    let mut tables = vec![summary(report)];
    if !report.pairs.is_empty() {
        tables.push(pairs(report));
    }
    tables.extend([classes(report), worst(report), tests(report)]);
    tables
}

fn summary(report: &Report) -> Table {
    let row = |model: &Verdict| -> Vec<Value> {
        let m = &model.measured;
        let alarms = match model.alarms().len() {
            0 => "none".into(),
            count => format!("{count}"),
        };
        vec![
            model.name.as_str().into(),
            Value::of(m.error, 100.0),
            Value::of(m.expected_accuracy.complement(), 100.0),
            Value::of(model.bayes_error, 100.0),
            Value::of(m.gap, 100.0),
            Value::of(model.label_gap, 100.0),
            Value::of(m.cross_entropy, 1.0),
            Value::of(m.aleatoric, 1.0),
            Value::of(m.epistemic, 1.0),
            Value::of(m.ece, 100.0),
            Value::of(m.exact_calibration_error, 100.0),
            alarms.into(),
        ]
    };
    let n = report.models.first().map_or(0, |model| model.measured.n);
    Table {
        id: "judge-models".into(),
        title: "Models beside the Bayes limit".into(),
        caption: format!(
            "{n} images; 95 % intervals over them (BCa bootstrap; error: Wilson). Gap: mean max p − p(argmax q). Gap on labels: error less \
             that of the Bayes decision on the same drawn labels, paired; noisier than the gap, of which it is an estimate. \
             Cross-entropy = aleatoric + epistemic."
        ),
        columns: vec![
            Column::new("model", 0),
            Column::of("error", "%", 2),
            Column::of("expected error", "%", 2),
            Column::of("Bayes error", "%", 2),
            Column::of("gap", "pp", 2),
            Column::of("gap on labels", "pp", 2),
            Column::of("cross-entropy", "nats", 4),
            Column::of("aleatoric", "nats", 4),
            Column::of("epistemic KL", "nats", 4),
            Column::of("ECE", "%", 2),
            Column::of("exact calibration error", "%", 2),
            Column::new("alarms", 0),
        ],
        rows: report.models.iter().map(row).collect(),
    }
}

fn pairs(report: &Report) -> Table {
    let row = |pair: &super::Pair| -> Vec<Value> {
        let names = format!("{} − {}", pair.first, pair.second);
        vec![
            names.into(),
            Value::of(pair.error, 100.0),
            Value::of(pair.expected_error, 100.0),
            Value::of(pair.cross_entropy, 1.0),
        ]
    };
    Table {
        id: "judge-pairs".into(),
        title: "Models beside each other".into(),
        caption: "Differences paired by image, with 95 % intervals each; not corrected for their number. Positive: the first is worse. The \
                  cross-entropies differ by their epistemic parts."
            .into(),
        columns: vec![
            Column::new("models", 0),
            Column::of("error", "pp", 2),
            Column::of("expected error", "pp", 2),
            Column::of("cross-entropy", "nats", 4),
        ],
        rows: report.pairs.iter().map(row).collect(),
    }
}

fn classes(report: &Report) -> Table {
    let row = |(model, class): (&Verdict, &ClassGap)| -> Vec<Value> {
        vec![
            model.name.as_str().into(),
            class.class.as_str().into(),
            (class.count as f64).into(),
            Value::of_any(class.gap, 100.0),
            Value::of_any(class.epistemic, 1.0),
            Value::of_any(class.aleatoric, 1.0),
        ]
    };
    let mut rows: Vec<(&Verdict, &ClassGap)> =
        report.models.iter().flat_map(|model| model.per_class.iter().map(move |class| (model, class))).collect();
    let kl = |row: &(&Verdict, &ClassGap)| row.1.epistemic.map_or(f64::NEG_INFINITY, |kl| kl.value);
    let place = |row: &(&Verdict, &ClassGap)| report.models.iter().position(|model| model.name == row.0.name);
    rows.sort_by(|a, b| place(a).cmp(&place(b)).then(kl(b).total_cmp(&kl(a))));
    Table {
        id: "judge-classes".into(),
        title: "Gaps of each class".into(),
        caption: "By drawn label, the largest KL first. Images with a label are more likely of that class than images at large.".into(),
        columns: vec![
            Column::new("model", 0),
            Column::new("drawn label", 0),
            Column::new("images", 0),
            Column::of("gap", "pp", 2),
            Column::of("epistemic KL", "nats", 4),
            Column::of("aleatoric", "nats", 4),
        ],
        rows: rows.into_iter().map(row).collect(),
    }
}

/// The worst images of a model, by what they are the worst.
fn both(model: &Verdict) -> impl Iterator<Item = (&Verdict, &str, &WorstImage)> {
    let by_kl = model.worst_kl.iter().map(move |image| (model, "KL", image));
    by_kl.chain(model.worst_gap.iter().map(move |image| (model, "lost probability", image)))
}

fn worst(report: &Report) -> Table {
    let row = |(model, by, image): (&Verdict, &str, &WorstImage)| -> Vec<Value> {
        vec![
            model.name.as_str().into(),
            by.into(),
            image.image.as_str().into(),
            image.label.as_str().into(),
            image.decision.as_str().into(),
            image.bayes.as_str().into(),
            image.kl.into(),
            (100.0 * image.lost).into(),
            (100.0 * image.confidence).into(),
        ]
    };
    Table {
        id: "judge-worst".into(),
        title: "Worst images".into(),
        caption: "The images with the largest KL(p || q) and with the largest lost probability max p − p(argmax q). Exact: one image has no \
                  interval."
            .into(),
        columns: vec![
            Column::new("model", 0),
            Column::new("worst by", 0),
            Column::new("image", 0),
            Column::new("drawn label", 0),
            Column::new("decision", 0),
            Column::new("Bayes decision", 0),
            Column::of("KL", "nats", 4),
            Column::of("lost probability", "%", 2),
            Column::of("confidence", "%", 2),
        ],
        rows: report.models.iter().flat_map(both).map(row).collect(),
    }
}

fn tests(report: &Report) -> Table {
    let small = |p: f64| if p < 1e-3 { format!("{p:.1e}") } else { format!("{p:.3}") };
    let of = |model: &Verdict| -> Vec<Vec<Value>> {
        let e = &model.examined;
        let median = e.copied.median.map_or_else(|| "–".into(), |median| format!("{median:.1e}"));
        let rows = [
            (
                "hits of drawn labels",
                small(e.hits.p_value),
                format!("{} of {:.1} expected", e.hits.hits, e.hits.expected),
            ),
            ("likelihood of drawn labels", small(e.likelihood.p_value), format!("z = {:.2}", e.likelihood.z)),
            (
                "copied posteriors",
                small(e.copied.p_value),
                format!("{} within 1e-5, {} within 1e-3; median {median} nats", e.copied.copied, e.copied.near),
            ),
            ("order of rows", small(e.order.p_value), format!("{:.1} spreads above shuffled", e.order.z)),
            (
                "order of columns",
                small(e.classes.p_value),
                format!("KL {:.4}, best permutation {:.4} nats", e.classes.given, e.classes.permuted),
            ),
        ];
        let row = |(test, p, found): (&str, String, String)| {
            vec![model.name.as_str().into(), test.into(), p.into(), found.into()]
        };
        rows.into_iter().map(row).collect()
    };
    let level = super::LEVEL;
    Table {
        id: "judge-tests".into(),
        title: "Tests behind the alarms".into(),
        caption: format!(
            "An alarm needs p < {level:.0e}: an honest model raises one in {:.0} times at most. The drawn labels fit the posteriors with p = \
             {}.",
            1.0 / super::FALSE_ALARM,
            small(report.labels.p_value)
        ),
        columns: vec![Column::new("model", 0), Column::new("test", 0), Column::new("p", 0), Column::new("found", 0)],
        rows: report.models.iter().flat_map(of).collect(),
    }
}
