//! Sums of matrix products with packed weights, and of products with a transposed factor, for all positions of maps.

use rayon::prelude::*;

use crate::kernels::{Buffer, Panels, Real, Strides, Term, WORTH_A_THREAD, add_transposed_product, multiply};

/// Rows of the result that one thread makes at a time: many enough to share a pass over the weights.
const ROWS: usize = 64;

/// `out` [position, rows, outputs] (+)= Σ over the terms of a position, named by place and position of `x` [.., rows, inputs].
pub fn multiply_all<T: Real>(
    x: &[T],
    rows: usize,
    terms: impl Fn(usize) -> Vec<(usize, usize)> + Sync,
    panels: &Panels<T>,
    out: &mut [T],
    add: bool,
) {
    let (inputs, outputs) = (panels.inputs, panels.outputs);
    let strides = Strides { rows: inputs, out: outputs };
    let threads = rayon::current_num_threads();
    let positions = out.len() / (rows * outputs).max(1);
    // Where there are few positions, their rows are divided among threads too.
    let size = if threads == 1 || positions >= 8 * threads { rows } else { ROWS.min(rows) };
    let work = |(position, out): (usize, &mut [T])| {
        let terms = terms(position);
        let block = |(index, out): (usize, &mut [T])| {
            let first = index * size * inputs;
            let term = |&(place, source): &(usize, usize)| Term { rows: &x[source * rows * inputs + first..], place };
            multiply(&terms.iter().map(term).collect::<Vec<_>>(), panels, strides, out, add);
        };
        match size == rows {
            true => block((0, out)),
            false => out.par_chunks_mut(size * outputs).enumerate().for_each(block),
        }
    };
    if threads == 1 || x.len() * outputs < WORTH_A_THREAD {
        out.chunks_mut((rows * outputs).max(1)).enumerate().for_each(work);
    } else {
        out.par_chunks_mut((rows * outputs).max(1)).enumerate().for_each(work);
    }
}

/// `sums` [place, inputs, outputs] += Σ over pairs of positions (of x, of y) of a place: x [.., rows, inputs]ᵀ · y [.., rows, outputs].
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
