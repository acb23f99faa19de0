//! Figures of a world at one τ from its draws there.
//!
//! Every figure is a mean over x ~ p(x) of a function of the posterior, so that each draw serves
//! all of them. With T ≠ 1 the labels of the world follow p_T(y|x), and their law π_T = E[p_T] is
//! itself a mean: functions of it are linearised, and its entropy has what the next term takes from
//! it. Under label noise all figures are those of p~ = Cᵀ p_T, and π_T is its mean, known where
//! T = 1; control variates stay the classes' own posteriors.

use std::f64::consts::LN_2;

use super::pool::Pool;
use super::source::{Draw, Standing};
use super::strata::{Controls, Fit, Strata};
use crate::bayes::estimate::Figure;
use crate::bayes::information::{Information, entropy_of};
use crate::error::Result;
use crate::events::Events;
use crate::oracle::label_noise::{LabelNoise, share_of};
use crate::oracle::posterior::{Posterior, Prior};
use crate::provenance::Badge;
use crate::stats::{above_least, unseen};
use crate::units::{ClassId, Smoothing, Tau};

/// Draws whose labels are of a class, by the estimated law, from which figures of that law are told with intervals of their own.
const FEW_LABELS: f64 = 1.5;

/// The posteriors of draws at one τ.
pub(super) struct Snapshot {
    pub strata: Strata,
    /// p(j|x) at T = 1 of all classes of positive prior but one, [controls][N]: its mean is π_j.
    pub controls: Vec<Vec<f64>>,
    /// 1 − max p_T.
    pub doubts: Vec<f64>,
    /// The same without label noise, and [`LabelNoise::doubt`] with it: which draws were in doubt at all.
    pub unsure: Vec<f64>,
    /// The likeliest class of each draw, before any label noise.
    decided: Vec<ClassId>,
    known: Vec<f64>,
    fitted: Option<Controls>,
    /// p_T(j|x), [K][N].
    probabilities: Vec<Vec<f64>>,
    entropies: Vec<f64>,
    /// Law of the labels, [K].
    labels: Vec<f64>,
    /// Those that occur.
    present: Vec<ClassId>,
    /// Whether their law was estimated.
    smoothed: bool,
    /// The label noise, and its reach.
    noise: Option<(LabelNoise, f64)>,
}

/// A figure, and how many times the draws plain sampling needs for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub figure: Figure,
    pub gain: Option<f64>,
}

/// The doubt and the posterior of a noisy label.
fn of_labels(noise: &LabelNoise, of_class: Posterior) -> (f64, Posterior) {
    let of_label = noise.labels(&of_class.probabilities);
    (noise.doubt(of_class.decision, &of_label), noise.posterior(of_class))
}

impl Snapshot {
    /// Of the first n draws of a pool at τ.
    ///
    /// # Errors
    /// As [`Pool::rows`].
    pub fn of(pool: &mut Pool<'_>, tau: Tau, n: usize, events: &mut dyn Events<Standing>) -> Result<Self> {
        let rows = pool.rows(tau, n, events)?;
        Ok(Self::new(&pool.draws(n), &rows, (&pool.prior, pool.smoothing, pool.noise.as_ref())))
    }

    /// From log p(x|y) of draws, [N, K].
    fn new(draws: &[Draw], rows: &[f64], (prior, smoothing, noise): (&Prior, Smoothing, Option<&LabelNoise>)) -> Self {
        let classes = prior.classes();
        let posteriors = |smoothing| -> Vec<Posterior> {
            rows.chunks(classes).map(|row| Posterior::new(row.to_vec(), prior, smoothing)).collect()
        };
        let of_class = posteriors(smoothing);
        let decided = of_class.iter().map(|p| p.decision).collect();
        let noisy = noise.map(|noise| (noise.clone(), noise.reach(classes)));
        let (unsure, all) = match noise {
            Some(noise) => of_class.into_iter().map(|p| of_labels(noise, p)).unzip(),
            None => (of_class.iter().map(|p| p.doubt(p.decision)).collect(), of_class),
        };
        let smoothed = smoothing != Smoothing::ONE;
        let column = |all: &[Posterior], j: ClassId| all.iter().map(|p| p.probabilities[j]).collect::<Vec<f64>>();
        let probabilities: Vec<Vec<f64>> = (0..classes).map(|j| column(&all, j)).collect();
        let positive: Vec<ClassId> = (0..classes).filter(|&j| prior.probabilities()[j] > 0.0).collect();
        let controlled = &positive[..positive.len().saturating_sub(1)];
        let controls: Vec<Vec<f64>> = if smoothed || noise.is_some() {
            let plain = posteriors(Smoothing::ONE);
            controlled.iter().map(|&j| column(&plain, j)).collect()
        } else {
            controlled.iter().map(|&j| probabilities[j].clone()).collect()
        };
        let known: Vec<f64> = controlled.iter().map(|&j| prior.probabilities()[j]).collect();
        let strata = Strata::new(draws, prior);
        let fitted = Controls::new(&strata, &controls, &known);
        // At T = 1. Whatever T is, the same labels occur.
        let known_law = noise.map_or_else(|| prior.probabilities().to_vec(), |noise| noise.prior(prior));
        let present = (0..classes).filter(|&j| known_law[j] > 0.0).collect();
        let labels = if smoothed { probabilities.iter().map(|p| strata.mean(p)).collect() } else { known_law };
        Self {
            controls,
            known,
            fitted,
            probabilities,
            doubts: all.iter().map(|p| p.doubt(p.decision)).collect(),
            entropies: all.iter().map(|p| p.entropy_nats).collect(),
            labels,
            present,
            smoothed,
            noise: noisy,
            unsure,
            decided,
            strata,
        }
    }

    /// The control variates less those of the same draws elsewhere, whose means are then 0.
    pub fn control_differences(&self, other: &Self) -> Option<Controls> {
        let difference = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a - b).collect();
        let columns: Vec<Vec<f64>> = self.controls.iter().zip(&other.controls).map(difference).collect();
        Controls::new(&self.strata, &columns, &vec![0.0; self.known.len()])
    }

    /// By how much 1 − max p of each draw has grown since those elsewhere, which are the same draws.
    pub fn change_since(&self, other: &Self) -> Vec<f64> {
        self.doubts.iter().zip(&other.doubts).map(|(here, there)| here - there).collect()
    }

    /// The mean over the world of a function with these `values`, one per draw, by strata and control variates.
    pub fn fit(&self, values: &[f64]) -> Fit {
        self.strata.fit(self.fitted.as_ref(), values)
    }

    /// What draws that were never made may add: by the rule of three, where hardly any of those
    /// made is in clearly more doubt than the surest one of the same decision.
    pub fn unseen(&self, doubtful: impl Fn(usize) -> f64, peak: f64) -> f64 {
        let doubts = self.decided.iter().enumerate().map(|(i, &class)| (class, doubtful(i)));
        peak * unseen(self.decided.len(), above_least(doubts).count())
    }

    /// A mean of values up to `peak` that is itself at most `most`.
    fn read(&self, values: &[f64], doubtful: impl Fn(usize) -> f64, (peak, most): (f64, f64)) -> Reading {
        let fit = self.fit(values);
        let half_width = fit.half_width() + self.unseen(doubtful, peak);
        Reading { figure: Figure::new(fit.value.clamp(0.0, most), half_width, most), gain: fit.gain() }
    }

    /// E = E[1 − max p_T].
    pub fn error(&self) -> Reading {
        self.read(&self.doubts, |i| self.unsure[i], (1.0, 1.0))
    }

    /// By how much the entropy of an estimated law of labels is too small in the mean, nats: ½ Σ Var(π̂_j)/π_j, the second
    /// term of its series. 0 of a known law.
    fn entropy_lost(&self) -> f64 {
        if !self.smoothed {
            return 0.0;
        }
        let lost = |(p, &law): (&Vec<f64>, &f64)| if law > 0.0 { 0.5 * self.strata.variance(p) / law } else { 0.0 };
        self.probabilities.iter().zip(&self.labels).map(lost).sum()
    }

    /// −Σ_j p_T(j|x) log π_T(j) of each draw, whose mean is H of the law of labels.
    fn cross_entropies(&self) -> Vec<f64> {
        let log = |p: &f64| if *p > 0.0 { -p.ln() } else { 0.0 };
        let logs: Vec<f64> = self.labels.iter().map(log).collect();
        let of = |i: usize| self.probabilities.iter().zip(&logs).map(|(p, log)| p[i] * log).sum();
        (0..self.strata.len()).map(of).collect()
    }

    /// A, I(X;Y) and I/H(Y).
    pub fn information(&self) -> (Information, Option<f64>) {
        let of_law = entropy_of(&self.labels);
        // A correction that is itself an estimate: intervals are wider by as much.
        let lost = self.entropy_lost();
        let label = of_law + lost;
        let doubtful = |i: usize| self.unsure[i];
        let most = (self.probabilities.len() as f64).ln();
        let aleatoric = self.read(&self.entropies, doubtful, (most, most));
        let cross = self.cross_entropies();
        // KL(p_T(·|x) ‖ π_T); the known H(Y) of T = 1 needs no estimate.
        let against = |i: usize| if self.smoothed { cross[i] } else { of_law };
        let gains: Vec<f64> = (0..cross.len()).map(|i| against(i) - self.entropies[i] + lost).collect();
        let fit = self.fit(&gains);
        let open = self.unseen(doubtful, most) + lost;
        // H(Y) that was estimated is no bound.
        let bound = if self.smoothed { most } else { label };
        let bits = Figure::new(fit.value.clamp(0.0, bound) / LN_2, (fit.half_width() + open) / LN_2, bound / LN_2);
        let normalised = if label > 0.0 {
            let share = self.strata.mean(&gains) / label;
            let of = |i: usize| (gains[i] - share * (against(i) - of_law)) / label;
            let fit = self.fit(&(0..gains.len()).map(of).collect::<Vec<f64>>());
            Figure::new(fit.value.clamp(0.0, 1.0), fit.half_width() + open / label, 1.0)
        } else {
            Figure::new(0.0, 0.0, 1.0)
        };
        let information = Information {
            aleatoric_nats: aleatoric.figure,
            label_entropy_nats: label.min(most),
            mutual_information_bits: bits,
            normalised,
            badge: Badge::Estimated,
            samples: self.strata.len() as u64,
        };
        (information, aleatoric.gain)
    }

    /// Class j against the rest: ½ E[min(p_j/π_j, (1 − p_j)/(1 − π_j))].
    pub fn against_rest(&self, j: ClassId) -> Reading {
        // 1 − π would lose the digits of small ones.
        let rest: f64 = self.labels.iter().enumerate().filter(|(k, _)| *k != j).map(|(_, p)| p).sum();
        let own = self.labels[j];
        let p = &self.probabilities[j];
        // In parts of their means: π_j² may be too small for 64 bits.
        let parts: Vec<(f64, f64)> =
            p.iter().enumerate().map(|(i, &p)| (part(p, own), part(self.other(p, i), rest))).collect();
        let seen: Vec<f64> = parts.iter().map(|(own, rest)| 0.5 * own.min(*rest)).collect();
        if self.is_hardly_labelled(own.min(rest)) {
            return self.unknown(&seen);
        }
        let mut values = seen.clone();
        if self.smoothed {
            let mean =
                |of: &dyn Fn(&(f64, f64)) -> f64| 0.5 * self.strata.mean(&parts.iter().map(of).collect::<Vec<f64>>());
            let by_own = mean(&|(own, rest)| if own < rest { *own } else { 0.0 });
            let by_rest = mean(&|(own, rest)| if own < rest { 0.0 } else { *rest });
            let moved = |p: f64| by_rest * (p - own) / rest - by_own * (p - own) / own;
            values.iter_mut().zip(p).for_each(|(value, p)| *value += moved(*p));
        }
        let of_row = |own_label: f64| 0.5 * (own_label / own).min((1.0 - own_label) / rest);
        self.read(&values, |i| self.in_doubt((seen[i], i), |label| of_row(label(j))), (0.5, 0.5))
    }

    /// Class i against class j alone: E[min(p_i, p_j)]/(π_i + π_j).
    pub fn pair(&self, i: ClassId, j: ClassId) -> Reading {
        let both = self.labels[i] + self.labels[j];
        let (p, q) = (&self.probabilities[i], &self.probabilities[j]);
        let smaller: Vec<f64> = p.iter().zip(q).map(|(p, q)| p.min(*q)).collect();
        if self.is_hardly_labelled(both) {
            return self.unknown(&smaller.iter().map(|&smaller| part(smaller, both)).collect::<Vec<f64>>());
        }
        let share = if self.smoothed { self.strata.mean(&smaller) / both } else { 0.0 };
        let value = |d: usize| (smaller[d] - share * (p[d] + q[d] - both)) / both;
        let values: Vec<f64> = (0..smaller.len()).map(value).collect();
        let of_row = |d: usize| self.in_doubt((smaller[d], d), |label| label(i).min(label(j)));
        // A law of labels that was estimated is no bound.
        let most = if self.smoothed { 0.5 } else { self.labels[i].min(self.labels[j]) / both };
        self.read(&values, of_row, (0.5 / both, most))
    }

    /// 1 − p of a label of draw i, without the rounding of that difference where it matters: more than ½ is of the decision.
    fn other(&self, p: f64, i: usize) -> f64 {
        if p > 0.5 { self.doubts[i] } else { 1.0 - p }
    }

    /// Whether an estimated `share` of labels is that of hardly more than one draw: figures of it are those of next to nothing,
    /// and no scatter shows how wrong. (One class against 99, T of 1.3 to 3, 64 to 1,024 draws: intervals of shares below one
    /// draw held as few as none of the truths, from two draws on 88 % and more.)
    fn is_hardly_labelled(&self, share: f64) -> bool {
        self.smoothed && share * (self.strata.len() as f64) < FEW_LABELS
    }

    /// A figure between 0 and ½ of which the mean of these values is known, but not how far it is off.
    fn unknown(&self, values: &[f64]) -> Reading {
        let value = self.strata.mean(values).clamp(0.0, 0.5);
        Reading { figure: Figure::between(value, [value, 0.5 - value], 0.5), gain: None }
    }

    /// How far draw i was in doubt, by the value of a figure that is 0 of an image whose class is certain. Label noise keeps it from
    /// ever being small: then by its change since such an image of the same decision, whose label probabilities are
    /// given to `certain`.
    fn in_doubt(&self, (value, i): (f64, usize), certain: impl Fn(&dyn Fn(ClassId) -> f64) -> f64) -> f64 {
        let Some((noise, reach)) = &self.noise else { return value };
        let of_certain = certain(&|label| noise.probability(self.decided[i], label, self.labels.len()));
        share_of(*reach, (value - of_certain).abs())
    }

    /// Classes that labels are of, those among them that no draw shows.
    pub fn present(&self) -> Vec<ClassId> {
        self.present.clone()
    }
}

/// x/law; 0 of a law of 0.
fn part(x: f64, law: f64) -> f64 {
    if law > 0.0 { x / law } else { 0.0 }
}
