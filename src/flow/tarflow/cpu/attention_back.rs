//! Reverse pass of the causal attention. Weights are computed again from queries and keys: cheaper than keeping them.

use pulp::{Simd, WithSimd};

use super::attention::{Rows, mix, score};
use crate::flow::tarflow::HEAD;
use crate::kernels::rows::sum;
use crate::kernels::rows::{PAD, softmax};
use crate::kernels::{Buffer, Real};

/// Room for one head of one image.
#[derive(Debug)]
pub struct Scratch<T> {
    stride: usize,
    /// Keys, then values, [dimension, token].
    columns: Buffer<T>,
    /// Attention weights, [query, token].
    weights: Buffer<T>,
    /// Their gradients, then those of the scores.
    slopes: Buffer<T>,
}

impl<T: Real> Scratch<T> {
    /// For so many tokens.
    pub fn new(tokens: usize) -> Self {
        let stride = tokens.next_multiple_of(PAD);
        Self {
            stride,
            columns: Buffer::zeros(HEAD * stride),
            weights: Buffer::zeros(tokens * stride),
            slopes: Buffer::zeros(tokens * stride),
        }
    }
}

/// Gradients of queries, keys and values from those of the heads' outputs.
pub struct AttendBack<'a, T> {
    /// Room.
    pub scratch: &'a mut Scratch<T>,
    /// Tokens of each image.
    pub tokens: usize,
    /// Attention heads.
    pub heads: usize,
    /// 1/√64.
    pub scale: T,
    /// Queries, keys and values [image, token, 3, head, 64].
    pub qkv: &'a [T],
    /// Gradient of the outputs [image, token, head, 64].
    pub slope: &'a [T],
    /// Gradient of queries, keys and values.
    pub out: &'a mut [T],
}

impl<T: Real> WithSimd for AttendBack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { scratch, tokens, heads, scale, qkv, slope, out } = self;
        let width = heads * HEAD;
        let images = qkv.chunks_exact(tokens * 3 * width).zip(slope.chunks_exact(tokens * width));
        for ((qkv, slope), out) in images.zip(out.chunks_exact_mut(tokens * 3 * width)) {
            for head in 0..heads {
                let queries = Rows { data: qkv, stride: 3 * width, column: head * HEAD };
                let slope = Rows { data: slope, stride: width, column: head * HEAD };
                weigh::<T, S>(simd, scratch, queries, slope, scale, tokens);
                let place = |token: usize, part: usize| (token * 3 + part) * width + head * HEAD;
                spread::<T, S>(simd, scratch, queries, slope, scale, out, place);
            }
        }
    }
}

/// Attention weights, and gradients of the scores: s_ij = w_ij (d_ij − Σ_k w_ik d_ik) with d_ij = ∂/∂w_ij.
#[inline(always)]
fn weigh<T: Real, S: Simd>(
    simd: S,
    scratch: &mut Scratch<T>,
    queries: Rows<'_, T>,
    slope: Rows<'_, T>,
    scale: T,
    tokens: usize,
) {
    let Scratch { stride, columns, weights, slopes } = scratch;
    let width = slope.stride;
    queries.shifted(width).transpose_into(columns, *stride, 0);
    score_all::<T, S>(simd, queries, columns, scale, tokens, weights);
    queries.shifted(2 * width).transpose_into(columns, *stride, 0);
    score_all::<T, S>(simd, slope, columns, T::ONE, tokens, slopes);
    let rows = weights.chunks_exact_mut(*stride).zip(slopes.chunks_exact_mut(*stride));
    for (row, (weights, slopes)) in rows.enumerate() {
        let factor = softmax::<T, S>(simd, weights, row + 1);
        let padded = (row + 1).next_multiple_of(PAD);
        slopes[row + 1..padded].fill(T::ZERO);
        let (weights, slopes) = (&mut weights[..padded], &mut slopes[..padded]);
        weights.iter_mut().for_each(|weight| *weight = *weight * factor);
        let mean = sum!(T, S, simd; weight in weights, slope in slopes => T::times(simd, weight, slope));
        for (slope, weight) in slopes.iter_mut().zip(weights) {
            *slope = *weight * (*slope - mean);
        }
    }
}

/// Scores of all tokens against the tokens up to themselves.
#[inline(always)]
fn score_all<T: Real, S: Simd>(simd: S, rows: Rows<'_, T>, columns: &[T], scale: T, tokens: usize, out: &mut [T]) {
    let stride = columns.len() / HEAD;
    let mut row = 0;
    macro_rules! queries {
        ($($count:literal)*) => {$(
            while tokens - row >= $count {
                score::<T, S, $count>(simd, rows, row, columns, row + $count, scale, &mut out[row * stride..]);
                row += $count;
            }
        )*};
    }
    queries!(4 2 1);
}

/// Gradients of one head's queries, keys and values.
#[inline(always)]
fn spread<T: Real, S: Simd>(
    simd: S,
    scratch: &Scratch<T>,
    queries: Rows<'_, T>,
    slope: Rows<'_, T>,
    scale: T,
    out: &mut [T],
    place: impl Fn(usize, usize) -> usize,
) {
    let Scratch { stride, weights, slopes, .. } = scratch;
    let keys = queries.shifted(slope.stride);
    for token in 0..queries.data.len() / queries.stride {
        let row = (&slopes[token * stride..][..token + 1], 1);
        mix::<T, S>(simd, row, (keys, 0), scale, &mut out[place(token, 0)..][..HEAD]);
        let column = (&slopes[token * stride + token..], *stride);
        mix::<T, S>(simd, column, (queries, token), scale, &mut out[place(token, 1)..][..HEAD]);
        let column = (&weights[token * stride + token..], *stride);
        mix::<T, S>(simd, column, (slope, token), T::ONE, &mut out[place(token, 2)..][..HEAD]);
    }
}
