//! All blocks backward: gradients of the input and of every parameter, from the activations of a forward pass.

use super::attention::Cache;
use super::attention_back::{AttendBack, Scratch};
use super::encode::{gather, place, transform};
use super::gradient::{BlockGradient, LayerGradient, block_len};
use super::parameters::{Layer, Network, Norm};
use super::transformer::{Activations, Stretch, Workspace};
use crate::flow::tarflow::{EXPANSION, HEAD, TarFlowConfig};
use crate::kernels::rows::{AffineBack, GeluBack, NormaliseBack, Renormalise};
use crate::kernels::{Buffer, Real, vectorise};

/// Bytes of activations beyond which only a block's own input is kept, and the block computed again on the way back.
const TAPE_BYTES: usize = 256 << 20;

/// What one block leaves for its reverse pass.
#[derive(Debug)]
struct BlockTape<T> {
    layers: Vec<Activations<T>>,
    stream: Buffer<T>,
    output: Buffer<T>,
}

/// Gradients of the rows of [`Workspace`], and room.
#[derive(Debug)]
struct Slopes<T> {
    stream: Buffer<T>,
    normed: Buffer<T>,
    qkv: Buffer<T>,
    hidden: Buffer<T>,
    output: Buffer<T>,
    input: Buffer<T>,
    outer: Buffer<T>,
    attention: Scratch<T>,
}

/// Room for a group of images forward and backward through all blocks.
#[derive(Debug)]
pub struct Reverse<T> {
    images: usize,
    work: Workspace<T>,
    cache: Cache<T>,
    /// For every block, or one that all take turns with.
    tape: Vec<BlockTape<T>>,
    /// Tokens before each block and after the last, [G, T, P] each.
    states: Vec<Vec<T>>,
    slopes: Slopes<T>,
}

impl<T: Real> Reverse<T> {
    /// For groups of at most so many images.
    pub fn new(config: &TarFlowConfig, images: usize) -> Self {
        let rows = images * (config.tokens() - 1);
        let block_bytes = rows * config.layers * (6 + EXPANSION) * config.channels * size_of::<T>();
        let tapes = if block_bytes * config.blocks <= TAPE_BYTES { config.blocks } else { 1 };
        Self::with_tapes(config, images, tapes)
    }

    /// With a tape for every block, or one for all.
    pub fn with_tapes(config: &TarFlowConfig, images: usize, tapes: usize) -> Self {
        let (c, rows) = (config.channels, images * (config.tokens() - 1));
        let tape = || BlockTape {
            layers: (0..config.layers).map(|_| Activations::new(c, rows, true)).collect(),
            stream: Buffer::zeros(rows * c),
            output: Buffer::zeros(rows * config.outputs()),
        };
        let slopes = Slopes {
            stream: Buffer::zeros(rows * c),
            normed: Buffer::zeros(rows * c),
            qkv: Buffer::zeros(rows * 3 * c),
            hidden: Buffer::zeros(rows * EXPANSION * c),
            output: Buffer::zeros(rows * config.outputs()),
            input: Buffer::zeros(rows * config.token_dims()),
            outer: Buffer::default(),
            attention: Scratch::new(config.tokens() - 1),
        };
        Self {
            images,
            work: Workspace::new(config, rows, true),
            cache: Cache::new(1, config.tokens()),
            tape: (0..tapes).map(|_| tape()).collect(),
            states: vec![Vec::new(); config.blocks + 1],
            slopes,
        }
    }

    /// Whether so many images find room.
    pub fn fits(&self, images: usize) -> bool {
        self.images >= images
    }

    /// z of tokens `x` [G, T, P]; log-determinants [G, T] are added to.
    pub fn forward(&mut self, network: &Network<T>, x: &[f64], classes: &[usize], log_det: &mut [f64]) -> &[T] {
        let blocks = network.config.blocks;
        self.states[0].clear();
        self.states[0].extend(x.iter().map(|&x| T::of(x)));
        for index in 0..blocks {
            self.predict(network, index, classes);
            let [before, after] = &mut self.states[index..index + 2] else { continue };
            after.clone_from(before);
            let tape = &self.tape[index.min(self.tape.len() - 1)];
            transform(&network.config, index, after, log_det, &tape.output);
        }
        &self.states[blocks]
    }

    /// Fills the tape of a block from the tokens before it.
    fn predict(&mut self, network: &Network<T>, index: usize, classes: &[usize]) {
        let config = &network.config;
        let last = self.tape.len() - 1;
        let tape = &mut self.tape[index.min(last)];
        gather(config, index, &self.states[index], &mut self.work.input);
        let caches = std::slice::from_mut(&mut self.cache);
        network.blocks[index].predict(&mut self.work, stretch(config, classes), caches, &mut tape.layers, true);
        std::mem::swap(&mut self.work.stream, &mut tape.stream);
        std::mem::swap(&mut self.work.output, &mut tape.output);
    }

    /// From gradients of z [G, T, P] and of each image's log-determinant to those of x, in place; adds those of all
    /// parameters to `flat`, if wanted. After [`Self::forward`] with the same classes.
    pub fn backward(
        &mut self,
        network: &Network<T>,
        slope: &mut [T],
        log_det: &[T],
        classes: &[usize],
        mut flat: Option<&mut [T]>,
    ) {
        let config = &network.config;
        if config.tokens() == 1 {
            return;
        }
        let len = block_len(config);
        for index in (0..config.blocks).rev() {
            if self.tape.len() == 1 && index + 1 < config.blocks {
                self.predict(network, index, classes);
            }
            let flat = flat.as_deref_mut().map(|flat| &mut flat[index * len..][..len]);
            self.transform_back(config, index, slope, log_det);
            let gradient = flat.map(|flat| BlockGradient::new(config, flat));
            self.block_back(network, index, slope, classes, gradient);
        }
    }

    /// Adds to `slope` what reaches the tokens through a block's Transformer, from the gradients of its outputs.
    fn block_back(
        &mut self,
        network: &Network<T>,
        index: usize,
        slope: &mut [T],
        classes: &[usize],
        mut gradient: Option<BlockGradient<'_, T>>,
    ) {
        let (config, block, last) = (&network.config, &network.blocks[index], self.tape.len() - 1);
        let stretch = stretch(config, classes);
        let (rows, c) = (stretch.rows(), config.channels);
        let (tape, slopes) = (&mut self.tape[index.min(last)], &mut self.slopes);
        let output = &slopes.output[..rows * config.outputs()];
        if let Some(gradient) = &mut gradient {
            gradient.output.add(output, &tape.stream[..rows * c], &mut slopes.outer);
        }
        block.output.back().apply(output, &mut slopes.stream[..rows * c]);
        for (l, (layer, activations)) in block.layers.iter().zip(&tape.layers).enumerate().rev() {
            let mut gradient = gradient.as_mut().map(|gradient| &mut gradient.layers[l]);
            layer.mlp_backward(&mut self.work, slopes, rows, activations, gradient.as_deref_mut());
            layer.attend_back(&mut self.work, slopes, stretch, activations, gradient);
        }
        let stream = &slopes.stream[..rows * c];
        if let Some(gradient) = &mut gradient {
            gather(config, index, &self.states[index], &mut self.work.input);
            let input = &self.work.input[..rows * config.token_dims()];
            gradient.input.add(stream, input, &mut slopes.outer);
            embed_back(config, index, stream, classes, gradient);
        }
        let input = &mut slopes.input[..rows * config.token_dims()];
        block.input.back().apply(stream, input);
        scatter_add(config, index, input, slope);
    }

    /// Gradients of a block's outputs; `slope` goes from z to the direct part of x.
    fn transform_back(&mut self, config: &TarFlowConfig, index: usize, slope: &mut [T], log_det: &[T]) {
        let last = self.tape.len() - 1;
        let (tokens, dims, width) = (config.tokens(), config.token_dims(), config.outputs());
        let outputs = self.tape[index.min(last)].output.chunks_exact(width);
        let mut rows = outputs.zip(self.slopes.output.chunks_exact_mut(width));
        let images = slope.chunks_exact_mut(tokens * dims).zip(self.states[index + 1].chunks_exact(tokens * dims));
        for ((slope, z), &log_det) in images.zip(log_det) {
            for (position, (outputs, out)) in (1..tokens).zip(&mut rows) {
                let at = place(config, index, position) * dims;
                let (slope, z) = (&mut slope[at..][..dims], &z[at..][..dims]);
                vectorise(AffineBack { slope, z, outputs, log_det, out });
            }
        }
    }
}

/// All tokens but the last of some images.
fn stretch<'a>(config: &TarFlowConfig, classes: &'a [usize]) -> Stretch<'a> {
    Stretch { classes, slots: None, first: 0, tokens: config.tokens() - 1, temperature: 1.0 }
}

/// Reverse of [`gather`].
fn scatter_add<T: Real>(config: &TarFlowConfig, block: usize, rows: &[T], state: &mut [T]) {
    let (tokens, dims) = (config.tokens(), config.token_dims());
    let mut rows = rows.chunks_exact(dims);
    for image in state.chunks_exact_mut(tokens * dims) {
        for (position, row) in (0..tokens - 1).zip(&mut rows) {
            let token = &mut image[place(config, block, position) * dims..][..dims];
            token.iter_mut().zip(row).for_each(|(x, row)| *x += *row);
        }
    }
}

/// Gradients of the position and class embeddings.
fn embed_back<T: Real>(
    config: &TarFlowConfig,
    block: usize,
    stream: &[T],
    classes: &[usize],
    gradient: &mut BlockGradient<'_, T>,
) {
    let (tokens, c) = (config.tokens() - 1, config.channels);
    let mut sum = vec![T::ZERO; c];
    for (image, &class) in stream.chunks_exact(tokens * c).zip(classes) {
        sum.fill(T::ZERO);
        for (position, row) in image.chunks_exact(c).enumerate() {
            let position = &mut gradient.positions[place(config, block, position) * c..][..c];
            for ((position, sum), x) in position.iter_mut().zip(&mut sum).zip(row) {
                *position += *x;
                *sum += *x;
            }
        }
        // No class: every class has its share in the mean.
        let share = if class < config.embeddings() { T::ONE } else { T::of(1.0 / config.embeddings().max(1) as f64) };
        for (k, row) in gradient.classes.chunks_exact_mut(c).enumerate() {
            if class == k || class == config.embeddings() {
                row.iter_mut().zip(&sum).for_each(|(row, sum)| *row += share * *sum);
            }
        }
    }
}

impl<T: Real> Layer<T> {
    /// Reverse pass of the MLP.
    fn mlp_backward(
        &self,
        work: &mut Workspace<T>,
        slopes: &mut Slopes<T>,
        rows: usize,
        activations: &Activations<T>,
        mut gradient: Option<&mut LayerGradient<'_, T>>,
    ) {
        let c = self.proj.forward.outputs;
        let wide = rows * EXPANSION * c;
        let (stream, hidden) = (&mut slopes.stream[..rows * c], &mut slopes.hidden[..wide]);
        let active = &mut work.active[..wide];
        self.contract.back().apply(stream, hidden);
        vectorise(GeluBack { x: &activations.hidden[..wide], out: active, slope: hidden });
        let standard = &activations.mlp_standard[..rows * c];
        if let Some(gradient) = &mut gradient {
            gradient.contract.add(stream, active, &mut slopes.outer);
            let normed = renormalise(&self.mlp_norm, standard, &mut work.normed[..rows * c]);
            gradient.expand.add(hidden, normed, &mut slopes.outer);
        }
        let normed = &mut slopes.normed[..rows * c];
        self.expand.back().apply(hidden, normed);
        let parameters = gradient.map(|gradient| (&mut *gradient.mlp_norm.0, &mut *gradient.mlp_norm.1));
        let saved = (standard, &*activations.mlp_scale);
        vectorise(NormaliseBack { slope: normed, saved, gain: &self.mlp_norm.gain, x: stream, parameters });
    }

    /// Reverse pass of the attention.
    fn attend_back(
        &self,
        work: &mut Workspace<T>,
        slopes: &mut Slopes<T>,
        stretch: Stretch<'_>,
        activations: &Activations<T>,
        mut gradient: Option<&mut LayerGradient<'_, T>>,
    ) {
        let (rows, c) = (stretch.rows(), self.proj.forward.outputs);
        let (stream, qkv) = (&mut slopes.stream[..rows * c], &mut slopes.qkv[..rows * 3 * c]);
        let normed = &mut slopes.normed[..rows * c];
        self.proj.back().apply(stream, normed);
        vectorise(AttendBack {
            scratch: &mut slopes.attention,
            tokens: stretch.tokens,
            heads: c / HEAD,
            scale: T::of(1.0 / (HEAD as f64).sqrt()),
            qkv: &activations.qkv[..rows * 3 * c],
            slope: normed,
            out: qkv,
        });
        let standard = &activations.attention_standard[..rows * c];
        if let Some(gradient) = &mut gradient {
            gradient.proj.add(stream, &activations.mixed[..rows * c], &mut slopes.outer);
            let normed = renormalise(&self.attention_norm, standard, &mut work.normed[..rows * c]);
            gradient.qkv.add(qkv, normed, &mut slopes.outer);
        }
        self.qkv.back().apply(qkv, normed);
        let parameters = gradient.map(|gradient| (&mut *gradient.attention_norm.0, &mut *gradient.attention_norm.1));
        let saved = (standard, &*activations.attention_scale);
        vectorise(NormaliseBack { slope: normed, saved, gain: &self.attention_norm.gain, x: stream, parameters });
    }
}

fn renormalise<'a, T: Real>(norm: &Norm<T>, standard: &[T], out: &'a mut [T]) -> &'a [T] {
    vectorise(Renormalise { standard, gain: &norm.gain, bias: &norm.bias, out });
    out
}
