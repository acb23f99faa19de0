//! A Glow that no longer changes, as the shared-map flow of a world.

use std::cell::RefCell;
use std::ops::Range;

use burn::tensor::{DType, Device, Tensor, TensorData};
use nalgebra::{DMatrix, DVector};

use super::matrix::{from_matrix, invert, to_matrix};
use super::{Affine, FlowStep, Glow, GlowConfig, Step, decode, encode};
use crate::data::ImageShape;
use crate::device::{at_most, in_batches, paints};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::flow::base::GaussianBase;
use crate::flow::parameters::to_host;
use crate::flow::preprocess::{BoundedLogit, Preprocessing};
use crate::flow::weights::Weights;
use crate::flow::{Decoded, Decoding, Evidence, Flow, Precision, Resident, ResidentFlow, Scores};
use crate::units::{ClassId, Tau};

/// Base-space images and the log-determinant of the map that led there.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// z, [N, D].
    pub z: Vec<f64>,
    /// log |det ∂z/∂x|, preprocessing included, [N], nats.
    pub log_det: Vec<f64>,
}

/// A frozen conditional Glow: weights folded, 1×1 convolutions inverted, base distribution on the host in f64.
#[derive(Debug)]
pub struct GlowFlow {
    config: GlowConfig,
    device: Device,
    dtype: DType,
    levels: Vec<Vec<Step>>,
    unmix: Vec<Vec<Affine>>,
    /// Σ over steps of H·W·(Σ logs + log |det W|), f64.
    constant_log_det: f64,
    logit: BoundedLogit,
    base: GaussianBase,
}

/// [`FlowStep::fold`], with ActNorm and 1×1 convolution multiplied out in f64 on the host: what the exp of a graphics adapter is
/// off by adds up over steps and dimensions of log p. (Measured on llvmpipe: log p errs a third of what it does otherwise.)
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
    pub fn new(config: &GlowConfig, weights: Weights, device: &Device, precision: Precision) -> Result<Self> {
        // Folding reads every small matrix: of a device behind a network that would be hundreds of round trips.
        let glow = Glow::from_weights(config, weights, &Device::flex(), precision)?;
        Ok(Self::freeze(config, &glow)?.moved(device))
    }

    /// The same flow on a device.
    fn moved(self, device: &Device) -> Self {
        if self.device == *device {
            return self;
        }
        let levels = self.levels.into_iter().map(|steps| steps.into_iter().map(|step| step.moved(device)).collect());
        let unmix = self.unmix.into_iter().map(|maps| maps.into_iter().map(|map| map.moved(device)).collect());
        Self { levels: levels.collect(), unmix: unmix.collect(), device: device.clone(), ..self }
    }

    /// Freezes a Glow where it is.
    ///
    /// # Errors
    /// When a 1×1 convolution is singular or the device fails.
    pub fn freeze(config: &GlowConfig, glow: &Glow) -> Result<Self> {
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
            levels,
            unmix,
            constant_log_det,
            logit: BoundedLogit { bounds: bounds.first().copied().unwrap_or(f64::NAN) },
            base: GaussianBase::new(to_host(glow.means.val())?, &to_host(glow.cov_diag.val())?),
        })
    }

    /// The base distribution.
    pub fn base(&self) -> &GaussianBase {
        &self.base
    }

    /// Base-space images of world-space x (NCHW; f32, or f64 where every digit counts).
    ///
    /// # Errors
    /// When an image is outside the support of the logit map, the numbers leave the finite range, or the device fails.
    pub fn encode<T: Copy + Into<f64> + Sync>(&self, x: &[T]) -> Result<Encoded> {
        self.encode_seen(x, |_| ())
    }

    /// [`Self::encode`]; `see` is shown z [N, C, H, W] of each pass where it was computed.
    fn encode_seen<T: Copy + Into<f64> + Sync>(&self, x: &[T], see: impl Fn(&Tensor<4>)) -> Result<Encoded> {
        let dims = self.config.shape.dims();
        let (y, mut log_det) = self.logit.forward(x, dims);
        if let Some(i) = y.chunks(dims).position(|y| y.iter().any(|v| !v.is_finite())) {
            return Err(Error::input(format!(
                "image {i} has values outside ({:.4}, {:.4}), where this world has no density: is x in its world space (dequantised pixels in [0, 1])?",
                0.5 - 0.5 / self.logit.bounds,
                0.5 + 0.5 / self.logit.bounds
            )));
        }
        let z = self.passes(y, &mut log_det, |y| {
            let (z, partial) = encode(&self.levels, y);
            see(&z);
            (z, partial)
        })?;
        self.finite(&z, &log_det)?;
        Ok(Encoded { z, log_det })
    }

    /// World-space images of z [N, D] and log |det ∂z/∂x| there: the inverse of [`Self::encode`].
    ///
    /// # Errors
    /// When the numbers leave the finite range, or the device fails.
    pub fn decode_base(&self, z: Vec<f64>) -> Result<(Vec<f64>, Vec<f64>)> {
        let dims = self.config.shape.dims();
        let mut couplings = vec![0.0; z.len() / dims];
        let y = self.passes(z, &mut couplings, |z| decode(&self.levels, &self.unmix, z))?;
        let (x, mut log_det) = self.logit.inverse(&y, dims);
        log_det.iter_mut().zip(couplings).for_each(|(total, more)| *total += more);
        self.finite(&x, &log_det)?;
        Ok((x, log_det))
    }

    /// World-space images as they are stored: rounded to 32 bits, within the support.
    pub fn round(&self, x: &[f64]) -> Vec<f32> {
        self.logit.round(x)
    }

    /// What leaves the map must be numbers: broken weights and far-out inputs overflow inside the couplings.
    fn finite(&self, images: &[f64], log_det: &[f64]) -> Result<()> {
        let broken = |(image, log_det): (&[f64], &f64)| !log_det.is_finite() || image.iter().any(|v| !v.is_finite());
        match images.chunks(self.config.shape.dims()).zip(log_det).position(broken) {
            Some(i) => Err(Error::Numeric(format!("image {i} leaves the finite numbers inside the flow"))),
            None => Ok(()),
        }
    }

    /// What the couplings make of host values [N, D], and their log-determinants added to `log_det` [N]: as many images at once as
    /// the device takes.
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

    /// The couplings' partial sums (short sums over channels from the device, summed over positions in f64 here) and the
    /// constant part, [N].
    fn log_dets(&self, partial: Tensor<2>) -> Result<Vec<f64>> {
        let [_, positions] = partial.dims();
        let sum = |partial: &[f64]| partial.iter().sum::<f64>() + self.constant_log_det;
        Ok(to_host(partial)?.chunks(positions).map(sum).collect())
    }

    /// Statistics of images at base-space positions `z` [N, D] with log-determinants `log_det` [N].
    pub fn scores(&self, z: &[f64], log_det: Vec<f64>) -> Scores {
        Scores {
            classes: self.config.classes,
            dims: self.config.shape.dims(),
            quad: self.base.distances(z),
            log_det,
            log_norm: vec![self.base.log_norm()],
        }
    }
}

/// Where the evidence lies. The map is shared, so only the base terms differ: one for each position of z, which the unsqueezed
/// latent keeps at the place of the pixels it came from.
impl GlowFlow {
    fn evidence_of(&self, encoded: &Encoded, a: ClassId, b: ClassId, tau: Tau) -> Evidence {
        let ImageShape { height, width, .. } = self.config.shape;
        let (slopes, centres) = self.slopes(a, b, tau);
        let mut cells = vec![0f64; height * width];
        for (d, ((z, slope), centre)) in encoded.z.iter().zip(&slopes).zip(&centres).enumerate() {
            cells[d % (height * width)] += slope * (z - centre);
        }
        let log_likelihoods = self.scores(&encoded.z, encoded.log_det.clone()).log_likelihoods(0, tau);
        Evidence { rows: height, columns: width, cells, total: log_likelihoods[a] - log_likelihoods[b] }
    }

    /// (μ_a − μ_b)/(τσ)² and ½ (μ_a + μ_b), [D] each: log N(z; μ_a, τ²σ²) − log N(z; μ_b, τ²σ²) is linear in z, with this
    /// slope, and 0 at this centre.
    fn slopes(&self, a: ClassId, b: ClassId, tau: Tau) -> (Vec<f64>, Vec<f64>) {
        let means = self.base.mean(a).iter().zip(self.base.mean(b));
        let of = |((a, b), std): ((&f64, &f64), &f64)| ((a - b) / (tau.get() * std).powi(2), 0.5 * (a + b));
        means.zip(self.base.std()).map(of).unzip()
    }
}

impl Flow for GlowFlow {
    fn shared_base(&self) -> Option<&GaussianBase> {
        Some(&self.base)
    }

    fn shared_map(&self) -> Option<&GlowFlow> {
        Some(self)
    }

    fn resident(&self) -> Option<&dyn ResidentFlow> {
        let elsewhere = self.device != Device::flex() && self.dtype == DType::F32;
        elsewhere.then_some(self as &dyn ResidentFlow)
    }

    fn shape(&self) -> ImageShape {
        self.config.shape
    }

    fn classes(&self) -> usize {
        self.config.classes
    }

    fn pixels(&self) -> Preprocessing {
        Preprocessing::Uniform
    }

    fn score_classes(&self, x: &[f32], classes: Range<ClassId>) -> Result<Scores> {
        let encoded = self.encode(x)?;
        let all = self.scores(&encoded.z, encoded.log_det);
        Ok(if classes.len() == all.classes { all } else { all.select(classes) })
    }

    /// x = f⁻¹(μ_y + τ Σ^½ noise).
    fn decode(&self, noise: &[f32], classes: &[ClassId], tau: Tau, _: &mut dyn Events<Decoding>) -> Result<Decoded> {
        let z = self.base.place(noise, classes, tau);
        let (x, log_det) = self.decode_base(z.clone())?;
        Ok(Decoded { x: self.logit.round(&x), scores: Some(self.scores(&z, log_det)) })
    }

    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        Ok(self.base.unplace(&self.encode(x)?.z, classes, tau))
    }

    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        Ok(self.evidence_of(&self.encode(x)?, a, b, tau))
    }
}

impl ResidentFlow for GlowFlow {
    fn at_once(&self) -> usize {
        at_most(&self.device, self.config.bytes_per_image())
    }

    /// Quadratic terms come from the base sample, as in [`Flow::decode`]; the logit map's log-determinant from y on the device.
    fn decode_resident(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        _: &mut dyn Events<Decoding>,
    ) -> Result<Resident> {
        let z = self.base.place(noise, classes, tau);
        let (y, partial) = decode(&self.levels, &self.unmix, self.upload(&z));
        let (v, rows) = self.logit.inverse_resident(&y);
        let mut log_det = vec![self.config.shape.dims() as f64 * self.logit.bounds.ln(); classes.len()];
        // One transfer for both.
        let sums = self.log_dets(Tensor::cat(vec![rows, partial], 1))?;
        log_det.iter_mut().zip(sums).for_each(|(total, more)| *total += more);
        self.finite(&z, &log_det)?;
        Ok(Resident { images: y, levels: self.pixels().levels(v), scores: self.scores(&z, log_det) })
    }

    fn is_painted(&self) -> bool {
        paints(&self.device)
    }

    fn evidence_resident(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<(Evidence, Tensor<2>)> {
        let ImageShape { height, width, .. } = self.config.shape;
        let (slopes, centres) = self.slopes(a, b, tau);
        let cells = RefCell::new(None);
        let encoded = self.encode_seen(x, |z| {
            let terms = (z.clone() - self.upload(&centres)) * self.upload(&slopes);
            *cells.borrow_mut() = Some(terms.sum_dim(1).reshape([height, width]));
        })?;
        let cells = cells.take().ok_or_else(|| Error::input("there is no image to explain"))?;
        Ok((self.evidence_of(&encoded, a, b, tau), cells))
    }

    fn fetch(&self, images: Tensor<4>) -> Result<Vec<f32>> {
        let (x, _) = self.logit.inverse(&to_host(images)?, self.config.shape.dims());
        Ok(self.logit.round(&x))
    }
}
