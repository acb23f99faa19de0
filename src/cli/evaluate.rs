//! `bayescope evaluate`.

use std::path::Path;

use super::args::EvaluateArgs;
use super::output::{Output, print_text};
use super::place::is_free;
use super::task::run_task;
use super::uncertainty;
use crate::classifier::CheckpointOptions;
use crate::classifier::onnx::OnnxOptions;
use crate::device::{DeviceChoice, choose, on_device};
use crate::error::{Error, Result};
use crate::figure::Table;
use crate::judge::{Candidate, MODELS, Note, ReadOptions, Report, WORST_IMAGES, tables, write_report};
use crate::run::external::ExternalFolder;
use crate::run::{AnyRun, JudgeModels};
use crate::units::Seed;

/// Judges models.
pub fn run(args: &EvaluateArgs) -> Result<()> {
    args.report.as_deref().map_or(Ok(()), is_free)?;
    is_no_run(&args.dataset)?;
    if let Some(path) = &args.uncertainty {
        return uncertainty::run(path, args);
    }
    let task = JudgeModels {
        dataset: args.dataset.clone(),
        split: args.split.into(),
        candidates: candidates(args),
        seed: Seed(args.seed),
    };
    // Nothing else needs the device.
    let device = if args.checkpoint.is_empty() { DeviceChoice::Cpu } else { args.device.device };
    let report = on_device(choose(device)?, |chosen| run_task(&task, None, chosen, "judging"))?.found;
    if let Some(folder) = &args.report {
        write_report(folder, &report)?;
    }
    let output = Output { json: args.json };
    match report.evaluated().as_slice() {
        [only] => output.print(only, |_| print_text(&text(&report, args))),
        all => output.print(&all, |_| print_text(&text(&report, args))),
    }
}

/// Refuses the folder of a run: its test images are no exported dataset.
fn is_no_run(path: &Path) -> Result<()> {
    let what = match AnyRun::is(path) {
        false => return Ok(()),
        true if ExternalFolder::is(path) => "an external run",
        true => "a run",
    };
    Err(Error::file(
        path,
        format!("is {what} and no exported dataset: `bayescope summary {}` reads it", path.display()),
    ))
}

/// The models that are named.
fn candidates(args: &EvaluateArgs) -> Vec<Candidate> {
    let read = ReadOptions { kind: args.kind.map(Into::into), name: None };
    let onnx = OnnxOptions {
        input: args.normalisation.clone(),
        repeat_channels: args.repeat_channels,
        resize: args.resize,
        layout: args.layout.map(Into::into),
        output: args.output.clone(),
        scores: args.kind.map(Into::into),
        ..OnnxOptions::default()
    };
    let files =
        args.predictions.iter().map(|path| Candidate::Predictions { path: path.clone(), options: read.clone() });
    let networks = args.onnx.iter().map(|path| Candidate::Onnx { path: path.clone(), options: onnx.clone() });
    let options = CheckpointOptions {
        architecture: args.architecture,
        normalisation: args.normalisation.clone(),
        side: args.side,
    };
    let trained =
        args.checkpoint.iter().map(|path| Candidate::Checkpoint { path: path.clone(), options: options.clone() });
    files.chain(networks).chain(trained).collect()
}

/// Worst images of a model that are printed, by KL and by gap each.
const WORST: usize = 5;

/// Tables, of which that of the models comes last, where it is read; notes and alarms.
fn text(report: &Report, args: &EvaluateArgs) -> String {
    let (main, others): (Vec<Table>, Vec<Table>) = tables(report).into_iter().partition(|table| table.id == MODELS);
    let mut text = String::new();
    for mut table in others {
        if table.id == WORST_IMAGES {
            shorten(&mut table);
        }
        text += &format!("{}\n", table.text());
    }
    main.iter().for_each(|table| text += &format!("{}\n", turned(table).text()));
    if let Some(census) = report.typicality() {
        text += &format!("{}\n", census.describe());
    }
    for model in &report.models {
        for note in model.notes.iter().map(Note::to_string) {
            text += &format!("{}: {note}\n", model.name);
        }
        for alarm in model.alarms() {
            text += &format!("ALARM, {}: {}\n", model.name, alarm.message);
        }
    }
    if let Some(folder) = &args.report {
        text += &format!("The report is in {}\n", folder.display());
    }
    text
}

/// The first rows of each model and each order; a report has all.
fn shorten(table: &mut Table) {
    let groups = table.rows.chunk_by(|a, b| a[..2] == b[..2]);
    let rows = groups.flat_map(|group| group.iter().take(WORST).cloned()).collect();
    table.rows = rows;
    table.title += &format!(" (the first {WORST} each; --report has more)");
}

/// A table with a column for each row: figures below each other are read where a line would be too long.
fn turned(table: &Table) -> Table {
    let shown = table.shown();
    let figures = Table::of(1..table.columns.len()).words("", |figure| table.columns[figure].heading());
    let turned = shown.iter().fold(figures, |turned, row| turned.words(&row[0], |figure| row[figure].clone()));
    turned.named(&table.id, &table.title, &table.caption)
}
