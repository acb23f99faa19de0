//! What a single step gains: at every purchase of the look-ahead all strategies are tried on the same labels and the same
//! classifier, so that nothing but the batch differs.

use serde::{Deserialize, Serialize};

use super::curves::{Spread, Stated};
use super::{Round, Strategy};
use crate::experiment::blocks::Difference;

/// A strategy's batches in the place of the look-ahead's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneStep {
    /// The strategy.
    pub strategy: Strategy,
    /// Mean fall of the exact KL(p‖q) of the test images by one purchase, nats.
    pub fall: Spread,
    /// Its share in that of the look-ahead: Fieller's interval, paired by seed, over seeds alone.
    pub share: Stated,
}

impl OneStep {
    /// Of the look-ahead's rounds of each seed; the look-ahead last. Empty where there are none.
    pub(super) fn of(seeds: &[&[Round]]) -> Vec<Self> {
        let mean = |after: &dyn Fn(&Round) -> Option<f64>| -> Option<Vec<f64>> {
            seeds.iter().map(|rounds| mean_fall(rounds, after)).collect()
        };
        let best = |round: &Round| round.bought.tried.iter().map(|tried| tried.epistemic).reduce(f64::min);
        let Some(bound) = mean(&best) else { return Vec::new() };
        let one = |strategy: Strategy| {
            let of = |round: &Round| {
                let tried = round.bought.tried.iter().find(|tried| tried.strategy == Some(strategy));
                tried.map(|tried| tried.epistemic)
            };
            let falls = if strategy == Strategy::LookAhead { bound.clone() } else { mean(&of)? };
            Some(Self { strategy, fall: Spread::of(&falls)?, share: Stated::ratio(&bare(&falls), &bare(&bound)) })
        };
        Strategy::ALL.into_iter().filter_map(one).collect()
    }
}

/// Falls of which the blocks of test images are not known.
fn bare(falls: &[f64]) -> Vec<Difference> {
    falls.iter().copied().map(Difference::bare).collect()
}

/// The mean over purchases of the KL before less that after.
fn mean_fall(rounds: &[Round], after: &dyn Fn(&Round) -> Option<f64>) -> Option<f64> {
    let fall = |pair: &[Round]| Some(pair[0].measured.epistemic.value - after(&pair[1])?);
    let falls: Option<Vec<f64>> = rounds.windows(2).map(fall).collect();
    falls.filter(|falls| !falls.is_empty()).map(|falls| falls.iter().sum::<f64>() / falls.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::active::{Purchase, Tried};
    use crate::experiment::hand_made::{measured, near};

    fn round(epistemic: f64, tried: &[(Option<Strategy>, f64)]) -> Round {
        let tried = tried.iter().map(|&(strategy, epistemic)| Tried { strategy, epistemic }).collect();
        let (images, drawn, certainty) = (Vec::new(), Vec::new(), Vec::new());
        let bought =
            Purchase { images, drawn, certainty, aleatoric: 0.0, epistemic: None, entropy: None, noise: 0.0, tried };
        let mut measured = measured(0.1, 0.1, 0.0);
        measured.epistemic.value = epistemic;
        Round { labels: 0, bought, measured, blocks: None }
    }

    #[test]
    fn falls_are_from_the_same_classifier_and_shares_are_paired() {
        let (random, own) = (Some(Strategy::Random), None);
        let seed = |by: f64| {
            [
                round(1.0, &[]),
                round(0.8 * by, &[(random, 0.9 * by), (own, 0.8 * by)]),
                round(0.6 * by, &[(random, 0.6 * by), (own, 0.7 * by)]),
            ]
        };
        let seeds = [seed(1.0), seed(0.9), seed(0.8)];
        let found = OneStep::of(&seeds.each_ref().map(|rounds| &rounds[..]));
        let names: Vec<Strategy> = found.iter().map(|one| one.strategy).collect();
        assert_eq!(names, [Strategy::Random, Strategy::LookAhead]);
        // With factor f random falls by (1 − 0.9 f) + (0.8 f − 0.6 f), the look-ahead by (1 − 0.8 f) + 0.2 f, in two.
        let mean = |of: fn(f64) -> f64| [1.0, 0.9, 0.8].map(of).iter().sum::<f64>() / 3.0;
        assert!(near(found[0].fall.value, mean(|f| (1.0 - 0.7 * f) / 2.0)));
        assert!(near(found[1].fall.value, mean(|f| (1.0 - 0.6 * f) / 2.0)));
        let share = found[0].share.number.unwrap();
        assert!(near(share.value, found[0].fall.value / found[1].fall.value) && share.interval.is_some());
        assert!(near(found[1].share.number.unwrap().value, 1.0));
        assert!(OneStep::of(&[]).is_empty() && OneStep::of(&[&[round(1.0, &[]), round(0.9, &[])]]).is_empty());
    }
}
