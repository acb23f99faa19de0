//! The loss of a TarFlow in training and its gradients: by burn on any device, by our own kernels
//! on the CPU.
//!
//! −log p(x|y), and where one map serves all classes λ·(−log p(y|x)) beside it, both in nats per
//! image, divided by D.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor, TensorData};

use super::Part;
use crate::device::{MatmulPrecision, to_host};
use crate::error::{Error, Result};
use crate::flow::base::{BaseLoss, GaussianBase};
use crate::flow::parameters;
use crate::flow::tarflow::cpu::CpuTarFlow;
use crate::flow::tarflow::{MEANS, TarFlow, TarFlowConfig};
use crate::flow::weights::HostTensor;
use crate::gradients::{Scale, gradients_of};
use crate::oracle::train::gaussians::{cross_entropies, distances, targets};

/// What is minimised over a batch.
#[derive(Debug, Clone, Copy)]
pub struct Loss<'a> {
    /// The architecture.
    pub config: &'a TarFlowConfig,
    /// Format of the matrix products.
    pub products: MatmulPrecision,
    /// Weight of the classification loss of a shared map.
    pub lambda: f64,
    /// Images of the batch.
    pub images: usize,
}

impl Loss<'_> {
    /// ½ log 2π for every dimension.
    fn unit_norm(self) -> f64 {
        0.5 * self.config.shape.dims() as f64 * (2.0 * std::f64::consts::PI).ln()
    }
}

/// What a part of a batch adds to: the mean −log p(x|y) in world space (in VP without a shared map
/// that under N(0, 1), which the paper minimises while the base has another variance), the mean classification
/// loss (0 where there is none), and in VP the mean square deviation of each dimension of z from
/// its mean; and the gradient of the loss.
pub fn gradients(loss: Loss<'_>, flow: &TarFlow, part: Part) -> Result<(Vec<f64>, GradientsParams)> {
    let Loss { config, products, .. } = loss;
    let (n, t, p) = (part.conditions.len(), config.tokens(), config.token_dims());
    let (batch, dims, share) = (loss.images as f64, t * p, n as f64 / loss.images as f64);
    let device = flow.var.val().device();
    let x = Tensor::<3>::from_data(TensorData::new(part.x, [n, t, p]), &device);
    let classes = config.mixing_weights(&part.conditions, &device, DType::F32);
    let (z, log_det) = match products.narrow() {
        None => flow.encode(x, classes.as_ref()),
        Some(dtype) => flow.narrowed(dtype).encode(x, classes.as_ref()),
    };
    let (centred, energy, cross_entropy, norm) = match &flow.means {
        None => (z.clone(), z.clone().square().sum() * 0.5, Tensor::zeros([1], &device), loss.unit_norm()),
        Some(means) => {
            let (means, var) = (means.val().reshape([config.classes, dims]), flow.var.val().reshape([1, dims]));
            let index = targets(&part.labels, &device);
            let quad = distances(&z.clone().reshape([n, dims]), &means, &var);
            let own = means.select(0, index.clone().reshape([n])).reshape([n, t, p]);
            let norm: f64 = to_host(var.inner())?.iter().map(|v| 0.5 * v.ln()).sum();
            let energy = quad.clone().gather(1, index.clone()).sum() * 0.5;
            (z - own, energy, cross_entropies(quad * -0.5, index).sum() / batch, loss.unit_norm() + norm)
        }
    };
    let nll = (energy - log_det.sum()) / batch;
    let scale = products.loss_scale();
    let total = nll.clone() + cross_entropy.clone() * loss.lambda;
    let mut grads = gradients_of(total * (scale / dims as f64), flow);
    let mut measured = to_host(Tensor::cat(vec![nll, cross_entropy], 0))?;
    measured[0] += share * norm;
    if config.volume_preserving {
        let squares = centred.inner().square().sum_dim(0) / batch;
        measured.extend(to_host(squares)?);
    }
    if scale != 1.0 {
        flow.visit(&mut Scale { grads: &mut grads, factor: scale.recip() });
    }
    Ok((measured, grads))
}

/// [`gradients`] of a whole batch by the CPU's own kernels, in pieces of `piece` images.
pub fn cpu_gradients(
    loss: Loss<'_>,
    kernels: &mut CpuTarFlow<f32>,
    module: &TarFlow,
    part: &Part,
    piece: usize,
) -> Result<(Vec<f64>, GradientsParams)> {
    kernels.set_weights(module.to_weights()?).map_err(Error::Numeric)?;
    let (n, dims) = (loss.images, loss.config.shape.dims());
    let shards = n.div_ceil(piece.max(1));
    let x: Vec<f64> = part.x.iter().map(|&v| f64::from(v)).collect();
    let weights = vec![1.0 / (n * dims) as f64; n];
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n as f64;
    let (mut found, centred, measured) = match base(loss.config, module)? {
        None => {
            let found = kernels.backward(&x, &part.conditions, &weights, shards)?;
            let energy = mean(&mut found.energy.iter().copied());
            let z = found.z.clone();
            (found, z, [energy + loss.unit_norm(), 0.0])
        }
        Some(base) => {
            let of = BaseLoss { base: &base, lambda: loss.lambda };
            let slope = |i: usize, z: &[f64]| of.by_point(z, part.labels[i]);
            let mut found = kernels.backward_from(&x, &part.conditions, &weights, shards, &slope)?;
            let points: Vec<_> = found.z.chunks(dims).zip(&part.labels).map(|(z, &y)| of.of(z, y)).collect();
            let by_means = of.by_means(&found.z, &part.labels);
            let by_means = by_means.iter().map(|slope| (slope / dims as f64) as f32).collect();
            let shape = [base.classes(), loss.config.tokens(), loss.config.token_dims()];
            found.weights.0.insert(MEANS.to_owned(), HostTensor::new(shape, by_means));
            let energy = mean(&mut points.iter().map(|point| point.energy)) + base.log_norm();
            let cross_entropy = mean(&mut points.iter().map(|point| point.cross_entropy));
            let deviations = found.z.chunks(dims).zip(&part.labels);
            let centred = deviations.flat_map(|(z, &y)| z.iter().zip(base.mean(y)).map(|(z, m)| z - m)).collect();
            (found, centred, [energy, cross_entropy])
        }
    };
    let mut measured = measured.to_vec();
    measured[0] -= mean(&mut found.log_det.drain(..));
    if loss.config.volume_preserving {
        measured.extend((0..dims).map(|d| mean(&mut centred.iter().skip(d).step_by(dims).map(|z| z * z))));
    }
    Ok((measured, parameters::to_gradients(module, TarFlow::state_name, &found.weights)))
}

/// The base distribution of a shared map in the order of its tokens.
fn base(config: &TarFlowConfig, module: &TarFlow) -> Result<Option<GaussianBase>> {
    debug_assert_eq!(config.shared_map, module.means.is_some());
    let Some(means) = &module.means else { return Ok(None) };
    Ok(Some(GaussianBase::new(to_host(means.val())?, &to_host(module.var.val())?)))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::data::ImageShape;
    use crate::flow::Precision;
    use crate::flow::weights::Weights;
    use crate::units::Seed;

    /// Gradients by name.
    fn named(flow: &TarFlow, grads: &GradientsParams) -> Weights {
        struct Gather<'a>(&'a GradientsParams, Vec<String>, Weights);
        impl burn::module::ModuleVisitor for Gather<'_> {
            fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<D>>) {
                let Some(grad) = self.0.get::<D>(param.id) else { return };
                let values = to_host(grad.clone()).unwrap().into_iter().map(|v| v as f32).collect();
                self.2.0.insert(TarFlow::state_name(&self.1), HostTensor::new(grad.dims().to_vec(), values));
            }
            fn enter_module(&mut self, name: &str, _: &str) {
                self.1.push(name.to_owned());
            }
            fn exit_module(&mut self, _: &str, _: &str) {
                self.1.pop();
            }
        }
        let mut gather = Gather(grads, Vec::new(), Weights::default());
        flow.visit(&mut gather);
        gather.2
    }

    /// A shared map's own kernels and closed-form gradients against burn's automatic
    /// differentiation.
    #[test]
    fn both_ways_have_the_same_loss_and_gradients() {
        let shape = ImageShape { channels: 1, height: 4, width: 4 };
        for volume_preserving in [false, true] {
            let config = TarFlowConfig {
                shape,
                classes: 3,
                patch: 2,
                channels: 64,
                blocks: 2,
                layers: 1,
                volume_preserving,
                shared_map: true,
            };
            let mut weights = config.initial_weights(Seed(7));
            for (name, array) in &mut weights.0 {
                let mut rng = Seed(8).split(name).rng(0);
                let spread = if name == MEANS { 1.0 } else { 0.05 };
                let wobble = |v: &mut f32| *v += spread * rand::RngExt::random_range(&mut rng, -1.0f32..1.0);
                array.values.iter_mut().for_each(wobble);
            }
            let flow =
                TarFlow::from_weights(&config, weights.clone(), &Device::flex().autodiff(), Precision::F32).unwrap();
            let loss = Loss { config: &config, products: MatmulPrecision::F32, lambda: 5.0, images: 4 };
            let x: Vec<f32> = (0..64).map(|i| ((i * 37 % 64) as f32 - 32.0) / 24.0).collect();
            let part = || Part { x: x.clone(), conditions: vec![None; 4], labels: vec![2, 0, 1, 1] };
            let mut kernels = CpuTarFlow::new(&config, weights).unwrap();
            let (burn, burn_grads) = gradients(loss, &flow, part()).unwrap();
            let (own, own_grads) = cpu_gradients(loss, &mut kernels, &flow, &part(), 2).unwrap();
            assert_eq!(burn.len(), own.len());
            assert!(burn.iter().zip(&own).all(|(a, b)| (a - b).abs() < 1e-4 * (1.0 + a.abs())), "{burn:?} {own:?}");
            let (burn, own) = (named(&flow, &burn_grads), named(&flow, &own_grads));
            assert_eq!(burn.0.len(), own.0.len());
            for (name, expected) in burn.0 {
                let size = expected.values.iter().fold(1e-4f32, |size, v| size.max(v.abs()));
                let found = &own.0[&name].values;
                let worst = found.iter().zip(&expected.values).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(worst < 2e-4 * size, "{name}: {worst} of {size}");
            }
        }
    }
}
