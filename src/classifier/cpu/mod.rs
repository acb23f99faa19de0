//! Passes on the CPU by our own kernels: values, their gradients, and what leads from one back
//! to the other.
//!
//! burn's CPU kernels gather a convolution's inputs, copy what they transpose, and take fresh
//! memory for every result; here nothing is gathered but the image itself, and memory is used
//! again. The plain twin of every function is the same layer by burn's tensors
//! ([`super::compute`]); the tests hold one against the other, values and gradients, in f64 and
//! f32.
//!
//! Maps lie as [position, image, channel]. Then what one place of a kernel meets at one position is
//! a matrix as it stands, for all images at once, and places that meet the padding are left out
//! instead of multiplied by zero.
//!
//! Every number is a sum in one order, whatever the number of threads.

mod elementwise;
mod loss;
mod map;
mod norm;
mod pool;
#[cfg(test)]
mod tests;
mod tokens;
mod transformer;

use crate::kernels::{Buffer, Real};
use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use map::MapShape;
use map::Weight;
pub use map::{Geometry, Linear};
pub use norm::{Affine, After, Statistics};
pub use tokens::Embedding;
pub use transformer::LayerParameters;

/// Values of some images on the CPU: [height·width, images, channels].
#[derive(Debug, Clone, Copy)]
pub struct Maps {
    at: usize,
    /// Height and width.
    pub side: [usize; 2],
    /// Images.
    pub images: usize,
    /// Channels.
    pub channels: usize,
    /// Whether anything asks for its gradient.
    slopes: bool,
}

impl Maps {
    fn rows(&self) -> usize {
        self.side[0] * self.side[1] * self.images
    }

    fn len(&self) -> usize {
        self.rows() * self.channels
    }
}

/// A step back: what it reads and where it adds is in the closure.
type BackwardStep<T> = Box<dyn FnOnce(&mut Tape<T>) + Send>;

/// One pass over a network, and the memory for the next.
pub struct Tape<T> {
    values: Vec<Arc<Buffer<T>>>,
    slopes: Vec<Option<Buffer<T>>>,
    back: Vec<BackwardStep<T>>,
    /// By the identity of their parameter.
    weights: HashMap<u64, Weight<T>>,
    /// Transformer layers.
    layers: transformer::Layers<T>,
    /// Gradients of parameters so far, with what puts them into the order of the parameter.
    sums: HashMap<u64, Sum<T>>,
    /// Memory nobody uses, by length.
    room: HashMap<usize, Vec<Buffer<T>>>,
    /// Whether no way back will be asked for: nothing is kept for it.
    answers: bool,
}

/// Gradient of a parameter.
struct Sum<T> {
    values: Buffer<T>,
    /// Shape of the map whose weight it is; `None` where it lies as the parameter does.
    map: Option<MapShape>,
}

impl<T: Real> Default for Tape<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            slopes: Vec::new(),
            back: Vec::new(),
            weights: HashMap::new(),
            layers: transformer::Layers::default(),
            sums: HashMap::new(),
            room: HashMap::new(),
            answers: false,
        }
    }
}

impl<T: Real> Tape<T> {
    /// A tape for values alone.
    pub fn of_answers() -> Self {
        Self { answers: true, ..Self::default() }
    }

    /// Before the first pass of a step: parameters have moved.
    pub fn begin(&mut self) {
        self.forget();
        self.weights.values_mut().for_each(|weight| weight.loaded = false);
        self.layers.outdate();
        for (_, sum) in std::mem::take(&mut self.sums) {
            self.give(sum.values);
        }
    }

    /// Images [N, C, H, W] as maps.
    pub fn images(&mut self, images: &[f32], [channels, height, width]: [usize; 3]) -> Maps {
        let (positions, dims) = (height * width, channels * height * width);
        let n = images.len() / dims.max(1);
        let mut out = self.take(n * dims);
        out.par_chunks_mut((n * channels).max(1)).enumerate().for_each(|(position, out)| {
            for (image, out) in images.chunks_exact(dims).zip(out.chunks_exact_mut(channels)) {
                let channels = image.chunks_exact(positions).zip(out);
                channels.for_each(|(from, to)| *to = T::of(f64::from(from[position])));
            }
        });
        self.push(out, Maps { at: 0, side: [height, width], images: n, channels, slopes: false })
    }

    /// Values of maps.
    pub fn values(&self, maps: Maps) -> &[T] {
        &self.values[maps.at]
    }

    /// Adds what the passes so far left behind to the parameters' gradients, from the gradient of
    /// `maps`, and forgets all values.
    pub fn backward(&mut self, maps: Maps, slope: &[T]) {
        let mut start = self.take(slope.len());
        start.copy_from_slice(slope);
        self.slopes[maps.at] = Some(start);
        while let Some(step) = self.back.pop() {
            step(self);
        }
        self.forget();
    }

    /// Forgets all values.
    pub fn forget(&mut self) {
        self.back.clear();
        for slope in std::mem::take(&mut self.slopes).into_iter().flatten() {
            self.give(slope);
        }
        for value in std::mem::take(&mut self.values) {
            if let Ok(value) = Arc::try_unwrap(value) {
                self.give(value);
            }
        }
    }

    /// Adds the gradients of parameters that another one gathered.
    pub fn add_gradients(&mut self, other: &mut Self) {
        for (parameter, sum) in std::mem::take(&mut other.sums) {
            match self.sums.get_mut(&parameter) {
                Some(own) => elementwise::add(&mut own.values, &sum.values),
                None => {
                    self.sums.insert(parameter, sum);
                    continue;
                }
            }
            other.give(sum.values);
        }
    }

    /// The gradient of a parameter, in its own order; `None` where nothing reached it.
    pub fn gradient(&mut self, parameter: u64) -> Option<Vec<T>> {
        let Sum { values, map } = self.sums.remove(&parameter)?;
        let ordered = match &map {
            Some(shape) => shape.ordered(&values),
            None => values.to_vec(),
        };
        self.give(values);
        Some(ordered)
    }

    /// Memory for `len` numbers, with whatever an earlier use left there.
    fn take(&mut self, len: usize) -> Buffer<T> {
        self.room.get_mut(&len).and_then(Vec::pop).unwrap_or_else(|| Buffer::zeros(len))
    }

    fn zeros(&mut self, len: usize) -> Buffer<T> {
        let mut room = self.take(len);
        room.fill(T::ZERO);
        room
    }

    fn give(&mut self, room: Buffer<T>) {
        self.room.entry(room.len()).or_default().push(room);
    }

    /// Keeps new values.
    fn push(&mut self, values: Buffer<T>, like: Maps) -> Maps {
        self.values.push(Arc::new(values));
        self.slopes.push(None);
        Maps { at: self.values.len() - 1, slopes: like.slopes && !self.answers, ..like }
    }

    fn value(&self, maps: Maps) -> Arc<Buffer<T>> {
        Arc::clone(&self.values[maps.at])
    }

    /// Adds a step back from `out`: `step` gets the gradient of its values, if there is one.
    fn record(&mut self, out: Maps, step: impl FnOnce(&mut Self, Buffer<T>) + Send + 'static) {
        if self.answers {
            return;
        }
        self.back.push(Box::new(move |tape| {
            if let Some(slope) = tape.slopes[out.at].take() {
                step(tape, slope);
            }
        }));
    }

    /// Where the gradient of `maps` goes, and whether it is to be added to what is there.
    fn slope(&mut self, maps: Maps) -> (Buffer<T>, bool) {
        match self.slopes[maps.at].take() {
            Some(slope) => (slope, true),
            None => (self.take(maps.len()), false),
        }
    }

    /// Adds a gradient of `maps`.
    fn add_slope(&mut self, maps: Maps, slope: Buffer<T>) {
        if !maps.slopes {
            return self.give(slope);
        }
        match &mut self.slopes[maps.at] {
            Some(sum) => {
                elementwise::add(sum, &slope);
                self.give(slope);
            }
            empty => *empty = Some(slope),
        }
    }

    /// Gradient of a parameter so far.
    fn sum(&mut self, parameter: u64, len: usize, map: Option<MapShape>) -> Sum<T> {
        let zeros = || Sum { values: self.room.get_mut(&len).and_then(Vec::pop).unwrap_or_default(), map };
        let new = !self.sums.contains_key(&parameter);
        let mut sum = self.sums.remove(&parameter).unwrap_or_else(zeros);
        if sum.values.len() != len {
            sum.values = Buffer::zeros(len);
        } else if new {
            sum.values.fill(T::ZERO);
        }
        sum
    }
}
