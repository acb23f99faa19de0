//! The cost of 32-bit arithmetic on a device: posteriors, log-likelihoods and Bayes decisions
//! compared with 64 bits on the CPU.

use burn::tensor::Device;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::figure::{Axis, Figure, Point, Scale, Series, Style, Table};
use crate::flow::Precision;
use crate::measure::{Bootstrap, Estimate, NATS};
use crate::oracle::folder::{self, OracleInfo};
use crate::oracle::numbering::of_sample;
use crate::oracle::posterior::Posterior;
use crate::oracle::precision::difference;
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::provenance::{Badge, Provenance};
use crate::units::Seed;

/// Images compared unless a caller wants others.
pub const IMAGES: usize = 256;
/// Differences below this count as this on the logarithmic axis.
const LEAST: f64 = 1e-18;

/// Differences of one number between two passes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The largest of all images and classes.
    pub largest: f64,
    /// Mean over images of the largest of each; BCa bootstrap.
    pub mean: Estimate,
}

/// A world on a device compared with itself in 64 bits on the CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What computed in 32 bits.
    pub device: String,
    /// Samples compared.
    pub images: usize,
    /// Classes K.
    pub classes: usize,
    /// Of posterior probabilities.
    pub posterior: Difference,
    /// Of log p(x|y), nats.
    pub log_likelihood: Difference,
    /// Share of images whose Bayes decision changes; Wilson's interval.
    pub decisions_changed: Estimate,
    /// How it was computed.
    pub provenance: Provenance,
    /// For each image: margin between its two most probable classes in 64 bits, largest difference
    /// of its posterior and of its log-likelihoods.
    #[serde(skip)]
    pub each: Vec<[f64; 3]>,
}

/// Compares `images` samples of a world on its device with 64 bits on the CPU. `oracle` is the name
/// the world was opened by, `device` the name of its device.
///
/// # Errors
/// When the oracle cannot be opened in 64 bits, the device fails, or the caller stops.
pub fn compare_precision(
    world: &World,
    (oracle, info, device): (&str, &OracleInfo, &str),
    (images, settings, seed): (usize, &Settings, Seed),
    events: &mut dyn Events<Progress>,
) -> Result<Comparison> {
    if images < 2 || settings.tau.get() == 0.0 {
        return Err(Error::input("precision is compared on 2 images at least, at a τ above 0"));
    }
    let weights = folder::read_again(oracle, info)?;
    let exact = info.clone().build(weights, &Device::flex(), Precision::F64, world.batch())?.world;
    let spec = SampleSpec::new(images, seed.split("precision"));
    let mut each = Vec::with_capacity(images);
    let mut changed = 0;
    let indices: Vec<usize> = (0..images).collect();
    for batch in indices.chunks(world.flow().images_per_pass().min(world.batch())) {
        let (classes, noise) = world.latents_of(&spec, settings, batch)?;
        let now = Progress { done: each.len(), total: images };
        // The same 32-bit image in both: the density is compared, not the sample.
        let made = world.flow().decode(&noise, &classes, settings.tau, &mut |_| events.emit(now));
        let x = made.map_err(|error| of_sample(error, batch, settings.tau))?.x;
        let single = posteriors(world, &x, settings, &mut |_| events.emit(now))?;
        let double = posteriors(&exact, &x, settings, &mut |_| events.emit(now))?;
        for (a, b) in single.iter().zip(&double) {
            changed += usize::from(a.decision != b.decision);
            let of = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| difference(*a, *b)).fold(0.0, f64::max);
            let posterior = of(&a.probabilities, &b.probabilities);
            each.push([margin(b), posterior, of(&a.log_likelihood, &b.log_likelihood)]);
        }
        events.report(Progress { done: each.len(), total: images })?;
    }
    let bootstrap = Bootstrap::new(seed);
    let over_images = |column: usize| {
        let values: Vec<f64> = each.iter().map(|row: &[f64; 3]| row[column]).collect();
        Difference { largest: values.iter().copied().fold(0.0, f64::max), mean: bootstrap.mean(&values, NATS) }
    };
    let provenance = info
        .provenance(Badge::Estimated, settings)
        .with("samples", format!("{images}, seed {}", seed.0))
        .with("compared", format!("32 bits on {device} with 64 bits on the CPU, the same 32-bit images"));
    Ok(Comparison {
        device: device.to_owned(),
        images,
        classes: world.class_names().len(),
        posterior: over_images(1),
        log_likelihood: over_images(2),
        decisions_changed: Estimate::proportion(changed, images),
        provenance,
        each,
    })
}

fn posteriors(
    world: &World,
    x: &[f32],
    settings: &Settings,
    events: &mut dyn Events<Progress>,
) -> Result<Vec<Posterior>> {
    let scores = world.score(x, events)?;
    Ok((0..scores.len()).map(|i| world.posterior(&scores, i, settings)).collect())
}

/// How far the most probable class is ahead.
fn margin(posterior: &Posterior) -> f64 {
    let top = posterior.probabilities[posterior.decision];
    let others = posterior.probabilities.iter().enumerate().filter(|(class, _)| *class != posterior.decision);
    top - others.map(|(_, p)| *p).fold(0.0, f64::max)
}

impl Comparison {
    /// The numbers.
    pub fn table(&self) -> Table {
        let share = self.decisions_changed;
        let [value, low, high] = [share.value, share.interval.low, share.interval.high].map(|share| 100.0 * share);
        let changed = format!("{value:.2} [{low:.2}, {high:.2}]");
        let mean = |Difference { mean: Estimate { value, interval }, .. }: &Difference| {
            format!("{value:.2e} [{:.2e}, {:.2e}]", interval.low, interval.high)
        };
        let of = |what, unit, of: &Difference| (what, unit, Some(format!("{:.2e}", of.largest)), mean(of));
        let rows = [
            of("posterior p(y|x)", "", &self.posterior),
            of("log-likelihood log p(x|y)", "nats", &self.log_likelihood),
            ("Bayes decisions changed", "%", None, changed),
        ];
        let caption = format!(
            "{} samples, {} classes; means are over images of the largest difference of each, with 95 % intervals (bootstrap; decisions: \
             Wilson).",
            self.images, self.classes
        );
        Table::of(&rows)
            .words("figure", |(what, ..)| *what)
            .words("unit", |(_, unit, ..)| *unit)
            .words("largest", |(_, _, largest, _)| largest.clone())
            .words("mean", |(.., mean)| mean.as_str())
            .named("precision", format!("32 bits on {} beside 64 bits on the CPU", self.device), caption)
    }

    /// The difference of each image over its margin: where decisions are near, errors matter.
    pub fn figure(&self) -> Figure {
        let point = |[margin, posterior, _]: &[f64; 3]| Point::new(*margin, posterior.max(LEAST));
        Figure {
            id: "precision".into(),
            title: "Error of the posterior over the margin".into(),
            caption: format!(
                "A point an image: the largest difference of its posterior between 32 bits on {} and 64 bits, over the margin between its two most \
                 probable classes. Differences below {LEAST:e} are drawn there.",
                self.device
            ),
            provenance: self.provenance.lines(),
            x: Axis::linear("margin between the two most probable classes"),
            y: Axis { scale: Scale::Log10, ..Axis::linear("largest |Δp|") },
            series: vec![Series {
                name: format!("{} samples", self.images),
                style: Style::Points,
                points: self.each.iter().map(point).collect(),
                ..Series::default()
            }],
            ..Figure::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::silent;

    #[test]
    fn sixty_four_bits_do_not_differ_from_themselves_and_thirty_two_do_a_little() {
        let settings = Settings::default_for(10);
        for (precision, largest) in [(Precision::F64, 0.0), (Precision::F32, 0.05)] {
            let oracle = folder::open("mnist", &Device::flex(), precision, 16).unwrap();
            let about = ("mnist", &oracle.info, "this CPU");
            let found = compare_precision(&oracle.world, about, (12, &settings, Seed(3)), &mut silent()).unwrap();
            assert_eq!((found.images, found.each.len(), found.classes), (12, 12, 10));
            assert!(found.log_likelihood.largest <= largest, "{found:?}");
            assert!(found.posterior.largest <= largest && found.decisions_changed.value == 0.0, "{found:?}");
            assert_eq!(found.log_likelihood.largest > 0.0, precision == Precision::F32);
            assert_eq!(found.figure().series[0].points.len(), 12);
        }
    }

    #[test]
    fn a_world_is_not_compared_with_another_that_took_its_place() {
        let oracle = folder::open("mnist", &Device::flex(), Precision::F32, 16).unwrap();
        let about = ("mnist@9b44f254", &oracle.info, "this CPU");
        let settings = Settings::default_for(10);
        let found = compare_precision(&oracle.world, about, (2, &settings, Seed(3)), &mut silent());
        assert!(found.unwrap_err().to_string().contains("is another world than the one that was opened"));
    }
}
