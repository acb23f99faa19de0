//! The images of a run: samples of its world or images of a dataset, made once, kept in its folder, and held while they are used.

use super::execute::{Computer, RunEvent};
use super::folder::{RunFolder, write_json};
use super::stage::Stage;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::{Cell, Data, Images, Part, Pool, Source, View, WorldImages, read_pool};
use crate::units::Seed;

/// Bytes of training images held at once, at most, beside those in use.
const HELD_BYTES: usize = 2 << 30;
/// Name of the test images, and of those of a dataset to train on.
const TEST: &str = "test";
const TRAIN: &str = "train";

/// The images of a run.
pub struct Pools<'a> {
    folder: &'a RunFolder,
    computer: &'a Computer<'a>,
    stage: Option<Stage>,
    test: Option<Images>,
    /// Training images of the world by seed, the last one used at the end.
    trains: Vec<(u64, Images)>,
    /// Which images of a dataset the run trains on, in order, and their posteriors.
    scored: Option<(Vec<usize>, Images)>,
}

/// Names of the files of images that a run may have.
pub fn names(folder: &RunFolder) -> impl Iterator<Item = String> {
    let seeds = folder.spec.grid.seeds.iter().map(|seed| of_seed(*seed));
    [TEST, TRAIN].map(str::to_owned).into_iter().chain(seeds)
}

fn of_seed(seed: u64) -> String {
    format!("{TRAIN}-{seed}")
}

impl<'a> Pools<'a> {
    /// None yet.
    ///
    /// # Errors
    /// When the spec names a dataset that nobody has opened.
    pub fn new(folder: &'a RunFolder, computer: &'a Computer<'a>) -> Result<Self> {
        if folder.spec.data.is_some() != computer.data.is_some() {
            return Err(Error::file(&folder.path, "the dataset of this run was not opened"));
        }
        let stage = computer.stage.clone().map(Stage::new);
        Ok(Self { folder, computer, stage, test: None, trains: Vec::new(), scored: None })
    }

    /// Makes the images ready that a cell needs. Training images of the world that are seen once are drawn when they are needed.
    ///
    /// # Errors
    /// When the disk or the device fails, or the caller stops.
    pub fn prepare(&mut self, cell: &Cell, streamed: bool, events: &mut dyn Events<RunEvent>) -> Result<()> {
        let (spec, computer) = (&self.folder.spec, self.computer);
        if self.test.is_none() {
            let (seed, n) = (spec.test_seed(), spec.test.images);
            self.test = Some(match computer.data.as_ref().and_then(|data| data.test.as_ref()) {
                Some(part) => self.score(TEST, part, &part.order(seed, n), events)?,
                None => self.draw(TEST, seed, n, events)?,
            });
        }
        match &computer.data {
            Some(Data { train, .. }) if spec.needs_posteriors() && self.scored.is_none() => {
                let orders = spec.grid.seeds.iter().map(|&seed| train.order(spec.train_seed(seed), spec.largest()));
                let mut needed: Vec<usize> = orders.flatten().collect();
                needed.sort_unstable();
                needed.dedup();
                let images = self.score(TRAIN, train, &needed, events)?;
                self.scored = Some((needed, images));
                Ok(())
            }
            None if !streamed => self.hold(cell.seed, events),
            _ => Ok(()),
        }
    }

    /// The test images.
    ///
    /// # Errors
    /// When they were not prepared.
    pub fn test(&self) -> Result<&Images> {
        self.test.as_ref().ok_or_else(|| Error::input("no test images"))
    }

    /// The training images of a cell that was prepared.
    pub fn train(&self, cell: &Cell, streamed: bool) -> Box<dyn Source + '_> {
        let spec = &self.folder.spec;
        let seed = spec.train_seed(cell.seed);
        if let Some(Data { train, .. }) = &self.computer.data {
            let order = train.order(seed, spec.largest());
            let Some((needed, images)) = &self.scored else { return Box::new(View { of: train, at: order }) };
            let place = |i: usize| needed.partition_point(|other| *other < i);
            return Box::new(View { of: images, at: order.into_iter().map(place).collect() });
        }
        match self.trains.iter().find(|(held, _)| *held == cell.seed && !streamed) {
            Some((_, images)) => Box::new(images),
            None => Box::new(WorldImages { world: self.computer.world, settings: &self.computer.settings, seed }),
        }
    }

    fn hold(&mut self, seed: u64, events: &mut dyn Events<RunEvent>) -> Result<()> {
        if let Some(at) = self.trains.iter().position(|(held, _)| *held == seed) {
            let images = self.trains.remove(at);
            self.trains.push(images);
            return Ok(());
        }
        let bytes = |images: &Images| 4 * images.all.x.len();
        while self.trains.iter().map(|(_, images)| bytes(images)).sum::<usize>() > HELD_BYTES {
            self.trains.remove(0);
        }
        let spec = &self.folder.spec;
        let images = self.draw(&of_seed(seed), spec.train_seed(seed), spec.largest(), events)?;
        self.trains.push((seed, images));
        Ok(())
    }

    fn draw(&mut self, name: &str, seed: Seed, n: usize, events: &mut dyn Events<RunEvent>) -> Result<Images> {
        let Computer { world, settings, .. } = self.computer;
        self.made(name, n, true, events, |pool, events| {
            let mut tell = |progress: Progress| events.emit(RunEvent::Drawing { what: name.to_owned(), progress });
            pool.draw(world, settings, seed, &mut tell)
        })
    }

    fn score(&mut self, name: &str, part: &Part, at: &[usize], events: &mut dyn Events<RunEvent>) -> Result<Images> {
        let Computer { world, settings, .. } = self.computer;
        self.made(name, at.len(), part.of_this_world(), events, |pool, events| {
            let mut tell = |progress: Progress| events.emit(RunEvent::Scoring { what: name.to_owned(), progress });
            pool.fill(&mut tell, &mut |range, within| part.scored(world, settings, &at[range], within))
        })
    }

    /// The images of a pool, made unless they are there. Those whose posteriors were computed before x was rounded are counted.
    fn made(
        &mut self,
        name: &str,
        n: usize,
        sampled: bool,
        events: &mut dyn Events<RunEvent>,
        make: impl FnOnce(Pool<'_>, &mut dyn Events<RunEvent>) -> Result<()>,
    ) -> Result<Images> {
        let Computer { world, settings, .. } = self.computer;
        let file = self.folder.pool(name)?;
        make(Pool { file: &file, shape: world.shape(), n, batch: world.batch() }, events)?;
        let near = self.stage.as_mut().map_or_else(|| file.clone(), |stage| stage.near(&file));
        let images = read_pool(&near, settings, n, world.shape())?;
        let counted = self.folder.pool_rounding(name);
        if sampled && world.flow().shared_base().is_some() && !counted.exists() {
            let what = format!("{name} as rounded to 32 bits");
            let mut tell = |progress: Progress| events.emit(RunEvent::Scoring { what: what.clone(), progress });
            write_json(&counted, &world.rounded(&images.all.x, &images.all.posterior, settings, &mut tell)?)?;
        }
        Ok(images)
    }
}
