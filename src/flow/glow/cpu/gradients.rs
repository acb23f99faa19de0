//! Gradients of a loss over many images, by every array of every step.

use rayon::prelude::*;

use super::backward::{Passed, Scratch as Back, TrainedStep, array_lens};
use super::coupling::{Kept, Scratch};
use super::squeeze::{Grid, squeeze_rows, to_planes, to_rows, unsqueeze_rows};
use super::{GlowConfig, block};
use crate::error::{Error, Result};
use crate::flow::glow::step::ARRAYS;
use crate::kernels::{Buffer, Pool, Real};

/// Images that pass the steps together, there and back: what they leave on the way is read again
/// soon.
const IMAGES: usize = 8;

/// What one training step needs to know.
#[derive(Debug)]
pub struct GlowGradients<T> {
    /// z of every image, [N, C, H, W].
    pub z: Vec<f64>,
    /// Σ s of every image over all couplings, nats.
    pub sums: Vec<f64>,
    /// Gradient of the loss by the arrays of every step, one after another.
    pub arrays: Vec<T>,
}

/// Gradient of an image's loss by its z [D], from the number of the image and z; Σ s has no part in
/// it.
pub type Slope<'a> = &'a (dyn Fn(usize, &[f64]) -> Vec<f64> + Sync);

/// A Glow in training: its steps packed for the products, there and back.
#[derive(Debug)]
pub struct TrainedGlow<T> {
    config: GlowConfig,
    levels: Vec<Vec<TrainedStep<T>>>,
    /// Memory of earlier passes.
    rooms: Pool<Room<T>>,
}

/// What one step leaves of a group of images.
#[derive(Debug)]
struct Tape<T> {
    hidden: [Buffer<T>; 2],
    squashed: Buffer<T>,
    factor: Buffer<T>,
}

impl<T: Real> Tape<T> {
    fn new(rows: usize, half: usize, hidden: usize) -> Self {
        Self {
            hidden: [Buffer::zeros(rows * hidden), Buffer::zeros(rows * hidden)],
            squashed: Buffer::zeros(rows * half),
            factor: Buffer::zeros(rows * half),
        }
    }

    /// Of `rows` rows from the given one on.
    fn part(&mut self, first: usize, rows: usize, half: usize, width: usize) -> Kept<'_, T> {
        Kept {
            hidden: self.hidden.each_mut().map(|layer| &mut layer[first * width..][..rows * width]),
            squashed: &mut self.squashed[first * half..][..rows * half],
            factor: &mut self.factor[first * half..][..rows * half],
        }
    }
}

/// Memory for a group of images, there and back.
#[derive(Debug)]
struct Room<T> {
    /// Rows before every step of every level and after its last.
    states: Vec<Vec<Buffer<T>>>,
    tapes: Vec<Vec<Tape<T>>>,
    /// Of every level but the first: the channels that no step of it sees, and their gradients.
    kept: Vec<Buffer<T>>,
    /// Gradients of rows, and the room of the next ones.
    slope: Buffer<T>,
    next: Buffer<T>,
    there: Scratch<T>,
    back: Back<T>,
}

impl<T: Real> Room<T> {
    fn new(config: &GlowConfig) -> Self {
        let dims = |l: usize| IMAGES * config.level_shape(l).dims();
        let tape = |l: usize| {
            let shape = config.level_shape(l);
            Tape::new(IMAGES * shape.height * shape.width, shape.channels / 2, config.hidden)
        };
        let states = |l: usize| (0..=config.steps).map(|_| Buffer::zeros(dims(l))).collect();
        Self {
            states: (0..config.levels).map(states).collect(),
            tapes: (0..config.levels).map(|l| (0..config.steps).map(|_| tape(l)).collect()).collect(),
            kept: (1..config.levels).map(|l| Buffer::zeros(dims(l))).collect(),
            slope: Buffer::zeros(dims(0)),
            next: Buffer::zeros(dims(0)),
            there: Scratch::new(config, |shape| block(shape).min(IMAGES)),
            back: Back::new(config, |shape| block(shape).min(IMAGES)),
        }
    }
}

/// A group of images on the way: their numbers, what is found, and the gradient by Σ s of each.
struct Group<'a, T> {
    first: usize,
    y: &'a [f64],
    z: &'a mut [f64],
    sums: &'a mut [f64],
    by_sums: &'a [T],
}

impl<T: Real> TrainedGlow<T> {
    /// From the arrays of every step, one after another ([`super::super::Step::arrays`]).
    ///
    /// # Errors
    /// When there are too few or too many numbers.
    pub fn new(config: &GlowConfig, arrays: &[T]) -> Result<Self> {
        let mut rest = arrays;
        let mut levels = Vec::new();
        for level in 0..config.levels {
            let lens = array_lens(config.level_shape(level).channels, config.hidden);
            let mut steps = Vec::new();
            for _ in 0..config.steps {
                let (step, others) = rest.split_at_checked(lens.iter().sum()).ok_or_else(|| misfit(arrays.len()))?;
                rest = others;
                steps.push(TrainedStep::new(&cut(step, lens)));
            }
            levels.push(steps);
        }
        match rest.is_empty() {
            true => Ok(Self { config: *config, levels, rooms: Pool::default() }),
            false => Err(misfit(arrays.len())),
        }
    }

    /// Gradients of Σ_i (loss_i(z_i) − weight·Σ s_i) by every array, for images `y` [N, C, H, W]
    /// behind the front. `slope` has the gradients of loss_i.
    ///
    /// The images are cut into `shards` runs of consecutive ones, which threads share; their sums
    /// are added in order, so that the result depends on `shards` (in the last bits) but not on the
    /// number of threads.
    pub fn gradients(&self, y: &[f64], weight: f64, shards: usize, slope: Slope<'_>) -> GlowGradients<T> {
        let dims = self.config.shape.dims();
        let images = y.len() / dims;
        let (mut z, mut sums) = (vec![0.0; y.len()], vec![0.0; images]);
        let size = images.div_ceil(shards.max(1)).max(1);
        let by_sums = [T::of(-weight); IMAGES];
        let shards = y.par_chunks(size * dims).zip(z.par_chunks_mut(size * dims)).zip(sums.par_chunks_mut(size));
        let found: Vec<Vec<T>> = shards
            .enumerate()
            .map(|(shard, ((y, z), sums))| {
                let mut room = self.rooms.take(|_| true, || Room::new(&self.config));
                let mut flat = vec![T::ZERO; self.arrays()];
                let groups = y.chunks(IMAGES * dims).zip(z.chunks_mut(IMAGES * dims)).zip(sums.chunks_mut(IMAGES));
                for (group, ((y, z), sums)) in groups.enumerate() {
                    let first = shard * size + group * IMAGES;
                    let by_sums = &by_sums[..sums.len()];
                    self.group(Group { first, y, z, sums, by_sums }, slope, &mut room, &mut flat);
                }
                self.rooms.give(room);
                flat
            })
            .collect();
        let mut arrays = vec![T::ZERO; self.arrays()];
        for flat in found {
            arrays.iter_mut().zip(&flat).for_each(|(sum, x)| *sum += *x);
        }
        GlowGradients { z, sums, arrays }
    }

    /// Numbers of all arrays.
    fn arrays(&self) -> usize {
        let level =
            |l: usize| array_lens(self.config.level_shape(l).channels, self.config.hidden).iter().sum::<usize>();
        (0..self.config.levels).map(|l| self.config.steps * level(l)).sum()
    }

    fn grid(&self, level: usize) -> Grid {
        Grid::of(self.config.level_shape(level))
    }

    fn group(&self, group: Group<'_, T>, slope_of: Slope<'_>, room: &mut Room<T>, flat: &mut [T]) {
        let Group { first, y, z, sums, by_sums } = group;
        let (shape, images, levels) = (self.config.shape, sums.len(), self.config.levels);
        self.forward(y, sums, room, z);
        let slopes = (first..).zip(z.chunks_exact(shape.dims())).flat_map(|(i, z)| slope_of(i, z));
        let slopes: Vec<f64> = slopes.collect();
        // The way back begins as that of an image that is drawn: the same rows change places.
        to_rows(&slopes, shape, &mut room.slope);
        for level in 1..levels {
            squeeze_rows(self.grid(level - 1), images, &room.slope, &mut room.next, &mut room.kept[level - 1]);
            std::mem::swap(&mut room.slope, &mut room.next);
        }
        let mut end = flat.len();
        for level in (0..levels).rev() {
            let len: usize = array_lens(self.grid(level).channels, self.config.hidden).iter().sum();
            for step in (0..self.config.steps).rev() {
                self.step_back([level, step], by_sums, room, &mut flat[end - len..end]);
                end -= len;
            }
            if level > 0 {
                unsqueeze_rows(self.grid(level - 1), images, &room.slope, &room.kept[level - 1], &mut room.next);
                std::mem::swap(&mut room.slope, &mut room.next);
            }
        }
    }

    /// z and Σ s of a group, whose states stay in the room.
    fn forward(&self, y: &[f64], sums: &mut [f64], room: &mut Room<T>, z: &mut [f64]) {
        let (images, levels, steps) = (sums.len(), self.config.levels, self.config.steps);
        to_rows(y, self.config.shape, &mut room.states[0][0]);
        for level in 0..levels {
            if let [.., above, here] = &mut room.states[..=level] {
                squeeze_rows(self.grid(level - 1), images, &above[steps], &mut here[0], &mut room.kept[level - 1]);
            }
            for step in 0..steps {
                self.step([level, step], sums, room);
            }
        }
        let last = &room.states[levels - 1][steps];
        room.slope[..last.len()].copy_from_slice(last);
        for level in (1..levels).rev() {
            unsqueeze_rows(self.grid(level - 1), images, &room.slope, &room.kept[level - 1], &mut room.next);
            std::mem::swap(&mut room.slope, &mut room.next);
        }
        to_planes(&room.slope, self.config.shape, z);
    }

    fn step(&self, [level, step]: [usize; 2], sums: &mut [f64], room: &mut Room<T>) {
        let shape = self.config.level_shape(level);
        let (dims, together, half) = (shape.dims(), block(shape).min(IMAGES), shape.channels / 2);
        let (positions, trained) = (shape.height * shape.width, &self.levels[level][step]);
        let Room { states, tapes, there, .. } = room;
        let [before, after] = &mut states[level][step..step + 2] else { return };
        for (index, sums) in sums.chunks_mut(together).enumerate() {
            let (first, images) = (index * together, sums.len());
            let part = first * dims..(first + images) * dims;
            trained.mix.apply(&before[part.clone()], &mut after[part.clone()]);
            let kept = tapes[level][step].part(first * positions, images * positions, half, self.config.hidden);
            trained.coupling.keep(Grid::of(shape), &mut after[part], there, sums, kept);
        }
    }

    /// The gradient of a group's rows goes from after a step to before it.
    fn step_back(&self, [level, step]: [usize; 2], by_sums: &[T], room: &mut Room<T>, flat: &mut [T]) {
        let shape = self.config.level_shape(level);
        let (dims, together, half) = (shape.dims(), block(shape).min(IMAGES), shape.channels / 2);
        let positions = shape.height * shape.width;
        let Room { states, tapes, slope, next, back, .. } = room;
        for (index, sums) in by_sums.chunks(together).enumerate() {
            let (first, images) = (index * together, sums.len());
            let part = first * dims..(first + images) * dims;
            let passed = Passed {
                grid: Grid::of(shape),
                before: &states[level][step][part.clone()],
                after: &states[level][step + 1][part.clone()],
                kept: tapes[level][step].part(first * positions, images * positions, half, self.config.hidden),
                sums,
            };
            self.levels[level][step].backward(passed, &mut slope[part.clone()], &mut next[part], back, flat);
        }
        std::mem::swap(slope, next);
    }
}

/// The arrays of a step.
fn cut<T>(flat: &[T], lens: [usize; ARRAYS]) -> [&[T]; ARRAYS] {
    let mut rest = flat;
    lens.map(|len| {
        let (array, others) = rest.split_at(len);
        rest = others;
        array
    })
}

fn misfit(numbers: usize) -> Error {
    Error::input(format!("{numbers} numbers are not the arrays of this Glow"))
}
