//! Where a cell stands, for those who watch: rewritten every few seconds.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::data::{host_name, read_json, with_way_out, write_json};
use crate::error::Result;

const STATUS: &str = "status.json";
/// A running cell that has said nothing for so long was probably killed.
const STALE_SECS: f64 = 60.0;

/// What a cell is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Training.
    Running,
    /// Stopped, to be resumed.
    Stopped,
    /// It could not be finished; the message says why.
    Failed,
    /// Finished.
    Done,
}

/// Where a cell stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// What it is doing.
    pub state: State,
    /// Steps done.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// Seconds the rest will take at the pace of this sitting.
    pub eta_secs: Option<f64>,
    /// When this was written, seconds since 1970.
    pub heartbeat: f64,
    /// Machine.
    pub host: String,
    /// Process.
    pub pid: u32,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Status {
    /// Now, on this machine.
    pub fn new(state: State, step: usize, steps: usize, eta_secs: Option<f64>) -> Self {
        Self { state, step, steps, eta_secs, heartbeat: now(), host: host(), pid: std::process::id(), message: None }
    }

    /// Reads a cell's status, if it was ever begun.
    ///
    /// # Errors
    /// Names a file that cannot be read.
    pub fn read(cell: &Path) -> Result<Option<Self>> {
        let way_out = "remove it: it says how far the cell is, and no figure comes from it";
        read_json(&cell.join(STATUS)).map_err(|error| with_way_out(error, way_out))
    }

    /// Writes it.
    ///
    /// # Errors
    /// Names the file.
    pub fn write(&self, cell: &Path) -> Result<()> {
        write_json(&cell.join(STATUS), self)
    }

    /// Whether it says that it runs but has been silent too long. A heartbeat from the future
    /// counts as silence: the clock was set back since.
    pub fn stale(&self) -> bool {
        self.state == State::Running && (now() - self.heartbeat).abs() > STALE_SECS
    }
}

/// How often, at most, a cell's status is rewritten.
const EVERY: Duration = Duration::from_secs(5);

/// Keeps the status of a cell in work up to date.
pub struct Heartbeat {
    cell: PathBuf,
    /// Steps in all, once they are known.
    pub steps: usize,
    /// When this sitting began, and at which step.
    begun: Option<(Instant, usize)>,
    /// Steps done.
    step: usize,
    written: Option<Instant>,
}

impl Heartbeat {
    /// Of the cell in a folder.
    pub fn new(cell: &Path) -> Self {
        Self { cell: cell.to_owned(), steps: 0, begun: None, step: 0, written: None }
    }

    /// Notes where this sitting begins, unless it is noted already.
    pub fn begin(&mut self, step: usize, steps: usize) {
        self.steps = steps;
        self.step = step;
        self.begun.get_or_insert((Instant::now(), step));
    }

    /// Seconds that the steps after `step` take at the pace of this sitting.
    pub fn eta(&self, step: usize) -> Option<f64> {
        let (begun, at) = self.begun?;
        let done = step.checked_sub(at).filter(|done| *done > 0)?;
        Some(begun.elapsed().as_secs_f64() / done as f64 * self.steps.saturating_sub(step) as f64)
    }

    /// Rewrites the status, unless it was rewritten a moment ago.
    ///
    /// # Errors
    /// Names the file.
    pub fn step(&mut self, step: usize) -> Result<()> {
        self.step = step;
        if self.written.is_some_and(|written| written.elapsed() < EVERY) { Ok(()) } else { self.beat(step) }
    }

    /// Rewrites the status.
    ///
    /// # Errors
    /// Names the file.
    pub fn beat(&mut self, step: usize) -> Result<()> {
        (self.step, self.written) = (step, Some(Instant::now()));
        Status::new(State::Running, step, self.steps, self.eta(step)).write(&self.cell)
    }

    /// Rewrites the status of a cell that draws or measures images, unless it was rewritten a moment ago: it lives, and
    /// how long that takes its steps do not tell. Before training has begun a status is that of an earlier sitting, whose
    /// steps are kept; where there is none, none is written.
    ///
    /// # Errors
    /// Names the file.
    pub fn measuring(&mut self) -> Result<()> {
        if self.written.is_some_and(|written| written.elapsed() < EVERY) {
            return Ok(());
        }
        let (step, steps) = match self.begun {
            Some(_) => (self.step, self.steps),
            None => match Status::read(&self.cell) {
                Ok(Some(Status { step, steps, .. })) => (step, steps),
                // One that cannot be read is replaced as soon as training begins.
                Ok(None) | Err(_) => return Ok(()),
            },
        };
        self.written = Some(Instant::now());
        Status::new(State::Running, step, steps, None).write(&self.cell)
    }

    /// Writes that the cell is done.
    ///
    /// # Errors
    /// Names the file.
    pub fn done(&self) -> Result<()> {
        Status::new(State::Done, self.steps, self.steps, None).write(&self.cell)
    }
}

/// Name of this machine.
pub(super) fn host() -> String {
    // The variable comes second: schedulers pass on that of the submitting machine.
    host_name().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "unknown".into())
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_measures_lives_and_does_not_say_how_long_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        let mut heartbeat = Heartbeat::new(folder.path());
        heartbeat.measuring().unwrap();
        assert_eq!(Status::read(folder.path()).unwrap(), None, "nothing is known of its steps yet");
        // An earlier sitting knew them.
        for state in [State::Running, State::Failed] {
            let before = Status { message: Some("why".into()), heartbeat: 0.0, ..Status::new(state, 2, 9, Some(5.0)) };
            before.write(folder.path()).unwrap();
            Heartbeat::new(folder.path()).measuring().unwrap();
            let status = Status::read(folder.path()).unwrap().unwrap();
            assert_eq!((status.state, status.step, status.steps, status.eta_secs), (State::Running, 2, 9, None));
            assert!(!status.stale() && status.message.is_none());
        }
        heartbeat.begin(3, 10);
        heartbeat.measuring().unwrap();
        let status = Status::read(folder.path()).unwrap().unwrap();
        assert_eq!((status.state, status.step, status.steps, status.eta_secs), (State::Running, 3, 10, None));
    }

    #[test]
    fn one_that_cannot_be_read_comes_with_a_way_out() {
        let cell = tempfile::tempdir().unwrap();
        std::fs::write(cell.path().join(STATUS), "").unwrap();
        let why = Status::read(cell.path()).unwrap_err().to_string();
        assert!(why.contains("status.json: ") && why.contains("remove it"), "{why}");
    }

    #[test]
    fn silence_is_seen_whichever_way_the_clock_was_moved() {
        let status = |state, shift: f64| {
            let status = Status::new(state, 1, 2, None);
            Status { heartbeat: status.heartbeat + shift, ..status }
        };
        assert!(!status(State::Running, 0.0).stale() && !status(State::Done, -1e6).stale());
        assert!(status(State::Running, -1e6).stale() && status(State::Running, 1e6).stale());
    }
}
