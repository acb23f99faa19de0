//! The Bayes error of K Gaussian classes with one covariance, exact or with an honest interval, at
//! any temperature; and related quantities: its inverse τ(ε), entropies, class hardness.
//!
//! E = 1 − Σ_k π_k P_{z~N(μ_k, τ²Σ)}(class k has the largest posterior at z)
//!
//! | file | what |
//! |---|---|
//! | `problem`, `classes` | the problem as given, and reduced to r ≤ K − 1 dimensions |
//! | `estimate` | a Bayes error with everything that must be known about it |
//! | `compute`, `refine` | the choice of method; refinement to a tolerance |
//! | `line`, `equidistant`, `biorthogonal`, `product` | closed forms and one-dimensional integrals |
//! | `plane`, `tensor` | deterministic quadrature: two dimensions; at most six classes |
//! | `sov`, `wedge`, `rqmc` | first-violation separation of variables with scrambled Sobol' points |
//! | `pair`, `middle`, `scores`, `posteriors` | pair importance sampling: beyond faces, and between means for entropies |
//! | `doubt` | the same for Bayes errors of labels that are not the classes |
//! | `hdr` | Holmes-Diaconis-Ross with LIN-ESS, as EBO computes it |
//! | `monte_carlo`, `sampled` | Monte Carlo in the reduced problem; over samples of any world |
//! | `sampling` | every figure of any world, from draws common to all temperatures |
//! | `slope`, `inverse`, `gap` | dE/dlog τ, τ(ε), near the limit 1 − max π too |
//! | `labels` | all of them for labels, which are the classes or drawn by a matrix: what other rooms call |
//! | `information`, `hardness`, `ranking` | aleatoric uncertainty and mutual information; one class against the rest, pairs; their order over τ |
//! | `curve`, `hardness_report` | what is told of several τ: a curve; class hardness with the order of classes |
//! | `bench` | time to a given precision |
//! | `memory`, `work` | room and time for many classes, asked for before they are taken |
//! | `normal`, `sobol`, `simd`, `quadrature` | Φ and Φ⁻¹, points, instruction sets, rules |

pub mod bench;
mod biorthogonal;
mod classes;
mod compute;
mod curve;
mod doubt;
mod equidistant;
mod estimate;
mod gap;
mod hardness;
mod hardness_report;
mod hdr;
mod information;
mod inverse;
mod labels;
mod line;
mod memory;
mod middle;
mod monte_carlo;
mod normal;
mod pair;
mod plane;
mod posteriors;
mod problem;
mod product;
mod quadrature;
mod ranking;
mod refine;
mod rqmc;
mod sampled;
pub mod sampling;
mod scores;
mod simd;
mod slope;
mod sobol;
mod sov;
mod tensor;
mod wedge;
mod work;

pub use crate::provenance::Badge;
pub use classes::GaussianClasses;
pub use compute::Spec;
pub use curve::{CurveNews, CurvePart, GaussianPoint, curve};
pub use estimate::{Estimate, Figure, Method};
pub use hardness::{ClassHardness, HardnessNews};
pub use hardness_report::{
    HardnessDraws, HardnessReport, RankingAt, Weights, class_hardness, class_hardness_by_sampling,
};
pub use hdr::HdrSpec;
pub use information::{Claims, Information, entropy_of, fano};
pub use inverse::TauEstimate;
pub use labels::{
    PairErrors, bayes_error, derivative, follows_the_classes, information, information_at_zero, limit_at_zero,
    one_vs_rest, pairwise, rank_classes, reachable, tau_of_error,
};
pub use problem::Problem;
pub use ranking::{Agreement, ClassRanking, RANKED_AT, RankingsOverTau};
pub use sampled::{Sampled, by_sampling, of_samples};
