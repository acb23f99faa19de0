//! The figures of a classifier on a test set whose exact posteriors are known (theory §4): its
//! cross-entropy taken apart, accuracies, the gap to Bayes, calibration; of all images and of each
//! class; each with a 95 % interval over images.
//!
//! Proportions (accuracy, error) have Wilson intervals, calibration errors that of `reliability`,
//! means over images BCa intervals that allow for few images (`bootstrap`). Where fewer than 30
//! images are in doubt, those of means with a bound (accuracies, gap, A) and of calibration errors hold
//! what images that were not seen may add, by the rule of three (that of ECE: where fewer than 30 are
//! missed, or hit; those of expected accuracy and gap: where fewer than 30 lose much by the decision, or
//! little); cross-entropy, KL and NLL have no bound, so theirs tell of images like the seen ones alone.
//! Intervals are over test images: another training run of the same classifier differs by more.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Bootstrap, in_doubt, of_mean, seen_of, with_unseen};
use super::images::{ImageDoubt, PerImage, in_doubt_of_class, in_doubt_of_decision};
use super::interval::{Estimate, NATS, SHARE};
use super::reliability::{BINS, Reliability, bin_of, l1_interval};
use crate::error::{Error, Result};
use crate::stats::of_rarer_kind;
use crate::units::ClassId;

/// Largest relative difference between the two sides of L = A + KL. Rounding leaves 1e-14.
const IDENTITY: f64 = 1e-6;

/// A loss below this (nats) is compared absolutely: relative to 0 is rounding.
const SMALLEST_LOSS: f64 = 1e-9;

/// A classifier on `n` images with exact posteriors p_i and drawn labels y_i.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Images.
    pub n: usize,
    /// Classes K.
    pub classes: usize,
    /// L = mean −Σ_y p log q, nats.
    pub cross_entropy: Estimate,
    /// A = mean H(p), nats: what no classifier can avoid.
    pub aleatoric: Estimate,
    /// mean KL(p‖q), nats: what this classifier has yet to learn.
    pub epistemic: Estimate,
    /// |L − (A + KL)| / L, the three summed independently.
    pub identity_error: f64,
    /// mean −log q(drawn label), nats: L with the noise of the labels.
    pub nll: Estimate,
    /// Share of images whose decision argmax q is the drawn label.
    pub accuracy: Estimate,
    /// 1 − accuracy.
    pub error: Estimate,
    /// mean p(argmax q): the mean accuracy over all possible labels, hence less noisy.
    pub expected_accuracy: Estimate,
    /// mean max p: the expected accuracy of the Bayes decision on the same images.
    pub bayes_accuracy: Estimate,
    /// `bayes_accuracy` − `expected_accuracy` ≥ 0, paired by image.
    pub gap: Estimate,
    /// Expected calibration error against drawn labels, 15 equal-width bins of max q.
    pub ece: Estimate,
    /// The same bins with p(argmax q) in place of hits.
    pub exact_calibration_error: Estimate,
    /// The bins behind both.
    pub reliability: Reliability,
    /// Each class, by drawn label.
    pub per_class: Vec<ClassMeasured>,
}

/// The same figures of the images with one drawn label.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassMeasured {
    /// The class.
    pub class: ClassId,
    /// Images with this label.
    pub count: usize,
    /// Share of them that is recognised; `None` without images.
    pub accuracy: Option<Estimate>,
    /// mean p(argmax q) over them. `None` below two images, as all that follows: one image has no
    /// spread. Images of a drawn label are more likely that class than images at large: not to be
    /// compared with `accuracy` class by class.
    pub expected_accuracy: Option<Estimate>,
    /// mean KL(p‖q), nats.
    pub epistemic: Option<Estimate>,
    /// mean H(p), nats.
    pub aleatoric: Option<Estimate>,
}

/// Measures a classifier: exact posteriors `p` [n, K] (f32 or f64), its log-probabilities `log_q`
/// [n, K], drawn `labels` [n]. For batches see [`PerImage::extend`] and [`PerImage::measured`].
///
/// # Errors
/// Those of the two; an empty set.
pub fn measure<P: Copy + Into<f64> + Sync>(
    p: &[P],
    log_q: &[f64],
    labels: &[ClassId],
    classes: usize,
    bootstrap: &Bootstrap,
) -> Result<Measured> {
    let mut images = PerImage::new(classes)?;
    images.extend(p, log_q, labels)?;
    images.measured(bootstrap)
}

// Columns of a table of figures, one row per image.
const COLUMNS: usize = 8;
const COUNT: usize = 0;
const CROSS_ENTROPY: usize = 1;
const ENTROPY: usize = 2;
const KL: usize = 3;
const NLL: usize = 4;
const EXPECTED: usize = 5;
const BEST: usize = 6;
const GAP: usize = 7;

/// What a class gets intervals for.
const PER_CLASS: [usize; 3] = [EXPECTED, KL, ENTROPY];

/// One image: its figures, and what it adds to its bin.
struct Line {
    figures: [f64; COLUMNS],
    hit: bool,
    bin: usize,
    excess: f64,
    exact_excess: f64,
    /// As in [`PerImage::doubts`], where it is known.
    doubt: Option<ImageDoubt>,
}

/// The images sorted by class, so that one pass over a replicate sums classes, bins and totals.
struct Table {
    lines: Vec<Line>,
    /// Where each class begins; one more entry than classes.
    starts: Vec<usize>,
}

/// Weighted sums of one replicate, or with all weights 1 of the images themselves.
struct Sums {
    totals: [f64; COLUMNS],
    /// Σ (confidence − hit) of each bin.
    excess: [f64; BINS],
    /// Σ (confidence − p(argmax q)).
    exact_excess: [f64; BINS],
    /// Means of each class, in the order of [`PER_CLASS`]; NaN where no image of it was drawn.
    classes: Vec<[f64; PER_CLASS.len()]>,
}

impl PerImage {
    /// The figures of all images together, with intervals.
    ///
    /// # Errors
    /// When there is no image, or L = A + KL fails by more than 1e-6.
    pub fn measured(&self, bootstrap: &Bootstrap) -> Result<Measured> {
        if self.is_empty() {
            return Err(Error::input("there is no image to measure a classifier on"));
        }
        let identity_error = identity(self)?;
        let table = Table::of(self);
        let whole = table.sums(&vec![1; self.len()]);
        let replicates = bootstrap.resample(self.len(), |counts| table.sums(counts));
        let mean = |column: usize| {
            let mut draws: Vec<f64> = replicates.iter().map(|r| r.totals[column]).collect();
            figure(column, whole.totals[column], &mut draws, &table.lines, self.classes)
        };
        // How many images show what the error is made of: the fewer of misses and hits, or those whose confidence is off in
        // another way than that of most.
        let calibration = |of: fn(&Sums) -> [f64; BINS], seen: usize| {
            let draws: Vec<[f64; BINS]> = replicates.iter().map(of).collect();
            l1_interval(&of(&whole), &draws, self.len(), seen)
        };
        let hits = table.lines.iter().filter(|line| line.hit).count();
        let off = seen_of(table.lines.iter().map(|line| line.exact_excess));
        let accuracy = Estimate::proportion(hits, self.len());
        Ok(Measured {
            n: self.len(),
            classes: self.classes,
            cross_entropy: mean(CROSS_ENTROPY),
            aleatoric: mean(ENTROPY),
            epistemic: mean(KL),
            identity_error,
            nll: mean(NLL),
            accuracy,
            error: accuracy.complement(),
            expected_accuracy: mean(EXPECTED),
            bayes_accuracy: mean(BEST),
            gap: mean(GAP),
            ece: calibration(|sums| sums.excess, of_rarer_kind(hits, self.len())),
            exact_calibration_error: calibration(|sums| sums.exact_excess, off),
            reliability: Reliability::of(self),
            per_class: (0..self.classes).map(|class| table.class(class, &whole, &replicates)).collect(),
        })
    }
}

/// |L − (A + KL)| / L, each side from its own sum over images.
fn identity(images: &PerImage) -> Result<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / images.len() as f64;
    let (loss, aleatoric, epistemic) = (mean(&images.cross_entropy), mean(&images.entropy), mean(&images.kl));
    let relative = (loss - (aleatoric + epistemic)).abs() / loss.abs().max(SMALLEST_LOSS);
    if relative <= IDENTITY {
        return Ok(relative);
    }
    Err(Error::Numeric(format!(
        "cross-entropy {loss} is not aleatoric {aleatoric} + epistemic {epistemic} = {} nats (relative difference {relative:.1e})",
        aleatoric + epistemic
    )))
}

/// The mean `value` of a column of these images with its interval, from `draws` of it.
fn figure(column: usize, value: f64, draws: &mut [f64], lines: &[Line], classes: usize) -> Estimate {
    let values = |column: usize| lines.iter().map(move |line| line.figures[column]);
    // Of the class, and of the decision; as `PerImage::in_doubt`, of these images.
    let (are_known, known) =
        (lines.iter().all(|line| line.doubt.is_some()), || lines.iter().filter_map(|line| line.doubt));
    let above_surest = |column: usize| in_doubt(values(column).map(|p| 1.0 - p));
    let of_class = || if are_known { in_doubt_of_class(known()) } else { above_surest(BEST) };
    let of_decision = || if are_known { in_doubt_of_decision(known()) } else { above_surest(EXPECTED) };
    // The range, and how many images show what the mean is made of; none can tell of a mean without a bound. What a decision
    // costs is made of right and wrong ones alike: a classifier that is nearly always wrong hardly shows where it is right.
    let (range, seen) = match column {
        ENTROPY => ([0.0, (classes as f64).ln()], Some(of_class())),
        BEST => (SHARE, Some(of_class())),
        EXPECTED => (SHARE, Some(of_rarer_kind(of_decision(), lines.len()))),
        GAP => (SHARE, Some(seen_of(values(GAP)))),
        _ => (NATS, None),
    };
    let mean = of_mean(value, draws, values(column), range);
    seen.map_or(mean, |seen| with_unseen(mean, lines.len(), seen, range))
}

impl Table {
    fn of(images: &PerImage) -> Self {
        let mut order: Vec<usize> = (0..images.len()).collect();
        order.sort_by_key(|&i| images.label[i]);
        let line = |&i: &usize| {
            let hit = images.hit(i);
            let (expected, best, confidence) = (images.expected[i], images.best[i], images.confidence[i]);
            let mut figures = [1.0; COLUMNS];
            figures[CROSS_ENTROPY] = images.cross_entropy[i];
            figures[ENTROPY] = images.entropy[i];
            // KL ≥ 0 but for the rounding of its sum.
            figures[KL] = images.kl[i].max(0.0);
            figures[NLL] = images.nll[i];
            figures[EXPECTED] = expected;
            figures[BEST] = best;
            figures[GAP] = best - expected;
            Line {
                figures,
                hit,
                bin: bin_of(confidence),
                excess: confidence - f64::from(u8::from(hit)),
                exact_excess: confidence - expected,
                doubt: images.doubts.get(i).copied(),
            }
        };
        let starts = (0..=images.classes).map(|class| order.partition_point(|&i| images.label[i] < class)).collect();
        Self { lines: order.iter().map(line).collect(), starts }
    }

    /// The figures of one class.
    fn class(&self, class: ClassId, whole: &Sums, replicates: &[Sums]) -> ClassMeasured {
        let lines = &self.lines[self.starts[class]..self.starts[class + 1]];
        let hits = lines.iter().filter(|line| line.hit).count();
        let mean = |at: usize| {
            let draws = replicates.iter().map(|r| r.classes[class][at]);
            let mut draws: Vec<f64> = draws.filter(|mean| !mean.is_nan()).collect();
            let value = whole.classes[class][at];
            (lines.len() > 1).then(|| figure(PER_CLASS[at], value, &mut draws, lines, whole.classes.len()))
        };
        ClassMeasured {
            class,
            count: lines.len(),
            accuracy: (!lines.is_empty()).then(|| Estimate::proportion(hits, lines.len())),
            expected_accuracy: mean(0),
            epistemic: mean(1),
            aleatoric: mean(2),
        }
    }

    /// Means of all columns with the images of `counts`, in the order of the table.
    fn sums(&self, counts: &[u16]) -> Sums {
        let mut sums = Sums {
            totals: [0.0; COLUMNS],
            excess: [0.0; BINS],
            exact_excess: [0.0; BINS],
            classes: Vec::with_capacity(self.starts.len()),
        };
        for bounds in self.starts.windows(2) {
            let mut class = [0.0; COLUMNS];
            let (lines, counts) = (&self.lines[bounds[0]..bounds[1]], &counts[bounds[0]..bounds[1]]);
            for (line, &count) in lines.iter().zip(counts) {
                let weight = f64::from(count);
                for (sum, figure) in class.iter_mut().zip(&line.figures) {
                    *sum += weight * figure;
                }
                sums.excess[line.bin] += weight * line.excess;
                sums.exact_excess[line.bin] += weight * line.exact_excess;
            }
            sums.classes.push(PER_CLASS.map(|column| class[column] / class[COUNT]));
            for (total, sum) in sums.totals.iter_mut().zip(class) {
                *total += sum;
            }
        }
        let n = sums.totals[COUNT];
        for sum in sums.totals.iter_mut().chain(&mut sums.excess).chain(&mut sums.exact_excess) {
            *sum /= n;
        }
        sums
    }
}

#[cfg(test)]
mod tests;
