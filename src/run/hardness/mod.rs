//! A ranking of corpora carried out: corpus after corpus, whatever is not finished yet. Each is trained by the engine of `bayescope oracle
//! train`, in a folder of its own, which that command could go on with.

mod diary;
mod folder;
mod task;

use std::ops::ControlFlow;

use serde::Serialize;

use super::execute::Share;
use super::status::{State, Status};
use crate::data::{Dataset, Split};
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::experiment::Truth;
use crate::experiment::hardness::{CorpusResult, Ranking};
use crate::flow::Precision;
use crate::oracle::folder::open;
use crate::oracle::train::{ORACLE, TrainEvent, TrainSpec, corpus, test_corpus, train_oracle};
use crate::oracle::world::Settings;
use crate::units::Seed;

use diary::Diary;
pub use folder::{HardnessFolder, PlannedCorpus};
pub use task::{LiveCorpus, RankCorpora, RankingSoFar};

/// What a ranking reports. Breaking off after any event leaves a folder to go on with.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum HardnessEvent {
    /// The plan is known.
    Planned {
        /// Corpora of this share.
        corpora: usize,
        /// Those of them that are finished.
        finished: usize,
    },
    /// The images of a corpus are read and looked at.
    Reading {
        /// The corpus.
        corpus: String,
    },
    /// A word from the training of a corpus.
    Training {
        /// The corpus.
        corpus: String,
        /// The word.
        said: Box<TrainEvent>,
        /// Seconds the rest of its training will take at the pace of this sitting.
        eta_secs: Option<f64>,
    },
    /// The Bayes error of a trained world is being refined.
    Integrating {
        /// The corpus.
        corpus: String,
    },
    /// A corpus is finished.
    Finished(Box<CorpusResult>),
    /// A corpus could not be finished; the others go on.
    Failed {
        /// The corpus.
        corpus: String,
        /// Why, with file and cause.
        why: String,
    },
    /// What all finished corpora say; after every corpus, and at the end.
    Ranking(Box<Ranking>),
}

/// Trains and measures a share of the corpora that are not finished, and writes the ranking of all that are. A corpus that cannot be
/// finished is told and stands among the ranking's troubles; the next sitting tries it again.
///
/// # Errors
/// When the disk or the device fails, or [`Error::Cancelled`].
pub fn rank(
    folder: &HardnessFolder,
    share: Share,
    chosen: &OpenDevice,
    events: &mut dyn Events<HardnessEvent>,
) -> Result<Ranking> {
    folder.sweep();
    let mine: Vec<&PlannedCorpus> = share.of(&folder.plan).collect();
    let open: Vec<&PlannedCorpus> = mine.iter().copied().filter(|planned| !folder.finished(&planned.id)).collect();
    events.report(HardnessEvent::Planned { corpora: mine.len(), finished: mine.len() - open.len() })?;
    for (i, planned) in open.iter().enumerate() {
        let told = match one(folder, planned, chosen, events) {
            Ok(result) => {
                folder.finish(&result)?;
                events.emit(HardnessEvent::Finished(Box::new(result)))
            }
            Err(Failure::Own(error)) => {
                let why = error.to_string();
                folder.say(planned, State::Failed, Some(&why))?;
                events.emit(HardnessEvent::Failed { corpus: planned.name.clone(), why })
            }
            Err(Failure::Run(error)) => {
                let why = (!matches!(error, Error::Cancelled)).then(|| error.to_string());
                // The error itself matters more than that it cannot be noted (a full disk).
                let _ = folder.say(planned, State::Stopped, why.as_deref());
                return Err(error);
            }
        };
        let found = folder.write_summary()?;
        let told = [told, events.emit(HardnessEvent::Ranking(Box::new(found)))];
        // After the last corpus nothing is left to break off: to say so would have a scheduler start again.
        if told.contains(&ControlFlow::Break(())) && i + 1 < open.len() {
            return Err(Error::Cancelled);
        }
    }
    let found = folder.write_summary()?;
    let _ = events.emit(HardnessEvent::Ranking(Box::new(found.clone())));
    Ok(found)
}

/// Why a corpus is not finished.
enum Failure {
    /// Its own fault: the others may be well.
    Own(Error),
    /// Nothing can go on.
    Run(Error),
}

/// Numbers and inputs are a corpus's own; a disk or a device fails all.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Numeric(_) | Error::Input(_) => Self::Own(error),
            error => Self::Run(error),
        }
    }
}

fn one(
    folder: &HardnessFolder,
    planned: &PlannedCorpus,
    chosen: &OpenDevice,
    events: &mut dyn Events<HardnessEvent>,
) -> Result<CorpusResult, Failure> {
    let PlannedCorpus { id, name, train } = planned;
    let path = folder.corpus(id);
    std::fs::create_dir_all(&path).map_err(|e| Error::io(&path, e))?;
    events.report(HardnessEvent::Reading { corpus: name.clone() })?;
    // Whatever the reader says is about the corpus, files that are not there included.
    usable(train).map_err(Failure::Own)?;
    let mut diary = Diary::new(name, &path);
    let trained = train_oracle(train, &path, chosen, &mut |said: TrainEvent| diary.note(said, events));
    if let Some(error) = diary.trouble.take() {
        return Err(Failure::Run(error));
    }
    trained?;
    let oracle = open(&path.join(ORACLE).display().to_string(), &chosen.device, Precision::F32, chosen.batch)?;
    let settings = Settings::default_for(oracle.world.class_names().len());
    let seed = Seed(folder.spec.seed).split("bayes error");
    let mut refining = |_| events.emit(HardnessEvent::Integrating { corpus: name.clone() });
    let truth = Truth::of(&oracle.world, &settings, seed, &mut refining)?;
    let result = CorpusResult::of(id, name, oracle.info, oracle.world.shape(), truth)?;
    Status::new(State::Done, diary.steps, diary.steps, None).write(&path)?;
    Ok(result)
}

/// Whether a corpus can be ranked: at least two classes, all of them with training images, and test images, where there are some, of the
/// same shape and classes. Looked at before the training, which takes long.
fn usable(spec: &TrainSpec) -> Result<()> {
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
    if let Some(empty) = (0..names.len()).find(|class| !labels.contains(class)) {
        let name = &names[empty];
        return Err(Error::file(path, format!("has no training image of class {name}; name the others under classes")));
    }
    if train.len() <= spec.data.held_out {
        let (n, held_out) = (train.len(), spec.data.held_out);
        return Err(Error::file(path, format!("has {n} training images; holding out {held_out} leaves none")));
    }
    let Some(test) = test_corpus(&spec.data).map_err(about)? else { return Ok(()) };
    if test.shape != train.shape {
        return Err(Error::file(path, format!("test images are {}, training images {}", test.shape, train.shape)));
    }
    if test.labels.is_none() || test.class_names != *names {
        let there = test.class_names.join(", ");
        return Err(Error::file(
            path,
            format!("test images have the classes {there}; training images {}", names.join(", ")),
        ));
    }
    Ok(())
}
