//! Multi-head self-attention (Vaswani et al. 2017), softmax(q kᵀ·scale) v, and its reverse pass.
//!
//! Causal attention can keep keys and values of earlier tokens. Token p looks at tokens 0 … p and reads
//! nothing of any other, not even to multiply it by zero: what overflows in a token cannot reach an earlier
//! one. Every number is a sum in the order of the tokens, whatever is computed beside it.

use std::ops::Range;

use pulp::Simd;
use rayon::prelude::*;

use super::rows::{PAD, softmax, sum};
use super::{Buffer, Real, Threads, kernel};

/// Channels of one attention head.
pub const HEAD: usize = 64;
/// Queries scored together.
const QUERIES: usize = 4;

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

    /// softmax(q kᵀ·scale) v from `qkv` [image, token, 3, head, 64] to `out` [image, token, head, 64].
    /// Adds keys and values to `cache`, where `slots` gives the place of each image; without `slots`
    /// nothing is kept from image to image.
    pub fn forward(self, cache: &mut Cache<T>, slots: Option<&[usize]>, qkv: &[T], out: &mut [T], threads: Threads) {
        if slots.is_some() || !threads.several() {
            return attend(self, cache, slots, qkv, out);
        }
        let (size, tokens) = (self.tokens * self.width(), self.tokens);
        let images = out.par_chunks_mut(size).zip(qkv.par_chunks(3 * size));
        images.for_each_init(|| Cache::new(1, tokens), |cache, (out, qkv)| attend(self, cache, None, qkv, out));
    }

    /// Gradients `out` of queries, keys and values from the gradient `slope` of [`Self::forward`]'s result,
    /// for whole images. Weights are computed again from queries and keys: cheaper than keeping them.
    pub fn backward(self, scratch: &mut Scratch<T>, qkv: &[T], slope: &[T], out: &mut [T], threads: Threads) {
        if !threads.several() {
            return attend_backward(self, scratch, qkv, slope, out);
        }
        let (size, tokens) = (self.tokens * self.width(), self.tokens);
        let images = out.par_chunks_mut(3 * size).zip(qkv.par_chunks(3 * size)).zip(slope.par_chunks(size));
        images.for_each_init(
            || Scratch::new(tokens),
            |scratch, ((out, qkv), slope)| attend_backward(self, scratch, qkv, slope, out),
        );
    }
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
        let stride = tokens.next_multiple_of(PAD);
        Self {
            stride,
            keys: Buffer::zeros(slots * HEAD * stride),
            values: Buffer::zeros(slots * HEAD * stride),
            scores: Buffer::zeros(QUERIES * stride),
        }
    }
}

/// Runs `$body` with `$count` as the number of queries, 4, 2 or 1, until `$row` has reached `$tokens`.
macro_rules! queries {
    ($row:ident, $tokens:expr, $count:ident => $body:block) => {
        queries!(@ $row, $tokens, $count => $body; 4 2 1);
    };
    (@ $row:ident, $tokens:expr, $count:ident => $body:block; $($number:literal)*) => {$(
        while $tokens - $row >= $number {
            const $count: usize = $number;
            $body
            $row += $number;
        }
    )*};
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
                let mut row = 0;
                queries!(row, tokens, COUNT => {
                    let seen = attention.seen(row + COUNT - 1);
                    score::<T, S, COUNT>(simd, rows, row, keys, seen, scale, &mut cache.scores);
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

/// One head's columns of some rows.
#[derive(Clone, Copy)]
struct Rows<'a, T> {
    /// All columns.
    data: &'a [T],
    /// Numbers from row to row.
    stride: usize,
    /// First column of this head.
    column: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    /// The same head `by` columns further.
    #[inline(always)]
    fn shifted(self, by: usize) -> Self {
        Self { column: self.column + by, ..self }
    }

    /// One row.
    #[inline(always)]
    fn row(self, row: usize) -> &'a [T] {
        &self.data[row * self.stride + self.column..][..HEAD]
    }

    /// Writes the rows as columns of `out` [64, stride], from column `first` on.
    #[inline(always)]
    fn transpose_into(self, out: &mut [T], stride: usize, first: usize) {
        for (at, row) in (first..stride).zip(self.data.chunks_exact(self.stride)) {
            for (column, x) in out.chunks_exact_mut(stride).zip(&row[self.column..][..HEAD]) {
                column[at] = *x;
            }
        }
    }

    /// Writes the rows one after the other.
    #[inline(always)]
    fn copy_into(self, out: &mut [T]) {
        for (row, out) in (0..self.data.len() / self.stride).zip(out.chunks_exact_mut(HEAD)) {
            out.copy_from_slice(self.row(row));
        }
    }
}

/// `scores` [query, stride] = scale · (rows `first` … of `queries`) · `keys` [64, stride], at least up to
/// key `seen`. Even and odd dimensions are summed apart: twice as many additions are under way at a time.
#[inline(always)]
fn score<T: Real, S: Simd, const ROWS: usize>(
    simd: S,
    queries: Rows<'_, T>,
    first: usize,
    keys: &[T],
    seen: usize,
    scale: T,
    scores: &mut [T],
) {
    let stride = keys.len() / HEAD;
    let mut vector = 0;
    let across = stride / T::lanes::<S>();
    let needed = seen.div_ceil(T::lanes::<S>());
    macro_rules! vectors {
        ($($count:literal)*) => {$(
            while needed - vector >= $count {
                score_vectors::<T, S, ROWS, $count>(simd, queries, first, keys, [across, vector], scale, scores);
                vector += $count;
            }
        )*};
    }
    vectors!(2 1);
}

#[inline(always)]
fn score_vectors<T: Real, S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    queries: Rows<'_, T>,
    first: usize,
    keys: &[T],
    [across, vector]: [usize; 2],
    scale: T,
    scores: &mut [T],
) {
    let mut rows = [&queries.data[..HEAD]; ROWS];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = &queries.row(first + i)[..HEAD];
    }
    let mut sums = [[[T::splat(simd, T::ZERO); 2]; VECTORS]; ROWS];
    for (pair, keys) in T::vectors::<S>(keys).chunks_exact(2 * across).enumerate().take(HEAD / 2) {
        for parity in 0..2 {
            let keys = &keys[parity * across + vector..][..VECTORS];
            for i in 0..ROWS {
                let q = T::splat(simd, rows[i][2 * pair + parity]);
                for j in 0..VECTORS {
                    sums[i][j][parity] = T::multiply_add(simd, q, keys[j], sums[i][j][parity]);
                }
            }
        }
    }
    let scale = T::splat(simd, scale);
    let scores = T::vectors_mut::<S>(scores);
    for i in 0..ROWS {
        for j in 0..VECTORS {
            let sum = T::plus(simd, sums[i][j][0], sums[i][j][1]);
            scores[i * across + vector + j] = T::times(simd, sum, scale);
        }
    }
}

/// Weights of rows in some sums: that of row j in sum i lies at `i·row + j·column`.
#[derive(Clone, Copy)]
struct Weights<'a, T> {
    data: &'a [T],
    row: usize,
    column: usize,
}

impl<T> Weights<'_, T> {
    /// Those of the sums from sum `i` on.
    #[inline(always)]
    fn from(self, i: usize) -> Self {
        Self { data: &self.data[i * self.row..], ..self }
    }
}

/// Sum i of `out` [64, every `stride`] = factor_i · Σ_j weight_ij · row j over j in `ranges[i]`.
#[inline(always)]
fn mix<T: Real, S: Simd, const SUMS: usize>(
    simd: S,
    weights: Weights<'_, T>,
    rows: Rows<'_, T>,
    ranges: [Range<usize>; SUMS],
    factors: [T; SUMS],
    out: (&mut [T], usize),
) {
    // Eight additions under way at a time where there are sums enough.
    if SUMS >= 4 {
        mix_vectors::<T, S, SUMS, 2>(simd, weights, rows, ranges, factors, out);
    } else {
        mix_vectors::<T, S, SUMS, 4>(simd, weights, rows, ranges, factors, out);
    }
}

#[inline(always)]
fn mix_vectors<T: Real, S: Simd, const SUMS: usize, const VECTORS: usize>(
    simd: S,
    weights: Weights<'_, T>,
    rows: Rows<'_, T>,
    ranges: [Range<usize>; SUMS],
    factors: [T; SUMS],
    (out, stride): (&mut [T], usize),
) {
    let common = ranges.iter().fold(0..usize::MAX, |all, one| all.start.max(one.start)..all.end.min(one.end));
    for part in 0..HEAD / T::lanes::<S>() / VECTORS {
        let mut sums = [[T::splat(simd, T::ZERO); VECTORS]; SUMS];
        for (i, sum) in sums.iter_mut().enumerate() {
            [*sum] = accumulate(simd, weights.from(i), rows, ranges[i].start..common.start, part, [*sum]);
        }
        sums = accumulate(simd, weights, rows, common.clone(), part, sums);
        for (i, sum) in sums.into_iter().enumerate() {
            let [sum] = accumulate(simd, weights.from(i), rows, common.end..ranges[i].end, part, [sum]);
            let factor = T::splat(simd, factors[i]);
            let out = T::vectors_mut::<S>(&mut out[i * stride..][..HEAD]);
            for (out, sum) in out[part * VECTORS..][..VECTORS].iter_mut().zip(sum) {
                *out = T::times(simd, sum, factor);
            }
        }
    }
}

/// `sums` and, of rows `range`, the registers of a part. By value: sums that are indexed by a variable
/// would not stay in registers.
#[inline(always)]
fn accumulate<T: Real, S: Simd, const SUMS: usize, const VECTORS: usize>(
    simd: S,
    weights: Weights<'_, T>,
    rows: Rows<'_, T>,
    range: Range<usize>,
    part: usize,
    sums: [[T::Vector<S>; VECTORS]; SUMS],
) -> [[T::Vector<S>; VECTORS]; SUMS] {
    let mut sums = sums;
    for j in range {
        let row = &T::vectors::<S>(rows.row(j))[part * VECTORS..][..VECTORS];
        for i in 0..SUMS {
            let weight = T::splat(simd, weights.data[i * weights.row + j * weights.column]);
            for v in 0..VECTORS {
                sums[i][v] = T::multiply_add(simd, weight, row[v], sums[i][v]);
            }
        }
    }
    sums
}

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
        let stride = tokens.next_multiple_of(PAD);
        Self {
            stride,
            columns: Buffer::zeros(HEAD * stride),
            weights: Buffer::zeros(tokens * stride),
            slopes: Buffer::zeros(tokens * stride),
        }
    }
}

kernel! {
    attend_backward<T, S, simd>(
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

/// Attention weights w, and gradients of the scores: w_ij (d_ij − Σ_k w_ik d_ik) with d_ij = ∂/∂w_ij.
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
    let mut row = 0;
    queries!(row, attention.tokens, COUNT => {
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
    let mut token = 0;
    queries!(token, tokens, COUNT => {
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
