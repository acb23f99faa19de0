//! Data-dependent initialisation (Glow §3.1): every normalisation starts with zero mean and unit variance on a batch.

use burn::module::Param;
use burn::tensor::{Tensor, activation::relu};

use super::{CouplingNet, FixedNorm, FlowStep, Glow, fold_norm, halves, neighbours, per_channel, squeeze};

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
        // A fresh normalisation changes nothing: what `fold_norm` gives before it is initialised is the bare convolution,
        // but for √(1 + ε), which the statistics then absorb.
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
    /// Initialises every normalisation from logit-space images y [N, C, H, W], step after step. For a Glow
    /// on a device without autodiff.
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
