//! A cell: train a classifier on the labels, measure it, ask it about the rest of the pool, buy
//! labels.
//!
//! Every round trains anew from the same random start. Warm starts are cheaper but generalise worse
//! (Ash & Adams 2020, "On Warm-Starting Neural Network Training"). A round's classifier so depends
//! on its labels alone, not on their order. Where the whole pool is bought, all strategies end
//! alike.
//!
//! ```text
//! CELL/round-R/last.safetensors           the round's classifier, until the next labels are bought
//! CELL/round-R/member-M/last.safetensors  the other members of an ensemble
//! CELL/round-R/try-T/images.json          a batch that the look-ahead tries: what a checkpoint beside it is trained with
//! CELL/round-R/try-T/try.json             the batch, and what it came to
//! CELL/round-R/round.json                 the round's figures and the next purchase: it is settled
//! CELL/last.safetensors, worst.json, images.npz  of the last round, as every cell has them
//! ```

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rand::seq::SliceRandom;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::acquire::{Answers, Looked, Offer, Reading};
use super::batches::{Learner, Rows, alignment};
use super::look_ahead::Ahead;
use super::{ActiveSpec, Bought, Purchase, Round, Strategy};
use crate::data::{read_json, sweep_temp_files, with_way_out, write_atomically};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::experiment::blocks::TestBlocks;
use crate::experiment::cell::{Cell, CellResult};
use crate::experiment::images::View;
use crate::experiment::output::CellOutput;
use crate::experiment::progress::{Trainings, member_seed};
use crate::experiment::tested::TESTED_FILE;
use crate::experiment::train::{CellEvent, CellJob, LAST, train_cell, train_only};
use crate::experiment::trained::Trained;
use crate::experiment::worst::WORST_FILE;
use crate::measure::Measured;
use crate::stats::mean_and_error;
use crate::units::Seed;

/// Name of a settled round in its folder.
const SETTLED: &str = "round.json";

/// Name of the images that a try trains with in its folder, sorted.
const TRYING: &str = "images.json";

/// Name of what a try came to in its folder.
const TRIED: &str = "try.json";

/// What a try came to.
#[derive(Debug, Serialize, Deserialize)]
struct TriedBatch {
    /// The images, sorted.
    images: Vec<usize>,
    /// Mean KL(p‖q) on the test images, nats.
    epistemic: f64,
}

/// What is kept of a round: its classifiers are needed no more.
#[derive(Debug, Serialize, Deserialize)]
struct Settled {
    measured: Measured,
    #[serde(default)]
    blocks: Option<TestBlocks>,
    next: Purchase,
}

/// Buys labels round by round, and trains and measures a classifier after each. Resumes where it
/// stopped: settled rounds are read, the open one starts from its checkpoints.
///
/// # Errors
/// As [`crate::experiment::run_cell`], and when a classifier's answer is no number.
pub fn run(spec: &ActiveSpec, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
    let sizes = spec.rounds(job.cell.train_size);
    let steps_on = |labels: usize| job.training.total_steps(labels);
    let total = spec.trainings_of(&job.cell).into_iter().map(steps_on).sum();
    let strategy = spec.strategy(&job.cell)?;
    let mut order: Vec<usize> = (0..spec.pool).collect();
    order.shuffle(&mut Seed(job.cell.seed).split("labels bought at random").rng(0));
    let course = Trainings::new(events, total);
    let (members, tries) = (spec.asked(strategy), spec.tried(strategy));
    let mut cell = Buying { job, strategy, members, tries, order, owned: Vec::new(), course };
    let mut bought = cell.start(sizes[0])?;
    let mut rounds = Vec::with_capacity(sizes.len());
    for (round, pair) in sizes.windows(2).enumerate() {
        cell.own(&bought);
        let Settled { measured, blocks, next } = cell.round(round, pair[1] - pair[0])?;
        rounds.push(Round { labels: pair[0], bought: std::mem::replace(&mut bought, next), measured, blocks });
    }
    cell.own(&bought);
    let (result, _) = cell.train(job.folder, 0)?;
    let (measured, blocks) = (result.measured.clone(), result.blocks.clone());
    rounds.push(Round { labels: job.cell.train_size, bought, measured, blocks });
    Ok(CellResult { steps: total, output: Some(CellOutput::new(Bought { rounds })), ..result })
}

/// A cell in work.
struct Buying<'a> {
    job: &'a CellJob<'a>,
    strategy: Strategy,
    /// Classifiers that are asked.
    members: usize,
    /// Batches that are tried.
    tries: usize,
    /// The pool in the seed's random order. The start, and [`Strategy::Random`], take its next
    /// images.
    order: Vec<usize>,
    /// Images whose labels are bought, sorted: a classifier does not depend on the order of buying.
    owned: Vec<usize>,
    course: Trainings<'a>,
}

impl Buying<'_> {
    /// The first labels: the same for every strategy.
    fn start(&self, count: usize) -> Result<Purchase> {
        let (pool, classes, classifiers) = (self.job.train, self.job.test.classes, Vec::new());
        let offer = Offer { pool, classes, classifiers, reading: None, owned: &[], seed: Seed(self.job.cell.seed) };
        offer.buy(Strategy::Random, &self.order, count, &mut || Ok(()))
    }

    fn own(&mut self, bought: &Purchase) {
        self.owned.extend(&bought.images);
        self.owned.sort_unstable();
    }

    /// Runs a round that is followed by another: measures its classifier and buys the next `count`
    /// labels.
    fn round(&mut self, round: usize, count: usize) -> Result<Settled> {
        let folder = self.job.folder.join(format!("round-{round}"));
        let members = (1..self.members).map(|member| folder.join(format!("member-{member}")));
        let folders: Vec<PathBuf> = std::iter::once(folder.clone()).chain(members).collect();
        let file = folder.join(SETTLED);
        let settled = match read(&file)? {
            Some(settled) => {
                self.course.before += folders.len() * self.steps_on(0) + self.tries * self.steps_on(count);
                settled
            }
            None => {
                // The first is the one that every strategy has; the others only serve the choice.
                let (result, first) = self.train(&folder, 0)?;
                let mut classifiers = vec![first];
                for (member, folder) in folders.iter().enumerate().skip(1) {
                    classifiers.push(self.train(folder, member)?.1);
                }
                let next = self.buy(&folder, round, &classifiers, count)?;
                let settled = Settled { measured: result.measured, blocks: result.blocks, next };
                write(&file, &settled)?;
                settled
            }
        };
        folders.iter().for_each(|folder| clear(folder));
        Ok(settled)
    }

    /// Steps of one training on the labels there are and so many more.
    fn steps_on(&self, more: usize) -> usize {
        self.job.training.total_steps(self.owned.len() + more)
    }

    /// Trains a member on all labels so far. The first member starts as every strategy's classifier
    /// does.
    fn train(&mut self, folder: &Path, member: usize) -> Result<(CellResult, Trained)> {
        sweep_temp_files(folder);
        let seed = member_seed(&self.job.cell, member);
        let view = View { of: self.job.train, at: self.owned.clone() };
        let cell = Cell { train_size: self.owned.len(), seed, ..self.job.cell };
        let done = train_cell(&CellJob { cell, train: &view, folder, ..*self.job }, &mut self.course)?;
        self.course.before += self.steps_on(0);
        Ok(done)
    }

    /// Asks the classifiers about all images whose labels are not bought, and buys.
    fn buy(&mut self, folder: &Path, round: usize, classifiers: &[Trained], count: usize) -> Result<Purchase> {
        let (job, own) = (self.job, self.owned.clone());
        let owned: HashSet<usize> = own.iter().copied().collect();
        let by_chance: Vec<usize> = self.order.iter().copied().filter(|image| !owned.contains(image)).collect();
        let answers = |trained| Box::new(move |x: Vec<f32>| Trained::log_q(trained, x)) as Box<Answers<'_>>;
        let reading =
            |trained| Box::new(move |x: Vec<f32>| Trained::read_by_last_layer(trained, x)) as Box<Reading<'_>>;
        let offer = Offer {
            pool: job.train,
            classes: job.test.classes,
            classifiers: classifiers.iter().map(answers).collect(),
            reading: classifiers.first().map(reading),
            owned: &own,
            seed: Seed(job.cell.seed).split("purchase").split(&round.to_string()),
        };
        // Of equals the one of smaller number; chance keeps its own order.
        let mut candidates = by_chance.clone();
        if self.strategy != Strategy::Random {
            candidates.sort_unstable();
        }
        if self.strategy != Strategy::LookAhead {
            return offer.buy(self.strategy, &candidates, count, &mut || self.course.choosing());
        }
        let looked = offer.look(self.strategy, &candidates, &mut || self.course.choosing())?;
        let place = |image: &usize| candidates.partition_point(|other| other < image);
        let by_chance = by_chance.iter().map(place).collect();
        let aligned = classifiers.first().map(|first| aligned(first, &looked, job, count)).transpose()?;
        let ahead = Ahead { offer: &offer, looked: &looked, by_chance, aligned: aligned.unwrap_or_default() };
        let mut known = HashMap::new();
        ahead.buy(count, self.tries, &mut |number, images| {
            self.course.choosing()?;
            self.try_out(&folder.join(format!("try-{number}")), images, &mut known)
        })
    }

    /// Trains with the labels of some images, as the next round would, and returns the mean KL(p‖q) on
    /// the test images, nats. What was tried before is not trained again.
    fn try_out(&mut self, folder: &Path, images: &[usize], known: &mut HashMap<Vec<usize>, f64>) -> Result<f64> {
        let steps = self.steps_on(images.len());
        let mut images = images.to_vec();
        images.sort_unstable();
        let file = folder.join(TRIED);
        let before = match known.get(&images) {
            Some(&epistemic) => Some(epistemic),
            None => read::<TriedBatch>(&file)?.filter(|tried| tried.images == images).map(|tried| tried.epistemic),
        };
        let epistemic = match before {
            Some(epistemic) => epistemic,
            None => {
                trying(folder, &images)?;
                let mut at = [&self.owned[..], &images].concat();
                at.sort_unstable();
                let (cell, test) = (Cell { train_size: at.len(), ..self.job.cell }, self.job.test);
                let view = View { of: self.job.train, at };
                let trained = train_only(&CellJob { cell, train: &view, folder, ..*self.job }, &mut self.course)?;
                let epistemic = mean_and_error(&trained.per_image(test, test.len())?.kl).0;
                write(&file, &TriedBatch { images: images.clone(), epistemic })?;
                epistemic
            }
        };
        clear(folder);
        self.course.before += steps;
        known.insert(images, epistemic);
        Ok(epistemic)
    }
}

/// The batch along which the gradient of the exact KL falls, as places among the images looked at.
fn aligned(first: &Trained, looked: &Looked, job: &CellJob<'_>, count: usize) -> Result<Vec<usize>> {
    let (test, n) = (job.test, looked.known.len().max(1));
    let labels: Vec<usize> = looked.known.iter().map(|known| known.label).collect();
    let read = first.read_by_last_layer(test.all.x.clone())?;
    let dim = looked.read.len() / n;
    let mut open = Learner { read: Rows::new(&looked.read, dim), log_q: looked.log_q[0].clone() };
    let mut of_test = Learner { read: Rows::new(&read, dim), log_q: first.log_q(test.all.x.clone())? };
    Ok(alignment(&mut open, &labels, &mut of_test, &test.all.posterior, count))
}

/// Makes the folder of a try ready to train with these images: a checkpoint that may be of others is removed.
fn trying(folder: &Path, images: &[usize]) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    sweep_temp_files(folder);
    let file = folder.join(TRYING);
    if read::<Vec<usize>>(&file)?.as_deref() != Some(images) {
        clear(folder);
        write(&file, &images)?;
    }
    Ok(())
}

/// Removes what only an open round needs. Folders stay: where locks do not hold, another process may
/// work on the same cell.
fn clear(folder: &Path) {
    for name in [LAST, WORST_FILE, TESTED_FILE] {
        match std::fs::remove_file(folder.join(name)) {
            // It costs room, nothing else.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("{}: {e}", folder.join(name).display())
            }
            _ => {}
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    read_json(path).map_err(|error| with_way_out(error, "remove it and the round is trained and bought again"))
}

fn write(path: &Path, what: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec(what).map_err(|e| Error::file(path, e.to_string()))?;
    text.push(b'\n');
    write_atomically(path, |file| file.write_all(&text))
}

#[cfg(test)]
mod tests;
