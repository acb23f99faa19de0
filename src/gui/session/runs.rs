//! Run folders: what the watcher finds, and what this window's own engine reports in between.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Session;
use super::jobs::{Jobs, State as JobState};
use super::log::Level;
use crate::experiment::{Cell, CellEvent, Watched};
use crate::run::monitor::CellCourse;
use crate::run::{Line, RunEvent, RunNotes, State};
use crate::worker::cell_images::CellImagesRequest;
use crate::worker::protocol::{JobId, Outcome};
use crate::worker::runs::{CellLook, Contents, ExternalFound, Found, Look};

/// Points kept of what a cell says between two looks.
const LIVE: usize = 4000;

/// The runs of this window.
#[derive(Debug, Default)]
pub struct Runs {
    list: Vec<RunView>,
    /// The images of a cell that were asked for last.
    pub cell_images: Option<CellImagesView>,
    /// Something has begun or ended: the watcher should not wait for its time.
    pub look_now: bool,
}

/// Images of a cell that were asked for.
#[derive(Debug)]
pub struct CellImagesView {
    pub job: JobId,
    pub request: CellImagesRequest,
    /// Their name, once they are in the gallery.
    pub shown: Option<String>,
    /// Why there are none.
    pub trouble: Option<String>,
}

/// One run.
#[derive(Debug)]
pub struct RunView {
    pub folder: PathBuf,
    /// The job of this window that works on it.
    pub job: Option<JobId>,
    /// What the newest look found.
    pub look: Option<Result<Contents, String>>,
    /// What people say of it, or why that cannot be read.
    pub notes: Result<RunNotes, String>,
    /// The cell this window's engine trains.
    pub live: Option<Live>,
    /// The last job here, and why it failed.
    pub trouble: Option<(JobId, String)>,
    /// Grows whenever something of the above changes.
    pub revision: u64,
}

/// A cell in training, between two looks.
#[derive(Debug, Clone)]
pub struct Live {
    /// The cell's ID.
    pub id: String,
    pub cell: Cell,
    /// Name of its condition, where there are several.
    pub under: Option<String>,
    pub step: usize,
    pub steps: usize,
    /// Seconds left at the pace of this sitting.
    pub eta_secs: Option<f64>,
    loss: Vec<[f64; 2]>,
    watched: Vec<Watched>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Not yet read.
    Unknown,
    /// The folder cannot be read.
    Unreadable(String),
    /// This window's job waits for its turn.
    Waiting,
    /// This window works on it.
    Running,
    /// This window's job is held.
    Paused,
    /// Another process works on it.
    Elsewhere(String),
    /// It says that it runs, but has been silent.
    Silent,
    /// So many cells could not be finished.
    Failed(usize),
    /// No cell is left to train, and the results of so many cannot be read.
    Damaged(usize),
    /// Another program trains and logs what it predicts.
    Logged,
    /// To be resumed.
    Stopped,
    Planned,
    Done,
}

impl Session {
    /// Images of a cell were asked for.
    pub fn asks_cell_images(&mut self, id: JobId, request: CellImagesRequest) {
        self.jobs.add(id, request.title());
        self.log.add(Level::Info, request.title());
        self.runs.cell_images = Some(CellImagesView { job: id, request, shown: None, trouble: None });
    }
}

impl Runs {
    /// The runs, in the order they became known.
    pub fn iter(&self) -> impl Iterator<Item = &RunView> {
        self.list.iter()
    }

    pub fn get(&self, folder: &Path) -> Option<&RunView> {
        self.list.iter().find(|run| run.folder == folder)
    }

    /// These are the runs to know of.
    pub fn know(&mut self, folders: &[PathBuf]) {
        // Asked every frame; below, every folder is held against every other.
        if self.list.iter().map(|run| &run.folder).eq(folders) {
            return;
        }
        self.list.retain(|run| folders.contains(&run.folder));
        for folder in folders {
            if self.get(folder).is_none() {
                let (folder, job, look, live, trouble) = (folder.clone(), None, None, None, None);
                let notes = Ok(RunNotes::default());
                self.list.push(RunView { folder, job, look, notes, live, trouble, revision: 0 });
            }
        }
    }

    /// A job on a run was submitted.
    pub fn begin(&mut self, job: JobId, folder: &Path) {
        if self.get(folder).is_none() {
            let known: Vec<PathBuf> = self.list.iter().map(|run| run.folder.clone()).collect();
            self.know(&[known, vec![folder.to_owned()]].concat());
        }
        if let Some(run) = self.list.iter_mut().find(|run| run.folder == folder) {
            (run.job, run.live, run.trouble) = (Some(job), None, None);
            run.revision += 1;
            self.look_now = true;
        }
    }

    /// A job ended, perhaps one of a run.
    pub fn ended(&mut self, job: JobId, outcome: &Outcome) {
        let why = outcome.trouble();
        if let Some(run) = self.list.iter_mut().find(|run| run.job == Some(job)) {
            (run.job, run.live) = (None, None);
            run.revision += 1;
            self.look_now = true;
            run.trouble = why.clone().map(|why| (job, why));
        }
        if let Some(images) = self.cell_images.as_mut().filter(|images| images.job == job) {
            images.trouble.clone_from(&why);
        }
    }

    /// Takes what the watcher found.
    pub fn looked(&mut self, look: Look) {
        if let Some(run) = self.list.iter_mut().find(|run| run.folder == look.folder) {
            // Between plan and first look of a new run there is nothing to complain about.
            if look.found.is_ok() || run.job.is_none() {
                run.look = Some(look.found);
                run.revision += 1;
            }
            run.revision += u64::from(run.notes != look.notes);
            run.notes = look.notes;
        }
    }

    /// What was said of a run is in its folder now.
    pub fn noted(&mut self, folder: &Path, notes: RunNotes) {
        if let Some(run) = self.list.iter_mut().find(|run| run.folder == folder) {
            run.notes = Ok(notes);
            run.revision += 1;
            self.look_now = true;
        }
    }

    /// An experiment reports.
    pub fn take(&mut self, job: JobId, event: &RunEvent) {
        let Some(run) = self.list.iter_mut().find(|run| run.job == Some(job)) else { return };
        run.revision += 1;
        let (planned, said, eta_secs) = match event {
            RunEvent::Cell { planned, said, eta_secs } => (planned, said, *eta_secs),
            RunEvent::Finished(_) | RunEvent::Failed { .. } => return run.live = None,
            RunEvent::Planned { .. }
            | RunEvent::Drawing { .. }
            | RunEvent::Scoring { .. }
            | RunEvent::Elsewhere { .. }
            | RunEvent::FinishedElsewhere { .. }
            | RunEvent::Summary(_) => return,
        };
        if let CellEvent::Started { steps, resumed_at, .. } = said {
            let (id, cell, under, step) = (planned.id.clone(), planned.cell, planned.under.clone(), *resumed_at);
            let (loss, watched) = (Vec::new(), Vec::new());
            run.live = Some(Live { id, cell, under, step, steps: *steps, eta_secs: None, loss, watched });
            return;
        }
        let Some(live) = run.live.as_mut().filter(|live| live.id == planned.id) else { return };
        match said {
            CellEvent::Step { step, loss, .. } => {
                (live.step, live.eta_secs) = (*step, eta_secs);
                live.loss.push([*step as f64, *loss]);
                if live.loss.len() > LIVE {
                    let mut keep = false;
                    live.loss.retain(|_| {
                        keep = !keep;
                        keep
                    });
                }
            }
            CellEvent::Watched(watched) => live.watched.push(*watched),
            // Of measuring the steps do not tell the time.
            CellEvent::Measuring { .. } => live.eta_secs = None,
            CellEvent::Started { .. }
            | CellEvent::Checkpoint { .. }
            | CellEvent::Choosing { .. }
            | CellEvent::Drawing(_) => {}
        }
    }
}

impl Standing {
    /// How often an external run logs is its own affair: a long silence says nothing.
    fn of_external(found: &ExternalFound) -> Self {
        match (found.course.finished, found.course.records) {
            (true, _) => Self::Done,
            (false, 0) => Self::Planned,
            (false, _) => Self::Logged,
        }
    }
}

impl RunView {
    /// What the newest look found, if it could look and the run is a grid of classifiers.
    pub fn found(&self) -> Option<&Found> {
        self.look.as_ref()?.as_ref().ok()?.grid()
    }

    /// What the newest look found, if it could look and another program trains.
    pub fn external(&self) -> Option<&Arc<ExternalFound>> {
        self.look.as_ref()?.as_ref().ok()?.external()
    }

    /// Returns the name that it was given; else the folder's, with the spec's name where they differ.
    pub fn name(&self) -> String {
        if let Ok(RunNotes { name, .. }) = &self.notes
            && !name.is_empty()
        {
            return name.clone();
        }
        let folder = self.folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let of_external = || self.external().map(|found| found.spec.name.as_str());
        match self.found().map(|found| found.spec.name.as_str()).or_else(of_external) {
            Some(name) if !folder.contains(name) => format!("{name} in {folder}"),
            _ => folder,
        }
    }

    /// Where it stands.
    pub fn standing(&self, jobs: &Jobs) -> Standing {
        if let Some(job) = self.job.and_then(|job| jobs.get(job)) {
            match job.state {
                JobState::Queued => return Standing::Waiting,
                JobState::Running if jobs.waiting(job).is_some() => return Standing::Waiting,
                JobState::Running => return Standing::Running,
                JobState::Paused => return Standing::Paused,
                JobState::Ended(_) => {}
            }
        }
        let found = match &self.look {
            None => return Standing::Unknown,
            Some(Err(why)) => return Standing::Unreadable(why.clone()),
            Some(Ok(Contents::External(found))) => return Standing::of_external(found),
            Some(Ok(Contents::Grid(found))) => found,
        };
        let open = || found.cells.iter().filter(|cell| !cell.finished);
        let state = |cell: &CellLook| cell.status.as_ref().map(|status| status.state);
        if let Some(status) = open()
            .filter(|cell| !cell.stale && state(cell) == Some(State::Running))
            .find_map(|cell| cell.status.as_ref())
        {
            return Standing::Elsewhere(status.host.clone());
        }
        let failed = open().filter(|cell| state(cell) == Some(State::Failed)).count();
        match (found.finished(), failed) {
            _ if found.is_over() && found.damaged() > 0 => Standing::Damaged(found.damaged()),
            _ if found.is_over() => Standing::Done,
            _ if open().any(|cell| cell.stale) => Standing::Silent,
            (_, 1..) => Standing::Failed(failed),
            (0, 0) if open().all(|cell| cell.status.is_none()) => Standing::Planned,
            _ => Standing::Stopped,
        }
    }

    /// Returns the training curves of the chosen cell, else of the one in training, else of the
    /// last.
    pub fn course(&self, chosen: Option<&str>) -> Option<CellCourse> {
        let courses = self.found().map_or(&[][..], |found| &found.courses);
        let live = self.live.as_ref().filter(|live| chosen.is_none_or(|chosen| chosen == live.id));
        let read = || courses.iter().find(|course| Some(course.cell.as_str()) == chosen).or(courses.first());
        let id = live.map(|live| &live.id).or_else(|| read().map(|course| &course.cell))?;
        self.course_of(id)
    }

    /// Returns the cells whose courses were read, in the order of the plan, and the one in training.
    pub fn cells_read(&self) -> Vec<&str> {
        let found = self.found();
        // Between two panels all of them are asked for, and not yet there.
        let read = found.map_or(&[][..], |found| if found.begun.is_empty() { &found.courses } else { &found.begun });
        let mut ids: Vec<&str> = read.iter().map(|course| course.cell.as_str()).collect();
        let live = self.live.as_ref().map(|live| live.id.as_str());
        ids.extend(live.filter(|live| !read.iter().any(|course| course.cell == *live)));
        ids
    }

    /// Returns the training curves of a cell as far as they were read; without points where they were not.
    pub fn course_of(&self, id: &str) -> Option<CellCourse> {
        let found = self.found();
        let live = self.live.as_ref().filter(|live| live.id == id);
        let of_plan = || {
            let planned = &found?.cells.iter().find(|cell| cell.planned.id == id)?.planned;
            Some((planned.cell, planned.under.clone()))
        };
        let (cell, under) = live.map(|live| (live.cell, live.under.clone())).or_else(of_plan)?;
        let training = found.and_then(|found| found.spec.only_training(&cell));
        let (train, watched) = (Vec::new(), Vec::new());
        let mut course = CellCourse { id: id.to_owned(), cell, under, training, train, watched };
        let read = found.and_then(|found| found.course(id));
        for line in read.map_or(&[][..], |read| &read.lines) {
            match line {
                Line::Train { step, loss, .. } => course.train.push([*step as f64, *loss]),
                Line::Watched(watched) => course.watched.push(*watched),
            }
        }
        if let Some(live) = live {
            let known = course.train.last().map_or(0.0, |last| last[0]);
            course.train.extend(live.loss.iter().filter(|point| point[0] > known));
            let known = course.watched.last().map_or(0, |last| last.step);
            course.watched.extend(live.watched.iter().filter(|watched| watched.step > known));
        }
        Some(course)
    }
}
