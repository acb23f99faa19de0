//! Attention of every token of an image to every token (Vaswani et al. 2017): softmax(q kᵀ/√d) v, head by head.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::kernel::kernel;
use super::{Host, Maps};
use crate::kernels::rows::{PAD, softmax};
use crate::kernels::{Buffer, Panels, Real, Strides, Term, add_transposed_product, multiply, vectorise};

/// Replaces rows of `seen` scores, padded to `stride`, by their softmax.
struct Softmax<'a, T> {
    rows: &'a mut [T],
    stride: usize,
    seen: usize,
}

impl<T: Real> WithSimd for Softmax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for row in self.rows.chunks_exact_mut(self.stride) {
            let factor = softmax::<T, S>(simd, row, self.seen);
            row.iter_mut().for_each(|weight| *weight = *weight * factor);
        }
    }
}

kernel! {
    /// Gradients of the scores from those of the weights: scale·w (d − Σ w d), row by row.
    softmax_back<T, S>(weights: &'a [T], slopes: &'a mut [T], stride: usize, scale: T) {
        for (weights, slopes) in weights.chunks_exact(stride).zip(slopes.chunks_exact_mut(stride)) {
            let mut sums = [T::ZERO; PAD];
            for (weights, slopes) in weights.as_chunks::<PAD>().0.iter().zip(slopes.as_chunks::<PAD>().0) {
                for i in 0..PAD {
                    sums[i] = T::fused::<S>(weights[i], slopes[i], sums[i]);
                }
            }
            let mut mean = T::ZERO;
            sums.iter().for_each(|sum| mean += *sum);
            for (slope, weight) in slopes.iter_mut().zip(weights) {
                *slope = scale * *weight * (*slope - mean);
            }
        }
    }
}

/// Sizes of an attention.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    tokens: usize,
    heads: usize,
    /// Numbers of a head.
    size: usize,
    /// Tokens, padded.
    stride: usize,
}

impl Sizes {
    fn width(self) -> usize {
        self.heads * self.size
    }

    /// 1/√d.
    fn scale<T: Real>(self) -> T {
        T::of((self.size as f64).sqrt().recip())
    }
}

/// Room for one head of one image.
#[derive(Debug, Default)]
struct Scratch<T> {
    /// Matrices [number, token] and [token, number].
    across: Panels<T>,
    along: Panels<T>,
    /// Gradients of weights, then of scores, [token, token].
    slopes: Buffer<T>,
    /// [token, number].
    rows: Buffer<T>,
    /// Sums like those.
    sums: Buffer<T>,
    room: Buffer<T>,
}

impl<T: Real> Scratch<T> {
    fn new(sizes: Sizes) -> Self {
        let Sizes { tokens, size, stride, .. } = sizes;
        let rows = || Buffer::zeros(tokens * size);
        let slopes = Buffer::zeros(tokens * stride);
        Self { slopes, rows: rows(), sums: rows(), ..Self::default() }
    }

    /// Panels [number, token] of columns of `x`, times a factor.
    fn across(&mut self, x: Columns<'_, T>, sizes: Sizes, factor: T) {
        self.across.size(1, sizes.size, sizes.tokens);
        self.across.set_columns(|token| x.row(token, sizes.size), factor);
    }

    /// Panels [token, number] of columns of `x`.
    fn along(&mut self, x: Columns<'_, T>, sizes: Sizes) {
        self.along.size(1, sizes.tokens, sizes.size);
        self.along.set_rows(|token| x.row(token, sizes.size));
    }

    /// The sums aᵀ·x for `a` [token, stride] and columns of `x`.
    fn transposed_product(&mut self, a: &[T], x: Columns<'_, T>, sizes: Sizes) {
        for (token, row) in self.rows.chunks_exact_mut(sizes.size).enumerate() {
            row.copy_from_slice(x.row(token, sizes.size));
        }
        self.sums.fill(T::ZERO);
        add_transposed_product(a, &self.rows, [sizes.stride, sizes.size], 0, &mut self.sums, &mut self.room);
    }
}

/// One head's columns of an image's rows.
#[derive(Debug, Clone, Copy)]
struct Columns<'a, T> {
    values: &'a [T],
    stride: usize,
    first: usize,
}

impl<'a, T: Real> Columns<'a, T> {
    /// Queries (0), keys (1) or values (2).
    fn part(qkv: &'a [T], part: usize, head: usize, sizes: Sizes) -> Self {
        Self { values: qkv, stride: 3 * sizes.width(), first: part * sizes.width() + head * sizes.size }
    }

    fn row(self, token: usize, size: usize) -> &'a [T] {
        &self.values[token * self.stride + self.first..][..size]
    }

    fn term(self) -> Term<'a, T> {
        Term { rows: &self.values[self.first..], place: 0 }
    }
}

impl<T: Real> Host<T> {
    /// softmax(q kᵀ/√d) v for images of `tokens` rows [query, key, value] of `heads` heads each.
    pub fn attention(&mut self, qkv: Maps, tokens: usize, heads: usize) -> Maps {
        let width = qkv.channels / 3;
        let sizes = Sizes { tokens, heads, size: width / heads, stride: tokens.next_multiple_of(PAD) };
        let images = qkv.rows() / tokens;
        let like = Maps { channels: width, ..qkv };
        let mut weights = self.take(images * heads * tokens * sizes.stride);
        let (value, mut out) = (self.value(qkv), self.take(like.len()));
        let found = out.par_chunks_mut(tokens * width).zip(weights.par_chunks_mut(heads * tokens * sizes.stride));
        let found = found.zip(value.par_chunks(tokens * 3 * width));
        found.for_each_init(
            || Scratch::new(sizes),
            |scratch, ((out, weights), qkv)| {
                attend(scratch, sizes, qkv, weights, out);
            },
        );
        drop(value);
        let out = self.push(out, like);
        self.record(out, move |host, slope| {
            let (value, mut into) = (host.value(qkv), host.take(qkv.len()));
            let found = into.par_chunks_mut(tokens * 3 * width).zip(value.par_chunks(tokens * 3 * width));
            let found = found.zip(weights.par_chunks(heads * tokens * sizes.stride));
            let found = found.zip(slope.par_chunks(tokens * width));
            found.for_each_init(
                || Scratch::new(sizes),
                |scratch, (((into, qkv), weights), slope)| {
                    attend_back(scratch, sizes, (qkv, weights), slope, into);
                },
            );
            drop(value);
            host.give(weights);
            host.give(slope);
            host.add_slope(qkv, into);
        });
        out
    }
}

/// One image.
fn attend<T: Real>(scratch: &mut Scratch<T>, sizes: Sizes, qkv: &[T], weights: &mut [T], out: &mut [T]) {
    let Sizes { tokens, size, stride, .. } = sizes;
    let (width, scale) = (sizes.width(), sizes.scale::<T>());
    for (head, weights) in weights.chunks_exact_mut(tokens * stride).enumerate() {
        let [q, k, v] = [0, 1, 2].map(|part| Columns::part(qkv, part, head, sizes));
        scratch.across(k, sizes, scale);
        multiply(&[q.term()], &scratch.across, Strides { rows: q.stride, out: stride }, weights, false);
        vectorise(Softmax { rows: weights, stride, seen: tokens });
        scratch.along(v, sizes);
        let term = Term { rows: weights, place: 0 };
        multiply(&[term], &scratch.along, Strides { rows: stride, out: width }, &mut out[head * size..], false);
    }
}

/// Gradients of one image's queries, keys and values.
fn attend_back<T: Real>(
    scratch: &mut Scratch<T>,
    sizes: Sizes,
    (qkv, weights): (&[T], &[T]),
    slope: &[T],
    into: &mut [T],
) {
    let Sizes { tokens, size, stride, .. } = sizes;
    let (width, all) = (sizes.width(), 3 * sizes.width());
    for (head, weights) in weights.chunks_exact(tokens * stride).enumerate() {
        let [q, k, v] = [0, 1, 2].map(|part| Columns::part(qkv, part, head, sizes));
        let slope = Columns { values: slope, stride: width, first: head * size };
        scratch.transposed_product(weights, slope, sizes);
        store(&scratch.sums, size, into, (all, v.first));
        scratch.across(v, sizes, T::ONE);
        let strides = Strides { rows: width, out: stride };
        let mut slopes = std::mem::take(&mut scratch.slopes);
        multiply(&[slope.term()], &scratch.across, strides, &mut slopes, false);
        softmax_back(weights, &mut slopes, stride, sizes.scale());
        scratch.along(k, sizes);
        let term = Term { rows: &slopes, place: 0 };
        multiply(&[term], &scratch.along, Strides { rows: stride, out: all }, &mut into[q.first..], false);
        scratch.transposed_product(&slopes, q, sizes);
        store(&scratch.sums, size, into, (all, k.first));
        scratch.slopes = slopes;
    }
}

/// Writes rows of `size` numbers into columns.
fn store<T: Copy>(rows: &[T], size: usize, into: &mut [T], (stride, first): (usize, usize)) {
    for (row, into) in rows.chunks_exact(size).zip(into.chunks_exact_mut(stride)) {
        into[first..][..size].copy_from_slice(row);
    }
}
