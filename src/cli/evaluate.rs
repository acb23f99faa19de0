//! `bayescope evaluate`.

use super::args::EvaluateArgs;
use super::progress::Bar;
use super::{print_json, print_text};
use crate::classifier::onnx::OnnxOptions;
use crate::data::Split;
use crate::error::Result;
use crate::judge::{Candidate, Evaluated, Note, ReadOptions, Report, assess, write_report};
use crate::units::Seed;

/// Judges models.
pub fn run(args: &EvaluateArgs) -> Result<()> {
    let read = ReadOptions { kind: args.kind.map(Into::into), name: None };
    let onnx = OnnxOptions {
        input: args.normalisation.clone(),
        repeat_channels: args.repeat_channels,
        resize: args.resize,
        output: args.output.clone(),
        ..OnnxOptions::default()
    };
    let files =
        args.predictions.iter().map(|path| Candidate::Predictions { path: path.clone(), options: read.clone() });
    let networks = args.onnx.iter().map(|path| Candidate::Onnx { path: path.clone(), options: onnx.clone() });
    let candidates: Vec<Candidate> = files.chain(networks).collect();
    let split = Split::from(args.split);
    let report = assess(&args.dataset, split, &candidates, Seed(args.seed), &mut Bar::new("running the network"))?;
    if let Some(folder) = &args.report {
        write_report(folder, &report)?;
    }
    if !args.json {
        return print_text(&text(&report, args));
    }
    let evaluated: Vec<Evaluated> = report.models.iter().map(|model| model.evaluated()).collect();
    match evaluated.as_slice() {
        [only] => print_json(only),
        all => print_json(&all),
    }
}

fn text(report: &Report, args: &EvaluateArgs) -> String {
    let mut text = String::new();
    for table in crate::judge::tables(report) {
        text += &table.text();
        text.push('\n');
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
