//! `bayescope run|resume|plan|summary|watch` on a ranking of corpora. (`bayescope hardness` ranks
//! the classes of one world.)

use std::path::Path;

use super::args::{PlanArgs, SummaryArgs};
use super::follow::Follower;
use super::output::{print_json, print_text, tell_written};
use super::run::RunOptions;
use super::task::run_task_for;
use super::watch::{Seen, left, over, state};
use crate::device::{choose, on_device};
use crate::error::{Error, Result};
use crate::experiment::HardnessSpec;
use crate::experiment::hardness::{Ranking, Trouble};
use crate::run::hardness::{HardnessFolder, PlannedCorpus, RankCorpora};
use crate::run::{Run, write_figures};

/// `bayescope run` of a spec.
pub fn run(spec: &HardnessSpec, out: &Path, options: &RunOptions<'_>) -> Result<()> {
    resume(&HardnessFolder::create(out, spec)?, options)
}

/// `bayescope resume`.
pub fn resume(folder: &HardnessFolder, options: &RunOptions<'_>) -> Result<()> {
    if options.copies.oracle.is_some() || options.copies.stage.is_some() {
        return Err(Error::input(
            "a ranking of corpora trains its own oracles where they lie: leave --oracle and --stage out",
        ));
    }
    let device =
        options.device.devices.one().ok_or_else(|| {
            Error::input("a ranking of corpora trains one oracle after the other: give it one device")
        })?;
    let task = RankCorpora { spec: None, folder: folder.path.clone(), share: options.share };
    let done = on_device(choose(device)?, |chosen| {
        run_task_for(&task, None, chosen, &mut Follower::new(&folder.spec.name, &options.stop))
    });
    let found = options.ended(&folder.path, done)?;
    report(folder, &found, options.json)?;
    unfinished(folder, &found).map_or(Ok(()), |why| Err(Error::Input(why)))
}

/// Which corpora are not ranked, why, and what to do about it; `None` where all are.
fn unfinished(folder: &HardnessFolder, found: &Ranking) -> Option<String> {
    let of = found.flows.map_or_else(|| format!("{} corpora", found.planned), |flows| format!("{flows} flows"));
    let again = format!("failed (`bayescope resume {}` tries them again)", folder.path.display());
    let (failed, damaged) = folder.failed_and_damaged(&found.troubles);
    let tell = |troubles: &[&Trouble], what: &str| {
        let each: Vec<String> = troubles.iter().map(|t| format!("{}: {}", t.corpus, t.why)).collect();
        (!each.is_empty()).then(|| format!("{} of {of} {what}: {}", each.len(), each.join("; ")))
    };
    let told = [tell(&failed, &again), tell(&damaged, "left out, with a damaged result")];
    told.into_iter().flatten().reduce(|one, other| format!("{one}; {other}"))
}

fn report(folder: &HardnessFolder, found: &Ranking, json: bool) -> Result<()> {
    if json { print_json(found) } else { print_text(&text(folder, found)) }
}

fn text(folder: &HardnessFolder, found: &Ranking) -> String {
    let mut text = format!("{}: {} of {} corpora finished\n", found.name, found.corpora.len(), found.planned);
    let (failed, damaged) = folder.failed_and_damaged(&found.troubles);
    for (troubles, what) in [(failed, "failed"), (damaged, "is left out")] {
        troubles.iter().for_each(|trouble| text += &format!("{} {what}: {}\n", trouble.corpus, trouble.why));
    }
    for table in found.tables() {
        text += &format!("\n{}\n{}\n", table.text(), table.caption);
    }
    text
}

/// `bayescope summary`.
pub fn summary(folder: &HardnessFolder, args: &SummaryArgs) -> Result<()> {
    for (option, cell) in [("--worst", &args.worst), ("--bought", &args.bought)] {
        if cell.is_some() {
            return Err(Error::input(format!("{option} is about the classifiers of a grid; this run ranks corpora")));
        }
    }
    let found = folder.summary()?;
    if let Some(place) = &args.figures {
        return tell_written(&write_figures(&found.figures(), &found.tables(), place, &found.name)?, args.json);
    }
    if args.csv { print_text(&found.csv()) } else { report(folder, &found, args.json) }
}

/// `bayescope plan` of a spec.
pub fn write_plan(spec: &HardnessSpec, args: &PlanArgs) -> Result<()> {
    match &args.out {
        Some(out) => plan(&HardnessFolder::create(out, spec)?, args, true),
        None => plan(&HardnessFolder::plan(Path::new(""), spec)?, args, false),
    }
}

/// `bayescope plan` of a folder, or of a spec without one.
pub fn plan(folder: &HardnessFolder, args: &PlanArgs, written: bool) -> Result<()> {
    if args.estimate {
        let why = "--estimate times the classifiers of a grid; a ranking of corpora tells the time left from its first steps on";
        return Err(Error::input(why));
    }
    if args.json {
        let corpora: Vec<_> = folder.plan.iter().map(|p| serde_json::json!({ "id": p.id, "train": p.train })).collect();
        let run = written.then(|| folder.path.display().to_string());
        return print_json(&serde_json::json!({ "run": run, "spec": folder.spec, "corpora": corpora }));
    }
    let mut text = format!("{}: {} corpora\n", folder.spec.name, folder.plan.len());
    for PlannedCorpus { id, name, train, .. } in &folder.plan {
        let finished = if written && folder.finished(id) { " · finished" } else { "" };
        let there = if train.data.path.exists() { "" } else { " · not there" };
        let (epochs, path) = (train.training.epochs, train.data.path.display());
        text += &format!("  {id:16} {name}: {epochs} epochs on {path}{there}{finished}\n");
    }
    print_text(&text)
}

/// Where a ranking stands, one line per corpus, as `watch` prints it.
pub fn look(folder: &HardnessFolder) -> Result<Seen> {
    let (mut lines, mut corpora, mut finished, mut all_over) = (String::new(), Vec::new(), 0, true);
    for PlannedCorpus { id, name, .. } in &folder.plan {
        let (status, done) = (folder.status(id)?, folder.finished(id));
        finished += usize::from(done);
        all_over &= over(done, status.as_ref());
        if let Some(status) = status.as_ref().filter(|_| !done) {
            let why = status.message.as_deref().map_or(String::new(), |why| format!(": {why}"));
            let (state, host, left) = (state(status), &status.host, left(status));
            lines += &format!("  {name}: {state} on {host}, step {} of {}{left}{why}\n", status.step, status.steps);
        }
        corpora.push(serde_json::json!({ "id": id, "corpus": name, "finished": done, "status": status }));
    }
    let planned = folder.plan.len();
    let json = serde_json::json!({ "finished": finished, "planned": planned, "corpora": corpora });
    Ok(Seen { json, text: format!("{finished} of {planned} corpora finished\n{lines}"), over: all_over })
}
