//! A Glow on the CPU: our own matrix products and what stands between them, in f32 or f64.
//!
//! Activations are rows: one row of channels for each position of each image, [N·H·W, C]. A few
//! images at a time pass all steps, and of these so many that their hidden layers stay in the
//! second cache. Every number is a sum in one fixed order, so an image's result has the same bits
//! in whatever batch and on however many threads.

mod backward;
mod coupling;
mod gradients;
mod squeeze;
#[cfg(test)]
mod tests;

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::GlowConfig;
use super::step::{ARRAYS, Affine, Step};
use crate::data::ImageShape;
use crate::error::Result;
use crate::flow::parameters::to_host;
use crate::kernels::{Buffer, Panels, Pool, Real};
use coupling::{Coupling, Scratch};
pub use gradients::TrainedGlow;
use squeeze::{Grid, squeeze_rows, to_planes, to_rows, unsqueeze_rows};

/// Positions that pass a coupling together.
const ROWS: usize = 256;
/// Images that pass the steps together: enough to share a pass over the weights.
const IMAGES: usize = 16;

/// Where the couplings of a frozen Glow are computed on the host.
pub(super) trait HostMap: std::fmt::Debug + Send + Sync {
    /// z and Σ s of every image [N] from y: values are [N, C, H, W].
    fn encode(&self, y: &[f64]) -> (Vec<f64>, Vec<f64>);
    /// y and the same sums from z.
    fn decode(&self, z: &[f64]) -> (Vec<f64>, Vec<f64>);
}

/// A Glow in the precision `T`, its weights packed for the matrix products.
#[derive(Debug)]
pub(super) struct CpuGlow<T> {
    config: GlowConfig,
    levels: Vec<Vec<CpuStep<T>>>,
    rooms: Pool<Room<T>>,
}

/// One step of flow.
#[derive(Debug)]
struct CpuStep<T> {
    /// ActNorm and 1×1 convolution, and the inverse of both.
    mix: Panels<T>,
    unmix: Panels<T>,
    coupling: Coupling<T>,
}

/// A tensor's numbers in the precision of the kernels.
fn numbers<T: Real, const D: usize>(tensor: &Tensor<D>) -> Result<Vec<T>> {
    Ok(to_host(tensor.clone())?.into_iter().map(T::of).collect())
}

/// An affine map of channels as the products need it.
fn panels<T: Real>(map: &Affine) -> Result<Panels<T>> {
    Ok(Panels::new(&numbers(&map.weight)?, &numbers(&map.bias)?))
}

/// The mixing map of a step's arrays.
fn mixing<T: Real>(arrays: &[&[T]; ARRAYS]) -> Panels<T> {
    Panels::new(arrays[0], arrays[1])
}

/// Memory of one pass over a group of images.
#[derive(Debug)]
struct Room<T> {
    images: usize,
    /// Rows of the level at work, and of the step's result.
    x: Buffer<T>,
    next: Buffer<T>,
    /// Of every level but the first: the half of the channels that no step of it sees.
    kept: Vec<Buffer<T>>,
    scratch: Scratch<T>,
}

impl<T: Real> Room<T> {
    fn new(config: &GlowConfig, images: usize) -> Self {
        let numbers = |l: usize| images * config.level_shape(l).dims();
        Self {
            images,
            x: Buffer::zeros(numbers(0)),
            next: Buffer::zeros(numbers(0)),
            kept: (1..config.levels).map(|l| Buffer::zeros(numbers(l))).collect(),
            scratch: Scratch::new(config, |shape| block(shape).min(images)),
        }
    }
}

/// Images of a level that pass a coupling together.
fn block(shape: ImageShape) -> usize {
    (ROWS / (shape.height * shape.width)).clamp(1, IMAGES)
}

impl<T: Real> CpuGlow<T> {
    /// From steps ready to run, and the inverses of their mixing maps.
    pub(super) fn new(config: &GlowConfig, levels: &[Vec<Step>], unmix: &[Vec<Affine>]) -> Result<Self> {
        let step = |(step, unmix): (&Step, &Affine)| -> Result<CpuStep<T>> {
            let arrays = step.arrays().iter().map(numbers).collect::<Result<Vec<Vec<T>>>>()?;
            let arrays: [&[T]; ARRAYS] = std::array::from_fn(|i| arrays[i].as_slice());
            Ok(CpuStep { mix: mixing(&arrays), unmix: panels(unmix)?, coupling: Coupling::new(&arrays) })
        };
        let level = |(steps, unmix): (&Vec<Step>, &Vec<Affine>)| steps.iter().zip(unmix).map(step).collect();
        let levels = levels.iter().zip(unmix).map(level).collect::<Result<_>>()?;
        Ok(Self { config: *config, levels, rooms: Pool::default() })
    }

    /// Runs `pass` over groups of images; its results [N, C, H, W] and sums [N].
    fn run(
        &self,
        values: &[f64],
        pass: impl Fn(&Self, &[f64], &mut Room<T>, &mut [f64], &mut [f64]) + Sync,
    ) -> (Vec<f64>, Vec<f64>) {
        let dims = self.config.shape.dims();
        let images = values.len() / dims;
        let (mut made, mut sums) = (vec![0.0; values.len()], vec![0.0; images]);
        let group = images.div_ceil(rayon::current_num_threads()).clamp(1, IMAGES);
        let groups =
            values.par_chunks(group * dims).zip(made.par_chunks_mut(group * dims)).zip(sums.par_chunks_mut(group));
        groups.for_each(|((values, made), sums)| {
            let mut room = self.rooms.take(|room| room.images >= group, || Room::new(&self.config, group));
            pass(self, values, &mut room, made, sums);
            self.rooms.give(room);
        });
        (made, sums)
    }

    fn grid(&self, level: usize) -> Grid {
        Grid::of(self.config.level_shape(level))
    }

    /// The first level's rows of `images` [N, C, H, W].
    fn enter(&self, images: &[f64], room: &mut Room<T>) {
        to_rows(images, self.config.shape, &mut room.x);
    }

    /// From the rows of the level above to those of this one.
    fn descend(&self, level: usize, images: usize, room: &mut Room<T>) {
        squeeze_rows(self.grid(level - 1), images, &room.x, &mut room.next, &mut room.kept[level - 1]);
        std::mem::swap(&mut room.x, &mut room.next);
    }

    /// Inverse of [`Self::descend`].
    fn ascend(&self, level: usize, images: usize, room: &mut Room<T>) {
        unsqueeze_rows(self.grid(level - 1), images, &room.x, &room.kept[level - 1], &mut room.next);
        std::mem::swap(&mut room.x, &mut room.next);
    }

    /// One step, or its inverse, for all images of a room; adds Σ s to `sums`.
    fn step(&self, [level, step]: [usize; 2], inverse: bool, room: &mut Room<T>, sums: &mut [f64]) {
        let shape = self.config.level_shape(level);
        let (dims, step) = (shape.dims(), &self.levels[level][step]);
        let Room { x, next, scratch, .. } = room;
        let together = block(shape);
        let blocks = x[..sums.len() * dims].chunks_mut(together * dims).zip(next.chunks_mut(together * dims));
        for ((x, next), sums) in blocks.zip(sums.chunks_mut(together)) {
            let next = &mut next[..x.len()];
            if inverse {
                step.coupling.run(Grid::of(shape), x, true, scratch, sums);
                step.unmix.apply(x, next);
            } else {
                step.mix.apply(x, next);
                step.coupling.run(Grid::of(shape), next, false, scratch, sums);
            }
        }
        std::mem::swap(&mut room.x, &mut room.next);
    }

    fn encode_group(&self, y: &[f64], room: &mut Room<T>, z: &mut [f64], sums: &mut [f64]) {
        self.enter(y, room);
        for level in 0..self.config.levels {
            if level > 0 {
                self.descend(level, sums.len(), room);
            }
            (0..self.config.steps).for_each(|step| self.step([level, step], false, room, sums));
        }
        (1..self.config.levels).rev().for_each(|level| self.ascend(level, sums.len(), room));
        to_planes(&room.x, self.config.shape, z);
    }

    fn decode_group(&self, z: &[f64], room: &mut Room<T>, y: &mut [f64], sums: &mut [f64]) {
        self.enter(z, room);
        (1..self.config.levels).for_each(|level| self.descend(level, sums.len(), room));
        for level in (0..self.config.levels).rev() {
            (0..self.config.steps).rev().for_each(|step| self.step([level, step], true, room, sums));
            if level > 0 {
                self.ascend(level, sums.len(), room);
            }
        }
        to_planes(&room.x, self.config.shape, y);
    }
}

impl<T: Real> HostMap for CpuGlow<T> {
    fn encode(&self, y: &[f64]) -> (Vec<f64>, Vec<f64>) {
        self.run(y, Self::encode_group)
    }

    fn decode(&self, z: &[f64]) -> (Vec<f64>, Vec<f64>) {
        self.run(z, Self::decode_group)
    }
}
