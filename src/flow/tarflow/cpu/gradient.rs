//! One flat array of gradients for all parameters of a flow, and the place of each parameter in it.

use crate::flow::tarflow::{EXPANSION, TarFlowConfig};
use crate::flow::weights::{HostTensor, Weights};
use crate::kernels::rows::add_rows;
use crate::kernels::{Buffer, Real, add_transposed_product};

/// Names and shapes of the trained arrays of block `block`, in the order in which their gradients stand.
fn names(config: &TarFlowConfig, block: usize) -> Vec<(String, Vec<usize>)> {
    let (c, wide) = (config.channels, EXPANSION * config.channels);
    let linear = |name: &str, outputs: usize, inputs: usize| {
        [(format!("{name}.weight"), vec![outputs, inputs]), (format!("{name}.bias"), vec![outputs])]
    };
    let norm = |name: &str| [(format!("{name}.weight"), vec![c]), (format!("{name}.bias"), vec![c])];
    let mut all = vec![("pos_embed".to_owned(), vec![config.tokens(), c])];
    if config.embeddings() > 0 {
        all.push(("class_embed".to_owned(), vec![config.classes, 1, c]));
    }
    all.extend(linear("proj_in", c, config.token_dims()));
    for layer in (0..config.layers).map(|l| format!("attn_blocks.{l}")) {
        all.extend(norm(&format!("{layer}.attention.norm")));
        all.extend(linear(&format!("{layer}.attention.qkv"), 3 * c, c));
        all.extend(linear(&format!("{layer}.attention.proj"), c, c));
        all.extend(norm(&format!("{layer}.mlp.norm")));
        all.extend(linear(&format!("{layer}.mlp.main.0"), wide, c));
        all.extend(linear(&format!("{layer}.mlp.main.2"), c, wide));
    }
    all.extend(linear("proj_out", config.outputs(), c));
    all.into_iter().map(|(name, shape)| (format!("blocks.{block}.{name}"), shape)).collect()
}

/// Numbers in all arrays of one block.
pub fn block_len(config: &TarFlowConfig) -> usize {
    names(config, 0).iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
}

/// Gradients by state-dict name.
pub fn named<T: Real>(config: &TarFlowConfig, flat: &[T]) -> Weights {
    let mut rest = flat;
    let mut weights = Weights::default();
    for (name, shape) in (0..config.blocks).flat_map(|block| names(config, block)) {
        let (values, others) = rest.split_at(shape.iter().product());
        rest = others;
        let values = values.iter().map(|x| x.wide() as f32).collect();
        weights.0.insert(name, HostTensor::new(shape, values));
    }
    weights
}

/// Gradients of W [outputs, inputs] and b.
pub struct LinearGradient<'a, T> {
    weight: &'a mut [T],
    bias: &'a mut [T],
}

impl<T: Real> LinearGradient<'_, T> {
    /// Adds what inputs `x` and gradients `slope` of the outputs make.
    pub fn add(&mut self, slope: &[T], x: &[T], room: &mut Buffer<T>) {
        let columns = [self.bias.len(), self.weight.len() / self.bias.len()];
        add_transposed_product(slope, x, columns, 0, self.weight, room);
        add_rows(slope, self.bias);
    }
}

/// Gradients of one layer.
pub struct LayerGradient<'a, T> {
    /// γ and β before the attention.
    pub attention_norm: (&'a mut [T], &'a mut [T]),
    /// Queries, keys and values.
    pub qkv: LinearGradient<'a, T>,
    /// Heads to residual.
    pub proj: LinearGradient<'a, T>,
    /// γ and β before the MLP.
    pub mlp_norm: (&'a mut [T], &'a mut [T]),
    /// C → 4C.
    pub expand: LinearGradient<'a, T>,
    /// 4C → C.
    pub contract: LinearGradient<'a, T>,
}

/// Gradients of one block.
pub struct BlockGradient<'a, T> {
    /// [T, C], in image order.
    pub positions: &'a mut [T],
    /// [K, C].
    pub classes: &'a mut [T],
    /// P → C.
    pub input: LinearGradient<'a, T>,
    /// Layers.
    pub layers: Vec<LayerGradient<'a, T>>,
    /// C → (a, b).
    pub output: LinearGradient<'a, T>,
}

impl<'a, T: Real> BlockGradient<'a, T> {
    /// The parts of one block's array.
    pub fn new(config: &TarFlowConfig, flat: &'a mut [T]) -> Self {
        let (c, wide) = (config.channels, EXPANSION * config.channels);
        let mut rest = flat;
        let mut take = |len: usize| {
            let (part, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            part
        };
        let positions = take(config.tokens() * c);
        let classes = take(config.embeddings() * c);
        let mut linear =
            |outputs: usize, inputs: usize| LinearGradient { weight: take(outputs * inputs), bias: take(outputs) };
        let input = linear(c, config.token_dims());
        let norm = |part: LinearGradient<'a, T>| (part.weight, part.bias);
        let layers = (0..config.layers).map(|_| LayerGradient {
            // As many gains as biases: a map with one input.
            attention_norm: norm(linear(c, 1)),
            qkv: linear(3 * c, c),
            proj: linear(c, c),
            mlp_norm: norm(linear(c, 1)),
            expand: linear(wide, c),
            contract: linear(c, wide),
        });
        let layers = layers.collect();
        Self { positions, classes, input, layers, output: linear(config.outputs(), c) }
    }
}
