//! Gradients of a batch: computed in pieces side by side, added, measured and clipped.

mod adamw;
mod read_on_host;

use std::sync::OnceLock;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Bytes, DType, Device, Tensor};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::device::{guarded, halving, to_host};
use crate::error::{Error, Result, caught};
use crate::kernels::kernel;

pub use adamw::AdamW;
pub use read_on_host::ReadOnHost;

/// How a batch is cut for a step.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    /// What is trained, for the message where the device has no memory for it.
    pub what: &'a str,
    /// Images of the batch.
    pub images: usize,
    /// Images of a piece.
    pub piece: usize,
    /// Pieces side by side.
    pub shards: usize,
}

impl<'a> Cut<'a> {
    /// `step` with this cut, or one that gives the device fewer images at once where it has no
    /// memory for them: first fewer pieces side by side, which changes no figure; then smaller
    /// pieces, which changes the order of sums, and what a network that normalises over a piece, or
    /// drops units of it by chance, makes of an image.
    ///
    /// # Errors
    /// Those of `step`; [`Error::OutOfMemory`] where one image is too much.
    pub fn fit<T>(&self, device: &Device, mut step: impl FnMut(&Cut<'a>) -> Result<T>) -> Result<T> {
        let all = (self.piece * self.shards).clamp(1, self.images.max(1));
        halving(device, self.what, all, |images| step(&if images < all { self.fewer(images) } else { *self }))
    }

    fn fewer(&self, images: usize) -> Self {
        Self { piece: self.piece.min(images), shards: (images / self.piece).clamp(1, self.shards), ..*self }
    }
}

/// An optimizer with the moments of a file, in burn's format.
///
/// # Errors
/// What is wrong with them: burn's reader panics at some that it has not written.
pub fn with_moments(optimizer: ModuleOptimizer, moments: Vec<u8>) -> Result<ModuleOptimizer, String> {
    let read = caught(|| optimizer.from_bytes(Bytes::from_bytes_vec(moments)));
    read.and_then(|read| read.map_err(|e| e.to_string()))
        .map_err(|e| format!("the optimizer's moments cannot be read: {e}"))
}

/// What the pieces of a batch came to.
pub struct Sums<X> {
    /// Sums of what was measured.
    pub measured: Vec<f64>,
    /// Sums of the gradients.
    pub grads: GradientsParams,
    /// What else each piece gave, in their order.
    pub others: Vec<X>,
}

/// Sums of what `work` measures on the pieces of a batch, and of their gradients: `shards` pieces
/// side by side, one such row after the other, added in the order of the pieces.
///
/// # Errors
/// The first of `work`'s; a batch without pieces.
pub fn in_pieces<M: Module + Send, P: Send, X: Send>(
    module: &M,
    pieces: Vec<P>,
    shards: usize,
    work: impl Fn(M, P) -> Result<(Vec<f64>, GradientsParams, X)> + Sync,
) -> Result<Sums<X>> {
    let empty = || Error::input("an empty batch");
    let device = module.devices().first().cloned().ok_or_else(empty)?;
    let mut sums: Option<Sums<X>> = None;
    let work = &work;
    let mut pieces = pieces.into_iter().peekable();
    while pieces.peek().is_some() {
        let row = pieces.by_ref().take(shards.max(1)).map(|piece| (module.clone().fork(&device), piece));
        for (measured, grads, other) in run_in_parallel(&device, row.collect(), |(module, piece)| work(module, piece))?
        {
            match &mut sums {
                None => sums = Some(Sums { measured, grads, others: vec![other] }),
                Some(sums) => {
                    sums.measured.iter_mut().zip(measured).for_each(|(sum, more)| *sum += more);
                    module.visit(&mut Add { grads: &mut sums.grads, other: grads });
                    sums.others.push(other);
                }
            }
        }
    }
    sums.ok_or_else(empty)
}

/// Gradients of a loss [1] by the parameters of a module.
pub fn gradients_of<M: Module>(loss: Tensor<1>, module: &M) -> GradientsParams {
    let mut grads = GradientsParams::from_grads(loss.backward(), module);
    module.visit(&mut MakeContiguous { grads: &mut grads });
    grads
}

/// The values of gradients, by the identities of their parameters, in the order of the module.
///
/// # Errors
/// When the device cannot deliver them.
pub fn on_host(module: &impl Module, grads: &GradientsParams) -> Result<Vec<(ParamId, Vec<f64>)>> {
    let mut values = Values { grads, read: Ok(Vec::new()) };
    module.visit(&mut values);
    values.read
}

/// Clips the global norm of `grads` to `limit`, where that is above 0. Returns the norm before; one
/// that is not finite leaves the gradients as they are.
///
/// # Errors
/// When the device fails.
pub fn clip(module: &impl Module, grads: &mut GradientsParams, limit: f64) -> Result<f64> {
    let mut norm = SquaredNorm { grads, on_host: 0.0, total: None };
    module.visit(&mut norm);
    let SquaredNorm { on_host, total, .. } = norm;
    let elsewhere = match total {
        Some(total) => to_host(total)?[0],
        None => 0.0,
    };
    let norm = (on_host + elsewhere).sqrt();
    if norm.is_finite() && limit > 0.0 && norm > limit {
        module.visit(&mut Scale { grads, factor: limit / norm });
    }
    Ok(norm)
}

/// Runs `work` on every item at once, each on a thread of its own. Not on rayon's pool: burn's CPU
/// kernels use that one while they hold the autodiff graph, and a stolen second piece would wait
/// for the first for ever. What a piece's kernels divide among threads stays on the piece's own,
/// for the others have theirs to do.
fn run_in_parallel<I: Send, O: Send>(
    device: &Device,
    items: Vec<I>,
    work: impl Fn(I) -> Result<O> + Sync,
) -> Result<Vec<O>> {
    if items.len() == 1 {
        return items.into_iter().map(work).collect();
    }
    std::thread::scope(|scope| {
        let (work, pools) = (&work, single_thread_pools());
        let handles: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(i, item)| {
                scope.spawn(move || {
                    guarded(device, || match pools.get(i) {
                        Some(pool) => pool.install(|| work(item)),
                        None => work(item),
                    })
                })
            })
            .collect();
        let finished = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(Error::Device("a piece of the batch panicked".into()))));
        finished.collect()
    })
}

/// As many pools of one thread as the machine has cores, or none where it gives no threads.
fn single_thread_pools() -> &'static [ThreadPool] {
    static POOLS: OnceLock<Vec<ThreadPool>> = OnceLock::new();
    POOLS.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).filter_map(|_| ThreadPoolBuilder::new().num_threads(1).build().ok()).collect()
    })
}

struct Values<'a> {
    grads: &'a GradientsParams,
    read: Result<Vec<(ParamId, Vec<f64>)>>,
}

impl ModuleVisitor for Values<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (Ok(read), Some(grad)) = (&mut self.read, self.grads.get::<D>(param.id)) else { return };
        match to_host(grad) {
            Ok(values) => read.push((param.id, values)),
            Err(error) => self.read = Err(error),
        }
    }
}

/// Lays gradients out in memory as their parameters are. On the host, those of a transposed weight
/// come transposed, and everything done with them would walk through the memory in strides.
struct MakeContiguous<'a> {
    grads: &'a mut GradientsParams,
}

impl ModuleVisitor for MakeContiguous<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(grad) = self.grads.remove::<D>(param.id) else { return };
        let (device, dtype) = (grad.device(), grad.dtype());
        let straight = match device == Device::flex() {
            true => Tensor::from_data(grad.into_data(), (&device, dtype)),
            false => grad,
        };
        self.grads.register(param.id, straight);
    }
}

struct SquaredNorm<'a> {
    grads: &'a mut GradientsParams,
    /// Of what is 32-bit and on the host: there one pass over the memory, summed in f64.
    on_host: f64,
    /// Of the rest.
    total: Option<Tensor<1>>,
}

/// Numbers whose squares are summed together.
const PIECE: usize = 1 << 14;

impl ModuleVisitor for SquaredNorm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(grad) = self.grads.remove::<D>(param.id) else { return };
        let place = (grad.device(), grad.dtype());
        if place.0 == Device::flex() && place.1 == DType::F32 {
            let data = grad.into_data();
            let values = data.as_slice::<f32>().unwrap_or_default();
            self.on_host += match values.len() > PIECE {
                true => values.par_chunks(PIECE).map(squares).collect::<Vec<f64>>().iter().sum::<f64>(),
                false => squares(values),
            };
            return self.grads.register(param.id, Tensor::<D>::from_data(data, (&place.0, place.1)));
        }
        // A sum of everything at once is added up as threads happen to end, where a card can: no
        // two runs would be the same.
        let square = (0..D).rev().fold(grad.clone().square(), Tensor::sum_dim).reshape([1]);
        self.grads.register(param.id, grad);
        self.total = Some(match self.total.take() {
            Some(total) => total + square,
            None => square,
        });
    }
}

kernel! {
    /// Σ x².
    squares<T, S>(x: &'a [T]) -> f64 {
        let (rows, rest) = x.as_chunks::<16>();
        let mut sums = [0.0; 16];
        for row in rows {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += x.wide() * x.wide();
            }
        }
        sums.iter().sum::<f64>() + rest.iter().map(|x| x.wide().powi(2)).sum::<f64>()
    }
}

struct Add<'a> {
    grads: &'a mut GradientsParams,
    other: GradientsParams,
}

impl ModuleVisitor for Add<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let (Some(a), Some(b)) = (self.grads.remove::<D>(param.id), self.other.remove::<D>(param.id)) {
            self.grads.register(param.id, a + b);
        }
    }
}

/// Multiplies every gradient.
pub struct Scale<'a> {
    /// The gradients.
    pub grads: &'a mut GradientsParams,
    /// By what.
    pub factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = self.grads.remove::<D>(param.id) {
            self.grads.register(param.id, grad * self.factor);
        }
    }
}
