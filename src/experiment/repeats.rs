//! Cells that differ in their seed alone: means over seeds and their intervals.

use serde::{Deserialize, Serialize};

use super::blocks::{Difference, PairedFigure, ends_of_unseen, over_images};
use super::cell::{Cell, CellResult};
use super::spec::{ExperimentSpec, GridSpec};
use crate::classifier::{Architecture, Labels};
use crate::figure::{Point, Value};
use crate::measure::{Estimate, Interval, student_mean};
pub(super) use crate::measure::{NATS, SHARE};

/// What the captions of figures say whose error bars are those of a [`SeedMean`].
pub(super) const SEED_MEAN: &str = "Means over seeds with 95 % intervals over seeds (Student) and over test images, added in quadrature; \
     no interval where a single seed is finished.";

/// What the captions say of a [`SeedGain`] whose two sides have so much in common.
macro_rules! seed_gain {
    ($common:literal) => {
        concat!(
            "Differences are formed seed by seed (",
            $common,
            ") and have 95 % intervals over seeds (Student) and over test images (block means), added in quadrature; over seeds alone where \
             cells were finished by a version before 2026-11-26; no interval where a single seed is finished."
        )
    };
}

/// Of sides that differ in how they learn.
pub(super) const SEED_GAIN: &str = seed_gain!("the same training and test images on both sides");

/// Of sides that differ in what they learn.
pub(super) const SEED_GAIN_OF_IMAGES: &str = seed_gain!(
    "the same test images on both sides; each side draws training images of its own kind, as many as the other"
);

/// The same of calibration errors, which are no means over images.
pub(super) const SEED_GAIN_HERE: &str = "Differences of calibration errors are formed seed by seed, too, and have Student's 95 % interval over \
     seeds alone, given these test images, whose error is not in it.";

/// Mean over seeds of a figure that was measured on the same test images for every seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeedMean {
    /// The mean.
    pub value: f64,
    /// How many seeds it is of.
    pub seeds: usize,
    /// 95 % interval over test images: its half widths are the seeds' means, no smaller than the
    /// mean's own.
    pub over_images: Interval,
    /// Student's 95 % interval over seeds; absent with a single one.
    pub over_seeds: Option<Interval>,
    /// 95 % interval over both, the distances added in quadrature.
    pub interval: Option<Interval>,
}

/// Mean over seeds of a paired difference, or of a figure given these test images, in the unit of the
/// figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeedGain {
    /// The mean.
    pub value: f64,
    /// Seeds; of a difference those that both sides have.
    pub seeds: usize,
    /// 95 % interval: of [`Self::paired`] over seeds and test images, of [`Self::of`] over seeds alone.
    /// Absent with a single one.
    pub interval: Option<Interval>,
}

impl SeedMean {
    /// Of the seeds' figures; their intervals are cut to `range`. None without a seed.
    pub fn of(figures: &[Estimate], range: [f64; 2]) -> Option<Self> {
        let seeds = figures.len();
        if seeds == 0 {
            return None;
        }
        let [least, most] = range;
        let mean = |of: fn(&Estimate) -> f64| figures.iter().map(of).sum::<f64>() / seeds as f64;
        let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        let (value, half) = student_mean(&values);
        let (down, up) = (mean(|f| f.value - f.interval.low), mean(|f| f.interval.high - f.value));
        let around = |down: f64, up: f64| Interval { low: (value - down).max(least), high: (value + up).min(most) };
        let spread = half.is_finite();
        Some(Self {
            value,
            seeds,
            over_images: around(down, up),
            over_seeds: spread.then(|| around(half, half)),
            interval: spread.then(|| around(down.hypot(half), up.hypot(half))),
        })
    }

    /// Times a number, e.g. 100 for per cent, at a place of a figure.
    pub(super) fn point(&self, x: f64, times: f64) -> Point {
        point(x, self.value, self.interval, times)
    }

    /// Times a number, in a table.
    pub(super) fn cell(&self, times: f64) -> Value {
        cell(self.value, self.interval, times)
    }
}

impl SeedGain {
    /// Of figures, one a seed; none without any. What seeds have in common, such as their test images,
    /// is not in the interval.
    pub fn of(figures: &[f64]) -> Option<Self> {
        Self::within(figures, [0.0; 2])
    }

    /// Of differences on the same test images, one a seed; none without any. The error of these images
    /// is in the interval where both sides know their blocks, and what unseen images may add where they hardly differ
    /// ([`ends_of_unseen`]).
    pub fn paired(differences: &[Difference]) -> Option<Self> {
        Self::paired_up_to(differences, 0.0)
    }

    /// The same where test images alone put the upper end at least so far `above` the mean.
    pub(super) fn paired_up_to(differences: &[Difference], above: f64) -> Option<Self> {
        let values: Vec<f64> = differences.iter().map(|one| one.value).collect();
        let over_images = over_images(differences).unwrap_or_default();
        let [down, up] = ends_of_unseen(differences).map(|end| over_images + end);
        Self::within(&values, [down, up.max(above)])
    }

    /// With its interval cut to the range of the figure.
    #[must_use]
    pub fn cut(self, range: [f64; 2]) -> Self {
        Self { interval: self.interval.map(|interval| interval.within(range)), ..self }
    }

    /// With the distances of its ends over test images.
    fn within(values: &[f64], over_images: [f64; 2]) -> Option<Self> {
        let (value, over_seeds) = student_mean(values);
        let [down, up] = over_images.map(|end| over_seeds.hypot(end));
        let interval = over_seeds.is_finite().then_some(Interval { low: value - down, high: value + up });
        (!values.is_empty()).then_some(Self { value, seeds: values.len(), interval })
    }

    /// As [`SeedMean::point`].
    pub(super) fn point(&self, x: f64, times: f64) -> Point {
        point(x, self.value, self.interval, times)
    }

    /// As [`SeedMean::cell`].
    pub(super) fn cell(&self, times: f64) -> Value {
        cell(self.value, self.interval, times)
    }
}

/// A number with its interval, where it has one, at a place.
pub(super) fn point(x: f64, value: f64, interval: Option<Interval>, times: f64) -> Point {
    let point = Point::new(x, times * value);
    match interval {
        Some(Interval { low, high }) => point.within(times * low, times * high),
        None => point,
    }
}

/// The same in a table.
pub(super) fn cell(value: f64, interval: Option<Interval>, times: f64) -> Value {
    match interval {
        Some(Interval { low, high }) => Value::within(times * value, times * low, times * high),
        None => Value::from(times * value),
    }
}

/// The finished seeds of a classifier under a condition.
pub(super) struct Repeats<'a> {
    /// What they have in common; its seed is the first one's.
    pub cell: Cell,
    /// A seed each.
    pub results: Vec<&'a CellResult>,
}

/// The finished cells by what they have in common, in the order of the plan.
pub(super) fn repeats(cells: &[CellResult]) -> Vec<Repeats<'_>> {
    let mut found: Vec<Repeats<'_>> = Vec::new();
    for result in cells {
        let same = |other: &Cell| Cell { seed: result.cell.seed, ..*other } == result.cell;
        match found.iter_mut().find(|repeats| same(&repeats.cell)) {
            Some(repeats) => repeats.results.push(result),
            None => found.push(Repeats { cell: result.cell, results: vec![result] }),
        }
    }
    found
}

impl Repeats<'_> {
    /// Mean over seeds of a figure; none without a seed.
    pub fn mean(&self, of: impl Fn(&CellResult) -> Estimate, range: [f64; 2]) -> Option<SeedMean> {
        let figures: Vec<Estimate> = self.results.iter().map(|result| of(result)).collect();
        SeedMean::of(&figures, range)
    }

    /// Mean difference to another classifier over the seeds that both have.
    pub fn gain<'a>(
        &'a self,
        over: &'a Self,
        of: impl Fn(&'a CellResult) -> Option<PairedFigure<'a>>,
    ) -> Option<SeedGain> {
        let pair = |result: &&'a CellResult| {
            let other = over.results.iter().find(|other| other.cell.seed == result.cell.seed)?;
            Some(of(result)?.less(of(other)?))
        };
        SeedGain::paired(&self.results.iter().filter_map(pair).collect::<Vec<Difference>>())
    }
}

/// Where the numbers of an experiment's figures come from.
pub(super) fn provenance(spec: &ExperimentSpec, finished: usize) -> Vec<(String, String)> {
    let list = |values: Vec<String>| values.join(", ");
    let conditions = spec.experiment.condition_numbers();
    let mut taus: Vec<String> = conditions.map(|condition| spec.tau(condition).get().to_string()).collect();
    taus.dedup();
    let mut lines = vec![
        ("run", spec.name.clone()),
        ("oracle", spec.world.oracle.clone()),
        ("τ", list(taus)),
        ("N", list(spec.grid.train_sizes.iter().map(usize::to_string).collect())),
        ("seeds", list(spec.grid.seeds.iter().map(u64::to_string).collect())),
        ("test images", spec.test.images.to_string()),
        ("cells", format!("{finished} of {}", spec.cells().len())),
    ];
    if spec.world.smoothing.get() != 1.0 {
        lines.insert(3, ("T", spec.world.smoothing.get().to_string()));
    }
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The same of a figure that shows one value of what varies.
pub(super) fn only(provenance: &[(String, String)], what: &str, value: String) -> Vec<(String, String)> {
    let line = |(name, old): &(String, String)| (name.clone(), if name == what { value.clone() } else { old.clone() });
    provenance.iter().map(line).collect()
}

/// A network, N and a kind of labels, with the finished cells that have them.
pub(super) type Classifier<'a> = ((Architecture, usize, Labels), Vec<&'a CellResult>);

/// The finished cells of each network, N and kind of labels, smaller N first where `sorted`.
pub(super) fn classifiers<'a>(spec: &ExperimentSpec, cells: &'a [CellResult], sorted: bool) -> Vec<Classifier<'a>> {
    let GridSpec { architectures, train_sizes, labels, .. } = &spec.grid;
    let mut sizes = train_sizes.clone();
    if sorted {
        sizes.sort_unstable();
    }
    let mut all = Vec::new();
    for (&architecture, &n) in architectures.iter().flat_map(|one| sizes.iter().map(move |n| (one, n))) {
        for &labels in labels {
            let group = (architecture, n, labels);
            let of =
                |result: &&CellResult| (result.cell.architecture, result.cell.train_size, result.cell.labels) == group;
            all.push((group, cells.iter().filter(of).collect()));
        }
    }
    all
}

/// The values of some things, each once, in the order in which they come first.
pub(super) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// What the name of one of several figures ends in; nothing where there is one.
pub(super) fn suffix(sizes: &[usize], n: usize) -> String {
    if sizes.len() > 1 { format!("-n{n}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::hand_made::{around, measured, near, result, spec};

    /// Student's t of two degrees of freedom.
    const T2: f64 = 4.302_652_729_696;

    #[test]
    fn a_mean_over_seeds_has_both_intervals_and_a_single_seed_has_none_over_seeds() {
        let found = SeedMean::of(&[around(0.4, 0.01), around(0.5, 0.03), around(0.6, 0.02)], SHARE).unwrap();
        let half = T2 * 0.1 / 3f64.sqrt();
        let (images, seeds, both) = (found.over_images, found.over_seeds.unwrap(), found.interval.unwrap());
        assert!(near(found.value, 0.5) && found.seeds == 3);
        assert!(near(images.low, 0.48) && near(images.high, 0.52), "{images:?}");
        assert!(near(seeds.low, 0.5 - half) && near(seeds.high, 0.5 + half), "{seeds:?}");
        assert!(near(both.high, 0.5 + half.hypot(0.02)) && near(both.low, 0.5 - half.hypot(0.02)), "{both:?}");
        let one = SeedMean::of(&[around(0.4, 0.01)], SHARE).unwrap();
        assert_eq!((one.over_seeds, one.interval), (None, None));
        assert!(near(one.over_images.low, 0.39));
        assert!(one.point(3.0, 100.0).low.is_none() && near(one.point(3.0, 100.0).y, 40.0));
        assert_eq!(SeedMean::of(&[], SHARE), None);
        let edge = SeedMean::of(&[around(0.99, 0.05), around(0.98, 0.05)], SHARE).unwrap().interval.unwrap();
        assert_eq!(edge.high, 1.0);
    }

    #[test]
    fn gains_are_paired_by_seed_whatever_the_order_and_what_is_missing() {
        let spec = spec(
            "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [10]\nseeds = [3, 4, 5]\n\
             labels = ['posterior', 'argmax']\n[experiment]\nkind = 'soft-labels'\n",
        );
        let error = |labels: usize, seed: u64| [[0.10, 0.20, 0.90], [0.13, 0.25, 0.0]][labels][seed as usize - 3];
        let cells = spec.cells();
        let of = |cell: &Cell| {
            let error = error(usize::from(cell.labels != cells[0].labels), cell.seed);
            result(*cell, measured(error, error, 0.0))
        };
        // Hard labels have no seed 5 yet, and come in another order.
        let mut results: Vec<CellResult> = cells.iter().map(of).filter(|r| r.id != format!("{:?}", cells[5])).collect();
        results.reverse();
        let groups = repeats(&results);
        assert_eq!(groups.iter().map(|group| group.results.len()).collect::<Vec<_>>(), [2, 3]);
        let gain = groups[1].gain(&groups[0], |result| Some(result.paired(|m| m.accuracy, |b| &b.accuracy))).unwrap();
        // Differences 0.03 and 0.05: s = 0.01 √2, t of one degree 12.7062.
        assert!(near(gain.value, 0.04) && gain.seeds == 2);
        let half = 12.706_204_736 * 0.01;
        let interval = gain.interval.unwrap();
        assert!((interval.low - (0.04 - half)).abs() < 1e-8 && (interval.high - (0.04 + half)).abs() < 1e-8);
        assert_eq!(SeedGain::of(&[0.1]).unwrap().interval, None);
        let share = SeedGain::of(&[0.0, 0.1]).unwrap().cut(SHARE).interval.unwrap();
        assert!(share.low == 0.0 && share.high > 0.6, "{share:?}");
        assert_eq!(SeedGain::of(&[]), None);
    }
}
