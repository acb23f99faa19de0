//! A cell of a shift experiment: its images made, a classifier trained on them, both measured.

use super::images::{ShiftedImages, add_noise, choose, counts, labels};
use super::spec::kl;
use super::unavoidable::unavoidable_loss;
use super::{BaseShift, ShiftSetting, ShiftSpec, Shifted};
use crate::data::{Input, WorldBatch, read_npz, with_way_out};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::experiment::cell::{Cell, CellResult};
use crate::experiment::kind::CellPlace;
use crate::experiment::output::CellOutput;
use crate::experiment::pool::{MADE_AGAIN, Pool};
use crate::experiment::progress::Measuring;
use crate::experiment::train::{CellEvent, CellJob, train_cell};
use crate::experiment::trained::Trained;
use crate::measure::{Estimate, Interval, argmax, student_mean, wilson};
use crate::oracle::numbering::of_sample;
use crate::oracle::world::{SampleSpec, World};
use crate::units::{ClassId, Seed, Tau};

/// Images of a cell whose base is shifted, in its folder until it is measured.
const DRAWN: &str = "shifted.npz";
/// Images of the validation set in one pass of the classifier.
const PASS: usize = 256;

/// Trains and measures a cell on shifted images.
///
/// # Errors
/// As [`super::super::train::run_cell`], and when the shift does not fit the world.
pub fn run(
    spec: &ShiftSpec,
    place: &CellPlace<'_>,
    job: &CellJob<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    let Cell { train_size: n, condition, seed, .. } = job.cell;
    let setting = spec.settings.get(condition).ok_or_else(|| Error::input("this run has no such shift"))?;
    // Of the labels, by which images are chosen: under label noise that of the noisy ones.
    let (world_prior, seed) = (place.settings.labels()?, Seed(seed).split("shift"));
    let joint_kl = setting.joint_kl(&world_prior)?;
    let counts = counts(&setting.prior(&world_prior)?, n, seed);
    let kept = spec.kept(n);
    let labels = labels(job.train, spec.pool, events)?;
    let chosen = choose(&labels, &counts, kept, seed).map_err(|e| setting.wrong(&e.to_string()))?;
    let make = Make { setting, place, job, chosen: &chosen, seed };
    let images = make.images(events)?;
    let inner = CellJob { cell: Cell { train_size: kept, ..job.cell }, train: &images, ..*job };
    let (result, trained) = train_cell(&inner, events)?;
    let shares: Vec<f64> = counts.iter().map(|&count| count as f64 / n as f64).collect();
    let found = Shifted {
        kl_y: kl(&shares, world_prior.probabilities()),
        counts,
        joint_kl,
        log_likelihood_drop: make.log_likelihood_drop(&images, spec.likelihood, events)?,
        validation: accuracy(&trained, &images, kept, job.test.classes, events)?,
        unavoidable_loss: unavoidable_loss(setting, place, job.test, seed, events)?,
    };
    make.tidy();
    Ok(CellResult { cell: job.cell, output: Some(CellOutput::new(found)), ..result })
}

/// How the images of a cell come about.
struct Make<'a> {
    setting: &'a ShiftSetting,
    place: &'a CellPlace<'a>,
    job: &'a CellJob<'a>,
    /// Numbers in the pool.
    chosen: &'a [usize],
    seed: Seed,
}

impl Make<'_> {
    fn images(&self, events: &mut dyn Events<CellEvent>) -> Result<ShiftedImages> {
        let dims = self.job.test.shape.dims();
        let batch = self.job.train.take(self.chosen)?;
        let mut images = ShiftedImages { dims, x: batch.x, labels: batch.labels };
        if let Some(base) = self.setting.base {
            images.x = self.shifted_base(base, &images.labels, events)?;
        }
        if self.setting.noise > 0.0 {
            add_noise(&mut images.x, dims, self.setting.noise, self.job.range, self.seed);
        }
        Ok(images)
    }

    /// Makes the images of the chosen base samples after a shift. Slow worlds take long: the cell's
    /// folder keeps them, so that an interrupted cell does not make them again.
    fn shifted_base(
        &self,
        base: BaseShift,
        labels: &[ClassId],
        events: &mut dyn Events<CellEvent>,
    ) -> Result<Vec<f32>> {
        let (CellPlace { world, settings, train_seed, .. }, job) = (self.place, self.job);
        let (shape, n) = (job.test.shape, self.chosen.len());
        let map =
            base.of_flow(world.flow(), settings.tau, self.seed).map_err(|e| self.setting.wrong(&e.to_string()))?;
        std::fs::create_dir_all(job.folder).map_err(|e| Error::io(job.folder, e))?;
        let file = job.folder.join(DRAWN);
        let sample = SampleSpec::new(n, *train_seed);
        let mut tell = |progress: Progress| events.emit(CellEvent::Drawing(progress));
        Pool { file: &file, shape, n, batch: world.batch() }.fill(&mut tell, &mut |range, _| {
            let (classes, mut noise) = world.latents_of(&sample, settings, &self.chosen[range.clone()])?;
            map.apply(&mut noise, shape.dims());
            let decoded = world.flow().decode(&noise, &classes, settings.tau, &mut silent());
            let decoded = decoded.map_err(|error| of_sample(error, &self.chosen[range.clone()], settings.tau))?;
            let y = Some(labels[range].iter().map(|&label| label as i64).collect());
            let classes = world.class_names().len();
            Ok(WorldBatch { shape, x: decoded.x, classes, y, posterior: None, logp: None, aleatoric: None })
        })?;
        match read_npz(&file).map_err(|error| with_way_out(error, MADE_AGAIN))? {
            Input::World(batch) if batch.shape == shape && batch.len() == n => Ok(batch.x),
            _ => Err(Error::file(&file, format!("holds other images than this cell needs; {MADE_AGAIN}"))),
        }
    }

    /// Removes what is not needed any more. A file that stays is only a waste of space.
    fn tidy(&self) {
        if self.setting.base.is_some()
            && let Err(e) = std::fs::remove_file(self.job.folder.join(DRAWN))
        {
            tracing::warn!("{}: {e}", self.job.folder.join(DRAWN).display());
        }
    }

    /// E[log p(x|y)] − E[log p(x′|y)] over the first `most` images, nats, paired, with Student's
    /// 95 % interval. See [`Shifted`].
    fn log_likelihood_drop(
        &self,
        images: &ShiftedImages,
        most: usize,
        events: &mut dyn Events<CellEvent>,
    ) -> Result<Option<Estimate>> {
        // Noisy labels do not tell under which class an image's density is to be taken.
        let noisy = self.place.settings.label_noise.is_some() && self.setting.noise > 0.0;
        if self.setting.base.is_some() || noisy {
            return Ok(None);
        }
        if self.setting.noise == 0.0 {
            return Ok(Some(Estimate { value: 0.0, interval: Interval { low: 0.0, high: 0.0 } }));
        }
        let n = most.min(images.labels.len());
        let (world, tau, labels) = (self.place.world, self.place.settings.tau, &images.labels[..n]);
        let clean = self.job.train.take(&self.chosen[..n])?.x;
        let mut pieces = Measuring::begin(events, "the likelihood lost to noise", 2 * n)?;
        let before = log_likelihoods(world, tau, &clean, labels, &mut pieces)?;
        let after = log_likelihoods(world, tau, images.values(0..n), labels, &mut pieces)?;
        let drops: Vec<f64> = before.iter().zip(&after).map(|(before, after)| before - after).collect();
        let (value, half) = student_mean(&drops);
        Ok(Some(Estimate { value, interval: Interval { low: value - half, high: value + half } }))
    }
}

/// log p(x|y) of every image (NCHW) under its own class, nats: one pass an image where all classes
/// take K.
fn log_likelihoods(
    world: &World,
    tau: Tau,
    x: &[f32],
    labels: &[ClassId],
    pieces: &mut Measuring<'_>,
) -> Result<Vec<f64>> {
    let dims = world.shape().dims();
    let mut found = vec![0.0; labels.len()];
    for class in 0..world.class_names().len() {
        let members: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == class).collect();
        for piece in members.chunks(world.batch()) {
            let x: Vec<f32> = piece.iter().flat_map(|&i| &x[i * dims..(i + 1) * dims]).copied().collect();
            let scores = world.flow().score_classes(&x, class..class + 1)?;
            for (at, &i) in piece.iter().enumerate() {
                found[i] = scores.log_likelihoods(at, tau)[0];
            }
            pieces.done(piece.len())?;
        }
    }
    Ok(found)
}

/// Share of the images after the first `kept` whose drawn label the classifier finds.
fn accuracy(
    trained: &Trained,
    images: &ShiftedImages,
    kept: usize,
    classes: usize,
    events: &mut dyn Events<CellEvent>,
) -> Result<Estimate> {
    let (n, mut hits) = (images.labels.len(), 0);
    let tested = n - kept;
    let mut pieces = Measuring::begin(events, "the validation images", tested)?;
    for first in (kept..n).step_by(PASS) {
        let range = first..n.min(first + PASS);
        let log_q = trained.log_q(images.values(range.clone()).to_vec())?;
        let pairs = log_q.chunks_exact(classes).zip(&images.labels[range.clone()]);
        hits += pairs.filter(|(q, label)| argmax(q) == **label).count();
        pieces.done(range.len())?;
    }
    Ok(Estimate { value: hits as f64 / tested.max(1) as f64, interval: wilson(hits, tested) })
}
