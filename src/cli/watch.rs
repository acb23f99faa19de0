//! `bayescope watch`: a run folder from outside, whoever works on it.

use std::time::Duration;

use serde::Serialize;

use super::args::WatchArgs;
use super::progress::duration;
use super::{print_json_line, print_text};
use crate::error::{Error, Result};
use crate::run::{Line, Planned, RunFolder, State, Status};

#[derive(Serialize)]
struct Look<'a> {
    finished: usize,
    planned: usize,
    cells: Vec<CellLook<'a>>,
}

#[derive(Serialize)]
struct CellLook<'a> {
    #[serde(flatten)]
    planned: &'a Planned,
    finished: bool,
    stale: bool,
    status: Option<Status>,
    last: Option<Line>,
}

/// Looks again and again until all is finished.
#[allow(clippy::disallowed_methods, reason = "files, on a network at that, tell nobody when they change")]
pub fn run(args: &WatchArgs) -> Result<()> {
    if !(args.every > 0.0 && args.every < 1e6) {
        return Err(Error::input("--every takes a number of seconds > 0"));
    }
    let folder = RunFolder::open(&args.run)?;
    let mut before = String::new();
    loop {
        let look = look(&folder)?;
        if args.json {
            print_json_line(&look)?;
        } else {
            let text = text(&look);
            if text != before {
                print_text(&text)?;
                before = text;
            }
        }
        if args.once || look.finished == look.planned {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs_f64(args.every));
    }
}

fn look(folder: &RunFolder) -> Result<Look<'_>> {
    let mut cells = Vec::new();
    for planned in &folder.plan {
        let status = folder.status(&planned.id)?;
        let finished = folder.finished(&planned.id);
        let stale = !finished && status.as_ref().is_some_and(Status::stale);
        let busy = status.is_some() && !finished;
        let last = if busy { folder.metrics(&planned.id)?.last().copied() } else { None };
        cells.push(CellLook { planned, finished, stale, status, last });
    }
    Ok(Look { finished: cells.iter().filter(|cell| cell.finished).count(), planned: cells.len(), cells })
}

fn text(look: &Look<'_>) -> String {
    let mut text = format!("{} of {} cells finished\n", look.finished, look.planned);
    for cell in look.cells.iter().filter(|cell| !cell.finished) {
        let Some(status) = &cell.status else { continue };
        let state = match status.state {
            _ if cell.stale => "silent for a minute or more: killed?".to_owned(),
            State::Running => "running".into(),
            State::Stopped => "stopped".into(),
            State::Failed => "failed".into(),
            State::Done => "done".into(),
        };
        let loss = match cell.last {
            Some(Line::Train { loss, .. }) => format!(", training loss {loss:.4} nats"),
            Some(Line::Watched(w)) => {
                let half = w.half_widths.map_or(String::new(), |half| format!(" ± {:.4}", half.epistemic));
                format!(", KL {:.4}{half} nats on the watched images", w.epistemic)
            }
            None => String::new(),
        };
        let eta = status.eta_secs.filter(|_| status.state == State::Running && !cell.stale);
        let left = eta.map_or(String::new(), |secs| format!(", {} left", duration(secs)));
        let why = status.message.as_deref().map_or(String::new(), |why| format!(": {why}"));
        let (label, host) = (cell.planned.label(), &status.host);
        text += &format!("  {label}: {state} on {host}, step {} of {}{loss}{left}{why}\n", status.step, status.steps);
    }
    text
}
