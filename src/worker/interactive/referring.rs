//! How far the samples are that images are held against.

use std::time::{Duration, Instant};

use super::super::protocol::ReferenceNews;
use crate::bayes::sampling::REFERENCE_PIECE;
use crate::measure::typicality::{FEWEST, SAMPLES};
use crate::oracle::posterior::Prior;
use crate::oracle::world::Settings;
use crate::units::Tau;

/// Where samples are dear, no more are drawn after so long.
const ENOUGH: Duration = Duration::from_secs(60);

/// A reference under way, or finished.
pub struct Referring {
    pub tau: Tau,
    pub prior: Prior,
    pub since: Instant,
    /// log p(x) of the samples so far, nats.
    pub have: Vec<f64>,
    pub spent: Duration,
    pub finished: bool,
}

impl Referring {
    /// Nothing drawn yet.
    pub fn new(settings: &Settings) -> Self {
        Self {
            tau: settings.tau,
            prior: settings.prior.clone(),
            since: Instant::now(),
            have: Vec::new(),
            spent: Duration::ZERO,
            finished: false,
        }
    }

    /// The number of samples after the next piece.
    pub fn next(&self) -> usize {
        SAMPLES.min(self.have.len() + REFERENCE_PIECE)
    }

    /// Whether no more samples are wanted.
    pub fn is_enough(&self) -> bool {
        self.have.len() >= SAMPLES || (self.spent > ENOUGH && self.have.len() >= FEWEST)
    }

    /// What the window is told.
    pub fn news(&self, outcome: Result<Vec<f64>, String>) -> ReferenceNews {
        let (tau, prior, complete) = (self.tau, self.prior.clone(), self.finished);
        ReferenceNews { tau, prior, outcome, complete }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dear_samples_end_early_but_never_with_too_few() {
        let mut referring = Referring::new(&Settings::default_for(2));
        referring.spent = ENOUGH * 2;
        referring.have = vec![0.0; FEWEST - 1];
        assert!(!referring.is_enough());
        referring.have = vec![0.0; FEWEST];
        assert!(referring.is_enough());
        referring.spent = Duration::ZERO;
        assert!(!referring.is_enough());
        let mut sizes = Vec::new();
        referring.have.clear();
        while !referring.is_enough() {
            let next = referring.next();
            sizes.push(next - referring.have.len());
            referring.have.resize(next, 0.0);
        }
        assert!(sizes.iter().sum::<usize>() == SAMPLES && sizes[0] == REFERENCE_PIECE);
    }
}
