//! Parameters of a Glow by name: from weights, to weights, and the random start.

use burn::optim::GradientsParams;
use burn::tensor::Device;
use nalgebra::DMatrix;
use rand_distr::{Distribution, StandardNormal};

use super::layout::level_name;
use super::{
    ActNorm, BiasConv, Conv, Coupling, CouplingNet, FixedNorm, FlowStep, Glow, GlowConfig, InvConv, Level, LinearHead,
};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::parameters::{self, Builder};
use crate::flow::weights::{HostTensor, Weights};
use crate::units::Seed;

/// The parts of a Glow from its named arrays.
trait Parts {
    fn norm(&mut self, prefix: &str, channels: usize) -> Result<FixedNorm, String>;
    fn step(&mut self, prefix: &str, channels: usize, hidden: usize) -> Result<FlowStep, String>;
}

impl Parts for Builder<'_> {
    fn norm(&mut self, prefix: &str, channels: usize) -> Result<FixedNorm, String> {
        Ok(FixedNorm {
            weight: self.tensor(&format!("{prefix}.weight"), [channels])?,
            bias: self.tensor(&format!("{prefix}.bias"), [channels])?,
            running_mean: self.constant(&format!("{prefix}.running_mean"), [channels])?,
            running_var: self.constant(&format!("{prefix}.running_var"), [channels])?,
        })
    }

    fn step(&mut self, prefix: &str, channels: usize, hidden: usize) -> Result<FlowStep, String> {
        let half = channels / 2;
        let nn = format!("{prefix}.coup.nn");
        Ok(FlowStep {
            norm: ActNorm {
                bias: self.tensor(&format!("{prefix}.norm.bias"), [1, channels, 1, 1])?,
                logs: self.tensor(&format!("{prefix}.norm.logs"), [1, channels, 1, 1])?,
            },
            conv: InvConv { weight: self.tensor(&format!("{prefix}.conv.weight"), [channels, channels])? },
            coup: Coupling {
                scale: self.tensor(&format!("{prefix}.coup.scale"), [half, 1, 1])?,
                nn: CouplingNet {
                    in_norm: self.norm(&format!("{nn}.in_norm"), half)?,
                    in_conv: Conv { weight: self.tensor(&format!("{nn}.in_conv.weight"), [hidden, half, 3, 3])? },
                    mid_norm: self.norm(&format!("{nn}.mid_norm"), hidden)?,
                    mid_conv: Conv { weight: self.tensor(&format!("{nn}.mid_conv.weight"), [hidden, hidden, 1, 1])? },
                    out_norm: self.norm(&format!("{nn}.out_norm"), hidden)?,
                    out_conv: BiasConv {
                        weight: self.tensor(&format!("{nn}.out_conv.weight"), [channels, hidden, 3, 3])?,
                        bias: self.tensor(&format!("{nn}.out_conv.bias"), [channels])?,
                    },
                },
            },
        })
    }
}

impl Glow {
    /// A Glow on `device` from named arrays, which must be exactly its own ([`GlowConfig::check`]).
    ///
    /// # Errors
    /// Names the array.
    pub fn from_weights(config: &GlowConfig, weights: Weights, device: &Device, precision: Precision) -> Result<Self> {
        let misfit = |e: String| Error::input(format!("weights do not fit this Glow: {e}"));
        config.validate()?;
        config.check(&weights).map_err(misfit)?;
        Self::build(config, &mut Builder::new(weights, device, precision)).map_err(misfit)
    }

    fn build(config: &GlowConfig, builder: &mut Builder<'_>) -> Result<Self, String> {
        let shape = config.shape;
        let [c, h, w] = [shape.channels, shape.height, shape.width];
        let level = |l: usize, builder: &mut Builder<'_>| {
            let channels = config.level_shape(l).channels;
            let steps = (0..config.steps)
                .map(|k| builder.step(&format!("{}.steps.{k}", level_name(l)), channels, config.hidden));
            steps.collect::<Result<_, _>>().map(|steps| Level { steps })
        };
        Ok(Self {
            means: builder.tensor("means", [config.classes, c, h, w])?,
            cov_diag: builder.tensor("cov_diag", [c, h, w])?,
            bounds: builder.constant("bounds", [1])?,
            levels: (0..config.levels).map(|l| level(l, builder)).collect::<Result<_, _>>()?,
            linproj: LinearHead {
                weight: builder.tensor("linproj.weight", [config.classes, shape.dims()])?,
                bias: builder.tensor("linproj.bias", [config.classes])?,
            },
        })
    }

    /// All parameters by name, on the host.
    ///
    /// # Errors
    /// When the device cannot deliver them.
    pub fn to_weights(&self) -> Result<Weights> {
        parameters::to_weights(self, checkpoint_name)
    }

    /// Gradients by name, beside those that are `found` already.
    pub fn add_gradients(&self, gradients: &Weights, found: GradientsParams) -> GradientsParams {
        parameters::add_gradients(self, checkpoint_name, gradients, found)
    }
}

/// `levels.2.steps.0.…` is `flows.next.next.steps.0.…` in a checkpoint.
fn checkpoint_name(path: &[String]) -> String {
    match path {
        [levels, level, rest @ ..] if levels == "levels" => {
            let level = level.parse().unwrap_or(0);
            format!("{}.{}", level_name(level), rest.join("."))
        }
        path => path.join("."),
    }
}

impl GlowConfig {
    /// A random start (EBO's code): convolutions N(0, 0.05²), the last one 0, so that every
    /// coupling is the identity; random rotations for the 1×1 convolutions; unit covariance. Means
    /// are N(0, `mean_std`²): EBO's code uses 1, which puts 32×32 classes 45 standard deviations
    /// apart before anything is learned; a small value lets the data decide.
    pub fn initial_weights(&self, seed: Seed, mean_std: f32) -> Weights {
        let normal = |name: &str, shape: &[usize], std: f32| {
            let mut rng = seed.split(name).rng(0);
            let draw = |_| {
                let e: f32 = StandardNormal.sample(&mut rng);
                std * e
            };
            HostTensor::new(shape, (0..shape.iter().product::<usize>()).map(draw).collect())
        };
        let [c, h, w] = [self.shape.channels, self.shape.height, self.shape.width];
        let mut all = vec![
            ("means".to_owned(), normal("means", &[self.classes, c, h, w], mean_std)),
            ("cov_diag".to_owned(), HostTensor::full([c, h, w], 1.0)),
            ("bounds".to_owned(), HostTensor::full([1], 0.9)),
            ("linproj.weight".to_owned(), HostTensor::full([self.classes, self.shape.dims()], 0.0)),
            ("linproj.bias".to_owned(), HostTensor::full([self.classes], 0.0)),
        ];
        for l in 0..self.levels {
            for k in 0..self.steps {
                let step = format!("{}.steps.{k}", level_name(l));
                all.extend(self.initial_step(&step, self.level_shape(l).channels, &normal));
            }
        }
        Weights(all.into_iter().collect())
    }

    fn initial_step(
        &self,
        step: &str,
        channels: usize,
        normal: &dyn Fn(&str, &[usize], f32) -> HostTensor,
    ) -> Vec<(String, HostTensor)> {
        let (half, hidden) = (channels / 2, self.hidden);
        let nn = format!("{step}.coup.nn");
        let rotation = format!("{step}.conv.weight");
        let mut all = vec![
            (format!("{step}.norm.bias"), HostTensor::full([1, channels, 1, 1], 0.0)),
            (format!("{step}.norm.logs"), HostTensor::full([1, channels, 1, 1], 0.0)),
            (rotation.clone(), orthogonal(normal(&rotation, &[channels, channels], 1.0))),
            (format!("{step}.coup.scale"), HostTensor::full([half, 1, 1], 1.0)),
            (format!("{nn}.out_conv.weight"), HostTensor::full([channels, hidden, 3, 3], 0.0)),
            (format!("{nn}.out_conv.bias"), HostTensor::full([channels], 0.0)),
        ];
        for (name, shape) in [("in_conv", [hidden, half, 3, 3]), ("mid_conv", [hidden, hidden, 1, 1])] {
            let name = format!("{nn}.{name}.weight");
            let weight = normal(&name, &shape, 0.05);
            all.push((name, weight));
        }
        for (name, width) in [("in_norm", half), ("mid_norm", hidden), ("out_norm", hidden)] {
            for (part, value) in [("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)] {
                all.push((format!("{nn}.{name}.{part}"), HostTensor::full([width], value)));
            }
        }
        all
    }
}

/// The orthogonal factor of a square matrix.
fn orthogonal(tensor: HostTensor) -> HostTensor {
    let side = tensor.shape[0];
    let q = DMatrix::from_row_iterator(side, side, tensor.values.iter().map(|&v| f64::from(v))).qr().q();
    let values = q.transpose().iter().map(|&v| v as f32).collect();
    HostTensor::new(tensor.shape, values)
}
