//! Matrix products with packed weights. Every number of a result is one sum in the order of the inputs, whatever else is
//! computed beside it: rows come out the same in whatever batch they stand.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::{Buffer, Real, vectorise};

/// Registers side by side in a tile of the result.
pub(super) const ACROSS: usize = 2;

/// Products and additions below which a second thread costs more than it saves.
pub const WORTH_A_THREAD: usize = 1 << 18;

/// Columns of a tile.
fn tile_width<T: Real>() -> usize {
    struct Width<T>(std::marker::PhantomData<T>);
    impl<T: Real> WithSimd for Width<T> {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            ACROSS * T::lanes::<S>()
        }
    }
    vectorise(Width::<T>(std::marker::PhantomData))
}

/// Some matrices [inputs, outputs], one for each place, in panels of as many outputs as a tile of the product is wide.
#[derive(Debug, Default)]
pub struct Panels<T> {
    places: usize,
    /// Rows of a matrix.
    pub inputs: usize,
    /// Columns of a matrix.
    pub outputs: usize,
    width: usize,
    /// [panel, place, input, output in panel], zeros beyond the last output.
    data: Buffer<T>,
    /// [panel, output in panel].
    bias: Buffer<T>,
}

impl<T: Real> Panels<T> {
    /// One matrix whose entry for an input and an output is `at(input, output)`, and what is added to every output.
    pub fn of(inputs: usize, outputs: usize, at: impl Fn(usize, usize) -> T, bias: impl Fn(usize) -> T) -> Self {
        let mut panels = Self::default();
        panels.size(1, inputs, outputs);
        for output in 0..outputs {
            panels.bias[output] = bias(output);
            for input in 0..inputs {
                let entry = panels.entry(input, output);
                panels.data[entry] = at(input, output);
            }
        }
        panels
    }

    /// Where an entry of the only matrix lies.
    fn entry(&self, input: usize, output: usize) -> usize {
        ((output / self.width) * self.inputs + input) * self.width + output % self.width
    }

    /// One entry of the only matrix.
    pub fn at(&self, input: usize, output: usize) -> T {
        self.data[self.entry(input, output)]
    }

    /// The only matrix transposed, without bias.
    pub fn transposed(&self) -> Self {
        Self::of(self.outputs, self.inputs, |input, output| self.at(output, input), |_| T::ZERO)
    }

    /// `out` [rows, outputs] = `a` [rows, inputs] · the only matrix + bias.
    pub fn apply(&self, a: &[T], out: &mut [T]) {
        self.rows(a, out, false);
    }

    /// `out` [rows, outputs] += `a` [rows, inputs] · the only matrix + bias.
    pub fn apply_add(&self, a: &[T], out: &mut [T]) {
        self.rows(a, out, true);
    }

    /// For as many rows as both have.
    fn rows(&self, a: &[T], out: &mut [T], add: bool) {
        if self.inputs == 0 || self.outputs == 0 {
            return;
        }
        let rows = (a.len() / self.inputs).min(out.len() / self.outputs);
        let strides = Strides { rows: self.inputs, out: self.outputs };
        multiply(&[Term { rows: a, place: 0 }], self, strides, &mut out[..rows * self.outputs], add);
    }

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

/// Writes or adds a tile of which only the first `width` columns are there.
#[inline(always)]
pub(super) fn store_beginning<T: Real, S: Simd, const ROWS: usize>(
    sums: [[T::Vector<S>; ACROSS]; ROWS],
    out: &mut [T],
    stride: usize,
    width: usize,
    add: bool,
) {
    for (out, sums) in out.chunks_mut(stride).zip(&sums) {
        for (out, sum) in out[..width].iter_mut().zip(T::scalars::<S>(sums)) {
            *out = if add { *out + *sum } else { *sum };
        }
    }
}
