//! The gradient that training follows, of every parameter, against differences of the likelihood.

use std::collections::BTreeMap;

use bayescope::flow::Precision;
use bayescope::flow::glow::{FlowStep, Glow, GlowConfig, encode};
use bayescope::flow::weights::Weights;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use nalgebra::DMatrix;

use crate::common::fill::uniform;
use crate::common::tiny;

/// Gradients by path inside the module.
struct Gather<'a> {
    grads: &'a GradientsParams,
    path: Vec<String>,
    found: BTreeMap<String, Vec<f64>>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = self.grads.get::<D>(param.id) {
            self.found.insert(self.path.join("."), grad.try_into_vec_as::<f64>().unwrap());
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

fn gradients<M: Module>(module: &M, loss: Tensor<1>) -> BTreeMap<String, Vec<f64>> {
    let grads = GradientsParams::from_grads(loss.backward(), module);
    let mut gather = Gather { grads: &grads, path: Vec::new(), found: BTreeMap::new() };
    module.visit(&mut gather);
    gather.found
}

fn build(config: &GlowConfig, weights: &Weights) -> Glow {
    Glow::from_weights(config, weights.clone(), &Device::flex().autodiff(), Precision::F64).unwrap()
}

/// ½ ‖z‖² − log |det| of two images: everything of the likelihood that passes through the map.
fn objective(config: &GlowConfig, glow: &Glow) -> Tensor<1> {
    let shape = config.shape;
    let y = uniform("images", 52, 2 * shape.dims()).iter().map(|u| 1.5 * u).collect::<Vec<f64>>();
    let data = TensorData::new(y, [2, shape.channels, shape.height, shape.width]);
    let (z, partial) = encode(&glow.fold(), Tensor::from_data(data, (&glow.means.val().device(), DType::F64)));
    let mut loss = z.square().sum() * 0.5 - partial.sum();
    let mut mixes = glow.mixing_matrices().unwrap().into_iter();
    for (l, level) in glow.levels.iter().enumerate() {
        let positions = (shape.height >> (l + 1)) * (shape.width >> (l + 1));
        for step in &level.steps {
            loss = loss - step.log_det_per_position(&mixes.next().unwrap()).unwrap() * (2 * positions) as f64;
        }
    }
    loss
}

fn value(tensor: Tensor<1>) -> f64 {
    tensor.try_into_vec_as::<f64>().unwrap()[0]
}

/// `levels.1.steps.0.…` is `flows.next.steps.0.…` among the weights.
fn weight_name(path: &str) -> String {
    path.replace("levels.0.", "flows.").replace("levels.1.", "flows.next.")
}

#[test]
fn the_gradient_of_every_parameter_is_that_of_differences() {
    let config = tiny::config(1, 4, 2, 2);
    let weights = tiny::weights(&config, 51);
    let glow = build(&config, &weights);
    let gradients = gradients(&glow, objective(&config, &glow));
    // All but means, covariance and classifier, which the objective leaves out; norms count twice (weight and bias).
    assert_eq!(gradients.len(), 4 * (4 + 3 * 2 + 2 + 2), "{:?}", gradients.keys());
    for (path, gradient) in gradients {
        let name = weight_name(&path);
        let direction = uniform(&format!("direction {name}"), 53, gradient.len());
        let displaced = |step: f64| {
            let mut weights = weights.clone();
            let values = &mut weights.0.get_mut(&name).unwrap().values;
            values.iter_mut().zip(&direction).for_each(|(v, d)| *v += (step * d) as f32);
            weights
        };
        let (ahead, behind) = (displaced(1e-4), displaced(-1e-4));
        let difference =
            value(objective(&config, &build(&config, &ahead))) - value(objective(&config, &build(&config, &behind)));
        // Along the step the f32 weights really took.
        let steps =
            ahead.0[&name].values.iter().zip(&behind.0[&name].values).map(|(a, b)| f64::from(*a) - f64::from(*b));
        let predicted: f64 = steps.zip(&gradient).map(|(s, g)| s * g).sum();
        let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt() * 2e-4;
        assert!((difference - predicted).abs() < 2e-3 * length, "{name}: {difference:e}, gradient says {predicted:e}");
    }
}

/// d log |det W| / dW = W^-T, d/dlogs = 1: the term whose value is computed outside the graph.
#[test]
fn the_log_det_carries_the_inverse_transpose() {
    let config = tiny::config(1, 2, 1, 1);
    let weights = tiny::weights(&config, 54);
    let glow = build(&config, &weights);
    let step: &FlowStep = &glow.levels[0].steps[0];
    let w = &weights.0["flows.steps.0.conv.weight"].values;
    let w = DMatrix::from_row_iterator(4, 4, w.iter().map(|&v| f64::from(v)));
    let gradients = gradients(step, step.log_det_per_position(&w).unwrap());
    let inverse_t = w.clone().try_inverse().unwrap().transpose();
    let found = DMatrix::from_row_slice(4, 4, &gradients["conv.weight"]);
    assert!((found - &inverse_t).abs().max() < 1e-12);
    assert_eq!(gradients["norm.logs"], [1.0; 4]);
    assert_eq!(gradients.len(), 2);
    let log_det = |w: &DMatrix<f64>| w.determinant().abs().ln();
    for i in 0..16 {
        let [mut ahead, mut behind] = [w.clone(), w.clone()];
        ahead[i] += 1e-6;
        behind[i] -= 1e-6;
        let slope = (log_det(&ahead) - log_det(&behind)) / 2e-6;
        assert!((slope - inverse_t[i]).abs() < 1e-7 * inverse_t.abs().max());
    }
    let logs: f64 = weights.0["flows.steps.0.norm.logs"].values.iter().map(|&v| f64::from(v)).sum();
    assert!((value(step.log_det_per_position(&w).unwrap()) - logs - log_det(&w)).abs() < 1e-12);
}
