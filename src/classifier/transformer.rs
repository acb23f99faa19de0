//! The encoder layer of a Vision Transformer, with torchvision's parameter names.
//!
//! ```text
//! x ← x + attention(norm x), x ← x + mlp(norm x)
//! ```

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{LayerNorm, Linear, linear_map};
use crate::device::{bounded, gelu};
use crate::kernels::HEAD;

/// Variance floor of the norms.
pub const EPS: f64 = 1e-6;

/// Multi-head self-attention with torch's packed projection.
#[derive(Module, Debug)]
struct Attention {
    /// [3C, C]
    in_proj_weight: Param<Tensor<2>>,
    /// [3C]
    in_proj_bias: Param<Tensor<1>>,
    out_proj: Linear,
}

impl Attention {
    /// x [N, T, C] → [N, T, C].
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [n, t, c] = x.dims();
        let heads = c / HEAD;
        // [N, T, 3C] → [3·heads, …] → q, k, v [N, heads, T, 64]
        let qkv = linear_map(x, &self.in_proj_weight, Some(&self.in_proj_bias));
        let qkv = qkv.reshape([n, t, 3 * heads, HEAD]).swap_dims(1, 2);
        let part = |i: usize| qkv.clone().narrow(1, i * heads, heads);
        let scores = bounded(part(0).matmul(part(1).swap_dims(2, 3))) / (HEAD as f64).sqrt();
        let read = softmax(scores, 3).matmul(part(2));
        self.out_proj.forward(read.swap_dims(1, 2).reshape([n, t, c]))
    }
}

/// x + attention, then x + MLP. The order of the fields is that of
/// [`crate::kernels::transformer::ARRAYS`].
#[derive(Module, Debug)]
pub struct EncoderLayer {
    ln_1: LayerNorm,
    self_attention: Attention,
    ln_2: LayerNorm,
    mlp: [Linear; 2],
}

impl EncoderLayer {
    /// Layer `index` of so many channels, with so many in the MLP between.
    pub fn new(builder: &mut ParamBuilder<'_>, index: usize, [c, hidden]: [usize; 2]) -> InitResult<Self> {
        let name = format!("encoder.layers.encoder_layer_{index}");
        let attention = format!("{name}.self_attention");
        let mut mlp = |number: usize, out: usize, input: usize| {
            let init = [Init::xavier_uniform(input, out), Init::Normal(1e-6)];
            builder.linear(&format!("{name}.mlp.{number}"), [out, input], init)
        };
        let mlp = [mlp(0, hidden, c)?, mlp(3, c, hidden)?];
        let (zero, packed) = (Init::Full(0.0), Init::xavier_uniform(c, 3 * c));
        Ok(Self {
            ln_1: builder.layer_norm(&format!("{name}.ln_1"), c, EPS)?,
            self_attention: Attention {
                in_proj_weight: builder.param(&format!("{attention}.in_proj_weight"), [3 * c, c], packed)?,
                in_proj_bias: builder.param(&format!("{attention}.in_proj_bias"), [3 * c], zero)?,
                out_proj: builder.linear(&format!("{attention}.out_proj"), [c, c], [Init::fan_in(c), zero])?,
            },
            ln_2: builder.layer_norm(&format!("{name}.ln_2"), c, EPS)?,
            mlp,
        })
    }

    /// x [N, T, C] → [N, T, C].
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let x = x.clone() + self.self_attention.forward(self.ln_1.forward(x));
        let [up, down] = &self.mlp;
        x.clone() + down.forward(gelu(up.forward(self.ln_2.forward(x))))
    }

    /// Identity of its first parameter, which stands for the layer.
    pub fn id(&self) -> u64 {
        self.ln_1.weight.id.val()
    }

    /// Channels, and those in the MLP between.
    pub fn widths(&self) -> [usize; 2] {
        let [hidden, c] = self.mlp[0].weight.dims();
        [c, hidden]
    }
}
