//! All blocks backward: gradients of the input and of every parameter, from the activations of a
//! forward pass.

use super::encode::{gather, place, transform};
use super::parameters::{BlockGradient, Network, block_len, widths};
use super::transformer::{Stretch, Workspace};
use crate::flow::tarflow::{EXPANSION, TarFlowConfig};
use crate::kernels::rows::affine_backward;
use crate::kernels::transformer::{Activations, Slopes as LayerSlopes};
use crate::kernels::{Buffer, Cache, Real, Threads};

/// Bytes of activations beyond which only a block's own input is kept, and the block computed again
/// on the way back.
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
    output: Buffer<T>,
    input: Buffer<T>,
    layer: LayerSlopes<T>,
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
            layers: (0..config.layers).map(|_| Activations::new(widths(config), rows, true)).collect(),
            stream: Buffer::zeros(rows * c),
            output: Buffer::zeros(rows * config.outputs()),
        };
        let slopes = Slopes {
            stream: Buffer::zeros(rows * c),
            output: Buffer::zeros(rows * config.outputs()),
            input: Buffer::zeros(rows * config.token_dims()),
            layer: LayerSlopes::new(widths(config), config.tokens() - 1, Threads::One),
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
        network.blocks[index].predict(&mut self.work, Stretch::whole(config, classes), caches, &mut tape.layers);
        std::mem::swap(&mut self.work.stream, &mut tape.stream);
        std::mem::swap(&mut self.work.output, &mut tape.output);
    }

    /// From gradients of z [G, T, P] and of each image's log-determinant to those of x, in place;
    /// adds those of all parameters to `flat`, if wanted. After [`Self::forward`] with the same
    /// classes.
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
            self.transform_backward(config, index, slope, log_det);
            let gradient = flat.map(|flat| BlockGradient::new(config, flat));
            self.block_backward(network, index, slope, classes, gradient);
        }
    }

    /// Adds to `slope` what reaches the tokens through a block's Transformer, from the gradients of
    /// its outputs.
    fn block_backward(
        &mut self,
        network: &Network<T>,
        index: usize,
        slope: &mut [T],
        classes: &[usize],
        mut gradient: Option<BlockGradient<'_, T>>,
    ) {
        let (config, block, last) = (&network.config, &network.blocks[index], self.tape.len() - 1);
        let span = Stretch::whole(config, classes).span();
        let (rows, c) = (span.rows(), config.channels);
        let (tape, work, Slopes { stream, output, input, layer: inner }) =
            (&self.tape[index.min(last)], &mut self.work, &mut self.slopes);
        let (stream, output) = (&mut stream[..rows * c], &output[..rows * config.outputs()]);
        if let Some(gradient) = &mut gradient {
            gradient.output.add(output, &tape.stream[..rows * c], inner.outer());
        }
        block.output.backward(output, stream);
        for (layer, activations) in block.layers.iter().zip(&tape.layers).rev() {
            let gradient = gradient.as_mut().and_then(|gradient| gradient.layers.pop());
            layer.backward(stream, span, activations, inner, gradient);
        }
        if let Some(gradient) = &mut gradient {
            gather(config, index, &self.states[index], &mut work.input);
            gradient.input.add(stream, &work.input[..rows * config.token_dims()], inner.outer());
            embed_backward(config, index, stream, classes, gradient);
        }
        let input = &mut input[..rows * config.token_dims()];
        block.input.backward(stream, input);
        scatter_add(config, index, input, slope);
    }

    /// Gradients of a block's outputs; `slope` goes from z to the direct part of x.
    fn transform_backward(&mut self, config: &TarFlowConfig, index: usize, slope: &mut [T], log_det: &[T]) {
        let last = self.tape.len() - 1;
        let (tokens, dims, width) = (config.tokens(), config.token_dims(), config.outputs());
        let outputs = self.tape[index.min(last)].output.chunks_exact(width);
        let mut rows = outputs.zip(self.slopes.output.chunks_exact_mut(width));
        let images = slope.chunks_exact_mut(tokens * dims).zip(self.states[index + 1].chunks_exact(tokens * dims));
        for ((slope, z), &log_det) in images.zip(log_det) {
            for (position, (outputs, out)) in (1..tokens).zip(&mut rows) {
                let at = place(config, index, position) * dims;
                let (slope, z) = (&mut slope[at..][..dims], &z[at..][..dims]);
                affine_backward(slope, z, outputs, log_det, out);
            }
        }
    }
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
fn embed_backward<T: Real>(
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
