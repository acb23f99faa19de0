//! Swin-T: "Swin Transformer: Hierarchical Vision Transformer using Shifted Windows" (Liu et al.
//! 2021), as torchvision builds it.
//!
//! ```text
//! patches 4×4 → norm → 4 stages of blocks (96, 192, 384, 768 channels), between them four neighbours merged → norm → mean → linear
//! block: x + attention(norm x) in windows of 7×7, every second block's shifted by 3; then x + mlp(norm x)
//! ```
//!
//! Maps that windows do not tile are padded with zeros; where one window covers a side, nothing is
//! shifted along it.

use burn::module::{Module, Param};
use burn::tensor::activation::softmax;
use burn::tensor::ops::PadMode;
use burn::tensor::{Int, Tensor, TensorData};

use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Conv, LayerNorm, Linear, Pass, channels_last};
use crate::device::{bounded, gelu};

const WIDTHS: [usize; 4] = [96, 192, 384, 768];
const BLOCKS: [usize; 4] = [2, 2, 6, 2];
/// Channels of one head.
const HEAD: usize = 32;
/// Side of a window.
const WINDOW: usize = 7;
/// Tokens of a window.
const TOKENS: usize = WINDOW * WINDOW;
const EPS: f64 = 1e-5;
/// Probability with which the last block's branches are dropped; it grows linearly from 0 at the
/// first.
const STOCHASTIC_DEPTH: f64 = 0.2;
/// Tokens of different regions that a shift brought into one window: their scores are lowered by
/// this.
const APART: f32 = -100.0;
const INIT: [Init; 2] = [Init::TruncatedNormal(0.02), Init::Full(0.0)];

/// Attention inside windows.
#[derive(Module, Debug)]
struct WindowAttention {
    /// [(2·7 − 1)², heads], by relative place.
    relative_position_bias_table: Param<Tensor<2>>,
    qkv: Linear,
    proj: Linear,
    shift: usize,
}

impl WindowAttention {
    /// x [N, H, W, C] → the same shape.
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let [n, h, w, c] = x.dims();
        let (high, wide) = (h.next_multiple_of(WINDOW), w.next_multiple_of(WINDOW));
        let x = x.pad([(0, 0), (0, high - h), (0, wide - w), (0, 0)], PadMode::Constant(0.0));
        let shift = [high, wide].map(|side| if side <= WINDOW { 0 } else { self.shift });
        let (down, right) = (shift[0] as i64, shift[1] as i64);
        let shifted = shift != [0, 0];
        let x = if shifted { x.roll(&[-down, -right], &[1, 2]) } else { x };
        let mask = shifted.then(|| regions_mask([high, wide], shift, &x));
        let x = from_windows(self.attend(to_windows(x), mask), [n, high, wide, c]);
        let x = if shifted { x.roll(&[down, right], &[1, 2]) } else { x };
        x.narrow(1, 0, h).narrow(2, 0, w)
    }

    /// x [N·windows, 49, C] → the same shape; `mask` [windows, 49, 49].
    fn attend(&self, x: Tensor<3>, mask: Option<Tensor<3>>) -> Tensor<3> {
        let [rows, t, c] = x.dims();
        let heads = c / HEAD;
        let qkv = self.qkv.forward(x).reshape([rows, t, 3 * heads, HEAD]).swap_dims(1, 2);
        let part = |i: usize| qkv.clone().narrow(1, i * heads, heads);
        let scores = bounded((part(0) * (HEAD as f64).powf(-0.5)).matmul(part(1).swap_dims(2, 3)));
        let scores = scores + self.relative_bias().unsqueeze();
        let scores = match mask {
            None => scores,
            Some(mask) => {
                let windows = mask.dims()[0];
                let apart: Tensor<5> = mask.reshape([1, windows, 1, t, t]);
                (scores.reshape([rows / windows, windows, heads, t, t]) + apart).reshape([rows, heads, t, t])
            }
        };
        let read = softmax(scores, 3).matmul(part(2));
        self.proj.forward(read.swap_dims(1, 2).reshape([rows, t, c]))
    }

    /// The table spread over all pairs of tokens, [heads, 49, 49].
    fn relative_bias(&self) -> Tensor<3> {
        let table = self.relative_position_bias_table.val();
        let heads = table.dims()[1];
        let index: Tensor<1, Int> = Tensor::from_data(TensorData::from(relative_index()), &table.device());
        table.select(0, index).reshape([TOKENS, TOKENS, heads]).permute([2, 0, 1])
    }
}

/// Row of the table for every pair of tokens of a window.
fn relative_index() -> [i64; TOKENS * TOKENS] {
    let side = 2 * WINDOW - 1;
    std::array::from_fn(|pair| {
        let (i, j) = (pair / TOKENS, pair % TOKENS);
        let rows = WINDOW - 1 + i / WINDOW - j / WINDOW;
        let columns = WINDOW - 1 + i % WINDOW - j % WINDOW;
        (rows * side + columns) as i64
    })
}

/// 0 between tokens of one region and −100 between those a shift brought together, [windows, 49,
/// 49].
fn regions_mask([high, wide]: [usize; 2], shift: [usize; 2], like: &Tensor<4>) -> Tensor<3> {
    // Along each side: what stays, the last window's stationary part, and what came around.
    let region = |at: usize, side: usize, shift: usize| match at {
        _ if shift == 0 => 0,
        at if at < side - WINDOW => 0,
        at if at < side - shift => 1,
        _ => 2,
    };
    let columns = wide / WINDOW;
    let windows = (high / WINDOW) * columns;
    let region_of = |window: usize, token: usize| {
        let row = (window / columns) * WINDOW + token / WINDOW;
        let column = (window % columns) * WINDOW + token % WINDOW;
        3 * region(row, high, shift[0]) + region(column, wide, shift[1])
    };
    let mut values = Vec::with_capacity(windows * TOKENS * TOKENS);
    for window in 0..windows {
        for i in 0..TOKENS {
            let own = region_of(window, i);
            values.extend((0..TOKENS).map(|j| if region_of(window, j) == own { 0.0 } else { APART }));
        }
    }
    Tensor::from_data(TensorData::new(values, [windows, TOKENS, TOKENS]), (&like.device(), like.dtype()))
}

/// [N, H, W, C] → [N·windows, 49, C].
fn to_windows(x: Tensor<4>) -> Tensor<3> {
    let [n, h, w, c] = x.dims();
    let x: Tensor<6> = x.reshape([n, h / WINDOW, WINDOW, w / WINDOW, WINDOW, c]);
    x.permute([0, 1, 3, 2, 4, 5]).reshape([n * (h / WINDOW) * (w / WINDOW), TOKENS, c])
}

/// The inverse of [`to_windows`].
fn from_windows(x: Tensor<3>, [n, h, w, c]: [usize; 4]) -> Tensor<4> {
    let x: Tensor<6> = x.reshape([n, h / WINDOW, w / WINDOW, WINDOW, WINDOW, c]);
    x.permute([0, 1, 3, 2, 4, 5]).reshape([n, h, w, c])
}

/// One block.
#[derive(Module, Debug)]
struct Block {
    norm1: LayerNorm,
    attn: WindowAttention,
    norm2: LayerNorm,
    mlp: [Linear; 2],
    dropped: f64,
}

impl Block {
    /// x [N, H, W, C] → the same shape.
    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let read = self.attn.forward(self.norm1.forward(x.clone()));
        let x = x + pass.drop_branch(read, self.dropped);
        let [up, down] = &self.mlp;
        let thought = down.forward(gelu(up.forward(self.norm2.forward(x.clone()))));
        x + pass.drop_branch(thought, self.dropped)
    }
}

/// Four neighbours become one token of twice the channels.
#[derive(Module, Debug)]
struct PatchMerging {
    norm: LayerNorm,
    reduction: Linear,
}

impl PatchMerging {
    /// x [N, H, W, C] → [N, ⌈H/2⌉, ⌈W/2⌉, 2C].
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let [n, h, w, c] = x.dims();
        let x = x.pad([(0, 0), (0, h % 2), (0, w % 2), (0, 0)], PadMode::Constant(0.0));
        let (h, w) = (h.div_ceil(2), w.div_ceil(2));
        // Columns outermost: (0,0), (1,0), (0,1), (1,1).
        let x: Tensor<6> = x.reshape([n, h, 2, w, 2, c]);
        let x = x.permute([0, 1, 3, 4, 2, 5]).reshape([n, h, w, 4 * c]);
        self.reduction.forward(self.norm.forward(x))
    }
}

/// Swin-T.
pub const SWIN_T: Descriptor<Swin> = Descriptor {
    name: "swin-t",
    label: "Swin-T",
    head: "head",
    side: Side::AtLeast(4),
    build: |builder, shape, classes| Swin::new(builder, shape.channels, classes),
};

/// All parameters of a Swin Transformer.
#[derive(Module, Debug)]
pub struct Swin {
    stem: Conv,
    stem_norm: LayerNorm,
    stages: Vec<Vec<Block>>,
    mergings: Vec<PatchMerging>,
    norm: LayerNorm,
    /// [K, 768]
    pub head: Linear,
}

impl Swin {
    /// For images of so many channels, with sides of at least 4.
    fn new(builder: &mut ParamBuilder<'_>, channels: usize, classes: usize) -> InitResult<Self> {
        // The first convolution starts as torch starts it, not as the rest.
        let stem_init = Init::fan_in(16 * channels);
        let stem = builder.biased_conv("features.0.0", [WIDTHS[0], channels, 4, 4], (4, 0), [stem_init; 2])?;
        let stem_norm = builder.layer_norm("features.0.2", WIDTHS[0], EPS)?;
        let last = BLOCKS.iter().sum::<usize>() - 1;
        let (mut stages, mut mergings, mut index) = (Vec::new(), Vec::new(), 0);
        for (s, &width) in WIDTHS.iter().enumerate() {
            if s > 0 {
                mergings.push(merging(builder, &format!("features.{}", 2 * s), WIDTHS[s - 1])?);
            }
            let mut stage = Vec::new();
            for b in 0..BLOCKS[s] {
                let dropped = STOCHASTIC_DEPTH * index as f64 / last as f64;
                let shift = if b % 2 == 1 { WINDOW / 2 } else { 0 };
                stage.push(block(builder, &format!("features.{}.{b}", 2 * s + 1), width, shift, dropped)?);
                index += 1;
            }
            stages.push(stage);
        }
        let norm = builder.layer_norm("norm", WIDTHS[3], EPS)?;
        let head = builder.linear("head", [classes, WIDTHS[3]], INIT)?;
        Ok(Self { stem, stem_norm, stages, mergings, norm, head })
    }
}

impl Backbone for Swin {
    /// x [N, C, H, W] → what `head` reads, [N, 768].
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let mut h = self.stem_norm.forward(channels_last(self.stem.forward(x)));
        for (s, stage) in self.stages.iter().enumerate() {
            if let Some(merging) = s.checked_sub(1).and_then(|s| self.mergings.get(s)) {
                h = merging.forward(h);
            }
            h = stage.iter().fold(h, |h, block| block.forward(h, pass));
        }
        let [n, high, wide, c] = h.dims();
        let tokens = self.norm.forward(h).reshape([n, high * wide, c]);
        tokens.mean_dim(1).reshape([n, c])
    }

    fn head(&self) -> &Linear {
        &self.head
    }
}

fn merging(builder: &mut ParamBuilder<'_>, name: &str, c: usize) -> InitResult<PatchMerging> {
    let weight = builder.param(&format!("{name}.reduction.weight"), [2 * c, 4 * c], INIT[0])?;
    Ok(PatchMerging {
        norm: builder.layer_norm(&format!("{name}.norm"), 4 * c, EPS)?,
        reduction: Linear { weight, bias: None },
    })
}

fn block(builder: &mut ParamBuilder<'_>, name: &str, c: usize, shift: usize, dropped: f64) -> InitResult<Block> {
    let pairs = (2 * WINDOW - 1) * (2 * WINDOW - 1);
    let attn = format!("{name}.attn");
    let table = builder.param(&format!("{attn}.relative_position_bias_table"), [pairs, c / HEAD], INIT[0])?;
    let attn = WindowAttention {
        relative_position_bias_table: table,
        qkv: builder.linear(&format!("{attn}.qkv"), [3 * c, c], INIT)?,
        proj: builder.linear(&format!("{attn}.proj"), [c, c], INIT)?,
        shift,
    };
    let mut mlp =
        |number: usize, out: usize, input: usize| builder.linear(&format!("{name}.mlp.{number}"), [out, input], INIT);
    let mlp = [mlp(0, 4 * c, c)?, mlp(3, c, 4 * c)?];
    Ok(Block {
        norm1: builder.layer_norm(&format!("{name}.norm1"), c, EPS)?,
        attn,
        norm2: builder.layer_norm(&format!("{name}.norm2"), c, EPS)?,
        mlp,
        dropped,
    })
}
