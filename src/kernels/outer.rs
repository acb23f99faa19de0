//! Products of a transposed factor, summed over rows.

use pulp::Simd;
use rayon::prelude::*;

use super::product::{ACROSS, WORTH_A_THREAD, each_tile, store, unrolled};
use super::{Buffer, Real, kernel};

/// Rows of a and b added at a time, so that a panel of b and a tile of a stay in the nearest cache.
const OUTER_ROWS: usize = 256;

/// Rows packed at a time: as many streams as the processor can follow.
const GROUP: usize = 16;

kernel! {
    /// `sums` [some columns of a, columns of b] += aᵀ·b for `a` and `b` with the same number of
    /// rows: the columns of a from `left` on that `sums` has rows for. `room` is scratch.
    pub add_transposed_product<T, S, simd>(
        a: &'a [T],
        b: &'a [T],
        columns: [usize; 2],
        left: usize,
        sums: &'a mut [T],
        room: &'a mut Buffer<T>,
    ) {
        let [m, n] = columns;
        if m == 0 || n == 0 {
            return;
        }
        let (columns, width) = (sums.len() / n, ACROSS * T::lanes::<S>());
        let (most, wide) = (OUTER_ROWS.min(a.len() / m), n.next_multiple_of(width));
        if room.len() < most * (wide + columns) {
            *room = Buffer::zeros(most * (wide + columns));
        }
        let (panels, tiles) = room.split_at_mut(most * wide);
        for (a, b) in a.chunks(OUTER_ROWS * m).zip(b.chunks(OUTER_ROWS * n)) {
            let rows = b.len() / n;
            for (group, (a, b)) in a.chunks(GROUP * m).zip(b.chunks(GROUP * n)).enumerate() {
                let start = group * GROUP;
                for (index, first) in (0..n).step_by(width).enumerate() {
                    pack_panel::<T, S>(b, n, first, width, &mut panels[(index * rows + start) * width..]);
                }
                each_tile!(S, columns, column, COLUMNS => {
                    let tile = tiles[rows * column + start * COLUMNS..].chunks_exact_mut(COLUMNS);
                    for (tile, a) in tile.zip(a.chunks_exact(m)) {
                        tile.copy_from_slice(&a[left + column..][..COLUMNS]);
                    }
                });
            }
            for (panel, first) in panels.chunks_exact(rows * width).zip((0..n).step_by(width)) {
                let used = width.min(n - first);
                each_tile!(S, columns, column, COLUMNS => {
                    let (tile, into) = (&tiles[rows * column..][..rows * COLUMNS], &mut sums[column * n + first..]);
                    if used <= T::lanes::<S>() {
                        outer_tile::<T, S, COLUMNS, 1>(simd, tile, panel, into, [n, used]);
                    } else {
                        outer_tile::<T, S, COLUMNS, ACROSS>(simd, tile, panel, into, [n, used]);
                    }
                });
            }
        }
    }
}

/// Columns `first` … of `b` [rows, n] to `panel` [rows, width], as far as there are any.
#[inline(always)]
fn pack_panel<T: Real, S: Simd>(b: &[T], n: usize, first: usize, width: usize, panel: &mut [T]) {
    let used = width.min(n - first);
    for (panel, b) in panel.chunks_exact_mut(width).zip(b.chunks_exact(n)) {
        if used < width {
            panel[..used].copy_from_slice(&b[first..][..used]);
            continue;
        }
        // Register by register: a call for so few numbers costs more than to copy them.
        let (panel, b) = (T::vectors_mut::<S>(panel), T::vectors::<S>(&b[first..][..width]));
        panel[..ACROSS].copy_from_slice(&b[..ACROSS]);
    }
}

/// `out` [COLUMNS, every `out_stride`] += `a` [rows, COLUMNS]ᵀ · the first WIDE registers of `panel` [rows, width].
#[inline(always)]
fn outer_tile<T: Real, S: Simd, const COLUMNS: usize, const WIDE: usize>(
    simd: S,
    a: &[T],
    panel: &[T],
    out: &mut [T],
    [out_stride, used]: [usize; 2],
) {
    let (panel, _) = T::vectors::<S>(panel).as_chunks::<ACROSS>();
    let (a, _) = a.as_chunks::<COLUMNS>();
    let mut sums = [[T::splat(simd, T::ZERO); WIDE]; COLUMNS];
    for (a, b) in a.iter().zip(panel) {
        unrolled!(i < COLUMNS => {
            let a = T::splat(simd, a[i]);
            for j in 0..WIDE {
                sums[i][j] = T::multiply_add(simd, a, b[j], sums[i][j]);
            }
        });
    }
    unrolled!(i < COLUMNS => { store::<T, S, WIDE>(simd, sums[i], &mut out[i * out_stride..][..used], true); });
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
    // Whole tiles; every piece packs y anew, so there are few of them.
    let piece = inputs.div_ceil((2 * threads).div_ceil(pairs.len().max(1))).next_multiple_of(24);
    sums.par_chunks_mut(inputs * outputs).enumerate().for_each(|(place, sums)| {
        let pieces = sums.par_chunks_mut(piece * outputs).enumerate();
        pieces.for_each_init(Buffer::default, |room, (index, sums)| work(room, place, index * piece, sums));
    });
}
