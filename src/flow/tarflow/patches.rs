//! Images as tokens, and the arithmetic of one pass.

use super::{EXPANSION, TarFlowConfig};
use crate::data::ImageShape;

impl TarFlowConfig {
    /// Floating-point operations of the matrix products of one pass of one image under one class (2
    /// per multiply-add); attention counts its causal half.
    pub fn flop_per_image(&self) -> f64 {
        let (t, c) = (self.tokens() as f64, self.channels as f64);
        let layer = (4.0 + 2.0 * EXPANSION as f64) * c * c + (t + 1.0) * c;
        let ends = self.token_dims() as f64 * c + c * self.outputs() as f64;
        2.0 * self.blocks as f64 * t * (self.layers as f64 * layer + ends)
    }

    /// Bytes of the largest array that a pass over one image leaves on a device, in 32 bits: the
    /// hidden layer of an MLP, or the scores of an attention.
    pub fn bytes_per_image(&self) -> u64 {
        let (t, c) = (self.tokens(), self.channels);
        4 * (t * (EXPANSION * c).max(self.outputs())).max(self.heads() * t * t) as u64
    }

    /// Image values [N, C, H, W] as tokens [N, T, P]: patches row by row, inside a patch channel,
    /// then row, then column.
    pub fn patchify<V: Copy + Default>(&self, x: &[V]) -> Vec<V> {
        self.rearrange(x, |out, token, pixel, x| out[token] = x[pixel])
    }

    /// Inverse of [`Self::patchify`].
    pub fn unpatchify<V: Copy + Default>(&self, tokens: &[V]) -> Vec<V> {
        self.rearrange(tokens, |out, token, pixel, tokens| out[pixel] = tokens[token])
    }

    fn rearrange<V: Copy + Default>(&self, from: &[V], put: impl Fn(&mut [V], usize, usize, &[V])) -> Vec<V> {
        let ImageShape { channels, height, width } = self.shape;
        let (dims, side) = (self.shape.dims(), self.patch);
        let mut out = vec![V::default(); from.len()];
        for (out, from) in out.chunks_mut(dims).zip(from.chunks(dims)) {
            for c in 0..channels {
                for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
                    let token = (row / side) * (width / side) + column / side;
                    let inside = (c * side + row % side) * side + column % side;
                    put(out, token * self.token_dims() + inside, (c * height + row) * width + column, from);
                }
            }
        }
        out
    }
}
