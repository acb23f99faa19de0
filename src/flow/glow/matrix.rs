//! The small channel matrices of a Glow, in f64 on the host.

use burn::tensor::{Tensor, TensorData};
use nalgebra::DMatrix;

use crate::error::{Error, Result};
use crate::flow::parameters::to_host;

/// A weight [R, C] as a matrix.
pub fn to_matrix(weight: &Tensor<2>) -> Result<DMatrix<f64>> {
    let [rows, columns] = weight.dims();
    Ok(DMatrix::from_row_iterator(rows, columns, to_host(weight.clone())?))
}

/// Several, in one transfer: each would hold up a graphics card, and wait for a network.
pub fn to_matrices(weights: &[Tensor<2>]) -> Result<Vec<DMatrix<f64>>> {
    if weights.is_empty() {
        return Ok(Vec::new());
    }
    let flat = weights.iter().map(|weight| weight.clone().reshape([-1])).collect::<Vec<Tensor<1>>>();
    let mut values = to_host(Tensor::cat(flat, 0))?.into_iter();
    let matrix = |weight: &Tensor<2>| {
        let [rows, columns] = weight.dims();
        DMatrix::from_row_iterator(rows, columns, values.by_ref().take(rows * columns))
    };
    Ok(weights.iter().map(matrix).collect())
}

/// A matrix as a constant tensor on the device and in the precision of `like`.
pub fn from_matrix(matrix: &DMatrix<f64>, like: &Tensor<2>) -> Tensor<2> {
    // nalgebra is column-major: the transpose's storage is our row-major one.
    let row_major = matrix.transpose().as_slice().to_vec();
    let data = TensorData::new(row_major, [matrix.nrows(), matrix.ncols()]);
    Tensor::from_data(data, (&like.device(), like.dtype()))
}

/// Inverse and log |det|.
///
/// # Errors
/// When the matrix is singular or not finite.
pub fn invert(matrix: &DMatrix<f64>) -> Result<(DMatrix<f64>, f64)> {
    let lu = matrix.clone().lu();
    let log_det: f64 = lu.u().diagonal().iter().map(|d| d.abs().ln()).sum();
    match lu.try_inverse() {
        Some(inverse) if log_det.is_finite() => Ok((inverse, log_det)),
        _ => Err(Error::Numeric("a 1×1 convolution of the flow is singular: the flow has no inverse".into())),
    }
}
