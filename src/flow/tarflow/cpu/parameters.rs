//! Weights as the products need them, gradients in one flat array, both in the order of
//! [`TarFlowConfig::block_arrays`].

use crate::flow::tarflow::{EXPANSION, NORM_EPS, TarFlowConfig};
use crate::flow::weights::{HostTensor, Weights};
use crate::kernels::transformer::{ARRAYS, Layer, LayerGradient};
use crate::kernels::{Linear, LinearGradient, Real, Threads};

/// Channels of a layer, and those of its MLP's hidden layer.
pub fn widths(config: &TarFlowConfig) -> [usize; 2] {
    [config.channels, EXPANSION * config.channels]
}

/// Numbers in all arrays of one block.
pub fn block_len(config: &TarFlowConfig) -> usize {
    config.block_arrays(0).iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
}

/// Gradients by state-dict name.
pub fn named<T: Real>(config: &TarFlowConfig, flat: &[T]) -> Weights {
    let mut rest = flat;
    let mut weights = Weights::default();
    for (name, shape) in (0..config.blocks).flat_map(|block| config.block_arrays(block)) {
        let (values, others) = rest.split_at(shape.iter().product());
        rest = others;
        let values = values.iter().map(|x| x.wide() as f32).collect();
        weights.0.insert(name, HostTensor::new(shape, values));
    }
    weights
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
        let mut shapes = config.block_arrays(0).into_iter().map(|(_, shape)| shape);
        let mut rest = flat;
        let mut next = || {
            let len = shapes.next().map_or(0, |shape| shape.iter().product());
            let (part, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            part
        };
        Self {
            positions: next(),
            classes: if config.embeddings() > 0 { next() } else { &mut [] },
            input: LinearGradient { weight: next(), bias: next() },
            layers: (0..config.layers).map(|_| std::array::from_fn(|_| next()).into()).collect(),
            output: LinearGradient { weight: next(), bias: next() },
        }
    }
}

/// A whole flow.
#[derive(Debug)]
pub struct Network<T> {
    /// Its architecture.
    pub config: TarFlowConfig,
    /// Its blocks, from x to z.
    pub blocks: Vec<Block<T>>,
}

impl<T: Real> Network<T> {
    /// Reads all blocks. Drops a block's arrays once they are packed: at no time are all of them
    /// held twice.
    ///
    /// # Errors
    /// Says what is wrong with the architecture or names the array that is missing or has the wrong
    /// shape.
    pub fn read(config: &TarFlowConfig, mut weights: Weights) -> Result<Self, String> {
        config.validate().map_err(|error| error.to_string())?;
        let block = |index: usize| {
            let block = Block::read(config, &weights, index)?;
            let own = format!("blocks.{index}.");
            weights.0.retain(|name, _| !name.starts_with(&own));
            Ok(block)
        };
        Ok(Self { config: *config, blocks: (0..config.blocks).map(block).collect::<Result<_, String>>()? })
    }
}

/// One autoregressive block.
#[derive(Debug)]
pub struct Block<T> {
    /// P → C.
    pub input: Linear<T>,
    /// Position embeddings in the block's own order, [T, C].
    pub positions: Vec<T>,
    /// Class embeddings and, last, their mean, [K + 1, C]; zeros for an unconditional flow.
    pub classes: Vec<T>,
    /// Attention layers.
    pub layers: Vec<Layer<T>>,
    /// C → (a, b).
    pub output: Linear<T>,
}

impl<T: Real> Block<T> {
    fn read(config: &TarFlowConfig, weights: &Weights, index: usize) -> Result<Self, String> {
        let arrays = config.block_arrays(index).into_iter().map(|(name, shape)| values(weights, &name, &shape));
        let mut arrays = arrays.collect::<Result<Vec<Vec<T>>, String>>()?.into_iter();
        let mut next = || arrays.next().unwrap_or_default();
        let c = config.channels;
        let mut positions = next();
        if config.flipped(index) {
            positions = positions.chunks_exact(c).rev().flatten().copied().collect();
        }
        let classes = if config.embeddings() > 0 { with_mean(next(), c) } else { vec![T::ZERO; c] };
        let input = Linear::new(&next(), &next());
        let layers = (0..config.layers).map(|_| {
            let arrays: [Vec<T>; ARRAYS] = std::array::from_fn(|_| next());
            let mut layer = Layer::default();
            layer.set(arrays.each_ref().map(Vec::as_slice), NORM_EPS, Threads::One);
            layer
        });
        let layers = layers.collect();
        Ok(Self { input, positions, classes, layers, output: Linear::new(&next(), &next()) })
    }
}

/// Rows [K, C] and, last, their mean.
fn with_mean<T: Real>(mut rows: Vec<T>, c: usize) -> Vec<T> {
    let mean = |d: usize| rows.chunks_exact(c).map(|row| row[d].wide()).sum::<f64>() / (rows.len() / c) as f64;
    let mean: Vec<T> = (0..c).map(|d| T::of(mean(d))).collect();
    rows.extend(mean);
    rows
}

fn values<T: Real>(weights: &Weights, name: &str, shape: &[usize]) -> Result<Vec<T>, String> {
    let tensor = weights.0.get(name).ok_or_else(|| format!("array '{name}' is missing"))?;
    if tensor.shape == shape && tensor.values.len() == shape.iter().product::<usize>() {
        Ok(tensor.values.iter().map(|&x| T::of(f64::from(x))).collect())
    } else {
        Err(format!("array '{name}' has shape {:?}, not {shape:?}", tensor.shape))
    }
}
