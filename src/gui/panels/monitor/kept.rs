//! The lines of all runs in sight and their figure, made again where something has changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::law::Given;
use crate::experiment::ExperimentSpec;
use crate::figure::Figure;
use crate::gui::session::runs::RunView;
use crate::run::external::{ExternalFolder, StepFigures};
use crate::run::monitor::{
    Alarm, CellCourse, Choice, Drawn, Named, Steps, Track, alarms, differing, picture, points_each,
};
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
    runs: Vec<Arc<Lines>>,
    /// Points that each line may have.
    most: usize,
}

/// A run, and its lines under the choice: its steps stay where they are.
struct Lines {
    folder: PathBuf,
    revision: u64,
    /// One of an external run, one of each cell of a grid; none where nothing is known of a course.
    lines: Vec<Line>,
    /// An external run, and its step with the smallest KL.
    best: Option<(ExternalFolder, Option<StepFigures>)>,
}

/// A course, and its line.
struct Line {
    named: Named,
    alarms: Vec<String>,
    drawn: Drawn,
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
    Same(Arc<Lines>),
    Again { folder: PathBuf, revision: u64, name: String, source: Source },
}

enum Source {
    External(Arc<ExternalFound>),
    /// Each cell, and whether nothing more comes of it.
    Grid(Arc<ExperimentSpec>, Vec<(CellCourse, bool)>),
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

    /// How many courses a run has here; `None` where it is not in sight.
    pub fn courses(&self, folder: &Path) -> Option<usize> {
        self.runs.iter().find(|run| run.folder == folder).map(|run| run.lines.len())
    }

    fn agrees(&self, shown: &[&RunView], same: impl Fn(&Lines, &RunView) -> bool) -> bool {
        self.runs.len() == shown.len() && self.runs.iter().zip(shown).all(|(lines, run)| same(lines, run))
    }
}

impl Order {
    /// Lines that stay what they were are taken from `before`.
    pub fn new(shown: &[&RunView], choice: &Choice, before: Option<&Kept>) -> Self {
        let most = points_each(shown.iter().map(|run| run.cells_read().len().max(1)).sum());
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
        let runs: Vec<Arc<Lines>> = parts.into_iter().map(|part| part.lines(&choice, most)).collect();
        let lines: Vec<(&Named, &Drawn)> =
            runs.iter().flat_map(|run| &run.lines).map(|line| (&line.named, &line.drawn)).collect();
        let names: Vec<&Named> = lines.iter().map(|(named, _)| *named).collect();
        let (fields, figure) = (differing(&names), Arc::new(picture(&lines, &choice)));
        let matching = |line: &&Line| line.named.matches(&choice.filter);
        let kept = runs.iter().flat_map(|run| run.lines.iter().filter(matching));
        let warnings = kept.flat_map(|line| &line.alarms).cloned().collect();
        let given = Arc::new(given(runs.iter().filter(|run| run.lines.iter().any(|line| matching(&line)))));
        Kept { choice, fields, warnings, figure, given, runs, most }
    }
}

impl Part {
    fn again(run: &RunView) -> Self {
        let (folder, revision) = (run.folder.clone(), run.revision);
        let source = match (run.external(), run.found()) {
            (Some(found), _) => Source::External(found.clone()),
            (None, Some(found)) => {
                let course = |id: &str| {
                    let course = run.course_of(id).filter(|course| !course.watched.is_empty())?;
                    let over = found.cells.iter().any(|cell| cell.planned.id == id && cell.finished);
                    Some((course, over || run.job.is_none()))
                };
                Source::Grid(found.spec.clone(), run.cells_read().into_iter().filter_map(course).collect())
            }
            (None, None) => Source::Unknown,
        };
        Self::Again { folder, revision, name: run.name(), source }
    }

    fn steps(&self) -> usize {
        match self {
            Self::Again { source: Source::External(found), .. } => found.course.count(),
            Self::Again { source: Source::Grid(_, cells), .. } => {
                cells.iter().map(|(course, _)| course.watched.len()).sum()
            }
            Self::Again { source: Source::Unknown, .. } | Self::Same(_) => 0,
        }
    }

    fn lines(self, choice: &Choice, most: usize) -> Arc<Lines> {
        let (folder, revision, name, source) = match self {
            Self::Same(lines) => return lines,
            Self::Again { folder, revision, name, source } => (folder, revision, name, source),
        };
        let mut best = None;
        let tracks = match source {
            Source::External(found) => {
                let (path, spec) = (folder.clone(), found.spec.clone());
                let track = Track::external(name, &spec, found.course.clone());
                best = Some((ExternalFolder { path, spec }, found.course.best()));
                vec![track]
            }
            Source::Grid(spec, cells) => {
                let of = Named::new(String::new()).with(&*spec);
                cells.into_iter().map(|(course, finished)| of_cell(&name, of.clone(), course, finished)).collect()
            }
            Source::Unknown => Vec::new(),
        };
        let lines = tracks.into_iter().map(|track| Line::of(track, choice, most)).collect();
        Arc::new(Lines { folder, revision, lines, best })
    }
}

/// The course of a cell of a run of this name, whose spec has these fields.
fn of_cell(name: &str, mut of: Named, course: CellCourse, finished: bool) -> Track {
    of.name = format!("{name}: {}", course.label());
    of = of.with(&course.cell);
    // The name of a condition says more than its number.
    of.fields.extend(course.under.map(|under| ("condition".to_owned(), under)));
    Track { of, one_training: course.training.is_some(), steps: Steps::Watched(course.watched), finished }
}

impl Line {
    fn of(track: Track, choice: &Choice, most: usize) -> Self {
        let told = |alarm: &Alarm| format!("{}: {}", track.of.name, alarm.sentence());
        let (alarms, drawn) = (alarms(&track).iter().map(told).collect(), Drawn::of(&track, choice, most));
        Self { named: track.of, alarms, drawn }
    }
}

impl Lines {
    fn is_of(&self, run: &RunView) -> bool {
        self.folder == run.folder && self.revision == run.revision
    }
}

/// What the law over N is of; nothing where no run says its N.
fn given<'a>(runs: impl Iterator<Item = &'a Arc<Lines>>) -> Given {
    let mut given = Given::default();
    for run in runs {
        match &run.best {
            Some((folder, _)) if folder.spec.external.train_images.is_none() => {
                given.lacking.extend(run.lines.iter().map(|line| line.named.name.clone()));
            }
            Some((folder, Some(best))) => given.points.push((folder.clone(), Some(*best))),
            Some((_, None)) | None => {}
        }
    }
    given.points.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    if given.points.is_empty() { Given::default() } else { given }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Watched;
    use crate::measure::{Estimate, Interval};
    use crate::run::RunNotes;
    use crate::run::external::{Course, ExternalSpec};
    use crate::run::monitor::{Over, Quantity};
    use crate::worker::runs::Contents;

    const SPEC: &str = "name = 'theirs'\n[external]\nformat = 1\npredictions = 'logits'\ntrain_images = 10\n[world]\noracle = 'mnist'\n\
                        weights_sha256 = '0123'\ntau = 1.0\nsmoothing = 1.0\nprior = [0.5, 0.5]\n[test]\nimages = 3\nseed = 0\n\
                        classes = ['cat', 'dog']\nshape = { channels = 1, height = 2, width = 2 }\n[test.files]\n";

    /// A run of so many steps, whose KL falls.
    fn run(folder: &str, steps: u64) -> RunView {
        let about = |value: f64| Estimate { value, interval: Interval { low: 0.9 * value, high: 1.1 * value } };
        let step = |step: u64| StepFigures {
            step,
            epoch: None,
            images: None,
            seconds: None,
            train_loss: None,
            cross_entropy: about(0.5 + 1.0 / step as f64),
            aleatoric: about(0.5),
            epistemic: about(1.0 / step as f64),
            nll: about(0.5 + 1.0 / step as f64),
            error: about(0.2),
            expected_error: about(0.2),
            bayes_error: about(0.1),
            ece: 0.1,
            exact_calibration_error: 0.1,
            zeros: 0,
            label_chance: 1.0,
        };
        let (spec, course) =
            (toml::from_str::<ExternalSpec>(SPEC).unwrap(), Arc::new(Course::of((1..=steps).map(step))));
        let look = Some(Ok(Contents::External(Arc::new(ExternalFound { spec, course }))));
        let (job, live, trouble) = (None, None, None);
        RunView { folder: folder.into(), job, look, notes: Ok(RunNotes::default()), live, trouble, revision: 1 }
    }

    #[test]
    fn only_the_steps_of_runs_in_sight_that_have_changed_are_gone_through() {
        let mut runs = ["c", "a", "b"].map(|folder| run(folder, 10));
        let choice = Choice::default();
        let order = |shown: &[&RunView], kept: Option<&Kept>| Order::new(shown, &choice, kept);
        let hidden = order(&[&runs[0], &runs[2]], None);
        assert_eq!(hidden.steps, 20, "a run out of sight costs nothing");
        let two = hidden.make();
        assert_eq!(two.figure.series.len(), 2);
        let all = |runs: &[RunView; 3], kept: &Kept| {
            let shown: Vec<&RunView> = runs.iter().collect();
            (order(&shown, Some(kept)), kept.is_of(&shown), kept.is_newest(&shown))
        };
        let (shown, same, newest) = all(&runs, &two);
        assert_eq!((shown.steps, same, newest), (10, false, false), "the one that comes into sight");
        let three = shown.make();
        assert_eq!(
            three.given.points.iter().map(|(of, _)| of.path.to_str().unwrap()).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert!(three.given.points.iter().all(|(_, best)| best.unwrap().step == 10));
        let (idle, same, newest) = all(&runs, &three);
        assert_eq!((idle.steps, same, newest), (0, true, true), "nothing has changed");
        runs[1] = RunView { revision: 2, ..run("a", 12) };
        let (grown, same, newest) = all(&runs, &three);
        assert_eq!((grown.steps, same, newest), (12, true, false));
        let grown = grown.make();
        let kept = |i: usize| Arc::ptr_eq(&grown.runs[i], &three.runs[i]);
        assert_eq!([0, 1, 2].map(kept), [true, false, true]);
        // Another figure is another line of every run.
        let other = Choice { smoothing: 0.5, ..Choice::default() };
        assert_eq!(Order::new(&runs.iter().collect::<Vec<_>>(), &other, Some(&grown)).steps, 32);
        let filtered = Choice { filter: "nothing".into(), ..Choice::default() };
        let filtered = Order::new(&runs.iter().collect::<Vec<_>>(), &filtered, Some(&grown));
        assert_eq!(filtered.steps, 0);
        assert_eq!((filtered.make().given.points.len(), grown.given.points.len()), (0, 3));
    }

    /// Two times ten epochs, in which KL falls.
    fn line(experiment: &str, choice: &Choice) -> Arc<Lines> {
        let text = format!(
            "name = 'x'\n{experiment}[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [60]\n"
        );
        let spec: ExperimentSpec = toml::from_str(&text).unwrap();
        let cell = spec.cells()[0];
        let watched = |i: usize| {
            let (step, epoch) = (i + 1, i % 10 + 1);
            let (epistemic, intervals) = (1.0 / epoch as f64, None);
            let (cross_entropy, aleatoric) = (0.25 + epistemic, 0.25);
            let (train_loss, expected_accuracy) = (cross_entropy, 0.5);
            Watched { step, epoch, train_loss, cross_entropy, aleatoric, epistemic, expected_accuracy, intervals }
        };
        let (training, watched) = (spec.only_training(&cell), (0..20).map(watched).collect());
        let course = CellCourse { id: "a".into(), cell, under: None, training, train: Vec::new(), watched };
        let source = Source::Grid(Arc::new(spec), vec![(course, false)]);
        Part::Again { folder: "x".into(), revision: 1, name: "x".into(), source }.lines(choice, 1000)
    }

    #[test]
    fn several_trainings_of_a_cell_are_no_course_over_epochs() {
        let rounds =
            "[experiment]\nkind = 'active-learning'\npool = 100\ninitial = 10\nbatch = 10\nstrategies = ['random']\n";
        let points = |experiment: &str, over: Over| {
            let choice = Choice { quantity: Quantity::Epistemic, over, ..Choice::default() };
            let [line] = &line(experiment, &choice).lines[..] else { panic!("one cell") };
            let figure = picture(&[(&line.named, &line.drawn)], &choice);
            (line.alarms.len(), figure.series.iter().map(|series| series.points.len()).sum::<usize>())
        };
        assert_eq!((points(rounds, Over::Steps), points(rounds, Over::Epochs)), ((0, 20), (0, 0)));
        // Of one training the same numbers are a course that has come to a standstill.
        assert_eq!((points("", Over::Steps), points("", Over::Epochs)), ((1, 20), (1, 20)));
    }
}
