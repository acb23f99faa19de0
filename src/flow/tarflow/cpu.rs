//! A TarFlow on the CPU: our own matrix products, attention and reverse pass, in f32 or f64.
//!
//! Every number is a sum in one fixed order, whatever is computed beside it: an image's result has
//! the same bits in whatever batch, on however many threads, and whether a block is inverted token
//! by token or by Jacobi iterations run until they are exact.
//!
//! A block's last token predicts nothing and no token looks at it: it does not pass the
//! Transformer.

mod backward;
mod encode;
mod inverse;
mod parameters;
#[cfg(test)]
mod tests;
mod train;
mod transformer;

use rayon::prelude::*;

pub use train::{Gradients, Slope};

use super::engine::{Encoded, Engine, Inverted, Tick};
use super::{Condition, HEAD, TarFlowConfig};
use crate::error::{Error, Result};
use crate::flow::sampling::{Guidance, Strategy};
use crate::flow::weights::Weights;
use crate::kernels::Pool;
pub use crate::kernels::Real;
use backward::Reverse;
use encode::Encoder;
use inverse::{Inversion, Iteration, Module, Room};
use parameters::Network;

const _: () = assert!(HEAD == crate::kernels::HEAD, "one size of heads");

/// Rows (tokens) that pass the matrix products together: enough to share a pass over the weights,
/// few enough for what they leave behind to stay in the second cache.
const ROWS: usize = 256;
/// Images inverted together, token by token.
const LOOP_IMAGES: usize = 128;
/// Arithmetic of a group of images between two waits for all groups: a few milliseconds of a core. Each wait
/// wakes sleeping threads, which costs tenths of a millisecond where others want the cores, too: of a small
/// flow, waits after every token would cost more than the tokens.
const STRIDE_FLOP: f64 = 1e8;

/// A TarFlow in the precision `T`, its weights packed for the matrix products.
#[derive(Debug)]
pub struct CpuTarFlow<T> {
    network: Network<T>,
    encoders: Pool<Encoder<T>>,
    reverses: Pool<Reverse<T>>,
    rooms: Pool<Room<T>>,
    sums: Pool<Vec<T>>,
}

impl<T: Real> CpuTarFlow<T> {
    /// From the weights by state-dict name; others may be among them.
    ///
    /// # Errors
    /// Says what is wrong with the architecture, or names the array that is missing or has another
    /// shape.
    pub fn new(config: &TarFlowConfig, weights: Weights) -> Result<Self, String> {
        Ok(Self {
            network: Network::read(config, weights)?,
            encoders: Pool::default(),
            reverses: Pool::default(),
            rooms: Pool::default(),
            sums: Pool::default(),
        })
    }

    /// Other weights for the same architecture, as after a training step. Faster than a new flow:
    /// its memory stays.
    ///
    /// # Errors
    /// As [`Self::new`]; then the weights are as they were.
    pub fn set_weights(&mut self, weights: Weights) -> Result<(), String> {
        self.network = Network::read(&self.network.config, weights)?;
        Ok(())
    }

    /// Its architecture.
    pub fn config(&self) -> &TarFlowConfig {
        &self.network.config
    }

    /// Numbers in one image.
    fn dims(&self) -> usize {
        self.network.config.tokens() * self.network.config.token_dims()
    }

    /// The row of the class embeddings each condition stands for, if there are as many conditions
    /// as images.
    fn classes(&self, values: usize, conditions: &[Condition]) -> Result<Vec<usize>> {
        if values != conditions.len() * self.dims() {
            let images = conditions.len();
            return Err(Error::input(format!("{images} images of {} numbers are not {values} numbers", self.dims())));
        }
        let embeddings = self.network.config.embeddings();
        let row = |condition: &Condition| match *condition {
            None => Ok(embeddings),
            Some(class) if class < embeddings => Ok(class),
            Some(class) => Err(Error::input(format!("class {class} of {embeddings} classes"))),
        };
        conditions.iter().map(row).collect()
    }

    /// Images to a group: at most so many, and no more than give every thread one.
    fn group(images: usize, most: usize) -> usize {
        images.div_ceil(rayon::current_num_threads()).clamp(1, most.max(1))
    }

    /// Finds token after token of groups of so many images, a few between two waits for all groups.
    fn all_tokens(&self, groups: &mut [Inversion<'_, T>], images: usize, tick: Tick<'_>) -> Result<()> {
        let config = &self.network.config;
        let token = images as f64 * config.flop_per_image() / (config.blocks * config.tokens()) as f64;
        let (last, stride) = (config.tokens() - 1, (STRIDE_FLOP / token).max(1.0) as usize);
        for from in (0..last).step_by(stride) {
            let to = last.min(from.saturating_add(stride));
            let steps = |group: &mut Inversion<'_, T>| (from..to).for_each(|token| group.step(token));
            match &mut *groups {
                // No other thread need wake.
                [alone] => steps(alone),
                several => several.par_iter_mut().for_each(steps),
            }
            tick(to + 1)?;
        }
        Ok(())
    }
}

impl<T: Real> Engine for CpuTarFlow<T> {
    fn encode(&self, x: &[f64], conditions: &[Condition]) -> Result<Encoded> {
        let classes = self.classes(x.len(), conditions)?;
        let (tokens, dims) = (self.network.config.tokens(), self.dims());
        let (mut z, mut log_det) = (vec![0.0; x.len()], vec![0.0; classes.len() * tokens]);
        let group = Self::group(classes.len(), ROWS / tokens);
        let groups = (x.par_chunks(group * dims), classes.par_chunks(group));
        let results = (z.par_chunks_mut(group * dims), log_det.par_chunks_mut(group * tokens));
        (groups, results).into_par_iter().for_each(|((x, classes), (z, log_det))| {
            let mut encoder = self.encoders.take(|room| room.fits(group), || Encoder::new(&self.network.config, group));
            encoder.run(&self.network, x, classes, z, log_det);
            self.encoders.give(encoder);
        });
        Ok(Encoded { z, log_det })
    }

    fn invert(
        &self,
        block: usize,
        z: &[f64],
        conditions: &[Condition],
        strategy: Strategy,
        guidance: Option<&Guidance>,
        tick: Tick<'_>,
    ) -> Result<Inverted> {
        let classes = self.classes(z.len(), conditions)?;
        if block >= self.network.config.blocks {
            return Err(Error::input(format!("there is no block {block}")));
        }
        let last = self.network.config.tokens() - 1;
        let (most, stretch) = match strategy {
            Strategy::Loop => (LOOP_IMAGES, 1),
            Strategy::Jacobi { modules, .. } if (1..=last.max(1)).contains(&modules) => {
                let stretch = last.div_ceil(modules);
                (LOOP_IMAGES.min(ROWS / stretch.max(1)), stretch)
            }
            Strategy::Jacobi { modules, .. } => {
                return Err(Error::input(format!("{modules} modules, not 1 … {last}")));
            }
        };
        let group = Self::group(classes.len(), most);
        let groups = z.par_chunks(group * self.dims()).zip(classes.par_chunks(group));
        let room = |images: usize| {
            let (rows, guided) = (images * stretch, guidance.is_some());
            let new = || Room::new(&self.network.config, images, rows, guided);
            self.rooms.take(|room| room.fits(images, rows, guided), new)
        };
        let groups =
            groups.map(|(z, classes)| Inversion::new(&self.network, block, z, classes, guidance, room(classes.len())));
        let mut groups: Vec<Inversion<'_, T>> = groups.collect();
        let (mut rounds, mut residual) = (0, 0.0_f64);
        match strategy {
            Strategy::Loop => {
                self.all_tokens(&mut groups, group, tick)?;
                rounds = last;
            }
            Strategy::Jacobi { modules, guess, tolerance } => {
                let edges: Vec<usize> = (0..=modules).map(|module| module * last / modules).collect();
                for (from, to) in edges.iter().zip(&edges[1..]).map(|(&from, &to)| (from, to)) {
                    let iteration = Iteration { guess, tolerance };
                    let solved = groups.par_iter_mut().map(|group| group.solve(Module { from, to }, iteration));
                    let (most, change) = solved.reduce(|| (0, 0.0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
                    (rounds, residual) = (rounds + most, residual.max(change));
                    tick(to + 1)?;
                }
            }
        }
        let x = groups.iter().flat_map(Inversion::x).collect();
        groups.into_iter().for_each(|group| self.rooms.give(group.room()));
        Ok(Inverted { x, rounds, residual })
    }

    fn log_scales(&self, block: usize, x: &[f64], conditions: &[Condition]) -> Result<Vec<f64>> {
        let classes = self.classes(x.len(), conditions)?;
        let (dims, group) = (self.dims(), Self::group(classes.len(), ROWS / self.network.config.tokens()));
        let mut a = vec![0.0; x.len()];
        let groups = a.par_chunks_mut(group * dims).zip(x.par_chunks(group * dims)).zip(classes.par_chunks(group));
        groups.for_each(|((a, x), classes)| {
            let mut encoder = self.encoders.take(|room| room.fits(group), || Encoder::new(&self.network.config, group));
            encoder.log_scales(&self.network, block, x, classes, a);
            self.encoders.give(encoder);
        });
        Ok(a)
    }

    fn gradient(&self, x: &[f64], conditions: &[Condition], weight: &[f64]) -> Result<(Vec<f64>, Encoded)> {
        self.input_gradient(x, conditions, weight)
    }
}
