//! What is asked of the Bayes error lanes, and what they answer. Every question has a running
//! number, which its answers carry.

use crate::bayes::sampling::{DrawKey, Survey};
use crate::bayes::{ClassHardness, Estimate, Information, Method, PairErrors, RankingsOverTau, TauEstimate};
use crate::oracle::world::LabelLaw;
use crate::units::Tau;

/// A question about the open oracle at one temperature and prior.
#[derive(Debug, Clone, PartialEq)]
pub struct At {
    /// Running number.
    pub generation: u64,
    /// Base temperature τ.
    pub tau: Tau,
    /// Class prior π, smoothing T and label noise.
    pub law: LabelLaw,
}

/// Which τ has this Bayes error?
#[derive(Debug, Clone, PartialEq)]
pub struct TargetQuestion {
    /// Running number.
    pub generation: u64,
    /// The Bayes error wanted, a fraction.
    pub error: f64,
    /// Class prior π, smoothing T and label noise.
    pub law: LabelLaw,
}

/// The Bayes error at these temperatures.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveQuestion {
    /// Running number.
    pub generation: u64,
    /// Base temperatures τ, ascending.
    pub taus: Vec<Tau>,
    /// Class prior π, smoothing T and label noise.
    pub law: LabelLaw,
}

/// How do the classes rank at several temperatures?
#[derive(Debug, Clone, PartialEq)]
pub struct RankingQuestion {
    /// Running number.
    pub generation: u64,
    /// Class prior π, smoothing T and label noise.
    pub law: LabelLaw,
}

/// A question. One that is not begun, or under way, is replaced by a newer one of its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// The Bayes error, first to 1e-4, and to 1e-6 when no newer question comes; A and I beside it.
    Readout(At),
    /// τ of a Bayes error.
    Target(TargetQuestion),
    /// The Bayes error over τ.
    Curve(CurveQuestion),
    /// One class against the rest, and all pairs.
    Hardness(At),
    /// The classes in order of hardness over τ.
    Ranking(RankingQuestion),
    /// The Bayes error by every method.
    Compare(At),
    /// EBO's Figure 1.
    Figure1 {
        /// Running number.
        generation: u64,
    },
    /// What was last found by sampling, in this session or another.
    Kept {
        /// Running number.
        generation: u64,
        /// Of which draws.
        key: DrawKey,
    },
}

/// The class problem of the open oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldProblem {
    /// Number of classes K.
    pub classes: usize,
    /// Dimensions in which their means differ.
    pub rank: usize,
    /// Dimensions D of an image.
    pub dims: usize,
}

/// One point of EBO's Figure 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure1Point {
    /// Base temperature τ.
    pub tau: f64,
    /// By which method; `None` is the exact error (EBO eq. 4).
    pub method: Option<Method>,
    /// The Bayes error.
    pub estimate: Estimate,
}

/// Which of the studies of the Bayes error ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Study {
    /// The curve.
    Curve,
    /// Class hardness.
    Hardness,
    /// The ranking of classes over τ.
    Ranking,
    /// The comparison of methods.
    Compare,
    /// EBO's Figure 1.
    Figure1,
}

/// An answer, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Another oracle is open; or why there is no integral to compute.
    World(Result<WorldProblem, String>),
    /// The Bayes error.
    Readout {
        /// Of which question.
        generation: u64,
        /// At this base temperature τ.
        tau: f64,
        /// The tolerance aimed at.
        tolerance: f64,
        /// The Bayes error, or why there is none.
        outcome: Result<Estimate, String>,
    },
    /// Aleatoric uncertainty and mutual information.
    Information {
        /// Of which question.
        generation: u64,
        /// At this base temperature τ.
        tau: f64,
        /// A and I.
        information: Information,
    },
    /// τ of a Bayes error, or why there is none.
    Target {
        /// Of which question.
        generation: u64,
        /// The Bayes error asked for.
        error: f64,
        /// Its τ.
        outcome: Result<TauEstimate, String>,
    },
    /// One point of the curve.
    Curve {
        /// Of which question.
        generation: u64,
        /// Its place among the temperatures asked for.
        index: usize,
        /// The Bayes error there.
        estimate: Estimate,
    },
    /// One class against the rest.
    Hardness {
        /// Of which question.
        generation: u64,
        /// Which class, how hard.
        hardness: ClassHardness,
    },
    /// The rankings there are so far.
    Ranking {
        /// Of which question.
        generation: u64,
        /// One for each τ, and whether they agree.
        rankings: RankingsOverTau,
    },
    /// Bayes errors of all pairs.
    Pairs {
        /// Of which question.
        generation: u64,
        /// What they are.
        pairs: PairErrors,
    },
    /// One method of the comparison.
    Compared {
        /// Of which question.
        generation: u64,
        /// Which method.
        method: Method,
        /// What it found, or why it does not apply.
        outcome: Result<Estimate, String>,
    },
    /// One point of EBO's Figure 1.
    Figure1 {
        /// Of which question.
        generation: u64,
        /// The point.
        point: Figure1Point,
    },
    /// What was found by sampling before.
    Kept {
        /// Of which question.
        generation: u64,
        /// What was found.
        survey: Box<Survey>,
    },
    /// Something is answered in full, or cannot be.
    Ended {
        /// Of which question.
        generation: u64,
        /// What.
        study: Study,
        /// Why there is no answer, if there is none.
        trouble: Option<String>,
    },
    /// A lane failed inside; what it was computing is lost.
    Lost {
        /// What the panic said.
        reason: String,
    },
}
