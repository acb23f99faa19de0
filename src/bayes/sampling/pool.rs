//! Draws of a world and their log-likelihoods at each τ, computed once.

use std::time::Instant;

use super::source::{Draw, Source, Standing};
use crate::bayes::estimate::Figure;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::{Prior, draw};
use crate::oracle::world::LabelLaw;
use crate::units::{Seed, Smoothing, Tau};

/// Draws that a source is asked for together, and keeps together.
pub(super) const ROUND: usize = 64;
/// 1/golden ratio: the classes of any run of draws come nearly in proportion to their priors.
const TURN: f64 = 0.618_033_988_749_894_8;

/// Bytes of memory that a class of a draw takes while figures are made of it: rows, posteriors with their logarithms (again at
/// T = 1, and those of labels), columns, controls, and what is held of a temperature beside.
const PER_CLASS: u64 = 160;
/// The same at each temperature, as long as the pool is there.
const PER_LEVEL: u64 = 8;
/// What a draw takes besides.
const PER_DRAW: u64 = 512;

/// Rows of one temperature.
struct Level {
    tau: Tau,
    log_likelihoods: Vec<f64>,
}

/// Draws of one world under one prior.
pub struct Pool<'a> {
    source: &'a mut dyn Source,
    /// Class prior π.
    pub prior: Prior,
    /// Posterior smoothing T.
    pub smoothing: Smoothing,
    /// What labels are drawn by; none where they stay the classes.
    pub(super) noise: Option<LabelNoise>,
    offset: f64,
    levels: Vec<Level>,
    made: usize,
    planned: usize,
    begun: Instant,
    figure: Option<Figure>,
}

impl<'a> Pool<'a> {
    /// No draw yet. The seed decides about classes; latents are the source's.
    ///
    /// # Errors
    /// When the prior does not fit the source.
    pub fn new(source: &'a mut dyn Source, prior: Prior, smoothing: Smoothing, seed: Seed) -> Result<Self> {
        let (given, needed) = (prior.classes(), source.classes());
        if given != needed {
            return Err(Error::input(format!("the class prior has {given} entries, this world {needed} classes")));
        }
        // 53 bits of the seed of this purpose.
        let offset = (seed.split("classes by turns").0 >> 11) as f64 / (1u64 << 53) as f64;
        let begun = Instant::now();
        let (levels, noise) = (Vec::new(), None);
        Ok(Self { source, prior, smoothing, noise, offset, levels, made: 0, planned: 0, begun, figure: None })
    }

    /// The same draws, their labels drawn by a matrix from what p_T says: all figures are of p~ = Cᵀ p_T.
    ///
    /// # Errors
    /// When it is not of this many classes.
    pub fn with_label_noise(mut self, noise: Option<&LabelNoise>) -> Result<Self> {
        noise.map_or(Ok(()), |noise| noise.check(self.prior.classes()))?;
        self.noise = noise.filter(|noise| !noise.is_none()).cloned();
        Ok(self)
    }

    /// Its prior, smoothing and label noise.
    pub(super) fn law(&self) -> LabelLaw {
        LabelLaw { prior: self.prior.clone(), smoothing: self.smoothing, label_noise: self.noise.clone() }
    }

    /// As [`LabelLaw::largest_error`].
    pub(super) fn largest_error(&self) -> f64 {
        self.law().largest_error()
    }

    /// The Bayes error of the classes where that of their labels is `error`, both between their least and largest ones:
    /// exact under symmetric label noise up to η = (K − 1)/K, of two classes beyond it too, else by a line.
    pub(super) fn error_of_classes(&self, error: f64) -> f64 {
        if self.noise.is_none() {
            return error;
        }
        // Labels that say nothing of their class have one error, whatever that of the classes is.
        let kept = self.kept_doubt();
        if kept > 0.0 { (error - self.least_error()) / kept } else { 0.0 }
    }

    /// How much of a doubt of the class is one of its label: 1 without label noise, otherwise that of the line of
    /// [`Self::error_of_classes`].
    pub(super) fn kept_doubt(&self) -> f64 {
        (self.largest_error() - self.least_error()) / LabelLaw { label_noise: None, ..self.law() }.largest_error()
    }

    /// None is smaller: 0, or what label noise leaves of images that tell their class. With T ≠ 1 the law of the classes
    /// is not known: that of the class which keeps its label best.
    pub(super) fn least_error(&self) -> f64 {
        let Some(noise) = &self.noise else { return 0.0 };
        if self.smoothing == Smoothing::ONE {
            return noise.floor(self.prior.probabilities());
        }
        let classes = self.prior.classes();
        let of = |class: usize| 1.0 - noise.row(class, classes).into_iter().fold(0.0, f64::max);
        (0..classes).map(of).fold(1.0, f64::min)
    }

    /// The first n draws. Each class has its share of any of them.
    pub fn draws(&self, n: usize) -> Vec<Draw> {
        let class = |index: usize| draw(self.prior.probabilities(), (self.offset + index as f64 * TURN).fract());
        (0..n).map(|index| Draw { index, class: class(index) }).collect()
    }

    /// log p_τ(x|y) of the first n draws, [n, K].
    ///
    /// # Errors
    /// As [`Source::log_likelihoods`]; when the caller stops.
    pub fn rows(&mut self, tau: Tau, n: usize, events: &mut dyn Events<Standing>) -> Result<Vec<f64>> {
        let classes = self.prior.classes();
        let at = self.levels.iter().position(|level| level.tau == tau).unwrap_or_else(|| {
            self.levels.push(Level { tau, log_likelihoods: Vec::new() });
            self.levels.len() - 1
        });
        let draws = self.draws(n);
        let known = self.levels[at].log_likelihoods.len() / classes;
        // A last round that was not full is asked for anew, as a whole.
        for first in (known / ROUND * ROUND..n).step_by(ROUND).filter(|_| known < n) {
            let round = &draws[first..n.min(first + ROUND)];
            let (made, planned, figure, begun) = (self.made, self.planned, self.figure, self.begun);
            let mut tell = |inner: Progress| {
                let done = made + inner.done;
                let total = planned.max(made + round.len());
                let seconds_left =
                    (done > 0).then(|| begun.elapsed().as_secs_f64() / done as f64 * (total - done.min(total)) as f64);
                events.emit(Standing { progress: Progress { done, total }, seconds_left, figure })
            };
            let rows = self.source.log_likelihoods(round, tau, &mut tell)?;
            if rows.len() != round.len() * classes || rows.iter().any(|row| row.is_nan()) {
                return Err(Error::Numeric(format!("the likelihoods of images at τ = {} are no numbers", tau.get())));
            }
            let level = &mut self.levels[at].log_likelihoods;
            level.truncate(first * classes);
            level.extend(rows);
            self.made += round.len();
            tell_round(self, events)?;
        }
        Ok(self.levels[at].log_likelihoods[..n * classes].to_vec())
    }

    /// Says how many more images will be classified by what is known now, and the figure so far.
    pub(super) fn plan(&mut self, more: usize, figure: Option<Figure>) {
        self.planned = self.made + more;
        self.figure = figure.or(self.figure);
    }

    /// Wall time since the beginning, seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Wall time per image, seconds.
    pub(super) fn per_image(&self) -> f64 {
        self.seconds() / self.made.max(1) as f64
    }

    /// Bytes of memory that a draw takes, about, at the temperatures that were asked for.
    pub(super) fn bytes_per_draw(&self) -> u64 {
        PER_DRAW + self.prior.classes() as u64 * (PER_CLASS + PER_LEVEL * self.levels.len() as u64)
    }

    /// Images classified.
    pub(super) fn made(&self) -> usize {
        self.made
    }
}

fn tell_round(pool: &Pool<'_>, events: &mut dyn Events<Standing>) -> Result<()> {
    let (done, total) = (pool.made, pool.planned.max(pool.made));
    let seconds_left = Some(pool.per_image() * (total - done) as f64);
    events.report(Standing { progress: Progress { done, total }, seconds_left, figure: pool.figure })
}
