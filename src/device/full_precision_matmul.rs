//! Matrix products in full 32-bit precision. burn silently uses TF32 tensor cores, which round
//! factors to 11 significant bits, where they are fastest. Log-densities must not: on such a card
//! we choose kernels without tensor cores. On another machine's card none can be chosen, so a
//! product is computed in three parts that TF32 holds almost exactly (Ootomo & Yokota 2022, without
//! their scaling). Training uses burn's choice.

#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub(super) mod named;

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::module;
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::read::to_host;
use crate::error::Result;

/// Devices of other machines that round the factors of products.
static ROUNDING: Mutex<Vec<Device>> = Mutex::new(Vec::new());

fn rounding() -> MutexGuard<'static, Vec<Device>> {
    ROUNDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the tensor cores of a device round the factors of the 32-bit products and convolutions whose
/// kernels burn chooses, to 11 significant bits: those of classifiers and of all training.
pub fn rounds(device: &Device) -> bool {
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    if named::rounds(device) {
        return true;
    }
    rounding().contains(device)
}

/// a·b of the last two dimensions. Where no gradient is wanted, 32-bit factors enter as they are.
pub fn matmul<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    if let Some(product) = named::instead(&a, &b) {
        return product;
    }
    if a.dtype() == DType::F32 && rounding().contains(&a.device()) {
        return in_parts(a, b, Tensor::matmul);
    }
    a.matmul(b)
}

/// x Wᵀ + b for x [N, M, in], W [out, in] and b [out]: [N, M, out]. Where no gradient is wanted,
/// 32-bit factors enter as they are.
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<3> {
    if x.device().is_autodiff() {
        return module::linear(x, weight.transpose(), Some(bias));
    }
    let ([n, m, inner], [out, _]) = (x.dims(), weight.dims());
    let product = matmul(x.reshape([n * m, inner]), weight.transpose());
    (product + bias.unsqueeze()).reshape([n, m, out])
}

/// a·b by a product that rounds its factors to 11 bits: what is left out is 2^-22 of each term at
/// most, and what is rounded as little.
fn in_parts<const D: usize>(
    a: Tensor<D>,
    b: Tensor<D>,
    product: impl Fn(Tensor<D>, Tensor<D>) -> Tensor<D>,
) -> Tensor<D> {
    let ([a, a_rest], [b, b_rest]) = (halves(a), halves(b));
    // The small ones first.
    product(a_rest, b.clone()) + product(a.clone(), b_rest) + product(a, b)
}

/// The leading 11 bits of 32-bit numbers, and the others (Veltkamp's splitting): they add up to
/// what they are of.
fn halves<const D: usize>(x: Tensor<D>) -> [Tensor<D>; 2] {
    let far = x.clone() * 8193.0;
    let leading = far.clone() - (far - x.clone());
    [leading.clone(), x - leading]
}

/// Side of the product that is tried: burn prefers tensor cores from 512 on.
const SIDE: usize = 1024;

/// Finds out whether another machine's device rounds the factors of its products, and has
/// [`matmul`] know.
///
/// # Errors
/// When the device fails.
pub fn learn(device: &Device) -> Result<()> {
    // 1 + 2^-12 is 1 in 11 bits.
    let fine = Tensor::<2>::from_data(TensorData::new(vec![1.0f32 + 1.0 / 4096.0; SIDE * SIDE], [SIDE; 2]), device);
    let ones = Tensor::<2>::from_data(TensorData::new(vec![1.0f32; SIDE * SIDE], [SIDE; 2]), device);
    let entries = to_host(fine.matmul(ones).narrow(0, 0, 1).narrow(1, 0, 1))?;
    let rounds = entries.first().is_some_and(|entry| (entry - SIDE as f64).abs() < 0.125);
    let mut known = rounding();
    known.retain(|other| other != device);
    if rounds {
        tracing::info!("products of densities are computed in parts there: its tensor cores round their factors");
        known.push(device.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: u32, shape: [usize; 2]) -> (Vec<f32>, Tensor<2>) {
        let values = super::super::probe::numbers(shape[0] * shape[1], seed);
        (values.clone(), Tensor::from_data(TensorData::new(values, shape), &Device::flex()))
    }

    /// To the nearest of 11 significant bits, as tensor cores read a number.
    fn rounded(x: f32) -> f32 {
        f32::from_bits((x.to_bits() + 0x0fff + ((x.to_bits() >> 13) & 1)) & !0x1fff)
    }

    fn rounding_product(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
        let coarse = |x: Tensor<2>| {
            let (shape, device) = (x.dims(), x.device());
            let values: Vec<f32> = x.try_into_vec_as::<f32>().unwrap().into_iter().map(rounded).collect();
            Tensor::<2>::from_data(TensorData::new(values, shape), &device)
        };
        coarse(a).matmul(coarse(b))
    }

    #[test]
    fn a_number_is_its_leading_bits_and_the_others() {
        let (values, x) = numbers(3, [40, 50]);
        let [leading, rest] = halves(x).map(|half| half.try_into_vec_as::<f32>().unwrap());
        for ((x, leading), rest) in values.iter().zip(&leading).zip(&rest) {
            assert_eq!((leading + rest, rounded(*leading)), (*x, *leading), "{x}");
            assert!(rest.abs() <= x.abs() / 2048.0, "{x}: {rest}");
        }
    }

    #[test]
    fn in_parts_a_product_that_rounds_is_nearly_as_good_as_one_that_does_not() {
        let (inner, columns) = (70, 72);
        let ((x, a), (y, b)) = (numbers(1, [80, inner]), numbers(2, [inner, columns]));
        let worst = |product: Tensor<2>| {
            let found = product.try_into_vec_as::<f32>().unwrap();
            let off = |(i, found): (usize, &f32)| {
                let terms =
                    (0..inner).map(|k| f64::from(x[i / columns * inner + k]) * f64::from(y[k * columns + i % columns]));
                let scale: f64 = terms.clone().map(f64::abs).sum();
                (f64::from(*found) - terms.sum::<f64>()).abs() / scale
            };
            found.iter().enumerate().map(off).fold(0.0, f64::max)
        };
        let exact = worst(a.clone().matmul(b.clone()));
        let coarse = worst(rounding_product(a.clone(), b.clone()));
        let parts = worst(in_parts(a, b, rounding_product));
        assert!(coarse > 1e-5, "what it is for: {coarse}");
        assert!(parts < 4.0 * exact.max(1e-7) && parts < 1e-6, "{parts}, in 32 bits {exact}");
    }

    #[test]
    fn a_device_that_does_not_round_is_not_taken_for_one_that_does() {
        learn(&Device::flex()).unwrap();
        assert!(rounding().is_empty());
    }
}
