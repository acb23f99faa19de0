//! `bayescope evaluate`.

use std::ops::ControlFlow;

use super::args::EvaluateArgs;
use super::output::{print_json, print_text};
use super::progress::Bar;
use crate::classifier::CheckpointOptions;
use crate::classifier::onnx::OnnxOptions;
use crate::data::Split;
use crate::device::{DeviceChoice, choose, on_device};
use crate::error::Result;
use crate::events::Events;
use crate::judge::{Candidate, Evaluated, JudgeEvent, Note, ReadOptions, Report, assess, write_report};
use crate::run::checkpoints;
use crate::units::Seed;

impl Events<JudgeEvent> for Bar {
    fn emit(&mut self, JudgeEvent { stage, progress }: JudgeEvent) -> ControlFlow<()> {
        self.set(progress, stage.label());
        ControlFlow::Continue(())
    }
}

/// Judges models.
pub fn run(args: &EvaluateArgs) -> Result<()> {
    let candidates = candidates(args)?;
    // Nothing else needs the device.
    let device = if args.checkpoint.is_empty() { DeviceChoice::Cpu } else { args.device.device };
    let report = on_device(choose(device)?, |chosen| {
        let (split, mut bar) = (Split::from(args.split), Bar::new("judging"));
        assess(&args.dataset, split, &candidates, Seed(args.seed), &chosen.device, &mut bar)
    })?;
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

/// The models that are named.
fn candidates(args: &EvaluateArgs) -> Result<Vec<Candidate>> {
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
    let options = CheckpointOptions {
        architecture: args.architecture,
        normalisation: args.normalisation.clone(),
        side: args.side,
    };
    let trained = args.checkpoint.iter().map(|path| checkpoints(path)).collect::<Result<Vec<_>>>()?;
    let trained = trained.into_iter().flatten().map(|path| Candidate::Checkpoint { path, options: options.clone() });
    Ok(files.chain(networks).chain(trained).collect())
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
