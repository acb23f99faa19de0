//! `bayescope watch`: a run folder from outside, whoever works on it.

use std::time::Duration;

use serde::Serialize;

use super::args::WatchArgs;
use super::output::{print_json_line, print_text};
use super::progress::duration;
use super::{external, hardness, notes};
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

/// Looks again and again until all is finished.
pub fn run(args: &WatchArgs) -> Result<()> {
    if !(args.every > 0.0 && args.every < 1e6) {
        return Err(Error::input("--every takes a number of seconds > 0"));
    }
    match AnyRun::open(&args.run)? {
        AnyRun::Grid(folder) => follow(args, || {
            let look = look(&folder)?;
            let json = serde_json::to_value(&look).map_err(|e| Error::input(e.to_string()))?;
            Ok(Seen { json, text: text(&look), over: look.finished == look.planned })
        }),
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

fn look(folder: &RunFolder) -> Result<Look> {
    let cell = |look: CellLook| {
        let busy = look.status.is_some() && !look.finished;
        let last = if busy { folder.last_metrics(&look.planned.id)? } else { None };
        Ok(Cell { look, last })
    };
    let cells = folder.look()?.into_iter().map(cell).collect::<Result<Vec<_>>>()?;
    Ok(Look { finished: cells.iter().filter(|cell| cell.look.finished).count(), planned: cells.len(), cells })
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
    for Cell { look: CellLook { planned, finished, stale, status }, last } in &look.cells {
        let Some(status) = status.as_ref().filter(|_| !finished) else { continue };
        let state = state(status);
        let loss = match last {
            Some(Line::Train { loss, .. }) => format!(", training loss {loss:.4} nats"),
            Some(Line::Watched(w)) => {
                let half = w.half_widths.map_or(String::new(), |half| format!(" ± {:.4}", half.epistemic));
                format!(", KL {:.4}{half} nats on the watched images", w.epistemic)
            }
            None => String::new(),
        };
        let eta = status.eta_secs.filter(|_| status.state == State::Running && !stale);
        let left = eta.map_or(String::new(), |secs| format!(", {} left", duration(secs)));
        let why = status.message.as_deref().map_or(String::new(), |why| format!(": {why}"));
        let (label, host) = (planned.label(), &status.host);
        text += &format!("  {label}: {state} on {host}, step {} of {}{loss}{left}{why}\n", status.step, status.steps);
    }
    text
}
