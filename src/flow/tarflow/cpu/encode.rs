//! All blocks forward.

use super::attention::Cache;
use super::parameters::Block;
use super::real::Real;
use super::rows::Affine;
use super::simd::vectorise;
use super::transformer::{Activations, Stretch, Workspace};
use crate::flow::tarflow::TarFlowConfig;

/// What a group of images needs on its way through all blocks.
pub struct Encoder<'a, T> {
    config: &'a TarFlowConfig,
    blocks: &'a [Block<T>],
    work: Workspace<T>,
    cache: Cache<T>,
    layer: Activations<T>,
}

impl<'a, T: Real> Encoder<'a, T> {
    /// For groups of at most so many images.
    pub fn new(config: &'a TarFlowConfig, blocks: &'a [Block<T>], images: usize) -> Self {
        let rows = images * (config.tokens() - 1);
        Self {
            config,
            blocks,
            work: Workspace::new(config, rows, false),
            cache: Cache::new(1, config.tokens()),
            layer: Activations::new(config.channels, rows, false),
        }
    }

    /// Replaces tokens x [G, T, P] by z and adds to the log-determinants [G, T].
    pub fn run(&mut self, state: &mut [T], log_det: &mut [f64], classes: &[usize]) {
        for index in 0..self.blocks.len() {
            self.predict(index, state, classes);
            transform(self.config, index, state, log_det, &self.work.output);
        }
    }

    /// What block `index` predicts from tokens x [G, T, P], into the workspace.
    fn predict(&mut self, index: usize, state: &[T], classes: &[usize]) {
        let tokens = self.config.tokens() - 1;
        let stretch = Stretch { classes, slots: None, first: 0, tokens, temperature: 1.0 };
        gather(self.config, index, state, &mut self.work.input);
        let (caches, layers) = (std::slice::from_mut(&mut self.cache), std::slice::from_mut(&mut self.layer));
        self.blocks[index].predict(&mut self.work, stretch, caches, layers, false);
    }

    /// Replaces tokens x [G, T, P] of block `index` by its log-scales a, 0 for its first token and in VP.
    pub fn log_scales(&mut self, index: usize, state: &mut [T], classes: &[usize]) {
        self.predict(index, state, classes);
        let (tokens, dims) = (self.config.tokens(), self.config.token_dims());
        let mut outputs = self.work.output.chunks_exact(self.config.outputs());
        for image in state.chunks_exact_mut(tokens * dims) {
            image.fill(T::ZERO);
            for (position, outputs) in (1..tokens).zip(&mut outputs).filter(|_| !self.config.volume_preserving) {
                let place = place(self.config, index, position);
                image[place * dims..][..dims].copy_from_slice(&outputs[..dims]);
            }
        }
    }
}

/// Place in the image of the token that block `block` reads at position `position`.
pub fn place(config: &TarFlowConfig, block: usize, position: usize) -> usize {
    if config.flipped(block) { config.tokens() - 1 - position } else { position }
}

/// The tokens a block predicts from, all but its last, [G, T − 1, P] in its own order.
pub fn gather<T: Real>(config: &TarFlowConfig, block: usize, state: &[T], input: &mut [T]) {
    let (tokens, dims) = (config.tokens(), config.token_dims());
    let mut rows = input.chunks_exact_mut(dims);
    for image in state.chunks_exact(tokens * dims) {
        for (position, row) in (0..tokens - 1).zip(&mut rows) {
            row.copy_from_slice(&image[place(config, block, position) * dims..][..dims]);
        }
    }
}

/// z_t = (x_t − b_t) e^{−a_t} for all tokens but a block's first.
pub fn transform<T: Real>(config: &TarFlowConfig, block: usize, state: &mut [T], log_det: &mut [f64], outputs: &[T]) {
    let (tokens, dims) = (config.tokens(), config.token_dims());
    let mut outputs = outputs.chunks_exact(config.outputs());
    for (image, log_det) in state.chunks_exact_mut(tokens * dims).zip(log_det.chunks_exact_mut(tokens)) {
        for (position, outputs) in (1..tokens).zip(&mut outputs) {
            let place = place(config, block, position);
            let token = &mut image[place * dims..][..dims];
            log_det[place] -= vectorise(Affine { token, outputs, inverse: false });
        }
    }
}
