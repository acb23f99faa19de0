//! Weights as the products like them, and the place of each in the state dict.

use std::sync::OnceLock;

use crate::flow::tarflow::{EXPANSION, TarFlowConfig};
use crate::flow::weights::Weights;
use crate::kernels::{Panels, Real};

/// y = W x + b.
#[derive(Debug)]
pub struct Linear<T> {
    /// Wᵀ and b.
    pub forward: Panels<T>,
    /// W, made when a gradient is first asked for.
    back: OnceLock<Panels<T>>,
}

impl<T: Real> Linear<T> {
    fn read(weights: &Weights, name: &str, outputs: usize, inputs: usize) -> Result<Self, String> {
        let w = values(weights, &format!("{name}.weight"), &[outputs, inputs])?;
        let b = values(weights, &format!("{name}.bias"), &[outputs])?;
        let narrow = |x: f32| T::of(f64::from(x));
        let forward = Panels::of(inputs, outputs, |i, o| narrow(w[o * inputs + i]), |o| narrow(b[o]));
        Ok(Self { forward, back: OnceLock::new() })
    }

    /// The matrix that takes gradients of y to gradients of x.
    pub fn back(&self) -> &Panels<T> {
        self.back.get_or_init(|| self.forward.transposed())
    }
}

/// Gain γ and bias β of a layer normalisation, [C] each.
#[derive(Debug)]
pub struct Norm<T> {
    /// γ.
    pub gain: Vec<T>,
    /// β.
    pub bias: Vec<T>,
}

impl<T: Real> Norm<T> {
    fn read(weights: &Weights, name: &str, channels: usize) -> Result<Self, String> {
        let read = |part| Ok::<_, String>(narrow(values(weights, &format!("{name}.{part}"), &[channels])?));
        Ok(Self { gain: read("weight")?, bias: read("bias")? })
    }
}

/// One attention layer and the MLP after it.
#[derive(Debug)]
pub struct Layer<T> {
    /// Before the attention.
    pub attention_norm: Norm<T>,
    /// Queries, keys and values, C → 3C.
    pub qkv: Linear<T>,
    /// Heads to residual, C → C.
    pub proj: Linear<T>,
    /// Before the MLP.
    pub mlp_norm: Norm<T>,
    /// C → 4C.
    pub expand: Linear<T>,
    /// 4C → C.
    pub contract: Linear<T>,
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
    /// Reads all blocks. A block's arrays are let go of once they are packed: at no time are all of them held twice.
    ///
    /// # Errors
    /// Says what is wrong with the architecture or names the array that is missing or has the wrong shape.
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
        let (c, tokens) = (config.channels, config.tokens());
        let at = |name: &str| format!("blocks.{index}.{name}");
        let mut positions: Vec<T> = narrow(values(weights, &at("pos_embed"), &[tokens, c])?);
        if config.flipped(index) {
            positions = positions.chunks_exact(c).rev().flatten().copied().collect();
        }
        let layer = |l: usize| {
            let at = |name: &str| at(&format!("attn_blocks.{l}.{name}"));
            Ok::<_, String>(Layer {
                attention_norm: Norm::read(weights, &at("attention.norm"), c)?,
                qkv: Linear::read(weights, &at("attention.qkv"), 3 * c, c)?,
                proj: Linear::read(weights, &at("attention.proj"), c, c)?,
                mlp_norm: Norm::read(weights, &at("mlp.norm"), c)?,
                expand: Linear::read(weights, &at("mlp.main.0"), EXPANSION * c, c)?,
                contract: Linear::read(weights, &at("mlp.main.2"), c, EXPANSION * c)?,
            })
        };
        Ok(Self {
            input: Linear::read(weights, &at("proj_in"), c, config.token_dims())?,
            positions,
            classes: classes(config, weights, &at("class_embed"))?,
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            output: Linear::read(weights, &at("proj_out"), config.outputs(), c)?,
        })
    }
}

fn classes<T: Real>(config: &TarFlowConfig, weights: &Weights, name: &str) -> Result<Vec<T>, String> {
    let c = config.channels;
    if config.embeddings() == 0 {
        return Ok(vec![T::ZERO; c]);
    }
    let rows = values(weights, name, &[config.classes, 1, c])?;
    let mean = |d: usize| rows.chunks_exact(c).map(|row| f64::from(row[d])).sum::<f64>() / config.classes as f64;
    let mut classes = narrow(rows);
    classes.extend((0..c).map(|d| T::of(mean(d))));
    Ok(classes)
}

fn values<'a>(weights: &'a Weights, name: &str, shape: &[usize]) -> Result<&'a [f32], String> {
    let tensor = weights.0.get(name).ok_or_else(|| format!("array '{name}' is missing"))?;
    if tensor.shape == shape && tensor.values.len() == shape.iter().product::<usize>() {
        Ok(&tensor.values)
    } else {
        Err(format!("array '{name}' has shape {:?}, not {shape:?}", tensor.shape))
    }
}

fn narrow<T: Real>(values: &[f32]) -> Vec<T> {
    values.iter().map(|&x| T::of(f64::from(x))).collect()
}
