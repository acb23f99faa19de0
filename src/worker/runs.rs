//! Run folders as the window sees them: what an experiment job reports, and looks at folders that
//! others may work on. A light thread of its own ([`watcher`]) reads every two seconds and reports
//! only what changed.

pub(super) mod watcher;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::classifier::{Architecture, Labels};
use crate::error::Result;
use crate::experiment::{CURVE, DamagedCell, ExperimentSpec, Summary, law_course};
use crate::figure::{Figure, Table};
pub use crate::run::CellLook;
use crate::run::external::{Course as ExternalCourse, ExternalFolder, ExternalSpec};
use crate::run::{Line, Run, RunFolder, RunNotes, State};

/// Which folders are watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchRequest {
    /// The run folders.
    pub folders: Vec<PathBuf>,
    /// The cells whose courses are wanted of one of them; the running one where nobody chose.
    pub cells: Option<(PathBuf, Vec<String>)>,
    /// Whether the courses of all cells that have begun are wanted, of every run.
    pub all_cells: bool,
}

/// A look at a run folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The folder.
    pub folder: PathBuf,
    /// What is in it, or why it cannot be read.
    pub found: std::result::Result<Contents, String>,
    /// What people say of it, or why that cannot be read.
    pub notes: std::result::Result<RunNotes, String>,
}

/// What is in a run folder of some kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    /// A grid of classifiers.
    Grid(Found),
    /// A training by another program.
    External(Arc<ExternalFound>),
}

/// What is in the folder of an external run.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalFound {
    /// What the run is.
    pub spec: ExternalSpec,
    /// What its records say. Its plots are made where they are shown: there may be hundreds of runs.
    pub course: Arc<ExternalCourse>,
}

/// What is in the folder of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What the run is.
    pub spec: Arc<ExperimentSpec>,
    /// Its cells, in the order of the plan.
    pub cells: Vec<CellLook>,
    /// What the finished cells say.
    pub results: Arc<Results>,
    /// How the training of the cells that were asked for went so far, at most [`COURSES`] of them.
    pub courses: Vec<Arc<Course>>,
    /// Those of all cells that have begun, in the order of the plan, where they were asked for; of more than [`COURSES`] those
    /// that run and the first of the others. One that cannot be read is not among them.
    pub begun: Vec<Arc<Course>>,
}

/// What the finished cells of a run say.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Figures and laws.
    pub summary: Summary,
    /// The laws, drawn.
    pub curves: Vec<LawCurve>,
    /// Its figures, with their provenance.
    pub figures: Vec<Figure>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What opens the oracle of the plan.
    pub oracle: String,
    /// SHA-256 of the oracle's weights, where it is at hand and still the one of the plan.
    pub world: Option<String>,
}

/// A fitted law over the numbers of training images that were run.
#[derive(Debug, Clone, PartialEq)]
pub struct LawCurve {
    /// Network.
    pub architecture: Architecture,
    /// What it is told.
    pub labels: Labels,
    /// N, KL, and the ends of its 95 % interval, nats.
    pub points: Vec<[f64; 4]>,
    /// The law fitted without the largest N, up to it: N and KL, nats. Empty where none was held
    /// out.
    pub without_largest: Vec<[f64; 2]>,
}

/// How the training of a cell went so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The cell's ID.
    pub cell: String,
    /// Its metrics.
    pub lines: Vec<Line>,
}

impl Look {
    /// Whether it found what an earlier one did. What is unchanged of an external run is shared: thousands of steps are not
    /// compared one by one.
    pub(super) fn is_same(&self, before: &Self) -> bool {
        let found = match (&self.found, &before.found) {
            (Ok(Contents::External(now)), Ok(Contents::External(then))) => Arc::ptr_eq(now, then),
            (now, then) => now == then,
        };
        found && self.notes == before.notes
    }
}

impl Contents {
    /// The grid, where it is one.
    pub fn grid(&self) -> Option<&Found> {
        match self {
            Self::Grid(found) => Some(found),
            Self::External(_) => None,
        }
    }

    /// The external run, where it is one.
    pub fn external(&self) -> Option<&Arc<ExternalFound>> {
        match self {
            Self::External(found) => Some(found),
            Self::Grid(_) => None,
        }
    }
}

impl Found {
    /// Cells whose result is there and can be read.
    pub fn finished(&self) -> usize {
        self.cells.iter().filter(|cell| cell.finished).count().saturating_sub(self.damaged())
    }

    /// Cells whose result is there and cannot be read.
    pub fn damaged(&self) -> usize {
        self.results.summary.damaged.len()
    }

    /// Whether every cell has a result, whole or damaged: no cell is left to train.
    pub fn is_over(&self) -> bool {
        self.cells.iter().all(|cell| cell.finished)
    }

    /// Cells that somebody has begun.
    pub fn cells_begun(&self) -> usize {
        self.cells.iter().filter(|cell| has_begun(cell)).count()
    }

    /// The course of a cell, as far as it was read.
    pub fn course(&self, id: &str) -> Option<&Arc<Course>> {
        self.courses.iter().chain(&self.begun).find(|course| course.cell == id)
    }

    /// The cell that was heard of last among those that run, or among all that have begun.
    pub fn newest(&self) -> Option<&CellLook> {
        newest(&self.cells)
    }
}

fn newest(cells: &[CellLook]) -> Option<&CellLook> {
    let heard = |cell: &&CellLook| {
        let status = cell.status.as_ref()?;
        Some((status.state == State::Running && !cell.stale && !cell.finished, status.heartbeat))
    };
    let begun = cells.iter().filter_map(|cell| heard(&cell).map(|heard| (heard, cell)));
    begun.max_by(|((a, at), _), ((b, bt), _)| a.cmp(b).then(at.total_cmp(bt))).map(|(_, cell)| cell)
}

fn has_begun(cell: &CellLook) -> bool {
    cell.finished || cell.status.is_some()
}

/// The cells whose courses are read where all are wanted.
fn begun(cells: &[CellLook]) -> Vec<&CellLook> {
    let runs = |cell: &CellLook| {
        !cell.finished && !cell.stale && cell.status.as_ref().is_some_and(|status| status.state == State::Running)
    };
    let begun = || cells.iter().enumerate().filter(|(_, cell)| has_begun(cell));
    let of = |running: bool| begun().filter(move |(_, cell)| runs(cell) == running);
    let mut kept: Vec<(usize, &CellLook)> = of(true).chain(of(false)).take(COURSES).collect();
    kept.sort_unstable_by_key(|(place, _)| *place);
    kept.into_iter().map(|(_, cell)| cell).collect()
}

/// Records of an external run that are read at a look: the others of this thread's runs wait for it.
const RECORDS: usize = 500;

/// Courses of cells that are read at a look.
pub const COURSES: usize = 100;

/// Looks at a run folder, and at the courses of `cells`, of the newest where none is named; of all cells that have begun besides,
/// where `all` are wanted. What has not changed since is taken from `before`.
pub fn look(folder: &Path, cells: &[String], all: bool, before: Option<&Contents>) -> Look {
    let found = find(folder, (cells, all), before).map_err(|error| error.to_string());
    let notes = RunNotes::read(folder).map_err(|error| error.to_string());
    Look { folder: folder.to_owned(), found, notes }
}

fn find(path: &Path, wanted: (&[String], bool), before: Option<&Contents>) -> Result<Contents> {
    if ExternalFolder::is(path) {
        return find_external(path, before.and_then(Contents::external)).map(Contents::External);
    }
    find_grid(path, wanted, before.and_then(Contents::grid)).map(Contents::Grid)
}

fn find_external(path: &Path, before: Option<&Arc<ExternalFound>>) -> Result<Arc<ExternalFound>> {
    let folder = ExternalFolder::open(path)?;
    let before = before.filter(|before| before.spec == folder.spec);
    if let Some(same) = before.filter(|before| folder.is_known(&before.course)) {
        return Ok(same.clone());
    }
    let course = folder.look(before.map(|before| &*before.course), RECORDS)?;
    if let Some(same) = before.filter(|before| *before.course == course) {
        return Ok(same.clone());
    }
    Ok(Arc::new(ExternalFound { spec: folder.spec, course: Arc::new(course) }))
}

fn find_grid(path: &Path, (wanted, all): (&[String], bool), before: Option<&Found>) -> Result<Found> {
    let folder = RunFolder::open(path)?;
    let cells = folder.look()?;
    let same = |before: &&Found| {
        let finished = |cells: &[CellLook]| -> Vec<(String, bool)> {
            cells.iter().map(|cell| (cell.planned.id.clone(), cell.finished)).collect()
        };
        let damaged = &before.results.summary.damaged;
        *before.spec == folder.spec && finished(&before.cells) == finished(&cells) && are_still(damaged, &folder)
    };
    let results = match before.filter(same) {
        Some(before) => before.results.clone(),
        None => Arc::new(results(&folder)?),
    };
    let planned = |id: &&String| cells.iter().find(|cell| cell.planned.id == **id);
    let mut wanted: Vec<&CellLook> = wanted.iter().filter_map(|id| planned(&id)).take(COURSES).collect();
    if wanted.is_empty() {
        wanted.extend(newest(&cells));
    }
    let courses = wanted.iter().map(|cell| course(&folder, cell, before)).collect::<Result<_>>()?;
    let others = if all { begun(&cells) } else { Vec::new() };
    let begun = others.into_iter().filter_map(|cell| course(&folder, cell, before).ok()).collect();
    Ok(Found { spec: Arc::new(folder.spec), cells, results, courses, begun })
}

/// Whether results that could not be read still cannot, for the same reasons: one of them may be whole by now. Only their files are
/// read, so that one damaged cell does not make every look read and fit those of all cells.
fn are_still(damaged: &[DamagedCell], folder: &RunFolder) -> bool {
    damaged.iter().all(|cell| folder.result(&cell.id).is_err_and(|error| error.to_string() == cell.why))
}

/// The course of a cell. One that had finished before it was read does not change.
fn course(folder: &RunFolder, cell: &CellLook, before: Option<&Found>) -> Result<Arc<Course>> {
    let id = &cell.planned.id;
    let over = |before: &&Found| cell.finished && before.cells.iter().any(|it| it.planned.id == *id && it.finished);
    let known = before.filter(over).and_then(|before| before.course(id));
    match known {
        Some(known) => Ok(known.clone()),
        None => Ok(Arc::new(Course { lines: folder.metrics(id)?, cell: id.clone() })),
    }
}

fn results(folder: &RunFolder) -> Result<Results> {
    let summary = folder.summary()?;
    let drawn = summary.laws.iter().filter_map(|law| {
        let fits = law.fits.as_ref()?;
        let without_largest = law.hold_out.iter().flat_map(|held| held.course(CURVE)).collect();
        let points = law_course(fits);
        Some(LawCurve { architecture: law.architecture, labels: law.labels, points, without_largest })
    });
    let curves = drawn.collect();
    let (oracle, world) = folder.planned_on().unzip();
    let oracle = oracle.unwrap_or_else(|| folder.spec.world.oracle.clone());
    let (figures, tables) = (folder.figures(&summary, world.as_deref()), summary.tables());
    Ok(Results { summary, curves, figures, tables, oracle, world })
}
