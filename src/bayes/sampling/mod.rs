//! Figures of any world from draws of it: Bayes error, slope, τ(ε), entropies, class hardness
//! (theory §3). For worlds whose map depends on the class no integral over Gaussians exists, but
//! each draw has its exact posterior.
//!
//! The draws at every τ share classes and latents: x_i(τ) = f_y(τ·ε_i). Differences between
//! temperatures are then far more certain than values. A figure is a mean over draws, stratified by
//! class; the posterior p(y|x), whose mean is the known π_y, is its control variate. On the bundled
//! photographs both together save 45 % of the draws. Latin hypercubes and antithetic latents of
//! 3,072 dimensions were measured there too, and gain nothing.
//!
//! | file | what |
//! |---|---|
//! | `source` | what the engine asks of a world, and what it tells meanwhile |
//! | `pool` | draws and their log-likelihoods at each τ |
//! | `strata` | stratified means with control variates, and their covariances |
//! | `snapshot` | figures of one τ |
//! | `local` | the Bayes error near one τ, and its slope |
//! | `bend` | what a parabola through three temperatures may miss |
//! | `limits` | when to stop |
//! | `band` | a curve between its points: E of τ, τ of E |
//! | `figures`, `hardness`, `target` | the questions: figures at τ and a curve; classes against each other; τ(ε) |
//! | `survey` | all of them at once, coarse first |
//! | `gaussian` | Gaussian classes as a source |
//! | `world` | a world as a source, whose draws may be kept in a folder |
//! | `reference` | log p(x) of samples, which tells images of the world from others |
//! | `cache` | draws and surveys in the program's cache folder |

mod band;
mod bend;
mod cache;
mod figures;
mod gaussian;
mod hardness;
mod limits;
mod local;
mod pool;
mod reference;
mod snapshot;
mod source;
mod strata;
mod survey;
mod target;
#[cfg(test)]
mod tests;
mod world;

pub use cache::{Cache, DrawKey};
pub use figures::{CurvePoint, WorldFigures, curve, figures_at};
pub(super) use gaussian::GaussianDraws;
pub use hardness::{SampledHardness, hardness_at};
pub use limits::{Ended, Limits};
pub(super) use local::{signed, step_for};
pub use pool::Pool;
pub use reference::{REFERENCE_PIECE, ReferenceDraws};
pub use source::{Draw, Source, Standing};
pub use survey::{Survey, survey};
pub(super) use target::{CLOSE, RANGE, ROUNDED, below_noise, neighbourhood, refuse_unreachable};
pub use target::{SampledTau, tau_by_sampling};
pub use world::WorldDraws;
