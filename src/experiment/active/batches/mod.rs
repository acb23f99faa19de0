//! Strategies that weigh a whole batch: numbers in, places of the chosen out, those most wanted first.
//!
//! | file | chooses | after |
//! |---|---|---|
//! | `batch_bald` | what together tells most about which member is right | Kirsch, van Amersfoort & Gal 2019 |
//! | `core_set` | what lies farthest from all that is labelled (k-center greedy) | Sener & Savarese 2018 |
//! | `badge` | gradients of the last layer that are large and differ (k-means++) | Ash et al. 2020 |
//! | `typiclust` | the most typical of the largest clusters without a label | Hacohen, Dekel & Weinshall 2022 |
//! | `alignment` | gradients that point where the exact KL falls: a proposal of the look-ahead | ours |
//! | `clusters`, `geometry` | k-means; rows of numbers, their distances and products | |

mod alignment;
mod badge;
mod batch_bald;
mod clusters;
mod core_set;
mod geometry;
mod typiclust;

pub(super) use alignment::{Learner, alignment};
pub(super) use badge::badge;
pub(super) use batch_bald::batch_bald;
pub(super) use core_set::core_set;
pub(super) use geometry::Rows;
pub(super) use typiclust::typiclust;
