//! `bayescope plan`: what a run consists of, and the specs that come with the program.

use serde::Serialize;

use super::args::PlanArgs;
use super::hardness;
use super::output::{print_json, print_text};
use super::progress::Bar;
use super::run::{open_data, open_world, plan_in};
use super::spec::{Spec, is_preset, read_spec};
use crate::amounts::duration;
use crate::error::{Error, Result};
use crate::experiment::{DataRecord, ExperimentSpec, HARDNESS_PRESETS, PRESETS};
use crate::run::{AnyRun, EXAMPLES, Estimate, Planned, Run, RunContext, RunFolder, estimate};
use crate::units::counted;

#[derive(Serialize)]
struct PlanReport<'a> {
    run: Option<String>,
    spec: &'a ExperimentSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a DataRecord>,
    cells: Vec<serde_json::Value>,
    estimate: Option<Vec<Estimate>>,
}

/// `bayescope plan`.
pub fn plan(args: &PlanArgs) -> Result<()> {
    let Some(what) = &args.what else { return list_presets(args.json) };
    // A folder that is no run, and bears the name of a preset, is not what was meant.
    if what.is_dir() && (AnyRun::is(what) || !is_preset(what)) {
        if args.out.is_some() && AnyRun::is(what) {
            let why = "has a plan already; --out lays down that of a spec: give its run.toml, or leave --out out";
            return Err(Error::file(what, why));
        }
        return match AnyRun::open(what)? {
            AnyRun::Grid(folder) => show_plan(&folder, args, true),
            AnyRun::Hardness(folder) => hardness::plan(&folder, args, true),
            AnyRun::External(folder) => Err(AnyRun::external_refusal(&folder)),
        };
    }
    let spec = match read_spec(what)? {
        Spec::Grid(spec) => spec,
        Spec::Hardness(spec) => return hardness::write_plan(&spec, args),
    };
    match &args.out {
        Some(out) => {
            let (opened, _) = open_world(&spec, &args.device)?;
            show_plan(&plan_in(out, &spec, &opened)?.0, args, true)
        }
        None => {
            // Whether data fit is known only beside the world.
            let data = match spec.data {
                Some(_) => open_data(&spec, &open_world(&spec, &args.device)?.0)?.map(|data| data.record()),
                None => None,
            };
            let plan = Planned::all(&spec, |_| Ok(String::new()))?;
            show_plan(&RunFolder::unwritten(*spec, plan, data), args, false)
        }
    }
}

fn show_plan(folder: &RunFolder, args: &PlanArgs, written: bool) -> Result<()> {
    let estimates = match args.estimate {
        true => {
            let (opened, device) = open_world(&folder.spec, &args.device)?;
            let settings = folder.spec.world.settings(opened.world.class_names().len())?;
            let context = RunContext::new(&opened.world, settings, &device);
            Some(estimate(folder, &context, &mut Bar::new("timing steps"))?)
        }
        false => None,
    };
    if args.json {
        let cell = |planned: &Planned| match &planned.under {
            Some(under) => serde_json::json!({ "id": planned.id, "cell": planned.cell, "under": under }),
            None => serde_json::json!({ "id": planned.id, "cell": planned.cell }),
        };
        let run = written.then(|| folder.path.display().to_string());
        let cells = folder.plan.iter().map(cell).collect();
        let (spec, data) = (&folder.spec, folder.data.as_ref());
        return print_json(&PlanReport { run, spec, data, cells, estimate: estimates });
    }
    let mut text = format!("{}: {}\n", folder.spec.name, counted(folder.plan.len(), "cell"));
    let cells = || folder.plan.iter().map(|planned| &planned.cell);
    for sentence in folder.data.iter().flat_map(|data| data.sentences(cells())) {
        text += &format!("  {sentence}\n");
    }
    for planned in &folder.plan {
        let finished = written && folder.finished(&planned.id);
        text += &format!("  {:16} {}{}\n", planned.id, planned.label(), if finished { " · finished" } else { "" });
    }
    for Estimate { architecture, parameters, cells, steps, step_secs, seconds } in estimates.iter().flatten() {
        text += &format!(
            "{}: {parameters} parameters, {cells} cells, {steps} steps of {:.1} ms: about {}\n",
            architecture.label(),
            1e3 * step_secs,
            duration(*seconds)
        );
    }
    if let Some(estimates) = &estimates {
        let all = estimates.iter().map(|estimate| estimate.seconds).sum();
        text += &format!("all of it: about {} on this machine, drawing and measuring not counted\n", duration(all));
    }
    print_text(&text)
}

fn list_presets(json: bool) -> Result<()> {
    if json {
        let names: Vec<_> = PRESETS.iter().chain(HARDNESS_PRESETS).map(|preset| preset.name).collect();
        return print_json(&names);
    }
    let mut text = String::from("specs that come with the program (`bayescope run NAME --out RUN`):\n");
    let grids = PRESETS.iter().map(|preset| Ok((preset.name, preset.spec()?.description)));
    let rankings = HARDNESS_PRESETS.iter().map(|preset| Ok((preset.name, preset.hardness()?.description)));
    for described in grids.chain(rankings) {
        let (name, description) = described?;
        text += &format!("  {name:24} {}\n", description.unwrap_or_default());
    }
    text += "finished runs that come with the program (`bayescope summary NAME`):\n";
    for example in EXAMPLES {
        text += &format!("  {:24} {}\n", example.name, example.about);
    }
    print_text(&text)
}
