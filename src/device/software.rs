//! Operations with kernels of our own for graphics devices that are software (llvmpipe and its kin). A unit is a lane of a
//! processor's vectors there, and what pays on a card, shared memory and barriers, is what costs most: burn's tiled products take as
//! long for one row as for sixty-four. These have neither; a unit keeps its sums in registers, and what burn computes in many
//! launches takes one. Each stands beside the operations of burn it computes the same as, which are used everywhere else: on cards
//! nobody has timed these.

#[cfg(feature = "wgpu")]
mod kernels;
#[cfg(all(test, feature = "wgpu"))]
mod tests;
#[cfg(feature = "wgpu")]
mod tokens;

use burn::tensor::Tensor;
use burn::tensor::activation::gelu;
use burn::tensor::module;

use super::{bounded, wide};

/// Arrays that a kernel reads and writes, and its numbers.
#[cfg(feature = "wgpu")]
pub const BUFFERS: u32 = 6;

/// `weight` [out, in] as it is, kept in the order in which [`linear`] reads it fastest.
pub fn in_order(weight: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "wgpu")]
    if let Some(weight) = kernels::in_order(&weight) {
        return weight;
    }
    weight
}

/// What becomes of what a linear map gives.
#[derive(Debug, Clone, Copy)]
pub enum Then<'a> {
    /// It stays as it is.
    Stays,
    /// The exact (erf) GELU of it.
    Gelu,
    /// It is added to this, [N, M, out] or for all images the same [1, M, out].
    Added(&'a Tensor<3>),
}

impl Then<'_> {
    /// What becomes of `y`, by burn's operations.
    pub fn of(self, y: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Stays => y,
            Self::Gelu => gelu(y),
            Self::Added(to) => to.clone() + y,
        }
    }
}

/// x Wᵀ + b for x [N, M, in], W [out, in] and b [out], and what becomes of it: [N, M, out].
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>, then: Then<'_>) -> Tensor<3> {
    #[cfg(feature = "wgpu")]
    if let Some(y) = kernels::linear(&x, &weight, &bias, then) {
        return bounded(y);
    }
    if x.device().is_autodiff() {
        return then.of(bounded(module::linear(x, weight.transpose(), Some(bias))));
    }
    let ([n, m, inner], [out, _]) = (x.dims(), weight.dims());
    let product = bounded(wide::matmul(x.reshape([n * m, inner]), weight.transpose()));
    then.of((product + bias.unsqueeze()).reshape([n, m, out]))
}

/// Layer normalisation of x [N, M, C] over C, weight and bias [C].
pub fn layer_norm(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>, epsilon: f64) -> Tensor<3> {
    #[cfg(feature = "wgpu")]
    if let Some(y) = kernels::layer_norm(&x, &weight, &bias, epsilon) {
        return y;
    }
    module::layer_norm(x, weight, Some(bias), epsilon)
}

/// Keys and values of the tokens before a pass, and room for its own: [N, heads, T, head] each, and nobody else's.
pub struct Past<'a> {
    /// Keys.
    pub keys: &'a Tensor<4>,
    /// Values.
    pub values: &'a Tensor<4>,
    /// Place of the pass's first token.
    pub first: usize,
}

/// Causal attention of the tokens of a pass, queries, keys and values [N, M, 3C] of so many heads: [N, M, C]. They look
/// at themselves and what came before, in the pass or in the past, to which they are added. `None` where burn computes it.
pub fn attention(qkv: &Tensor<3>, heads: usize, past: Option<&Past<'_>>, scale: f64) -> Option<Tensor<3>> {
    #[cfg(feature = "wgpu")]
    return tokens::attention(qkv, heads, past, scale).map(bounded);
    #[cfg(not(feature = "wgpu"))]
    {
        let _ = (qkv, heads, past, scale);
        None
    }
}

/// Bounds of what is not solved yet.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Of |a|.
    pub log_scale: f64,
    /// Of |x|.
    pub value: f64,
}

/// One round of an inverse in place: x_t = z_t e^a + b for the tokens from `first` on of x and z [N, T, P], where `out` [N, M, P or 2P]
/// holds b of each, after a if there is one. By how much each of them moved at most, [N, M]; a NaN moves by NaN. `None` where burn
/// computes it. Nobody else may look at x.
pub fn advance(
    out: &Tensor<3>,
    z: &Tensor<3>,
    x: &Tensor<3>,
    first: usize,
    bounds: Option<Bounds>,
) -> Option<Tensor<2>> {
    #[cfg(feature = "wgpu")]
    return tokens::advance(out, z, x, first, bounds);
    #[cfg(not(feature = "wgpu"))]
    {
        let _ = (out, z, x, first, bounds);
        None
    }
}
