//! Kernels beside plain sums in f64: odd sizes, NaN, and numbers too small for a leading bit.

use super::attention::{Attention, Cache, HEAD, Scratch};
use super::transformer::{Activations, Layer, LayerGradient, Room, Slopes, Span};
use super::{
    Buffer, Linear, LinearGradient, Norm, Normalised, Panels, Real, Threads, add_outer_products, multiply_all, rows,
};

/// Rows, inputs and outputs.
const SIZES: [[usize; 3]; 8] =
    [[1, 1, 1], [2, 3, 5], [7, 17, 33], [9, 31, 1], [65, 5, 47], [130, 64, 19], [3, 700, 520], [300, 29, 35]];
const THREADS: [Threads; 2] = [Threads::One, Threads::All];

/// Numbers between −1 and 1.
fn numbers<T: Real>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|i| T::of(((i * 7919 + seed * 104_729) % 2017) as f64 / 1008.0 - 1.0)).collect()
}

fn wide<T: Real>(numbers: &[T]) -> Vec<f64> {
    numbers.iter().map(|x| x.wide()).collect()
}

fn assert_near<T: Real>(found: &[T], expected: &[f64], bound: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found.wide() - expected).abs() <= bound * (1.0 + expected.abs()),
            "{what}, number {i}: {found:?} is not {expected}"
        );
    }
}

/// The sum of `count` products of numbers that two places name.
fn sums(count: usize, len: usize, product: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..count).map(|i| (0..len).map(|k| product(i, k)).sum()).collect()
}

/// y = 1 + W x + b, and both gradients.
fn linear_maps<T: Real>(rounding: f64) {
    for ([rows, inputs, outputs], threads) in SIZES.into_iter().flat_map(|size| THREADS.map(|threads| (size, threads)))
    {
        let what = format!("{rows} rows, {inputs} inputs, {outputs} outputs, {threads:?}");
        let (x, w, b) = (numbers::<T>(rows * inputs, 1), numbers::<T>(inputs * outputs, 2), numbers::<T>(outputs, 3));
        let slope = numbers::<T>(rows * outputs, 4);
        let linear = Linear::new(&w, &b);
        let apply = |x: &[T], threads| {
            let mut y = vec![T::ONE; x.len() / inputs * outputs];
            match threads {
                Threads::One => linear.apply_add(x, &mut y),
                Threads::All => {
                    let panels = Panels::new(&w, &b);
                    multiply_all(x, x.len() / inputs, |_| vec![(0, 0)], &panels, &mut y, true);
                }
            }
            y
        };
        let back = |slope: &[T]| {
            let mut into = vec![T::ZERO; slope.len() / outputs * inputs];
            linear.backward(slope, &mut into);
            into
        };
        let gradient = |slope: &[T]| {
            let (mut weight, mut bias) = (vec![T::ONE; w.len()], vec![T::ONE; outputs]);
            if threads == Threads::One {
                let mut both = LinearGradient { weight: &mut weight, bias: &mut bias };
                both.add(slope, &x, &mut Buffer::default());
            } else {
                add_outer_products((slope, outputs), (&x, inputs), rows, &[vec![(0, 0)]], &mut weight);
                rows::add_rows(slope, &mut bias);
            }
            (weight, bias)
        };
        let (x64, w64, b64, slope64) = (wide(&x), wide(&w), wide(&b), wide(&slope));
        let plain = sums(rows * outputs, inputs, |i, k| x64[i / outputs * inputs + k] * w64[i % outputs * inputs + k]);
        let plain: Vec<f64> = plain.iter().enumerate().map(|(i, sum)| 1.0 + b64[i % outputs] + sum).collect();
        let y = apply(&x, threads);
        assert_near(&y, &plain, rounding * (inputs + 2) as f64, &what);
        let plain =
            sums(rows * inputs, outputs, |i, k| slope64[i / inputs * outputs + k] * w64[k * inputs + i % inputs]);
        assert_near(&back(&slope), &plain, rounding * outputs as f64, &what);
        let plain = sums(w.len(), rows, |i, k| slope64[k * outputs + i / inputs] * x64[k * inputs + i % inputs]);
        let plain: Vec<f64> = plain.iter().map(|sum| 1.0 + sum).collect();
        assert_near(&gradient(&slope).0, &plain, rounding * (rows + 1) as f64, &what);

        // A row is the same whatever stands beside it, and what is no number stays in its row.
        let last = (rows - 1) * inputs;
        assert_eq!(apply(&x[last..], Threads::One), y[(rows - 1) * outputs..], "{what}");
        let mut broken = x.clone();
        broken[last + inputs / 2] = T::of(f64::NAN);
        let (lost, kept) = (apply(&broken, threads), (rows - 1) * outputs);
        assert!(lost[kept..].iter().all(|y| y.is_nan()) && lost[..kept] == y[..kept], "{what}");
        let mut broken = slope.clone();
        broken[outputs / 2] = T::of(f64::NAN);
        let ((lost, bias), (whole, _)) = (gradient(&broken), gradient(&slope));
        for (output, (lost, whole)) in lost.chunks(inputs).zip(whole.chunks(inputs)).enumerate() {
            let hit = output == outputs / 2;
            assert!(if hit { lost.iter().all(|x| x.is_nan()) } else { lost == whole }, "{what}: output {output}");
            assert_eq!(bias[output].is_nan(), hit, "{what}");
        }
    }
}

#[test]
fn linear_maps_of_odd_sizes_are_the_plain_sums_and_keep_what_is_no_number_in_its_row() {
    linear_maps::<f32>(f64::from(f32::EPSILON));
    linear_maps::<f64>(f64::EPSILON);
}

/// Multiples of the smallest number times whole numbers are summed without any rounding.
fn smallest<T: Real + PartialEq>(least: f64) {
    for [rows, inputs, outputs] in SIZES {
        let whole = |i: usize| (i % 5) as f64;
        let x: Vec<T> = (0..rows * inputs).map(|i| T::of(whole(i) * least)).collect();
        let w: Vec<T> = (0..inputs * outputs).map(|i| T::of(whole(i / 3))).collect();
        let mut y = vec![T::ZERO; rows * outputs];
        Linear::new(&w, &vec![T::ZERO; outputs]).apply(&x, &mut y);
        let sum = |i: usize, k: usize| whole(i / outputs * inputs + k) * whole((i % outputs * inputs + k) / 3);
        let plain: Vec<T> = sums(rows * outputs, inputs, sum).iter().map(|sum| T::of(sum * least)).collect();
        assert_eq!(y, plain);
    }
}

#[test]
fn the_smallest_numbers_are_not_taken_for_zero() {
    smallest::<f32>(f64::from(f32::from_bits(1)));
    smallest::<f64>(f64::from_bits(1));
}

fn norms<T: Real>(rounding: f64) {
    const EPSILON: f64 = 1e-5;
    for (channels, rows) in [(64, 3), (64, 5), (192, 9), (128, 301)] {
        let mut x = numbers::<T>(rows * channels, 5);
        // A row of the smallest numbers: only ε is left of its variance.
        x[channels..2 * channels].fill(T::of(f64::from(f32::from_bits(3))));
        let (gain, bias, slope) = (numbers::<T>(channels, 6), numbers::<T>(channels, 7), numbers::<T>(x.len(), 8));
        let norm = Norm::new(&gain, &bias, EPSILON);
        let of = |x: &[T], threads| {
            let (mut out, mut saved) = (vec![T::ZERO; x.len()], Normalised::new(channels, rows));
            norm.forward(x, &mut out, Some(saved.rows(rows)), threads);
            let mut again = vec![T::ZERO; x.len()];
            norm.again(saved.of(0..rows).0, &mut again);
            assert!(again.iter().zip(&out).all(|(again, out)| again == out || out.is_nan() && again.is_nan()));
            let mut back = vec![T::ZERO; x.len()];
            let [mut gain, mut bias] = [(); 2].map(|()| vec![T::ZERO; channels]);
            let gradient = [&mut gain[..], &mut bias[..]];
            match threads {
                Threads::One => norm.backward_rows(&slope, saved.of(0..rows), &mut back, gradient),
                Threads::All => norm.backward(&slope, &saved, &mut back, gradient),
            }
            (out, back)
        };
        let plain = x.chunks(channels).flat_map(|row| {
            let row = wide(row);
            let mean = row.iter().sum::<f64>() / channels as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / channels as f64;
            let one = |(x, (gain, bias)): (f64, (&T, &T))| {
                gain.wide() * (x - mean) / (variance + EPSILON).sqrt() + bias.wide()
            };
            row.into_iter().zip(gain.iter().zip(&bias)).map(one).collect::<Vec<f64>>()
        });
        let (out, back) = of(&x, Threads::All);
        assert_near(&out, &plain.collect::<Vec<f64>>(), 300.0 * rounding, &format!("{rows} rows of {channels}"));
        assert!(back.iter().all(|slope| !slope.is_nan()));
        assert_eq!(of(&x, Threads::One), (out.clone(), back.clone()));
        let mut broken = x.clone();
        broken[2 * channels] = T::of(f64::NAN);
        let lost = of(&broken, Threads::All);
        for (lost, whole) in [(lost.0, out), (lost.1, back)] {
            let own = 2 * channels..3 * channels;
            assert!(lost[own.clone()].iter().all(|x| x.is_nan()));
            assert!(lost[..own.start] == whole[..own.start] && lost[own.end..] == whole[own.end..]);
        }
    }
}

#[test]
fn normalisations_are_the_plain_ones_and_keep_what_is_no_number_in_its_row() {
    norms::<f32>(f64::from(f32::EPSILON));
    norms::<f64>(f64::EPSILON);
}

/// softmax(q kᵀ·scale) v of one image, by the formula.
fn plain_attention(of: Attention<f64>, qkv: &[f64]) -> Vec<f64> {
    let (width, mut out) = (of.heads * HEAD, vec![0.0; of.tokens * of.heads * HEAD]);
    let at = |token: usize, part: usize, head: usize, i: usize| qkv[(token * 3 + part) * width + head * HEAD + i];
    for (row, head) in (0..of.tokens).flat_map(|row| (0..of.heads).map(move |head| (row, head))) {
        let seen = if of.causal { row + 1 } else { of.tokens };
        let score =
            |token: usize| of.scale * (0..HEAD).map(|i| at(row, 0, head, i) * at(token, 1, head, i)).sum::<f64>();
        let weights: Vec<f64> = (0..seen).map(|token| score(token).exp()).collect();
        let total: f64 = weights.iter().sum();
        for i in 0..HEAD {
            let mixed: f64 = (0..seen).map(|token| weights[token] * at(token, 2, head, i)).sum();
            out[row * width + head * HEAD + i] = mixed / total;
        }
    }
    out
}

#[test]
fn attention_of_odd_lengths_is_the_formula_forward_and_back() {
    for (tokens, heads, causal) in [(1, 1, true), (3, 2, false), (9, 1, true), (17, 3, true), (33, 1, false)] {
        let narrow = Attention { first: 0, tokens, heads, scale: 0.125f32, causal };
        let wide_one = Attention { first: 0, tokens, heads, scale: 0.125, causal };
        let (size, images) = (tokens * heads * HEAD, 2);
        let (qkv, slope) = (numbers::<f64>(images * 3 * size, 9), numbers::<f64>(images * size, 10));
        let forward = |qkv: &[f64]| {
            let mut out = vec![0.0; images * size];
            wide_one.forward(&mut Cache::new(1, tokens), None, qkv, &mut out);
            out
        };
        let plain: Vec<f64> = qkv.chunks(3 * size).flat_map(|qkv| plain_attention(wide_one, qkv)).collect();
        let what = format!("{tokens} tokens, {heads} heads, causal {causal}");
        assert_near(&forward(&qkv), &plain, 1e-13, &what);
        let (qkv32, mut out) = (qkv.iter().map(|x| *x as f32).collect::<Vec<f32>>(), vec![0.0f32; images * size]);
        narrow.forward(&mut Cache::new(1, tokens), None, &qkv32, &mut out);
        assert_near(&out, &plain, 1e-5, &what);

        let back = |slope: &[f64]| {
            let mut into = vec![0.0; qkv.len()];
            wide_one.backward(&mut Scratch::new(tokens), &qkv, slope, &mut into);
            into
        };
        let gradient = back(&slope);
        let loss = |qkv: &[f64]| -> f64 { forward(qkv).iter().zip(&slope).map(|(y, slope)| y * slope).sum() };
        for i in (0..qkv.len()).step_by(1 + qkv.len() / 41) {
            let [low, high] = [-1e-5, 1e-5].map(|by| {
                let mut moved = qkv.clone();
                moved[i] += by;
                loss(&moved)
            });
            assert!(((high - low) / 2e-5 - gradient[i]).abs() < 1e-8, "{what}: slope {i}");
        }

        // What is no number reaches the tokens that look at it, and no image beside.
        let token = tokens / 2;
        let mut broken = qkv.clone();
        broken[(token * 3 + 1) * heads * HEAD] = f64::NAN;
        let first = if causal { token } else { 0 };
        for (row, (lost, whole)) in forward(&broken).chunks(heads * HEAD).zip(plain.chunks(heads * HEAD)).enumerate() {
            let hit = (first..tokens).contains(&row);
            assert!(
                if hit { lost[..HEAD].iter().all(|x| x.is_nan()) } else { lost.iter().all(|x| !x.is_nan()) },
                "{what}: {row}"
            );
            assert!(
                lost[HEAD..].iter().zip(&whole[HEAD..]).all(|(lost, whole)| (lost - whole).abs() < 1e-13),
                "{what}"
            );
        }
        let mut broken = slope.clone();
        broken[token * heads * HEAD] = f64::NAN;
        for (row, lost) in back(&broken).chunks(3 * heads * HEAD).enumerate() {
            let hit = row < if causal { token + 1 } else { tokens };
            // Values are only weighed: of their gradient one number is lost.
            assert_eq!(lost.iter().any(|x| x.is_nan()), hit, "{what}: slopes of {row}");
        }
    }
}

#[test]
fn the_peak_counts_what_it_added() {
    let (narrow, wide) = (super::multiply_adds::<f32>(1000, 1.0, 1.0), super::multiply_adds::<f64>(999, 0.5, 1.0));
    assert_eq!(narrow.0, narrow.1 / 2.0);
    // 1 + ½ + ¼ + …
    assert_eq!(wide.0, 2.0 * wide.1 / 2.0 / 999.0);
}

#[test]
fn a_layer_is_the_same_by_one_thread_and_by_all_of_them() {
    const WIDTHS: [usize; 2] = [64, 130];
    // No image; units of many images and of few; images longer than a block.
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for (images, tokens, kept) in
        [(0, 5, false), (1, 1, true), (31, 33, true), (7, 17, false), (9, 100, true), (3, 300, true)]
    {
        let arrays = Layer::<f32>::shapes(WIDTHS).map(|shape| numbers::<f32>(shape.iter().product(), shape.len()));
        let mut layer = Layer::default();
        layer.set(arrays.each_ref().map(Vec::as_slice), 1e-5, Threads::All);
        let rows = images * tokens;
        let (x, slope) = (numbers::<f32>(rows * WIDTHS[0], 11), numbers::<f32>(rows * WIDTHS[0], 12));
        // The last with room that was made where there was one thread.
        let [one, all, few] =
            [(Threads::One, false), (Threads::All, false), (Threads::All, true)].map(|(threads, few)| {
                let span = Span { images, first: 0, tokens, slots: None, causal: false, temperature: 1.3, threads };
                let (mut cache, mut room) = (Cache::new(1, tokens), Room::new(WIDTHS, rows, kept));
                let mut activations = Activations::new(WIDTHS, rows, kept);
                let (mut out, mut back) = (x.clone(), slope.clone());
                layer.forward(&mut out, span, &mut cache, &mut activations, &mut room);
                let mut sums = arrays.each_ref().map(|array| vec![0.0; array.len()]);
                let gradient = LayerGradient::from(sums.each_mut().map(Vec::as_mut_slice));
                let room_for = || Slopes::new(WIDTHS, tokens, threads);
                let mut slopes = if few { single.install(room_for) } else { room_for() };
                layer.backward(&mut back, span, &activations, &mut slopes, kept.then_some(gradient));
                (out, back, sums)
            });
        assert!((one.0 != x || images == 0) && (one.1 != slope) == kept && one.0.iter().all(|x| x.is_finite()));
        assert!(one.2.iter().all(|sums| sums.iter().any(|x| *x != 0.0) == kept && sums.iter().all(|x| x.is_finite())));
        assert!(one == all && one == few, "{images} images of {tokens} tokens");
    }
}
