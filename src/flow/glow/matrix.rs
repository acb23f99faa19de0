//! The small channel matrices of a Glow, in f64 on the host, and host copies of tensors.

use burn::tensor::{Tensor, TensorData};
use nalgebra::DMatrix;

use crate::error::{Error, Result};

/// The values of a tensor in f64.
///
/// # Errors
/// When the device cannot deliver them: it ran out of memory or was lost.
pub fn to_host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>> {
    tensor.try_into_vec_as::<f64>().map_err(|e| {
        Error::Device(format!(
            "a result could not be read back, as happens when memory runs out or the device is lost: {e}"
        ))
    })
}

/// A square weight [C, C] as a matrix.
pub fn to_matrix(weight: &Tensor<2>) -> Result<DMatrix<f64>> {
    let [rows, columns] = weight.dims();
    Ok(DMatrix::from_row_iterator(rows, columns, to_host(weight.clone())?))
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
