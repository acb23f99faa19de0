//! The loss of a Glow in training and its gradients: by burn on any device, by our own kernels on
//! the CPU.
//!
//! −log p(x|y) + λ·(classification loss), in nats per image, divided by D.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use crate::device::to_host;
use crate::error::Result;
use crate::flow::base::{BaseLoss, GaussianBase};
use crate::flow::glow::{Glow, GlowConfig, HostFold, LinearHead, TrainedGlow, encode};
use crate::gradients::gradients_of;
use crate::oracle::train::gaussians::{cross_entropies, distances, targets};
use crate::oracle::train::spec::{Classification, OptimSpec};
use crate::units::ClassId;

/// What is minimised over a batch.
#[derive(Debug, Clone, Copy)]
pub struct Loss<'a> {
    /// λ, and which classification loss it weighs.
    pub optim: OptimSpec,
    /// The architecture.
    pub config: &'a GlowConfig,
    /// Images of the batch.
    pub images: usize,
}

impl Loss<'_> {
    /// Mean −log N(z; μ_y, Σ) of points `z` [N, C, H, W], and mean classification loss, [1] each.
    fn of_points(self, glow: &Glow, z: Tensor<4>, classes: &[ClassId]) -> (Tensor<1>, Tensor<1>) {
        let (n, dims) = (classes.len(), self.config.shape.dims());
        let var = glow.cov_diag.val().abs().reshape([1, dims]);
        let means = glow.means.val().reshape([self.config.classes, dims]);
        let quad = distances(&z.clone().reshape([n, dims]), &means, &var);
        let targets = targets(classes, &z.device());
        let log_norm = (var * (2.0 * std::f64::consts::PI)).log().sum() * 0.5;
        let nll = quad.clone().gather(1, targets.clone()).mean() * 0.5 + log_norm;
        let logits = match self.optim.classification {
            Classification::Posterior => quad * -0.5,
            Classification::LinearHead => glow.linproj.forward(z),
        };
        (nll, cross_entropies(logits, targets).mean())
    }

    /// log |det| of all mixing maps over all positions, [1].
    fn mixing_log_det(self, glow: &Glow) -> Result<Tensor<1>> {
        let mut log_det = Tensor::zeros([1], &glow.means.val().device());
        let mut mixes = glow.mixing_matrices()?.into_iter();
        for (l, level) in glow.levels.iter().enumerate() {
            let positions = (self.config.shape.height >> (l + 1)) * (self.config.shape.width >> (l + 1));
            for (step, w) in level.steps.iter().zip(mixes.by_ref()) {
                log_det = log_det + step.log_det_per_position(&w)? * positions as f64;
            }
        }
        Ok(log_det)
    }
}

/// Share of the batch's NLL (without preprocessing) and classification loss that a piece of it has,
/// and the gradient of the loss.
pub fn gradients(loss: Loss<'_>, glow: &Glow, y: &[f32], classes: &[ClassId]) -> Result<(Vec<f64>, GradientsParams)> {
    let (config, share) = (loss.config, classes.len() as f64 / loss.images as f64);
    let y = upload(config, y.to_vec(), &glow.means.val().device());
    let (z, partial) = encode(&glow.fold(), y);
    let (nll, cross_entropy) = loss.of_points(glow, z, classes);
    let nll = nll - partial.sum_dim(1).mean() - loss.mixing_log_det(glow)?;
    let total = nll.clone() + cross_entropy.clone() * loss.optim.lambda;
    let measured = to_host(Tensor::cat(vec![nll, cross_entropy], 0))?;
    let grads = gradients_of(total * (share / config.shape.dims() as f64), glow);
    Ok((measured.into_iter().map(|v| share * v).collect(), grads))
}

/// [`gradients`] of a whole batch by the CPU's own kernels, cut into `shards`. They give the
/// gradient by the arrays of the folded steps, the host carries it through the folding, and burn
/// has the base distribution.
pub fn cpu_gradients(
    loss: Loss<'_>,
    glow: &Glow,
    y: &[f32],
    classes: &[ClassId],
    shards: usize,
) -> Result<(Vec<f64>, GradientsParams)> {
    let (config, lambda) = (loss.config, loss.optim.lambda);
    let (device, scale) = (glow.means.val().device(), (config.shape.dims() as f64).recip());
    let fold = HostFold::new(config, &glow.to_weights()?)?;
    let kernels = TrainedGlow::<f32>::new(config, &fold.arrays)?;
    let base = GaussianBase::new(to_host(glow.means.val())?, &to_host(glow.cov_diag.val())?);
    let head = match loss.optim.classification {
        Classification::Posterior => None,
        Classification::LinearHead => Some(Head::of(&glow.linproj)?),
    };
    let weight = scale / loss.images as f64;
    let slope = |i: usize, z: &[f64]| -> Vec<f64> {
        let by_point = match &head {
            None => BaseLoss { base: &base, lambda }.by_point(z, classes[i]),
            Some(head) => {
                let likelihood = BaseLoss { base: &base, lambda: 0.0 }.by_point(z, classes[i]);
                likelihood.iter().zip(head.by_point(z, classes[i])).map(|(a, b)| a + lambda * b).collect()
            }
        };
        by_point.into_iter().map(|slope| weight * slope).collect()
    };
    let y: Vec<f64> = y.iter().map(|&v| f64::from(v)).collect();
    let found = kernels.gradients(&y, weight, shards, &slope);
    // z as a constant: its own part of the gradient has gone through the kernels.
    let z = upload(config, found.z.iter().map(|&v| v as f32).collect(), &device);
    let (nll, cross_entropy) = loss.of_points(glow, z, classes);
    let mut measured = to_host(Tensor::cat(vec![nll.clone(), cross_entropy.clone()], 0))?;
    measured[0] -= fold.log_det + found.sums.iter().sum::<f64>() / loss.images as f64;
    let grads = gradients_of((nll + cross_entropy * lambda) * scale, glow);
    Ok((measured, glow.add_gradients(&fold.gradients(&found.arrays, -scale), grads)))
}

/// The batch as a tensor [N, C, H, W].
pub fn upload(config: &GlowConfig, y: Vec<f32>, device: &Device) -> Tensor<4> {
    let shape = config.shape;
    let n = y.len() / shape.dims();
    Tensor::from_data(TensorData::new(y, [n, shape.channels, shape.height, shape.width]), device)
}

/// EBO's linear classifier on the host.
struct Head {
    /// [K, D]
    weight: Vec<f64>,
    /// [K]
    bias: Vec<f64>,
}

impl Head {
    fn of(head: &LinearHead) -> Result<Self> {
        let [weight, bias] = head.numbers()?;
        Ok(Self { weight, bias })
    }

    /// Gradient of −log softmax(W z + b)_y by z: Wᵀ(q − e_y).
    fn by_point(&self, z: &[f64], class: ClassId) -> Vec<f64> {
        let rows = || self.weight.chunks_exact(z.len());
        let logit = |(row, bias): (&[f64], &f64)| row.iter().zip(z).map(|(w, z)| w * z).sum::<f64>() + bias;
        let logits: Vec<f64> = rows().zip(&self.bias).map(logit).collect();
        let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logits.iter().map(|logit| (logit - most).exp()).sum();
        let mut slope = vec![0.0; z.len()];
        for (k, (row, logit)) in rows().zip(&logits).enumerate() {
            let by_logit = (logit - most).exp() / total - if k == class { 1.0 } else { 0.0 };
            slope.iter_mut().zip(row).for_each(|(sum, w)| *sum += by_logit * w);
        }
        slope
    }
}

#[cfg(test)]
mod tests {
    use burn::module::{Module, ModuleVisitor, Param};
    use rand::RngExt;

    use super::*;
    use crate::data::ImageShape;
    use crate::flow::Precision;
    use crate::units::Seed;

    /// Gradients in the order in which a module is visited.
    fn gathered(glow: &Glow, grads: &GradientsParams) -> Vec<(String, Vec<f64>)> {
        struct Gather<'a>(&'a GradientsParams, Vec<String>, Vec<(String, Vec<f64>)>);
        impl ModuleVisitor for Gather<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Some(grad) = self.0.get::<D>(param.id) {
                    self.2.push((self.1.join("."), to_host(grad.clone()).unwrap()));
                }
            }
            fn enter_module(&mut self, name: &str, _: &str) {
                self.1.push(name.to_owned());
            }
            fn exit_module(&mut self, _: &str, _: &str) {
                self.1.pop();
            }
        }
        let mut gather = Gather(grads, Vec::new(), Vec::new());
        glow.visit(&mut gather);
        gather.2
    }

    /// Odd widths and heights, more images than a block and a group of kernels have, both
    /// classification losses: our kernels against burn's automatic differentiation.
    #[test]
    fn both_ways_have_the_same_loss_and_gradients() {
        for (shape, hidden, levels, images) in
            [([3, 8, 16], 5, 3, 3), ([1, 4, 2], 70, 1, 11), ([1, 32, 32], 33, 2, 2), ([2, 2, 6], 16, 1, 9)]
        {
            let [channels, height, width] = shape;
            let shape = ImageShape { channels, height, width };
            let config = GlowConfig { shape, classes: 3, hidden, levels, steps: 2 };
            let mut weights = config.initial_weights(Seed(7), 0.1);
            for (name, array) in &mut weights.0 {
                let mut rng = Seed(8).split(name).rng(0);
                let size = match name.as_str() {
                    "bounds" => 0.0,
                    name if name.ends_with("weight") => 0.3 / (hidden as f32).sqrt().max(4.0),
                    name if name.ends_with("running_var") || name == "cov_diag" => 0.2,
                    _ => 0.1,
                };
                array.values.iter_mut().for_each(|v| *v += size * rng.random_range(-1.0f32..1.0));
            }
            let glow = Glow::from_weights(&config, weights, &Device::flex().autodiff(), Precision::F32).unwrap();
            let mut rng = Seed(9).rng(0);
            let y: Vec<f32> = (0..images * shape.dims()).map(|_| rng.random_range(-1.5f32..1.5)).collect();
            let classes: Vec<usize> = (0..images).map(|i| i % 3).collect();
            for classification in [Classification::Posterior, Classification::LinearHead] {
                let optim = OptimSpec { lambda: 5.0, classification, ..OptimSpec::default() };
                let loss = Loss { optim, config: &config, images };
                let (burn, burn_grads) = gradients(loss, &glow, &y, &classes).unwrap();
                let (own, own_grads) = cpu_gradients(loss, &glow, &y, &classes, 2).unwrap();
                assert!(burn.iter().zip(&own).all(|(a, b)| (a - b).abs() < 1e-4 * (1.0 + a.abs())), "{burn:?} {own:?}");
                let (burn, own) = (gathered(&glow, &burn_grads), gathered(&glow, &own_grads));
                assert_eq!(burn.len(), own.len());
                for ((name, expected), (_, found)) in burn.iter().zip(&own) {
                    let size = expected.iter().fold(1e-4f64, |size, v| size.max(v.abs()));
                    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(worst < 5e-4 * size, "{config:?} {name}: {worst} of {size}");
                }
            }
        }
    }
}
