//! How KL falls with the number of training images N, over several external runs on the same test images: of each run the step
//! with the smallest KL. Numbers in, figures out, but for [`law_of`], which reads folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::spec::{ExternalFolder, ExternalSpec};
use super::step::StepFigures;
use crate::error::{Error, Result};
use crate::experiment::{OVER_FORMS, exponent_table, hold_out_series, hold_out_table, how_intervals_come, law_series};
use crate::figure::{Axis, Figure, Point as Mark, Records, Rule, Series, Style, Table, Way};
use crate::measure::{Comparison, Estimate, HoldOut, Point, TestImages, compare, hold_out};
use crate::units::Seed;

/// What the law is called in figures and tables.
const NAME: &str = "external runs";

/// An external run as a law needs it.
#[derive(Debug, Clone)]
pub struct LawRun<'a> {
    /// Its folder.
    pub folder: &'a Path,
    /// What it is.
    pub spec: &'a ExternalSpec,
    /// Its step with the smallest KL ([`StepFigures::best`]); `None` before the first record.
    pub best: Option<&'a StepFigures>,
}

/// A run as a point of the law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LawPoint {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name.
    pub name: String,
    /// Different training images N.
    pub train_images: u64,
    /// Its number among the runs of this N, in the order in which they are named: runs of equal N are seeds.
    pub seed: u64,
    /// The step with the smallest KL, of which the next two are.
    pub step: u64,
    /// mean KL(p‖q), nats, with its interval over the test images.
    pub epistemic: Estimate,
    /// L, nats.
    pub cross_entropy: Estimate,
}

/// The law of several external runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunLaw {
    /// The runs, in the order in which they were named.
    pub points: Vec<LawPoint>,
    /// mean H(p) of the test images, nats.
    pub aleatoric: Estimate,
    /// With and without a floor, and which of the two.
    pub fits: Comparison,
    /// The law fitted without the largest N, and what came there; absent below four different N.
    pub hold_out: Option<HoldOut>,
    /// World and test images by name.
    pub provenance: Vec<(String, String)>,
}

/// The law of runs on disk, all of whose records are read.
///
/// # Errors
/// Names what cannot be read; as [`law_at`].
pub fn law_of(folders: &[ExternalFolder]) -> Result<RunLaw> {
    same_images(folders.iter().map(|one| (one.path.as_path(), &one.spec)))?;
    let best = |one: &ExternalFolder| Ok((one.clone(), one.look(None, usize::MAX)?.best()));
    law_at(&folders.iter().map(best).collect::<Result<Vec<_>>>()?)
}

/// The law of runs whose steps with the smallest KL are known. Reads these records alone: every replicate of the intervals draws
/// the test images anew, the same for all runs.
///
/// # Errors
/// Names a run that is given twice, and what cannot be read; as [`RunLaw::of`].
pub fn law_at(runs: &[(ExternalFolder, Option<StepFigures>)]) -> Result<RunLaw> {
    each_once(runs.iter().map(|(one, _)| one.path.as_path()))?;
    let read = runs.iter().filter_map(|(one, best)| Some(one.kl(best.as_ref()?.step)));
    let kl = read.collect::<Result<Vec<_>>>()?;
    let values: Vec<&[f64]> = kl.iter().map(Vec::as_slice).collect();
    // Where a run knows every posterior, there is nothing to draw anew, and the law says why it cannot be.
    let images = runs.first().and_then(|(first, _)| TestImages::of(&values, &first.draws()).ok());
    let given = runs.iter().map(|(one, best)| LawRun { folder: &one.path, spec: &one.spec, best: best.as_ref() });
    RunLaw::of(&given.collect::<Vec<_>>(), images.as_ref())
}

impl RunLaw {
    /// Fits the law as those of grids are; `images` are the values of the test images at the runs' best steps, where known.
    ///
    /// # Errors
    /// When two runs are not on the same test images (names their folders), a run has no record or does not say its number of
    /// training images, or there are fewer than three different ones.
    pub fn of(runs: &[LawRun<'_>], images: Option<&TestImages>) -> Result<Self> {
        same_images(runs.iter().map(|run| (run.folder, run.spec)))?;
        let mut seeds = BTreeMap::new();
        let mut points = Vec::new();
        for LawRun { folder, spec, best } in runs {
            let train_images = spec.external.train_images.ok_or_else(|| {
                Error::file(folder, "does not say its number of training images: external.train_images in run.toml")
            })?;
            let best = best.ok_or_else(|| Error::file(folder, "has no record of predictions yet"))?;
            let next = seeds.entry(train_images).or_insert(0);
            points.push(LawPoint {
                folder: folder.to_path_buf(),
                name: spec.name.clone(),
                train_images,
                seed: *next,
                step: best.step,
                epistemic: best.epistemic,
                cross_entropy: best.cross_entropy,
            });
            *next += 1;
        }
        let known = runs.first().and_then(|run| Some((run, run.best?)));
        let (first, best) = known.ok_or_else(|| Error::input("a law needs runs"))?;
        let (of_law, seed) = (points.iter().map(LawPoint::of_law).collect::<Vec<_>>(), Seed(0).split("power law"));
        Ok(Self {
            aleatoric: best.aleatoric,
            fits: compare(&of_law, images, seed)?,
            hold_out: hold_out(&of_law, images, seed).ok(),
            provenance: provenance(first.spec),
            points,
        })
    }

    /// KL and L of every run over N, with the law.
    pub fn figure(&self) -> Figure {
        let law = self.fits.law();
        let of_part = |name: &str, dashed: bool, of: fn(&LawPoint) -> Estimate| {
            let points = self.points.iter().map(|point| point.mark(of(point))).collect();
            Series { name: name.into(), style: Style::Points, points, dashed, ..Series::default() }
        };
        let mut series = vec![law_series(&self.fits, "law of KL".into())];
        let mut caption = format!(
            "Epistemic part KL(p || q) of each run at its step with the smallest KL on these test images, which makes it a \
                           little too small, with the fitted law and its 95 % band, {OVER_FORMS}; the aleatoric part, the same for all, as a line no \
                           loss falls below. Runs of equal N count as seeds."
        ) + &how_intervals_come(&[(NAME.into(), law)]);
        if let Some(held) = &self.hold_out {
            series.push(hold_out_series(held, "law without the largest N".into()));
            caption += &format!(" {}", held.sentence);
        }
        series.extend([of_part("KL", false, |p| p.epistemic), of_part("L", true, |p| p.cross_entropy)]);
        let Estimate { value: at, interval } = self.aleatoric;
        let (low, high) = (Some(interval.low), Some(interval.high));
        Figure {
            id: "external-law".into(),
            title: "Loss over the number of training images".into(),
            caption,
            x: Axis::log10("training images N"),
            y: Axis::log10("loss per image").in_unit("nats"),
            series,
            rules: vec![Rule { way: Way::Horizontal, at, low, high, label: "aleatoric A".into() }],
            provenance: self.provenance.clone(),
            ..Figure::default()
        }
    }

    /// The exponents, and how the law stands the test of the largest N.
    pub fn tables(&self) -> Vec<Table> {
        let held: Vec<(String, HoldOut)> = self.hold_out.iter().map(|held| (NAME.into(), held.clone())).collect();
        let exponents = exponent_table(&[(NAME.into(), self.fits.law())]);
        exponents.into_iter().chain(hold_out_table(&held)).collect()
    }

    /// One line of comma-separated values a run.
    pub fn csv(&self) -> String {
        Records::of(self.points.iter())
            .field("folder", |point| point.folder.display().to_string())
            .field("name", |point| &point.name)
            .field("train_images", |point| point.train_images)
            .field("seed", |point| point.seed)
            .field("step", |point| point.step)
            .field("epistemic_nats", |point| point.epistemic.value)
            .field("epistemic_low", |point| point.epistemic.interval.low)
            .field("epistemic_high", |point| point.epistemic.interval.high)
            .field("cross_entropy_nats", |point| point.cross_entropy.value)
            .text()
    }
}

impl LawPoint {
    fn of_law(&self) -> Point {
        let Estimate { value, interval } = self.epistemic;
        Point { n: self.train_images as f64, seed: self.seed, value, error: interval.log_error(value) }
    }

    fn mark(&self, Estimate { value, interval }: Estimate) -> Mark {
        let label = Some(format!("{}, step {}", self.name, self.step));
        Mark { label, ..Mark::new(self.train_images as f64, value).within(interval.low, interval.high) }
    }
}

/// World and test images by name: what is the same for all runs.
fn provenance(spec: &ExternalSpec) -> Vec<(String, String)> {
    let own = ["run", "predictions", "training images N"];
    let mut said =
        vec![("badge".to_owned(), "estimated: exact posteriors, 95 % intervals over runs and test images".to_owned())];
    said.extend(spec.chain().into_iter().filter(|(name, _)| !own.contains(&name.as_str())));
    said.push(("program".to_owned(), format!("bayescope {}", env!("CARGO_PKG_VERSION"))));
    said
}

impl ExternalFolder {
    /// KL(p‖q) of every test image at a step, nats, not below 0.
    fn kl(&self, step: u64) -> Result<Vec<f64>> {
        let (_, images) = self.images_at(step, &self.truth()?)?;
        Ok(images.kl.iter().map(|kl| kl.max(0.0)).collect())
    }
}

/// Refuses a folder that is given twice, by whatever names: its run would count as two seeds that agree.
fn each_once<'a>(folders: impl Iterator<Item = &'a Path>) -> Result<()> {
    let mut places = BTreeMap::new();
    for folder in folders {
        let place = folder.canonicalize().map_err(|e| Error::io(folder, e))?;
        if let Some(first) = places.insert(place, folder) {
            let (one, other) = (first.display(), folder.display());
            return Err(Error::input(format!("{one} and {other} are one run, which is no two seeds: name it once")));
        }
    }
    Ok(())
}

/// Refuses runs whose figures are not of the same test images.
fn same_images<'a>(mut runs: impl Iterator<Item = (&'a Path, &'a ExternalSpec)>) -> Result<()> {
    let Some((first, a)) = runs.next() else { return Ok(()) };
    for (folder, b) in runs {
        let differs = [
            ("the weights of their worlds", a.world.id() != b.world.id()),
            ("τ", a.world.tau != b.world.tau),
            ("T", a.world.smoothing != b.world.smoothing),
            ("the class prior π", a.world.prior != b.world.prior),
            ("label noise", a.world.label_noise != b.world.label_noise),
            ("precision", a.world.precision != b.world.precision),
            ("the number of test images", a.test.images != b.test.images),
            ("the seed of the test images", a.test.seed != b.test.seed),
        ];
        let differs: Vec<&str> = differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect();
        if !differs.is_empty() {
            let (one, other) = (first.display(), folder.display());
            return Err(Error::input(format!(
                "{one} and {other} are not of the same test images: they differ in {}",
                differs.join(", ")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
