//! The folder of a report: a page, figures, tables and all numbers, complete in itself.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::drawn::provenance;
use super::{Evaluated, Examined, LabelCheck, Pair, Report, Verdict, figures, tables};
use crate::data::write_atomically;
use crate::error::{Error, Result};
use crate::figure::{Look, Table, csv, svg};

/// `report.json`.
#[derive(Serialize)]
struct Document<'a> {
    provenance: Vec<(String, String)>,
    class_names: &'a [String],
    labels: LabelCheck,
    false_alarm: f64,
    models: Vec<Model<'a>>,
    pairs: &'a [Pair],
}

/// One model of it: what `evaluate --json` prints, and what is behind the alarms.
#[derive(Serialize)]
struct Model<'a> {
    #[serde(flatten)]
    figures: Evaluated,
    predictions_sha256: &'a Option<String>,
    tests: &'a Examined,
    per_class: &'a [super::ClassGap],
    worst_kl: &'a [super::WorstImage],
    worst_gap: &'a [super::WorstImage],
}

/// Writes `report.md`, `report.json`, and every figure (SVG, CSV) and table (CSV) into `folder`, each file atomically; the
/// page comes last. The files written.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_report(folder: &Path, report: &Report) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let mut written = Vec::new();
    let mut keep = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        write_atomically(&path, |file| file.write_all(bytes))?;
        written.push(path);
        Ok::<_, Error>(())
    };
    let mut page = head(report);
    for table in tables(report) {
        keep(&format!("{}.csv", table.id), commented(&table, report).as_bytes())?;
        page += &format!("\n{}", table.markdown());
    }
    for figure in figures(report) {
        keep(&format!("{}.svg", figure.id), svg(&figure, &Look::default()).as_bytes())?;
        // Tables have the name alone.
        keep(&format!("{}-figure.csv", figure.id), csv(&figure).as_bytes())?;
        page += &format!("\n## {}\n\n![{}]({}.svg)\n\n{}\n", figure.title, figure.title, figure.id, figure.caption);
    }
    page += "\n## Provenance\n\n";
    for (name, value) in provenance(report) {
        page += &format!("* {name}: {value}\n");
    }
    keep("report.json", document(report)?.as_bytes())?;
    keep("report.md", page.as_bytes())?;
    Ok(written)
}

/// A table's CSV under its provenance.
fn commented(table: &Table, report: &Report) -> String {
    let lines = provenance(report).into_iter().map(|(name, value)| format!("# {name}: {value}\n"));
    lines.collect::<String>() + &table.csv()
}

impl<'a> Model<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let Verdict { predictions_sha256, examined, per_class, worst_kl, worst_gap, .. } = verdict;
        Self { figures: verdict.evaluated(), predictions_sha256, tests: examined, per_class, worst_kl, worst_gap }
    }
}

fn document(report: &Report) -> Result<String> {
    let document = Document {
        provenance: provenance(report),
        class_names: &report.class_names,
        labels: report.labels,
        false_alarm: super::FALSE_ALARM,
        models: report.models.iter().map(Model::of).collect(),
        pairs: &report.pairs,
    };
    serde_json::to_string_pretty(&document).map_err(|e| Error::Numeric(format!("report.json: {e}")))
}

/// Title, alarms and notes of each model.
fn head(report: &Report) -> String {
    let mut page = "# Classifiers against the Bayes limit\n".to_owned();
    for model in &report.models {
        page += &format!("\n## {}\n\n", model.name);
        let (gap, bayes) = (model.measured.gap, model.bayes_error);
        page += &format!(
            "Expected error {:.2} % beside a Bayes error of {:.2} %: a gap of {:.2} pp [{:.2}, {:.2}].\n\n",
            100.0 * (1.0 - model.measured.expected_accuracy.value),
            100.0 * bayes.value,
            100.0 * gap.value,
            100.0 * gap.interval.low,
            100.0 * gap.interval.high
        );
        if model.alarms().is_empty() {
            page += "No alarm.\n";
        }
        for alarm in model.alarms() {
            page += &format!("**Alarm.** {}\n\n", alarm.message);
        }
        if !model.notes.is_empty() {
            page += "\nWhile reading the predictions:\n\n";
        }
        for note in &model.notes {
            page += &format!("* {note}\n");
        }
    }
    page
}
