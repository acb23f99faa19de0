//! Multi-head self-attention (Vaswani et al. 2017), softmax(q kᵀ·scale) v, and its reverse pass.
//!
//! Causal attention can keep keys and values of earlier tokens. Token p looks at tokens 0 … p and
//! reads nothing of any other, not even to multiply it by zero: what overflows in a token cannot
//! reach an earlier one. Every number is a sum in the order of the tokens, whatever is computed
//! beside it.

mod backward;
mod first;
mod products;

use super::product::each_tile;
use super::rows::{PAD, end_scores, softmax};
use super::{Buffer, Real, kernel};
use backward::attend_backward;
use products::{Rows, Weights, mix, score};

pub use backward::Scratch;

/// Channels of one attention head.
pub const HEAD: usize = 64;
/// Queries scored together.
const QUERIES: usize = 8;

/// An attention over some consecutive tokens of each image.
#[derive(Debug, Clone, Copy)]
pub struct Attention<T> {
    /// First token; earlier ones are in the cache.
    pub first: usize,
    /// Tokens of each image.
    pub tokens: usize,
    /// Heads of [`HEAD`] channels.
    pub heads: usize,
    /// What scores are multiplied by: 1/√64, over the temperature.
    pub scale: T,
    /// Whether a token looks at itself and earlier ones only.
    pub causal: bool,
}

impl<T: Real> Attention<T> {
    fn width(self) -> usize {
        self.heads * HEAD
    }

    /// Tokens that row `row` looks at.
    #[inline(always)]
    fn seen(self, row: usize) -> usize {
        self.first + if self.causal { row + 1 } else { self.tokens }
    }

    /// softmax(q kᵀ·scale) v from `qkv` [image, token, 3, head, 64] to `out` [image, token, head,
    /// 64]. Adds keys and values to `cache`, where `slots` gives the place of each image; without
    /// `slots` nothing is kept from image to image.
    pub fn forward(self, cache: &mut Cache<T>, slots: Option<&[usize]>, qkv: &[T], out: &mut [T]) {
        attend(self, cache, slots, qkv, out);
    }

    /// Gradients `out` of queries, keys and values from the gradient `slope` of [`Self::forward`]'s
    /// result, for whole images. Weights are computed again from queries and keys: cheaper than
    /// keeping them.
    pub fn backward(self, scratch: &mut Scratch<T>, qkv: &[T], slope: &[T], out: &mut [T]) {
        attend_backward(self, scratch, qkv, slope, out);
    }
}

/// Numbers from row to row where a row has one for every token: an odd number of cache lines (of
/// f32), so that a column does not fall on a few sets of the nearest cache.
fn stride(tokens: usize) -> usize {
    (tokens.div_ceil(PAD) | 1) * PAD
}

/// Keys and values of the tokens so far, for every head of some images.
#[derive(Debug)]
pub struct Cache<T> {
    /// Tokens it has room for, padded.
    stride: usize,
    /// [image, head, dimension, token].
    keys: Buffer<T>,
    /// [image, head, token, dimension].
    values: Buffer<T>,
    /// Scores of a few queries, [query, token].
    scores: Buffer<T>,
}

impl<T: Real> Cache<T> {
    /// Room for `slots` pairs of image and head.
    pub fn new(slots: usize, tokens: usize) -> Self {
        let stride = stride(tokens);
        Self {
            stride,
            keys: Buffer::zeros(slots * HEAD * stride),
            values: Buffer::zeros(slots * HEAD * stride),
            scores: Buffer::zeros(QUERIES * stride),
        }
    }
}

kernel! {
    attend<T, S, simd>(
        attention: Attention<T>,
        cache: &'a mut Cache<T>,
        slots: Option<&'a [usize]>,
        qkv: &'a [T],
        out: &'a mut [T],
    ) {
        let Attention { first, tokens, heads, scale, .. } = attention;
        let (width, size) = (attention.width(), HEAD * cache.stride);
        let images = qkv.chunks_exact(tokens * 3 * width).zip(out.chunks_exact_mut(tokens * width));
        for (image, (qkv, out)) in images.enumerate() {
            for head in 0..heads {
                let slot = slots.map_or(0, |slots| slots[image] * heads + head);
                let keys = &mut cache.keys[slot * size..][..size];
                let values = &mut cache.values[slot * size..][..size];
                let rows = Rows { data: qkv, stride: 3 * width, column: head * HEAD };
                rows.shifted(width).transpose_into(keys, cache.stride, first);
                rows.shifted(2 * width).copy_into(&mut values[first * HEAD..]);
                let known = Rows { data: values, stride: HEAD, column: 0 };
                each_tile!(S, tokens, row, COUNT in [8] or [] => {
                    let seen = attention.seen(row + COUNT - 1);
                    score::<T, S, COUNT>(simd, rows, row, keys, seen, scale, &mut cache.scores);
                    for (i, scores) in cache.scores.chunks_exact_mut(cache.stride).take(COUNT).enumerate() {
                        end_scores(scores, attention.seen(row + i));
                    }
                    let mut factors = [T::ONE; COUNT];
                    for (i, scores) in cache.scores.chunks_exact_mut(cache.stride).take(COUNT).enumerate() {
                        factors[i] = softmax::<T, S>(simd, scores, attention.seen(row + i));
                    }
                    let weights = Weights { data: &cache.scores, row: cache.stride, column: 1 };
                    let ends = std::array::from_fn(|i| 0..attention.seen(row + i));
                    let into = &mut out[row * width + head * HEAD..];
                    mix::<T, S, COUNT>(simd, weights, known, ends, factors, (into, width));
                });
            }
        }
    }
}
