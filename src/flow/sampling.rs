//! How a sample is drawn from a flow of autoregressive blocks: how each block is inverted, and what
//! may move its outputs.

use serde::{Deserialize, Deserializer, Serialize};

/// The x a Jacobi iteration starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guess {
    /// The block's own input z.
    Z,
    /// Zero, but for the first token, which is z's.
    Zero,
}

/// How a block is inverted. Both ways end in the same x.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Token after token, keys and values cached: T − 1 steps.
    Loop,
    /// GS-Jacobi (Liu & Qin 2025): modules of consecutive tokens one after the other (our CPU
    /// kernels) or one that slides on as its first tokens are solved (tensors), all tokens of a
    /// module at once, again and again until x moves by no more than `tolerance` anywhere. The
    /// first r tokens are exact after r rounds, where they stop in any case.
    Jacobi {
        /// Number of modules, 1 … T − 1: T − 1 over their length.
        modules: usize,
        /// Where each module starts.
        guess: Guess,
        /// Largest change of any value in the round after which a module counts as solved.
        tolerance: f64,
    },
}

/// Which of a block's two outputs guidance moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guided {
    /// The log-scale a.
    A,
    /// The shift b.
    B,
    /// Both.
    #[default]
    Ab,
}

impl Guided {
    /// Whether the log-scale moves.
    pub fn scale(self) -> bool {
        self != Self::B
    }

    /// Whether the shift moves.
    pub fn shift(self) -> bool {
        self != Self::A
    }
}

/// Classifier-free guidance: a + g(a − a_none), b + g(b − b_none), where "none" is the pass under
/// the mean embedding. What it makes is not a sample of the world: for the eye only.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Guidance {
    /// g > 0.
    pub scale: f64,
    /// What it moves.
    pub what: Guided,
    /// Whether g grows along the block: g_t = (t + 1)/(T − 1)·g for the outputs of token t, in the
    /// block's own order.
    pub annealed: bool,
    /// Softmax temperature of the attention in the pass without class (the paper's code has it
    /// nowhere else).
    pub attention_temperature: f64,
}

/// What was measured about one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockPlan {
    /// The way chosen.
    pub strategy: Strategy,
    /// Convergence ranking metric; infinite where the block leaves the finite numbers.
    #[serde(deserialize_with = "or_infinite")]
    pub crm: f64,
    /// Initial guessing metric of z and of zero; infinite for a guess that leaves the finite numbers.
    #[serde(deserialize_with = "both_or_infinite")]
    pub igm: [f64; 2],
    /// Milliseconds of the loop.
    pub loop_ms: f64,
    /// The fastest GS-Jacobi that reached the tolerance.
    pub jacobi: Option<Strategy>,
    /// Its milliseconds.
    pub jacobi_ms: Option<f64>,
    /// Rounds it took, of the loop's T − 1.
    pub rounds: Option<usize>,
}

/// JSON has no infinity: where it holds nothing, that was meant.
fn or_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// [`or_infinite`] of two numbers.
fn both_or_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<[f64; 2], D::Error> {
    Ok(<[Option<f64>; 2]>::deserialize(from)?.map(|value| value.unwrap_or(f64::INFINITY)))
}

/// How samples are drawn where they need not be samples of the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplerOptions {
    /// Classifier-free guidance.
    pub guidance: Option<Guidance>,
    /// One step of Tweedie's denoising with the noise's σ.
    pub denoise: bool,
}
