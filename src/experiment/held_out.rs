//! Images of the world beside those for training and testing, of which an experiment uses the
//! labels: to fit a calibrator, or to choose an epoch.

use super::form::{list, words};
use super::images::{Images, Source, WorldImages};
use super::kind::CellPlace;
use super::train::{CellEvent, CellJob};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};

/// The first `n` images of a purpose, the same for the same world with its seed and the same seed of a cell.
///
/// # Errors
/// When the device fails, or [`Error::Cancelled`].
pub(super) fn held_out(
    purpose: &str,
    n: usize,
    place: &CellPlace<'_>,
    job: &CellJob<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<Images> {
    let seed = place.train_seed.split(purpose);
    let source = WorldImages { world: place.world, settings: place.settings.clone(), seed };
    let mut images = Images { shape: job.test.shape, classes: job.test.classes, all: source.take(&[])? };
    let each = place.world.batch().max(1);
    for first in (0..n).step_by(each) {
        events.report(CellEvent::Drawing(Progress { done: first, total: n }))?;
        let batch = source.take(&(first..n.min(first + each)).collect::<Vec<_>>())?;
        images.all.x.extend(batch.x);
        images.all.labels.extend(batch.labels);
        images.all.posterior.extend(batch.posterior);
    }
    Ok(images)
}

/// Checks numbers n of labels: some, above 0, each once.
///
/// # Errors
/// Says what is wrong.
pub(super) fn check(labels: &[usize]) -> Result<()> {
    let repeated = (1..labels.len()).any(|i| labels[..i].contains(&labels[i]));
    if labels.is_empty() || labels.contains(&0) || repeated {
        return Err(Error::input("experiment.labels must name one or several numbers of labels above 0, each once"));
    }
    Ok(())
}

/// The numbers as a form shows them.
pub(super) fn shown(labels: &[usize]) -> String {
    list(labels)
}

/// The numbers that a form was given.
///
/// # Errors
/// Names the word that is no number.
pub(super) fn typed(text: &str) -> Result<Vec<usize>, String> {
    words(text).map(|word| word.parse().map_err(|_| format!("'{word}' is no number of labels."))).collect()
}
