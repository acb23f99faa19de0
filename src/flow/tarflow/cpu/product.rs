//! Matrix products with packed weights. Every number of a result is one sum in the order of the inputs, whatever else is
//! computed beside it: rows come out the same in whatever batch they stand.

use pulp::{Simd, WithSimd};

use super::real::Real;
use super::simd::Buffer;
use crate::simd::vectorise;

/// Registers side by side in a tile of the result.
pub const ACROSS: usize = 2;

/// Matrix [inputs, outputs] and bias, cut into panels of as many outputs as a tile is wide.
#[derive(Debug)]
pub struct Packed<T> {
    /// Rows of the matrix.
    pub inputs: usize,
    /// Columns of the matrix.
    pub outputs: usize,
    width: usize,
    /// [panel, input, output in panel], zeros beyond the last output.
    panels: Buffer<T>,
    /// [panel, output in panel].
    bias: Buffer<T>,
}

impl<T: Real> Packed<T> {
    /// Packs the matrix whose entry for an input and an output is `at(input, output)`.
    pub fn new(inputs: usize, outputs: usize, at: impl Fn(usize, usize) -> T, bias: impl Fn(usize) -> T) -> Self {
        let width = tile_width::<T>();
        let count = outputs.div_ceil(width);
        let mut packed = Self {
            inputs,
            outputs,
            width,
            panels: Buffer::zeros(count * inputs * width),
            bias: Buffer::zeros(count * width),
        };
        for output in 0..outputs {
            let (panel, column) = (output / width, output % width);
            packed.bias[output] = bias(output);
            for input in 0..inputs {
                packed.panels[(panel * inputs + input) * width + column] = at(input, output);
            }
        }
        packed
    }

    /// One entry of the matrix.
    pub fn at(&self, input: usize, output: usize) -> T {
        self.panels[((output / self.width) * self.inputs + input) * self.width + output % self.width]
    }

    /// The transposed matrix, without bias.
    pub fn transposed(&self) -> Self {
        Self::new(self.outputs, self.inputs, |input, output| self.at(output, input), |_| T::ZERO)
    }

    /// `out` [rows, outputs] = `a` [rows, inputs] · matrix + bias.
    pub fn apply(&self, a: &[T], out: &mut [T]) {
        vectorise(Product { a, packed: self, out, add: false });
    }

    /// `out` [rows, outputs] += `a` [rows, inputs] · matrix + bias.
    pub fn apply_add(&self, a: &[T], out: &mut [T]) {
        vectorise(Product { a, packed: self, out, add: true });
    }
}

/// Columns of a tile.
pub fn tile_width<T: Real>() -> usize {
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

struct Product<'a, T> {
    a: &'a [T],
    packed: &'a Packed<T>,
    out: &'a mut [T],
    add: bool,
}

impl<T: Real> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, packed, out, add } = self;
        let (inputs, outputs, width) = (packed.inputs, packed.outputs, ACROSS * T::lanes::<S>());
        if inputs == 0 || outputs == 0 {
            return;
        }
        let panels = packed.panels.chunks_exact(inputs * width).zip(packed.bias.chunks_exact(width));
        for (index, (panel, bias)) in panels.enumerate() {
            let tile = Tile { simd, panel, bias, first: index * width, inputs, outputs, add };
            let mut rows = a.chunks_exact(inputs).len().min(out.len() / outputs);
            let (mut a, mut out) = (a, &mut *out);
            // As many rows at a time as their sums find registers.
            macro_rules! tiles {
                ($($rows:literal)*) => {$(
                    while rows >= $rows {
                        let (these, rest) = a.split_at($rows * inputs);
                        let (into, beyond) = std::mem::take(&mut out).split_at_mut($rows * outputs);
                        tile.rows::<$rows>(these, into);
                        (a, out, rows) = (rest, beyond, rows - $rows);
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
    panel: &'a [T],
    bias: &'a [T],
    first: usize,
    inputs: usize,
    outputs: usize,
    add: bool,
}

impl<T: Real, S: Simd> Tile<'_, T, S> {
    #[inline(always)]
    fn rows<const ROWS: usize>(&self, a: &[T], out: &mut [T]) {
        let simd = self.simd;
        let (matrix, _) = T::vectors::<S>(self.panel).as_chunks::<ACROSS>();
        let mut a_rows = [a; ROWS];
        for (i, row) in a_rows.iter_mut().enumerate() {
            *row = &a[i * self.inputs..][..matrix.len()];
        }
        let mut sums = [[T::splat(simd, T::ZERO); ACROSS]; ROWS];
        for (k, b) in matrix.iter().enumerate() {
            for i in 0..ROWS {
                let a = T::splat(simd, a_rows[i][k]);
                for j in 0..ACROSS {
                    sums[i][j] = T::multiply_add(simd, a, b[j], sums[i][j]);
                }
            }
        }
        let (bias, width) = (T::vectors::<S>(self.bias), (self.outputs - self.first).min(self.bias.len()));
        let (b0, b1) = (bias[0], bias[1]);
        for sums in &mut sums {
            *sums = [T::plus(simd, sums[0], b0), T::plus(simd, sums[1], b1)];
        }
        let out = &mut out[self.first..];
        if width < self.bias.len() {
            store_beginning::<T, S, ROWS>(sums, out, self.outputs, width, self.add);
        } else if self.add {
            for i in 0..ROWS {
                let out = T::vectors_mut::<S>(&mut out[i * self.outputs..][..width]);
                out[0] = T::plus(simd, out[0], sums[i][0]);
                out[1] = T::plus(simd, out[1], sums[i][1]);
            }
        } else {
            for i in 0..ROWS {
                let out = T::vectors_mut::<S>(&mut out[i * self.outputs..][..width]);
                out[0] = sums[i][0];
                out[1] = sums[i][1];
            }
        }
    }
}

/// Writes or adds a tile of which only the first `width` columns are there.
#[inline(always)]
pub fn store_beginning<T: Real, S: Simd, const ROWS: usize>(
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
