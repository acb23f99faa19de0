//! Reverse pass against differences, and the same bits whatever the batch, the threads and the way
//! back.

use super::*;
use crate::data::ImageShape;
use crate::flow::sampling::{Guess, Guided};
use crate::flow::weights::HostTensor;

/// Numbers in [-1, 1) from a seed.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    }
}

fn tiny(volume_preserving: bool) -> TarFlowConfig {
    let shape = ImageShape { channels: 1, height: 6, width: 6 };
    TarFlowConfig {
        shape,
        classes: 3,
        patch: 2,
        channels: 64,
        blocks: 2,
        layers: 2,
        volume_preserving,
        shared_map: false,
    }
}

/// Weights at which every path matters.
fn filled(config: &TarFlowConfig) -> Weights {
    let mut next = uniform(7);
    let mut weights = parameters::named(config, &vec![0.0; config.blocks * parameters::block_len(config)]);
    for (name, tensor) in &mut weights.0 {
        let inputs = *tensor.shape.last().unwrap() as f64;
        let (base, scale) = match name.rsplit_once('.').unwrap() {
            (rest, "weight") if rest.ends_with("norm") => (1.0, 0.2),
            // Small log-scales: the inverse of a map drawn at random grows from token to token.
            (rest, "weight") if rest.ends_with("proj_out") => (0.0, 0.3 / inputs.sqrt()),
            (_, "weight") => (0.0, 1.5 / inputs.sqrt()),
            _ => (0.0, 0.3),
        };
        tensor.values.fill_with(|| (base + scale * next()) as f32);
    }
    weights
}

fn model<T: Real>(config: &TarFlowConfig) -> CpuTarFlow<T> {
    CpuTarFlow::new(config, filled(config)).unwrap()
}

fn images(config: &TarFlowConfig, count: usize) -> (Vec<f64>, Vec<Condition>) {
    let mut next = uniform(3);
    let x = (0..count * config.shape.dims()).map(|_| f64::from(next() as f32)).collect();
    let conditions = (0..count).map(|i| (i % 4 < config.classes).then_some(i % 4)).collect();
    (x, conditions)
}

fn loss(config: &TarFlowConfig, weights: &Weights, x: &[f64], conditions: &[Condition], of: &[f64]) -> f64 {
    let encoded = CpuTarFlow::<f64>::new(config, weights.clone()).unwrap().encode(x, conditions).unwrap();
    let images = encoded.z.chunks(config.shape.dims()).zip(encoded.log_det.chunks(config.tokens()));
    let each = images.map(|(z, log_det)| z.iter().map(|z| 0.5 * z * z).sum::<f64>() - log_det.iter().sum::<f64>());
    each.zip(of).map(|(loss, weight)| loss * weight).sum()
}

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs())), "{what}: {a} is not {b}");
}

#[test]
fn parameter_gradients_are_the_slopes_of_the_loss() {
    for volume_preserving in [false, true] {
        let config = tiny(volume_preserving);
        let (mut weights, (x, conditions)) = (filled(&config), images(&config, 4));
        let of = [0.7, 1.1, 0.4, 0.9];
        let found = model::<f64>(&config).backward(&x, &conditions, &of, 2).unwrap();
        let names: Vec<String> = weights.0.keys().cloned().collect();
        assert_eq!(names, found.weights.0.keys().cloned().collect::<Vec<_>>());
        let mut next = uniform(11);
        let step = 1.0 / 8192.0;
        for name in names {
            let before = weights.0[&name].clone();
            let direction: Vec<f64> = before.values.iter().map(|_| step * next()).collect();
            // The points the weights can be at: rounded to f32.
            let moved = |by: f64| -> HostTensor {
                let values = before.values.iter().zip(&direction).map(|(v, d)| (f64::from(*v) + by * d) as f32);
                HostTensor::new(before.shape.clone(), values.collect())
            };
            let mut slope = |by: f64| {
                let (ahead, behind) = (moved(by), moved(-by));
                let terms = found.weights.0[&name].values.iter().zip(ahead.values.iter().zip(&behind.values));
                let along: f64 = terms.map(|(g, (a, b))| f64::from(*g) * (f64::from(*a) - f64::from(*b))).sum();
                let mut at = |tensor| {
                    weights.0.insert(name.clone(), tensor);
                    loss(&config, &weights, &x, &conditions, &of)
                };
                (at(ahead) - at(behind) - along) / (2.0 * by * step)
            };
            // The error of a central difference falls with the square of the step.
            let (wide, narrow) = (slope(2.0), slope(1.0));
            close((4.0 * narrow - wide) / 3.0, 0.0, 1e-5, &name);
            weights.0.insert(name, before);
        }
    }
}

#[test]
fn input_gradients_are_slopes_too() {
    for volume_preserving in [false, true] {
        let config = tiny(volume_preserving);
        let (x, conditions) = images(&config, 4);
        let flow = model::<f64>(&config);
        let mut next = uniform(5);
        let weight: Vec<f64> = (0..config.shape.dims()).map(|_| 1.0 + 0.5 * next()).collect();
        let (gradient, encoded) = flow.gradient(&x, &conditions, &weight).unwrap();
        assert_eq!(encoded, flow.encode(&x, &conditions).unwrap());
        let density = |x: &[f64]| -> f64 {
            let Encoded { z, log_det } = flow.encode(x, &conditions).unwrap();
            log_det.iter().sum::<f64>() - z.iter().zip(weight.iter().cycle()).map(|(z, w)| 0.5 * w * z * z).sum::<f64>()
        };
        let of = [1.0; 4];
        let trained = flow.backward(&x, &conditions, &of, 3).unwrap();
        assert_eq!(trained.z, encoded.z);
        for at in (0..x.len()).step_by(5) {
            let moved = |by: f64| [&x[..at], &[x[at] + by], &x[at + 1..]].concat();
            let h = 1e-4;
            close((density(&moved(h)) - density(&moved(-h))) / (2.0 * h), gradient[at], 1e-6, "∇ log p");
            let slope = |x: &[f64]| loss(&config, &filled(&config), x, &conditions, &of);
            if at % 15 == 0 {
                close((slope(&moved(h)) - slope(&moved(-h))) / (2.0 * h), trained.input[at], 1e-6, "∇ loss");
            }
        }
    }
}

#[test]
fn blocks_computed_again_on_the_way_back_give_the_same_gradients() {
    let config = TarFlowConfig { blocks: 3, ..tiny(false) };
    let flow = model::<f32>(&config);
    let (x, conditions) = images(&config, 3);
    let classes = flow.classes(x.len(), &conditions).unwrap();
    let gradients = |tapes: usize| {
        let mut reverse = Reverse::with_tapes(&config, 3, tapes);
        let (mut slope, mut flat) = (vec![1.0; x.len()], vec![0.0; 3 * parameters::block_len(&config)]);
        reverse.forward(&flow.network, &x, &classes, &mut [0.0; 3 * 9]);
        reverse.backward(&flow.network, &mut slope, &[1.0; 3], &classes, Some(&mut flat));
        (slope, flat)
    };
    assert!(gradients(1) == gradients(3));
}

#[test]
fn images_come_out_the_same_in_any_batch_and_on_any_number_of_threads() {
    let config = tiny(false);
    let flow = model::<f32>(&config);
    let (x, conditions) = images(&config, 64);
    let (dims, tokens) = (config.shape.dims(), config.tokens());
    let guidance = Guidance { scale: 1.5, what: Guided::Ab, annealed: true, attention_temperature: 0.8 };
    let invert = |x: &[f64], conditions: &[Condition]| {
        flow.invert(1, x, conditions, Strategy::Loop, Some(&guidance), &mut |_| Ok(())).unwrap().x
    };
    let (all, back) = (flow.encode(&x, &conditions).unwrap(), invert(&x, &conditions));
    for size in [1, 2, 3, 7, 33] {
        let batches = x.chunks(size * dims).zip(conditions.chunks(size)).take(3);
        for (batch, (x, conditions)) in batches.enumerate() {
            let part = flow.encode(x, conditions).unwrap();
            let at = batch * size;
            assert_eq!(part.z, all.z[at * dims..][..x.len()], "batches of {size}");
            assert_eq!(part.log_det, all.log_det[at * tokens..][..part.log_det.len()]);
            assert_eq!(invert(x, conditions), back[at * dims..][..x.len()]);
        }
    }
    let of = vec![1.0 / 64.0; 64];
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (flow.encode(&x, &conditions).unwrap(), flow.backward(&x, &conditions, &of, 4).unwrap()))
    };
    let ((one, one_back), (three, three_back)) = (on(1), on(3));
    assert!(one == all && three == all && one_back.weights == three_back.weights && one_back.input == three_back.input);
}

/// One block forward.
fn one_block(flow: &CpuTarFlow<f32>, block: usize, x: &[f64], conditions: &[Condition]) -> Vec<f64> {
    // As the only block of a flow it would not be flipped: only even blocks.
    assert_eq!(block, 0);
    let config = TarFlowConfig { blocks: 1, ..flow.network.config };
    model::<f32>(&config).encode(x, conditions).unwrap().z
}

#[test]
fn jacobi_iterations_run_to_the_end_are_the_loop_bit_for_bit() {
    let config = tiny(false);
    let flow = model::<f32>(&config);
    let (z, conditions) = images(&config, 5);
    let last = config.tokens() - 1;
    let guidance = Guidance { scale: 0.7, what: Guided::A, annealed: false, attention_temperature: 1.3 };
    for (block, guidance) in [(0, None), (1, Some(&guidance))] {
        let run = |strategy| flow.invert(block, &z, &conditions, strategy, guidance, &mut |_| Ok(())).unwrap();
        let exact = run(Strategy::Loop);
        assert_eq!((exact.rounds, exact.residual), (last, 0.0));
        for (modules, guess) in [(1, Guess::Z), (3, Guess::Zero), (last, Guess::Z)] {
            let found = run(Strategy::Jacobi { modules, guess, tolerance: 0.0 });
            assert_eq!(found.x, exact.x, "{modules} modules");
            assert!(found.rounds <= last && found.residual == 0.0);
        }
        let early = run(Strategy::Jacobi { modules: 1, guess: Guess::Z, tolerance: 0.05 });
        assert!(early.rounds < last && early.residual > 0.0 && early.residual <= 0.05);
        if guidance.is_none() {
            let there = one_block(&flow, block, &exact.x, &conditions);
            let worst = there.iter().zip(&z).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 2e-6, "{worst}");
        }
    }
}

/// A start so far off that the first rounds overflow for all tokens but those already exact.
#[test]
fn overflow_of_unfinished_tokens_reaches_no_finished_one() {
    let config = tiny(false);
    let mut weights = filled(&config);
    let outputs = weights.0.get_mut("blocks.0.proj_out.bias").unwrap();
    outputs.values[..config.token_dims()].fill(-80.0);
    let flow = CpuTarFlow::<f32>::new(&config, weights).unwrap();
    let (mut z, conditions) = images(&config, 3);
    for image in z.chunks_mut(config.shape.dims()) {
        image[config.token_dims()..].iter_mut().for_each(|z| *z *= 1e34);
    }
    let run = |strategy| flow.invert(0, &z, &conditions, strategy, None, &mut |_| Ok(())).unwrap();
    let exact = run(Strategy::Loop);
    assert!(exact.x.iter().all(|x| x.is_finite()));
    assert_eq!(run(Strategy::Jacobi { modules: 1, guess: Guess::Z, tolerance: 1e-6 }).x, exact.x);
}

#[test]
fn wrong_calls_are_told() {
    let config = tiny(false);
    let flow = model::<f32>(&config);
    let (x, _) = images(&config, 2);
    assert!(flow.encode(&x, &[None]).is_err() && flow.encode(&x, &[None, Some(3)]).is_err());
    let modules = Strategy::Jacobi { modules: config.tokens(), guess: Guess::Z, tolerance: 0.0 };
    assert!(flow.invert(0, &x, &[None; 2], modules, None, &mut |_| Ok(())).is_err());
    assert!(flow.invert(2, &x, &[None; 2], Strategy::Loop, None, &mut |_| Ok(())).is_err());
    let mut stop = |_| Err(Error::Cancelled);
    assert!(matches!(flow.invert(0, &x, &[None; 2], Strategy::Loop, None, &mut stop), Err(Error::Cancelled)));
    assert!(flow.backward(&x, &[None; 2], &[1.0], 1).is_err() && flow.gradient(&x, &[None; 2], &[1.0]).is_err());
    let mut other = model::<f32>(&config);
    assert!(other.set_weights(Weights::default()).is_err());
    other.set_weights(filled(&config)).unwrap();
    let missing = CpuTarFlow::<f32>::new(&config, Weights::default()).unwrap_err();
    assert!(missing.contains("blocks.0.pos_embed"), "{missing}");
    assert!(flow.encode(&[], &[]).unwrap().z.is_empty());
}

/// Every wait for all groups wakes threads: a flow whose tokens take microseconds has one a block.
#[test]
fn groups_of_a_small_flow_wait_for_each_other_once_a_block() {
    let config = tiny(false);
    let flow = model::<f32>(&config);
    for count in [1, 5] {
        let (x, conditions) = images(&config, count);
        let mut told = Vec::new();
        let mut tick = |done| {
            told.push(done);
            Ok(())
        };
        let found = flow.invert(0, &x, &conditions, Strategy::Loop, None, &mut tick).unwrap();
        assert_eq!((told, found.rounds), (vec![config.tokens()], config.tokens() - 1));
    }
}
