//! The passes of a TarFlow by burn, on any of its devices.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::engine::{BaseTokens, Encoded, Engine, Inverted, Kept, ResidentEngine, Tick};
use super::solve::{Mixing, Solved};
use super::{Block, Condition, TarFlow, TarFlowConfig};
use crate::data::ImageShape;
use crate::device::{MatmulPrecision, at_most, guarded, in_batches, is_gpu, paints, paints_in_software};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::parameters::to_host;
use crate::flow::sampling::{Guidance, Strategy};
use crate::flow::weights::Weights;

/// Arithmetic of a pass on a software rasteriser that paints the window, too: tenths of a second on
/// two cores, for which a frame may have to wait.
const WINDOW_FLOP: f64 = 2e9;

/// A frozen TarFlow in burn's tensors.
#[derive(Debug)]
pub struct TensorTarFlow {
    config: TarFlowConfig,
    flow: TarFlow,
    device: Device,
    dtype: DType,
}

impl TensorTarFlow {
    /// From named arrays, on a device.
    ///
    /// # Errors
    /// Names the array that is missing or misshapen.
    pub fn new(config: &TarFlowConfig, weights: Weights, device: &Device, precision: Precision) -> Result<Self> {
        let flow = TarFlow::from_weights(config, weights, device, precision)?;
        Ok(Self { config: *config, flow, device: device.clone(), dtype: precision.dtype() })
    }

    fn upload(&self, device: &Device, tokens: &[f64]) -> Tensor<3> {
        let [t, p] = [self.config.tokens(), self.config.token_dims()];
        tensor(tokens, [tokens.len() / (t * p), t, p], device, self.dtype)
    }

    /// Whether all classes exist: mixing weights would pass over one that does not.
    fn check(&self, conditions: &[Condition]) -> Result<()> {
        let known = self.config.embeddings();
        match conditions.iter().flatten().find(|&&class| class >= known) {
            Some(class) => Err(Error::input(format!("class {class} is not among the {known} of this flow"))),
            None => Ok(()),
        }
    }

    fn block(&self, block: usize) -> Result<&Block> {
        let blocks = self.flow.blocks.len();
        self.flow.blocks.get(block).ok_or_else(|| Error::input(format!("there is no block {block} of {blocks}")))
    }

    fn classes(&self, device: &Device, conditions: &[Condition]) -> Option<Tensor<2>> {
        self.config.mixing_weights(conditions, device, self.dtype)
    }
}

impl TarFlowConfig {
    /// Mixing weights of the class embeddings, [N, K]: one for a class, 1/K each for none. None in
    /// an unconditional flow.
    pub fn mixing_weights(&self, conditions: &[Condition], device: &Device, dtype: DType) -> Option<Tensor<2>> {
        let k = self.embeddings();
        let weight = |condition: &Condition, class| match condition {
            Some(chosen) => f64::from(u8::from(*chosen == class)),
            None => 1.0 / k as f64,
        };
        let values: Vec<f64> = conditions.iter().flat_map(|c| (0..k).map(move |class| weight(c, class))).collect();
        (k > 0).then(|| tensor(&values, [conditions.len(), k], device, dtype))
    }
}

fn tensor<const D: usize>(values: &[f64], shape: [usize; D], device: &Device, dtype: DType) -> Tensor<D> {
    let data = match dtype {
        DType::F64 => TensorData::new(values.to_vec(), shape),
        _ => TensorData::new(values.iter().map(|&v| v as f32).collect::<Vec<_>>(), shape),
    };
    Tensor::from_data(data, (device, dtype))
}

/// Puts constants on a device that differentiates, without asking for their gradients.
struct Lift;

impl ModuleMapper for Lift {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(Tensor::from_inner)
    }
}

impl TensorTarFlow {
    fn terms_at_once(
        &self,
        x: Tensor<3>,
        conditions: &[Condition],
        BaseTokens { means, var }: BaseTokens<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let [n, t, p] = x.dims();
        let classes = self.classes(&self.device, conditions);
        let (z, log_dets) = self.flow.encode_by_blocks(x, classes.as_ref());
        let precision: Vec<f64> = var.iter().map(|var| var.recip()).collect();
        let precision = tensor(&precision, [1, t, p], &self.device, self.dtype);
        let distance = |z: Tensor<3>| (z.square() * precision.clone()).sum_dim(2).reshape([n, t]);
        let mut parts: Vec<Tensor<2>> = match means {
            [] => vec![distance(z)],
            means => {
                let from = |mean: &[f64]| z.clone() - tensor(mean, [1, t, p], &self.device, self.dtype);
                means.chunks(t * p).map(|mean| distance(from(mean))).collect()
            }
        };
        let distances = parts.len() * t;
        parts.extend(log_dets);
        let row = parts.len() * t;
        // One transfer for all.
        let all = to_host(Tensor::cat(parts, 1))?;
        let (mut quad, mut log_det) = (Vec::with_capacity(n * distances), Vec::with_capacity(n * t));
        for image in all.chunks_exact(row) {
            let (of_means, of_blocks) = image.split_at(distances);
            quad.extend_from_slice(of_means);
            log_det.extend((0..t).map(|token| of_blocks.iter().skip(token).step_by(t).sum::<f64>()));
        }
        Ok((quad, log_det))
    }

    /// What a device that has no memory for it calls this work.
    fn work(&self, what: &str) -> String {
        format!("{what} of a TarFlow of {} images", self.config.shape)
    }

    /// Answers about images, at most so many at once, and no more than the device takes: `pass` is
    /// told their tokens and conditions.
    fn in_batches<T>(
        &self,
        what: &str,
        most: usize,
        tokens: &[f64],
        conditions: &[Condition],
        mut pass: impl FnMut(&[f64], &[Condition]) -> Result<T>,
    ) -> Result<Vec<T>> {
        let dims = self.config.shape.dims();
        let what = self.work(what);
        let mut answers = Vec::new();
        for (tokens, conditions) in tokens.chunks(most.saturating_mul(dims)).zip(conditions.chunks(most)) {
            answers.extend(in_batches(&self.device, &what, conditions.len(), |range| {
                pass(&tokens[range.start * dims..range.end * dims], &conditions[range])
            })?);
        }
        Ok(answers)
    }

    /// z [N, T, P], and of every block its part of the log-determinants [N, T].
    fn passed(&self, x: &[f64], conditions: &[Condition]) -> (Tensor<3>, Vec<Tensor<2>>) {
        let classes = self.classes(&self.device, conditions);
        self.flow.encode_by_blocks(self.upload(&self.device, x), classes.as_ref())
    }

    fn encode_at_once(&self, x: &[f64], conditions: &[Condition]) -> Result<Encoded> {
        let (z, log_dets) = self.passed(x, conditions);
        self.read(z, log_dets, conditions.len())
    }

    /// What was found for `n` images.
    fn read(&self, z: Tensor<3>, log_dets: Vec<Tensor<2>>, n: usize) -> Result<Encoded> {
        // Differences of sums over blocks decide posteriors: they are added in f64, after one
        // transfer.
        let mut log_det = vec![0.0; n * self.config.tokens()];
        if !log_dets.is_empty() {
            let of_blocks = to_host(Tensor::cat(log_dets, 0))?;
            for of_block in of_blocks.chunks_exact(log_det.len().max(1)) {
                log_det.iter_mut().zip(of_block).for_each(|(sum, value)| *sum += value);
            }
        }
        Ok(Encoded { z: to_host(z)?, log_det })
    }

    fn gradient_at_once(&self, x: &[f64], conditions: &[Condition], weight: &[f64]) -> Result<(Vec<f64>, Encoded)> {
        let device = self.device.clone().autodiff();
        let flow = self.flow.clone().map(&mut Lift);
        let x = self.upload(&device, x).require_grad();
        let classes = self.classes(&device, conditions);
        let (z, log_det) = flow.encode(x.clone(), classes.as_ref());
        let weight: Tensor<3> =
            tensor(weight, [1, self.config.tokens(), self.config.token_dims()], &device, self.dtype);
        let log_density = log_det.clone().sum() - (z.clone().square() * weight).sum() * 0.5;
        let grads = log_density.backward();
        let gradient = match x.grad(&grads) {
            Some(gradient) => to_host(gradient)?,
            None => vec![0.0; x.dims().iter().product()],
        };
        Ok((gradient, Encoded { z: to_host(z.inner())?, log_det: to_host(log_det.inner())? }))
    }
}

/// Parts of a batch as the whole.
fn joined(parts: Vec<Encoded>) -> Encoded {
    let (z, log_det): (Vec<_>, Vec<_>) = parts.into_iter().map(|part| (part.z, part.log_det)).unzip();
    Encoded { z: z.concat(), log_det: log_det.concat() }
}

/// What a device makes of an image may differ in the last digits with the number of images beside
/// it, and where Jacobi rounds end, within their tolerance.
impl Engine for TensorTarFlow {
    fn formats(&self) -> Vec<MatmulPrecision> {
        let narrow = [MatmulPrecision::Bf16, MatmulPrecision::F16].into_iter();
        let computed = narrow.filter(|products| products.check(&self.device).is_ok());
        [MatmulPrecision::F32].into_iter().chain(computed).collect()
    }

    fn is_headless_gpu(&self) -> bool {
        is_gpu(&self.device) && !paints(&self.device)
    }

    fn resident(&self) -> Option<&dyn ResidentEngine> {
        (self.dtype == DType::F32).then_some(self as &dyn ResidentEngine)
    }

    fn narrowed(&self, products: MatmulPrecision) -> Result<Box<dyn Engine>> {
        products.check(&self.device)?;
        let flow = match products.narrow() {
            Some(dtype) => self.flow.narrowed(dtype),
            None => self.flow.clone(),
        };
        Ok(Box::new(Self { config: self.config, flow, device: self.device.clone(), dtype: self.dtype }))
    }

    fn encode(&self, x: &[f64], conditions: &[Condition]) -> Result<Encoded> {
        self.check(conditions)?;
        self.in_batches("passes", self.together(), x, conditions, |x, conditions| self.encode_at_once(x, conditions))
            .map(joined)
    }

    fn invert(
        &self,
        block: usize,
        z: &[f64],
        conditions: &[Condition],
        strategy: Strategy,
        guidance: Option<&Guidance>,
        tick: Tick<'_>,
    ) -> Result<Inverted> {
        let parts = self.in_batches("inverse passes", self.at_once(), z, conditions, |z, conditions| {
            let solved = self.solve(block, self.tokens(z), conditions, strategy, guidance, tick)?;
            Ok(Inverted { x: to_host(solved.x)?, rounds: solved.rounds, residual: solved.residual })
        })?;
        Ok(Inverted {
            rounds: parts.iter().map(|part| part.rounds).max().unwrap_or(0),
            residual: parts.iter().map(|part| part.residual).fold(0.0, f64::max),
            x: parts.into_iter().map(|part| part.x).collect::<Vec<_>>().concat(),
        })
    }

    fn log_scales(&self, block: usize, x: &[f64], conditions: &[Condition]) -> Result<Vec<f64>> {
        let (flipped, block) = (self.config.flipped(block), self.block(block)?);
        let parts = self.in_batches("passes", self.together(), x, conditions, |x, conditions| {
            let classes = self.classes(&self.device, conditions);
            to_host(block.log_scales(self.upload(&self.device, x), classes.as_ref(), flipped))
        })?;
        Ok(parts.concat())
    }

    fn gradient(&self, x: &[f64], conditions: &[Condition], weight: &[f64]) -> Result<(Vec<f64>, Encoded)> {
        let parts = self.in_batches("gradients", self.together(), x, conditions, |x, conditions| {
            self.gradient_at_once(x, conditions, weight)
        })?;
        let (gradients, encoded): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((gradients.concat(), joined(encoded)))
    }
}

impl ResidentEngine for TensorTarFlow {
    fn is_painted(&self) -> bool {
        paints(&self.device)
    }

    fn at_once(&self) -> usize {
        at_most(&self.device, self.config.bytes_per_image())
    }

    fn together(&self) -> usize {
        let few = (WINDOW_FLOP / self.config.flop_per_image()) as usize;
        let most = if paints_in_software(&self.device) { few.max(1) } else { usize::MAX };
        self.at_once().min(most)
    }

    fn tokens(&self, tokens: &[f64]) -> Tensor<3> {
        self.upload(&self.device, tokens)
    }

    fn images(&self, tokens: Tensor<3>) -> Tensor<4> {
        let ImageShape { channels, height, width } = self.config.shape;
        let (n, side) = (tokens.dims()[0], self.config.patch);
        let (rows, columns) = (height / side, width / side);
        let patches = tokens.reshape([n, rows, columns, channels, side, side]);
        patches.permute([0, 3, 1, 4, 2, 5]).reshape([n, channels, height, width])
    }

    fn solve(
        &self,
        block: usize,
        z: Tensor<3>,
        conditions: &[Condition],
        strategy: Strategy,
        guidance: Option<&Guidance>,
        tick: Tick<'_>,
    ) -> Result<Solved> {
        self.check(conditions)?;
        let mixing = Mixing {
            classes: self.classes(&self.device, conditions),
            none: self.classes(&self.device, &vec![None; conditions.len()]),
        };
        self.block(block)?.invert(z, &mixing, self.config.flipped(block), strategy, guidance, tick)
    }

    fn terms(&self, x: &Tensor<3>, conditions: &[Condition], base: BaseTokens<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        self.check(conditions)?;
        let parts = in_batches(&self.device, &self.work("passes"), conditions.len(), |range| {
            self.terms_at_once(x.clone().slice(range.clone()), &conditions[range], base)
        })?;
        let (quad, log_det): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((quad.concat(), log_det.concat()))
    }

    fn encode_kept(&self, x: &[f64], condition: Condition) -> Result<(Encoded, Kept)> {
        self.check(&[condition])?;
        let t = self.config.tokens();
        guarded(&self.device, || {
            let (z, log_dets) = self.passed(x, &[condition]);
            let none = Tensor::zeros([t], (&self.device, self.dtype));
            let log_det = log_dets.iter().fold(none, |sum, of_block| sum + of_block.clone().reshape([t]));
            Ok((self.read(z.clone(), log_dets, 1)?, Kept { z, log_det }))
        })
    }
}
