//! A run as its cells: classifiers of a grid, or corpora of a ranking. Each has a folder with its
//! state and its result. They are run one after another, and a share of them by each process.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cell_lock::CellLock;
use super::files::write_summary;
use super::status::{Heartbeat, State, Status};
use crate::data::{read_json, with_way_out, write_json};
use crate::error::{Error, Result};
use crate::events::Events;

/// What a cell found: written last.
const RESULT: &str = "result.json";
/// Who waits for another process says so, and hears of a stop, this often.
const WAIT: Duration = Duration::from_millis(50);
/// It looks after the cell once in so many times: network file systems are slow.
const WAITS: usize = 20;

/// Which cells a process takes: every `of`-th, from `task` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Share {
    /// From 0.
    pub task: usize,
    /// How many processes share the run.
    pub of: usize,
}

impl Share {
    /// The whole run.
    pub const ALL: Self = Self { task: 0, of: 1 };

    /// Its cells of a plan.
    pub fn of<T>(self, plan: &[T]) -> impl Iterator<Item = &T> {
        let mine = move |i: usize| i % self.of.max(1) == self.task;
        plan.iter().enumerate().filter(move |(i, _)| mine(*i)).map(|(_, planned)| planned)
    }
}

/// A run on disk, of any kind.
pub trait Run {
    /// A cell of its plan.
    type Planned: PartialEq;
    /// What a finished cell gave.
    type Output: Serialize + DeserializeOwned;
    /// What all finished cells say.
    type Summary: Serialize;
    /// What a run reports.
    type Event;

    /// Its cells, in their order.
    fn plan(&self) -> &[Self::Planned];

    /// Name of a cell's folder.
    fn id(planned: &Self::Planned) -> &str;

    /// Folder of a cell.
    fn cell(&self, id: &str) -> PathBuf;

    /// Removes what killed processes left unfinished: whole files are never among it.
    fn sweep(&self);

    /// Its folder.
    fn folder(&self) -> &Path;

    /// What the finished cells say, and the same as CSV.
    ///
    /// # Errors
    /// Names a file of the run that cannot be read.
    fn found(&self) -> Result<(Self::Summary, String)>;

    /// Reports how many cells a share has, and how many of them are finished.
    fn planned(cells: usize, finished: usize) -> Self::Event;

    /// Reports a cell that another process, `by`, computes: it is left to that one, and waited for
    /// where nothing else is left to do.
    fn elsewhere(planned: &Self::Planned, by: String, waiting: bool) -> Self::Event;

    /// Reports a cell that was counted as open, and that another process has finished.
    fn finished_elsewhere(planned: &Self::Planned) -> Self::Event;

    /// Reports a cell that ended: its result, or why there is none.
    fn ended(planned: &Self::Planned, end: Result<Self::Output, String>) -> Self::Event;

    /// Reports a summary; `last` where nothing follows.
    fn summarised(summary: &Self::Summary, last: bool) -> Option<Self::Event>;

    /// Writes the summary of what is finished as JSON and CSV.
    ///
    /// # Errors
    /// As [`Self::found`]; names the file that cannot be written.
    fn write_summary(&self) -> Result<Self::Summary> {
        let finished = || self.plan().iter().filter(|planned| self.finished(Self::id(planned))).count();
        loop {
            let before = finished();
            let (summary, csv) = self.found()?;
            write_summary(self.folder(), &summary, &csv)?;
            // Another process may have finished a cell and written its summary in between, which
            // this older one has replaced. The last writer looks last, so that the last summary
            // misses nothing. Files are counted, not what the summary says: that of an example
            // counts all cells, also where a file of theirs is missing.
            if finished() == before {
                return Ok(summary);
            }
        }
    }

    /// Where a cell's result is once it is finished.
    fn result_path(&self, id: &str) -> PathBuf {
        self.cell(id).join(RESULT)
    }

    /// What a cell gave, once it is finished.
    ///
    /// # Errors
    /// Names a result that is there and cannot be read, and how to get it again.
    fn result(&self, id: &str) -> Result<Option<Self::Output>> {
        let path = self.result_path(id);
        read_json(&path).map_err(|error| {
            // RUN/cells/ID/result.json
            let run = path.ancestors().nth(3).unwrap_or(&path).display();
            with_way_out(error, &format!("delete it: `bayescope resume {run}` computes the cell again"))
        })
    }

    /// What the finished cells gave, in the order of the plan; and those whose result cannot be read, with what
    /// [`Self::result`] says of it: one of them keeps nobody from the others.
    fn results(&self) -> (Vec<Self::Output>, Vec<Failed<'_, Self::Planned>>) {
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        for planned in self.plan() {
            match self.result(Self::id(planned)) {
                Ok(result) => found.extend(result),
                Err(error) => damaged.push((planned, error.to_string())),
            }
        }
        (found, damaged)
    }

    /// Whether a cell is finished.
    fn finished(&self, id: &str) -> bool {
        self.result_path(id).exists()
    }

    /// Finishes a cell.
    ///
    /// # Errors
    /// Names the file.
    fn finish(&self, id: &str, result: &Self::Output) -> Result<()> {
        write_json(&self.result_path(id), result)
    }

    /// Where a cell stands; `None` where it was never begun.
    ///
    /// # Errors
    /// Names a status that is there and cannot be read.
    fn status(&self, id: &str) -> Result<Option<Status>> {
        Status::read(&self.cell(id))
    }

    /// Cells of a share that are not finished.
    fn open(&self, share: Share) -> Vec<&Self::Planned> {
        share.of(self.plan()).filter(|planned| !self.finished(Self::id(planned))).collect()
    }
}

/// Why a cell is not finished.
pub enum Failure {
    /// Its own fault: the others may be well.
    Own(Error),
    /// Nothing can go on.
    Run(Error),
}

/// Numbers and inputs are a cell's own; a disk or a device fails all.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Input(_) => Self::Own(error),
            error if error.is_numeric() => Self::Own(error),
            error => Self::Run(error),
        }
    }
}

/// The cells of a share that are not finished, as their run begins.
///
/// # Errors
/// When there is no such share, or the caller stops.
pub fn begin<'a, R: Run>(run: &'a R, share: Share, events: &mut dyn Events<R::Event>) -> Result<Vec<&'a R::Planned>> {
    let Share { task, of } = share;
    if task >= of {
        return Err(Error::input(format!("there is no task {task} of {of}: tasks count from 0")));
    }
    run.sweep();
    let (mine, open) = (share.of(run.plan()).count(), run.open(share));
    events.report(R::planned(mine, mine - open.len()))?;
    Ok(open)
}

/// Cells that were handed out and that this sitting has not finished, whatever device they were for.
pub struct Unfinished<'a, P> {
    failed: Mutex<Vec<Failed<'a, P>>>,
    elsewhere: Mutex<Vec<&'a P>>,
}

/// A cell that failed by its own fault, or whose result cannot be read, and why.
pub type Failed<'a, P> = (&'a P, String);

impl<'a, P> Unfinished<'a, P> {
    /// None yet.
    pub fn none() -> Self {
        Self { failed: Mutex::default(), elsewhere: Mutex::default() }
    }

    /// Those that failed by their own fault, and why.
    pub fn failed(&self) -> MutexGuard<'_, Vec<Failed<'a, P>>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell that another process computes.
    fn leave(&self, planned: &'a P) {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).push(planned);
    }

    /// Takes those that other processes compute.
    fn take(&self) -> Vec<&'a P> {
        std::mem::take(&mut *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where cells come from: the next one, and which is the last of all.
pub type Queue<'q, 'a, P> = (&'q mut dyn FnMut() -> Option<&'a P>, Option<&'a P>);

/// Computes one cell, and says whose fault it is where that fails.
pub type RunCell<'c, 'a, R> = &'c mut dyn FnMut(
    &'a <R as Run>::Planned,
    &mut dyn Events<<R as Run>::Event>,
) -> Result<<R as Run>::Output, Failure>;

/// Runs the cells that a queue gives by `one`, but for those that are finished by then and those that
/// another process computes: see [`wait_for_others`]. Cells that fail by their own fault are noted
/// at once: they are not handed out again where the device is lost with a later one.
///
/// # Errors
/// What fails the whole run, or [`Error::Cancelled`].
pub fn run_cells<'a, R: Run>(
    run: &R,
    (next, last): Queue<'_, 'a, R::Planned>,
    unfinished: &Unfinished<'a, R::Planned>,
    one: RunCell<'_, 'a, R>,
    events: &mut dyn Events<R::Event>,
) -> Result<()> {
    while let Some(planned) = next() {
        let id = R::id(planned);
        // By another process since the cells were counted.
        if run.finished(id) {
            events.report(R::finished_elsewhere(planned))?;
            continue;
        }
        let cell = run.cell(id);
        let Some(lock) = CellLock::take(&cell)? else {
            unfinished.leave(planned);
            events.report(R::elsewhere(planned, CellLock::holder(&cell), false))?;
            continue;
        };
        // Before it was locked.
        if run.finished(id) {
            lock.remove();
            events.report(R::finished_elsewhere(planned))?;
            continue;
        }
        // How an earlier sitting ended is no longer true.
        Heartbeat::new(&cell).measuring()?;
        let end = match one(planned, events) {
            Ok(result) => {
                run.finish(id, &result)?;
                lock.remove();
                Ok(result)
            }
            Err(Failure::Own(error)) => {
                let why = error.to_string();
                unfinished.failed().push((planned, why.clone()));
                note(&cell, State::Failed, Some(&why))?;
                Err(why)
            }
            Err(Failure::Run(error)) => {
                let why = (!matches!(error, Error::Cancelled)).then(|| error.to_string());
                // The error itself matters more than that it cannot be noted (a full disk).
                let _ = note(&cell, State::Stopped, why.as_deref());
                return Err(error);
            }
        };
        let summary = run.write_summary()?;
        let ended = events.emit(R::ended(planned, end));
        let said = R::summarised(&summary, false).map_or(ControlFlow::Continue(()), |event| events.emit(event));
        // After the last cell nothing is left to stop: a scheduler would start the run again.
        if (ended.is_break() || said.is_break()) && Some(planned) != last {
            return Err(Error::Cancelled);
        }
    }
    Ok(())
}

/// Waits until cells that were left to other processes are free, because those ended before they were
/// finished, and returns them, to be run. Returns none where all are finished.
///
/// # Errors
/// Names a file that cannot be written, and a cell of another job of this process, which may go on only
/// after this one; [`Error::Cancelled`].
pub fn wait_for_others<'a, R: Run>(
    run: &R,
    unfinished: &Unfinished<'a, R::Planned>,
    events: &mut dyn Events<R::Event>,
) -> Result<Vec<&'a R::Planned>> {
    let mut busy = unfinished.take();
    loop {
        let (mut free, mut left) = (Vec::new(), Vec::new());
        for planned in busy {
            let id = R::id(planned);
            let lock = CellLock::take(&run.cell(id))?;
            match (run.finished(id), lock) {
                (true, lock) => {
                    lock.into_iter().for_each(CellLock::remove);
                    events.report(R::finished_elsewhere(planned))?;
                }
                (false, Some(_)) => free.push(planned),
                (false, None) => left.push(planned),
            }
        }
        busy = left;
        let Some(first) = busy.first().copied().filter(|_| free.is_empty()) else {
            busy.into_iter().for_each(|planned| unfinished.leave(planned));
            return Ok(free);
        };
        let cell = run.cell(R::id(first));
        if CellLock::is_ours(&cell) {
            let why =
                "belongs to another job of this program, which is held or waits; let that one go on, or cancel it";
            return Err(Error::file(cell, why));
        }
        let by = CellLock::holder(&cell);
        for _ in 0..WAITS {
            events.report(R::elsewhere(first, by.clone(), true))?;
            std::thread::park_timeout(WAIT);
        }
    }
}

/// Writes and reports the summary of all cells.
///
/// # Errors
/// Names the file that cannot be written.
pub fn end<R: Run>(run: &R, events: &mut dyn Events<R::Event>) -> Result<R::Summary> {
    let summary = run.write_summary()?;
    if let Some(event) = R::summarised(&summary, true) {
        let _ = events.emit(event);
    }
    Ok(summary)
}

/// Notes in a cell's folder how it ended.
fn note(cell: &Path, state: State, why: Option<&str>) -> Result<()> {
    let (step, steps) = Status::read(cell)?.map_or((0, 0), |status| (status.step, status.steps));
    std::fs::create_dir_all(cell).map_err(|e| Error::io(cell, e))?;
    Status { message: why.map(str::to_owned), ..Status::new(state, step, steps, None) }.write(cell)
}
