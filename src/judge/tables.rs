//! Tables of a report.

use super::alarms::LEAST;
use super::alarms::classes::FEWEST;
use super::alarms::copied::KNOWN;
use super::{AlarmKind, ClassGap, ClassOrder, Report, Verdict, WorstImage};
use crate::figure::{Table, Value};
use crate::measure::BIASED;

/// Name of the table with a row for each model.
pub const MODELS: &str = "judge-models";
/// Name of the table of the worst images of each model, whose first columns say of which and by what.
pub const WORST_IMAGES: &str = "judge-worst";

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
    let n = report.models.first().map_or(0, |model| model.measured.n);
    let caption = format!(
        "{n} images; 95 % intervals over them (BCa bootstrap with Student's t; error: Wilson; calibration errors: bootstrap of the \
         differences in their bins, with Student's t). Where fewer than 30 images are in doubt (for the gap: lose by the decision; for the \
         exact calibration error: have a confidence that is off by more than 0.1; for ECE: are wrong, or right), those of errors, gap, the \
         aleatoric part and the calibration errors hold what images that were not seen may add (rule of three); cross-entropy and KL have no bound to tell it by. Gap: mean max p − p(argmax q). Gap on labels: \
         error less that of the Bayes decision on the same drawn labels, paired; noisier than the gap, of which it is an estimate. \
         Cross-entropy = aleatoric + epistemic. {BIASED}"
    );
    let alarms = |model: &Verdict| match model.alarms().len() {
        0 => "none".into(),
        count => format!("{count}"),
    };
    Table::of(&report.models)
        .words("model", |model| model.name.as_str())
        .column("error", "%", 2, |model| Value::of(model.measured.error, 100.0))
        .column("expected error", "%", 2, |model| Value::of(model.measured.expected_accuracy.complement(), 100.0))
        .column("Bayes error", "%", 2, |model| Value::of(model.bayes_error, 100.0))
        .column("gap", "pp", 2, |model| Value::of(model.measured.gap, 100.0))
        .column("gap on labels", "pp", 2, |model| Value::of(model.label_gap, 100.0))
        .column("cross-entropy", "nats", 4, |model| Value::of(model.measured.cross_entropy, 1.0))
        .column("aleatoric", "nats", 4, |model| Value::of(model.measured.aleatoric, 1.0))
        .column("epistemic KL", "nats", 4, |model| Value::of(model.measured.epistemic, 1.0))
        .column("ECE", "%", 2, |model| Value::of(model.measured.ece, 100.0))
        .column("exact calibration error", "%", 2, |model| Value::of(model.measured.exact_calibration_error, 100.0))
        .words("alarms", alarms)
        .named(MODELS, "Models beside the Bayes limit", caption)
}

fn pairs(report: &Report) -> Table {
    let caption = "Differences paired by image, with 95 % intervals each; not corrected for their number. Positive: the first is worse. The \
                   cross-entropies differ by their epistemic parts.";
    Table::of(&report.pairs)
        .words("models", |pair| format!("{} − {}", pair.first, pair.second))
        .column("error", "pp", 2, |pair| Value::of(pair.error, 100.0))
        .column("expected error", "pp", 2, |pair| Value::of(pair.expected_error, 100.0))
        .column("cross-entropy", "nats", 4, |pair| Value::of(pair.cross_entropy, 1.0))
        .named("judge-pairs", "Models beside each other", caption)
}

fn classes(report: &Report) -> Table {
    let mut rows: Vec<(&Verdict, &ClassGap)> =
        report.models.iter().flat_map(|model| model.per_class.iter().map(move |class| (model, class))).collect();
    let kl = |row: &(&Verdict, &ClassGap)| row.1.epistemic.map_or(f64::NEG_INFINITY, |kl| kl.value);
    let place = |row: &(&Verdict, &ClassGap)| report.models.iter().position(|model| model.name == row.0.name);
    rows.sort_by(|a, b| place(a).cmp(&place(b)).then(kl(b).total_cmp(&kl(a))));
    let caption = "By drawn label, the largest KL first. Images with a label are more likely of that class than images at large. 95 % \
                   intervals over the images of the class: of few images they are wide.";
    Table::of(rows)
        .words("model", |(model, _)| model.name.as_str())
        .words("drawn label", |(_, class)| class.class.as_str())
        .words("images", |(_, class)| class.count)
        .column("gap", "pp", 2, |(_, class)| Value::of_any(class.gap, 100.0))
        .column("epistemic KL", "nats", 4, |(_, class)| Value::of_any(class.epistemic, 1.0))
        .column("aleatoric", "nats", 4, |(_, class)| Value::of_any(class.aleatoric, 1.0))
        .named("judge-classes", "Gaps of each class", caption)
}

/// The worst images of a model, by what they are the worst.
fn both(model: &Verdict) -> impl Iterator<Item = (&Verdict, &str, &WorstImage)> {
    let by_kl = model.worst_kl.iter().map(move |image| (model, "KL", image));
    by_kl.chain(model.worst_gap.iter().map(move |image| (model, "gap", image)))
}

fn worst(report: &Report) -> Table {
    let caption = "The images with the largest KL(p || q) and with the largest gap max p − p(argmax q). Exact: one image has no interval.";
    Table::of(report.models.iter().flat_map(both))
        .words("model", |(model, ..)| model.name.as_str())
        .words("worst by", |(_, by, _)| by)
        .words("image", |(.., image)| image.image.as_str())
        .words("drawn label", |(.., image)| image.label.as_str())
        .words("decision", |(.., image)| image.decision.as_str())
        .words("Bayes decision", |(.., image)| image.bayes.as_str())
        .column("KL", "nats", 4, |(.., image)| image.kl)
        .column("gap", "pp", 2, |(.., image)| 100.0 * image.lost)
        .column("confidence", "%", 2, |(.., image)| 100.0 * image.confidence)
        .named(WORST_IMAGES, "Worst images", caption)
}

/// The test that raises its alarm by a median, too.
const COPIED: &str = "copied posteriors";

/// A test of a model: its name, p and what was found; no p where the alarm is by a threshold.
type Tested<'a> = (&'a str, &'static str, Option<f64>, String);

fn tested(model: &Verdict) -> [Tested<'_>; 5] {
    let (name, e) = (model.name.as_str(), &model.examined);
    let median = e.copied.median.map_or_else(|| "–".into(), |median| format!("{median:.1e}"));
    let hits = format!("{} of {:.1} expected", e.hits.hits, e.hits.expected);
    let copied = format!("{} within 1e-5, {} within 1e-3; median {median} nats", e.copied.copied, e.copied.near);
    // The p is of copies among what is near. Where nearly all is near it may be 1, and the alarm is by the median.
    let by_median = e.alarms.iter().any(|alarm| alarm.kind == AlarmKind::KnowsPosteriors && alarm.p_value.is_none());
    let ClassOrder { tested_on, given, permuted, reweighted, p_value, .. } = &e.classes;
    let weighted = reweighted.map_or_else(String::new, |kl| format!(", best weights {kl:.4}"));
    let (p_of_columns, columns) = match tested_on {
        0 => (None, format!("not tested: that takes {FEWEST} images and two classes")),
        // Of a half of them: the KL of the model is that of all.
        half => (
            Some(*p_value),
            format!("of every second image ({half}): KL {given:.4}{weighted}, best permutation {permuted:.4} nats"),
        ),
    };
    [
        (name, "hits of drawn labels", Some(e.hits.p_value), hits),
        (name, "likelihood of drawn labels", Some(e.likelihood.p_value), format!("z = {:.2}", e.likelihood.z)),
        (name, COPIED, (!by_median).then_some(e.copied.p_value), copied),
        (name, "order of rows", Some(e.order.p_value), format!("{:.1} spreads above shuffled", e.order.z)),
        (name, "order of columns", p_of_columns, columns),
    ]
}

fn tests(report: &Report) -> Table {
    let small = |p: f64| match p {
        p if p < LEAST => format!("< {LEAST:.0e}"),
        p if p < 1e-3 => format!("{p:.1e}"),
        p => format!("{p:.3}"),
    };
    let level = super::LEVEL;
    let caption = format!(
        "An alarm needs p < {level:.0e} or, for copied posteriors, a median error of log-odds of at most {KNOWN:.0e}, which has no p. Hits \
         and likelihood: a model that does not know the labels raises one in {:.0} times at most. \
         The others test what models are like: copied posteriors, whether errors of log-odds are spread smoothly about 0; the order of \
         rows, whether a fifth of what it claims to know is so, which a model that was fitted to noise may miss; the order of columns, \
         whether a permutation beats other weights of the classes. p of the drawn labels under the posteriors: {}.",
        1.0 / super::FALSE_ALARM,
        small(report.labels.p_value)
    );
    let rows: Vec<Tested<'_>> = report.models.iter().flat_map(tested).collect();
    Table::of(&rows)
        .words("model", |(model, ..)| *model)
        .words("test", |(_, test, ..)| *test)
        .words("p", |(_, _, p, _)| p.map_or(Value::Nothing, |p| small(p).into()))
        .words("alarm", |(_, test, ..)| match *test {
            COPIED => format!("p < {level:.0e}, or median ≤ {KNOWN:.0e}"),
            _ => format!("p < {level:.0e}"),
        })
        .words("found", |(.., found)| found.as_str())
        .named("judge-tests", "Tests behind the alarms", caption)
}
