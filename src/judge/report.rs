//! The folder of a report: a page, figures, tables and all numbers, complete in itself.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::figures::provenance;
use super::{Evaluated, Examined, LabelCheck, Pair, Report, Verdict, figures, tables};
use crate::data::write_named;
use crate::error::{Error, Result};
use crate::figure::Page;

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

/// One model of it: the output of `evaluate --json` without comparisons (those are `pairs`), and the tests behind the alarms.
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

/// Writes `report.md`, `report.json`, and every figure (SVG, CSV) and table (CSV) into `folder`,
/// each file atomically and the page last. Returns the files written.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_report(folder: &Path, report: &Report) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let page = Page {
        name: "report.md".into(),
        head: head(report),
        figures: figures(report),
        tables: tables(report),
        provenance: provenance(report),
    };
    let mut files = page.files();
    files.insert(0, ("report.json".into(), document(report)?.into_bytes()));
    files.into_iter().map(|(name, bytes)| write_named(folder, &name, &bytes)).collect()
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
    if let Some(census) = report.typicality() {
        page += &format!("\n{}.\n", census.describe());
    }
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
            page += "\nNotes:\n\n";
        }
        for note in &model.notes {
            page += &format!("* {note}\n");
        }
    }
    page
}
