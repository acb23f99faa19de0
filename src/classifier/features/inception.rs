//! Inception-v3: "Rethinking the Inception Architecture for Computer Vision" (Szegedy et al. 2016),
//! in two ports of Google's networks that share all names and shapes but those of the last linear
//! map.
//!
//! ```text
//! 5 convolutions with two max pools, 299 → 35 pixels → 3 × A → B, 17 pixels → 4 × C → D, 8 pixels → 2 × E → mean → linear
//! block: branches side by side, each a pool or none and then convolutions; their maps are joined
//! ```
//!
//! Every convolution is followed by a batch normalisation (ε 10⁻³) and a ReLU. The auxiliary
//! classifier, which helps in training only, is left out.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn::tensor::module::avg_pool2d;
use burn::tensor::ops::AvgPoolOptions;

use crate::classifier::init::{Init, InitResult, ParamBuilder};
use crate::classifier::layers::{BatchNorm, Conv, Linear, Pass, max_pool};

/// Side of the images it reads.
pub const SIDE: usize = 299;
/// Number of features.
pub const FEATURES: usize = 2048;
/// ε and momentum of the batch normalisations.
const NORM: (f64, f64) = (1e-3, 0.1);
/// Not drawn from here: a feature network's arrays are all given.
const INIT: Init = Init::TruncatedNormal(0.1);

/// Whose network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// That of the FID (Heusel et al. 2017), ported from TensorFlow by pytorch-fid: 1008 classes.
    /// Its average pools leave the padding out, the last block pools maxima, and its logits, as the
    /// inception score reads them, have no bias.
    PytorchFid,
    /// torchvision's, of 1000 classes.
    Torchvision,
}

impl Port {
    /// Outputs of its last linear map.
    pub const fn classes(self) -> usize {
        match self {
            Self::PytorchFid => 1008,
            Self::Torchvision => 1000,
        }
    }
}

/// What a branch starts with; all windows are 3×3.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pool {
    None,
    /// Means around every pixel.
    Mean {
        padding_counts: bool,
    },
    /// Maxima around every pixel.
    Max,
    /// Maxima around every other pixel, without padding.
    Halve,
}

impl Pool {
    fn of(self, x: Tensor<4>) -> Tensor<4> {
        match self {
            Self::None => x,
            Self::Mean { padding_counts } => {
                let around = AvgPoolOptions::new([3; 2]).with_stride([1; 2]).with_padding([1; 2]);
                avg_pool2d(x, around.with_count_include_pad(padding_counts))
            }
            Self::Max => max_pool(x, 3, 1, 1),
            Self::Halve => max_pool(x, 3, 2, 0),
        }
    }
}

/// How a convolution moves over its map.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Move {
    /// Around every pixel.
    Every,
    /// Around every other pixel, without padding.
    Halve,
    /// Around every pixel, without padding.
    Inside,
}

/// One convolution: its name, outputs, sides of its kernel.
type Line = (&'static str, usize, [usize; 2], Move);

/// One branch of a block, as it is made.
struct Path {
    pool: Pool,
    /// One after another.
    convs: Vec<Line>,
    /// After those, side by side: a 3×3 convolution in two halves.
    halves: Vec<Line>,
}

fn line(name: &'static str, outputs: usize, kernel: [usize; 2]) -> Line {
    (name, outputs, kernel, Move::Every)
}

fn convs(convs: impl Into<Vec<Line>>) -> Path {
    Path { pool: Pool::None, convs: convs.into(), halves: Vec::new() }
}

fn pooled(pool: Pool, outputs: usize) -> Path {
    Path { pool, ..convs([line("branch_pool", outputs, [1, 1])]) }
}

fn halved() -> Path {
    Path { pool: Pool::Halve, convs: Vec::new(), halves: Vec::new() }
}

/// Figure 5 of the paper: two 3×3 convolutions for the larger of the older two kernels.
fn block_a(pool: Pool, outputs: usize) -> Vec<Path> {
    vec![
        convs([line("branch1x1", 64, [1, 1])]),
        convs([line("branch5x5_1", 48, [1, 1]), line("branch5x5_2", 64, [5, 5])]),
        convs([
            line("branch3x3dbl_1", 64, [1, 1]),
            line("branch3x3dbl_2", 96, [3, 3]),
            line("branch3x3dbl_3", 96, [3, 3]),
        ]),
        pooled(pool, outputs),
    ]
}

/// Figure 10, from 35 to 17 pixels.
fn block_b() -> Vec<Path> {
    vec![
        convs([("branch3x3", 384, [3, 3], Move::Halve)]),
        convs([
            line("branch3x3dbl_1", 64, [1, 1]),
            line("branch3x3dbl_2", 96, [3, 3]),
            ("branch3x3dbl_3", 96, [3, 3], Move::Halve),
        ]),
        halved(),
    ]
}

/// Figure 6: 7×7 kernels as 1×7 and 7×1; `inside` is the width between them.
fn block_c(pool: Pool, inside: usize) -> Vec<Path> {
    vec![
        convs([line("branch1x1", 192, [1, 1])]),
        convs([
            line("branch7x7_1", inside, [1, 1]),
            line("branch7x7_2", inside, [1, 7]),
            line("branch7x7_3", 192, [7, 1]),
        ]),
        convs([
            line("branch7x7dbl_1", inside, [1, 1]),
            line("branch7x7dbl_2", inside, [7, 1]),
            line("branch7x7dbl_3", inside, [1, 7]),
            line("branch7x7dbl_4", inside, [7, 1]),
            line("branch7x7dbl_5", 192, [1, 7]),
        ]),
        pooled(pool, 192),
    ]
}

/// From 17 to 8 pixels.
fn block_d() -> Vec<Path> {
    vec![
        convs([line("branch3x3_1", 192, [1, 1]), ("branch3x3_2", 320, [3, 3], Move::Halve)]),
        convs([
            line("branch7x7x3_1", 192, [1, 1]),
            line("branch7x7x3_2", 192, [1, 7]),
            line("branch7x7x3_3", 192, [7, 1]),
            ("branch7x7x3_4", 192, [3, 3], Move::Halve),
        ]),
        halved(),
    ]
}

/// Figure 7: 3×3 kernels as 1×3 beside 3×1.
fn block_e(pool: Pool) -> Vec<Path> {
    let halves = |names: [&'static str; 2]| vec![line(names[0], 384, [1, 3]), line(names[1], 384, [3, 1])];
    vec![
        convs([line("branch1x1", 320, [1, 1])]),
        Path { halves: halves(["branch3x3_2a", "branch3x3_2b"]), ..convs([line("branch3x3_1", 384, [1, 1])]) },
        Path {
            halves: halves(["branch3x3dbl_3a", "branch3x3dbl_3b"]),
            ..convs([line("branch3x3dbl_1", 448, [1, 1]), line("branch3x3dbl_2", 384, [3, 3])])
        },
        pooled(pool, 192),
    ]
}

/// Convolution, normalisation, ReLU.
#[derive(Module, Debug)]
struct ConvNorm {
    conv: Conv,
    bn: BatchNorm,
}

impl ConvNorm {
    fn new(
        builder: &mut ParamBuilder<'_>,
        name: &str,
        input: usize,
        (_, outputs, [h, w], moved): Line,
    ) -> InitResult<Self> {
        let (stride, padding) = match moved {
            Move::Every => (1, [h / 2, w / 2]),
            Move::Halve => (2, [0, 0]),
            Move::Inside => (1, [0, 0]),
        };
        let conv = builder.conv(&format!("{name}.conv"), [outputs, input, h, w], (stride, 0), INIT)?.padded(padding);
        Ok(Self { conv, bn: builder.batch_norm(&format!("{name}.bn"), outputs, NORM)? })
    }

    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        relu(self.bn.forward(self.conv.maps(x, pass), pass))
    }

    fn outputs(&self) -> usize {
        self.conv.weight.dims()[0]
    }
}

/// One branch of a block.
#[derive(Module, Debug)]
struct Branch {
    #[module(skip)]
    pool: Pool,
    convs: Vec<ConvNorm>,
    halves: Vec<ConvNorm>,
}

impl Branch {
    fn new(builder: &mut ParamBuilder<'_>, block: &str, input: usize, path: Path) -> InitResult<Self> {
        let mut made = |input: usize, line: Line| ConvNorm::new(builder, &format!("{block}.{}", line.0), input, line);
        let (mut convs, mut width) = (Vec::new(), input);
        for line in path.convs {
            convs.push(made(width, line)?);
            width = line.1;
        }
        let halves = path.halves.into_iter().map(|line| made(width, line)).collect::<InitResult<_>>()?;
        Ok(Self { pool: path.pool, convs, halves })
    }

    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Vec<Tensor<4>> {
        let h = self.convs.iter().fold(self.pool.of(x), |h, conv| conv.forward(h, pass));
        match self.halves.is_empty() {
            true => vec![h],
            false => self.halves.iter().map(|half| half.forward(h.clone(), pass)).collect(),
        }
    }

    /// Channels after it.
    fn outputs(&self, input: usize) -> usize {
        match self.halves.is_empty() {
            true => self.convs.last().map_or(input, ConvNorm::outputs),
            false => self.halves.iter().map(ConvNorm::outputs).sum(),
        }
    }
}

/// All parameters of an Inception-v3.
#[derive(Module, Debug)]
pub struct Inception {
    stem: Vec<ConvNorm>,
    blocks: Vec<Vec<Branch>>,
    /// [K, 2048]
    pub fc: Linear,
}

/// The convolutions before the blocks, and those after which maxima are pooled.
const STEM: [(Line, bool); 5] = [
    (("Conv2d_1a_3x3", 32, [3, 3], Move::Halve), false),
    (("Conv2d_2a_3x3", 32, [3, 3], Move::Inside), false),
    (("Conv2d_2b_3x3", 64, [3, 3], Move::Every), true),
    (("Conv2d_3b_1x1", 80, [1, 1], Move::Every), false),
    (("Conv2d_4a_3x3", 192, [3, 3], Move::Inside), true),
];

impl Inception {
    /// A port's network.
    pub fn new(builder: &mut ParamBuilder<'_>, port: Port) -> InitResult<Self> {
        let (mut stem, mut width) = (Vec::new(), 3);
        for (line, _) in STEM {
            stem.push(ConvNorm::new(builder, line.0, width, line)?);
            width = line.1;
        }
        let mut blocks = Vec::new();
        for (name, paths) in table(port) {
            let make = |path| Branch::new(builder, name, width, path);
            let block = paths.into_iter().map(make).collect::<InitResult<Vec<_>>>()?;
            width = block.iter().map(|branch| branch.outputs(width)).sum();
            blocks.push(block);
        }
        let mut fc = builder.linear("fc", [port.classes(), width], [INIT, Init::Full(0.0)])?;
        if port == Port::PytorchFid {
            fc.bias = None;
        }
        Ok(Self { stem, blocks, fc })
    }

    /// x [N, 3, 299, 299] with values in [−1, 1] → what `fc` reads, [N, 2048].
    pub fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let x = pass.enter(x);
        let h = self.stem.iter().zip(STEM).fold(x, |h, (conv, (_, pool))| {
            let h = conv.forward(h, pass);
            if pool { Pool::Halve.of(h) } else { h }
        });
        let h = self.blocks.iter().fold(h, |h, block| {
            let maps = block.iter().flat_map(|branch| branch.forward(h.clone(), pass)).collect();
            pass.join(maps)
        });
        pass.means(h)
    }
}

/// The blocks by name.
fn table(port: Port) -> [(&'static str, Vec<Path>); 11] {
    let mean = Pool::Mean { padding_counts: port == Port::Torchvision };
    let last = if port == Port::Torchvision { mean } else { Pool::Max };
    [
        ("Mixed_5b", block_a(mean, 32)),
        ("Mixed_5c", block_a(mean, 64)),
        ("Mixed_5d", block_a(mean, 64)),
        ("Mixed_6a", block_b()),
        ("Mixed_6b", block_c(mean, 128)),
        ("Mixed_6c", block_c(mean, 160)),
        ("Mixed_6d", block_c(mean, 160)),
        ("Mixed_6e", block_c(mean, 192)),
        ("Mixed_7a", block_d()),
        ("Mixed_7b", block_e(mean)),
        ("Mixed_7c", block_e(last)),
    ]
}
