//! Products of a transposed factor, summed over rows.

use pulp::{Simd, WithSimd};

use super::product::{ACROSS, store_beginning};
use super::{Buffer, Real, vectorise};

/// `sums` [some columns of a, columns of b] += aᵀ·b for `a` and `b` with the same number of rows: those columns of a from `first` on
/// that `sums` has rows for; `room` is scratch.
pub fn add_transposed_product<T: Real>(
    a: &[T],
    b: &[T],
    columns: [usize; 2],
    first: usize,
    sums: &mut [T],
    room: &mut Buffer<T>,
) {
    vectorise(Outer { a, b, columns, first, sums, room });
}

/// Rows of a and b added at a time, so that a panel of b stays in the nearest cache.
const OUTER_ROWS: usize = 256;

struct Outer<'a, T> {
    a: &'a [T],
    b: &'a [T],
    columns: [usize; 2],
    first: usize,
    sums: &'a mut [T],
    room: &'a mut Buffer<T>,
}

impl<T: Real> WithSimd for Outer<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, b, columns: [m, n], first: left, sums, room } = self;
        if m == 0 || n == 0 {
            return;
        }
        let rows = sums.len() / n;
        let width = ACROSS * T::lanes::<S>();
        if room.len() < OUTER_ROWS * width {
            *room = Buffer::zeros(OUTER_ROWS * width);
        }
        for (a, b) in a.chunks(OUTER_ROWS * m).zip(b.chunks(OUTER_ROWS * n)) {
            for first in (0..n).step_by(width) {
                let used = width.min(n - first);
                let panel = &mut room[..b.len() / n * width];
                for (panel, b) in panel.chunks_exact_mut(width).zip(b.chunks_exact(n)) {
                    panel[..used].copy_from_slice(&b[first..][..used]);
                }
                let mut row = 0;
                macro_rules! tiles {
                    ($($rows:literal)*) => {$(
                        while rows - row >= $rows {
                            let into = &mut sums[row * n + first..];
                            outer_tile::<T, S, $rows>(simd, &a[left + row..], m, panel, into, [n, used]);
                            row += $rows;
                        }
                    )*};
                }
                if S::REGISTER_COUNT >= 32 {
                    tiles!(8);
                }
                tiles!(4 2 1);
            }
        }
    }
}

#[inline(always)]
fn outer_tile<T: Real, S: Simd, const ROWS: usize>(
    simd: S,
    a: &[T],
    stride: usize,
    panel: &[T],
    out: &mut [T],
    [out_stride, used]: [usize; 2],
) {
    let (panel, _) = T::vectors::<S>(panel).as_chunks::<ACROSS>();
    let mut sums = [[T::splat(simd, T::ZERO); ACROSS]; ROWS];
    for (a, b) in a.chunks(stride).zip(panel) {
        let Some(a) = a.first_chunk::<ROWS>() else { return };
        for i in 0..ROWS {
            let a = T::splat(simd, a[i]);
            for j in 0..ACROSS {
                sums[i][j] = T::multiply_add(simd, a, b[j], sums[i][j]);
            }
        }
    }
    if used < ACROSS * T::lanes::<S>() {
        return store_beginning::<T, S, ROWS>(sums, out, out_stride, used, true);
    }
    for i in 0..ROWS {
        let out = T::vectors_mut::<S>(&mut out[i * out_stride..][..used]);
        out[0] = T::plus(simd, out[0], sums[i][0]);
        out[1] = T::plus(simd, out[1], sums[i][1]);
    }
}
