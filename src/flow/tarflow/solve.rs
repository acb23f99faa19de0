//! The inverse of a block on tensors: token after token with cached keys and values, or GS-Jacobi
//! (Liu & Qin 2025, "Accelerate TarFlow Sampling with GS-Jacobi Iteration").
//!
//! x solves x_0 = z_0, x_{t+1} = z_{t+1} e^{a_t(x_0 … x_t)} + b_t(x_0 … x_t). The tokens of a
//! module are all predicted from the present guess at once, again and again; after r rounds its
//! first r results are exact, for each depends on earlier ones only. The module slides: first
//! tokens that are exact, or move no more, leave it with their keys and values, and others enter at
//! its end. The loop is the case of a module of one token.

use std::ops::Range;

use burn::tensor::{DType, Tensor};

use super::engine::Tick;
use super::kv_cache::{Context, KvCache, assign};
use super::{Block, HEAD, Mask, denormalise, parts};
use crate::device::yield_to_window;
use crate::error::Result;
use crate::flow::parameters::to_host;
use crate::flow::sampling::{Guess, Guidance, Strategy};

/// Bounds of |a| and |x| while a guess is still far off: tokens that are not solved yet may hold
/// anything, but nothing that is infinite. Exact tokens have none, and one that a bound holds back
/// never counts as standing still.
const BOUNDS: Bounds = Bounds { log_scale: 60.0, value: 1e6 };

/// Bounds of what is not solved yet.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Of |a|.
    log_scale: f64,
    /// Of |x|.
    value: f64,
}

/// A module slides in so many portions: every length is another shape to prepare for on a device.
const PORTIONS: usize = 8;
/// A token leaves the module before its end where it moves by no more than this share of the
/// tolerance: what follows is computed from keys and values that are so far off.
const LEAVING: f64 = 0.2;

/// A solved block, still on the device.
pub struct Solved {
    /// x, [N, T, P].
    pub x: Tensor<3>,
    /// Rounds, summed over modules.
    pub rounds: usize,
    /// Largest last change over modules that stopped early.
    pub residual: f64,
}

/// What the passes of an inversion are conditioned on, as mixing weights [N, K] of the class
/// embeddings; none in an unconditional flow.
pub struct Mixing {
    /// Each image's class.
    pub classes: Option<Tensor<2>>,
    /// No class, for guidance.
    pub none: Option<Tensor<2>>,
}

/// One network pass over a module: with the class, or without.
struct Pass<'a> {
    block: &'a Block,
    /// [N or 1, T, C].
    places: Tensor<3>,
    caches: Vec<KvCache>,
    temperature: f64,
}

impl Pass<'_> {
    /// What follows each of the tokens `x` at places `first` …, [N, M, outputs].
    fn predict(&mut self, x: Tensor<3>, first: usize, mask: &Mask) -> Tensor<3> {
        let (caches, temperature) = (Some(&mut self.caches[..]), self.temperature);
        self.block.predict(x, &self.places, &mut Context { first, caches, mask, temperature })
    }
}

impl Block {
    /// The x [N, T, P] that [`Block::forward`] maps to `z`.
    pub fn invert(
        &self,
        z: Tensor<3>,
        mixing: &Mixing,
        flipped: bool,
        strategy: Strategy,
        guidance: Option<&Guidance>,
        tick: Tick<'_>,
    ) -> Result<Solved> {
        let z = if flipped { z.flip([1]) } else { z };
        let pass = |classes, temperature| Pass {
            block: self,
            places: self.places(classes, flipped),
            caches: self.caches(&z),
            temperature,
        };
        let mut solver = Solver {
            conditional: pass(mixing.classes.as_ref(), 1.0),
            guide: guidance.map(|g| (*g, pass(mixing.none.as_ref(), g.attention_temperature))),
            x: start(&z, strategy),
            z,
            rounds: 0,
            residual: 0.0,
        };
        solver.all(strategy, tick)?;
        let Solver { x, rounds, residual, .. } = solver;
        Ok(Solved { x: if flipped { x.flip([1]) } else { x }, rounds, residual })
    }

    fn caches(&self, z: &Tensor<3>) -> Vec<KvCache> {
        let [n, t, _] = z.dims();
        let heads = self.pos_embed.dims()[1] / HEAD;
        self.attn_blocks.iter().map(|_| KvCache::new([n, heads, t], &z.device(), z.dtype())).collect()
    }
}

/// The first guess, in memory of its own, for it is advanced in place; its first token is always
/// right.
fn start(z: &Tensor<3>, strategy: Strategy) -> Tensor<3> {
    match strategy {
        Strategy::Jacobi { guess: Guess::Zero, .. } => {
            let [_, t, _] = z.dims();
            let zeros = z.zeros_like().narrow(1, 1, t - 1);
            Tensor::cat(vec![z.clone().narrow(1, 0, 1), zeros], 1)
        }
        _ => z.clone() * 1.0,
    }
}

struct Solver<'a> {
    conditional: Pass<'a>,
    guide: Option<(Guidance, Pass<'a>)>,
    x: Tensor<3>,
    z: Tensor<3>,
    rounds: usize,
    residual: f64,
}

impl Solver<'_> {
    fn all(&mut self, strategy: Strategy, tick: Tick<'_>) -> Result<()> {
        let unknown = self.z.dims()[1] - 1;
        let (modules, tolerance) = match strategy {
            Strategy::Loop => (unknown, 0.0),
            Strategy::Jacobi { modules, tolerance, .. } => (modules.clamp(1, unknown.max(1)), tolerance),
        };
        let length = unknown.div_ceil(modules.max(1));
        let portion = length.div_ceil(PORTIONS).max(1);
        // Tokens up to `solved` are exact or within the tolerance; the module begins at or before
        // the last of them. Of a module that does not move, every round makes one token more exact,
        // whatever it is told about changes.
        let (mut exact, mut solved) = (0, 0);
        let mut mask = Mask::new(0..0, 0);
        while solved < unknown {
            let from = solved / portion * portion;
            let end = unknown.min(from + length);
            if mask.rows != (from..end) {
                mask = Mask::new(from..end, unknown + 1);
            }
            exact = (exact.max(from) + 1).min(end);
            let changes = self.round(from..end, exact, &mask);
            self.rounds += 1;
            if let Some(changes) = changes {
                let changes = to_host(changes.cast(DType::F32))?;
                // Written so that a NaN moves.
                let still = |limit: f64| changes.iter().take_while(|change| **change <= limit).count();
                let all_still = still(tolerance) == changes.len();
                let still = if all_still { changes.len() } else { still(LEAVING * tolerance) };
                // What stands still was predicted from the same, nearly, and so was the token that
                // follows it.
                solved = solved.max(from + still + 1).max(exact).min(end);
                self.residual = changes[..still].iter().copied().fold(self.residual, f64::max);
            } else {
                solved = end;
            }
            yield_to_window(&self.z.device());
            tick(solved + 1)?;
        }
        Ok(())
    }

    /// Predicts tokens `from + 1 ..= end` from the present `from .. end`, of which those up to
    /// `exact` are then exact; where that is not the end, by how much each moves at most over the
    /// images, [1, tokens].
    fn round(&mut self, Range { start: from, end }: Range<usize>, exact: usize, mask: &Mask) -> Option<Tensor<2>> {
        let [n, _, p] = self.z.dims();
        let length = end - from;
        let predicted = self.conditional.predict(self.x.clone().narrow(1, from, length), from, mask);
        let (a, b) = self.guided(parts(predicted, p), from, mask);
        let z = self.z.clone().narrow(1, from + 1, length);
        let first = |v: &Tensor<3>| v.clone().narrow(1, 0, exact - from);
        let solved = denormalise(first(&z), a.as_ref().map(first), first(&b));
        let changes = (exact < end).then(|| {
            let a = a.map(|a| a.clamp(-BOUNDS.log_scale, BOUNDS.log_scale));
            let next = denormalise(z, a, b);
            let before = self.x.clone().narrow(1, from + 1, length);
            // Before the bound: a token that it holds back has not come to rest there.
            let changes = (next.clone() - before).abs().max_dim(2).max_dim(0).reshape([1, length]);
            let next = next.clamp(-BOUNDS.value, BOUNDS.value);
            assign(&mut self.x, [0..n, from + 1..end + 1, 0..p], next);
            changes
        });
        assign(&mut self.x, [0..n, from + 1..exact + 1, 0..p], solved);
        changes
    }

    /// Log-scales and shifts after tokens `first ..`, guided where asked.
    fn guided(
        &mut self,
        (a, b): (Option<Tensor<3>>, Tensor<3>),
        first: usize,
        mask: &Mask,
    ) -> (Option<Tensor<3>>, Tensor<3>) {
        let Some((guidance, pass)) = &mut self.guide else { return (a, b) };
        let [_, length, p] = b.dims();
        let (a_none, b_none) = parts(pass.predict(self.x.clone().narrow(1, first, length), first, mask), p);
        let last = (self.z.dims()[1] - 1) as f64;
        let strength =
            |t: usize| if guidance.annealed { (t + 1) as f64 / last * guidance.scale } else { guidance.scale };
        let values: Vec<f64> = (first..first + length).map(strength).collect();
        let data = burn::tensor::TensorData::new(values, [1, length, 1]);
        let g: Tensor<3> = Tensor::from_data(data, (&b.device(), b.dtype()));
        let move_away = |v: Tensor<3>, none: Tensor<3>| v.clone() + (v - none) * g.clone();
        let a = match (a, a_none) {
            (Some(a), Some(none)) if guidance.what.scale() => Some(move_away(a, none)),
            (a, _) => a,
        };
        (a, if guidance.what.shift() { move_away(b, b_none) } else { b })
    }
}
