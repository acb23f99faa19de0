//! Every kernel beside the operations of burn it stands for, which the CPU computes here.

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor, TensorData};

use super::*;
use crate::device::{DeviceChoice, choose};

/// The first graphics device that is software, where there is one.
fn software() -> Option<Device> {
    let chosen =
        (0..4).filter_map(|n| choose(DeviceChoice::Wgpu(Some(n))).ok()).find(|chosen| chosen.report.used.software);
    if chosen.is_none() {
        println!("skipped: no software graphics device here");
    }
    chosen.map(|chosen| chosen.device)
}

/// Numbers in ±1 that follow from their places and `salt`, the same on both devices: here, and on the CPU.
fn pair<const D: usize>(device: &Device, salt: usize, shape: [usize; D]) -> [Tensor<D>; 2] {
    let values: Vec<f32> =
        (0..shape.iter().product()).map(|i: usize| ((i * 7 + salt * 31) as f32 * 0.618).sin()).collect();
    [device, &Device::flex()].map(|device| Tensor::from_data(TensorData::new(values.clone(), shape), device))
}

fn host<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

/// Within 1e-5 of the largest.
fn assert_same<const D: usize>(what: &str, ours: Tensor<D>, plain: Tensor<D>) {
    assert_eq!(ours.dims(), plain.dims(), "{what}");
    let (ours, plain) = (host(ours), host(plain));
    let size = plain.iter().fold(1.0f32, |most, v| most.max(v.abs()));
    for (i, (a, b)) in ours.iter().zip(&plain).enumerate() {
        assert!((a - b).abs() <= 1e-5 * size, "{what}: {a} beside {b} at {i}");
    }
}

#[test]
fn linear_maps_and_what_becomes_of_them() {
    let Some(device) = software() else { return };
    // Numbers of rows around those of a block, and widths that no kernel takes (burn's operations do).
    for (n, m, inner, columns) in
        [(1, 1, 48, 128), (2, 4, 128, 96), (1, 9, 64, 36), (3, 43, 512, 128), (1, 17, 4, 4), (2, 3, 6, 8), (2, 3, 8, 6)]
    {
        let x = pair(&device, 1, [n, m, inner]);
        let weight = pair(&device, 2, [columns, inner]);
        let bias = pair(&device, 3, [columns]);
        let (for_each, for_all) = (pair(&device, 4, [n, m, columns]), pair(&device, 5, [1, m, columns]));
        let thens = |i: usize| [Then::Stays, Then::Gelu, Then::Added(&for_each[i]), Then::Added(&for_all[i])];
        let maps = |i: usize| {
            let map = |then| linear(x[i].clone(), in_order(weight[i].clone()), bias[i].clone(), then);
            thens(i).map(map)
        };
        for (k, (ours, plain)) in maps(0).into_iter().zip(maps(1)).enumerate() {
            assert_same(&format!("{n}×{m}×{inner} to {columns}, then {k}"), ours, plain);
        }
        assert_same("the weight stays what it was", in_order(weight[0].clone()), weight[1].clone());
    }
}

#[test]
fn layer_norms() {
    let Some(device) = software() else { return };
    for (n, m, c) in [(1, 1, 64), (3, 5, 128), (1, 70, 12), (2, 2, 7)] {
        // Far from zero: the variance is that of what is left of the mean.
        let x = pair(&device, 1, [n, m, c]).map(|x| x + 20.0);
        let (weight, bias) = (pair(&device, 2, [c]), pair(&device, 3, [c]));
        let norm = |i: usize| layer_norm(x[i].clone(), weight[i].clone(), bias[i].clone(), 1e-5);
        assert_same(&format!("{n}×{m}×{c}"), norm(0), norm(1));
    }
}

/// Causal attention by burn's operations, [N, M, C].
fn plain_attention(qkv: &Tensor<3>, heads: usize, scale: f64) -> Tensor<3> {
    let [n, m, c] = qkv.dims();
    let parts = qkv.clone().reshape([n, m, 3 * heads, c / 3 / heads]).swap_dims(1, 2);
    let part = |i: usize| parts.clone().narrow(1, i * heads, heads);
    let mask: Vec<f32> = (0..m * m).map(|i| if i % m <= i / m { 0.0 } else { f32::NEG_INFINITY }).collect();
    let mask = Tensor::<4>::from_data(TensorData::new(mask, [1, 1, m, m]), &qkv.device());
    let read = softmax(part(0).matmul(part(1).swap_dims(2, 3)) * scale + mask, 3).matmul(part(2));
    read.swap_dims(1, 2).reshape([n, m, c / 3])
}

#[test]
fn attention_at_once_and_in_passes() {
    let Some(device) = software() else { return };
    let (n, tokens, heads, head) = (2, 13, 3, 8);
    // Scores up to 30: weights relative to the largest one, not to zero.
    let [qkv, plain] = pair(&device, 1, [n, tokens, 3 * heads * head]).map(|x| x * 4.0);
    let expected = plain_attention(&plain, heads, 0.3);
    assert_same("at once", attention(&qkv, heads, None, 0.3).unwrap(), expected.clone());
    let [keys, values] = [2, 3].map(|salt| pair(&device, salt, [n, heads, tokens, head])[0].clone());
    let passes = [0..1, 1..6, 4..6, 6..13].map(|pass| {
        let past = Past { keys: &keys, values: &values, first: pass.start };
        let read = attention(&qkv.clone().narrow(1, pass.start, pass.len()), heads, Some(&past), 0.3).unwrap();
        assert_same(&format!("{pass:?}"), read, expected.clone().narrow(1, pass.start, pass.len()));
    });
    assert_eq!(passes.len(), 4);
    let kept = plain.reshape([n, tokens, 3 * heads, head]).swap_dims(1, 2);
    assert_same("keys", keys, kept.clone().narrow(1, heads, heads));
    assert_same("values", values, kept.narrow(1, 2 * heads, heads));
    assert!(attention(&pair(&device, 1, [1, 2, 18])[0], 1, None, 1.0).is_none(), "heads of six numbers are burn's");
}

#[test]
fn tokens_are_moved_in_place() {
    let Some(device) = software() else { return };
    let (n, tokens, p, first, m) = (2, 7, 8, 3, 4);
    let [z, plain_z] = pair(&device, 1, [n, tokens, p]);
    for (width, bounds) in [(2 * p, None), (p, None), (2 * p, Some(Bounds { log_scale: 0.5, value: 0.7 }))] {
        let [predicted, plain] = pair(&device, 2, [n, m, width]);
        let [x, before] = pair(&device, 3, [n, tokens, p]);
        let changes = advance(&predicted, &z, &x, first, bounds).unwrap();
        let a = (width > p).then(|| plain.clone().narrow(2, 0, p));
        let a = a.map(|a| bounds.map_or(a.clone(), |by| a.clamp(-by.log_scale, by.log_scale)));
        let z = plain_z.clone().narrow(1, first, m);
        let next = a.map_or(z.clone(), |a| z * a.exp()) + plain.narrow(2, width - p, p);
        let next = bounds.map_or(next.clone(), |by| next.clamp(-by.value, by.value));
        let moved = (next.clone() - before.clone().narrow(1, first, m)).abs().max_dim(2).reshape([n, m]);
        assert_same("by how much", changes, moved);
        assert_same("to where", x, before.slice_assign([0..n, first..first + m, 0..p], next));
    }
}

#[test]
fn a_nan_moves_by_nan_and_stays() {
    let Some(device) = software() else { return };
    let mut values = vec![0.25f32; 3 * 16];
    values[16 + 13] = f32::NAN;
    values[2 * 16 + 2] = f32::INFINITY;
    let predicted = Tensor::<3>::from_data(TensorData::new(values, [1, 3, 16]), &device);
    let [z, x] = [1, 2].map(|salt| pair(&device, salt, [1, 3, 8])[0].clone());
    let bounds = Bounds { log_scale: 60.0, value: 1e6 };
    let changes = host(advance(&predicted, &z, &x, 0, Some(bounds)).unwrap());
    assert!(changes[0].is_finite() && changes[1].is_nan() && changes[2].is_finite(), "{changes:?}");
    let x = host(x);
    assert_eq!(x.iter().position(|v| v.is_nan()), Some(8 + 5));
    assert!(x.iter().all(|v| v.is_nan() || v.abs() <= 1e6));
}

#[test]
fn more_units_than_one_dimension_of_a_launch_takes() {
    let Some(device) = software() else { return };
    // 65,535 cubes of eight units are 524,280; as many of sixteen rows 1,048,560.
    let x = pair(&device, 1, [1, 600_000, 4]);
    let (weight, bias) = (pair(&device, 2, [4]), pair(&device, 3, [4]));
    let norm = |i: usize| layer_norm(x[i].clone(), weight[i].clone(), bias[i].clone(), 1e-2);
    assert_same("norm", norm(0), norm(1));
    let x = pair(&device, 4, [1, 1_050_000, 4]);
    let weight = pair(&device, 5, [4, 4]);
    let map = |i: usize| linear(x[i].clone(), in_order(weight[i].clone()), bias[i].clone(), Then::Stays);
    assert_same("map", map(0), map(1));
    // A head for each of 150,000 × 4 tokens that look at four.
    let [qkv, plain] = pair(&device, 6, [150_000, 4, 12]);
    let expected = plain_attention(&plain, 1, 1.0);
    assert_same("attention", attention(&qkv, 1, None, 1.0).unwrap(), expected.clone());
    let [keys, values] = [7, 8].map(|salt| pair(&device, salt, [150_000, 1, 4, 4])[0].clone());
    let past = Past { keys: &keys, values: &values, first: 0 };
    assert_same("with a past", attention(&qkv, 1, Some(&past), 1.0).unwrap(), expected);
}

#[test]
fn what_is_not_in_order_is_not_written_in_place() {
    let Some(device) = software() else { return };
    let [z, predicted, x] = [1, 2, 3].map(|salt| pair(&device, salt, [4, 4, 4])[0].clone());
    assert!(advance(&predicted, &z, &x.clone().swap_dims(0, 1), 0, None).is_none());
    assert!(advance(&predicted, &z, &x, 0, None).is_some());
}
