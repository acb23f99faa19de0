//! Features of the training, held-out and generated images.

use super::generated::Generated;
use super::pieces::{fingerprint, table};
use super::real::{Real, name_of};
use super::spot::{train, unit};
use super::{FeatureChoice, FeatureRecord, Stage, ValidateEvent, Work};
use crate::classifier::features::{Embedded, FeatureNet};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::measure::{Estimate, argmax};
use crate::units::ClassId;

/// Images of a kept piece.
const PIECE: usize = 512;
/// Images that go through the net together.
pub const BATCH: usize = 64;

/// What a net says of all images.
pub struct AllEmbedded {
    /// The net.
    pub record: FeatureRecord,
    /// The same, for other images.
    pub net: FeatureNet,
    /// What the net follows from, for names of pieces.
    pub identity: String,
    /// Of the training images.
    pub train: Embedded,
    /// Of the held-out images.
    pub held_out: Embedded,
    /// Of the generated images.
    pub generated: Embedded,
}

/// Opens or trains the net and embeds all three sets.
///
/// # Errors
/// When the net cannot be had, the device or the disk fails, or the caller stops.
pub fn embed(
    work: &Work<'_>,
    real: &Real,
    made: &Generated,
    events: &mut dyn Events<ValidateEvent>,
) -> Result<AllEmbedded> {
    let (net, identity) = {
        let mut events = work.stage(Stage::FeatureNet, events);
        match &work.spec.features {
            FeatureChoice::OnTheSpot(spot) => {
                let (name, classifier) = train(work, real, *spot, &mut events)?;
                (FeatureNet::of_classifier(name, classifier)?, name_of(&real.train))
            }
            FeatureChoice::Weights(path) => {
                let net = FeatureNet::open(path, work.device, &mut events)?;
                let hash = net.sha256().unwrap_or_default().to_owned();
                (net, hash)
            }
        }
    };
    let (dims, widths) = (work.world.shape().dims(), [net.dim(), net.classes()]);
    let pixels = [&real.train.pixels, &real.held_out.pixels, &made.pixels];
    let total = pixels.iter().map(|pixels| pixels.len() / dims).sum();
    let mut done = 0;
    let mut set = |pixels: &[u8]| {
        let mut all = Embedded::default();
        for chunk in pixels.chunks(PIECE * dims) {
            let n = chunk.len() / dims;
            let name = format!("features-{}.npz", fingerprint(&[identity.as_bytes(), chunk]));
            let (features, log_p) = table(&work.store, &name, (n, widths), || {
                let x: Vec<f32> = unit(chunk).collect();
                let mut forward = |p: Progress| {
                    let progress = Progress { done: done + p.done, total };
                    events.emit(ValidateEvent { stage: Stage::Embedding, progress })
                };
                let Embedded { features, log_p } = net.embed(&x, work.world.shape(), BATCH, &mut forward)?;
                Ok((features, log_p))
            })?;
            all.features.extend(features);
            all.log_p.extend(log_p);
            done += n;
            events.report(ValidateEvent { stage: Stage::Embedding, progress: Progress { done, total } })?;
        }
        Ok::<_, Error>(all)
    };
    let (train, held_out, generated) = (set(pixels[0])?, set(pixels[1])?, set(pixels[2])?);
    let right = match &work.spec.features {
        FeatureChoice::OnTheSpot(_) => right(&held_out.log_p, net.classes(), real.held_out.labels.as_deref()),
        FeatureChoice::Weights(_) => None,
    };
    let name = match right {
        Some(Estimate { value, interval }) => {
            let [value, low, high] = [value, interval.low, interval.high].map(|share| 100.0 * share);
            format!("{}: {value:.1} % [{low:.1}, {high:.1}] of the held-out images right", net.name())
        }
        None => net.name().to_owned(),
    };
    let record =
        FeatureRecord { name, sha256: net.sha256().map(str::to_owned), dims: net.dim(), classes: net.classes() };
    Ok(AllEmbedded { record, net, identity, train, held_out, generated })
}

/// Share of images whose label is the net's most probable class, the first of equals, from log p(y|x) [N, K].
pub fn right(log_p: &[f64], classes: usize, labels: Option<&[ClassId]>) -> Option<Estimate> {
    let labels = labels?;
    let hit = |(row, &label): (&[f64], &ClassId)| argmax(row) == label && !row[label].is_nan();
    Some(Estimate::proportion(log_p.chunks(classes).zip(labels).filter(|pair| hit(*pair)).count(), labels.len()))
}
