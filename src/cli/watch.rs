//! `bayescope watch`: a run folder from outside, whoever works on it.

use std::time::Duration;

use serde::Serialize;

use super::args::WatchArgs;
use super::output::{print_json_line, print_text};
use super::{external, hardness, notes};
use crate::amounts::duration;
use crate::error::{Error, Result};
use crate::run::{AnyRun, CellLook, Line, RunFolder, State, Status};

#[derive(Serialize)]
struct Look {
    finished: usize,
    planned: usize,
    cells: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    #[serde(flatten)]
    look: CellLook,
    last: Option<Line>,
}

/// What was seen at a look.
pub(super) struct Seen {
    /// For programs.
    pub json: serde_json::Value,
    /// For people.
    pub text: String,
    /// Whether there is nothing more to wait for.
    pub over: bool,
}

/// Looks again and again until nothing more comes.
pub fn run(args: &WatchArgs) -> Result<()> {
    if !(args.every > 0.0 && args.every < 1e6) {
        return Err(Error::input("--every takes a number of seconds > 0"));
    }
    match AnyRun::open(&args.run)? {
        AnyRun::Grid(folder) => follow(args, || seen(&folder)),
        AnyRun::Hardness(folder) => follow(args, || hardness::look(&folder)),
        AnyRun::External(folder) => {
            let mut before = None;
            follow(args, || external::look(&folder, &mut before))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "files, on a network at that, tell nobody when they change")]
fn follow(args: &WatchArgs, mut look: impl FnMut() -> Result<Seen>) -> Result<()> {
    let mut before = String::new();
    if !args.json {
        print_text(&notes::heading(&args.run))?;
    }
    loop {
        let Seen { json, text, over } = look()?;
        if args.json {
            print_json_line(&json)?;
        } else if text != before {
            print_text(&text)?;
            before = text;
        }
        if args.once || over {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs_f64(args.every));
    }
}

fn seen(folder: &RunFolder) -> Result<Seen> {
    let look = look(folder)?;
    let json = serde_json::to_value(&look).map_err(|e| Error::input(e.to_string()))?;
    let over = look.cells.iter().all(|Cell { look, .. }| over(look.finished, look.status.as_ref()));
    Ok(Seen { json, text: text(&look), over })
}

fn look(folder: &RunFolder) -> Result<Look> {
    let cell = |look: CellLook| {
        let busy = look.status.is_some() && !look.finished;
        let last = if busy { folder.last_metrics(&look.planned.id)? } else { None };
        Ok(Cell { look, last })
    };
    let cells = folder.look()?.into_iter().map(cell).collect::<Result<Vec<_>>>()?;
    Ok(Look { finished: cells.iter().filter(|cell| cell.look.finished).count(), planned: cells.len(), cells })
}

/// Whether nothing more comes of a cell: one that failed is tried again only when it is asked for, and runs then.
pub(super) fn over(finished: bool, status: Option<&Status>) -> bool {
    finished || status.is_some_and(|status| status.state == State::Failed)
}

/// How long a cell will take, in words; of one that rests or is silent nobody knows.
pub(super) fn left(status: &Status) -> String {
    let eta = status.eta_secs.filter(|_| status.state == State::Running && !status.stale());
    eta.map_or(String::new(), |secs| format!(", {} left", duration(secs)))
}

/// What a status says, in words.
pub(super) fn state(status: &Status) -> &'static str {
    match status.state {
        _ if status.stale() => "silent for a minute or more: killed?",
        State::Running => "running",
        State::Stopped => "stopped",
        State::Failed => "failed",
        State::Done => "done",
    }
}

fn text(look: &Look) -> String {
    let mut text = format!("{} of {} cells finished\n", look.finished, look.planned);
    for Cell { look: CellLook { planned, finished, status, .. }, last } in &look.cells {
        let Some(status) = status.as_ref().filter(|_| !finished) else { continue };
        let state = state(status);
        let loss = match last {
            Some(Line::Train { loss, .. }) => format!(", training loss {loss:.4} nats"),
            Some(Line::Watched(w)) => {
                let (kl, interval) = w.epistemic();
                let ends = interval.map_or(String::new(), |[low, high]| format!(" [{low:.4}, {high:.4}]"));
                format!(", KL {kl:.4}{ends} nats on the watched images")
            }
            None => String::new(),
        };
        let why = status.message.as_deref().map_or(String::new(), |why| format!(": {why}"));
        let (label, host, left) = (planned.label(), &status.host, left(status));
        text += &format!("  {label}: {state} on {host}, step {} of {}{loss}{left}{why}\n", status.step, status.steps);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::HARDNESS_PRESETS;
    use crate::run::Run;
    use crate::run::hardness::HardnessFolder;

    const SPEC: &str = "name = 'x'\n[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [100]\n\
                        seeds = [0, 1]\n";

    /// Writes a status with seconds left into the folder of a cell.
    fn write(folder: &impl Run, id: &str, state: State, silent_secs: f64) {
        let status = Status::new(state, 1, 9, Some(70.0));
        let cell = folder.cell(id);
        std::fs::create_dir_all(&cell).unwrap();
        Status { heartbeat: status.heartbeat - silent_secs, ..status }.write(&cell).unwrap();
    }

    /// Looks at a run whose cells have these states.
    fn check<R: Run>(folder: &R, look: fn(&R) -> Result<Seen>) {
        let ids: Vec<&str> = folder.plan().iter().map(R::id).collect();
        let told = |first: State, others: State, silent_secs: f64| {
            for (i, id) in ids.iter().enumerate() {
                write(folder, id, if i == 0 { first } else { others }, silent_secs);
            }
            look(folder).unwrap()
        };
        assert!(!look(folder).unwrap().over, "nothing was begun");
        let busy = told(State::Failed, State::Running, 0.0);
        assert!(!busy.over && busy.text.matches(" left").count() == ids.len() - 1, "{}", busy.text);
        let silent = told(State::Failed, State::Running, 1e4);
        assert!(!silent.over && silent.text.contains("killed?") && !silent.text.contains(" left"), "{}", silent.text);
        assert!(!told(State::Failed, State::Stopped, 0.0).over);
        let failed = told(State::Failed, State::Failed, 0.0);
        assert!(failed.over && !failed.text.contains(" left"), "{}", failed.text);
        for id in &ids[1..] {
            std::fs::create_dir_all(folder.result_path(id)).unwrap();
        }
        assert!(look(folder).unwrap().over && !told(State::Running, State::Done, 0.0).over);
    }

    #[test]
    fn a_run_is_watched_until_every_cell_is_finished_or_failed() {
        let place = tempfile::tempdir().unwrap();
        let grid = RunFolder::create(&place.path().join("grid"), &toml::from_str(SPEC).unwrap(), "0123", None).unwrap();
        check(&grid, seen);
        let spec = HARDNESS_PRESETS[0].hardness().unwrap();
        check(&HardnessFolder::plan(&place.path().join("ranking"), &spec).unwrap(), hardness::look);
    }
}
