//! Products of a transposed factor, summed over rows.

use pulp::Simd;
use rayon::prelude::*;

use super::product::{ACROSS, WORTH_A_THREAD, store_beginning};
use super::{Buffer, Real, kernel};

/// Rows of a and b added at a time, so that a panel of b stays in the nearest cache.
const OUTER_ROWS: usize = 256;

kernel! {
    /// `sums` [some columns of a, columns of b] += aᵀ·b for `a` and `b` with the same number of
    /// rows: the columns of a from `first` on that `sums` has rows for. `room` is scratch.
    pub add_transposed_product<T, S, simd>(
        a: &'a [T],
        b: &'a [T],
        columns: [usize; 2],
        first: usize,
        sums: &'a mut [T],
        room: &'a mut Buffer<T>,
    ) {
        let ([m, n], left) = (columns, first);
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

/// `sums` [place, inputs, outputs] += Σ over pairs of positions (of x, of y) of a place:
/// x [.., rows, inputs]ᵀ · y [.., rows, outputs]. Divided among all threads.
pub fn add_outer_products<T: Real>(
    (x, inputs): (&[T], usize),
    (y, outputs): (&[T], usize),
    rows: usize,
    pairs: &[Vec<(usize, usize)>],
    sums: &mut [T],
) {
    if inputs * outputs == 0 {
        return;
    }
    let threads = rayon::current_num_threads();
    let work = |room: &mut Buffer<T>, place: usize, first: usize, sums: &mut [T]| {
        for &(from, to) in &pairs[place] {
            let x = &x[from * rows * inputs..][..rows * inputs];
            let y = &y[to * rows * outputs..][..rows * outputs];
            add_transposed_product(x, y, [inputs, outputs], first, sums, room);
        }
    };
    if threads == 1 || rows * inputs * outputs < WORTH_A_THREAD {
        let mut room = Buffer::default();
        sums.chunks_mut(inputs * outputs).enumerate().for_each(|(place, sums)| work(&mut room, place, 0, sums));
        return;
    }
    // Tiles are of eight inputs; every thread finds a few pieces.
    let piece = inputs.div_ceil((4 * threads).div_ceil(pairs.len().max(1))).next_multiple_of(8);
    sums.par_chunks_mut(inputs * outputs).enumerate().for_each(|(place, sums)| {
        let pieces = sums.par_chunks_mut(piece * outputs).enumerate();
        pieces.for_each_init(Buffer::default, |room, (index, sums)| work(room, place, index * piece, sums));
    });
}
