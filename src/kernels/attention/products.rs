//! Products of one head: scores of queries and keys, and weighted sums of rows.

use std::ops::Range;

use pulp::Simd;

use super::HEAD;
use crate::kernels::Real;

/// One head's columns of some rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
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
    fn row(self, row: usize) -> &'a [T] {
        &self.data[row * self.stride + self.column..][..HEAD]
    }

    /// Writes the rows as columns of `out` [64, stride], from column `first` on. Four rows at a time: their
    /// numbers lie side by side in a column.
    #[inline(always)]
    pub fn transpose_into(self, out: &mut [T], stride: usize, first: usize) {
        let count = self.data.len() / self.stride;
        let mut row = 0;
        while count - row >= 4 {
            let (a, b, c, d) = (self.row(row), self.row(row + 1), self.row(row + 2), self.row(row + 3));
            for (i, column) in out.chunks_exact_mut(stride).enumerate().take(HEAD) {
                let column = &mut column[first + row..][..4];
                column[0] = a[i];
                column[1] = b[i];
                column[2] = c[i];
                column[3] = d[i];
            }
            row += 4;
        }
        for row in row..count {
            for (column, x) in out.chunks_exact_mut(stride).zip(self.row(row)) {
                column[first + row] = *x;
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

/// `scores` [query, stride] = scale · (rows `first` … of `queries`) · `keys` [64, stride], at least
/// up to key `seen`. Even and odd dimensions are summed apart: twice as many additions are under
/// way at a time.
#[inline(always)]
pub(super) fn score<T: Real, S: Simd, const ROWS: usize>(
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
    // Two registers of keys for each number of a query, and no more rows than registers for their sums.
    while needed - vector >= 2 {
        if ROWS == 8 {
            for part in [0, 4] {
                let scores = &mut scores[part * stride..];
                score_vectors::<T, S, 4, 2>(simd, queries, first + part, keys, [across, vector], scale, scores);
            }
        } else {
            score_vectors::<T, S, ROWS, 2>(simd, queries, first, keys, [across, vector], scale, scores);
        }
        vector += 2;
    }
    if needed > vector {
        score_vectors::<T, S, ROWS, 1>(simd, queries, first, keys, [across, vector], scale, scores);
    }
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
pub(super) struct Weights<'a, T> {
    pub data: &'a [T],
    pub row: usize,
    pub column: usize,
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
pub(super) fn mix<T: Real, S: Simd, const SUMS: usize>(
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

/// `sums` and, of rows `range`, the registers of a part. By value: sums that are indexed by a
/// variable would not stay in registers.
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
        for (i, sums) in sums.iter_mut().enumerate() {
            let weight = T::splat(simd, weights.data[i * weights.row + j * weights.column]);
            for v in 0..VECTORS {
                sums[v] = T::multiply_add(simd, weight, row[v], sums[v]);
            }
        }
    }
    sums
}
