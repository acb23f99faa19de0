//! Features of the training, held-out and generated images.

use super::made::Made;
use super::real::Real;
use super::spot::{train, unit};
use super::{FeatureChoice, FeatureRecord, Stage, ValidateEvent, Work};
use crate::classifier::features::{Embedded, FeatureNet};
use crate::error::Result;
use crate::events::{Events, Progress};

/// Images of a kept piece.
const PIECE: usize = 512;
/// Images that go through the net together.
const BATCH: usize = 64;

/// What a net says of all images.
pub struct AllEmbedded {
    /// The net.
    pub record: FeatureRecord,
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
pub fn embed(work: &Work<'_>, real: &Real, made: &Made, events: &mut dyn Events<ValidateEvent>) -> Result<AllEmbedded> {
    let net = {
        let mut events = work.stage(Stage::FeatureNet, events);
        match &work.spec.features {
            FeatureChoice::OnTheSpot(spot) => {
                let (name, classifier) = train(work, real, *spot, &mut events)?;
                FeatureNet::of_classifier(name, classifier)?
            }
            FeatureChoice::Weights(path) => FeatureNet::open(path, work.device, &mut events)?,
        }
    };
    let sets = [("train", &real.train.pixels), ("held-out", &real.held_out.pixels), ("generated", &made.pixels)];
    let dims = work.world.shape().dims();
    let total = sets.iter().map(|(_, pixels)| pixels.len() / dims).sum();
    let (mut done, mut all) = (0, Vec::new());
    for (name, pixels) in sets {
        let mut set = Embedded { features: Vec::new(), log_p: Vec::new() };
        for (at, chunk) in pixels.chunks(PIECE * dims).enumerate() {
            let n = chunk.len() / dims;
            let (features, log_p) = work.kept.piece(&format!("features-{name}-{at:05}.npz"), n, || {
                let x: Vec<f32> = unit(chunk).collect();
                let mut told = |p: Progress| {
                    events.emit(ValidateEvent {
                        stage: Stage::Embedding,
                        progress: Progress { done: done + p.done, total },
                    })
                };
                let Embedded { features, log_p } = net.embed(&x, work.world.shape(), BATCH, &mut told)?;
                Ok((features, log_p))
            })?;
            set.features.extend(features);
            set.log_p.extend(log_p);
            done += n;
            work.stage(Stage::Embedding, events).report(Progress { done, total })?;
        }
        all.push(set);
    }
    let record = FeatureRecord {
        name: net.name().to_owned(),
        sha256: net.sha256().map(str::to_owned),
        dims: net.dim(),
        classes: net.classes(),
    };
    let mut all = all.into_iter();
    let mut next = || all.next().unwrap_or(Embedded { features: Vec::new(), log_p: Vec::new() });
    Ok(AllEmbedded { record, train: next(), held_out: next(), generated: next() })
}
