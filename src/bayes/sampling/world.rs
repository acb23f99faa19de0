//! A world as a source of draws, which may be kept in a folder and gone on with.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cache::{Cache, DrawKey};
use super::source::{Draw, Source};
use crate::data::{Store, StoreKind, Ticket, read_json, write_json};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::flow::base::latents;
use crate::oracle::numbering::of_sample;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{Settings, World};
use crate::units::{ClassId, Seed, Tau};

/// A folder of draws.
const DRAWS: StoreKind = StoreKind { ticket: "draws.json", work: "set of draws", result: "set of draws", folder: None };

/// Of a number in a piece, with its line break, about.
const BYTES_PER_NUMBER: u64 = 26;

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

/// Where draws are kept.
struct Kept {
    store: Store,
    _lock: Option<File>,
    /// Of the cache: bytes that may be written yet. What cannot be written there is no failure.
    room: Option<u64>,
}

/// Draws of a world.
pub struct WorldDraws<'a> {
    world: &'a World,
    seed: Seed,
    kept: Option<Kept>,
}

impl<'a> WorldDraws<'a> {
    /// Draws whose latents are those of the world's samples under the same seed.
    pub fn new(world: &'a World, seed: Seed) -> Self {
        Self { world, seed, kept: None }
    }

    /// The same, kept in a folder: draws that are there are read. One process at a time. `world_id`: as
    /// `OracleInfo::world_id`, here and below.
    ///
    /// # Errors
    /// When the folder holds something else, draws of another world, prior, seed or device, or
    /// cannot be written; when another process is at work in it.
    pub fn kept_in(mut self, folder: &Path, world_id: &str, prior: &Prior, device: &str) -> Result<Self> {
        let key = DrawKey { world: world_id.to_owned(), prior: prior.clone(), seed: self.seed };
        let (store, _lock) = begin(folder, key, device)?;
        self.kept = Some(Kept { store, _lock, room: None });
        Ok(self)
    }

    /// The same, kept in a cache where it has room. Without the cache, and while another process is at work
    /// in this part of it, draws are made as if nothing were kept.
    #[must_use]
    pub fn remembered(mut self, cache: &Cache, world_id: &str, prior: &Prior, device: &str) -> Self {
        let key = DrawKey { world: world_id.to_owned(), prior: prior.clone(), seed: self.seed };
        let Some((folder, room)) = cache.draws(&key, device) else { return self };
        match begin(&folder, key, device) {
            Ok((store, _lock)) => self.kept = Some(Kept { store, _lock, room: Some(room) }),
            Err(error) => tracing::warn!("draws of this world are not kept this time: {error}"),
        }
        self
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
            let numbers: Vec<usize> = batch.iter().map(|draw| draw.index).collect();
            let made = self.world.decode(&noise, &classes, &settings, &mut steps);
            let made = made.map_err(|error| of_sample(error, &numbers, tau))?;
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
        let (Some(kept), Some(first)) = (&self.kept, draws.first()) else {
            return self.compute(draws, tau, events);
        };
        let classes: Vec<ClassId> = draws.iter().map(|draw| draw.class).collect();
        let count = draws.len() * self.classes();
        // One name for each τ and number of draws: a last round may be short.
        let name = format!("tau-{:016x}-{:08}-{}.json", tau.get().to_bits(), first.index, draws.len());
        let mut room = kept.room;
        let piece = kept.store.piece(
            &name,
            |path| read_piece(path, &classes, count),
            || Ok(Piece { classes: classes.clone(), log_likelihoods: self.compute(draws, tau, events)? }),
            |path, piece| write_piece(path, piece, &mut room),
        )?;
        if let Some(kept) = &mut self.kept {
            kept.room = room;
        }
        Ok(piece.log_likelihoods)
    }
}

/// The store of a folder of draws, locked.
fn begin(folder: &Path, key: DrawKey, device: &str) -> Result<(Store, Option<File>)> {
    let DrawKey { world, prior, seed } = key;
    let spec = DrawSpec { prior, seed, device: device.to_owned() };
    let store = Store::begin(folder, &DRAWS, &Ticket { world, spec })?;
    let lock = store.lock()?;
    Ok((store, lock))
}

/// A piece, where it is whole and of these draws.
fn read_piece(path: &Path, classes: &[ClassId], count: usize) -> Option<Piece> {
    let fits = |piece: &Piece| piece.classes == classes && piece.log_likelihoods.len() == count;
    let piece = read_json::<Piece>(path).ok().flatten().filter(fits);
    if piece.is_none() {
        tracing::warn!("{}: torn, or of other draws; they are made again", path.display());
    }
    piece
}

/// Writes a piece; into a cache only as long as there is room.
fn write_piece(path: &Path, piece: &Piece, room: &mut Option<u64>) -> Result<()> {
    let Some(left) = room else { return write_json(path, piece) };
    let bytes = BYTES_PER_NUMBER * (piece.classes.len() + piece.log_likelihoods.len()) as u64;
    if bytes > *left {
        return Ok(());
    }
    *left -= bytes;
    if let Err(error) = write_json(path, piece) {
        tracing::warn!("draws could not be kept: {error}");
        // It would fail again.
        *left = 0;
    }
    Ok(())
}
