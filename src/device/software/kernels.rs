//! Linear maps and norms: kernels, and how they are launched.

use burn::tensor::{DType, Tensor};
use burn_cubecl::Cube;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_dtype;
use burn_cubecl::tensor::CubeTensor;

use super::Then;
use crate::device::table;

/// Four numbers side by side, read and written at once.
pub type Four = Vector<f32, Const<4>>;

/// Units of a cube: the lanes of one vector register of eight numbers. More would leave cores idle where rows are few.
pub const LANES: u32 = 8;
/// Rows whose sums a unit keeps at once, of few rows and of many.
const FEW: usize = 8;
const MANY: usize = 16;

/// The tensor beneath, its numbers in order, where these kernels are for it.
pub fn beneath<const D: usize>(x: &Tensor<D>) -> Option<CubeTensor> {
    let suits = x.dtype() == DType::F32 && table::ask_of(&x.device(), |line| line.software)?;
    let tensor = suits.then(|| x.clone().try_into_primitive::<Cube>().ok()).flatten()?;
    Some(into_contiguous(tensor))
}

/// An array like another one, of another shape; nothing is written yet.
pub fn empty<const D: usize>(like: &CubeTensor, shape: [usize; D]) -> CubeTensor {
    empty_device_dtype(like.client.clone(), like.device.clone(), shape.into(), like.dtype)
}

/// The tensor beneath, to be written in place: none where its numbers are not in order, for then a copy would be written.
pub fn in_place<const D: usize>(x: &Tensor<D>) -> Option<CubeTensor> {
    let tensor = beneath(x)?;
    x.clone().try_into_primitive::<Cube>().is_ok_and(|x| x.is_contiguous()).then_some(tensor)
}

/// Cubes for so many units, in as many dimensions as it takes.
pub fn cubes(like: &CubeTensor, units: usize) -> CubeCount {
    cubecl::calculate_cube_count_elemwise(&like.client, units, CubeDim::new_1d(LANES))
}

/// [`super::in_order`].
pub fn in_order(weight: &Tensor<2>) -> Option<Tensor<2>> {
    let turned = beneath(&weight.clone().transpose())?;
    Some(Tensor::<2>::from_primitive::<Cube>(turned).transpose())
}

/// [`super::linear`].
pub fn linear(x: &Tensor<3>, weight: &Tensor<2>, bias: &Tensor<1>, then: Then<'_>) -> Option<Tensor<3>> {
    let ([n, m, inner], [columns, _]) = (x.dims(), weight.dims());
    if inner % 4 != 0 || columns % 4 != 0 {
        return None;
    }
    let (x, weight, bias) = (beneath(x)?, beneath(&weight.clone().transpose())?, beneath(bias)?);
    let (plus, period) = match then {
        Then::Added(to) => (beneath(to)?, to.dims()[0] * m),
        _ => (bias.clone(), 1),
    };
    let block = match n * m {
        1 => 1,
        2..=FEW => FEW,
        _ => MANY,
    };
    // No dimension of a launch takes more cubes than that.
    let down = u32::from(u16::try_from((n * m).div_ceil(block)).ok()?);
    let (client, out) = (x.client.clone(), empty(&x, [n, m, columns]));
    let across = (columns / 4).div_ceil(LANES as usize) as u32;
    product::launch(
        &client,
        CubeCount::Static(across, down, 1),
        CubeDim::new_1d(LANES),
        x.into_buffer_arg(),
        weight.into_buffer_arg(),
        bias.into_buffer_arg(),
        plus.into_buffer_arg(),
        out.clone().into_buffer_arg(),
        period as u32,
        inner / 4,
        columns / 4,
        block,
        matches!(then, Then::Added(_)),
        matches!(then, Then::Gelu),
    );
    Some(Tensor::from_primitive::<Cube>(out))
}

/// A unit computes four columns of `block` rows. What lies beyond the last row is read as zero and never written: launches are
/// checked.
#[cube(launch)]
fn product(
    x: &[Four],
    weight: &[Four],
    bias: &[Four],
    plus: &[Four],
    out: &mut [Four],
    period: u32,
    #[comptime] inner: usize,
    #[comptime] columns: usize,
    #[comptime] block: usize,
    #[comptime] added: bool,
    #[comptime] curved: bool,
) {
    let column = ABSOLUTE_POS_X as usize;
    let first = CUBE_POS_Y as usize * block;
    if column < columns {
        let mut sums = Array::<Four>::new(block);
        #[unroll]
        for r in 0..block {
            sums[r] = bias[column];
            if comptime!(added) {
                sums[r] += plus[(first + r) % period as usize * columns + column];
            }
        }
        for k in 0..inner {
            let w0 = weight[4 * k * columns + column];
            let w1 = weight[(4 * k + 1) * columns + column];
            let w2 = weight[(4 * k + 2) * columns + column];
            let w3 = weight[(4 * k + 3) * columns + column];
            #[unroll]
            for r in 0..block {
                let v = x[(first + r) * inner + k];
                let sum = fma(Four::new(v.extract(0usize)), w0, sums[r]);
                let sum = fma(Four::new(v.extract(1usize)), w1, sum);
                let sum = fma(Four::new(v.extract(2usize)), w2, sum);
                sums[r] = fma(Four::new(v.extract(3usize)), w3, sum);
            }
        }
        #[unroll]
        for r in 0..block {
            out[(first + r) * columns + column] = bend(sums[r], curved);
        }
    }
}

/// x Φ(x) = x (1 + erf(x/√2)) / 2 where `curved`, otherwise x.
#[cube]
fn bend(x: Four, #[comptime] curved: bool) -> Four {
    if comptime!(curved) {
        let half = x * Four::new(0.5f32);
        fma(half, (x * Four::new(comptime!(std::f32::consts::FRAC_1_SQRT_2))).erf(), half)
    } else {
        x
    }
}

/// [`super::layer_norm`].
pub fn layer_norm(x: &Tensor<3>, weight: &Tensor<1>, bias: &Tensor<1>, epsilon: f64) -> Option<Tensor<3>> {
    let [n, m, c] = x.dims();
    if c % 4 != 0 {
        return None;
    }
    let (x, weight, bias) = (beneath(x)?, beneath(weight)?, beneath(bias)?);
    let (client, out) = (x.client.clone(), empty(&x, [n, m, c]));
    normalise::launch(
        &client,
        cubes(&out, n * m),
        CubeDim::new_1d(LANES),
        x.into_buffer_arg(),
        weight.into_buffer_arg(),
        bias.into_buffer_arg(),
        out.clone().into_buffer_arg(),
        epsilon as f32,
        c / 4,
    );
    Some(Tensor::from_primitive::<Cube>(out))
}

/// A unit computes a row.
#[cube(launch)]
fn normalise(x: &[Four], weight: &[Four], bias: &[Four], out: &mut [Four], epsilon: f32, #[comptime] width: usize) {
    let first = ABSOLUTE_POS * width;
    if first < x.len() {
        let count = comptime!(4.0f32 * width as f32);
        let mut sum = Four::new(0.0f32);
        for i in 0..width {
            sum += x[first + i];
        }
        let mean = Four::new(total(sum) / count);
        let mut squares = Four::new(0.0f32);
        for i in 0..width {
            let off = x[first + i] - mean;
            squares = fma(off, off, squares);
        }
        let scale = Four::new(1.0f32 / (total(squares) / count + epsilon).sqrt());
        for i in 0..width {
            out[first + i] = fma((x[first + i] - mean) * scale, weight[i], bias[i]);
        }
    }
}

/// The sum of four.
#[cube]
pub fn total(v: Four) -> f32 {
    v.extract(0usize) + v.extract(1usize) + v.extract(2usize) + v.extract(3usize)
}
