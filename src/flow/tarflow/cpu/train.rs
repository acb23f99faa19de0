//! Gradients of a loss over many images.

use rayon::prelude::*;

use super::backward::Reverse;
use super::parameters::{block_len, named};
use super::{CpuTarFlow, ROWS};
use crate::error::{Error, Result};
use crate::flow::tarflow::Condition;
use crate::flow::tarflow::engine::Encoded;
use crate::flow::weights::Weights;
use crate::kernels::Real;

/// What one training step needs to know.
#[derive(Debug, Clone)]
pub struct Gradients {
    /// ½ Σ_td z² of each image, nats.
    pub energy: Vec<f64>,
    /// log |det ∂z/∂x| of each image, nats.
    pub log_det: Vec<f64>,
    /// z, [N, T, P].
    pub z: Vec<f64>,
    /// Gradient of the loss by every trained parameter, by state-dict name.
    pub weights: Weights,
    /// Gradient of the loss by x, [N, T, P].
    pub input: Vec<f64>,
}

/// Gradient of an image's loss by its z [T·P], from the number of the image and z; the
/// log-determinant's own part is not in it.
pub type Slope<'a> = &'a (dyn Fn(usize, &[f64]) -> Vec<f64> + Sync);

/// Results of one shard, in its images' order.
struct Shard<'a> {
    first: usize,
    x: &'a [f64],
    classes: &'a [usize],
    weights: &'a [f64],
    z: &'a mut [f64],
    log_det: &'a mut [f64],
    input: &'a mut [f64],
}

impl<T: Real> CpuTarFlow<T> {
    /// Gradients of Σ_i weight_i (½ Σ_td z_itd² − Σ_t log_det_it) in nats, for tokens `x` [N, T,
    /// P].
    ///
    /// The images are cut into `shards` runs of consecutive ones, which threads share; their sums
    /// are added in order, so the result depends on `shards` (in the last bits) but not on the
    /// number of threads.
    ///
    /// # Errors
    /// When conditions, weights and images are not equally many, or a class does not exist.
    pub fn backward(&self, x: &[f64], conditions: &[Condition], weights: &[f64], shards: usize) -> Result<Gradients> {
        self.backward_from(x, conditions, weights, shards, &|_, z| z.to_vec())
    }

    /// [`Self::backward`] with another loss in the place of ½ Σ_td z², given by its gradient.
    ///
    /// # Errors
    /// As [`Self::backward`].
    pub fn backward_from(
        &self,
        x: &[f64],
        conditions: &[Condition],
        weights: &[f64],
        shards: usize,
        slope: Slope<'_>,
    ) -> Result<Gradients> {
        let classes = self.classes(x.len(), conditions)?;
        if weights.len() != classes.len() {
            return Err(Error::input(format!("{} weights for {} images", weights.len(), classes.len())));
        }
        let (tokens, dims) = (self.network.config.tokens(), self.dims());
        let (mut z, mut input) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        let mut log_det = vec![0.0; classes.len() * tokens];
        let size = classes.len().div_ceil(shards.max(1)).max(1);
        let given = (x.par_chunks(size * dims), classes.par_chunks(size), weights.par_chunks(size));
        let found =
            (z.par_chunks_mut(size * dims), log_det.par_chunks_mut(size * tokens), input.par_chunks_mut(size * dims));
        let sums: Vec<Vec<T>> = (given, found)
            .into_par_iter()
            .enumerate()
            .map(|(i, ((x, classes, weights), (z, log_det, input)))| {
                self.shard(Shard { first: i * size, x, classes, weights, z, log_det, input }, slope)
            })
            .collect();
        let mut total = self.zeros();
        for sum in sums {
            total.iter_mut().zip(&sum).for_each(|(total, sum)| *total += *sum);
            self.sums.give(sum);
        }
        let weights = named(&self.network.config, &total);
        self.sums.give(total);
        Ok(Gradients {
            energy: z.chunks_exact(dims).map(|z| z.iter().map(|z| 0.5 * z * z).sum()).collect(),
            log_det: log_det.chunks_exact(tokens).map(|tokens| tokens.iter().sum()).collect(),
            z,
            weights,
            input,
        })
    }

    fn shard(&self, shard: Shard<'_>, slope_of: Slope<'_>) -> Vec<T> {
        let mut flat = self.zeros();
        let (tokens, dims) = (self.network.config.tokens(), self.dims());
        let group = (ROWS / tokens).clamp(1, shard.classes.len());
        let mut reverse = self.reverse(group);
        let given = shard.x.chunks(group * dims).zip(shard.classes.chunks(group)).zip(shard.weights.chunks(group));
        let found = shard.z.chunks_mut(group * dims).zip(shard.log_det.chunks_mut(group * tokens));
        let found = found.zip(shard.input.chunks_mut(group * dims));
        for (run, (((x, classes), weights), ((z, log_det), input))) in given.zip(found).enumerate() {
            let end = reverse.forward(&self.network, x, classes, log_det);
            z.iter_mut().zip(end).for_each(|(z, end)| *z = end.wide());
            let images = (shard.first + run * group..).zip(z.chunks_exact(dims)).zip(weights);
            let weighted = |((i, z), &weight): ((usize, &[f64]), &f64)| {
                slope_of(i, z).into_iter().map(move |slope| T::of(weight) * T::of(slope))
            };
            let mut slope: Vec<T> = images.flat_map(weighted).collect();
            let log_det: Vec<T> = weights.iter().map(|&weight| T::of(-weight)).collect();
            reverse.backward(&self.network, &mut slope, &log_det, classes, Some(&mut flat));
            input.iter_mut().zip(slope).for_each(|(input, slope)| *input = slope.wide());
        }
        self.reverses.give(reverse);
        flat
    }

    /// Gradients of all parameters, nothing added yet.
    fn zeros(&self) -> Vec<T> {
        let len = self.network.config.blocks * block_len(&self.network.config);
        let mut sum = self.sums.take(|sum| sum.len() == len, || vec![T::ZERO; len]);
        sum.fill(T::ZERO);
        sum
    }

    fn reverse(&self, images: usize) -> Reverse<T> {
        self.reverses.take(|room| room.fits(images), || Reverse::new(&self.network.config, images))
    }

    /// As [`Engine::gradient`](crate::flow::tarflow::engine::Engine::gradient).
    pub(super) fn input_gradient(
        &self,
        x: &[f64],
        conditions: &[Condition],
        weight: &[f64],
    ) -> Result<(Vec<f64>, Encoded)> {
        let classes = self.classes(x.len(), conditions)?;
        let (tokens, dims) = (self.network.config.tokens(), self.dims());
        if weight.len() != dims {
            return Err(Error::input(format!("{} weights for {dims} numbers", weight.len())));
        }
        let (mut z, mut gradient) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        let mut log_det = vec![0.0; classes.len() * tokens];
        let group = Self::group(classes.len(), ROWS / tokens);
        let given = (x.par_chunks(group * dims), classes.par_chunks(group));
        let found = (
            z.par_chunks_mut(group * dims),
            log_det.par_chunks_mut(group * tokens),
            gradient.par_chunks_mut(group * dims),
        );
        (given, found).into_par_iter().for_each(|((x, classes), (z, log_det, gradient))| {
            let mut reverse = self.reverse(group);
            let end = reverse.forward(&self.network, x, classes, log_det);
            z.iter_mut().zip(end).for_each(|(z, end)| *z = end.wide());
            let slope = end.iter().zip(weight.iter().cycle()).map(|(z, &weight)| -(T::of(weight) * *z));
            let mut slope: Vec<T> = slope.collect();
            let ones = vec![T::ONE; classes.len()];
            reverse.backward(&self.network, &mut slope, &ones, classes, None);
            gradient.iter_mut().zip(slope).for_each(|(gradient, slope)| *gradient = slope.wide());
            self.reverses.give(reverse);
        });
        Ok((gradient, Encoded { z, log_det }))
    }
}
