//! A Glow that no longer changes, as the shared-map flow of a world.

use std::cell::RefCell;
use std::ops::Range;

use burn::tensor::{DType, Device, Tensor, TensorData};
use nalgebra::{DMatrix, DVector};

use super::cpu::{CpuGlow, HostMap};
use super::matrix::{from_matrix, invert, to_matrix};
use super::{Affine, FlowStep, Glow, GlowConfig, Step, decode, encode};
use crate::data::ImageShape;
use crate::device::{at_most, in_batches, paints};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::flow::base::GaussianBase;
use crate::flow::parameters::to_host;
use crate::flow::preprocess::{Front, Preprocessing};
use crate::flow::weights::Weights;
use crate::flow::{
    Decoded, Decoding, Evidence, Flow, Mapped, Precision, Resident, ResidentFlow, Scores, SharedMap, check_finite,
};
use crate::units::{ClassId, Tau};

/// A frozen conditional Glow: weights folded, 1×1 convolutions inverted, base distribution on the
/// host in f64.
#[derive(Debug)]
pub struct GlowFlow {
    config: GlowConfig,
    device: Device,
    dtype: DType,
    steps: Steps,
    /// Σ over steps of H·W·(Σ logs + log |det W|), f64.
    constant_log_det: f64,
    pixels: Preprocessing,
    front: Front,
    base: GaussianBase,
}

/// Where the steps of flow are computed.
#[derive(Debug)]
enum Steps {
    /// By kernels of our own, on the CPU.
    Host(Box<dyn HostMap>),
    /// By tensors on any device.
    Tensors(TensorSteps),
}

/// Steps of every level, and the inverses of their mixing maps.
#[derive(Debug)]
struct TensorSteps {
    levels: Vec<Vec<Step>>,
    unmix: Vec<Vec<Affine>>,
}

impl TensorSteps {
    fn moved(self, device: &Device) -> Self {
        let levels = self.levels.into_iter().map(|steps| steps.into_iter().map(|step| step.moved(device)).collect());
        let unmix = self.unmix.into_iter().map(|maps| maps.into_iter().map(|map| map.moved(device)).collect());
        Self { levels: levels.collect(), unmix: unmix.collect() }
    }

    /// The same steps with weights packed for our own kernels.
    fn on_host(&self, config: &GlowConfig, dtype: DType) -> Result<Steps> {
        Ok(Steps::Host(match dtype {
            DType::F64 => Box::new(CpuGlow::<f64>::new(config, &self.levels, &self.unmix)?),
            _ => Box::new(CpuGlow::<f32>::new(config, &self.levels, &self.unmix)?),
        }))
    }
}

/// [`FlowStep::fold`], with ActNorm and 1×1 convolution multiplied out in f64 on the host: what the
/// exp of a graphics adapter is off by adds up over steps and dimensions of log p. (Measured on
/// llvmpipe: log p errs a third of what it does otherwise.)
fn fold(step: &FlowStep) -> Result<Step> {
    let scales =
        DVector::from_iterator(step.conv.weight.dims()[0], to_host(step.norm.logs.val())?.into_iter().map(f64::exp));
    let bias = DMatrix::from_vec(scales.len(), 1, to_host(step.norm.bias.val())?);
    let like = step.conv.weight.val();
    let weight = to_matrix(&like)? * DMatrix::from_diagonal(&scales);
    let mix = Affine { bias: from_matrix(&(&weight * bias), &like), weight: from_matrix(&weight, &like) };
    Ok(step.fold().with_mix(mix))
}

impl GlowFlow {
    /// Freezes named arrays on `device`.
    ///
    /// # Errors
    /// When an array is missing or misshapen, or a 1×1 convolution is singular.
    pub fn new(
        config: &GlowConfig,
        weights: Weights,
        pixels: Preprocessing,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        // Folding reads every small matrix: of a device behind a network that would be hundreds of
        // round trips.
        let glow = Glow::from_weights(config, weights, &Device::flex(), precision)?;
        Self::freeze_on(config, &glow, pixels, device)
    }

    /// Freezes a Glow where it is.
    ///
    /// # Errors
    /// When a 1×1 convolution is singular or the device fails.
    pub fn freeze(config: &GlowConfig, glow: &Glow, pixels: Preprocessing) -> Result<Self> {
        Self::freeze_on(config, glow, pixels, &glow.means.val().device())
    }

    /// [`Self::freeze`], then moves it to a device.
    fn freeze_on(config: &GlowConfig, glow: &Glow, pixels: Preprocessing, device: &Device) -> Result<Self> {
        let flow = Self::freeze_tensors(config, glow, pixels)?;
        let Steps::Tensors(steps) = flow.steps else { return Ok(flow) };
        let steps = match *device == Device::flex() {
            true => steps.on_host(config, flow.dtype)?,
            false => Steps::Tensors(steps.moved(device)),
        };
        Ok(Self { steps, device: device.clone(), ..flow })
    }

    /// A frozen Glow whose steps are tensors where the parameters are.
    pub(super) fn freeze_tensors(config: &GlowConfig, glow: &Glow, pixels: Preprocessing) -> Result<Self> {
        let mut levels = Vec::new();
        let mut unmix = Vec::new();
        let mut constant_log_det = 0.0;
        for (l, level) in glow.levels.iter().enumerate() {
            let shape = config.level_shape(l);
            let steps: Vec<Step> = level.steps.iter().map(fold).collect::<Result<_>>()?;
            unmix.push(steps.iter().map(|step| step.mix.inverse()).collect::<Result<Vec<_>>>()?);
            levels.push(steps);
            for step in &level.steps {
                let (_, log_det) = invert(&to_matrix(&step.conv.weight.val())?)?;
                let logs: f64 = to_host(step.norm.logs.val())?.iter().sum();
                constant_log_det += (shape.height * shape.width) as f64 * (logs + log_det);
            }
        }
        let bounds = to_host(glow.bounds.val())?;
        Ok(Self {
            config: *config,
            device: glow.means.val().device(),
            dtype: glow.means.val().dtype(),
            steps: Steps::Tensors(TensorSteps { levels, unmix }),
            constant_log_det,
            pixels,
            front: Front::new(pixels, bounds.first().copied().unwrap_or(f64::NAN)),
            base: GaussianBase::new(to_host(glow.means.val())?, &to_host(glow.cov_diag.val())?),
        })
    }

    /// Base-space images of world-space x (NCHW; f32, or f64 where every digit counts).
    ///
    /// # Errors
    /// When an image is outside the support of the logit map, the numbers leave the finite range,
    /// or the device fails.
    pub fn encode<T: Copy + Into<f64> + Sync>(&self, x: &[T]) -> Result<Mapped> {
        self.encode_seen(x, |_| ())
    }

    /// [`Self::encode`]; `see` is shown z [N, C, H, W] of each pass where it was computed.
    fn encode_seen<T: Copy + Into<f64> + Sync>(&self, x: &[T], see: impl Fn(&Tensor<4>)) -> Result<Mapped> {
        let dims = self.config.shape.dims();
        let (y, mut log_det) = self.front.forward(x, dims);
        if let Some(i) = y.chunks(dims).position(|y| y.iter().any(|v| !v.is_finite())) {
            let place =
                self.front.support().map_or("the finite numbers".to_owned(), |[a, b]| format!("({a:.4}, {b:.4})"));
            return Err(Error::input(format!(
                "image {i} has values outside {place}, where this world has no density: is x in its world space ({})?",
                self.pixels.describe()
            )));
        }
        let z = match &self.steps {
            Steps::Host(steps) => self.on_host(steps.encode(&y), &mut log_det),
            Steps::Tensors(steps) => self.passes(y, &mut log_det, |y| {
                let (z, partial) = encode(&steps.levels, y);
                see(&z);
                (z, partial)
            })?,
        };
        self.finite(&z, &log_det)?;
        Ok(Mapped { images: z, log_det })
    }

    /// What leaves the map must be numbers: broken weights and far-out inputs overflow inside the
    /// couplings.
    fn finite(&self, images: &[f64], log_det: &[f64]) -> Result<()> {
        check_finite(images, self.config.shape.dims())?;
        check_finite(log_det, 1)
    }

    /// What our kernels made, once the log-determinants Σ s of the couplings, and the constant
    /// part, are added to `log_det` [N].
    fn on_host(&self, (made, sums): (Vec<f64>, Vec<f64>), log_det: &mut [f64]) -> Vec<f64> {
        log_det.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum + self.constant_log_det);
        made
    }

    /// What the couplings make of host values [N, D], and their log-determinants added to `log_det`
    /// [N]: as many images at once as the device takes.
    fn passes(
        &self,
        values: Vec<f64>,
        log_det: &mut [f64],
        pass: impl Fn(Tensor<4>) -> (Tensor<4>, Tensor<2>),
    ) -> Result<Vec<f64>> {
        let (dims, what) = (self.config.shape.dims(), format!("passes of a Glow of {} images", self.config.shape));
        let most = at_most(&self.device, self.config.bytes_per_image());
        let mut parts = Vec::new();
        for first in (0..log_det.len()).step_by(most) {
            let n = most.min(log_det.len() - first);
            parts.extend(in_batches(&self.device, &what, n, |range| {
                let (from, to) = ((first + range.start) * dims, (first + range.end) * dims);
                let (made, partial) = pass(self.upload(&values[from..to]));
                let sums = self.log_dets(partial)?;
                Ok((to_host(made)?, sums))
            })?);
        }
        let (made, sums): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        log_det.iter_mut().zip(sums.into_iter().flatten()).for_each(|(total, more)| *total += more);
        Ok(made.concat())
    }

    /// Host values [N·D] as a tensor of this flow's shape and precision.
    fn upload(&self, values: &[f64]) -> Tensor<4> {
        let ImageShape { channels, height, width } = self.config.shape;
        let shape = [values.len() / self.config.shape.dims(), channels, height, width];
        let data = match self.dtype {
            DType::F64 => TensorData::new(values.to_vec(), shape),
            _ => TensorData::new(values.iter().map(|&v| v as f32).collect::<Vec<_>>(), shape),
        };
        Tensor::from_data(data, (&self.device, self.dtype))
    }

    /// The couplings' partial sums (short sums over channels from the device, summed over positions
    /// in f64 here) and the constant part, [N].
    fn log_dets(&self, partial: Tensor<2>) -> Result<Vec<f64>> {
        let [_, positions] = partial.dims();
        let sum = |partial: &[f64]| partial.iter().sum::<f64>() + self.constant_log_det;
        Ok(to_host(partial)?.chunks(positions).map(sum).collect())
    }
}

impl SharedMap for GlowFlow {
    fn base(&self) -> &GaussianBase {
        &self.base
    }

    fn encode_base(&self, x: &[f64]) -> Result<Mapped> {
        self.encode(x)
    }

    fn decode_base(&self, z: Vec<f64>) -> Result<Mapped> {
        let dims = self.config.shape.dims();
        let mut couplings = vec![0.0; z.len() / dims];
        let y = match &self.steps {
            Steps::Host(steps) => self.on_host(steps.decode(&z), &mut couplings),
            Steps::Tensors(steps) => self.passes(z, &mut couplings, |z| decode(&steps.levels, &steps.unmix, z))?,
        };
        let (x, mut log_det) = self.front.inverse(y, dims);
        log_det.iter_mut().zip(couplings).for_each(|(total, more)| *total += more);
        self.finite(&x, &log_det)?;
        Ok(Mapped { images: x, log_det })
    }

    fn round(&self, x: &[f64]) -> Vec<f32> {
        self.front.round(x)
    }
}

/// Where the evidence lies. The map is shared, so only the base terms differ: one for each position
/// of z, which the unsqueezed latent keeps at the place of the pixels it came from.
impl GlowFlow {
    fn evidence_of(&self, encoded: &Mapped, a: ClassId, b: ClassId, tau: Tau) -> Evidence {
        let ImageShape { height, width, .. } = self.config.shape;
        let mut cells = vec![0f64; height * width];
        for (d, term) in self.base.evidence_terms(&encoded.images, a, b, tau).into_iter().enumerate() {
            cells[d % (height * width)] += term;
        }
        let log_likelihoods = self.scores(&encoded.images, encoded.log_det.clone()).log_likelihoods(0, tau);
        Evidence { rows: height, columns: width, cells, total: log_likelihoods[a] - log_likelihoods[b] }
    }
}

impl Flow for GlowFlow {
    fn latent_space(&self) -> Option<&dyn SharedMap> {
        Some(self)
    }

    fn resident(&self) -> Option<&dyn ResidentFlow> {
        let elsewhere = matches!(self.steps, Steps::Tensors(_)) && self.dtype == DType::F32;
        elsewhere.then_some(self as &dyn ResidentFlow)
    }

    fn shape(&self) -> ImageShape {
        self.config.shape
    }

    fn classes(&self) -> usize {
        self.config.classes
    }

    fn pixels(&self) -> Preprocessing {
        self.pixels
    }

    fn score_classes(&self, x: &[f32], classes: Range<ClassId>) -> Result<Scores> {
        let encoded = self.encode(x)?;
        let all = self.scores(&encoded.images, encoded.log_det);
        Ok(if classes.len() == all.classes { all } else { all.select(classes) })
    }

    /// x = f⁻¹(μ_y + τ Σ^½ noise).
    fn decode(&self, noise: &[f32], classes: &[ClassId], tau: Tau, _: &mut dyn Events<Decoding>) -> Result<Decoded> {
        let z = self.base.place(noise, classes, tau);
        let Mapped { images: x, log_det } = self.decode_base(z.clone())?;
        Ok(Decoded { x: self.front.round(&x), scores: Some(self.scores(&z, log_det)) })
    }

    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        Ok(self.base.unplace(&self.encode(x)?.images, classes, tau))
    }

    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        Ok(self.evidence_of(&self.encode(x)?, a, b, tau))
    }
}

impl ResidentFlow for GlowFlow {
    fn at_once(&self) -> usize {
        at_most(&self.device, self.config.bytes_per_image())
    }

    /// Quadratic terms come from the base sample, as in [`Flow::decode`]; the logit map's
    /// log-determinant from y on the device.
    fn decode_resident(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        _: &mut dyn Events<Decoding>,
    ) -> Result<Resident> {
        let Steps::Tensors(steps) = &self.steps else {
            return Err(Error::Device("a world on the CPU has no images on a device".into()));
        };
        let z = self.base.place(noise, classes, tau);
        let (y, partial) = decode(&steps.levels, &steps.unmix, self.upload(&z));
        let (v, rows, constant) = self.front.inverse_resident(&y);
        let [n, count] = rows.dims();
        // |y| summed over rows, which is not finite where a value is not: the images stay where they
        // are.
        let sizes = y.clone().abs().sum_dim(3).reshape([n, count]);
        // One transfer for all.
        let read = to_host(Tensor::cat(vec![sizes, rows, partial], 1))?;
        let constant = self.config.shape.dims() as f64 * constant;
        let (mut sizes, mut log_det) = (Vec::with_capacity(n * count), Vec::with_capacity(n));
        for image in read.chunks((read.len() / n.max(1)).max(1)) {
            let (of_rows, terms) = image.split_at(count);
            sizes.extend_from_slice(of_rows);
            log_det.push(constant + (terms.iter().sum::<f64>() + self.constant_log_det));
        }
        self.finite(&z, &log_det)?;
        check_finite(&sizes, count)?;
        Ok(Resident { images: y, levels: self.pixels().levels(v), scores: self.scores(&z, log_det) })
    }

    fn is_painted(&self) -> bool {
        paints(&self.device)
    }

    fn evidence_resident(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<(Evidence, Tensor<2>)> {
        let ImageShape { height, width, .. } = self.config.shape;
        let (slopes, centres) = self.base.evidence_lines(a, b, tau);
        let cells = RefCell::new(None);
        let encoded = self.encode_seen(x, |z| {
            let terms = (z.clone() - self.upload(&centres)) * self.upload(&slopes);
            *cells.borrow_mut() = Some(terms.sum_dim(1).reshape([height, width]));
        })?;
        let cells = cells.take().ok_or_else(|| Error::input("there is no image to explain"))?;
        Ok((self.evidence_of(&encoded, a, b, tau), cells))
    }

    fn fetch(&self, images: Tensor<4>) -> Result<Vec<f32>> {
        let (x, _) = self.front.inverse(to_host(images)?, self.config.shape.dims());
        Ok(self.front.round(&x))
    }
}
