//! The images of a run: samples of its world or images of a dataset, made once and held while in
//! use.

use super::execute::{RunContext, RunEvent};
use super::folder::RunFolder;
use super::stage::Stage;
use crate::data::write_json;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::{
    Cell, Data, ExperimentSpec, Images, Part, Pool, Source, Truth, View, WorldImages, read_pool, test_pool, train_pool,
};
use crate::oracle::world::Settings;
use crate::units::Seed;

/// Bytes of training images held at once, at most, beside those in use.
const HELD_BYTES: usize = 2 << 30;
/// Name of the images of a dataset to train on.
const TRAIN: &str = "train";

/// The images of a run.
pub struct Pools<'a> {
    folder: &'a RunFolder,
    context: &'a RunContext<'a>,
    stage: Option<Stage>,
    /// Test images by the name of their file, those last used at the end.
    tests: Vec<(String, Images)>,
    /// Training images of the world, likewise.
    trains: Vec<(String, Images)>,
    /// Which images of a dataset the run trains on, in order, and their posteriors.
    scored: Option<(Vec<usize>, Images)>,
}

/// Names of the files of images that a run may have.
pub fn names(folder: &RunFolder) -> Vec<String> {
    let spec = &folder.spec;
    let mut names = train_names(spec);
    names.push(TRAIN.to_owned());
    names.extend(spec.experiment.condition_numbers().map(|condition| test_pool(spec, condition)));
    names.sort_unstable();
    names.dedup();
    names
}

/// Names of the files of training images of the world.
pub fn train_names(spec: &ExperimentSpec) -> Vec<String> {
    let of = |condition| spec.grid.seeds.iter().map(move |&seed| train_pool(spec, condition, seed));
    spec.experiment.condition_numbers().flat_map(of).collect()
}

impl<'a> Pools<'a> {
    /// None yet.
    ///
    /// # Errors
    /// When the spec names a dataset that nobody has opened.
    pub fn new(folder: &'a RunFolder, context: &'a RunContext<'a>) -> Result<Self> {
        if folder.spec.data.is_some() != context.data.is_some() {
            return Err(Error::file(&folder.path, "the dataset of this run was not opened"));
        }
        let stage = context.stage.as_deref().map(|place| Stage::new(place, &folder.path));
        let (tests, trains) = (Vec::new(), Vec::new());
        Ok(Self { folder, context, stage, tests, trains, scored: None })
    }

    /// Makes the images ready that a cell needs. Training images that are seen once are drawn when
    /// needed.
    ///
    /// # Errors
    /// When the disk or the device fails, or the caller stops.
    pub fn prepare(&mut self, cell: &Cell, streamed: bool, events: &mut dyn Events<RunEvent>) -> Result<()> {
        let spec = &self.folder.spec;
        self.hold_test(cell.condition, events)?;
        self.find_truth(cell.condition, events)?;
        match self.learned(cell) {
            Some(Data { train, .. }) if spec.needs_posteriors() && self.scored.is_none() => {
                let orders = spec.grid.seeds.iter().map(|&seed| train.order(spec.train_seed(seed), spec.largest()));
                let mut needed: Vec<usize> = orders.flatten().collect();
                needed.sort_unstable();
                needed.dedup();
                let images = self.score(TRAIN, train, &needed, events)?;
                self.scored = Some((needed, images));
                Ok(())
            }
            None if !streamed => self.hold(cell, events),
            _ => Ok(()),
        }
    }

    /// The test images of a cell that was prepared.
    ///
    /// # Errors
    /// When it was not.
    pub fn test(&self, cell: &Cell) -> Result<&Images> {
        let name = test_pool(&self.folder.spec, cell.condition);
        let held = self.tests.iter().find(|(held, _)| *held == name).map(|(_, images)| images);
        held.ok_or_else(|| Error::input("no test images"))
    }

    /// The training images of a cell that was prepared.
    pub fn train(&self, cell: &Cell, streamed: bool) -> Box<dyn Source + '_> {
        let spec = &self.folder.spec;
        let seed = spec.train_seed(cell.seed);
        if let Some(Data { train, .. }) = self.learned(cell) {
            let order = train.order(seed, spec.largest());
            let Some((needed, images)) = &self.scored else { return Box::new(View { of: train, at: order }) };
            let place = |i: usize| needed.partition_point(|other| *other < i);
            return Box::new(View { of: images, at: order.into_iter().map(place).collect() });
        }
        let name = train_pool(spec, cell.condition, cell.seed);
        match self.trains.iter().find(|(held, _)| *held == name && !streamed) {
            Some((_, images)) => Box::new(images),
            None => Box::new(WorldImages { world: self.context.world, settings: self.settings(cell.condition), seed }),
        }
    }

    /// The dataset that a cell learns, if it does not learn the world.
    pub fn learned(&self, cell: &Cell) -> Option<&'a Data> {
        let world = self.folder.spec.experiment.learns_the_world(cell.condition);
        self.context.data.as_ref().filter(|_| !world)
    }

    /// The test images of the dataset, where cells are measured on samples of the world beside them.
    pub fn real(&self) -> Option<View<'a>> {
        let part = self.context.data.as_ref().filter(|data| data.both)?.test.as_ref()?;
        let spec = &self.folder.spec;
        Some(View { of: part, at: part.order(spec.test_seed(), spec.test.images) })
    }

    /// The knobs of the world under a condition.
    pub fn settings(&self, condition: usize) -> Settings {
        Settings { tau: self.folder.spec.tau(condition), ..self.context.settings.clone() }
    }

    fn hold_test(&mut self, condition: usize, events: &mut dyn Events<RunEvent>) -> Result<()> {
        let spec = &self.folder.spec;
        let name = test_pool(spec, condition);
        if last(&mut self.tests, &name) {
            return Ok(());
        }
        make_room(&mut self.tests);
        let (seed, n) = (spec.test_seed(), spec.test.images);
        let data = self.context.data.as_ref().filter(|data| !data.both);
        let images = match data.and_then(|data| data.test.as_ref()) {
            Some(part) => self.score(&name, part, &part.order(seed, n), events)?,
            None => self.draw(&name, condition, seed, n, events)?,
        };
        self.tests.push((name, images));
        Ok(())
    }

    /// Computes the Bayes error under a condition, unless it is not wanted or on disk.
    fn find_truth(&self, condition: usize, events: &mut dyn Events<RunEvent>) -> Result<()> {
        let (spec, path) = (&self.folder.spec, self.folder.truth_path(condition));
        if !spec.experiment.wants_bayes_error() || path.exists() {
            return Ok(());
        }
        let settings = self.settings(condition);
        let what = format!("the Bayes error at τ = {}", settings.tau.get());
        let mut tell = |progress: Progress| events.emit(RunEvent::Scoring { what: what.clone(), progress });
        let seed = Seed(spec.world.seed).split("bayes error");
        let truth = Truth::of(self.context.world, &settings, seed, &mut tell)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        }
        write_json(&path, &truth)
    }

    fn hold(&mut self, cell: &Cell, events: &mut dyn Events<RunEvent>) -> Result<()> {
        let spec = &self.folder.spec;
        let name = train_pool(spec, cell.condition, cell.seed);
        if last(&mut self.trains, &name) {
            return Ok(());
        }
        make_room(&mut self.trains);
        let images = self.draw(&name, cell.condition, spec.train_seed(cell.seed), spec.largest(), events)?;
        self.trains.push((name, images));
        Ok(())
    }

    fn draw(
        &mut self,
        name: &str,
        condition: usize,
        seed: Seed,
        n: usize,
        events: &mut dyn Events<RunEvent>,
    ) -> Result<Images> {
        let (world, settings) = (self.context.world, self.settings(condition));
        self.made(name, n, (true, &settings), events, |pool, events| {
            let mut tell = |progress: Progress| events.emit(RunEvent::Drawing { what: name.to_owned(), progress });
            pool.draw(world, &settings, seed, &mut tell)
        })
    }

    fn score(&mut self, name: &str, part: &Part, at: &[usize], events: &mut dyn Events<RunEvent>) -> Result<Images> {
        let RunContext { world, settings, .. } = self.context;
        self.made(name, at.len(), (part.has_likelihoods(), settings), events, |pool, events| {
            let mut tell = |progress: Progress| events.emit(RunEvent::Scoring { what: name.to_owned(), progress });
            pool.fill(&mut tell, &mut |range, within| part.scored(world, settings, &at[range], within))
        })
    }

    /// The images of a pool, made unless they are there. Rounded ones with posteriors from before
    /// are counted.
    fn made(
        &mut self,
        name: &str,
        n: usize,
        (sampled, settings): (bool, &Settings),
        events: &mut dyn Events<RunEvent>,
        make: impl FnOnce(Pool<'_>, &mut dyn Events<RunEvent>) -> Result<()>,
    ) -> Result<Images> {
        let world = self.context.world;
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

/// Moves the images of a name to the end of a list; whether they are in it.
fn last(held: &mut Vec<(String, Images)>, name: &str) -> bool {
    let at = held.iter().position(|(held, _)| held == name);
    let images = at.map(|at| held.remove(at));
    let found = images.is_some();
    held.extend(images);
    found
}

/// Lets those go that were not used for longest, until there is room for others.
fn make_room(held: &mut Vec<(String, Images)>) {
    let bytes = |images: &Images| 4 * images.all.x.len();
    while held.iter().map(|(_, images)| bytes(images)).sum::<usize>() > HELD_BYTES {
        held.remove(0);
    }
}
