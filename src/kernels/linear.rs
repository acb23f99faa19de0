//! Linear maps and layer normalisations of rows, forward and back.

use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::rows::{add_rows, normalise, normalise_backward, renormalise};
use super::{Buffer, Panels, Real, Threads, add_transposed_product};

/// Rows that one thread normalises at a time.
const ROWS: usize = 256;

/// y = W x + b.
#[derive(Debug, Default)]
pub struct Linear<T> {
    /// Wᵀ and b.
    forward: Panels<T>,
    /// W, made when a gradient is first asked for.
    back: OnceLock<Panels<T>>,
}

impl<T: Real> Linear<T> {
    /// From `weight` [outputs, inputs] and `bias` [outputs].
    pub fn new(weight: &[T], bias: &[T]) -> Self {
        Self { forward: Panels::new(weight, bias), back: OnceLock::new() }
    }

    /// Other numbers, in the memory of earlier ones. With [`Threads::All`] those for the way back
    /// too.
    pub fn set(&mut self, weight: &[T], bias: &[T], threads: Threads) {
        self.forward.set(weight, bias, threads);
        let back = self.back.take();
        if threads == Threads::All {
            let mut back = back.unwrap_or_default();
            self.forward.transpose_into(&mut back, threads);
            self.back = back.into();
        }
    }

    /// Numbers of a row of y.
    pub fn outputs(&self) -> usize {
        self.forward.outputs
    }

    /// Numbers of a row of x.
    pub fn inputs(&self) -> usize {
        self.forward.inputs
    }

    /// `y` [rows, outputs] = W x + b for `x` [rows, inputs].
    pub fn apply(&self, x: &[T], y: &mut [T]) {
        self.forward.apply(x, y);
    }

    /// `y` += W x + b.
    pub fn apply_add(&self, x: &[T], y: &mut [T]) {
        self.forward.apply_add(x, y);
    }

    /// Gradient of x [rows, inputs] from that of y.
    pub fn backward(&self, y: &[T], x: &mut [T]) {
        // One thread: another that waited for the matrix could be given this very work.
        let back = self.back.get_or_init(|| {
            let mut back = Panels::default();
            self.forward.transpose_into(&mut back, Threads::One);
            back
        });
        back.apply(y, x);
    }
}

/// Gradients of W [outputs, inputs] and b.
#[derive(Debug)]
pub struct LinearGradient<'a, T> {
    /// Of W.
    pub weight: &'a mut [T],
    /// Of b.
    pub bias: &'a mut [T],
}

impl<T: Real> LinearGradient<'_, T> {
    /// Those of the first outputs, and of the others.
    pub fn split_at(&mut self, outputs: usize) -> (LinearGradient<'_, T>, LinearGradient<'_, T>) {
        let inputs = self.weight.len() / self.bias.len();
        let (first, rest) = self.weight.split_at_mut(outputs * inputs);
        let (first_bias, rest_bias) = self.bias.split_at_mut(outputs);
        (LinearGradient { weight: first, bias: first_bias }, LinearGradient { weight: rest, bias: rest_bias })
    }

    /// Adds the part of rows `x` whose results have the gradients `slope`. `room` is scratch.
    pub fn add(&mut self, slope: &[T], x: &[T], room: &mut Buffer<T>) {
        let Self { weight, bias } = self;
        let [outputs, inputs] = [bias.len(), weight.len() / bias.len()];
        add_transposed_product(slope, x, [outputs, inputs], 0, weight, room);
        add_rows(slope, bias);
    }
}

/// A layer normalisation: gain γ and bias β, [C] each, C a multiple of 64.
#[derive(Debug, Default)]
pub struct Norm<T> {
    gain: Vec<T>,
    bias: Vec<T>,
    epsilon: T,
}

/// What a normalisation leaves for its reverse pass.
#[derive(Debug, Default)]
pub struct Normalised<T> {
    /// (x − mean)/σ, [rows, C].
    standard: Buffer<T>,
    /// 1/σ, [rows].
    scales: Buffer<T>,
}

impl<T: Real> Normalised<T> {
    /// Room for so many rows.
    pub fn new(channels: usize, rows: usize) -> Self {
        Self { standard: Buffer::zeros(rows * channels), scales: Buffer::zeros(rows) }
    }

    /// (x − mean)/σ and 1/σ of the first rows, to write.
    pub fn rows(&mut self, rows: usize) -> (&mut [T], &mut [T]) {
        let channels = self.standard.len() / self.scales.len().max(1);
        (&mut self.standard[..rows * channels], &mut self.scales[..rows])
    }

    /// The same of some rows, to read.
    pub fn of(&self, rows: Range<usize>) -> (&[T], &[T]) {
        let channels = self.standard.len() / self.scales.len().max(1);
        (&self.standard[rows.start * channels..rows.end * channels], &self.scales[rows])
    }
}

impl<T: Real> Norm<T> {
    /// From γ, β and the floor ε of the variance.
    pub fn new(gain: &[T], bias: &[T], epsilon: f64) -> Self {
        debug_assert!(gain.len().is_multiple_of(super::HEAD), "what fills no register would be left out of the sums");
        Self { gain: gain.to_vec(), bias: bias.to_vec(), epsilon: T::of(epsilon) }
    }

    fn affine(&self) -> [&[T]; 2] {
        [&self.gain, &self.bias]
    }

    /// `out` = γ (x − mean)/√(var + ε) + β, row by row. `saved` receives what [`Normalised`] keeps.
    pub fn forward(&self, x: &[T], out: &mut [T], saved: Option<(&mut [T], &mut [T])>, threads: Threads) {
        let (affine, epsilon, size) = (self.affine(), self.epsilon, ROWS * self.gain.len());
        if !threads.several() {
            return normalise(x, affine, epsilon, out, saved);
        }
        let rows = x.par_chunks(size).zip(out.par_chunks_mut(size));
        match saved {
            None => rows.for_each(|(x, out)| normalise(x, affine, epsilon, out, None)),
            Some((standard, scales)) => {
                let saved = standard.par_chunks_mut(size).zip(scales.par_chunks_mut(ROWS));
                rows.zip(saved).for_each(|((x, out), saved)| normalise(x, affine, epsilon, out, Some(saved)));
            }
        }
    }

    /// What [`Self::forward`] wrote, from the (x − mean)/σ that it saved.
    pub fn again(&self, standard: &[T], out: &mut [T]) {
        renormalise(standard, self.affine(), out);
    }

    /// Adds ∂/∂x of some rows to `x` and those of γ and β to `gradient`, from the gradient `slope` of
    /// the result and what the rows had saved.
    pub fn backward_rows(&self, slope: &[T], saved: (&[T], &[T]), x: &mut [T], gradient: [&mut [T]; 2]) {
        normalise_backward(slope, saved, &self.gain, x, gradient);
    }

    /// The same of all rows, by all threads.
    pub fn backward(&self, slope: &[T], saved: &Normalised<T>, x: &mut [T], gradient: [&mut [T]; 2]) {
        let (c, Normalised { standard, scales }) = (self.gain.len(), saved);
        // The same chunks on any number of threads: their sums are added in order.
        let rows = x.par_chunks_mut(ROWS * c).zip(slope.par_chunks(ROWS * c));
        let saved = standard.par_chunks(ROWS * c).zip(scales.par_chunks(ROWS));
        let sums = rows.zip(saved).map(|((x, slope), saved)| {
            let mut sums = vec![T::ZERO; 2 * c];
            let (gain, bias) = sums.split_at_mut(c);
            self.backward_rows(slope, saved, x, [gain, bias]);
            sums
        });
        let sums: Vec<Vec<T>> = sums.collect();
        let [gain, bias] = gradient;
        for sums in sums {
            add_rows(&sums[..c], gain);
            add_rows(&sums[c..], bias);
        }
    }
}
