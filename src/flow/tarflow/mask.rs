//! The causal mask of attention.

use std::cell::OnceCell;
use std::ops::Range;

use burn::tensor::{Tensor, TensorData};

/// Where tokens may look: at themselves and what came before. Made where it is needed.
pub struct Mask {
    /// Places of the tokens that look.
    pub rows: Range<usize>,
    keys: usize,
    made: OnceCell<Tensor<4>>,
}

impl Mask {
    /// Of the tokens at places `rows`, looking at `keys` tokens.
    pub fn new(rows: Range<usize>, keys: usize) -> Self {
        Self { rows, keys, made: OnceCell::new() }
    }

    /// 0 where a token may look and elsewhere −10^30, whose exponential is 0 like that of −∞ (with
    /// which a compiler may do as it likes: Metal's does), [1, 1, rows, keys], in the format of
    /// `like` and beside it.
    pub fn like(&self, like: &Tensor<3>) -> Tensor<4> {
        let make = || {
            let looks = |row| (0..self.keys).map(move |key| if key <= row { 0.0 } else { -1e30 });
            let values: Vec<f32> = self.rows.clone().flat_map(looks).collect();
            let data = TensorData::new(values, [1, 1, self.rows.len(), self.keys]);
            Tensor::from_data(data, (&like.device(), like.dtype()))
        };
        self.made.get_or_init(make).clone()
    }
}
