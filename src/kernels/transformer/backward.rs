//! The way back through a Transformer layer.

use rayon::prelude::*;

use super::{ARRAYS, Activations, BLOCK, Layer, Span};
use crate::kernels::attention::Scratch;
use crate::kernels::linear::LinearGradient;
use crate::kernels::rows::{add_rows, gelu_backward};
use crate::kernels::{Buffer, Real, Threads, add_transposed_product};

/// Rows whose part of the gradients of the weights is summed at once, or those of a block where it
/// has more.
const UNIT: usize = 1024;

/// Arrays of a [`Way`].
const WAYS: usize = 7;

/// What rows leave on their way back for the gradients of the weights, a row per token.
#[derive(Debug)]
struct Way<A> {
    /// Gradient of the layer's result, [rows, C].
    result: A,
    /// MLP after GELU, [rows, hidden].
    active: A,
    /// Gradient of the MLP before GELU, [rows, hidden].
    hidden: A,
    /// Normalised stream before the MLP, [rows, C].
    mlp_normed: A,
    /// Gradient of the stream between attention and MLP, [rows, C].
    middle: A,
    /// Gradient of queries, keys and values, [rows, 3C].
    qkv: A,
    /// Normalised stream before the attention, [rows, C].
    attention_normed: A,
}

/// Rows that one thread takes.
struct Block<'a, T> {
    /// Their first row in the activations.
    first: usize,
    /// From the gradient of the layer's result to that of its input, [rows, C].
    stream: &'a mut [T],
    way: Way<&'a mut [T]>,
}

/// A part of the gradient of a weight that one thread sums: Σ over rows of slopeᵀ·x, from column
/// `left` of `slope` on.
struct Sum<'a, T> {
    slope: &'a [T],
    x: &'a [T],
    /// Columns of `slope` and of `x`.
    columns: [usize; 2],
    left: usize,
    into: &'a mut [T],
}

impl<A> Way<A> {
    fn from([result, active, hidden, mlp_normed, middle, qkv, attention_normed]: [A; WAYS]) -> Self {
        Self { result, active, hidden, mlp_normed, middle, qkv, attention_normed }
    }
}

/// Numbers of a row of each array of a [`Way`].
fn way_widths([c, hidden]: [usize; 2]) -> [usize; WAYS] {
    [c, hidden, hidden, c, c, 3 * c, c]
}

/// What one thread needs for the rows it takes.
#[derive(Debug)]
struct Room<T> {
    normed: Buffer<T>,
    attention: Scratch<T>,
}

/// Room for rows on their way back through layers.
#[derive(Debug)]
pub struct Slopes<T> {
    way: [Buffer<T>; WAYS],
    room: Room<T>,
    /// Scratch of products of gradients, for each thread.
    outer: Vec<Buffer<T>>,
}

impl<T: Real> Slopes<T> {
    /// For images of so many tokens through layers of so many channels.
    pub fn new(widths: [usize; 2], tokens: usize, threads: Threads) -> Self {
        let workers = if threads.several() { rayon::current_num_threads() } else { 1 };
        // What these rows leave stays in the caches until the gradients of the weights are summed.
        let rows = unit(tokens) * workers;
        Self {
            way: way_widths(widths).map(|width| Buffer::zeros(rows * width)),
            room: Room::new(widths, tokens),
            outer: (0..workers).map(|_| Buffer::default()).collect(),
        }
    }

    /// Scratch of products of gradients.
    pub fn outer(&mut self) -> &mut Buffer<T> {
        &mut self.outer[0]
    }
}

impl<T: Real> Room<T> {
    fn new([channels, _]: [usize; 2], tokens: usize) -> Self {
        Self { normed: Buffer::zeros(block(tokens) * channels), attention: Scratch::new(tokens) }
    }
}

/// Rows that one thread takes at a time: whole images.
pub(super) fn block(tokens: usize) -> usize {
    BLOCK.div_ceil(tokens.max(1)) * tokens
}

/// Rows of a unit: whole blocks.
fn unit(tokens: usize) -> usize {
    (UNIT / block(tokens).max(1)).max(1) * block(tokens)
}

/// Gradients of [`ARRAYS`], added to.
#[derive(Debug)]
pub struct LayerGradient<'a, T> {
    pub(super) attention_norm: [&'a mut [T]; 2],
    pub(super) qkv: LinearGradient<'a, T>,
    pub(super) proj: LinearGradient<'a, T>,
    pub(super) mlp_norm: [&'a mut [T]; 2],
    pub(super) expand: LinearGradient<'a, T>,
    pub(super) contract: LinearGradient<'a, T>,
}

impl<'a, T> From<[&'a mut [T]; ARRAYS]> for LayerGradient<'a, T> {
    fn from([a, b, c, d, e, f, g, h, i, j, k, l]: [&'a mut [T]; ARRAYS]) -> Self {
        Self {
            attention_norm: [a, b],
            qkv: LinearGradient { weight: c, bias: d },
            proj: LinearGradient { weight: e, bias: f },
            mlp_norm: [g, h],
            expand: LinearGradient { weight: i, bias: j },
            contract: LinearGradient { weight: k, bias: l },
        }
    }
}

impl<T: Real> LayerGradient<'_, T> {
    /// Those of one number a channel.
    fn vectors(&mut self) -> [&mut [T]; 8] {
        let ([a, b], [c, d]) = (&mut self.attention_norm, &mut self.mlp_norm);
        [a, b, c, d, self.qkv.bias, self.proj.bias, self.expand.bias, self.contract.bias]
    }
}

impl<T: Real> Layer<T> {
    /// `stream` from the gradient of the layer's result to that of its input, in place. Adds the
    /// gradients of the parameters to `gradient`. After [`Self::forward`] with kept activations.
    pub fn backward(
        &self,
        stream: &mut [T],
        span: Span<'_>,
        activations: &Activations<T>,
        slopes: &mut Slopes<T>,
        mut gradient: Option<LayerGradient<'_, T>>,
    ) {
        let (widths, tokens) = (self.widths(), span.tokens);
        // Of the threads there were when room was made, not of those there are now.
        let at_once = unit(tokens) * slopes.outer.len();
        for (index, stream) in stream[..span.rows() * widths[0]].chunks_mut(at_once * widths[0]).enumerate() {
            let (first, rows) = (index * at_once, stream.len() / widths[0]);
            let mut way = way_widths(widths).into_iter();
            let mut rest = slopes.way.each_mut().map(|array| &mut array[..rows * way.next().unwrap_or(0)]);
            let size = block(tokens);
            let blocks = stream.chunks_mut(size * widths[0]).enumerate().map(|(index, stream)| {
                let rows = stream.len() / widths[0];
                let mut way = way_widths(widths).into_iter();
                let way = rest.each_mut().map(|array| {
                    let count = rows * way.next().unwrap_or(0);
                    array.split_off_mut(..count).unwrap_or_default()
                });
                Block { first: first + index * size, stream, way: Way::from(way) }
            });
            let wanted = gradient.is_some();
            let back =
                |room: &mut Room<T>, block: Block<'_, T>| self.block_backward(block, span, activations, room, wanted);
            let sums: Vec<[Vec<T>; 8]> = if span.threads.several() {
                let blocks: Vec<_> = blocks.collect();
                blocks.into_par_iter().map_init(|| Room::new(widths, tokens), back).collect()
            } else {
                blocks.map(|block| back(&mut slopes.room, block)).collect()
            };
            let Some(gradient) = &mut gradient else { continue };
            for sums in sums {
                gradient.vectors().into_iter().zip(&sums).for_each(|(into, sums)| add_rows(sums, into));
            }
            let mut way = way_widths(widths).into_iter();
            let way = slopes.way.each_ref().map(|array| &array[..rows * way.next().unwrap_or(0)]);
            let mixed = &activations.mixed[first * widths[0]..][..rows * widths[0]];
            add_weights(Way::from(way), mixed, unit(tokens), &mut slopes.outer, gradient);
        }
    }

    /// One block. Returns the sums for [`LayerGradient::vectors`], if wanted.
    fn block_backward(
        &self,
        block: Block<'_, T>,
        span: Span<'_>,
        activations: &Activations<T>,
        room: &mut Room<T>,
        wanted: bool,
    ) -> [Vec<T>; 8] {
        let ([c, hidden], Block { first, stream, way }) = (self.widths(), block);
        let rows = stream.len() / c;
        let (Some(attention_norm), Some(mlp_norm)) = (&activations.attention_norm, &activations.mlp_norm) else {
            return Default::default();
        };
        let (attention_norm, mlp_norm) = (attention_norm.of(first..first + rows), mlp_norm.of(first..first + rows));
        let normed = &mut room.normed[..rows * c];
        let [mut a, mut b, mut d, mut e] = [(); 4].map(|()| vec![T::ZERO; c]);

        way.result.copy_from_slice(stream);
        self.rest.contract.backward(stream, way.hidden);
        gelu_backward(&activations.hidden[first * hidden..][..rows * hidden], way.active, way.hidden);
        self.rest.expand.backward(way.hidden, normed);
        self.rest.mlp_norm.backward_rows(normed, mlp_norm, stream, [&mut d, &mut e]);

        way.middle.copy_from_slice(stream);
        self.rest.proj.backward(stream, normed);
        let qkv = &activations.qkv[first * 3 * c..][..rows * 3 * c];
        span.attention(c).backward(&mut room.attention, qkv, normed, way.qkv);
        self.qkv.backward(way.qkv, normed);
        self.rest.attention_norm.backward_rows(normed, attention_norm, stream, [&mut a, &mut b]);
        if !wanted {
            return Default::default();
        }
        self.rest.mlp_norm.again(mlp_norm.0, way.mlp_normed);
        self.rest.attention_norm.again(attention_norm.0, way.attention_normed);
        let sum = |rows: &[T], width: usize| {
            let mut sums = vec![T::ZERO; width];
            add_rows(rows, &mut sums);
            sums
        };
        [a, b, d, e, sum(way.qkv, 3 * c), sum(way.middle, c), sum(way.hidden, hidden), sum(way.result, c)]
    }
}

/// Gradients of the weights, `unit` rows at a time. Every thread has its columns of each of
/// them.
fn add_weights<T: Real>(
    way: Way<&[T]>,
    mixed: &[T],
    unit: usize,
    rooms: &mut [Buffer<T>],
    gradient: &mut LayerGradient<'_, T>,
) {
    let products = [
        (way.result, way.active, &mut gradient.contract),
        (way.hidden, way.mlp_normed, &mut gradient.expand),
        (way.middle, mixed, &mut gradient.proj),
        (way.qkv, way.attention_normed, &mut gradient.qkv),
    ];
    let threads = rooms.len();
    let mut work: Vec<_> = rooms.iter_mut().map(|room| (room, Vec::new())).collect();
    for (slope, x, LinearGradient { weight, bias }) in products {
        let (outputs, inputs) = (bias.len(), weight.len() / bias.len());
        let columns = outputs.div_ceil(threads).next_multiple_of(12);
        for (index, (weight, (_, sums))) in weight.chunks_mut(columns * inputs).zip(&mut work).enumerate() {
            sums.push(Sum { slope, x, columns: [outputs, inputs], left: index * columns, into: weight });
        }
    }
    let add = |(room, sums): (&mut Buffer<T>, Vec<Sum<'_, T>>)| {
        for Sum { slope, x, columns, left, into } in sums {
            for (slope, x) in slope.chunks(unit * columns[0]).zip(x.chunks(unit * columns[1])) {
                add_transposed_product(slope, x, columns, left, into, room);
            }
        }
    };
    if threads == 1 {
        work.into_iter().for_each(add);
    } else {
        work.into_par_iter().for_each(add);
    }
}
