//! A pre-norm Transformer layer (Vaswani et al. 2017), forward and back: the layer of TarFlows and
//! of Vision Transformers.
//!
//! ```text
//! x ← x + proj(attention(qkv(norm x)))
//! x ← x + contract(GELU(expand(norm x)))
//! ```
//!
//! Rows are tokens, [image, token, channel]. A block of whole images at a time passes a layer.

mod backward;
mod first_token;

use rayon::prelude::*;

use super::attention::{Attention, Cache, HEAD};
use super::linear::{Linear, Norm, Normalised};
use super::rows::{gelu, gelu_into};
use super::{Buffer, Real, Threads};

pub use backward::{LayerGradient, Slopes};
pub use first_token::{FirstTokenLayer, FirstTokenRoom};

/// Arrays of a layer: weight and bias of the norm before the attention, of queries, keys and
/// values, of the projection, of the norm before the MLP, and of the MLP's two maps.
pub const ARRAYS: usize = 12;

/// Rows that one thread takes through a whole layer at a time, or those of one image where it has
/// more: few enough for what lies between the products to stay in the cache of its core, and enough
/// for a pass over the weights.
const BLOCK: usize = 256;

/// Which tokens of which images pass a layer, and how.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// Images.
    pub images: usize,
    /// First token.
    pub first: usize,
    /// Tokens of each image.
    pub tokens: usize,
    /// Place of each image in the cache of keys and values; `None` where all its tokens pass at
    /// once.
    pub slots: Option<&'a [usize]>,
    /// Whether a token looks at itself and earlier ones only.
    pub causal: bool,
    /// Softmax temperature of the attention.
    pub temperature: f64,
    /// Which threads work.
    pub threads: Threads,
}

impl Span<'_> {
    /// Rows of all images together.
    pub fn rows(&self) -> usize {
        self.images * self.tokens
    }

    fn attention<T: Real>(&self, channels: usize) -> Attention<T> {
        let scale = T::of(1.0 / ((HEAD as f64).sqrt() * self.temperature));
        Attention { first: self.first, tokens: self.tokens, heads: channels / HEAD, scale, causal: self.causal }
    }
}

/// What a layer computes on the way, one row per token.
#[derive(Debug)]
pub struct Activations<T> {
    widths: [usize; 2],
    rows: usize,
    /// Before the attention; none unless kept.
    attention_norm: Option<Normalised<T>>,
    /// [rows, 3C].
    qkv: Buffer<T>,
    /// Output of the heads, [rows, C].
    mixed: Buffer<T>,
    /// Before the MLP; none unless kept.
    mlp_norm: Option<Normalised<T>>,
    /// MLP before GELU, [rows, hidden]; after it unless kept.
    hidden: Buffer<T>,
}

impl<T: Real> Activations<T> {
    /// Room for so many rows of a layer of so many channels; `kept` for a reverse pass.
    pub fn new(widths: [usize; 2], rows: usize, kept: bool) -> Self {
        let [channels, hidden] = widths;
        let norm = || kept.then(|| Normalised::new(channels, rows));
        Self {
            widths,
            rows,
            attention_norm: norm(),
            qkv: Buffer::zeros(rows * 3 * channels),
            mixed: Buffer::zeros(rows * channels),
            mlp_norm: norm(),
            hidden: Buffer::zeros(rows * hidden),
        }
    }

    /// The first rows.
    fn whole(&mut self, rows: usize) -> Part<'_, T> {
        let [c, hidden] = self.widths;
        Part {
            attention_norm: self.attention_norm.as_mut().map(|norm| norm.rows(rows)),
            qkv: &mut self.qkv[..rows * 3 * c],
            mixed: &mut self.mixed[..rows * c],
            mlp_norm: self.mlp_norm.as_mut().map(|norm| norm.rows(rows)),
            hidden: &mut self.hidden[..rows * hidden],
        }
    }

    /// The first rows, `size` of them at a time.
    fn parts(&mut self, rows: usize, size: usize) -> Vec<Part<'_, T>> {
        let [c, hidden] = self.widths;
        let mut rest = self.whole(rows);
        let sizes = (0..rows).step_by(size).map(|first| size.min(rows - first));
        sizes.map(|rows| rest.split_off([c, hidden], rows)).collect()
    }

    /// Whether so many rows of such a layer find room.
    pub fn fits(&self, widths: [usize; 2], rows: usize) -> bool {
        self.widths == widths && self.rows >= rows
    }
}

/// Some rows of [`Activations`].
struct Part<'a, T> {
    attention_norm: Option<(&'a mut [T], &'a mut [T])>,
    qkv: &'a mut [T],
    mixed: &'a mut [T],
    mlp_norm: Option<(&'a mut [T], &'a mut [T])>,
    hidden: &'a mut [T],
}

impl<'a, T> Part<'a, T> {
    /// Takes the first rows away from the others.
    fn split_off(&mut self, [c, hidden]: [usize; 2], rows: usize) -> Self {
        fn first<'a, T>(all: &mut &'a mut [T], count: usize) -> &'a mut [T] {
            all.split_off_mut(..count).unwrap_or_default()
        }
        let norm = |saved: &mut Option<(&'a mut [T], &'a mut [T])>| {
            saved.as_mut().map(|(standard, scales)| (first(standard, rows * c), first(scales, rows)))
        };
        Self {
            attention_norm: norm(&mut self.attention_norm),
            qkv: first(&mut self.qkv, rows * 3 * c),
            mixed: first(&mut self.mixed, rows * c),
            mlp_norm: norm(&mut self.mlp_norm),
            hidden: first(&mut self.hidden, rows * hidden),
        }
    }
}

/// Room for rows on their way through layers.
#[derive(Debug)]
pub struct Room<T> {
    /// Normalised stream, [rows, C].
    normed: Buffer<T>,
    /// GELU's values where its arguments are kept, [rows, hidden].
    active: Buffer<T>,
}

impl<T: Real> Room<T> {
    /// For so many rows.
    pub fn new([channels, hidden]: [usize; 2], rows: usize, kept: bool) -> Self {
        Self { normed: Buffer::zeros(rows * channels), active: Buffer::zeros(if kept { rows * hidden } else { 0 }) }
    }
}

/// Parameters of a layer.
#[derive(Debug, Default)]
pub struct Layer<T> {
    qkv: Linear<T>,
    rest: Rest<T>,
}

/// Those beside the map to queries, keys and values.
#[derive(Debug, Default)]
struct Rest<T> {
    attention_norm: Norm<T>,
    proj: Linear<T>,
    mlp_norm: Norm<T>,
    expand: Linear<T>,
    contract: Linear<T>,
}

impl<T: Real> Rest<T> {
    /// Sets them. Returns weight and bias of queries, keys and values.
    fn set<'a>(&mut self, arrays: [&'a [T]; ARRAYS], epsilon: f64, threads: Threads) -> [&'a [T]; 2] {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = arrays;
        self.attention_norm = Norm::new(a, b, epsilon);
        self.proj.set(e, f, threads);
        self.mlp_norm = Norm::new(g, h, epsilon);
        self.expand.set(i, j, threads);
        self.contract.set(k, l, threads);
        [c, d]
    }

    /// Channels, and those of the MLP's hidden layer.
    fn widths(&self) -> [usize; 2] {
        [self.proj.outputs(), self.expand.outputs()]
    }
}

impl<T: Real> Layer<T> {
    /// Shapes of [`ARRAYS`], matrices as [outputs, inputs].
    pub fn shapes([c, hidden]: [usize; 2]) -> [Vec<usize>; ARRAYS] {
        let vector = |n: usize| vec![n];
        let matrix = |outputs: usize, inputs: usize| vec![outputs, inputs];
        [
            vector(c),
            vector(c),
            matrix(3 * c, c),
            vector(3 * c),
            matrix(c, c),
            vector(c),
            vector(c),
            vector(c),
            matrix(hidden, c),
            vector(hidden),
            matrix(c, hidden),
            vector(c),
        ]
    }

    /// Sets all parameters, in the memory of earlier ones; `epsilon` is the variance floor of the
    /// norms.
    pub fn set(&mut self, arrays: [&[T]; ARRAYS], epsilon: f64, threads: Threads) {
        let [weight, bias] = self.rest.set(arrays, epsilon, threads);
        self.qkv.set(weight, bias, threads);
    }

    /// Channels, and those of the MLP's hidden layer.
    pub fn widths(&self) -> [usize; 2] {
        self.rest.widths()
    }

    /// `stream` [rows, C] through the layer, in place. `cache` holds keys and values of earlier
    /// tokens.
    pub fn forward(
        &self,
        stream: &mut [T],
        span: Span<'_>,
        cache: &mut Cache<T>,
        activations: &mut Activations<T>,
        room: &mut Room<T>,
    ) {
        let rows = span.rows();
        if span.slots.is_some() || !span.threads.several() {
            return self.pass(stream, span, cache, activations.whole(rows), room);
        }
        let (widths, kept) = (self.widths(), activations.mlp_norm.is_some());
        // Few images are shared out, too.
        let size = BLOCK.min(rows.div_ceil(rayon::current_num_threads())).div_ceil(span.tokens).max(1) * span.tokens;
        let blocks = stream[..rows * widths[0]].par_chunks_mut(size * widths[0]).zip(activations.parts(rows, size));
        let new = || (Cache::new(1, span.tokens), Room::new(widths, size, kept));
        blocks.for_each_init(new, |(cache, room), (stream, part)| {
            self.pass(stream, Span { images: part.mixed.len() / (span.tokens * widths[0]), ..span }, cache, part, room);
        });
    }

    /// [`Self::forward`] of rows that one thread takes.
    fn pass(&self, stream: &mut [T], span: Span<'_>, cache: &mut Cache<T>, part: Part<'_, T>, room: &mut Room<T>) {
        const ONE: Threads = Threads::One;
        let ([c, hidden], rows, kept) = (self.widths(), span.rows(), part.mlp_norm.is_some());
        let normed = &mut room.normed[..rows * c];
        self.rest.attention_norm.forward(stream, normed, part.attention_norm, ONE);
        self.qkv.apply(normed, part.qkv);
        span.attention(c).forward(cache, span.slots, part.qkv, part.mixed);
        self.rest.proj.apply_add(part.mixed, stream);
        self.rest.mlp_norm.forward(stream, normed, part.mlp_norm, ONE);
        self.rest.expand.apply(normed, part.hidden);
        let active = if kept {
            gelu_into(part.hidden, &mut room.active[..rows * hidden]);
            &room.active[..rows * hidden]
        } else {
            gelu(part.hidden);
            part.hidden
        };
        self.rest.contract.apply_add(active, stream);
    }
}
