//! The Gaussian classes of a shared-map flow, as tensors that gradients flow through.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Σ_d (z_d − μ_kd)²/σ_d² of points `z` [N, D] for every class at once, as ‖z/σ‖² − 2⟨z/σ², μ⟩ +
/// ‖μ/σ‖², [N, K]. `means` are [K, D], `var` [1, D].
pub fn distances(z: &Tensor<2>, means: &Tensor<2>, var: &Tensor<2>) -> Tensor<2> {
    let [classes, _] = means.dims();
    let (scaled, scaled_means) = (z.clone() / var.clone(), means.clone() / var.clone());
    let mean_norm = (means.clone() * scaled_means).sum_dim(1).reshape([1, classes]);
    (z.clone() * scaled.clone()).sum_dim(1) - scaled.matmul(means.clone().transpose()) * 2.0 + mean_norm
}

/// Class numbers as an index [N, 1].
pub fn targets(classes: &[usize], device: &Device) -> Tensor<2, Int> {
    let numbers: Vec<i64> = classes.iter().map(|&class| class as i64).collect();
    Tensor::<1, Int>::from_data(TensorData::new(numbers, [classes.len()]), device).reshape([classes.len(), 1])
}

/// −log softmax(logits)_y of every point, [N, 1].
pub fn cross_entropies(logits: Tensor<2>, targets: Tensor<2, Int>) -> Tensor<2> {
    -log_softmax(logits, 1).gather(1, targets)
}
