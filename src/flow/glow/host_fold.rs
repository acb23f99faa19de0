//! The folding of every step on the host, there and back: [`Step`](super::Step)'s arrays from the
//! parameters, and gradients of the parameters from those of the arrays. burn does the same by
//! many small operations, one after another, which were a quarter of a training step on a CPU.

use nalgebra::DMatrix;

use super::layout::level_name;
use super::matrix::invert;
use super::{GlowConfig, NORM_EPS};
use crate::error::{Error, Result};
use crate::flow::weights::{HostTensor, Weights};

/// The steps of a Glow, folded.
#[derive(Debug)]
pub struct HostFold {
    steps: Vec<StepFold>,
    /// Of every step, one after another, as [`Step::arrays`](super::Step::arrays) has them.
    pub arrays: Vec<f32>,
    /// log |det| of all mixing maps over all positions, nats.
    pub log_det: f64,
}

/// Parameters of one step, and what their gradients need.
#[derive(Debug)]
struct StepFold {
    /// What the names of its parameters begin with.
    name: String,
    channels: usize,
    /// Positions of its level.
    positions: f64,
    /// b of the ActNorm and e^l.
    bias: Vec<f64>,
    scale: Vec<f64>,
    /// W e^l [C, C] and W^-1.
    mix: Vec<f64>,
    inverse: DMatrix<f64>,
    norms: [NormFold; 3],
    /// Weights of the two convolutions that a normalisation follows, [out, in, positions].
    convs: [Vec<f64>; 2],
}

/// A normalisation as x·a + c.
#[derive(Debug)]
struct NormFold {
    a: Vec<f64>,
    c: Vec<f64>,
    mean: Vec<f64>,
    /// 1/√(var + ε).
    inverse_std: Vec<f64>,
}

fn numbers(weights: &Weights, name: &str) -> Result<Vec<f64>> {
    let array = weights.0.get(name).ok_or_else(|| Error::input(format!("array '{name}' is missing")))?;
    Ok(array.values.iter().map(|v| f64::from(*v)).collect())
}

/// [A, B, C] → [A, C, B].
fn swapped<T: Copy>(x: &[T], b: usize, c: usize) -> Vec<T> {
    x.chunks_exact(b * c).flat_map(|x| (0..c).flat_map(move |j| (0..b).map(move |i| x[i * c + j]))).collect()
}

/// [out, hidden, 9] of the last convolution, s and t in turn, to [9, all s then all t, hidden].
fn sorted(x: &[f64], hidden: usize) -> Vec<f64> {
    let out = x.len() / (9 * hidden);
    let channel = |row: usize| (row % (out / 2)) * 2 + row / (out / 2);
    let number = |k: usize, row: usize, i: usize| x[(channel(row) * hidden + i) * 9 + k];
    (0..9).flat_map(|k| (0..out).flat_map(move |row| (0..hidden).map(move |i| number(k, row, i)))).collect()
}

/// The inverse of [`sorted`].
fn unsorted(x: &[f32], hidden: usize) -> Vec<f32> {
    let out = x.len() / (9 * hidden);
    let row = |channel: usize| (channel % 2) * (out / 2) + channel / 2;
    let number = |channel: usize, i: usize, k: usize| x[(k * out + row(channel)) * hidden + i];
    (0..out).flat_map(|c| (0..hidden).flat_map(move |i| (0..9).map(move |k| number(c, i, k)))).collect()
}

impl NormFold {
    fn read(weights: &Weights, name: &str) -> Result<Self> {
        let part = |part: &str| numbers(weights, &format!("{name}.{part}"));
        let (weight, bias, mean, var) = (part("weight")?, part("bias")?, part("running_mean")?, part("running_var")?);
        let inverse_std: Vec<f64> = var.iter().map(|var| (var + NORM_EPS).sqrt().recip()).collect();
        let a: Vec<f64> = weight.iter().zip(&inverse_std).map(|(weight, s)| weight * s).collect();
        let c = bias.iter().zip(mean.iter().zip(&a)).map(|(bias, (mean, a))| bias - mean * a).collect();
        Ok(Self { a, c, mean, inverse_std })
    }

    /// Gradients of weight and bias from those of a and c.
    fn gradients(&self, by_a: &[f64], by_c: &[f32]) -> [Vec<f32>; 2] {
        let rows = self.mean.iter().zip(&self.inverse_std).zip(by_a.iter().zip(by_c));
        let by_weight = rows.map(|((mean, s), (by_a, by_c))| ((by_a - mean * f64::from(*by_c)) * s) as f32);
        [by_weight.collect(), by_c.to_vec()]
    }
}

impl StepFold {
    fn read(weights: &Weights, name: String, channels: usize, positions: usize) -> Result<(Self, f64)> {
        let part = |part: &str| numbers(weights, &format!("{name}.{part}"));
        let (weight, bias, logs) = (part("conv.weight")?, part("norm.bias")?, part("norm.logs")?);
        let scale: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
        let mix = weight.chunks_exact(channels).flat_map(|row| row.iter().zip(&scale).map(|(w, scale)| w * scale));
        let (inverse, log_det) = invert(&DMatrix::from_row_slice(channels, channels, &weight))?;
        let norm = |norm: &str| NormFold::read(weights, &format!("{name}.coup.nn.{norm}"));
        let positions = positions as f64;
        let log_det = positions * (logs.iter().sum::<f64>() + log_det);
        let (mix, norms) = (mix.collect(), [norm("in_norm")?, norm("mid_norm")?, norm("out_norm")?]);
        let convs = [part("coup.nn.in_conv.weight")?, part("coup.nn.mid_conv.weight")?];
        Ok((Self { name, channels, positions, bias, scale, mix, inverse, norms, convs }, log_det))
    }

    /// Its arrays, one after another.
    fn arrays(&self, weights: &Weights) -> Result<Vec<f32>> {
        let part = |part: &str| numbers(weights, &format!("{}.coup.{part}", self.name));
        let shift =
            self.mix.chunks_exact(self.channels).map(|row| row.iter().zip(&self.bias).map(|(w, b)| w * b).sum());
        let (shift, [first, middle, last]): (Vec<f64>, _) = (shift.collect(), &self.norms);
        let folded = |conv: &[f64], norm: &NormFold, places: usize| -> Vec<f64> {
            let [out, row] = [norm.a.len(), conv.len() / norm.a.len()];
            let rows = swapped(conv, row / places, places);
            (0..out).flat_map(|o| rows[o * row..][..row].iter().map(|w| w * norm.a[o]).collect::<Vec<_>>()).collect()
        };
        let [input, mid] = [folded(&self.convs[0], middle, 9), folded(&self.convs[1], last, 1)];
        let output = sorted(&part("nn.out_conv.weight")?, last.a.len());
        let output_bias = swapped(&part("nn.out_conv.bias")?, self.channels / 2, 2);
        let scale = part("scale")?;
        let all =
            [&self.mix, &shift, &first.a, &first.c, &input, &middle.c, &mid, &last.c, &output, &output_bias, &scale];
        Ok(all.into_iter().flatten().map(|v| *v as f32).collect())
    }

    /// Gradients of its parameters from those of its arrays and of [`HostFold::log_det`], to `into`.
    /// Returns what is left of `arrays`.
    fn gradients<'a>(&self, arrays: &'a [f32], by_log_det: f64, into: &mut Weights) -> &'a [f32] {
        let (c, half, hidden) = (self.channels, self.channels / 2, self.norms[1].a.len());
        let mut rest = arrays;
        let mut next = |len: usize| {
            let (array, others) = rest.split_at(len);
            rest = others;
            array
        };
        let mut set = |part: &str, shape: &[usize], values: Vec<f32>| {
            into.0.insert(format!("{}.{part}", self.name), HostTensor::new(shape, values));
        };
        let (by_mix, by_shift) = (next(c * c), next(c));
        let by_log_det = by_log_det * self.positions;
        let (mut by_weight, mut by_logs, mut by_bias) = (vec![0.0f32; c * c], vec![by_log_det; c], vec![0.0; c]);
        for i in 0..c {
            for j in 0..c {
                let (at, by_shift) = (i * c + j, f64::from(by_shift[i]));
                let by_mix = f64::from(by_mix[at]) + by_shift * self.bias[j];
                by_weight[at] = (by_mix * self.scale[j] + by_log_det * self.inverse[(j, i)]) as f32;
                by_logs[j] += by_mix * self.mix[at];
                by_bias[j] += by_shift * self.mix[at];
            }
        }
        let narrow = |values: Vec<f64>| values.into_iter().map(|v| v as f32).collect();
        set("conv.weight", &[c, c], by_weight);
        set("norm.logs", &[1, c, 1, 1], narrow(by_logs));
        set("norm.bias", &[1, c, 1, 1], narrow(by_bias));
        let mut norm = |name: &str, by_a: &[f64], by_c: &[f32], norm: &NormFold| {
            let [weight, bias] = norm.gradients(by_a, by_c);
            set(&format!("coup.nn.{name}.weight"), &[weight.len()], weight);
            set(&format!("coup.nn.{name}.bias"), &[bias.len()], bias);
        };
        let by_a: Vec<f64> = next(half).iter().map(|v| f64::from(*v)).collect();
        norm("in_norm", &by_a, next(half), &self.norms[0]);
        let convs = [("mid_norm", "in_conv", half, 3), ("out_norm", "mid_conv", hidden, 1)];
        let mut by_convs = Vec::new();
        for ((norm_name, conv_name, inputs, side), (conv, fold)) in
            convs.into_iter().zip(self.convs.iter().zip(&self.norms[1..]))
        {
            let row = inputs * side * side;
            let (by_folded, by_c) = (swapped(next(hidden * row), side * side, inputs), next(hidden));
            let rows = || by_folded.chunks_exact(row).zip(conv.chunks_exact(row)).zip(&fold.a);
            let by_a: Vec<f64> =
                rows().map(|((by, conv), _)| by.iter().zip(conv).map(|(by, w)| f64::from(*by) * w).sum()).collect();
            let by_conv =
                rows().flat_map(|((by, _), a)| by.iter().map(move |by| (f64::from(*by) * a) as f32)).collect();
            norm(norm_name, &by_a, by_c, fold);
            by_convs.push((format!("coup.nn.{conv_name}.weight"), [hidden, inputs, side, side], by_conv));
        }
        by_convs.into_iter().for_each(|(name, shape, values)| set(&name, &shape, values));
        set("coup.nn.out_conv.weight", &[c, hidden, 3, 3], unsorted(next(9 * c * hidden), hidden));
        set("coup.nn.out_conv.bias", &[c], swapped(next(c), 2, half));
        set("coup.scale", &[half, 1, 1], next(half).to_vec());
        rest
    }
}

impl HostFold {
    /// Folds the parameters of a Glow.
    ///
    /// # Errors
    /// When a 1×1 convolution is singular or not finite, or an array is missing.
    pub fn new(config: &GlowConfig, weights: &Weights) -> Result<Self> {
        let mut fold = Self { steps: Vec::new(), arrays: Vec::new(), log_det: 0.0 };
        for level in 0..config.levels {
            let shape = config.level_shape(level);
            for step in 0..config.steps {
                let name = format!("{}.steps.{step}", level_name(level));
                let (step, log_det) = StepFold::read(weights, name, shape.channels, shape.height * shape.width)?;
                fold.arrays.extend(step.arrays(weights)?);
                fold.log_det += log_det;
                fold.steps.push(step);
            }
        }
        Ok(fold)
    }

    /// Gradients of the steps' parameters from those of [`Self::arrays`] and of [`Self::log_det`].
    pub fn gradients(&self, arrays: &[f32], by_log_det: f64) -> Weights {
        let mut found = Weights::default();
        self.steps.iter().fold(arrays, |arrays, step| step.gradients(arrays, by_log_det, &mut found));
        found
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use rand::RngExt;

    use super::*;
    use crate::data::ImageShape;
    use crate::device::to_host;
    use crate::flow::Precision;
    use crate::flow::glow::Glow;
    use crate::units::Seed;

    fn parts() -> (GlowConfig, Weights) {
        let shape = ImageShape { channels: 3, height: 8, width: 4 };
        let config = GlowConfig { shape, classes: 2, hidden: 5, levels: 2, steps: 2 };
        let mut weights = config.initial_weights(Seed(1), 0.1);
        for (name, array) in weights.0.iter_mut().filter(|(name, _)| *name != "bounds") {
            let mut rng = Seed(2).split(name).rng(0);
            array.values.iter_mut().for_each(|v| *v += 0.2 * rng.random_range(0.0f32..1.0));
        }
        (config, weights)
    }

    #[test]
    fn arrays_are_those_of_the_folding_by_tensors() {
        let (config, weights) = parts();
        let glow = Glow::from_weights(&config, weights.clone(), &Device::flex(), Precision::F64).unwrap();
        let steps = glow.fold().into_iter().flatten().flat_map(|step| step.arrays());
        let expected: Vec<f64> = steps.flat_map(|array| to_host(array).unwrap()).collect();
        let found = HostFold::new(&config, &weights).unwrap().arrays;
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(&expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-7 * (1.0 + b.abs())));
    }

    /// Along a random way: of a weighted sum of the arrays and of the log-determinant.
    #[test]
    fn gradients_are_slopes() {
        let (config, weights) = parts();
        let fold = HostFold::new(&config, &weights).unwrap();
        let mut rng = Seed(3).rng(0);
        let by_arrays: Vec<f32> = fold.arrays.iter().map(|_| rng.random_range(-1.0f32..1.0)).collect();
        let gradients = fold.gradients(&by_arrays, -0.5);
        for (name, gradient) in &gradients.0 {
            assert_eq!(gradient.shape, weights.0[name].shape, "{name}");
            let way: Vec<f32> = gradient.values.iter().map(|_| rng.random_range(-1.0f32..1.0)).collect();
            let value = |step: f32| {
                let mut moved = weights.clone();
                let values = &mut moved.0.get_mut(name).unwrap().values;
                values.iter_mut().zip(&way).for_each(|(v, way)| *v += step * way);
                let fold = HostFold::new(&config, &moved).unwrap();
                let pairs = fold.arrays.iter().zip(&by_arrays);
                pairs.map(|(a, by)| f64::from(*a) * f64::from(*by)).sum::<f64>() - 0.5 * fold.log_det
            };
            let step = 1.0 / 256.0;
            let expected = (value(step) - value(-step)) / (2.0 * f64::from(step));
            let found: f64 = gradient.values.iter().zip(&way).map(|(g, way)| f64::from(g * way)).sum();
            assert!((found - expected).abs() < 2e-3 * (1.0 + expected.abs()), "{name}: {found} {expected}");
        }
        // Everything that is trained but the base distribution.
        let trained: usize = gradients.0.values().map(|gradient| gradient.values.len()).sum();
        assert_eq!(trained, config.trained_numbers(false) - 3 * config.shape.dims());
    }
}
