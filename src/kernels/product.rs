//! Matrix products with packed weights. Every number of a result is one sum in the order of the
//! inputs, whatever else is computed beside it: rows come out the same in whatever batch they
//! stand.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::{Buffer, Real, kernel, vectorise};

/// Registers side by side in a tile of the result.
pub(super) const ACROSS: usize = 2;

/// Products and additions below which a second thread costs more than it saves.
pub const WORTH_A_THREAD: usize = 1 << 18;

/// Rows of the result made at a time: enough to share a pass over the weights, few enough to stay in
/// the cache of a core with them. Whole tiles of 12 and of 6.
const BLOCK: usize = 96;

/// Which threads work on a kernel. No result depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The calling one: the caller has divided the images already.
    One,
    /// All of rayon's pool.
    All,
}

impl Threads {
    /// Whether there is more than one.
    pub fn several(self) -> bool {
        self == Self::All && rayon::current_num_threads() > 1
    }
}

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

/// Some matrices [inputs, outputs], one for each place, in panels of as many outputs as a tile of
/// the product is wide.
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
    /// One matrix from `weight` [outputs, inputs], and `bias` [outputs].
    pub fn new(weight: &[T], bias: &[T]) -> Self {
        let mut panels = Self::default();
        panels.set(weight, bias, Threads::One);
        panels
    }

    /// Other numbers for [`Self::new`], in the memory of earlier ones.
    pub fn set(&mut self, weight: &[T], bias: &[T], threads: Threads) {
        let (outputs, inputs) = (bias.len(), weight.len() / bias.len().max(1));
        self.size(1, inputs, outputs);
        self.fill(weight, |_, input| input, inputs, threads);
        self.set_bias(bias);
    }

    /// Sets `into` to the only matrix transposed, without bias.
    pub fn transpose_into(&self, into: &mut Self, threads: Threads) {
        into.size(1, self.outputs, self.inputs);
        let start = |_, output: usize| (output / self.width) * self.inputs * self.width + output % self.width;
        into.fill(&self.data, start, self.width, threads);
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
        multiply(&[Term { rows: a, place: 0 }], self, &mut out[..rows * self.outputs], add);
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

    /// Sets every entry: those of an input of a place are `step` apart in `values` from
    /// `start(place, input)` on.
    pub fn fill(&mut self, values: &[T], start: impl Fn(usize, usize) -> usize + Sync, step: usize, threads: Threads) {
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
        if !threads.several() || places * inputs * outputs < WORTH_A_THREAD {
            self.data.chunks_exact_mut(panel_len).enumerate().for_each(fill);
        } else {
            self.data.par_chunks_exact_mut(panel_len).enumerate().for_each(fill);
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
    /// [rows, inputs]: the first row of the result is made of the first of these.
    pub rows: &'a [T],
    /// Which matrix.
    pub place: usize,
}

/// Runs `$body` for one tile after the other, with `$row` as its first row and the constant `$count`
/// as the number of its rows: as many as their sums find registers, of 32 or of fewer. (`const`, so
/// that tiles for registers that there are not are not compiled.)
macro_rules! each_tile {
    ($registers:ident, $rows:expr, $row:ident, $count:ident => $body:block) => {
        each_tile!($registers, $rows, $row, $count in [12 8] or [6] => $body)
    };
    ($registers:ident, $rows:expr, $row:ident, $count:ident in [$($many:literal)*] or [$($few:literal)*] => $body:block) => {{
        let mut $row = 0;
        if const { $registers::REGISTER_COUNT >= 32 } {
            each_tile!(@ $rows, $row, $count => $body; $($many)*);
        } else {
            each_tile!(@ $rows, $row, $count => $body; $($few)*);
        }
        each_tile!(@ $rows, $row, $count => $body; 4 2 1);
    }};
    (@ $rows:expr, $row:ident, $count:ident => $body:block; $($number:literal)*) => {$(
        while $rows - $row >= $number {
            const $count: usize = $number;
            $body
            $row += $number;
        }
    )*};
}
pub(super) use each_tile;

kernel! {
    /// `out` (+)= Σ over `terms` of rows · matrix + bias, for as many rows as `out` has.
    pub multiply<T, S, simd>(
        terms: &'a [Term<'a, T>],
        panels: &'a Panels<T>,
        out: &'a mut [T],
        add: bool,
    ) {
        let Panels { places, inputs, outputs, width, data, bias } = panels;
        if *inputs == 0 || *outputs == 0 {
            return;
        }
        for (block, out) in out.chunks_mut(BLOCK * outputs).enumerate() {
            let (start, rows) = (block * BLOCK, out.len() / outputs);
            let all = data.chunks_exact(places * inputs * width).zip(bias.chunks_exact(*width));
            for (index, (panel, bias)) in all.enumerate() {
                let tile = Tile { simd, terms, panel, bias, inputs: *inputs, outputs: *outputs, add };
                let first = index * width;
                let used = (*width).min(outputs - first);
                // Half a tile where no more of it is used.
                if used <= T::lanes::<S>() {
                    each_tile!(S, rows, row, ROWS => {
                        tile.rows::<ROWS, 1>(start + row, &mut out[row * outputs + first..], used);
                    });
                } else {
                    each_tile!(S, rows, row, ROWS => {
                        tile.rows::<ROWS, ACROSS>(start + row, &mut out[row * outputs + first..], used);
                    });
                }
            }
        }
    }
}

/// `out` [position, rows, outputs] (+)= Σ over the terms of a position, named by place and position
/// of `x` [.., rows, inputs]. Divided among all threads.
pub fn multiply_all<T: Real>(
    x: &[T],
    rows: usize,
    terms: impl Fn(usize) -> Vec<(usize, usize)> + Sync,
    panels: &Panels<T>,
    out: &mut [T],
    add: bool,
) {
    let (inputs, outputs) = (panels.inputs, panels.outputs);
    let threads = rayon::current_num_threads();
    let positions = out.len() / (rows * outputs).max(1);
    // Where there are few positions, their rows are divided among threads too.
    let size = if threads == 1 || positions >= 8 * threads { rows } else { BLOCK.min(rows) };
    let work = |(position, out): (usize, &mut [T])| {
        let terms = terms(position);
        let block = |(index, out): (usize, &mut [T])| {
            let first = index * size * inputs;
            let term = |&(place, source): &(usize, usize)| Term { rows: &x[source * rows * inputs + first..], place };
            multiply(&terms.iter().map(term).collect::<Vec<_>>(), panels, out, add);
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

/// One panel at work.
struct Tile<'a, T, S> {
    simd: S,
    terms: &'a [Term<'a, T>],
    panel: &'a [T],
    bias: &'a [T],
    inputs: usize,
    outputs: usize,
    add: bool,
}

/// Runs `$body` with `$i` from 0 up to the constant `$n`, at most 12. The compiler does not unroll a
/// loop over so many rows by itself, and sums that are indexed by a variable do not stay in registers.
macro_rules! unrolled {
    ($i:ident < $n:ident => $body:block) => { unrolled!(@ $i $n $body 0 1 2 3 4 5 6 7 8 9 10 11) };
    (@ $i:ident $n:ident $body:block $($number:literal)*) => {$(
        if const { $number < $n } {
            let $i = $number;
            $body
        }
    )*};
}
pub(super) use unrolled;

impl<T: Real, S: Simd> Tile<'_, T, S> {
    /// Rows `first` … of the first WIDE registers of the panel.
    #[inline(always)]
    fn rows<const ROWS: usize, const WIDE: usize>(&self, first: usize, out: &mut [T], used: usize) {
        let simd = self.simd;
        let size = self.inputs * self.bias.len();
        let mut sums = [[T::splat(simd, T::ZERO); WIDE]; ROWS];
        for term in self.terms {
            let (matrix, _) = T::vectors::<S>(&self.panel[term.place * size..][..size]).as_chunks::<ACROSS>();
            let mut rows = [&term.rows[..0]; ROWS];
            unrolled!(i < ROWS => { rows[i] = &term.rows[(first + i) * self.inputs..][..matrix.len()]; });
            for (k, b) in matrix.iter().enumerate() {
                unrolled!(i < ROWS => {
                    let a = T::splat(simd, rows[i][k]);
                    for j in 0..WIDE {
                        sums[i][j] = T::multiply_add(simd, a, b[j], sums[i][j]);
                    }
                });
            }
        }
        let bias = T::vectors::<S>(self.bias);
        unrolled!(i < ROWS => {
            for j in 0..WIDE {
                sums[i][j] = T::plus(simd, sums[i][j], bias[j]);
            }
        });
        unrolled!(i < ROWS => { store::<T, S, WIDE>(simd, sums[i], &mut out[i * self.outputs..][..used], self.add); });
    }
}

/// Writes or adds a row of a tile, as far as `out` goes.
#[inline(always)]
pub(super) fn store<T: Real, S: Simd, const WIDE: usize>(
    simd: S,
    sums: [T::Vector<S>; WIDE],
    out: &mut [T],
    add: bool,
) {
    let used = out.len();
    if used == WIDE * T::lanes::<S>() {
        let out = T::vectors_mut::<S>(out);
        for j in 0..WIDE {
            out[j] = if add { T::plus(simd, out[j], sums[j]) } else { sums[j] };
        }
        return;
    }
    for (j, sum) in sums.into_iter().enumerate() {
        let out = &mut out[(j * T::lanes::<S>()).min(used)..((j + 1) * T::lanes::<S>()).min(used)];
        let sum = if add { T::plus(simd, T::beginning(simd, out), sum) } else { sum };
        T::write_beginning(simd, sum, out);
    }
}
