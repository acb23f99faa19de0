//! Causal attention with cached keys and values. Token p looks at tokens 0 … p and reads nothing of any other, not even to
//! multiply it by zero: what overflows in a token cannot reach an earlier one.

use pulp::{Simd, WithSimd};

use crate::flow::tarflow::HEAD;
use crate::kernels::rows::{PAD, softmax};
use crate::kernels::{Buffer, Real};

/// Queries scored together.
const QUERIES: usize = 4;

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

/// softmax(q kᵀ · scale) v for consecutive tokens of some images.
pub struct Attend<'a, T> {
    /// Keys and values of earlier tokens; those of these tokens are added.
    pub cache: &'a mut Cache<T>,
    /// Place of each image in the cache; `None` where the cache has a single slot and nothing is kept.
    pub slots: Option<&'a [usize]>,
    /// First token.
    pub first: usize,
    /// Tokens of each image.
    pub tokens: usize,
    /// Attention heads.
    pub heads: usize,
    /// 1/√64, over the temperature.
    pub scale: T,
    /// Queries, keys and values [image, token, 3, head, 64].
    pub qkv: &'a [T],
    /// [image, token, head, 64].
    pub out: &'a mut [T],
}

impl<T: Real> WithSimd for Attend<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { cache, slots, first, tokens, heads, scale, qkv, out } = self;
        let (width, size) = (heads * HEAD, HEAD * cache.stride);
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
                macro_rules! queries {
                    ($($count:literal)*) => {$(
                        while tokens - row >= $count {
                            let seen = first + row + 1;
                            score::<T, S, $count>(simd, rows, row, keys, seen + $count - 1, scale, &mut cache.scores);
                            for (i, scores) in cache.scores.chunks_exact_mut(cache.stride).take($count).enumerate() {
                                let into = &mut out[(row + i) * width + head * HEAD..][..HEAD];
                                let factor = softmax::<T, S>(simd, scores, seen + i);
                                mix::<T, S>(simd, (&scores[..seen + i], 1), (known, 0), factor, into);
                            }
                            row += $count;
                        }
                    )*};
                }
                queries!(4 2 1);
            }
        }
    }
}

/// One head's columns of some rows.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    /// All columns.
    pub data: &'a [T],
    /// Numbers from row to row.
    pub stride: usize,
    /// First column of this head.
    pub column: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    /// The same head `by` columns further.
    #[inline(always)]
    pub fn shifted(self, by: usize) -> Self {
        Self { column: self.column + by, ..self }
    }

    /// One row.
    #[inline(always)]
    pub fn row(self, row: usize) -> &'a [T] {
        &self.data[row * self.stride + self.column..][..HEAD]
    }

    /// Writes the rows as columns of `out` [64, stride], from column `first` on.
    #[inline(always)]
    pub fn transpose_into(self, out: &mut [T], stride: usize, first: usize) {
        for (at, row) in (first..stride).zip(self.data.chunks_exact(self.stride)) {
            for (column, x) in out.chunks_exact_mut(stride).zip(&row[self.column..][..HEAD]) {
                column[at] = *x;
            }
        }
    }

    /// Writes the rows one after the other.
    #[inline(always)]
    pub fn copy_into(self, out: &mut [T]) {
        for (row, out) in (0..self.data.len() / self.stride).zip(out.chunks_exact_mut(HEAD)) {
            out.copy_from_slice(self.row(row));
        }
    }
}

/// `scores` [query, stride] = scale · (rows `first` … of `queries`) · `keys` [64, stride], at least up to key `seen`.
/// Even and odd dimensions are summed apart: twice as many additions are under way at a time.
#[inline(always)]
pub fn score<T: Real, S: Simd, const ROWS: usize>(
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

/// `out` [64] = factor · Σ_i weight_i · row `first + i`; `weights` are `apart` from each other.
#[inline(always)]
pub fn mix<T: Real, S: Simd>(
    simd: S,
    (weights, apart): (&[T], usize),
    (rows, first): (Rows<'_, T>, usize),
    factor: T,
    out: &mut [T],
) {
    let factor = T::splat(simd, factor);
    let (out, _) = T::vectors_mut::<S>(out).as_chunks_mut::<4>();
    for (quarter, out) in out.iter_mut().enumerate() {
        let mut sums = [T::splat(simd, T::ZERO); 4];
        let rows = rows.data[first * rows.stride..].chunks_exact(rows.stride).map(|row| &row[rows.column..][..HEAD]);
        for (weight, row) in weights.iter().step_by(apart).zip(rows) {
            let weight = T::splat(simd, *weight);
            let row = &T::vectors::<S>(row)[4 * quarter..][..4];
            for i in 0..4 {
                sums[i] = T::multiply_add(simd, weight, row[i], sums[i]);
            }
        }
        for i in 0..4 {
            out[i] = T::times(simd, sums[i], factor);
        }
    }
}
