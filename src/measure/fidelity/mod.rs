//! Whether an oracle's images are like the real ones (BLC §2.3 and App. A; docs/validation.md):
//! features of both in, numbers with intervals out. None of these figures says anything about the
//! posterior; they say whether the world resembles nature.
//!
//! | file | figure | after |
//! |---|---|---|
//! | `frechet`, `moments` | FID, and FID without its bias in 1/n | Heusel et al. 2017; Chong & Forsyth 2020 |
//! | `kernel` | KID | Bińkowski et al. 2018 |
//! | `inception` | inception score | Salimans et al. 2016 |
//! | `coverage` | coverage as in the paper, and one that can fail | BLC App. A.2 |
//! | `manifold` | precision, recall; density, coverage | Kynkäänniemi et al. 2019; Naeem et al. 2020 |
//! | `memory` | nearest training images: rate, rank test, C_T | BLC App. A.5; Meehan et al. 2020 |
//! | `diversity` | variance and distance ratios by class | BLC App. A.3 |
//! | `texture` | variance within small windows | BLC App. A.6 |
//! | `stability` | KL under a tiny perturbation | BLC table 3 |
//! | `features`, `pairs`, `neighbours`, `ratio` | checked features, all distances, nearest neighbours, ratios | |
//!
//! **Baselines.** Most of these figures have no fixed value for a perfect generator: FID is above 0
//! and precision below 1 at any finite n, and a neighbour within distance 10 means nothing by
//! itself. So each can be had of held-out real images in the place of the generated ones
//! ([`Compared`]), and the two are read together.
//!
//! **Intervals** are over draws of the images named with each; the networks that made the features
//! are taken as they are. Features are f32 or f64, all sums f64; no table of all pairs is kept.

mod coverage;
mod diversity;
mod features;
mod frechet;
mod inception;
mod kernel;
mod manifold;
mod memory;
mod moments;
mod neighbours;
mod pairs;
mod ratio;
mod stability;
#[cfg(test)]
mod tests;
mod texture;

pub use coverage::{Coverage, LEVEL, PaperCoverage, coverage, coverage_of_paper, percentile};
pub use diversity::{ClassDiversity, diversity};
pub use features::{Features, Real, by_class};
pub use frechet::{Frechet, GROUPS, Unbiased, frechet, frechet_unbiased};
pub use inception::{InceptionScore, SPLITS, inception_score};
pub use kernel::{BLOCK, Kid, kid, mmd2};
pub use manifold::{
    Compared, K_COVERAGE, K_PRECISION, Manifold, compare_manifolds, expected_coverage, manifold, thinned,
};
pub use memory::{
    Cell, DataCopying, Histogram, InCells, Memorisation, NearInCells, Ranks, data_copying, histogram, memorisation,
    nearest_in_cells,
};
pub use moments::{Gaussian, Moments};
pub use neighbours::Neighbours;
pub use stability::{Stability, posterior_stability};
pub use texture::{WINDOW, texture, texture_ratios};
