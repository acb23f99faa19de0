//! The look-ahead: what one step can gain. It knows the truth and the labels it would get, trains on each of a number of
//! batches as the next round would, and buys the one after which the exact KL(p‖q) of the test images is smallest.
//!
//! Tried are the batch of every other strategy, so that none of them gains more in this step; a batch of images
//! along which the gradient of the exact KL falls; and then, one image at a time, the others of the pool in random
//! order (enough tries, and all are tried: the exact bound), in larger batches mixtures of the two best so far. There
//! are too many batches to try all: of these the best found is bought, a lower bound of the best there is.

use rand::seq::SliceRandom;

use super::acquire::{Looked, Offer};
use super::{Purchase, Strategy, Tried};
use crate::error::{Error, Result};

/// What may be bought, and what is tried.
pub(super) struct Ahead<'a> {
    /// Where labels are bought.
    pub offer: &'a Offer<'a>,
    /// All images whose labels may be bought.
    pub looked: &'a Looked,
    /// Their places in the order of chance.
    pub by_chance: Vec<usize>,
    /// The batch along which the gradient of the exact KL falls, as places.
    pub aligned: Vec<usize>,
}

/// A batch that was tried, as places, and the KL it led to, nats.
struct Outcome {
    places: Vec<usize>,
    epistemic: f64,
}

impl Ahead<'_> {
    /// Buys the best of `tries` batches of `count` images. `epistemic` gets the number of a try and its images, and
    /// returns the exact mean KL(p‖q) on the test images after training with their labels, nats.
    ///
    /// # Errors
    /// Those of `epistemic`.
    pub fn buy(
        &self,
        count: usize,
        tries: usize,
        epistemic: &mut dyn FnMut(usize, &[usize]) -> Result<f64>,
    ) -> Result<Purchase> {
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(tries);
        let mut tried = Vec::with_capacity(tries);
        for number in 0..tries {
            let (strategy, places) = self.proposal(number, count, &outcomes)?;
            let images = self.offer.purchase(self.looked, &places).images;
            let epistemic = epistemic(number, &images)?;
            tried.push(Tried { strategy, epistemic });
            outcomes.push(Outcome { places, epistemic });
        }
        let best = outcomes.iter().reduce(|best, one| if one.epistemic < best.epistemic { one } else { best });
        let best = best.ok_or_else(|| Error::input("the look-ahead tries nothing"))?;
        Ok(Purchase { tried, ..self.offer.purchase(self.looked, &best.places) })
    }

    /// What is tried next, and by which strategy where it is one's.
    fn proposal(&self, number: usize, count: usize, before: &[Outcome]) -> Result<(Option<Strategy>, Vec<usize>)> {
        let others = Strategy::others();
        let own = match others.get(number) {
            Some(Strategy::Random) => return Ok((Some(Strategy::Random), self.next_by_chance(0, count))),
            Some(&strategy) => return Ok((Some(strategy), self.offer.choose(strategy, self.looked, count)?)),
            None if number == others.len() => self.aligned.clone(),
            // The first by chance was the random strategy's.
            None if count == 1 => self.next_by_chance(number - others.len(), 1),
            None => self.mixed(number, count, before),
        };
        Ok((None, own))
    }

    fn next_by_chance(&self, first: usize, count: usize) -> Vec<usize> {
        let n = self.by_chance.len().max(1);
        (first..first + count.min(self.by_chance.len())).map(|i| self.by_chance[i % n]).collect()
    }

    /// Some images of the best two different batches so far, by chance.
    fn mixed(&self, number: usize, count: usize, before: &[Outcome]) -> Vec<usize> {
        let mut best: Vec<&Outcome> = before.iter().collect();
        best.sort_by(|a, b| a.epistemic.total_cmp(&b.epistemic));
        // Two strategies may have wanted the same images.
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for one in best {
            let mut set = one.places.clone();
            set.sort_unstable();
            if sets.len() < 2 && !sets.contains(&set) {
                sets.push(set);
            }
        }
        let mut places = sets.concat();
        places.sort_unstable();
        places.dedup();
        places.shuffle(&mut self.offer.seed.split("mixed").rng(number as u64));
        places.truncate(count);
        places
    }
}
