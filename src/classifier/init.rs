//! Builds a network's parameters by their state-dict names: from given arrays, or drawn where none
//! is given.

use std::collections::HashMap;

use burn::module::{Param, ParamId};
use burn::tensor::{DType, Device, Tensor, TensorData};
use rand_distr::{Distribution, StandardNormal, Uniform};

use super::layers::{BatchNorm, Conv, LayerNorm, Linear};
use crate::flow::Precision;
use crate::flow::parameters::param_id;
use crate::flow::weights::{HostTensor, Weights};
use crate::units::Seed;

/// How a parameter starts when it is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// The same value everywhere.
    Full(f32),
    /// Uniform in ±bound.
    Uniform(f64),
    /// N(0, std²).
    Normal(f64),
    /// N(0, std²), drawn again where further than 2 from 0 (torch's `trunc_normal_`, whose limits
    /// do not scale with std).
    TruncatedNormal(f64),
}

impl Init {
    /// Uniform in ±1/√inputs: PyTorch's start of linear maps and convolutions, weights and biases
    /// alike.
    pub fn fan_in(inputs: usize) -> Self {
        Self::Uniform((inputs as f64).sqrt().recip())
    }

    /// He et al. 2015 for ReLU, by the number of outputs: N(0, 2/outputs).
    pub fn kaiming_normal(outputs: usize) -> Self {
        Self::Normal((2.0 / outputs as f64).sqrt())
    }

    /// Glorot & Bengio 2010: uniform in ±√(6/(inputs + outputs)).
    pub fn xavier_uniform(inputs: usize, outputs: usize) -> Self {
        Self::Uniform((6.0 / (inputs + outputs) as f64).sqrt())
    }

    fn draw(self, seed: Seed, name: &str, n: usize) -> Vec<f32> {
        let mut rng = seed.split(name).rng(0);
        match self {
            Self::Full(value) => vec![value; n],
            Self::Uniform(bound) => match Uniform::new(-bound, bound) {
                Ok(uniform) => (0..n).map(|_| uniform.sample(&mut rng) as f32).collect(),
                Err(_) => vec![0.0; n],
            },
            Self::Normal(std) | Self::TruncatedNormal(std) => {
                let limit = if matches!(self, Self::TruncatedNormal(_)) { 2.0 } else { f64::INFINITY };
                let mut one = || loop {
                    let e: f64 = StandardNormal.sample(&mut rng);
                    if (std * e).abs() <= limit {
                        break (std * e) as f32;
                    }
                };
                (0..n).map(|_| one()).collect()
            }
        }
    }
}

/// State-dict names by the identity of a parameter.
pub type Names = HashMap<ParamId, String>;

/// What became of the arrays given to a [`ParamBuilder`].
pub struct Finished {
    /// Names of all that was made.
    pub names: Names,
    /// Those that were drawn.
    pub drawn: Vec<String>,
    /// Arrays that found no place.
    pub left: Weights,
}

/// Makes parameters on a device.
pub struct ParamBuilder<'a> {
    given: Weights,
    /// Draws what is not given; without, everything must be given.
    seed: Option<Seed>,
    device: &'a Device,
    dtype: DType,
    names: Names,
    drawn: Vec<String>,
}

impl<'a> ParamBuilder<'a> {
    /// From given arrays, which it uses up, and a seed for the others.
    pub fn new(given: Weights, seed: Option<Seed>, device: &'a Device, precision: Precision) -> Self {
        Self { given, seed, device, dtype: precision.dtype(), names: Names::new(), drawn: Vec::new() }
    }

    /// Returns the names of all parameters, those that were drawn, and the given arrays that were not used.
    pub fn finish(self) -> Finished {
        Finished { names: self.names, drawn: self.drawn, left: self.given }
    }

    /// A parameter, trained where the device differentiates.
    pub fn param<const D: usize>(&mut self, name: &str, shape: [usize; D], init: Init) -> InitResult<Param<Tensor<D>>> {
        let tensor = self.upload(name, shape, init)?;
        let tensor = if self.device.is_autodiff() { tensor.require_grad() } else { tensor };
        Ok(Param::initialized(param_id(name), tensor))
    }

    /// A running statistic, which no gradient reaches.
    pub fn statistic(&mut self, name: &str, channels: usize, start: f32) -> InitResult<Param<Tensor<1>>> {
        Ok(Param::initialized(param_id(name), self.upload(name, [channels], Init::Full(start))?))
    }

    fn upload<const D: usize>(&mut self, name: &str, shape: [usize; D], init: Init) -> InitResult<Tensor<D>> {
        let missing = !self.given.0.contains_key(name);
        if let (true, Some(seed)) = (missing, self.seed) {
            let values = init.draw(seed, name, shape.iter().product());
            self.given.0.insert(name.to_owned(), HostTensor::new(shape, values));
            self.drawn.push(name.to_owned());
        }
        let values = self.given.take(name, &shape)?;
        self.names.insert(param_id(name), name.to_owned());
        Ok(Tensor::from_data(TensorData::new(values, shape), (self.device, self.dtype)))
    }

    /// A convolution without bias.
    pub fn conv(
        &mut self,
        name: &str,
        shape: [usize; 4],
        (stride, padding): (usize, usize),
        init: Init,
    ) -> InitResult<Conv> {
        let weight = self.param(&format!("{name}.weight"), shape, init)?;
        Ok(Conv { weight, bias: None, stride, padding: [padding; 2], groups: 1 })
    }

    /// A convolution with bias.
    pub fn biased_conv(
        &mut self,
        name: &str,
        shape: [usize; 4],
        geometry: (usize, usize),
        [weight, bias]: [Init; 2],
    ) -> InitResult<Conv> {
        let bias = Some(self.param(&format!("{name}.bias"), [shape[0]], bias)?);
        Ok(Conv { bias, ..self.conv(name, shape, geometry, weight)? })
    }

    /// A batch normalisation, which starts as the identity.
    pub fn batch_norm(&mut self, name: &str, channels: usize, (eps, momentum): (f64, f64)) -> InitResult<BatchNorm> {
        let LayerNorm { weight, bias, .. } = self.layer_norm(name, channels, eps)?;
        Ok(BatchNorm {
            weight,
            bias,
            running_mean: self.statistic(&format!("{name}.running_mean"), channels, 0.0)?,
            running_var: self.statistic(&format!("{name}.running_var"), channels, 1.0)?,
            eps,
            momentum,
        })
    }

    /// A layer normalisation, which starts as the identity.
    pub fn layer_norm(&mut self, name: &str, channels: usize, eps: f64) -> InitResult<LayerNorm> {
        Ok(LayerNorm {
            weight: self.param(&format!("{name}.weight"), [channels], Init::Full(1.0))?,
            bias: self.param(&format!("{name}.bias"), [channels], Init::Full(0.0))?,
            eps,
        })
    }

    /// A linear map [outputs, inputs] with bias.
    pub fn linear(&mut self, name: &str, shape: [usize; 2], [weight, bias]: [Init; 2]) -> InitResult<Linear> {
        Ok(Linear {
            weight: self.param(&format!("{name}.weight"), shape, weight)?,
            bias: Some(self.param(&format!("{name}.bias"), [shape[0]], bias)?),
        })
    }
}

/// A part, or a sentence that names the array that was missing or misshapen.
pub type InitResult<T> = Result<T, String>;
