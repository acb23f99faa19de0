//! One block backward: token after token, or many at once by Jacobi iteration.

use super::encode::place;
use super::parameters::{Block, Network, widths};
use super::transformer::{Stretch, Workspace};
use crate::flow::sampling::{Guess, Guidance};
use crate::flow::tarflow::TarFlowConfig;
use crate::kernels::rows::affine;
use crate::kernels::transformer::Activations;
use crate::kernels::{Cache, Real};

/// A group of images on its way back through one block.
pub struct Inversion<'a, T> {
    config: &'a TarFlowConfig,
    block: &'a Block<T>,
    index: usize,
    guidance: Option<&'a Guidance>,
    /// The block's output and input, [G, T, P] in its own order; of x, the tokens found so far.
    z: Vec<T>,
    x: Vec<T>,
    /// Row of the class embeddings for each image.
    classes: &'a [usize],
    room: Room<T>,
}

/// Room for a group of images on its way back through one block.
#[derive(Debug)]
pub struct Room<T> {
    capacity: usize,
    rows: usize,
    work: Workspace<T>,
    layer: Activations<T>,
    /// For every layer, under the image's condition and (for guidance) under none.
    caches: [Vec<Cache<T>>; 2],
    /// Outputs under the condition while those under none are computed.
    conditional: Vec<T>,
    /// Images on their way, and the rows of class embeddings of one pass.
    images: Vec<usize>,
    rows_of: Vec<usize>,
    /// A token before it moves.
    before: Vec<T>,
}

impl<T: Real> Room<T> {
    /// For at most so many images and so many tokens of all together at once.
    pub fn new(config: &TarFlowConfig, images: usize, rows: usize, guided: bool) -> Self {
        let caches = |needed: bool| {
            let layers = if needed { config.layers } else { 0 };
            (0..layers).map(|_| Cache::new(images * config.heads(), config.tokens())).collect()
        };
        Self {
            capacity: images,
            rows,
            work: Workspace::new(config, rows, false),
            layer: Activations::new(widths(config), rows, false),
            caches: [caches(true), caches(guided)],
            conditional: Vec::new(),
            images: Vec::new(),
            rows_of: Vec::new(),
            before: vec![T::ZERO; config.token_dims()],
        }
    }

    /// Whether it is as large as another would have to be.
    pub fn fits(&self, images: usize, rows: usize, guided: bool) -> bool {
        self.capacity >= images && self.rows >= rows && (!guided || !self.caches[1].is_empty())
    }
}

/// Tokens `from + 1 ..= to` of a block, all predicted from tokens `from .. to`.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// The last token already found.
    pub from: usize,
    /// The last token to find.
    pub to: usize,
}

/// When a module counts as solved, and from where it starts.
#[derive(Debug, Clone, Copy)]
pub struct Iteration {
    /// Where x starts.
    pub guess: Guess,
    /// Largest change of any value.
    pub tolerance: f64,
}

impl<'a, T: Real> Inversion<'a, T> {
    /// Tokens `z` [G, T, P] of block `index` under one row of class embeddings per image.
    pub fn new(
        network: &'a Network<T>,
        index: usize,
        z: &[f64],
        classes: &'a [usize],
        guidance: Option<&'a Guidance>,
        room: Room<T>,
    ) -> Self {
        let (config, block) = (&network.config, &network.blocks[index]);
        let z = in_order(config, index, z, T::of);
        Self { config, block, index, guidance, x: z.clone(), z, classes, room }
    }

    /// The tokens found, [G, T, P] in image order.
    pub fn x(&self) -> Vec<f64> {
        in_order(self.config, self.index, &self.x, T::wide)
    }

    /// Its room, for others.
    pub fn room(self) -> Room<T> {
        self.room
    }

    /// Finds the token after `token`, for all images.
    pub fn step(&mut self, token: usize) {
        self.all_images();
        self.predict(Module { from: token, to: token + 1 });
        let (tokens, dims) = (self.config.tokens(), self.config.token_dims());
        let outputs = self.room.work.output.chunks_exact(self.config.outputs());
        for (image, outputs) in self.x.chunks_exact_mut(tokens * dims).zip(outputs) {
            let token = &mut image[(token + 1) * dims..][..dims];
            affine(token, outputs, true);
        }
    }

    /// Solves a module for all images; rounds of the slowest image and the largest last change of
    /// those that stopped before they were exact. In round k the first k − 1 tokens are exact: they
    /// and their keys and values stay.
    pub fn solve(&mut self, module: Module, iteration: Iteration) -> (usize, f64) {
        self.guess(module, iteration.guess);
        let (mut rounds, mut residual) = (0, 0.0_f64);
        self.all_images();
        for from in module.from..module.to {
            let rest = Module { from, ..module };
            self.predict(rest);
            rounds += 1;
            let mut row = 0;
            let mut images = std::mem::take(&mut self.room.images);
            images.retain(|&image| {
                let change = self.update(image, rest, row);
                row += module.to - from;
                let solved = change <= iteration.tolerance;
                if solved && from + 1 < module.to {
                    residual = residual.max(change);
                }
                !solved
            });
            self.room.images = images;
            if self.room.images.is_empty() {
                break;
            }
        }
        (rounds, residual)
    }

    fn all_images(&mut self) {
        self.room.images.clear();
        self.room.images.extend(0..self.classes.len());
    }

    fn guess(&mut self, module: Module, guess: Guess) {
        let (tokens, dims) = (self.config.tokens(), self.config.token_dims());
        if guess == Guess::Zero {
            for image in self.x.chunks_exact_mut(tokens * dims) {
                image[(module.from + 1) * dims..(module.to + 1) * dims].fill(T::ZERO);
            }
        }
    }

    /// x_t = z_t e^{a_t} + b_t for one image, whose outputs start at row `row`; the largest change,
    /// or NaN.
    fn update(&mut self, image: usize, module: Module, row: usize) -> f64 {
        let (tokens, dims, width) = (self.config.tokens(), self.config.token_dims(), self.config.outputs());
        let mut change = 0.0_f64;
        let before = &mut self.room.before;
        for (i, token) in (module.from + 1..=module.to).enumerate() {
            let at = (image * tokens + token) * dims;
            let x = &mut self.x[at..][..dims];
            before.copy_from_slice(x);
            x.copy_from_slice(&self.z[at..][..dims]);
            affine(x, &self.room.work.output[(row + i) * width..][..width], true);
            for (x, before) in x.iter().zip(&*before) {
                let moved = (*x - *before).wide().abs();
                // A NaN stays.
                change = if moved > change || moved.is_nan() { moved } else { change };
            }
        }
        change
    }

    /// Leaves the (guided) outputs for tokens from + 1 ..= to of the images on their way in
    /// `work.output`, [image, token, outputs].
    fn predict(&mut self, module: Module) {
        let (tokens, dims, width) = (self.config.tokens(), self.config.token_dims(), self.config.outputs());
        let Room { work, layer, caches, conditional, images, rows_of, .. } = &mut self.room;
        let ([cache, free_cache], layers) = (caches, std::slice::from_mut(layer));
        let (first, count) = (module.from, module.to - module.from);
        for (input, image) in work.input.chunks_exact_mut(count * dims).zip(images.iter()) {
            input.copy_from_slice(&self.x[(image * tokens + first) * dims..][..count * dims]);
        }
        rows_of.clear();
        rows_of.extend(images.iter().map(|&image| self.classes[image]));
        let stretch = Stretch { classes: rows_of, slots: Some(images), first, tokens: count, temperature: 1.0 };
        self.block.predict(work, stretch, cache, layers);
        let Some(guidance) = self.guidance else { return };
        conditional.clear();
        conditional.extend_from_slice(&work.output[..images.len() * count * width]);
        rows_of.fill(self.config.embeddings());
        let temperature = guidance.attention_temperature;
        let stretch = Stretch { classes: rows_of, slots: Some(images), first, tokens: count, temperature };
        self.block.predict(work, stretch, free_cache, layers);
        let outputs = work.output.chunks_exact_mut(width).zip(conditional.chunks_exact(width));
        for (row, (free, conditional)) in outputs.enumerate() {
            guide(guidance, (first + row % count, tokens), free, conditional, dims);
        }
    }
}

/// a + g(a − a_none) and b + g(b − b_none) for the outputs of token t, in place of those without
/// class.
fn guide<T: Real>(guidance: &Guidance, (t, tokens): (usize, usize), free: &mut [T], conditional: &[T], dims: usize) {
    let growth = if guidance.annealed { (t + 1) as f64 / (tokens - 1) as f64 } else { 1.0 };
    let g = T::of(growth * guidance.scale);
    let scales = free.len() - dims;
    let kinds = [(0..scales, guidance.what.scale()), (scales..free.len(), guidance.what.shift())];
    for (range, moved) in kinds {
        for (free, conditional) in free[range.clone()].iter_mut().zip(&conditional[range]) {
            *free = if moved { *conditional + g * (*conditional - *free) } else { *conditional };
        }
    }
}

/// Tokens [G, T, P] from image order to a block's order or back.
fn in_order<A: Copy, B>(config: &TarFlowConfig, block: usize, tokens: &[A], convert: impl Fn(A) -> B) -> Vec<B> {
    let (count, dims) = (config.tokens(), config.token_dims());
    let mut ordered = Vec::with_capacity(tokens.len());
    for image in tokens.chunks_exact(count * dims) {
        for position in 0..count {
            let token = &image[place(config, block, position) * dims..][..dims];
            ordered.extend(token.iter().map(|&x| convert(x)));
        }
    }
    ordered
}
