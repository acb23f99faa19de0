//! What a strategy of active learning bought first, from a run folder: where, when, and the images.

use serde::Serialize;

use super::cells::Run;
use super::folder::RunFolder;
use super::picked::{CellPictures, PoolReader, SAME};
use crate::error::{Error, Result};
use crate::experiment::{Bought, CellResult, Purchase, train_pool};
use crate::oracle::posterior::Posterior;
use crate::units::ClassId;

/// Images shown of a cell where nobody asks for another number.
pub const BOUGHT: usize = 32;

/// An image whose label was bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BoughtImage {
    /// Running number in the pool.
    pub image: usize,
    /// The round that bought it; the random start is round 0.
    pub round: usize,
    /// Drawn label.
    pub label: ClassId,
}

/// The first images a strategy chose, in the order in which it wanted them.
pub type BoughtImages = CellPictures<Vec<BoughtImage>>;

impl RunFolder {
    /// What a finished cell bought, round after round, from the random start on.
    ///
    /// # Errors
    /// When there is no such cell, it is not finished, or it buys nothing.
    pub fn purchases(&self, id: &str) -> Result<Vec<Purchase>> {
        let label = self.planned(id)?.label();
        let Some(CellResult { output, .. }) = self.result(id)? else {
            return Err(Error::input(format!("{label} is not finished: what it bought is known when it is")));
        };
        match output.as_ref().and_then(|output| output.get::<Bought>()) {
            Some(bought) => Ok(bought.rounds.iter().map(|round| round.bought.clone()).collect()),
            None => Err(Error::input(format!("{label} buys no labels: only cells of active learning do"))),
        }
    }

    /// The first `most` images that the strategy of a finished cell chose after the random start.
    /// Of the pool only these are read.
    ///
    /// # Errors
    /// As [`Self::purchases`]; names a pool that is missing, damaged or of other images.
    pub fn bought_images(&self, id: &str, most: usize) -> Result<BoughtImages> {
        let (purchases, planned) = (self.purchases(id)?, self.planned(id)?.clone());
        let (condition, seed) = (planned.cell.condition, planned.cell.seed);
        let pool = PoolReader::open(self, &train_pool(&self.spec, condition, seed), condition)?;
        let (mut bought, mut x, mut posteriors) = (Vec::new(), Vec::new(), Vec::new());
        for (round, purchase) in purchases.iter().enumerate().skip(1) {
            let room = most.saturating_sub(bought.len()).min(purchase.images.len());
            if room == 0 {
                break;
            }
            let all = of_pool(&pool, purchase)?;
            for ((&image, &label), posterior) in purchase.images.iter().zip(&purchase.drawn).zip(all).take(room) {
                bought.push(BoughtImage { image, round, label });
                x.extend(pool.x(image)?);
                posteriors.push(posterior);
            }
        }
        Ok(CellPictures::of(&planned, bought, pool, x, posteriors))
    }
}

/// Posteriors of what a round bought, if the pool is the one it was bought from: their mean entropy
/// agrees.
fn of_pool(pool: &PoolReader, purchase: &Purchase) -> Result<Vec<Posterior>> {
    let all = purchase.images.iter().map(|&image| pool.posterior(image)).collect::<Result<Vec<_>>>()?;
    let mean = all.iter().map(|posterior| posterior.entropy_nats).sum::<f64>() / all.len().max(1) as f64;
    match purchase.images.first() {
        Some(&first) if (mean - purchase.aleatoric).abs() > SAME => Err(pool.other(first)),
        _ => Ok(all),
    }
}
