//! Sums of matrix products with packed weights, and of products with a transposed factor.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::flow::tarflow::cpu::product::{ACROSS, add_transposed_product, store_beginning, tile_width};
use crate::flow::tarflow::cpu::real::Real;
use crate::flow::tarflow::cpu::simd::Buffer;
use crate::simd::vectorise;

/// Products and additions below which a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 18;

/// Some matrices [inputs, outputs], one for each place, in panels of as many outputs as a tile of the product is wide.
#[derive(Debug, Default)]
pub struct Panels<T> {
    places: usize,
    inputs: usize,
    outputs: usize,
    width: usize,
    /// [panel, place, input, output in panel], zeros beyond the last output.
    data: Buffer<T>,
    /// [panel, output in panel].
    bias: Buffer<T>,
}

impl<T: Real> Panels<T> {
    /// Makes room; what was there is lost.
    pub fn size(&mut self, places: usize, inputs: usize, outputs: usize) {
        let width = tile_width::<T>();
        let padded = outputs.next_multiple_of(width);
        if (self.places, self.inputs, self.outputs) != (places, inputs, outputs) {
            *self = Self {
                places,
                inputs,
                outputs,
                width,
                data: Buffer::zeros(places * inputs * padded),
                bias: Buffer::zeros(padded),
            };
        }
    }

    /// Sets every entry: those of an input of a place are `step` apart in `values` from `start(place, input)` on.
    pub fn fill(&mut self, values: &[T], start: impl Fn(usize, usize) -> usize + Sync, step: usize) {
        let (places, inputs, outputs, width) = (self.places, self.inputs, self.outputs, self.width);
        let panel_len = (places * inputs * width).max(1);
        let fill = |(index, panel): (usize, &mut [T])| {
            let first = index * width;
            let used = width.min(outputs - first);
            for input in 0..inputs {
                for place in 0..places {
                    let row = &mut panel[(place * inputs + input) * width..][..used];
                    let from = &values[start(place, input) + first * step..][..(used - 1) * step + 1];
                    row.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, from)| *to = *from);
                }
            }
        };
        if places * inputs * outputs < WORTH_A_THREAD {
            self.data.chunks_exact_mut(panel_len).enumerate().for_each(fill);
        } else {
            self.data.par_chunks_exact_mut(panel_len).enumerate().for_each(fill);
        }
    }

    /// Sets the matrix of the only place by its rows.
    pub fn set_rows<'a>(&mut self, row: impl Fn(usize) -> &'a [T]) {
        let (inputs, outputs, width) = (self.inputs, self.outputs, self.width);
        for (index, panel) in self.data.chunks_exact_mut((inputs * width).max(1)).enumerate() {
            let (first, used) = (index * width, width.min(outputs - index * width));
            for (input, to) in panel.chunks_exact_mut(width).enumerate() {
                to[..used].copy_from_slice(&row(input)[first..][..used]);
            }
        }
    }

    /// Sets the matrix of the only place by its columns, and multiplies it.
    pub fn set_columns<'a>(&mut self, column: impl Fn(usize) -> &'a [T], factor: T) {
        let (inputs, outputs, width) = (self.inputs, self.outputs, self.width);
        for (index, panel) in self.data.chunks_exact_mut((inputs * width).max(1)).enumerate() {
            for (place, output) in (0..width).zip(index * width..outputs) {
                let to = panel[place..].iter_mut().step_by(width);
                to.zip(column(output)).for_each(|(to, from)| *to = factor * *from);
            }
        }
    }

    /// Sets what is added to every row of a product.
    pub fn set_bias(&mut self, bias: &[T]) {
        self.bias[..bias.len()].copy_from_slice(bias);
    }
}

/// Rows of one factor, and the place whose matrix is the other.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a, T> {
    /// The first rows of the result are made of the first of these, each of as many numbers as the matrix has rows.
    pub rows: &'a [T],
    /// Which matrix.
    pub place: usize,
}

/// Where a product reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct Strides {
    /// Numbers from row to row of a term.
    pub rows: usize,
    /// Numbers from row to row of the result.
    pub out: usize,
}

/// `out` (+)= Σ over `terms` of rows · matrix + bias, for as many rows as `out` has.
pub fn multiply<T: Real>(terms: &[Term<'_, T>], panels: &Panels<T>, strides: Strides, out: &mut [T], add: bool) {
    vectorise(Multiply { terms, panels, strides, out, add });
}

struct Multiply<'a, T> {
    terms: &'a [Term<'a, T>],
    panels: &'a Panels<T>,
    strides: Strides,
    out: &'a mut [T],
    add: bool,
}

impl<T: Real> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { terms, panels, strides, out, add } = self;
        let Panels { places, inputs, outputs, width, data, bias } = panels;
        if *inputs == 0 || *outputs == 0 {
            return;
        }
        // The last row may end with its last number.
        let rows = (out.len() + strides.out - outputs) / strides.out;
        let all = data.chunks_exact(places * inputs * width).zip(bias.chunks_exact(*width));
        for (index, (panel, bias)) in all.enumerate() {
            let tile = Tile { simd, terms, panel, bias, inputs: *inputs, strides, add };
            let (first, mut row) = (index * width, 0);
            let used = (*width).min(outputs - first);
            // As many rows at a time as their sums find registers.
            macro_rules! tiles {
                ($($rows:literal)*) => {$(
                    while rows - row >= $rows {
                        tile.rows::<$rows>(row, &mut out[row * strides.out + first..], used);
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

/// One panel at work.
struct Tile<'a, T, S> {
    simd: S,
    terms: &'a [Term<'a, T>],
    panel: &'a [T],
    bias: &'a [T],
    inputs: usize,
    strides: Strides,
    add: bool,
}

impl<T: Real, S: Simd> Tile<'_, T, S> {
    #[inline(always)]
    fn rows<const ROWS: usize>(&self, first: usize, out: &mut [T], used: usize) {
        let simd = self.simd;
        let size = self.inputs * self.bias.len();
        let mut sums = [[T::splat(simd, T::ZERO); ACROSS]; ROWS];
        for term in self.terms {
            let (matrix, _) = T::vectors::<S>(&self.panel[term.place * size..][..size]).as_chunks::<ACROSS>();
            let mut rows = [&term.rows[..0]; ROWS];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = &term.rows[(first + i) * self.strides.rows..][..matrix.len()];
            }
            for (k, b) in matrix.iter().enumerate() {
                for i in 0..ROWS {
                    let a = T::splat(simd, rows[i][k]);
                    for j in 0..ACROSS {
                        sums[i][j] = T::multiply_add(simd, a, b[j], sums[i][j]);
                    }
                }
            }
        }
        let bias = T::vectors::<S>(self.bias);
        let (b0, b1) = (bias[0], bias[1]);
        for sums in &mut sums {
            *sums = [T::plus(simd, sums[0], b0), T::plus(simd, sums[1], b1)];
        }
        if used < self.bias.len() {
            return store_beginning::<T, S, ROWS>(sums, out, self.strides.out, used, self.add);
        }
        for i in 0..ROWS {
            let out = T::vectors_mut::<S>(&mut out[i * self.strides.out..][..used]);
            out[0] = if self.add { T::plus(simd, out[0], sums[i][0]) } else { sums[i][0] };
            out[1] = if self.add { T::plus(simd, out[1], sums[i][1]) } else { sums[i][1] };
        }
    }
}

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
