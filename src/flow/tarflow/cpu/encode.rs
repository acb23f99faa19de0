//! All blocks forward.

use super::parameters::{Network, widths};
use super::transformer::{Stretch, Workspace};
use crate::flow::tarflow::TarFlowConfig;
use crate::kernels::rows::affine;
use crate::kernels::transformer::Activations;
use crate::kernels::{Cache, Real};

/// Room for a group of images on its way through all blocks.
#[derive(Debug)]
pub struct Encoder<T> {
    images: usize,
    state: Vec<T>,
    work: Workspace<T>,
    cache: Cache<T>,
    layer: Activations<T>,
}

impl<T: Real> Encoder<T> {
    /// For groups of at most so many images.
    pub fn new(config: &TarFlowConfig, images: usize) -> Self {
        let rows = images * (config.tokens() - 1);
        Self {
            images,
            state: Vec::new(),
            work: Workspace::new(config, rows, false),
            cache: Cache::new(1, config.tokens()),
            layer: Activations::new(widths(config), rows, false),
        }
    }

    /// Whether so many images find room.
    pub fn fits(&self, images: usize) -> bool {
        self.images >= images
    }

    /// Tokens `x` [G, T, P] to `z`; adds to the log-determinants [G, T].
    pub fn run(&mut self, network: &Network<T>, x: &[f64], classes: &[usize], z: &mut [f64], log_det: &mut [f64]) {
        let Network { config, blocks } = network;
        self.state.clear();
        self.state.extend(x.iter().map(|&x| T::of(x)));
        for index in 0..blocks.len() {
            self.predict(network, index, classes);
            transform(config, index, &mut self.state, log_det, &self.work.output);
        }
        z.iter_mut().zip(&self.state).for_each(|(z, state)| *z = state.wide());
    }

    /// What block `index` predicts from the tokens in `state`, into the workspace.
    fn predict(&mut self, Network { config, blocks }: &Network<T>, index: usize, classes: &[usize]) {
        let stretch = Stretch::whole(config, classes);
        gather(config, index, &self.state, &mut self.work.input);
        let (caches, layers) = (std::slice::from_mut(&mut self.cache), std::slice::from_mut(&mut self.layer));
        blocks[index].predict(&mut self.work, stretch, caches, layers);
    }

    /// Tokens `x` [G, T, P] of block `index` to its log-scales `a`, 0 for its first token and in
    /// VP.
    pub fn log_scales(&mut self, network: &Network<T>, index: usize, x: &[f64], classes: &[usize], a: &mut [f64]) {
        self.state.clear();
        self.state.extend(x.iter().map(|&x| T::of(x)));
        self.predict(network, index, classes);
        let config = &network.config;
        let (tokens, dims) = (config.tokens(), config.token_dims());
        let mut outputs = self.work.output.chunks_exact(config.outputs());
        for image in a.chunks_exact_mut(tokens * dims).filter(|_| !config.volume_preserving) {
            for (position, outputs) in (1..tokens).zip(&mut outputs) {
                let token = &mut image[place(config, index, position) * dims..][..dims];
                token.iter_mut().zip(outputs).for_each(|(a, output)| *a = output.wide());
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
            log_det[place] -= affine(token, outputs, false);
        }
    }
}
