//! The corpora of a ranking run one after another, whatever is not finished yet. Each is trained by
//! the engine of `bayescope oracle train`, in a folder of its own, which that command could resume.

mod event;
mod folder;
mod task;

use std::ops::ControlFlow;

use super::cells::{Failure, Queue, Run, Share, Unfinished, begin, end, run_cells, wait_for_others};
use super::status::Heartbeat;
use crate::data::{Dataset, Split};
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::experiment::Truth;
use crate::experiment::hardness::{ClassOrder, CorpusResult, Ranking};
use crate::flow::Precision;
use crate::oracle::folder::open;
use crate::oracle::posterior::Prior;
use crate::oracle::train::{ORACLE, TrainEvent, TrainSpec, corpus, test_like, train_oracle};
use crate::oracle::world::Settings;
use crate::units::Seed;

pub use event::HardnessEvent;
pub use folder::{HardnessFolder, PlannedCorpus};
pub use task::{LiveCorpus, RankCorpora, RankingSoFar};

/// Trains and measures a share of the corpora that are not finished, and writes the ranking of all
/// that are. A corpus that cannot be finished stands among the ranking's troubles; the next sitting
/// tries it again.
///
/// # Errors
/// When the disk or the device fails, or [`Error::Cancelled`].
pub fn rank(
    folder: &HardnessFolder,
    share: Share,
    chosen: &OpenDevice,
    events: &mut dyn Events<HardnessEvent>,
) -> Result<Ranking> {
    let (mut open, unfinished) = (begin(folder, share, events)?, Unfinished::none());
    let mut one =
        |planned: &PlannedCorpus, events: &mut dyn Events<HardnessEvent>| one(folder, planned, chosen, events);
    while !open.is_empty() {
        let mut left = open.iter().copied();
        let queue: Queue<'_, '_, _> = (&mut || left.next(), open.last().copied());
        run_cells(folder, queue, &unfinished, &mut one, events)?;
        open = wait_for_others(folder, &unfinished, events)?;
    }
    end(folder, events)
}

fn one(
    folder: &HardnessFolder,
    planned: &PlannedCorpus,
    chosen: &OpenDevice,
    events: &mut dyn Events<HardnessEvent>,
) -> Result<CorpusResult, Failure> {
    let PlannedCorpus { id, name, corpus, variant, train } = planned;
    let path = folder.cell(id);
    std::fs::create_dir_all(&path).map_err(|e| Error::io(&path, e))?;
    events.report(HardnessEvent::Reading { corpus: name.clone() })?;
    // Whatever the reader says is about the corpus, files that are not there included.
    let counts = usable(train).map_err(Failure::Own)?;
    let mut log = CorpusLog { name, heartbeat: Heartbeat::new(&path), error: None };
    let trained = train_oracle(train, &path, chosen, &mut |said: TrainEvent| log.note(said, events));
    log.unless_refused(trained)?;
    let oracle = open(&path.join(ORACLE).display().to_string(), &chosen.device, Precision::F32, chosen.batch);
    let oracle = oracle.map_err(of_corpus)?;
    let settings = Settings::default_for(oracle.world.class_names().len());
    let seed = Seed(folder.spec.seed).split("bayes error");
    let truth = Truth::of(&oracle.world, &settings, seed, &mut |_| log.integrating(events));
    let truth = log.unless_refused(truth)?;
    // Of the worlds of a corpus the first one is ranked.
    let class_order = match variant.world {
        0 => ClassOrder::of(&oracle.world, &settings, seed, &mut |_| log.integrating(events)),
        _ => Ok(None),
    };
    let class_order = log.unless_refused(class_order)?;
    let own = frequencies(&counts)?.map(|prior| Settings { prior, ..settings });
    let own = own.map(|settings| Truth::of(&oracle.world, &settings, seed, &mut |_| log.integrating(events)));
    let own = log.unless_refused(own.transpose())?;
    let shape = oracle.world.shape();
    let result = CorpusResult::of((id, corpus, *variant), oracle.info, shape, [Some(truth), own])?;
    let result = CorpusResult { class_order, ..result };
    log.heartbeat.done()?;
    Ok(result)
}

/// Whose fault an error of one corpus is. A file that can be read and is not what it should be is its
/// own: images that changed since its training began, another training in its folder, a damaged oracle.
fn of_corpus(error: Error) -> Failure {
    match error {
        Error::File { .. } => Failure::Own(error),
        error => error.into(),
    }
}

/// The frequencies of classes of so many images; none where they are even.
fn frequencies(counts: &[usize]) -> Result<Option<Prior>> {
    if counts.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(None);
    }
    Prior::new(&counts.iter().map(|&count| count as f64).collect::<Vec<_>>()).map(Some)
}

/// Writes down where a corpus in training stands, and passes on what it reports.
struct CorpusLog<'a> {
    name: &'a str,
    heartbeat: Heartbeat,
    /// What the disk refused.
    error: Option<Error>,
}

impl CorpusLog<'_> {
    fn note(&mut self, said: TrainEvent, events: &mut dyn Events<HardnessEvent>) -> ControlFlow<()> {
        let mut eta_secs = None;
        let written = match said {
            TrainEvent::Step { epoch, epochs, step, steps, .. } => {
                let done = (epoch - 1) * steps + step;
                self.heartbeat.begin(done, epochs * steps);
                eta_secs = self.heartbeat.eta(done);
                self.heartbeat.step(done)
            }
            TrainEvent::Measuring(_) => self.heartbeat.measuring(),
            _ => Ok(()),
        };
        self.pass(
            written,
            HardnessEvent::Training { corpus: self.name.to_owned(), said: Box::new(said), eta_secs },
            events,
        )
    }

    /// The Bayes error of the trained world is refined by a step.
    fn integrating(&mut self, events: &mut dyn Events<HardnessEvent>) -> ControlFlow<()> {
        let written = self.heartbeat.measuring();
        self.pass(written, HardnessEvent::Integrating { corpus: self.name.to_owned() }, events)
    }

    /// Passes an event on once the status is written. Held-out images are measured to their end whatever is answered:
    /// what comes after a status that was refused is refused too.
    fn pass(
        &mut self,
        written: Result<()>,
        event: HardnessEvent,
        events: &mut dyn Events<HardnessEvent>,
    ) -> ControlFlow<()> {
        self.error = self.error.take().or(written.err());
        if self.error.is_some() { ControlFlow::Break(()) } else { events.emit(event) }
    }

    /// What was computed meanwhile, unless the disk refused the status.
    fn unless_refused<T>(&mut self, done: Result<T>) -> Result<T, Failure> {
        match self.error.take() {
            Some(error) => Err(Failure::Run(error)),
            None => done.map_err(of_corpus),
        }
    }
}

/// Checks, before the long training, that a corpus can be ranked: at least two classes with
/// training images, and test images, if any, that training takes. Returns how many training images
/// each class has.
fn usable(spec: &TrainSpec) -> Result<Vec<usize>> {
    let path = &spec.data.path;
    let about = |error: Error| match error {
        Error::Input(why) => Error::file(path, why),
        error => error,
    };
    let train = corpus(&spec.data, Split::Train).map_err(about)?;
    let names = &train.class_names;
    let Dataset { labels: Some(labels), .. } = &train else {
        return Err(Error::file(path, "its images have no labels; give a folder for each class, or files with labels"));
    };
    if names.len() < 2 {
        return Err(Error::file(path, format!("has {} class; a Bayes error needs at least two", names.len())));
    }
    let mut counts = vec![0usize; names.len()];
    for label in labels {
        if let Some(count) = counts.get_mut(*label) {
            *count += 1;
        }
    }
    if let Some(empty) = counts.iter().position(|count| *count == 0) {
        let name = &names[empty];
        return Err(Error::file(path, format!("has no training image of class {name}; name the others under classes")));
    }
    if train.len() <= spec.data.held_out {
        let (n, held_out) = (train.len(), spec.data.held_out);
        return Err(Error::file(path, format!("has {n} training images; holding out {held_out} leaves none")));
    }
    test_like(&spec.data, &train)?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::super::status::{State, Status};
    use super::*;
    use crate::data::{ImageShape, write_png};
    use crate::events::silent;
    use crate::experiment::HARDNESS_PRESETS;

    #[test]
    fn a_damaged_result_is_a_trouble_of_its_corpus_and_hides_no_other() {
        let place = tempfile::tempdir().unwrap();
        let spec = HARDNESS_PRESETS[0].hardness().unwrap();
        let folder = HardnessFolder::plan(&place.path().join("ranking"), &spec).unwrap();
        let [damaged, failed] = [0, 1].map(|i| folder.cell(&folder.plan[i].id));
        [&damaged, &failed].into_iter().for_each(|cell| std::fs::create_dir_all(cell).unwrap());
        std::fs::write(damaged.join("result.json"), "{").unwrap();
        let status = Status { message: Some("no labels".into()), ..Status::new(State::Failed, 0, 0, None) };
        status.write(&failed).unwrap();
        let troubles = folder.summary().unwrap().troubles;
        let names: Vec<&String> = troubles.iter().map(|trouble| &trouble.corpus).collect();
        assert_eq!(names, [&folder.plan[0].name, &folder.plan[1].name]);
        let (why, way_out) = (&troubles[0].why, format!("delete it: `bayescope resume {}`", folder.path.display()));
        assert!(why.contains("result.json") && why.contains(&way_out) && troubles[1].why == "no labels", "{why}");
        assert_eq!(folder.failed_and_damaged(&troubles), (vec![&troubles[1]], vec![&troubles[0]]));
    }

    #[test]
    fn a_ranking_takes_the_test_images_that_training_takes() {
        let place = tempfile::tempdir().unwrap();
        let shape = ImageShape { channels: 1, height: 2, width: 2 };
        let add = |folder: &str| {
            let folder = place.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            (0..2).for_each(|i| write_png(&folder.join(format!("{i}.png")), shape, &[i; 4]).unwrap());
        };
        ["train/cat", "train/dog", "train/wild", "test/wild"].into_iter().for_each(add);
        let spec = format!("name = 'x'\n[data]\npath = '{}'\nheld_out = 1\n", place.path().display());
        let spec: TrainSpec = toml::from_str(&spec).unwrap();
        assert_eq!(usable(&spec).unwrap(), [2, 2, 2]);
        add("test/wolf");
        let why = usable(&spec).unwrap_err().to_string();
        assert!(why.contains("the classes wild, wolf; training images cat, dog, wild"), "{why}");
    }

    #[test]
    fn a_corpus_whose_bayes_error_is_refined_is_not_silent() {
        let place = tempfile::tempdir().unwrap();
        // Trained in an earlier sitting.
        let before = Status { heartbeat: 0.0, ..Status::new(State::Running, 9, 9, None) };
        before.write(place.path()).unwrap();
        let mut log = CorpusLog { name: "digits", heartbeat: Heartbeat::new(place.path()), error: None };
        assert!(log.integrating(&mut silent()).is_continue());
        let status = Status::read(place.path()).unwrap().unwrap();
        assert!(!status.stale() && (status.step, status.steps) == (9, 9));
        assert!(log.unless_refused(Ok(())).is_ok());
        log.error = Some(Error::input("the disk is full"));
        assert!(log.integrating(&mut silent()).is_break());
        assert!(matches!(log.unless_refused::<()>(Err(Error::Cancelled)), Err(Failure::Run(Error::Input(_)))));
    }
}
