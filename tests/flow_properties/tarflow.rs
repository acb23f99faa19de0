//! The property suite on TarFlows, and what only they promise.

use bayescope::flow::sampling::{Guess, Strategy};
use bayescope::flow::tarflow::cpu::CpuTarFlow;
use bayescope::flow::tarflow::engine::Engine;
use bayescope::flow::tarflow::{Condition, TarFlow, TarFlowConfig, TarFlowOracle, TensorTarFlow};
use bayescope::flow::{BlockInversion, Flow, Precision};
use bayescope::units::{Seed, Tau};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use nalgebra::DMatrix;
use rand_distr::{Distribution, StandardNormal};

use crate::common::fill::uniform;
use crate::common::{max_abs, tiny};
use crate::jacobian::log_abs_det;
use crate::suite::{Limits, check_any};

/// Conditional, unconditional, volume-preserving, several image shapes.
fn configs() -> Vec<TarFlowConfig> {
    let plain = tiny::tarflow_config(1, 4, 2, 3);
    vec![
        plain,
        TarFlowConfig { volume_preserving: true, ..plain },
        tiny::tarflow_config(3, 4, 1, 2),
        tiny::tarflow_config(1, 4, 2, 0),
    ]
}

#[test]
fn tarflows_of_several_shapes() {
    for config in configs() {
        // World space is f32: its rounding, times what the map makes of it. Own kernels give the same bits in every batch.
        for precision in [Precision::F64, Precision::F32] {
            let flow = tiny::tarflow(&config, 61, precision);
            check_any(&format!("{config:?} {precision:?}"), &flow, Limits { state: 1e-4, batch: 0.0 });
        }
    }
}

#[test]
fn one_flow_per_class_has_the_properties_too() {
    let config = tiny::tarflow_config(1, 4, 2, 0);
    let weights = [62, 63, 64].map(|seed| tiny::tarflow_weights(&config, seed)).to_vec();
    let pixels = bayescope::flow::preprocess::Preprocessing::UniformSymmetric;
    let flow = TarFlowOracle::of_classes(&config, weights, pixels, &Device::flex(), Precision::F64).unwrap();
    assert_eq!(flow.classes(), 3);
    check_any("three flows", &flow, Limits { state: 1e-4, batch: 0.0 });
}

/// log |det| of tensors and of the own kernels, against the Jacobian by automatic differentiation.
#[test]
fn log_det_is_that_of_the_autodiff_jacobian() {
    for config in configs() {
        let device = Device::flex().autodiff();
        let weights = tiny::tarflow_weights(&config, 65);
        let flow = TarFlow::from_weights(&config, weights.clone(), &device, Precision::F64).unwrap();
        let (dims, t, p) = (config.shape.dims(), config.tokens(), config.token_dims());
        let x: Vec<f64> = uniform("image", 65, dims).iter().map(|u| 1.5 * u).collect();
        let condition: Condition = (config.classes > 0).then_some(1);
        let classes = config.mixing_weights(&[condition], &device, DType::F64);
        let input =
            || Tensor::<3>::from_data(TensorData::new(x.clone(), [1, t, p]), (&device, DType::F64)).require_grad();
        // A graph runs backward once, so every row of the Jacobian gets its own.
        let row = |d: usize| {
            let x = input();
            let (z, _) = flow.encode(x.clone(), classes.as_ref());
            let grads = z.reshape([dims]).narrow(0, d, 1).sum().backward();
            x.grad(&grads).unwrap().try_into_vec_as::<f64>().unwrap()
        };
        let rows: Vec<f64> = (0..dims).flat_map(row).collect();
        let exact = log_abs_det(&DMatrix::from_row_slice(dims, dims, &rows));
        let own = CpuTarFlow::<f64>::new(&config, weights.clone()).unwrap();
        let tensors = TensorTarFlow::new(&config, weights, &Device::flex(), Precision::F64).unwrap();
        for engine in [&own as &dyn Engine, &tensors] {
            let ours: f64 = engine.encode(&x, &[condition]).unwrap().log_det.iter().sum();
            println!("{config:?}: ours {ours}, Jacobian {exact}");
            assert!((ours - exact).abs() < 1e-9 * exact.abs().max(1.0));
        }
    }
}

/// Four dimensions: two tokens would be the fewest in which a token looks at another, but images are square. The proposal is a
/// Gaussian wider than the flow anywhere: shifts and log-scales of a normalised network are bounded.
#[test]
fn densities_integrate_to_one() {
    const SPREAD: f64 = 2.5;
    for (seed, volume_preserving) in [(66, false), (67, true)] {
        let config = TarFlowConfig { volume_preserving, ..tiny::tarflow_config(1, 2, 1, 2) };
        let flow = tiny::tarflow(&config, seed, Precision::F64);
        let (batch, rounds) = (2048, 30);
        let taus = [0.8, 1.0, 1.2];
        let mut sums = vec![(0.0, 0.0); taus.len() * 2];
        let mut rng = Seed(seed).rng(0);
        for _ in 0..rounds {
            let x: Vec<f32> = (0..batch * 4)
                .map(|_| {
                    let e: f64 = StandardNormal.sample(&mut rng);
                    (SPREAD * e) as f32
                })
                .collect();
            let scores = flow.score(&x).unwrap();
            for (i, x) in x.chunks(4).enumerate() {
                let proposal: f64 = x
                    .iter()
                    .map(|&x| {
                        -0.5 * (f64::from(x) / SPREAD).powi(2) - (SPREAD * (2.0 * std::f64::consts::PI).sqrt()).ln()
                    })
                    .sum();
                let weights = taus.iter().flat_map(|&t| scores.log_likelihoods(i, Tau::new(t).unwrap()));
                for ((sum, squares), log_p) in sums.iter_mut().zip(weights) {
                    let weight = (log_p - proposal).exp();
                    *sum += weight;
                    *squares += weight * weight;
                }
            }
        }
        let n = f64::from(rounds * batch);
        for (sum, squares) in sums {
            let (mean, std_error) = (sum / n, ((squares / n - (sum / n) * (sum / n)) / n).sqrt());
            println!("∫p dx = {mean:.5} ± {std_error:.5}");
            assert!(std_error < 0.03, "too uncertain to tell: {std_error}");
            assert!((mean - 1.0).abs() < 4.0 * std_error, "{mean} ± {std_error}");
        }
    }
}

/// Gradients by state-dict name.
struct Gather<'a> {
    grads: &'a GradientsParams,
    path: Vec<String>,
    found: Vec<(String, Vec<f64>)>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = self.grads.get::<D>(param.id) {
            self.found.push((TarFlow::state_name(&self.path), grad.try_into_vec_as::<f64>().unwrap()));
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

/// The gradient that training follows on the CPU is that of burn's automatic differentiation, for every parameter and for x.
#[test]
fn own_gradients_are_those_of_automatic_differentiation() {
    for config in configs() {
        let device = Device::flex().autodiff();
        let weights = tiny::tarflow_weights(&config, 68);
        let flow = TarFlow::from_weights(&config, weights.clone(), &device, Precision::F64).unwrap();
        let (n, t, p) = (3, config.tokens(), config.token_dims());
        let x = uniform("images", 68, n * config.shape.dims());
        let mut conditions: Vec<Condition> =
            (0..n).map(|i| (config.classes > 0).then_some(i % config.classes.max(1))).collect();
        conditions[1] = None;
        let shares = [0.5, 0.2, 0.3];
        let input = Tensor::<3>::from_data(TensorData::new(x.clone(), [n, t, p]), (&device, DType::F64));
        let (z, log_det) = flow.encode(input, config.mixing_weights(&conditions, &device, DType::F64).as_ref());
        let per_image = z.square().reshape([n, t * p]).sum_dim(1) * 0.5 - log_det.sum_dim(1);
        let share = Tensor::<2>::from_data(TensorData::new(shares.to_vec(), [n, 1]), (&device, DType::F64));
        let grads = GradientsParams::from_grads((per_image * share).sum().backward(), &flow);
        let mut gather = Gather { grads: &grads, path: Vec::new(), found: Vec::new() };
        flow.visit(&mut gather);
        let own = CpuTarFlow::<f64>::new(&config, weights.clone()).unwrap();
        let found = own.backward(&x, &conditions, &shares, 2).unwrap();
        assert_eq!(gather.found.len(), found.weights.0.len(), "{config:?}");
        for (name, expected) in gather.found {
            let ours: Vec<f64> = found.weights.0[&name].values.iter().map(|&v| f64::from(v)).collect();
            let size = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            // Handed over as f32.
            assert!(max_abs(&ours, &expected) <= 1e-6 * size.max(1e-3), "{name} of {config:?}");
        }
        let weight = vec![0.7; t * p];
        let tensors = TensorTarFlow::new(&config, weights, &Device::flex(), Precision::F64).unwrap();
        let (a, _) = own.gradient(&x, &conditions, &weight).unwrap();
        let (b, _) = tensors.gradient(&x, &conditions, &weight).unwrap();
        assert!(max_abs(&a, &b) < 1e-9, "{config:?}");
    }
}

/// Cached, masked and Jacobi: one x.
#[test]
fn every_way_of_inverting_gives_the_same_image() {
    for config in configs() {
        let flow = tiny::tarflow(&config, 69, Precision::F32);
        let classes: Vec<usize> = (0..5).map(|i| i % flow.classes()).collect();
        let noise: Vec<f32> = uniform("noise", 69, 5 * config.shape.dims()).iter().map(|u| (2.0 * u) as f32).collect();
        let decode = |strategy| {
            flow.set_strategies(vec![strategy; config.blocks]);
            flow.decode(&noise, &classes, Tau::ONE, &mut bayescope::events::silent()).unwrap().x
        };
        let wide = |x: &[f32]| x.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
        let cached = wide(&decode(Strategy::Loop));
        let masked = Strategy::Jacobi { modules: 1, guess: Guess::Zero, tolerance: -1.0 };
        assert!(max_abs(&wide(&decode(masked)), &cached) < 1e-6);
        for modules in [1, 2, config.tokens() - 1] {
            for guess in [Guess::Z, Guess::Zero] {
                let jacobi = Strategy::Jacobi { modules, guess, tolerance: 1e-6 };
                assert!(max_abs(&wide(&decode(jacobi)), &cached) < 1e-5, "{jacobi:?}");
            }
        }
    }
}

/// Values far beyond what a guess is held to (|x| ≤ 1e6, |a| ≤ 60) while it is not solved: constant shifts and log-scales.
#[test]
fn large_values_are_the_same_by_every_way_of_inverting() {
    let config = TarFlowConfig { blocks: 1, ..tiny::tarflow_config(1, 4, 1, 0) };
    for (a, b) in [(0.0, 3e6), (70.0, 0.0)] {
        let mut weights = config.initial_weights(Seed(73));
        weights.0.get_mut("blocks.0.proj_out.bias").unwrap().values = vec![a, b];
        let flow = TensorTarFlow::new(&config, weights, &Device::flex(), Precision::F64).unwrap();
        let z = uniform("z", 73, 2 * config.shape.dims());
        let x = |strategy| flow.invert(0, &z, &[None; 2], strategy, None, &mut |_| Ok(())).unwrap().x;
        let exact = x(Strategy::Loop);
        let size = max_abs(&exact, &vec![0.0; exact.len()]);
        assert!(size > 2e6);
        for (modules, guess) in [(1, Guess::Z), (1, Guess::Zero), (3, Guess::Z), (15, Guess::Zero)] {
            let found = x(Strategy::Jacobi { modules, guess, tolerance: 1e-6 });
            assert!(max_abs(&found, &exact) < 1e-9 * size, "{modules} {guess:?}");
        }
    }
}

/// Cells add up to the total, for every pair of classes, at several temperatures; and a cell belongs to its patch.
#[test]
fn evidence_adds_up() {
    let config = tiny::tarflow_config(3, 4, 2, 3);
    for (precision, limit) in [(Precision::F64, 1e-12), (Precision::F32, 1e-12)] {
        let flow = tiny::tarflow(&config, 70, precision);
        let x: Vec<f32> = uniform("x", 70, 48).iter().map(|&u| u as f32).collect();
        for (a, b) in [(0, 1), (1, 2), (2, 0)] {
            for t in [0.5, 1.0, 2.0] {
                let evidence = flow.evidence(&x, a, b, Tau::new(t).unwrap()).unwrap();
                let sum: f64 = evidence.cells.iter().sum();
                assert_eq!((evidence.rows, evidence.columns, evidence.cells.len()), (2, 2, 4));
                assert!(
                    (sum - evidence.total).abs() <= limit * (1.0 + evidence.total.abs()) * 100.0,
                    "{sum} {evidence:?}"
                );
            }
        }
    }
}
