//! A cell's state in one file, so that a kill leaves the last complete one: weights by name, the
//! optimizer's moments as bytes, and the counts so far in the header.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::validated::Validated;
use super::watched::Watched;
use crate::classifier::{Description, STATE, Saved};
use crate::data::{WHOLE, read_bounded, write_atomically};
use crate::error::{Error, Result};
use crate::flow::weights::{HostTensor, Weights};

/// Name of the array of the moments.
const MOMENTS: &str = "optimizer";

/// How far a cell has come.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    /// Steps done.
    pub step: usize,
    /// Sum of the losses of this epoch's images so far, nats.
    pub loss: f64,
    /// Images of this epoch so far.
    pub seen: usize,
    /// Mean loss of the epoch before.
    pub last_loss: f64,
    /// Seconds of training so far, all sittings.
    pub seconds: f64,
    /// What was watched so far.
    #[serde(default)]
    pub course: Vec<Watched>,
    /// What held-out labels said so far, where they are looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validated: Vec<Validated>,
    /// Of which training it is; absent in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Training>,
    /// What the weights are, so that the file can be judged alone; absent in files of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classifier: Option<Description>,
}

/// Which of a run's trainings: a cell may train several times, with other seeds or on other images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Training {
    /// Hash of the cell's content.
    pub id: String,
    /// Its seed, or that of one of its members.
    pub seed: u64,
    /// Number N of its training images.
    pub images: usize,
}

impl State {
    /// Why this cannot be the state of a training of `total` steps, `steps` of them an epoch; nothing where it can. A file
    /// of an older version does not say of which training it is: its counts alone are looked at.
    pub fn refusal(&self, of: &Training, [steps, total]: [usize; 2]) -> Option<String> {
        let Self { step, seen, of: found, .. } = self;
        if let Some(Training { id, seed, images }) = found.as_ref().filter(|found| *found != of) {
            return Some(format!("is of another training (cell {id}, seed {seed}, {images} images)"));
        }
        let begun = usize::from(*seen > 0);
        let Some(before) = step.checked_sub(begun).filter(|_| *step <= total) else {
            return Some(format!("counts {step} steps, of a training of {total}"));
        };
        // The images of the steps of this epoch, as `Run::epoch` shares them out.
        let here = (step - before / steps.max(1) * steps) as u128 * of.images as u128 / steps.max(1) as u128;
        (begun > 0 && *seen as u128 != here).then(|| format!("counts {seen} images of an epoch after {step} steps"))
    }
}

/// Writes the file anew, atomically.
///
/// # Errors
/// Names the file; the one before stays.
pub fn write(path: &Path, state: &State, saved: &Saved) -> Result<()> {
    let failed = |e: String| Error::file(path, e);
    let state = serde_json::to_string(state).map_err(|e| failed(e.to_string()))?;
    let bytes: Vec<(&str, &[usize], Vec<u8>)> = saved
        .weights
        .0
        .iter()
        .map(|(name, t)| (name.as_str(), t.shape.as_slice(), t.values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let length = [saved.optimizer.len()];
    let view = |dtype, shape: &[usize], data| {
        TensorView::new(dtype, shape.to_vec(), data).map_err(|e| failed(format!("cannot be written: {e}")))
    };
    let mut views = vec![(MOMENTS, view(Dtype::U8, &length, &saved.optimizer)?)];
    for (name, shape, data) in &bytes {
        views.push((name, view(Dtype::F32, shape, data)?));
    }
    let header = HashMap::from([(STATE.to_owned(), state)]);
    let file = safetensors::serialize(views, Some(header)).map_err(|e| failed(format!("cannot be written: {e}")))?;
    write_atomically(path, |out| out.write_all(&file))
}

/// Reads the file, if there is one.
///
/// # Errors
/// Names a file that is there and is no checkpoint.
pub fn read(path: &Path) -> Result<Option<(State, Saved)>> {
    let bytes = match read_bounded(path, WHOLE) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(path, e)),
    };
    let broken =
        |e: String| Error::file(path, format!("is no checkpoint of a cell: {e}; remove it and the cell starts again"));
    let file = SafeTensors::deserialize(&bytes).map_err(|e| broken(e.to_string()))?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| broken(e.to_string()))?;
    let state =
        header.metadata().as_ref().and_then(|header| header.get(STATE)).ok_or_else(|| broken("no state".into()))?;
    let state = serde_json::from_slice(state.as_bytes()).map_err(|e| broken(e.to_string()))?;
    let mut saved = Saved { weights: Weights::default(), optimizer: Vec::new() };
    for (name, view) in file.iter() {
        if name == MOMENTS && view.dtype() == Dtype::U8 {
            saved.optimizer = view.data().to_vec();
        } else if view.dtype() == Dtype::F32 {
            let values = view.data().chunks_exact(4).filter_map(|b| b.try_into().ok().map(f32::from_le_bytes));
            saved.weights.0.insert(name.to_owned(), HostTensor::new(view.shape(), values.collect()));
        }
    }
    Ok(Some((state, saved)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::validated::Seen;

    #[test]
    fn a_checkpoint_comes_back_and_a_torn_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("last.safetensors");
        assert!(read(&path).unwrap().is_none());
        let mut weights = Weights::default();
        weights.0.insert("fc.weight".into(), HostTensor::new([2, 1], vec![0.1, -3.0]));
        let watched = Watched {
            step: 4,
            epoch: 1,
            train_loss: 1.0 / 3.0,
            cross_entropy: 0.7,
            aleatoric: 0.1,
            epistemic: 0.6,
            expected_accuracy: 0.3,
            intervals: None,
        };
        let (loss, last_loss) = (0.1 + 0.2, f64::MIN_POSITIVE);
        let seen = vec![Seen { n: 5, loss: 0.1, accuracy: 0.6, ece: 1.0 / 7.0 }];
        let state = State {
            step: 7,
            loss,
            seen: 3,
            last_loss,
            seconds: 1.5,
            course: vec![watched],
            validated: vec![Validated { epoch: 1, epistemic: 0.3, blocks: None, seen }],
            of: Some(Training { id: "0123456789abcdef".into(), seed: u64::MAX, images: 5 }),
            classifier: None,
        };
        write(&path, &state, &Saved { weights: weights.clone(), optimizer: vec![1, 2, 255] }).unwrap();
        let (read_state, saved) = read(&path).unwrap().unwrap();
        assert_eq!((read_state, saved.weights, saved.optimizer), (state, weights, vec![1, 2, 255]));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(read(&path).map(drop).unwrap_err().to_string().contains("last.safetensors"));
    }

    #[test]
    fn only_the_state_of_the_same_training_is_gone_on_from() {
        // 10 images in epochs of 3 steps, 3, 3 and 4 images each; two epochs and a step in all.
        let (of, lengths) = (Training { id: "a".into(), seed: 1, images: 10 }, [3, 7]);
        let at = |step, seen| State { step, seen, of: Some(of.clone()), ..State::default() };
        let fits = |state: &State| state.refusal(&of, lengths).is_none();
        for (step, seen) in [(0, 0), (1, 3), (2, 6), (3, 10), (3, 0), (5, 6), (6, 10), (7, 3), (7, 0)] {
            assert!(fits(&at(step, seen)) && fits(&State { of: None, ..at(step, seen) }), "{step}, {seen}");
        }
        for (step, seen) in [(8, 0), (usize::MAX, 0), (0, 1), (1, 4), (3, 3), (7, 10), (8, 6)] {
            assert!(!fits(&at(step, seen)) && !fits(&State { of: None, ..at(step, seen) }), "{step}, {seen}");
        }
        for other in [
            Training { id: "b".into(), ..of.clone() },
            Training { seed: 2, ..of.clone() },
            Training { images: 9, ..of.clone() },
        ] {
            let why = State { of: Some(other), ..at(7, 0) }.refusal(&of, lengths).unwrap_or_default();
            assert!(why.contains("another training"), "{why}");
        }
    }
}
