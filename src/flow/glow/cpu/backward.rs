//! One step of flow backward: gradients of its rows and of every array, from what its pass left.

use super::coupling::{Coupling, Kept, chunk, condition, neighbours};
use super::squeeze::Grid;
use super::{ROWS, mixing};
use crate::data::ImageShape;
use crate::flow::glow::GlowConfig;
use crate::flow::glow::step::ARRAYS;
use crate::kernels::rows::add_rows;
use crate::kernels::{Buffer, LinearGradient, Panels, Real, Threads, add_transposed_product, kernel};

/// Numbers of the arrays of a step with `channels` channels, in the order of
/// [`crate::flow::glow::step::Step::arrays`].
pub(super) fn array_lens(channels: usize, hidden: usize) -> [usize; ARRAYS] {
    let half = channels / 2;
    let output = 9 * channels * hidden;
    [
        channels * channels,
        channels,
        half,
        half,
        9 * half * hidden,
        hidden,
        hidden * hidden,
        hidden,
        output,
        channels,
        half,
    ]
}

/// A step whose arrays are trained: packed for the way there and the way back.
#[derive(Debug)]
pub(super) struct TrainedStep<T> {
    pub mix: Panels<T>,
    pub coupling: Coupling<T>,
    /// Transposed: of the mixing map, and of the three maps of the network.
    back: [Panels<T>; 4],
}

impl<T: Real> TrainedStep<T> {
    /// From its arrays.
    pub fn new(arrays: &[&[T]; ARRAYS]) -> Self {
        let (mix, coupling) = (mixing(arrays), Coupling::new(arrays));
        let back = [&mix, &coupling.input, &coupling.middle, &coupling.output].map(|panels| {
            let mut back = Panels::default();
            panels.transpose_into(&mut back, Threads::One);
            back
        });
        Self { mix, coupling, back }
    }
}

/// What a step did to the rows of some whole images of `grid`.
pub(super) struct Passed<'a, T> {
    pub grid: Grid,
    /// Rows before and after the step.
    pub before: &'a [T],
    pub after: &'a [T],
    /// What its coupling left.
    pub kept: Kept<'a, T>,
    /// Gradient by Σ s of each image.
    pub sums: &'a [T],
}

/// Memory of a step's reverse over one block of images.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    /// relu(in_norm(x)) with a border of zeros, and its gradient.
    padded: [Buffer<T>; 2],
    /// Neighbourhoods of some positions, and their gradient.
    near: [Buffer<T>; 2],
    /// Gradients of both hidden layers of some positions.
    hidden: [Buffer<T>; 2],
    /// Gradient of what some positions contribute to their neighbourhoods.
    taps: Buffer<T>,
    /// Gradient of (s, t) before the bound, [rows, C].
    outputs: Buffer<T>,
    /// Of products.
    room: Buffer<T>,
}

impl<T: Real> Scratch<T> {
    /// For the steps of every level, which see `images` of a level's images together.
    pub fn new(config: &GlowConfig, images: impl Fn(ImageShape) -> usize) -> Self {
        let shapes = || (0..config.levels).map(|l| config.level_shape(l));
        let most = |of: &dyn Fn(ImageShape) -> usize| Buffer::zeros(shapes().map(of).max().unwrap_or(0));
        let padded = || most(&|s| images(s) * (s.height + 2) * (s.width + 2) * s.channels / 2);
        let chunk = chunk(config.hidden);
        let near = || most(&|s| 9 * s.channels / 2 * chunk);
        Self {
            padded: [padded(), padded()],
            near: [near(), near()],
            hidden: [Buffer::zeros(chunk * config.hidden), Buffer::zeros(chunk * config.hidden)],
            taps: most(&|s| 9 * s.channels * chunk),
            outputs: most(&|s| s.channels * images(s) * s.height * s.width),
            room: Buffer::default(),
        }
    }
}

impl<T: Real> TrainedStep<T> {
    /// From the gradient of the rows after the step, in `slope`, to that of the rows before it, in
    /// `into`; adds those of all arrays to `flat`.
    pub fn backward(
        &self,
        passed: Passed<'_, T>,
        slope: &mut [T],
        into: &mut [T],
        scratch: &mut Scratch<T>,
        flat: &mut [T],
    ) {
        let [c, hidden] = [passed.grid.channels, self.coupling.middle.outputs];
        let mut rest = flat;
        let [mix, shift, network @ ..] = array_lens(c, hidden).map(|len| {
            let (array, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            array
        });
        let before = passed.before;
        self.coupling_backward(passed, slope, scratch, network);
        LinearGradient { weight: mix, bias: shift }.add(slope, before, &mut scratch.room);
        self.back[0].apply(slope, into);
    }

    /// `slope` goes from the rows after the coupling to those before it.
    fn coupling_backward(
        &self,
        passed: Passed<'_, T>,
        slope: &mut [T],
        scratch: &mut Scratch<T>,
        [a, c, input, input_bias, middle, middle_bias, output, bias, scale]: [&mut [T]; ARRAYS - 2],
    ) {
        let Passed { grid, after, kept: Kept { hidden: [first, second], squashed, factor }, sums, .. } = passed;
        let Scratch {
            padded: [padded, by_padded],
            near: [near, by_near],
            hidden: [by_first, by_second],
            taps,
            outputs,
            room,
        } = scratch;
        let (channels, half, width) = (grid.channels, grid.channels / 2, self.coupling.middle.outputs);
        let (count, image) = (slope.len() / channels, grid.positions());
        let outputs = &mut outputs[..slope.len()];
        let rows = slope.chunks_exact_mut(image * channels).zip(after.chunks_exact(image * channels));
        let rows = rows.zip(squashed.chunks_exact(image * half).zip(factor.chunks_exact(image * half)));
        for ((((slope, after), kept), sum), outputs) in rows.zip(sums).zip(outputs.chunks_exact_mut(image * channels)) {
            uncouple(after, kept, &self.coupling.scale, *sum, slope, outputs, scale);
        }
        add_rows(outputs, bias);
        condition(grid, after, &self.coupling.norm, padded);
        let padded_len = count / image * (grid.height + 2) * (grid.width + 2) * half;
        by_padded[..padded_len].fill(T::ZERO);
        let chunk = chunk(width).min(ROWS);
        for start in (0..count).step_by(chunk) {
            let rows = start..(start + chunk).min(count);
            let (n, part) = (rows.len(), rows.start * width..rows.end * width);
            let (first, second) = (&first[part.clone()], &second[part]);
            let taps = &mut taps[..n * 9 * channels];
            spread(grid, rows.start, outputs, taps);
            add_transposed_product(taps, second, [9 * channels, width], 0, output, room);
            let by_second = &mut by_second[..n * width];
            self.back[3].apply(taps, by_second);
            relu_backward(second, by_second);
            LinearGradient { weight: middle, bias: middle_bias }.add(by_second, first, room);
            let by_first = &mut by_first[..n * width];
            self.back[2].apply(by_second, by_first);
            relu_backward(first, by_first);
            let (near, by_near) = (&mut near[..n * 9 * half], &mut by_near[..n * 9 * half]);
            neighbours(grid, rows.clone(), padded, near);
            LinearGradient { weight: input, bias: input_bias }.add(by_first, near, room);
            self.back[1].apply(by_first, by_near);
            add_neighbours(grid, rows, by_near, by_padded);
        }
        uncondition(grid, after, &self.coupling.norm, [padded, by_padded], slope, [a, c]);
    }
}

/// Adds the gradients of neighbourhoods [9·C/2] to those of the positions in them, borders too.
fn add_neighbours<T: Real>(grid: Grid, rows: std::ops::Range<usize>, near: &[T], padded: &mut [T]) {
    let (half, wide) = (grid.channels / 2, grid.width + 2);
    for (row, near) in rows.zip(near.chunks_exact(9 * half)) {
        let (image, position) = (row / grid.positions(), row % grid.positions());
        let top = image * (grid.height + 2) + position / grid.width;
        for (dy, near) in near.chunks_exact(3 * half).enumerate() {
            let to = ((top + dy) * wide + position % grid.width) * half;
            padded[to..][..3 * half].iter_mut().zip(near).for_each(|(sum, x)| *sum += *x);
        }
    }
}

kernel! {
    /// Reverse of a coupling a ↦ (a + t)e^s, s = scale·tanh(u), for the rows of one image: `slope`
    /// of the first half of the channels goes from the result to a, `outputs` receives the gradients
    /// of (u, t), and `scales` those of the bounds are added to. `sum` is the gradient of Σ s.
    uncouple<T, S>(
        after: &'a [T],
        kept: (&'a [T], &'a [T]),
        scale: &'a [T],
        sum: T,
        slope: &'a mut [T],
        outputs: &'a mut [T],
        scales: &'a mut [T],
    ) {
        let (half, channels) = (scale.len(), 2 * scale.len());
        let rows = after.chunks_exact(channels).zip(slope.chunks_exact_mut(channels)).zip(outputs.chunks_exact_mut(channels));
        let kept = kept.0.chunks_exact(half).zip(kept.1.chunks_exact(half));
        for (((after, slope), outputs), (squashed, factor)) in rows.zip(kept) {
            let (by_u, by_t) = outputs.split_at_mut(half);
            for j in 0..half {
                let by_s = T::fused::<S>(slope[j], after[j], sum);
                scales[j] = T::fused::<S>(by_s, squashed[j], scales[j]);
                by_u[j] = by_s * scale[j] * (T::ONE - squashed[j] * squashed[j]);
                slope[j] = slope[j] * factor[j];
                by_t[j] = slope[j];
            }
        }
    }
}

kernel! {
    /// Reverse of the sum over neighbours, for rows from `first` on: what a position contributes to
    /// a neighbour has that neighbour's gradient, [rows, 9·C], and 0 beyond the border.
    spread<T, S>(grid: Grid, first: usize, outputs: &'a [T], taps: &'a mut [T]) {
        let Grid { height, width, channels } = grid;
        for (row, taps) in (first..).zip(taps.chunks_exact_mut(9 * channels)) {
            let (y, x) = (row / width % height, row % width);
            for (k, tap) in taps.chunks_exact_mut(channels).enumerate() {
                let (dy, dx) = (k / 3, k % 3);
                // The place that lies at this distance before it; unsigned: beyond either border.
                if (y + 1).wrapping_sub(dy) >= height || (x + 1).wrapping_sub(dx) >= width {
                    tap.fill(T::ZERO);
                    continue;
                }
                let from = (row + width + 1 - dy * width - dx) * channels;
                tap.copy_from_slice(&outputs[from..][..channels]);
            }
        }
    }
}

kernel! {
    /// slope ← slope where the relu let its argument pass, 0 elsewhere.
    relu_backward<T, S>(active: &'a [T], slope: &'a mut [T]) {
        for (slope, x) in slope.iter_mut().zip(active) {
            *slope = if *x == T::ZERO { T::ZERO } else { *slope };
        }
    }
}

kernel! {
    /// Reverse of [`condition`]: adds to the second half of the channels of `slope`, and to the
    /// gradients of a and c. `padded` are the values and their gradients.
    uncondition<T, S>(
        grid: Grid,
        rows: &'a [T],
        norm: &'a [Vec<T>; 2],
        padded: [&'a [T]; 2],
        slope: &'a mut [T],
        sums: [&'a mut [T]; 2],
    ) {
        let Grid { height, width, channels } = grid;
        let ([a, _], [by_a, by_c], [values, slopes]) = (norm, sums, padded);
        let (half, wide) = (channels / 2, width + 2);
        let image = height * width * channels;
        let all = rows.chunks_exact(image).zip(slope.chunks_exact_mut(image));
        for (i, (rows, slope)) in all.enumerate() {
            let lines = rows.chunks_exact(width * channels).zip(slope.chunks_exact_mut(width * channels));
            for (line, (rows, slope)) in lines.enumerate() {
                let from = ((i * (height + 2) + line + 1) * wide + 1) * half;
                let inner = values[from..][..width * half].chunks_exact(half).zip(slopes[from..][..width * half].chunks_exact(half));
                for ((row, slope), (values, slopes)) in
                    rows.chunks_exact(channels).zip(slope.chunks_exact_mut(channels)).zip(inner)
                {
                    let (row, slope) = (&row[half..], &mut slope[half..]);
                    for j in 0..half {
                        let by = if values[j] == T::ZERO { T::ZERO } else { slopes[j] };
                        by_a[j] = T::fused::<S>(by, row[j], by_a[j]);
                        by_c[j] += by;
                        slope[j] = T::fused::<S>(by, a[j], slope[j]);
                    }
                }
            }
        }
    }
}
