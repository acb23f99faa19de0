//! What the tokens of a pass attend to: keys and values kept from the tokens before it, and the
//! causal mask.

use std::ops::Range;

use burn::tensor::{DType, Device, Tensor};

use super::{HEAD, Mask};

/// Keys and values of one layer, of the tokens read so far: [N, heads, T, 64] each, zeros where
/// nothing was read.
#[derive(Debug, Clone)]
pub struct KvCache {
    keys: Tensor<4>,
    values: Tensor<4>,
}

impl KvCache {
    /// For N images of T tokens; nothing is read yet. Keys and values have memory of their own, as
    /// they are written in place.
    pub fn new([n, heads, t]: [usize; 3], device: &Device, dtype: DType) -> Self {
        let empty = || Tensor::zeros([n, heads, t, HEAD], (device, dtype));
        Self { keys: empty(), values: empty() }
    }

    /// Writes keys and values [N, heads, M, 64] of the tokens from `first` on; returns those of all
    /// T tokens.
    fn extend(&mut self, first: usize, k: Tensor<4>, v: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        let [n, heads, m, width] = k.dims();
        let here = [0..n, 0..heads, first..first + m, 0..width];
        assign(&mut self.keys, here.clone(), k);
        assign(&mut self.values, here, v);
        (self.keys.clone(), self.values.clone())
    }
}

/// Writes values at their places in a tensor, into its own memory where no other handle shares it.
pub fn assign<const D: usize>(whole: &mut Tensor<D>, places: [Range<usize>; D], values: Tensor<D>) {
    // Moved out: a second handle would have burn copy all of it.
    let own = std::mem::replace(whole, values.clone());
    *whole = own.slice_assign(places, values);
}

/// What the tokens of a pass attend to.
pub struct Context<'a> {
    /// Place of the pass's first token.
    pub first: usize,
    /// One for each layer; without, the tokens of the pass are all there are.
    pub caches: Option<&'a mut [KvCache]>,
    /// Where its tokens may look.
    pub mask: &'a Mask,
    /// Softmax temperature of the attention.
    pub temperature: f64,
}

impl<'a> Context<'a> {
    /// Of a pass over all tokens of an image.
    pub fn of_all_tokens(mask: &'a Mask) -> Self {
        Self { first: 0, caches: None, mask, temperature: 1.0 }
    }

    /// Keys and values that the tokens of the pass attend to in `layer`: theirs, `k` and `v` [N,
    /// heads, M, 64], after those of the tokens before them, where these are kept.
    pub fn extend(&mut self, layer: usize, k: Tensor<4>, v: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        match self.caches.as_mut().and_then(|caches| caches.get_mut(layer)) {
            Some(cache) => cache.extend(self.first, k, v),
            None => (k, v),
        }
    }
}
