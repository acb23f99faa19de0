//! The affine coupling of rows [N·H·W, C]: a ↦ (a + t)e^s of the first half of the channels, (s, t)
//! = NN(second half).

use super::super::GlowConfig;
use super::super::step::ARRAYS;
use super::ROWS;
use super::squeeze::Grid;
use crate::data::ImageShape;
use crate::kernels::{Buffer, Panels, Real, kernel};

/// Numbers of a hidden layer that are made together: the part that stays in the second cache.
const HIDDEN_NUMBERS: usize = 1 << 14;

/// Parameters of a coupling, its normalisations folded into the maps before them.
#[derive(Debug)]
pub(super) struct Coupling<T> {
    /// in_norm as x·a + c, [C/2] each.
    pub norm: [Vec<T>; 2],
    /// 3×3 convolution as a map of neighbourhoods [9·C/2] to h channels.
    pub input: Panels<T>,
    /// h to h channels.
    pub middle: Panels<T>,
    /// 3×3 convolution as a map to what a position contributes to its neighbourhood, [9·C].
    pub output: Panels<T>,
    /// [C], all s, then all t.
    bias: Vec<T>,
    /// [C/2], the bounds of |s|.
    pub scale: Vec<T>,
}

/// What a pass leaves for its reverse: the hidden layers [rows, h] after their relus, tanh and e^s
/// [rows, C/2].
#[derive(Debug)]
pub(super) struct Kept<'a, T> {
    pub hidden: [&'a mut [T]; 2],
    pub squashed: &'a mut [T],
    pub factor: &'a mut [T],
}

/// Memory of a coupling's pass over one block of images.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    /// relu(in_norm(x)) with a border of zeros.
    padded: Buffer<T>,
    /// Neighbourhoods, and both hidden layers, of some positions.
    near: Buffer<T>,
    hidden: [Buffer<T>; 2],
    /// What every position contributes to its neighbourhood.
    taps: Buffer<T>,
    /// (s, t) before the bound, [rows, C].
    outputs: Buffer<T>,
    /// s, and e^s or e^−s, [rows, C/2].
    s: Buffer<T>,
    factor: Buffer<T>,
}

impl<T: Real> Scratch<T> {
    /// Memory for the couplings of every level, which see `images` of a level's images together.
    pub fn new(config: &GlowConfig, images: impl Fn(ImageShape) -> usize) -> Self {
        let shapes = || (0..config.levels).map(|l| config.level_shape(l));
        let most = |of: &dyn Fn(ImageShape) -> usize| Buffer::zeros(shapes().map(of).max().unwrap_or(0));
        let rows = |shape: ImageShape| images(shape) * shape.height * shape.width;
        let chunk = chunk(config.hidden);
        Self {
            padded: most(&|s| images(s) * (s.height + 2) * (s.width + 2) * s.channels / 2),
            near: most(&|s| 9 * s.channels / 2 * chunk),
            hidden: [Buffer::zeros(chunk * config.hidden), Buffer::zeros(chunk * config.hidden)],
            taps: most(&|s| 9 * s.channels * rows(s)),
            outputs: most(&|s| s.channels * rows(s)),
            s: most(&|s| s.channels / 2 * rows(s)),
            factor: most(&|s| s.channels / 2 * rows(s)),
        }
    }
}

/// Positions whose hidden layers are made together: a number that tiles of 12, 8 and 4 rows fill.
pub(super) fn chunk(hidden: usize) -> usize {
    (HIDDEN_NUMBERS / hidden / 8 * 8).clamp(16, ROWS)
}

impl<T: Real> Coupling<T> {
    /// From all arrays of a step.
    pub fn new(arrays: &[&[T]; ARRAYS]) -> Self {
        let [_, _, a, c, input, input_bias, middle, middle_bias, output, bias, scale] = arrays;
        Self {
            norm: [a.to_vec(), c.to_vec()],
            input: Panels::new(input, input_bias),
            middle: Panels::new(middle, middle_bias),
            output: Panels::new(output, &vec![T::ZERO; 9 * bias.len()]),
            bias: bias.to_vec(),
            scale: scale.to_vec(),
        }
    }

    /// Changes the first half of the channels of `rows`, which are whole images of `grid`, and adds
    /// Σ s of each image to `sums`.
    pub fn run(&self, grid: Grid, rows: &mut [T], inverse: bool, scratch: &mut Scratch<T>, sums: &mut [f64]) {
        self.pass(grid, rows, inverse, scratch, sums, None);
    }

    /// [`Self::run`] forward, which leaves what its reverse needs.
    pub fn keep(&self, grid: Grid, rows: &mut [T], scratch: &mut Scratch<T>, sums: &mut [f64], kept: Kept<'_, T>) {
        self.pass(grid, rows, false, scratch, sums, Some(kept));
    }

    fn pass(
        &self,
        grid: Grid,
        rows: &mut [T],
        inverse: bool,
        scratch: &mut Scratch<T>,
        sums: &mut [f64],
        mut kept: Option<Kept<'_, T>>,
    ) {
        let Scratch { padded, near, hidden: [first, second], taps, outputs, s, factor } = scratch;
        let (count, half, hidden) = (rows.len() / grid.channels, grid.channels / 2, self.middle.outputs);
        condition(grid, rows, &self.norm, padded);
        let chunk = chunk(hidden);
        for start in (0..count).step_by(chunk) {
            let rows = start..(start + chunk).min(count);
            let near = &mut near[..rows.len() * 9 * half];
            neighbours(grid, rows.clone(), padded, near);
            let (first, second) = match &mut kept {
                None => (&mut first[..rows.len() * hidden], &mut second[..rows.len() * hidden]),
                Some(Kept { hidden: [first, second], .. }) => {
                    let part = rows.start * hidden..rows.end * hidden;
                    (&mut first[part.clone()], &mut second[part])
                }
            };
            self.input.apply(near, first);
            relu(first);
            self.middle.apply(first, second);
            relu(second);
            self.output.apply(second, &mut taps[rows.start * 9 * grid.channels..rows.end * 9 * grid.channels]);
        }
        let outputs = &mut outputs[..rows.len()];
        gather(grid, taps, &self.bias, outputs);
        let (s, factor) = (&mut s[..count * half], &mut factor[..count * half]);
        squash(outputs, half, s);
        if let Some(Kept { squashed, .. }) = &mut kept {
            squashed.copy_from_slice(s);
        }
        couple(rows, outputs, &self.scale, inverse, s, factor);
        if let Some(kept) = kept {
            kept.factor.copy_from_slice(factor);
        }
        for (sum, s) in sums.iter_mut().zip(s.chunks_exact(grid.positions() * half)) {
            *sum += s.iter().map(|s| s.wide()).sum::<f64>();
        }
    }
}

/// Runs a body in which the name is the number, a constant for the usual ones: loops and copies of a
/// known length need no counter and no call.
macro_rules! known {
    ($n:ident in [$($usual:literal)*] => $body:expr) => {
        match $n {
            $($usual => { let $n = $usual; $body })*
            $n => $body,
        }
    };
}

/// The neighbourhoods [9·C/2] of some positions, kernel positions outermost.
pub(super) fn neighbours<T: Real>(grid: Grid, rows: std::ops::Range<usize>, padded: &[T], near: &mut [T]) {
    let (half, wide) = (grid.channels / 2, grid.width + 2);
    known!(half in [2 4 8] => {
        for (row, near) in rows.zip(near.chunks_exact_mut(9 * half)) {
            let (image, position) = (row / grid.positions(), row % grid.positions());
            let top = image * (grid.height + 2) + position / grid.width;
            for (dy, near) in near.chunks_exact_mut(3 * half).enumerate() {
                let from = ((top + dy) * wide + position % grid.width) * half;
                near.copy_from_slice(&padded[from..][..3 * half]);
            }
        }
    });
}

kernel! {
    /// relu(x·a + c) of the second half of the channels, with a border of zeros around each image.
    pub condition<T, S>(grid: Grid, rows: &'a [T], norm: &'a [Vec<T>; 2], padded: &'a mut [T]) {
        let Grid { height, width, channels } = grid;
        let [a, c] = norm;
        let (half, wide) = (channels / 2, width + 2);
        let images =
            rows.chunks_exact(height * width * channels).zip(padded.chunks_exact_mut((height + 2) * wide * half));
        for (rows, padded) in images {
            padded.fill(T::ZERO);
            for (line, rows) in rows.chunks_exact(width * channels).enumerate() {
                let to = &mut padded[((line + 1) * wide + 1) * half..][..width * half];
                for (row, to) in rows.chunks_exact(channels).zip(to.chunks_exact_mut(half)) {
                    for ((to, x), (a, c)) in to.iter_mut().zip(&row[half..]).zip(a.iter().zip(c)) {
                        let value = T::fused::<S>(*x, *a, *c);
                        // NaN stays: what left the finite numbers is found by who asked.
                        *to = if value < T::ZERO { T::ZERO } else { value };
                    }
                }
            }
        }
    }
}

kernel! {
    /// x ← relu(x); NaN stays.
    relu<T, S>(x: &'a mut [T]) {
        for x in x.iter_mut() {
            *x = if *x < T::ZERO { T::ZERO } else { *x };
        }
    }
}

kernel! {
    /// Adds up what the neighbourhood of every position contributes to it, and the bias: [rows,
    /// 9·C] → [rows, C].
    gather<T, S>(grid: Grid, taps: &'a [T], bias: &'a [T], outputs: &'a mut [T]) {
        let channels = grid.channels;
        known!(channels in [4 8 16] => gather_by(grid, channels, taps, bias, outputs));
    }
}

/// [`gather`] of so many channels, a multiple of four.
#[inline(always)]
fn gather_by<T: Real>(grid: Grid, channels: usize, taps: &[T], bias: &[T], outputs: &mut [T]) {
    let Grid { height, width, .. } = grid;
    let (bias, _) = bias.as_chunks::<4>();
    for (line, outputs) in outputs.chunks_exact_mut(width * channels).enumerate() {
        // Lines of the neighbourhood that the image has.
        let y = line % height;
        let lines = usize::from(y == 0)..if y + 1 == height { 2 } else { 3 };
        for (x, out) in outputs.chunks_exact_mut(channels).enumerate() {
            let row = line * width + x;
            let inside = x > 0 && x + 1 < width;
            for (part, (out, bias)) in out.as_chunks_mut::<4>().0.iter_mut().zip(bias).enumerate() {
                let mut sum = *bias;
                for dy in lines.clone() {
                    let mut add = |dx: usize| {
                        let from = (row + dy * width + dx - width - 1) * 9 * channels + (3 * dy + dx) * channels;
                        let taps = &taps[from + part * 4..][..4];
                        for i in 0..4 {
                            sum[i] += taps[i];
                        }
                    };
                    if inside {
                        add(0);
                        add(1);
                        add(2);
                    } else {
                        (0..3).filter(|dx| (x + dx).wrapping_sub(1) < width).for_each(add);
                    }
                }
                *out = sum;
            }
        }
    }
}

kernel! {
    /// s = tanh(first half of the outputs).
    squash<T, S>(outputs: &'a [T], half: usize, s: &'a mut [T]) {
        known!(half in [2 4 8] => {
            for (s, outputs) in s.chunks_exact_mut(half).zip(outputs.chunks_exact(2 * half)) {
                s.copy_from_slice(&outputs[..half]);
            }
        });
        let two = T::ONE + T::ONE;
        for s in s.iter_mut() {
            *s = T::ONE - two / (T::ONE + T::exponential::<S>(two * *s));
        }
    }
}

kernel! {
    /// s ← scale·s, t = second half of the outputs; a ← (a + t)e^s, or back a ← a·e^−s − t.
    couple<T, S>(rows: &'a mut [T], outputs: &'a [T], scale: &'a [T], inverse: bool, s: &'a mut [T], factor: &'a mut [T]) {
        let half = scale.len();
        known!(half in [2 4 8] => {
            for s in s.chunks_exact_mut(half) {
                s.iter_mut().zip(scale).for_each(|(s, scale)| *s = *s * *scale);
            }
        });
        for (factor, s) in factor.iter_mut().zip(s.iter()) {
            *factor = T::exponential::<S>(if inverse { -*s } else { *s });
        }
        known!(half in [2 4 8] => {
            let all = rows.chunks_exact_mut(2 * half).zip(outputs.chunks_exact(2 * half));
            for ((row, outputs), factor) in all.zip(factor.chunks_exact(half)) {
                for ((a, t), factor) in row.iter_mut().zip(&outputs[half..]).zip(factor) {
                    *a = if inverse { *a * *factor - *t } else { (*a + *t) * *factor };
                }
            }
        });
    }
}
