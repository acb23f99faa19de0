//! What a block predicts for consecutive tokens of some images: a row for every token.

use super::parameters::{Block, widths};
use crate::flow::tarflow::TarFlowConfig;
use crate::kernels::transformer::{Activations, Room, Span};
use crate::kernels::{Buffer, Cache, Real, Threads};

/// Which tokens of which images pass.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Row of [`Block::classes`] of each image.
    pub classes: &'a [usize],
    /// Place of each image in the cache of keys and values; `None` where all its tokens pass at
    /// once.
    pub slots: Option<&'a [usize]>,
    /// First token, in the block's order.
    pub first: usize,
    /// Tokens of each image.
    pub tokens: usize,
    /// Softmax temperature of the attention.
    pub temperature: f64,
}

impl<'a> Stretch<'a> {
    /// All tokens but the last of some images.
    pub fn whole(config: &TarFlowConfig, classes: &'a [usize]) -> Self {
        Self { classes, slots: None, first: 0, tokens: config.tokens() - 1, temperature: 1.0 }
    }

    /// The same for a layer. Groups of images run side by side, so each of them has one thread.
    pub fn span(&self) -> Span<'a> {
        let &Self { classes, slots, first, tokens, temperature } = self;
        Span { images: classes.len(), first, tokens, slots, causal: true, temperature, threads: Threads::One }
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
    /// Room of the layers.
    pub room: Room<T>,
}

impl<T: Real> Workspace<T> {
    /// Room for so many rows; `kept` for a reverse pass.
    pub fn new(config: &TarFlowConfig, rows: usize, kept: bool) -> Self {
        Self {
            input: Buffer::zeros(rows * config.token_dims()),
            output: Buffer::zeros(rows * config.outputs()),
            stream: Buffer::zeros(rows * config.channels),
            room: Room::new(widths(config), rows, kept),
        }
    }
}

impl<T: Real> Block<T> {
    /// `output` of the rows in `input`. One entry of `layers` serves all layers if it is the only
    /// one, as does one cache; activations that are kept are complete afterwards.
    pub fn predict(
        &self,
        work: &mut Workspace<T>,
        stretch: Stretch<'_>,
        caches: &mut [Cache<T>],
        layers: &mut [Activations<T>],
    ) {
        let (span, c) = (stretch.span(), self.input.outputs());
        let rows = span.rows();
        if rows == 0 {
            return;
        }
        let Workspace { input, output, stream, room } = work;
        let stream = &mut stream[..rows * c];
        self.embed(stream, &stretch);
        self.input.apply_add(&input[..rows * self.input.inputs()], stream);
        let (last_cache, last) = (caches.len() - 1, layers.len() - 1);
        for (index, layer) in self.layers.iter().enumerate() {
            layer.forward(stream, span, &mut caches[index.min(last_cache)], &mut layers[index.min(last)], room);
        }
        self.output.apply(stream, &mut output[..rows * self.output.outputs()]);
    }

    /// Position and class embeddings of every row.
    fn embed(&self, stream: &mut [T], stretch: &Stretch<'_>) {
        let c = self.input.outputs();
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
