//! Data-dependent initialisation (Glow §3.1): every normalisation starts with zero mean and unit
//! variance on a batch.

use burn::module::Param;
use burn::tensor::{Tensor, activation::relu};

use super::step::{fold_norm, halves, neighbours, per_channel};
use super::{CouplingNet, FixedNorm, FlowStep, Glow, squeeze};

/// Mean and variance over images and positions of x [C, N, H, W], [C] each.
fn moments(x: &Tensor<4>) -> (Tensor<1>, Tensor<1>) {
    let [channels, ..] = x.dims();
    let rows = x.clone().reshape([channels as i32, -1]);
    let mean = rows.clone().mean_dim(1);
    let var = (rows - mean.clone()).square().mean_dim(1);
    (mean.reshape([channels]), var.reshape([channels]))
}

/// A parameter with a new value, keeping its identity.
fn set<const D: usize>(param: &mut Param<Tensor<D>>, value: Tensor<D>) {
    *param = Param::initialized(param.id, value);
}

impl FixedNorm {
    fn initialise(&mut self, x: &Tensor<4>) {
        let (mean, var) = moments(x);
        set(&mut self.running_mean, mean);
        set(&mut self.running_var, var);
    }

    /// The normalisation and the relu that always follows it.
    fn relu(&self, x: Tensor<4>) -> Tensor<4> {
        let (a, c) = self.affine();
        relu(x * per_channel(a) + per_channel(c))
    }
}

impl CouplingNet {
    fn initialise(&mut self, condition: Tensor<4>) {
        // A fresh normalisation changes nothing: what `fold_norm` gives before it is initialised is
        // the bare convolution, but for √(1 + ε), which the statistics then absorb.
        self.in_norm.initialise(&condition);
        let h = fold_norm(&self.in_conv, &self.mid_norm).forward(neighbours(self.in_norm.relu(condition)));
        self.mid_norm.initialise(&h);
        let h = fold_norm(&self.mid_conv, &self.out_norm).forward(self.mid_norm.relu(h));
        self.out_norm.initialise(&h);
    }
}

impl FlowStep {
    fn initialise(&mut self, x: Tensor<4>) {
        let [channels, ..] = x.dims();
        let (mean, var) = moments(&x);
        set(&mut self.norm.bias, -mean.reshape([1, channels, 1, 1]));
        set(&mut self.norm.logs, -((var.sqrt() + 1e-6).log()).reshape([1, channels, 1, 1]));
        let (_, condition) = halves(self.fold().mix.forward(x));
        self.coup.nn.initialise(condition);
    }
}

impl Glow {
    /// Initialises every normalisation from logit-space images y [N, C, H, W], step after step. For
    /// a Glow on a device without autodiff.
    pub fn initialise(&mut self, y: &Tensor<4>) {
        let mut x = squeeze(y.clone().swap_dims(0, 1));
        for l in 0..self.levels.len() {
            if l > 0 {
                (x, _) = halves(squeeze(x));
            }
            for step in &mut self.levels[l].steps {
                step.initialise(x.clone());
                x = step.fold().encode(x).0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::super::{GlowConfig, Step};
    use super::*;
    use crate::data::ImageShape;
    use crate::flow::Precision;
    use crate::flow::base::latents;
    use crate::flow::parameters::to_host;
    use crate::units::Seed;

    const SHAPE: ImageShape = ImageShape { channels: 3, height: 8, width: 8 };
    const CONFIG: GlowConfig = GlowConfig { shape: SHAPE, classes: 2, hidden: 6, levels: 2, steps: 2 };

    /// Means and variances of every channel are 0 and 1 to within `tolerance`.
    fn assert_standard(what: &str, x: &Tensor<4>, tolerance: f64) {
        let (mean, var) = moments(x);
        let worst_mean = to_host(mean).unwrap().into_iter().fold(0f64, |a, m| a.max(m.abs()));
        let worst_var = to_host(var).unwrap().into_iter().fold(0f64, |a, v| a.max((v - 1.0).abs()));
        assert!(
            worst_mean < tolerance && worst_var < tolerance,
            "{what}: mean {worst_mean:e}, variance off by {worst_var:e}"
        );
    }

    /// The three normalisations inside a coupling network, each before its relu.
    fn check_network(nn: &CouplingNet, step: &Step, condition: Tensor<4>) {
        let (a, c) = step.in_norm.clone();
        let h = condition * a + c;
        assert_standard("in_norm", &h, 1e-3);
        let h = step.input.forward(neighbours(relu(h)));
        assert_standard("mid_norm", &h, 1e-2);
        let h = step.middle.forward(relu(h));
        // ε = 1e-5 beside the small variances of a fresh network's activations: corrected for, then
        // exact.
        let (_, var) = moments(&h);
        let running = nn.out_norm.running_var.val();
        let share = to_host(var * (running.clone() + super::super::NORM_EPS) / running).unwrap();
        assert!(share.iter().all(|s| (s - 1.0).abs() < 1e-3), "out_norm: {share:?}");
    }

    #[test]
    fn every_normalisation_starts_at_zero_mean_and_unit_variance() {
        let device = Device::flex();
        let weights = CONFIG.initial_weights(Seed(3), 0.1);
        let mut glow = Glow::from_weights(&CONFIG, weights, &device, Precision::F32).unwrap();
        // 32 images whose channels have unlike means and spreads.
        let noise = latents(Seed(4), 0, 32, SHAPE.dims());
        let y = noise
            .iter()
            .enumerate()
            .map(|(i, e)| (i / 64 % 3) as f32 * 2.0 - 1.0 + e * (0.5 + (i % 5) as f32))
            .collect::<Vec<_>>();
        let y = Tensor::<4>::from_data(TensorData::new(y, [32, 3, 8, 8]), &device);
        glow.initialise(&y);
        let mut x = squeeze(y.swap_dims(0, 1));
        for (l, level) in glow.levels.iter().enumerate() {
            if l > 0 {
                (x, _) = halves(squeeze(x));
            }
            for step in &level.steps {
                let channels = x.dims()[0];
                let bias = step.norm.bias.val().reshape([channels, 1, 1, 1]);
                let scale = step.norm.logs.val().exp().reshape([channels, 1, 1, 1]);
                assert_standard("ActNorm", &((x.clone() + bias) * scale), 1e-4);
                let folded = step.fold();
                let (_, condition) = halves(folded.mix.forward(x.clone()));
                check_network(&step.coup.nn, &folded, condition);
                x = folded.encode(x).0;
            }
        }
    }
}
