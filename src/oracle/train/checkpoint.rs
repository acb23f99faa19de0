//! State of a training run on disk: one folder per checkpoint, written under another name and
//! renamed into place, so that a kill at any moment leaves the last complete one. No
//! [`Store`](crate::data::Store): the files of a checkpoint are of use only together. A run keeps its
//! newest checkpoint and, where that lies within an epoch, the newest one after an epoch.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::spec::{OptimSpec, TrainSpec};
use super::step::{Saved, adam};
use crate::data::{WHOLE, read_bounded, read_json, write_atomically, write_json};
use crate::error::{Error, Result};
use crate::flow::weights::{Storage, Weights};
use crate::gradients::with_moments;
use crate::oracle::evaluate::Evaluation;

/// The best epoch so far, by held-out NLL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Epoch, from 1.
    pub epoch: usize,
    /// Mean held-out −log p(x|y), nats per image, 8-bit pixels.
    pub nll: f64,
    /// All figures on the held-out images; absent in what older versions wrote.
    #[serde(default)]
    pub held_out: Option<Evaluation>,
    /// SHA-256 of its averaged weights as a file; absent in what older versions wrote.
    #[serde(default)]
    pub weights_sha256: Option<String>,
}

/// How far the epoch is that is not finished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// Steps done, those that moved nothing included.
    pub steps: usize,
    /// Images of the steps that moved something.
    pub images: usize,
    /// Sum of their training NLL, nats.
    pub nll: f64,
}

/// Scalars of the run's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Epochs finished.
    pub epoch: usize,
    /// The epoch after these.
    #[serde(default)]
    pub within: Within,
    /// Best epoch so far.
    pub best: Option<Best>,
    /// Seconds of training in all sittings.
    pub seconds: f64,
    /// What the learning rate is multiplied by: halved whenever training diverged.
    #[serde(default = "one")]
    pub rate_scale: f64,
    /// SHA-256 of the training images and their labels; empty in checkpoints of versions that did
    /// not write it down.
    #[serde(default)]
    pub images_sha256: String,
    /// What is trained, and how; absent in checkpoints of versions that did not write it down.
    #[serde(default)]
    pub spec: Option<TrainSpec>,
}

impl State {
    /// Before the first epoch of a spec on these images.
    pub fn new(spec: &TrainSpec, images_sha256: String) -> Self {
        let (within, spec) = (Within::default(), Some(spec.clone()));
        Self { epoch: 0, within, best: None, seconds: 0.0, rate_scale: 1.0, images_sha256, spec }
    }

    /// What a checkpoint in the folder of such a place cannot say of itself; nothing where all can be.
    fn oddity(&self, place: At) -> Option<String> {
        let Self { epoch, within: Within { steps, .. }, rate_scale, seconds, .. } = self;
        if (*epoch, *steps) != place {
            return Some(format!("is that of another checkpoint, after {epoch} epochs and {steps} steps"));
        }
        let all = self.spec.as_ref().map_or(usize::MAX, |spec| spec.training.epochs);
        if *epoch > all {
            return Some(format!("counts {epoch} epochs of a training of {all}"));
        }
        let scaled = *rate_scale > 0.0 && *rate_scale <= 1.0;
        (!scaled || !(0.0..f64::MAX).contains(seconds))
            .then(|| format!("has a rate_scale of {rate_scale:e} and {seconds:e} seconds, which no training has"))
    }

    /// What an older version did not write down of a checkpoint; nothing where it is all there. `spec_beside`: whether the
    /// run's folder has a spec, which counts in place of the one that is missing here.
    pub fn unrecorded(&self, spec_beside: bool) -> Option<Unrecorded> {
        let missing = Unrecorded {
            without_images: self.images_sha256.is_empty(),
            without_spec: self.spec.is_none() && !spec_beside,
        };
        (missing.without_images || missing.without_spec).then_some(missing)
    }

    /// After the steps so far, before more of them by a spec that was compared with the one there,
    /// on the images that its folder of data holds now.
    ///
    /// # Errors
    /// When these are others than before: some held-out ones would be images already trained on.
    pub fn going_on(self, spec: &TrainSpec, images_sha256: String) -> Result<Self> {
        if !self.images_sha256.is_empty() && self.images_sha256 != images_sha256 {
            return Err(Error::file(
                &spec.data.path,
                "is not what this training was begun with: its training images or their labels have changed. Bring them back as they \
                 were, or begin anew in another folder",
            ));
        }
        Ok(Self { images_sha256, spec: Some(spec.clone()), ..self })
    }
}

/// What the checkpoint of an older version does not say, and what therefore is not compared when a training goes on from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Unrecorded {
    /// The hash of the images that were trained on is missing.
    pub without_images: bool,
    /// The spec is missing, and there is none beside it.
    pub without_spec: bool,
}

impl std::fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match (self.without_images, self.without_spec) {
            (true, true) => "images and settings",
            (true, false) => "images",
            _ => "settings",
        };
        write!(
            f,
            "the checkpoint is of an older version, which did not record its {what}: whether they are the same is not known"
        )
    }
}

fn one() -> f64 {
    1.0
}

/// Everything a run needs to go on exactly where it was.
pub struct Checkpoint {
    /// Scalars.
    pub state: State,
    /// Parameters, average and optimizer.
    pub saved: Saved,
}

const PREFIX: &str = "checkpoint-";
const STATE: &str = "state.json";
const AVERAGE: &str = "average.safetensors";

/// Finished epochs, and steps of the one after them: checkpoints of one run in their order.
type At = (usize, usize);

/// Name of a checkpoint's folder: `checkpoint-00003` after an epoch, `checkpoint-00003-000120` within the next one.
fn name((epoch, steps): At) -> String {
    let within = if steps > 0 { format!("-{steps:06}") } else { String::new() };
    format!("{PREFIX}{epoch:05}{within}")
}

fn at(name: &str) -> Option<At> {
    let place = name.strip_prefix(PREFIX)?;
    let (epoch, steps) = place.split_once('-').unwrap_or((place, "0"));
    Some((epoch.parse().ok()?, steps.parse().ok()?))
}

fn folders(run: &Path) -> Result<Vec<(At, PathBuf)>> {
    let entries = std::fs::read_dir(run).map_err(|e| Error::io(run, e))?;
    let mut found: Vec<(At, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((at(path.file_name()?.to_str()?)?, path))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// Whether a run folder has a checkpoint.
///
/// # Errors
/// Names the folder that cannot be read.
pub fn is_in(run: &Path) -> Result<bool> {
    Ok(!folders(run)?.is_empty())
}

/// The folder of the newest checkpoint of a run folder, if there is one, and its scalars.
///
/// # Errors
/// Names the file that cannot be read.
pub fn newest(run: &Path) -> Result<Option<(PathBuf, State)>> {
    let Some((place, folder)) = folders(run)?.pop() else { return Ok(None) };
    let path = folder.join(STATE);
    let odd = |what: &str| {
        let way_out = "remove its folder: the training goes on from the checkpoint before it, or begins anew";
        Error::file(&path, format!("{what}; {way_out}"))
    };
    let state: State = read_json(&path)?.ok_or_else(|| odd("is not there"))?;
    match state.oddity(place) {
        Some(what) => Err(odd(&what)),
        None => Ok(Some((folder, state))),
    }
}

/// The newest checkpoint of a run folder, if there is one.
///
/// # Errors
/// Names the file that cannot be read.
pub fn load(run: &Path, optim: &OptimSpec) -> Result<Option<Checkpoint>> {
    let Some((folder, state)) = newest(run)? else { return Ok(None) };
    let read = |name: &str| {
        let path = folder.join(name);
        read_bounded(&path, WHOLE).map_err(|e| Error::io(&path, e))
    };
    let moments = with_moments(adam(optim), read("optimizer.bpk")?);
    Ok(Some(Checkpoint {
        state,
        saved: Saved {
            weights: Weights::read(&folder.join("weights.safetensors"))?,
            average: Weights::read(&folder.join(AVERAGE))?,
            optimizer: moments.map_err(|e| Error::file(folder.join("optimizer.bpk"), e))?,
        },
    }))
}

/// The averaged weights after an epoch, where its checkpoint is still there.
///
/// # Errors
/// Names the file that cannot be read.
pub fn average_after(run: &Path, epoch: usize) -> Result<Option<Weights>> {
    let path = run.join(name((epoch, 0))).join(AVERAGE);
    path.is_file().then(|| Weights::read(&path)).transpose()
}

/// Removes the checkpoints within epochs: a run that diverged goes back to one whose weights were measured.
///
/// # Errors
/// Names the folder that cannot be removed.
pub fn forget_within(run: &Path) -> Result<()> {
    remove(run, |(_, steps)| steps > 0)
}

/// Writes the scalars of the newest checkpoint anew, where there is one.
///
/// # Errors
/// Names the file that cannot be written; the scalars before stay.
pub fn rewrite(run: &Path, state: &State) -> Result<()> {
    folders(run)?.pop().map_or(Ok(()), |(_, folder)| write_json(&folder.join(STATE), state))
}

/// Oldest first and under another name, so that a kill leaves no part of one as the newest.
fn remove(run: &Path, old: impl Fn(At) -> bool) -> Result<()> {
    for (_, folder) in folders(run)?.into_iter().filter(|(at, _)| old(*at)) {
        std::fs::rename(&folder, unfinished(run)?).map_err(|e| Error::io(&folder, e))?;
    }
    unfinished(run).map(drop)
}

/// Where a checkpoint is written and removed: a free place.
fn unfinished(run: &Path) -> Result<PathBuf> {
    let place = run.join("unfinished-checkpoint");
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(|e| Error::io(&place, e))?;
    }
    Ok(place)
}

/// Writes a checkpoint and then removes older ones, except the newest one after an epoch: that of the epoch before
/// may never have been written, where it ended in steps that moved nothing.
///
/// # Errors
/// Names the file that cannot be written; the checkpoint before stays.
pub fn save(run: &Path, checkpoint: &Checkpoint) -> Result<()> {
    let now = (checkpoint.state.epoch, checkpoint.state.within.steps);
    let folder = run.join(name(now));
    let partial = unfinished(run)?;
    std::fs::create_dir_all(&partial).map_err(|e| Error::io(&partial, e))?;
    checkpoint.saved.weights.write(&partial.join("weights.safetensors"), Storage::F32)?;
    checkpoint.saved.average.write(&partial.join(AVERAGE), Storage::F32)?;
    let moments = checkpoint.saved.optimizer.into_bytes().map_err(|e| Error::file(&partial, e.to_string()))?;
    write_atomically(&partial.join("optimizer.bpk"), |file| file.write_all(&moments))?;
    write_json(&partial.join(STATE), &checkpoint.state)?;
    std::fs::rename(&partial, &folder).map_err(|e| Error::io(&folder, e))?;
    let whole = folders(run)?.into_iter().map(|(at, _)| at).filter(|at| at.1 == 0 && *at <= now).max();
    remove(run, |at| at < now && Some(at) != whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_goes_on_with_its_own_images_alone() {
        let spec: TrainSpec = toml::from_str("name = 'x'\ndata.path = 'data'").unwrap();
        let begun = State::new(&spec, "a".into());
        assert_eq!(begun.clone().going_on(&spec, "a".into()).unwrap(), begun);
        let refused = begun.going_on(&spec, "b".into()).unwrap_err().to_string();
        assert!(refused.starts_with("data: ") && refused.contains("another folder"), "{refused}");
        // Written by a version that kept neither hash nor spec.
        let old: State = serde_json::from_str(r#"{ "epoch": 3, "best": null, "seconds": 1.0 }"#).unwrap();
        let going_on = old.going_on(&spec, "b".into()).unwrap();
        assert_eq!((going_on.epoch, going_on.images_sha256.as_str()), (3, "b"));
        assert_eq!((going_on.within, going_on.spec), (Within::default(), Some(spec)));
    }

    #[test]
    fn a_state_is_that_of_its_folder_and_of_a_training() {
        let run = tempfile::tempdir().unwrap();
        let spec: TrainSpec = toml::from_str("name = 'x'\ndata.path = 'data'\ntraining.epochs = 4").unwrap();
        let folder = run.path().join(name((3, 7)));
        std::fs::create_dir(&folder).unwrap();
        let within = Within { steps: 7, images: 70, nll: 1.0 };
        let good = State { epoch: 3, within, ..State::new(&spec, "a".into()) };
        let reads = |state: &State| {
            write_json(&folder.join(STATE), state).unwrap();
            newest(run.path()).map(|found| assert!(found.is_some_and(|(_, found)| found == *state)))
        };
        reads(&good).unwrap();
        reads(&State { rate_scale: 0.25, spec: None, ..good.clone() }).unwrap();
        let mut short = spec.clone();
        short.training.epochs = 2;
        for odd in [
            State { epoch: 2, ..good.clone() },
            State { within: Within { steps: 8, ..within }, ..good.clone() },
            State { spec: Some(short), ..good.clone() },
            State { rate_scale: 1e300, ..good.clone() },
            State { rate_scale: 0.0, ..good.clone() },
            State { seconds: -1.0, ..good.clone() },
        ] {
            let why = reads(&odd).unwrap_err().to_string();
            assert!(why.contains("state.json: ") && why.contains("remove its folder"), "{why}");
        }
        std::fs::remove_file(folder.join(STATE)).unwrap();
        assert!(newest(run.path()).unwrap_err().to_string().contains("is not there; remove its folder"));
    }

    #[test]
    fn what_an_older_version_did_not_write_down_is_said() {
        let spec: TrainSpec = toml::from_str("name = 'x'\ndata.path = 'data'").unwrap();
        let whole = State::new(&spec, "a".into());
        assert_eq!((whole.unrecorded(false), whole.unrecorded(true)), (None, None));
        let older = State { images_sha256: String::new(), spec: None, ..whole.clone() };
        let said = |spec_beside| older.unrecorded(spec_beside).unwrap().to_string();
        assert!(said(false).contains("images and settings") && said(true).contains("its images:"));
        let older = State { spec: None, ..whole };
        assert!(older.unrecorded(false).unwrap().to_string().contains("its settings:"));
        assert_eq!(older.unrecorded(true), None);
    }

    #[test]
    fn a_folder_tells_which_checkpoint_is_the_newest() {
        for place in [(0, 7), (3, 0), (3, 120), (123_456, 1_234_567)] {
            assert_eq!(at(&name(place)), Some(place));
        }
        assert_eq!((name((3, 0)), name((3, 120))), ("checkpoint-00003".into(), "checkpoint-00003-000120".into()));
        assert_eq!([at("checkpoint-"), at("checkpoint-3-"), at("unfinished-checkpoint")], [None; 3]);
    }
}
