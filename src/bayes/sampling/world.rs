//! A world as a source of draws, which may be kept in a folder and gone on with.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::source::{Draw, Source};
use crate::data::{Store, StoreKind, Ticket};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::flow::base::latents;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{Settings, World};
use crate::units::{ClassId, Seed, Tau};

/// A folder of draws.
const DRAWS: StoreKind = StoreKind { ticket: "draws.json", work: "set of draws", result: "set of draws", folder: None };

/// What draws depend on besides τ, which is in the names of the pieces. Smoothing comes later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DrawSpec {
    prior: Prior,
    seed: Seed,
    /// The device, in words: another one rounds differently.
    device: String,
}

/// A piece: its classes guard against draws of another order.
#[derive(Serialize, Deserialize)]
struct Piece {
    classes: Vec<ClassId>,
    log_likelihoods: Vec<f64>,
}

/// Draws of a world.
pub struct WorldDraws<'a> {
    world: &'a World,
    seed: Seed,
    store: Option<(Store, Option<File>)>,
}

impl<'a> WorldDraws<'a> {
    /// Draws whose latents are those of the world's samples under the same seed.
    pub fn new(world: &'a World, seed: Seed) -> Self {
        Self { world, seed, store: None }
    }

    /// The same, kept in a folder: draws that are there are read. One process at a time.
    ///
    /// # Errors
    /// When the folder holds something else, draws of another world, prior, seed or device, or
    /// cannot be written; when another process is at work in it.
    pub fn kept_in(mut self, folder: &Path, weights_sha256: &str, prior: &Prior, device: &str) -> Result<Self> {
        let spec = DrawSpec { prior: prior.clone(), seed: self.seed, device: device.to_owned() };
        let store = Store::begin(folder, &DRAWS, &Ticket { weights_sha256: weights_sha256.to_owned(), spec })?;
        let lock = store.lock()?;
        self.store = Some((store, lock));
        Ok(self)
    }

    fn compute(&self, draws: &[Draw], tau: Tau, events: &mut dyn Events<Progress>) -> Result<Vec<f64>> {
        let (dims, total) = (self.world.shape().dims(), draws.len());
        let settings = Settings { tau, ..Settings::default_for(self.world.class_names().len()) };
        let seed = self.seed.split("latents");
        let mut rows = Vec::new();
        let mut done = 0;
        for batch in draws.chunks(self.world.batch()) {
            let classes: Vec<ClassId> = batch.iter().map(|draw| draw.class).collect();
            let noise: Vec<f32> = batch.iter().flat_map(|draw| latents(seed, draw.index, 1, dims)).collect();
            let mut steps = |_| events.emit(Progress { done, total });
            let made = self.world.decode(&noise, &classes, &settings, &mut steps)?;
            rows.extend(made.into_iter().flat_map(|(_, posterior)| posterior.log_likelihood));
            done += batch.len();
            events.report(Progress { done, total })?;
        }
        Ok(rows)
    }
}

impl Source for WorldDraws<'_> {
    fn classes(&self) -> usize {
        self.world.class_names().len()
    }

    fn log_likelihoods(&mut self, draws: &[Draw], tau: Tau, events: &mut dyn Events<Progress>) -> Result<Vec<f64>> {
        let (Some((store, _)), Some(first)) = (&self.store, draws.first()) else {
            return self.compute(draws, tau, events);
        };
        let classes: Vec<ClassId> = draws.iter().map(|draw| draw.class).collect();
        let count = draws.len() * self.classes();
        // One name for each τ and number of draws: a last round may be short.
        let name = format!("tau-{:016x}-{:08}-{}.json", tau.get().to_bits(), first.index, draws.len());
        let fits = |piece: &Piece| piece.classes == classes && piece.log_likelihoods.len() == count;
        let piece = store.piece(
            &name,
            |path| crate::data::read_json::<Piece>(path).ok().flatten().filter(fits),
            || Ok(Piece { classes: classes.clone(), log_likelihoods: self.compute(draws, tau, events)? }),
            |path, piece| crate::data::write_json(path, piece),
        )?;
        Ok(piece.log_likelihoods)
    }
}
