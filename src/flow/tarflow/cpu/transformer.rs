//! The Transformer of one block, over consecutive tokens of some images: a row for every token, all rows through one matrix
//! product after the other.

use super::attention::{Attend, Cache};
use super::parameters::{Block, Layer, Norm};
use crate::flow::tarflow::{EXPANSION, HEAD, NORM_EPS, TarFlowConfig};
use crate::kernels::rows::{Gelu, GeluInto, Normalise};
use crate::kernels::{Buffer, Real, vectorise};

/// Which tokens of which images pass.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Row of [`Block::classes`] of each image.
    pub classes: &'a [usize],
    /// Place of each image in the cache of keys and values; `None` where all its tokens pass at once.
    pub slots: Option<&'a [usize]>,
    /// First token, in the block's order.
    pub first: usize,
    /// Tokens of each image.
    pub tokens: usize,
    /// Softmax temperature of the attention.
    pub temperature: f64,
}

impl Stretch<'_> {
    /// Rows of all images together.
    pub fn rows(&self) -> usize {
        self.classes.len() * self.tokens
    }
}

/// What a layer computes on the way, one row per token; a reverse pass reads all of it.
#[derive(Debug)]
pub struct Activations<T> {
    /// (x − mean)/σ before the attention, [rows, C]; empty unless kept.
    pub attention_standard: Buffer<T>,
    /// 1/σ before the attention, [rows]; empty unless kept.
    pub attention_scale: Buffer<T>,
    /// [rows, 3C].
    pub qkv: Buffer<T>,
    /// Output of the heads, [rows, C].
    pub mixed: Buffer<T>,
    /// (x − mean)/σ before the MLP, [rows, C]; empty unless kept.
    pub mlp_standard: Buffer<T>,
    /// 1/σ before the MLP, [rows]; empty unless kept.
    pub mlp_scale: Buffer<T>,
    /// MLP before GELU, [rows, 4C]; after it unless kept.
    pub hidden: Buffer<T>,
}

impl<T: Real> Activations<T> {
    /// Room for so many rows.
    pub fn new(channels: usize, rows: usize, kept: bool) -> Self {
        let if_kept = |len| Buffer::zeros(if kept { len } else { 0 });
        Self {
            attention_standard: if_kept(rows * channels),
            attention_scale: if_kept(rows),
            qkv: Buffer::zeros(rows * 3 * channels),
            mixed: Buffer::zeros(rows * channels),
            mlp_standard: if_kept(rows * channels),
            mlp_scale: if_kept(rows),
            hidden: Buffer::zeros(rows * EXPANSION * channels),
        }
    }
}

/// Rows going in and coming out, and room for what is between.
#[derive(Debug)]
pub struct Workspace<T> {
    /// Tokens, [rows, P].
    pub input: Buffer<T>,
    /// Log-scales and shifts for the tokens after, [rows, 2P] (or shifts, [rows, P]).
    pub output: Buffer<T>,
    /// Residual stream, [rows, C].
    pub stream: Buffer<T>,
    /// Normalised stream, [rows, C].
    pub normed: Buffer<T>,
    /// GELU's values where its arguments are kept, [rows, 4C].
    pub active: Buffer<T>,
}

impl<T: Real> Workspace<T> {
    /// Room for so many rows.
    pub fn new(config: &TarFlowConfig, rows: usize, kept: bool) -> Self {
        let c = config.channels;
        Self {
            input: Buffer::zeros(rows * config.token_dims()),
            output: Buffer::zeros(rows * config.outputs()),
            stream: Buffer::zeros(rows * c),
            normed: Buffer::zeros(rows * c),
            active: Buffer::zeros(if kept { rows * EXPANSION * c } else { 0 }),
        }
    }
}

impl<T: Real> Block<T> {
    /// `output` of the rows in `input`. One entry of `layers` serves all layers if it is the only one, as does one cache;
    /// `kept` activations are complete afterwards.
    pub fn predict(
        &self,
        work: &mut Workspace<T>,
        stretch: Stretch<'_>,
        caches: &mut [Cache<T>],
        layers: &mut [Activations<T>],
        kept: bool,
    ) {
        let (rows, c) = (stretch.rows(), self.input.forward.outputs);
        if rows == 0 {
            return;
        }
        self.embed(&mut work.stream, &stretch);
        let (input, stream) = (&work.input[..rows * self.input.forward.inputs], &mut work.stream[..rows * c]);
        self.input.forward.apply_add(input, stream);
        let (last_cache, last) = (caches.len() - 1, layers.len() - 1);
        for (index, layer) in self.layers.iter().enumerate() {
            let activations = &mut layers[index.min(last)];
            layer.attend(work, stretch, &mut caches[index.min(last_cache)], activations, kept);
            layer.mlp(work, rows, activations, kept);
        }
        let output = &mut work.output[..rows * self.output.forward.outputs];
        self.output.forward.apply(&work.stream[..rows * c], output);
    }

    /// Position and class embeddings of every row.
    fn embed(&self, stream: &mut [T], stretch: &Stretch<'_>) {
        let c = self.input.forward.outputs;
        let positions = &self.positions[stretch.first * c..][..stretch.tokens * c];
        for (image, class) in stream.chunks_exact_mut(stretch.tokens * c).zip(stretch.classes) {
            let class = &self.classes[class * c..][..c];
            for (row, position) in image.chunks_exact_mut(c).zip(positions.chunks_exact(c)) {
                for ((x, position), class) in row.iter_mut().zip(position).zip(class) {
                    *x = *position + *class;
                }
            }
        }
    }
}

impl<T: Real> Layer<T> {
    /// x += attention(norm(x)).
    fn attend(
        &self,
        work: &mut Workspace<T>,
        stretch: Stretch<'_>,
        cache: &mut Cache<T>,
        activations: &mut Activations<T>,
        kept: bool,
    ) {
        let (rows, c) = (stretch.rows(), self.proj.forward.outputs);
        let Activations { attention_standard, attention_scale, qkv, mixed, .. } = activations;
        let (qkv, mixed, stream) = (&mut qkv[..rows * 3 * c], &mut mixed[..rows * c], &mut work.stream[..rows * c]);
        let normed = &mut work.normed[..rows * c];
        let saved = kept.then_some((&mut **attention_standard, &mut **attention_scale));
        let Norm { gain, bias } = &self.attention_norm;
        let epsilon = T::of(NORM_EPS);
        vectorise(Normalise { x: stream, gain, bias, epsilon, out: normed, saved });
        self.qkv.forward.apply(normed, qkv);
        let Stretch { slots, first, tokens, .. } = stretch;
        let scale = T::of(1.0 / ((HEAD as f64).sqrt() * stretch.temperature));
        vectorise(Attend { cache, slots, first, tokens, heads: c / HEAD, scale, qkv, out: mixed });
        self.proj.forward.apply_add(mixed, stream);
    }

    /// x += MLP(norm(x)).
    fn mlp(&self, work: &mut Workspace<T>, rows: usize, activations: &mut Activations<T>, kept: bool) {
        let c = self.proj.forward.outputs;
        let Activations { mlp_standard, mlp_scale, hidden, .. } = activations;
        let (hidden, stream) = (&mut hidden[..rows * EXPANSION * c], &mut work.stream[..rows * c]);
        let normed = &mut work.normed[..rows * c];
        let saved = kept.then_some((&mut **mlp_standard, &mut **mlp_scale));
        let Norm { gain, bias } = &self.mlp_norm;
        let epsilon = T::of(NORM_EPS);
        vectorise(Normalise { x: stream, gain, bias, epsilon, out: normed, saved });
        self.expand.forward.apply(normed, hidden);
        if kept {
            let active = &mut work.active[..rows * EXPANSION * c];
            vectorise(GeluInto { x: hidden, out: active });
            self.contract.forward.apply_add(active, stream);
        } else {
            vectorise(Gelu(hidden));
            self.contract.forward.apply_add(hidden, stream);
        }
    }
}
