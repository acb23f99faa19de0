//! The reverse pass of an attention.

use std::ops::Range;

use pulp::Simd;

use super::products::{Rows, Weights, mix, score};
use super::{Attention, HEAD};
use crate::kernels::product::each_tile;
use crate::kernels::rows::{PAD, end_scores, softmax, sum};
use crate::kernels::{Buffer, Real, kernel};

/// Room for the reverse pass of one head of one image.
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
        let stride = super::stride(tokens);
        Self {
            stride,
            columns: Buffer::zeros(HEAD * stride),
            weights: Buffer::zeros(tokens * stride),
            slopes: Buffer::zeros(tokens * stride),
        }
    }
}

kernel! {
    pub attend_backward<T, S, simd>(
        attention: Attention<T>,
        scratch: &'a mut Scratch<T>,
        qkv: &'a [T],
        slope: &'a [T],
        out: &'a mut [T],
    ) {
        let (tokens, width) = (attention.tokens, attention.width());
        let images = qkv.chunks_exact(tokens * 3 * width).zip(slope.chunks_exact(tokens * width));
        for ((qkv, slope), out) in images.zip(out.chunks_exact_mut(tokens * 3 * width)) {
            for head in 0..attention.heads {
                let queries = Rows { data: qkv, stride: 3 * width, column: head * HEAD };
                let slope = Rows { data: slope, stride: width, column: head * HEAD };
                weigh::<T, S>(simd, attention, scratch, queries, slope);
                spread::<T, S>(simd, attention, scratch, queries, slope, &mut out[head * HEAD..]);
            }
        }
    }
}

/// Attention weights w, and gradients of the scores: w_ij (d_ij − Σ_k w_ik d_ik) with d_ij =
/// ∂/∂w_ij.
#[inline(always)]
fn weigh<T: Real, S: Simd>(
    simd: S,
    attention: Attention<T>,
    scratch: &mut Scratch<T>,
    queries: Rows<'_, T>,
    slope: Rows<'_, T>,
) {
    let Scratch { stride, columns, weights, slopes } = scratch;
    let (width, stride) = (slope.stride, *stride);
    queries.shifted(width).transpose_into(columns, stride, 0);
    score_all::<T, S>(simd, attention, queries, columns, attention.scale, weights);
    queries.shifted(2 * width).transpose_into(columns, stride, 0);
    score_all::<T, S>(simd, attention, slope, columns, T::ONE, slopes);
    for (row, weights) in weights.chunks_exact_mut(stride).enumerate().take(attention.tokens) {
        end_scores(weights, attention.seen(row));
    }
    let rows = weights.chunks_exact_mut(stride).zip(slopes.chunks_exact_mut(stride));
    for (row, (weights, slopes)) in rows.enumerate().take(attention.tokens) {
        let seen = attention.seen(row);
        let factor = softmax::<T, S>(simd, weights, seen);
        let padded = seen.next_multiple_of(PAD);
        slopes[seen..padded].fill(T::ZERO);
        let (weights, slopes) = (&mut weights[..padded], &mut slopes[..padded]);
        weights.iter_mut().for_each(|weight| *weight = *weight * factor);
        let mean = sum!(T, S, simd; weight in weights, slope in slopes => T::times(simd, weight, slope));
        for (slope, weight) in slopes.iter_mut().zip(weights) {
            *slope = *weight * (*slope - mean);
        }
    }
}

/// Scores of all tokens against the tokens they look at.
#[inline(always)]
fn score_all<T: Real, S: Simd>(
    simd: S,
    attention: Attention<T>,
    rows: Rows<'_, T>,
    columns: &[T],
    scale: T,
    out: &mut [T],
) {
    let stride = columns.len() / HEAD;
    each_tile!(S, attention.tokens, row, COUNT in [8] or [] => {
        let seen = attention.seen(row + COUNT - 1);
        score::<T, S, COUNT>(simd, rows, row, columns, seen, scale, &mut out[row * stride..]);
    });
}

/// Gradients of one head's queries, keys and values, from [`weigh`]'s weights and gradients.
#[inline(always)]
fn spread<T: Real, S: Simd>(
    simd: S,
    attention: Attention<T>,
    scratch: &Scratch<T>,
    queries: Rows<'_, T>,
    slope: Rows<'_, T>,
    out: &mut [T],
) {
    let Scratch { stride, weights, slopes, .. } = scratch;
    let (tokens, width) = (attention.tokens, slope.stride);
    let keys = queries.shifted(width);
    each_tile!(S, tokens, token, COUNT in [8] or [] => {
        let scales = [attention.scale; COUNT];
        let place = |part: usize| (token * 3 + part) * width;
        let rows = Weights { data: &slopes[token * stride..], row: *stride, column: 1 };
        let seen = std::array::from_fn(|i| 0..attention.seen(token + i));
        mix::<T, S, COUNT>(simd, rows, keys, seen, scales, (&mut out[place(0)..], 3 * width));
        // Queries that look at these tokens.
        let seen_by: [Range<usize>; COUNT] =
            std::array::from_fn(|i| if attention.causal { token + i..tokens } else { 0..tokens });
        let columns = Weights { data: &slopes[token..], row: 1, column: *stride };
        mix::<T, S, COUNT>(simd, columns, queries, seen_by.clone(), scales, (&mut out[place(1)..], 3 * width));
        let columns = Weights { data: &weights[token..], row: 1, column: *stride };
        mix::<T, S, COUNT>(simd, columns, slope, seen_by, [T::ONE; COUNT], (&mut out[place(2)..], 3 * width));
    });
}
