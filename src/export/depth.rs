//! The cost of a picture's bit depth: posteriors of rounded samples against their exact ones.
//!
//! A picture keeps an image to half a level. The posterior at the level's value belongs to one
//! point of the cell of images with the same picture; it is not p(y|picture) (theory §1). The
//! picture's own Bayes error is only bounded: no classifier of pictures beats the world's E, and
//! deciding by that posterior errs as often as `decision_error` says.

use serde::{Deserialize, Serialize};

use crate::bayes::{Figure as Figure95, of_samples};
use crate::data::{Levels, range_of, union_range};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::figure::{Axis, Figure, Point, Rule, Scale, Series, Style, Table, Value, Way};
use crate::measure::{Estimate, Interval, student_mean};
use crate::oracle::folder::OracleInfo;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Sample, SampleSpec, Settings, World};
use crate::provenance::Badge;
use crate::stats::above_least;
use crate::units::{ClassId, Seed};

/// The bits of the curve.
pub const DEPTHS: std::ops::RangeInclusive<u32> = 4..=16;
/// Mean KL beyond which pictures are said to lose the truth, nats.
pub const COSTLY_NATS: f64 = 0.01;

/// KL below this is drawn there.
const LEAST_NATS: f64 = 1e-9;

/// The figures of images that were rounded to levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DepthCost {
    /// The levels.
    pub levels: Levels,
    /// Images compared.
    pub images: usize,
    /// Mean KL(p‖p_b) of the exact posterior p from that of the rounded image p_b, nats.
    pub kl_nats: Estimate,
    /// The largest, nats.
    pub largest_kl_nats: f64,
    /// Share of the images whose Bayes decision is another one.
    pub decisions_changed: Estimate,
    /// Mean of 1 − max p_b: what the rounded images' posteriors claim.
    pub bayes_error: Estimate,
    /// Mean of 1 − p(argmax p_b): how often deciding by p_b is wrong. The Bayes error of the
    /// pictures lies between E and this.
    pub decision_error: Estimate,
    /// Mean of p(argmax p) − p(argmax p_b) ≥ 0, paired by image: how much oftener that is wrong than the Bayes decision.
    /// Absent from older datasets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_error: Option<Estimate>,
    /// Mean H(p_b), nats.
    pub aleatoric_nats: Estimate,
}

impl DepthCost {
    /// Half a sentence for tables: whether the pictures carry the truth.
    pub fn verdict(&self) -> &'static str {
        if self.is_costly() { "is lost" } else { "is kept" }
    }

    /// Returns whether the pictures' own Bayes error is not that of the world.
    pub fn is_costly(&self) -> bool {
        self.kl_nats.value > COSTLY_NATS
    }

    /// The largest Bayes error of such pictures in a world whose own is at most `e`, at 95 %: never below `e`, whatever the
    /// Bayes error of these samples is.
    pub fn at_most(&self, e: f64) -> f64 {
        let added = self.added_error.map(|added| e + added.interval.high);
        added.unwrap_or(self.decision_error.interval.high).min(1.0).max(e)
    }

    /// A sentence on the Bayes error of such pictures, between those of the world and of [`Self::at_most`].
    fn sentence_between(&self, low: f64, most: f64) -> String {
        let (bits, error, most) = (self.levels.bits, 100.0 * low, 100.0 * most);
        match self.is_costly() {
            true => format!(
                "Bayes error of these {bits}-bit pictures: unknown, larger than {error:.4} %, at most {most:.4} %"
            ),
            false => format!("{bits}-bit pictures keep the posteriors: Bayes error {error:.4} % to {most:.4} %"),
        }
    }

    /// A sentence on the Bayes error of such pictures in a world whose own has this 95 % interval.
    pub fn sentence(&self, (low, high): (f64, f64)) -> String {
        self.sentence_between(low, self.at_most(high))
    }

    /// [`Self::sentence`] of pictures of one depth in several splits: their largest bound, and the truth is lost where it is in
    /// one. `None` of no split.
    pub fn sentence_of_all(costs: &[&Self], (low, high): (f64, f64)) -> Option<String> {
        let most = costs.iter().map(|cost| cost.at_most(high)).fold(high, f64::max);
        let costliest = costs.iter().max_by(|a, b| a.kl_nats.value.total_cmp(&b.kl_nats.value))?;
        Some(costliest.sentence_between(low, most))
    }
}

/// Figures of single images, from which a [`DepthCost`] is made.
#[derive(Debug, Clone, Default)]
pub struct Costs {
    kl: Vec<f64>,
    /// 1 where rounding changes the decision, else 0.
    changes: Vec<f64>,
    doubts: Vec<f64>,
    errors: Vec<f64>,
    added: Vec<f64>,
    entropies: Vec<f64>,
    /// The likeliest class of each, and how far that is in doubt: wholly where rounding changes the decision.
    unsure: Vec<(ClassId, f64)>,
}

impl Costs {
    /// Adds images of a world of these settings: their exact posteriors, and those of the images after rounding.
    pub fn add(&mut self, settings: &Settings, exact: &[Posterior], rounded: &[Posterior]) {
        for (p, q) in exact.iter().zip(rounded) {
            let change = f64::from(u8::from(p.decision != q.decision));
            self.kl.push(divergence(p, q));
            self.changes.push(change);
            self.doubts.push(q.doubt(q.decision));
            self.errors.push(p.doubt(q.decision));
            self.added.push((p.probabilities[p.decision] - p.probabilities[q.decision]).max(0.0));
            self.entropies.push(q.entropy_nats);
            let (class, doubt) = settings.class_doubt(p);
            self.unsure.push((class, doubt.max(change)));
        }
    }

    /// The figures of all, with the 95 % intervals of the world they are samples of.
    pub fn finish(&self, levels: Levels, classes: usize) -> DepthCost {
        let seen = above_least(self.unsure.iter().copied()).count();
        let of = |values: &[f64], most: f64| sampled(values, seen, most);
        let (kl, half) = student_mean(&self.kl);
        let changed = self.changes.iter().filter(|change| **change > 0.0).count();
        DepthCost {
            levels,
            images: self.kl.len(),
            kl_nats: Estimate {
                value: kl,
                interval: Interval { low: (kl - half).max(0.0), high: (kl + half).min(f64::MAX) },
            },
            largest_kl_nats: self.kl.iter().copied().fold(0.0, f64::max),
            decisions_changed: Estimate::proportion(changed, self.kl.len()),
            bayes_error: of(&self.doubts, 1.0),
            decision_error: of(&self.errors, 1.0),
            // Only changed decisions add to it: where few were seen, others were not.
            added_error: Some(sampled(&self.added, changed, 1.0)),
            aleatoric_nats: of(&self.entropies, (classes as f64).ln()),
        }
    }
}

/// KL(p‖q), nats.
pub fn divergence(p: &Posterior, q: &Posterior) -> f64 {
    let terms = p.probabilities.iter().zip(&p.log_probabilities).zip(&q.log_probabilities);
    terms.filter(|((p, _), _)| **p > 0.0).map(|((p, log_p), log_q)| p * (log_p - log_q)).sum::<f64>().max(0.0)
}

/// Posteriors of images `x` (NCHW) after rounding to levels. No noise is added.
///
/// # Errors
/// When the device fails, or the caller stops.
pub fn rounded_posteriors(
    world: &World,
    x: &[f32],
    levels: Levels,
    settings: &Settings,
    events: &mut dyn Events<Progress>,
) -> Result<Vec<Posterior>> {
    let rounded: Vec<f32> = x.iter().map(|&x| levels.value(levels.level(x))).collect();
    let scores = world.score(&rounded, events)?;
    Ok((0..scores.len()).map(|i| world.posterior(&scores, i, settings)).collect())
}

/// One depth of a curve, as JSON has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Depth {
    /// Bits of a level.
    pub bits: u32,
    /// The figures.
    #[serde(flatten)]
    pub cost: DepthCost,
}

/// What pictures of a world cost, over their bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DepthCurve {
    /// Samples compared, the same at every depth.
    pub samples: usize,
    /// Seed of the samples.
    pub seed: Seed,
    /// The world's knobs.
    pub settings: Settings,
    /// Mean of 1 − max p of the samples as they are.
    pub bayes_error: Estimate,
    /// From few bits to many.
    pub depths: Vec<Depth>,
}

/// The depth curve of a world on `n` samples; their range is that of the levels.
///
/// # Errors
/// When n is below 2, at τ = 0, when the device fails, or the caller stops.
pub fn depth_curve(
    world: &World,
    settings: &Settings,
    n: usize,
    seed: Seed,
    events: &mut dyn Events<Progress>,
) -> Result<DepthCurve> {
    if n < 2 {
        return Err(Error::input("a depth curve needs two samples at least"));
    }
    if settings.tau.get() == 0.0 {
        return Err(Error::input("at τ = 0 images have no density, and no posterior to lose: choose a τ above 0"));
    }
    let steps = DEPTHS.count() + 1;
    let (spec, total) = (SampleSpec::new(n, seed), n.saturating_mul(steps));
    let (mut samples, mut range) = (Vec::with_capacity(n), range_of(&[]));
    for first in (0..n).step_by(world.batch()) {
        let indices: Vec<usize> = (first..(first + world.batch()).min(n)).collect();
        let done = |_| Progress { done: first, total };
        let drawn = world.sample_watched(&spec, settings, &indices, &mut |step| events.emit(done(step)))?;
        for sample in &drawn {
            range = union_range(range, range_of(&sample.x));
        }
        samples.extend(drawn);
    }
    let exact: Vec<Posterior> = samples.iter().map(|sample: &Sample| sample.posterior.clone()).collect();
    let x: Vec<f32> = samples.into_iter().flat_map(|sample| sample.x).collect();
    let (k, mut depths) = (world.class_names().len(), Vec::new());
    for (turn, bits) in DEPTHS.enumerate() {
        let levels = Levels::new(bits, range)?;
        let mut forward = |p: Progress| events.emit(Progress { done: (turn + 1) * n + p.done, total });
        let rounded = rounded_posteriors(world, &x, levels, settings, &mut forward)?;
        let mut costs = Costs::default();
        costs.add(settings, &exact, &rounded);
        depths.push(Depth { bits, cost: costs.finish(levels, k) });
    }
    let doubts: Vec<f64> = exact.iter().map(|p| p.doubt(p.decision)).collect();
    let seen = above_least(exact.iter().map(|p| settings.class_doubt(p))).count();
    let bayes_error = sampled(&doubts, seen, 1.0);
    Ok(DepthCurve { samples: n, seed, settings: settings.clone(), bayes_error, depths })
}

/// [`of_samples`] as an estimate.
pub(super) fn sampled(values: &[f64], seen: usize, most: f64) -> Estimate {
    let Figure95 { value, interval: (low, high), .. } = of_samples(values, seen, most);
    Estimate { value, interval: Interval { low, high } }
}

impl DepthCurve {
    /// The curve as a table.
    pub fn table(&self) -> Table {
        let e = Value::of(self.bayes_error, 100.0).show(3);
        let caption = format!(
            "{} samples at τ = {}, rounded to 2^bits levels between their smallest and largest value; means with 95 % intervals. \
             KL is that of the exact posterior from the rounded image's. Bayes error of the samples as they are: {e} %. That of \
             the pictures lies between it and the error of deciding by the rounded image's posterior; claimed is the mean of \
             1 − max p of that posterior. Pictures that cost more than {COSTLY_NATS} nats are said to lose the truth.",
            self.samples,
            self.settings.tau.get()
        );
        Table::of(&self.depths)
            .words("bits", |depth| depth.bits.to_string())
            .words("the truth", |depth| depth.cost.verdict())
            .column("KL", "nats", 4, |depth| Value::of(depth.cost.kl_nats, 1.0))
            .column("decisions changed", "%", 1, |depth| Value::of(depth.cost.decisions_changed, 100.0))
            .column("error of deciding", "%", 2, |depth| Value::of(depth.cost.decision_error, 100.0))
            .column("error claimed", "%", 2, |depth| Value::of(depth.cost.bayes_error, 100.0))
            .named("depth", "What the bits of a picture cost", caption)
    }

    /// KL over the bits, on a logarithmic axis.
    pub fn figure(&self, info: &OracleInfo) -> Figure {
        let point = |depth: &Depth| {
            let Estimate { value, interval } = depth.cost.kl_nats;
            let shown = |nats: f64| nats.max(LEAST_NATS);
            Point::new(f64::from(depth.bits), shown(value)).within(shown(interval.low), shown(interval.high))
        };
        let lines = info.provenance(Badge::Estimated, &self.settings);
        Figure {
            id: "depth".into(),
            title: "What the bits of a picture cost".into(),
            caption: format!(
                "Mean KL of the exact posterior from that of the picture, over {} samples with 95 % intervals; below {LEAST_NATS:e} \
                 nats it is drawn there. The line is at {COSTLY_NATS} nats, above which pictures are said to lose the truth.",
                self.samples
            ),
            provenance: lines.with("samples", format!("{}, seed {}", self.samples, self.seed.0)).lines(),
            x: Axis::linear("bits of a value"),
            y: Axis { scale: Scale::Log10, unit: Some("nats".into()), ..Axis::linear("KL(exact ‖ picture)") },
            series: vec![Series {
                name: info.name.clone(),
                style: Style::LinePoints,
                points: self.depths.iter().map(point).collect(),
                ..Series::default()
            }],
            rules: vec![Rule {
                way: Way::Horizontal,
                at: COSTLY_NATS,
                low: None,
                high: None,
                label: "0.01 nats".into(),
            }],
            ..Figure::default()
        }
    }
}

#[cfg(test)]
mod tests;
