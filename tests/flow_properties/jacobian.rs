//! The log-determinant against the Jacobian: by automatic differentiation, and by differences of the frozen flow.

use bayescope::flow::Precision;
use bayescope::flow::glow::{Glow, GlowConfig, encode};
use bayescope::flow::preprocess::BoundedLogit;
use burn::tensor::{DType, Device, Tensor, TensorData};
use nalgebra::DMatrix;

use crate::common::fill::uniform;
use crate::common::tiny;

/// log |det| of a matrix.
pub fn log_abs_det(jacobian: &DMatrix<f64>) -> f64 {
    jacobian.clone().lu().u().diagonal().iter().map(|d| d.abs().ln()).sum()
}

/// One logit-space image.
fn image(config: &GlowConfig, seed: u64) -> Vec<f64> {
    uniform("image", seed, config.shape.dims()).iter().map(|u| 2.0 * u).collect()
}

/// log |det| as training sums it up: the couplings' share from `encode`, the rest from `log_det_per_position`.
fn training_log_det(config: &GlowConfig, glow: &Glow, partial: Tensor<2>) -> f64 {
    let number = |t: Tensor<1>| t.try_into_vec_as::<f64>().unwrap()[0];
    let mut total = number(partial.sum());
    let mut mixes = glow.mixing_matrices().unwrap().into_iter();
    for (l, level) in glow.levels.iter().enumerate() {
        let positions = (config.shape.height >> (l + 1)) * (config.shape.width >> (l + 1));
        for step in &level.steps {
            total += positions as f64 * number(step.log_det_per_position(&mixes.next().unwrap()).unwrap());
        }
    }
    total
}

#[test]
fn log_det_is_that_of_the_autodiff_jacobian() {
    for (channels, side, levels, steps) in [(1, 4, 1, 2), (1, 4, 2, 2), (2, 4, 2, 1), (3, 2, 1, 2)] {
        let config = tiny::config(channels, side, levels, steps);
        let device = Device::flex().autodiff();
        let weights = tiny::weights(&config, 31);
        let glow = Glow::from_weights(&config, weights, &device, Precision::F64).unwrap();
        let dims = config.shape.dims();
        let data = TensorData::new(image(&config, 31), [1, channels, side, side]);
        let y = || Tensor::<4>::from_data(data.clone(), (&device, DType::F64)).require_grad();
        let ours = training_log_det(&config, &glow, encode(&glow.fold(), y()).1);
        // A graph runs backward once, so every row of the Jacobian gets its own.
        let row = |d: usize| {
            let y = y();
            let (z, _) = encode(&glow.fold(), y.clone());
            let grads = z.reshape([dims]).narrow(0, d, 1).sum().backward();
            y.grad(&grads).unwrap().try_into_vec_as::<f64>().unwrap()
        };
        let rows: Vec<f64> = (0..dims).flat_map(row).collect();
        let exact = log_abs_det(&DMatrix::from_row_slice(dims, dims, &rows));
        println!("{channels}×{side}×{side}, {levels} levels: ours {ours}, Jacobian {exact}");
        assert!((ours - exact).abs() < 1e-10 * exact.abs().max(1.0));
        // The frozen flow says the same, with the logit's own log-determinant on top.
        let flow = tiny::flow(&config, 31, Precision::F64);
        let (v, logit) = BoundedLogit { bounds: 0.9f32.into() }.inverse(&image(&config, 31), dims);
        let frozen = flow.encode(&v).unwrap().log_det[0] - logit[0];
        assert!((frozen - exact).abs() < 1e-9 * exact.abs().max(1.0), "{frozen} is not {exact}");
    }
}

/// The whole map v → z of the frozen flow, preprocessing included, by central differences in f64.
#[test]
fn log_det_is_that_of_differences_of_the_frozen_flow() {
    for (channels, side, levels, steps) in [(1, 2, 1, 2), (1, 4, 2, 2), (3, 4, 1, 1)] {
        let config = tiny::config(channels, side, levels, steps);
        let flow = tiny::flow(&config, 32, Precision::F64);
        let dims = config.shape.dims();
        let v: Vec<f64> = uniform("v", 32, dims).iter().map(|u| 0.5 + 0.45 * u).collect();
        let h = 1e-6;
        // All 2·D displaced images in one batch.
        let displaced: Vec<f64> = (0..2 * dims)
            .flat_map(|i| {
                let mut image = v.clone();
                image[i / 2] += if i % 2 == 0 { h } else { -h };
                image
            })
            .collect();
        let z = flow.encode(&displaced).unwrap().images;
        let entry =
            |row: usize, column: usize| (z[2 * column * dims + row] - z[(2 * column + 1) * dims + row]) / (2.0 * h);
        let exact = log_abs_det(&DMatrix::from_fn(dims, dims, entry));
        let ours = flow.encode(&v).unwrap().log_det[0];
        println!("{channels}×{side}×{side}, {levels} levels: ours {ours}, differences {exact}");
        // Error of the differences: h² × third derivatives ≈ 1e-9, rounding 1e-16/h ≈ 1e-10, per dimension.
        assert!((ours - exact).abs() < 1e-6, "{ours} is not {exact}");
    }
}
