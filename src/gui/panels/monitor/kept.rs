//! The lines of all runs in sight and their figure, made again where something has changed.

use std::path::PathBuf;
use std::sync::Arc;

use super::law::Given;
use crate::experiment::ExperimentSpec;
use crate::figure::Figure;
use crate::gui::session::runs::{CourseView, RunView};
use crate::run::external::{ExternalFolder, StepFigures};
use crate::run::monitor::{Alarm, Choice, Drawn, Named, Steps, Track, alarms, differing, picture, points_each};
use crate::worker::runs::ExternalFound;

/// Lines and their figure, and what they were made of.
pub struct Kept {
    pub choice: Choice,
    /// Fields that are worth grouping by.
    pub fields: Vec<String>,
    /// What is odd about the runs.
    pub warnings: Vec<String>,
    pub figure: Arc<Figure>,
    /// What the law over N is of.
    pub given: Arc<Given>,
    runs: Vec<Arc<Line>>,
    /// Points that each run may have.
    most: usize,
}

/// A run, and its line under the choice: its steps stay where they are.
struct Line {
    folder: PathBuf,
    revision: u64,
    /// None where nothing is known of its course.
    named: Option<Named>,
    alarms: Vec<String>,
    drawn: Drawn,
    /// An external run, and its step with the smallest KL.
    best: Option<(ExternalFolder, Option<StepFigures>)>,
}

/// What is to be made, here or on another thread.
pub struct Order {
    parts: Vec<Part>,
    choice: Choice,
    most: usize,
    /// Steps that have to be gone through, about.
    pub steps: usize,
}

enum Part {
    Same(Arc<Line>),
    Again { folder: PathBuf, revision: u64, name: String, source: Source },
}

enum Source {
    External(Arc<ExternalFound>),
    /// Whether it is finished, last.
    Grid(Arc<ExperimentSpec>, Box<CourseView>, bool),
    Unknown,
}

impl Kept {
    /// Whether these runs are the same, whatever has been found of them since.
    pub fn is_of(&self, shown: &[&RunView]) -> bool {
        self.agrees(shown, |line, run| line.folder == run.folder)
    }

    /// Whether nothing was found since.
    pub fn is_newest(&self, shown: &[&RunView]) -> bool {
        self.agrees(shown, |line, run| line.is_of(run))
    }

    fn agrees(&self, shown: &[&RunView], same: impl Fn(&Line, &RunView) -> bool) -> bool {
        self.runs.len() == shown.len() && self.runs.iter().zip(shown).all(|(line, run)| same(line, run))
    }
}

impl Order {
    /// Lines that stay what they were are taken from `before`.
    pub fn new(shown: &[&RunView], choice: &Choice, before: Option<&Kept>) -> Self {
        let most = points_each(shown.len());
        let stay = before.filter(|kept| kept.most == most && kept.choice.draws_as(choice));
        let mut known = stay.into_iter().flat_map(|kept| &kept.runs);
        let part = |run: &&RunView| {
            // Both are in the order in which the runs became known.
            let mut rest = known.clone();
            match rest.find(|line| line.folder == run.folder) {
                Some(line) => {
                    known = rest;
                    if line.is_of(run) { Part::Same(line.clone()) } else { Part::again(run) }
                }
                None => Part::again(run),
            }
        };
        let parts: Vec<Part> = shown.iter().map(part).collect();
        let steps = parts.iter().map(Part::steps).sum();
        Self { parts, choice: choice.clone(), most, steps }
    }

    pub fn make(self) -> Kept {
        let Self { parts, choice, most, .. } = self;
        let runs: Vec<Arc<Line>> = parts.into_iter().map(|part| part.line(&choice, most)).collect();
        let lines: Vec<(&Named, &Drawn)> =
            runs.iter().filter_map(|line| Some((line.named.as_ref()?, &line.drawn))).collect();
        let names: Vec<&Named> = lines.iter().map(|(named, _)| *named).collect();
        let (fields, figure) = (differing(&names), Arc::new(picture(&lines, &choice)));
        let matching = |line: &&Arc<Line>| line.named.as_ref().is_some_and(|named| named.matches(&choice.filter));
        let kept: Vec<&Arc<Line>> = runs.iter().filter(matching).collect();
        let warnings = kept.iter().flat_map(|line| &line.alarms).cloned().collect();
        let given = Arc::new(given(&kept));
        Kept { choice, fields, warnings, figure, given, runs, most }
    }
}

impl Part {
    fn again(run: &RunView) -> Self {
        let (folder, revision) = (run.folder.clone(), run.revision);
        let source = match (run.external(), run.found().zip(run.course(None))) {
            (Some(found), _) => Source::External(found.clone()),
            (None, Some((found, course))) => Source::Grid(found.spec.clone(), Box::new(course), run.job.is_none()),
            (None, None) => Source::Unknown,
        };
        Self::Again { folder, revision, name: run.name(), source }
    }

    fn steps(&self) -> usize {
        match self {
            Self::Again { source: Source::External(found), .. } => found.course.count(),
            Self::Again { source: Source::Grid(_, course, _), .. } => course.watched.len(),
            Self::Again { source: Source::Unknown, .. } | Self::Same(_) => 0,
        }
    }

    fn line(self, choice: &Choice, most: usize) -> Arc<Line> {
        let (folder, revision, name, source) = match self {
            Self::Same(line) => return line,
            Self::Again { folder, revision, name, source } => (folder, revision, name, source),
        };
        let mut best = None;
        let track = match source {
            Source::External(found) => {
                let of = Named::new(name).with(&found.spec);
                let (steps, finished) = (Steps::Logged(found.course.clone()), found.course.finished);
                let (path, spec) = (folder.clone(), found.spec.clone());
                best = Some((ExternalFolder { path, spec }, found.course.best()));
                Track { of, steps, finished }
            }
            Source::Grid(spec, course, finished) => {
                let of = Named::new(format!("{name}: {}", course.label)).with(&*spec).with(&course.cell);
                Track { of, steps: Steps::Watched(course.watched), finished }
            }
            Source::Unknown => {
                let (named, drawn) = (None, Drawn::default());
                return Arc::new(Line { folder, revision, named, alarms: Vec::new(), drawn, best });
            }
        };
        let told = |alarm: &Alarm| format!("{}: {}", track.of.name, alarm.sentence());
        let (alarms, drawn) = (alarms(&track).iter().map(told).collect(), Drawn::of(&track, choice, most));
        Arc::new(Line { folder, revision, named: Some(track.of), alarms, drawn, best })
    }
}

impl Line {
    fn is_of(&self, run: &RunView) -> bool {
        self.folder == run.folder && self.revision == run.revision
    }
}

/// What the law over N is of; nothing where no run says its N.
fn given(lines: &[&Arc<Line>]) -> Given {
    let mut given = Given::default();
    for line in lines {
        match &line.best {
            Some((folder, _)) if folder.spec.external.train_images.is_none() => {
                given.lacking.extend(line.named.as_ref().map(|named| named.name.clone()));
            }
            Some((folder, Some(best))) => given.points.push((folder.clone(), Some(*best))),
            Some((_, None)) | None => {}
        }
    }
    given.points.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    if given.points.is_empty() { Given::default() } else { given }
}
