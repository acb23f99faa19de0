//! Products by kernels that are named rather than chosen for their speed.

use burn::tensor::{DType, Device, Tensor};
use burn_cubecl::Cube;
use burn_cubecl::cubecl::prelude::Scalar;
use burn_cubecl::cubecl::tf32;
use burn_cubecl::kernel::matmul::init_matmul_output;
use burn_cubecl::tensor::CubeTensor;
use cubek::matmul::definition::{MatmulElems, MatmulGlobalElems, MatmulSetupError};
use cubek::matmul::launch::launch_ref;
use cubek::matmul::multi_level::Strategy;
use cubek::std::InputBinding;

/// a·b without tensor cores, on a device whose tensor cores would round 32-bit factors. `None`
/// elsewhere, and where gradients are wanted.
pub fn instead<const D: usize>(a: &Tensor<D>, b: &Tensor<D>) -> Option<Tensor<D>> {
    let (a, b) = (beneath(a)?, beneath(b)?);
    if !has_tf32(&a) {
        return None;
    }
    let parts = || {
        let [a, b] = [&a, &b].map(|x| Tensor::<D>::from_primitive::<Cube>(x.clone()));
        super::in_parts(a, b, Tensor::matmul)
    };
    Some(product(&a, &b).map_or_else(|_| parts(), Tensor::from_primitive::<Cube>))
}

/// Whether burn may hand 32-bit products of this device to tensor cores that round their factors.
pub fn rounds(device: &Device) -> bool {
    beneath(&Tensor::<1>::zeros([1], (device, DType::F32))).is_some_and(|tensor| has_tf32(&tensor))
}

fn has_tf32(tensor: &CubeTensor) -> bool {
    tensor.client.properties().supports_type(tf32::elem_type_native())
}

/// The 32-bit tensor of burn's own kernels behind `x`, if there is one.
fn beneath<const D: usize>(x: &Tensor<D>) -> Option<CubeTensor> {
    (x.dtype() == DType::F32).then(|| x.clone().try_into_primitive::<Cube>().ok()).flatten()
}

/// a·b, every unit with sums of its own; where that kernel does not take the shapes, by the one
/// that takes all.
///
/// # Errors
/// When neither can be launched.
pub fn product(a: &CubeTensor, b: &CubeTensor) -> Result<CubeTensor, MatmulSetupError> {
    let out = init_matmul_output(a, b, a.dtype);
    let float = f32::elem_type_native();
    let input = |x: &CubeTensor| InputBinding::new(x.clone().binding(), float);
    let by = |strategy: Strategy| {
        let mut formats = MatmulElems::from_globals(&MatmulGlobalElems { lhs: float, rhs: float, out: float });
        launch_ref(&strategy.into(), &a.client, input(a), input(b), out.clone().binding(), &mut formats)
    };
    by(Strategy::SimpleUnit(Default::default())).or_else(|_| by(Strategy::Naive))?;
    Ok(out)
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn::tensor::TensorData;

    use super::*;
    use crate::device::{DeviceChoice, choose};

    /// The same numbers on both devices.
    fn pair<const D: usize>(devices: [&Device; 2], salt: usize, shape: [usize; D]) -> [Tensor<D>; 2] {
        let values: Vec<f32> =
            (0..shape.iter().product()).map(|i: usize| ((i * 7 + salt * 31) as f32 * 0.618).sin()).collect();
        devices.map(|device| Tensor::from_data(TensorData::new(values.clone(), shape), device))
    }

    fn check<const D: usize>(what: &str, a: [Tensor<D>; 2], b: [Tensor<D>; 2]) {
        let ([a, plain_a], [b, plain_b]) = (a, b);
        assert!(instead(&a, &b).is_none(), "this device rounds nothing");
        let named = product(&beneath(&a).unwrap(), &beneath(&b).unwrap()).unwrap();
        let found: Vec<f32> = Tensor::<D>::from_primitive::<Cube>(named).try_into_vec_as().unwrap();
        let plain: Vec<f32> = plain_a.matmul(plain_b).try_into_vec_as().unwrap();
        assert_eq!(found.len(), plain.len(), "{what}");
        let size = plain.iter().fold(1.0f32, |most, v| most.max(v.abs()));
        for (i, (found, plain)) in found.iter().zip(&plain).enumerate() {
            assert!((found - plain).abs() <= 2e-6 * size, "{what}: {found} beside {plain} at {i}");
        }
    }

    #[test]
    fn named_kernels_compute_what_the_cpu_does_whatever_the_shapes() {
        let Ok(chosen) = choose(DeviceChoice::Wgpu(None)) else {
            println!("skipped: no graphics adapter here");
            return;
        };
        assert!(!rounds(&chosen.device) && !rounds(&Device::flex()), "no graphics API has TF32");
        let devices = [&chosen.device, &Device::flex()];
        for (m, k, n) in [(1, 48, 128), (80, 70, 72), (300, 128, 10), (7, 512, 3), (5, 1, 9)] {
            let (a, b) = (pair(devices, 1, [m, k]), pair(devices, 2, [k, n]));
            check(&format!("{m}×{k}×{n}"), a.clone(), b);
            // Weights come transposed.
            check(&format!("{m}×{k}×{n}, b transposed"), a, pair(devices, 3, [n, k]).map(Tensor::transpose));
        }
        // Heads of a few images: keys transposed, and a narrow view.
        let (queries, keys) = (pair(devices, 4, [2, 3, 9, 64]), pair(devices, 5, [2, 3, 11, 64]));
        check("attention", queries, keys.map(|keys| keys.swap_dims(2, 3)));
        let wide = pair(devices, 6, [2, 9, 5, 64]).map(|x| x.narrow(1, 3, 3));
        check("a narrow view", pair(devices, 7, [2, 3, 4, 5]), wide);
    }
}
