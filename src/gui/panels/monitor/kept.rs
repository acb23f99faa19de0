//! The lines of all runs in sight and their figure, made again where something has changed.

use std::path::PathBuf;
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
    Grid(Arc<ExperimentSpec>, Box<CellCourse>, bool),
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
                let (path, spec) = (folder.clone(), found.spec.clone());
                let track = Track::external(name, &spec, found.course.clone());
                best = Some((ExternalFolder { path, spec }, found.course.best()));
                track
            }
            Source::Grid(spec, course, finished) => {
                let of = Named::new(format!("{name}: {}", course.label())).with(&*spec).with(&course.cell);
                let one_training = course.training.is_some();
                Track { of, steps: Steps::Watched(course.watched), finished, one_training }
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
    fn line(experiment: &str, choice: &Choice) -> Arc<Line> {
        let text = format!(
            "name = 'x'\n{experiment}[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [60]\n"
        );
        let spec: ExperimentSpec = toml::from_str(&text).unwrap();
        let cell = spec.cells()[0];
        let watched = |i: usize| {
            let (step, epoch) = (i + 1, i % 10 + 1);
            let (epistemic, half_widths) = (1.0 / epoch as f64, None);
            let (cross_entropy, aleatoric) = (0.25 + epistemic, 0.25);
            let (train_loss, expected_accuracy) = (cross_entropy, 0.5);
            Watched { step, epoch, train_loss, cross_entropy, aleatoric, epistemic, expected_accuracy, half_widths }
        };
        let (training, watched) = (spec.only_training(&cell), (0..20).map(watched).collect());
        let course = CellCourse { id: "a".into(), cell, under: None, training, train: Vec::new(), watched };
        let source = Source::Grid(Arc::new(spec), Box::new(course), false);
        Part::Again { folder: "x".into(), revision: 1, name: "x".into(), source }.line(choice, 1000)
    }

    #[test]
    fn several_trainings_of_a_cell_are_no_course_over_epochs() {
        let rounds =
            "[experiment]\nkind = 'active-learning'\npool = 100\ninitial = 10\nbatch = 10\nstrategies = ['random']\n";
        let points = |experiment: &str, over: Over| {
            let choice = Choice { quantity: Quantity::Epistemic, over, ..Choice::default() };
            let line = line(experiment, &choice);
            let figure = picture(&[(line.named.as_ref().unwrap(), &line.drawn)], &choice);
            (line.alarms.len(), figure.series.iter().map(|series| series.points.len()).sum::<usize>())
        };
        assert_eq!((points(rounds, Over::Steps), points(rounds, Over::Epochs)), ((0, 20), (0, 0)));
        // Of one training the same numbers are a course that has come to a standstill.
        assert_eq!((points("", Over::Steps), points("", Over::Epochs)), ((1, 20), (1, 20)));
    }
}
