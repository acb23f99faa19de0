//! Walks to the boundary of the bundled world and of a small class-map world.

use std::ops::ControlFlow;

use bayescope::data::{Input, read_npz};
use bayescope::device::MatmulPrecision;
use bayescope::error::Error;
use bayescope::flow::Precision;
use bayescope::flow::tarflow::TarFlowOracle;
use bayescope::oracle::folder;
use bayescope::oracle::posterior::Posterior;
use bayescope::oracle::walk::{Goal, Subject, Walk, WalkPoint, WalkSpec, Way, posterior_gradient, walk};
use bayescope::oracle::world::{Settings, World};
use bayescope::units::{Seed, Smoothing, Tau};
use burn::tensor::Device;

use crate::common::fill::uniform;
use crate::common::tiny;
use crate::run::{fail, json, succeed, text};

const TOLERANCE: f64 = 1e-3;

fn mnist() -> (World, Settings) {
    let world = folder::open("mnist", &Device::flex(), Precision::F32, 32).unwrap().world;
    let settings = Settings::default_for(world.class_names().len());
    (world, settings)
}

/// A class-map world of four classes, and images of it.
fn tarflow(precision: Precision) -> (World, Settings, Vec<f32>) {
    let config = tiny::tarflow_config(1, 8, 2, 4);
    let pixels = bayescope::flow::preprocess::Preprocessing::Gaussian { std: 0.05 };
    let weights = tiny::tarflow_weights(&config, 9);
    let flow = TarFlowOracle::new(&config, weights, pixels, &Device::flex(), precision).unwrap();
    let names = (0..4).map(|c| format!("class {c}")).collect();
    let world = World::new(Box::new(flow), names, 32).unwrap();
    let x = uniform("x", 3, 8 * config.shape.dims()).into_iter().map(|v| (0.8 * v) as f32).collect();
    (world, Settings::default_for(4), x)
}

fn spec(from: Subject, to: Goal) -> WalkSpec {
    WalkSpec { from, to, steps: 16, class: None, seed: Seed(0), products: MatmulPrecision::F32, tolerance: TOLERANCE }
}

fn walked(world: &World, spec: &WalkSpec, settings: &Settings) -> Walk {
    let mut seen = 0;
    let walk = walk(world, spec, settings, &mut |_: WalkPoint| {
        seen += 1;
        ControlFlow::Continue(())
    });
    let walk = walk.unwrap();
    assert_eq!(seen, walk.points.len());
    walk
}

fn score(world: &World, settings: &Settings, x: &[f32]) -> Posterior {
    let scores = world.flow().score(x).unwrap();
    world.posterior(&scores, 0, settings)
}

/// |p_a − p_b|/(p_a + p_b) of the 50/50 image, scored again by itself.
fn again(world: &World, settings: &Settings, walk: &Walk) -> f64 {
    let p = score(world, settings, &walk.boundary.point.x).probabilities;
    let (a, b) = (p[walk.start], p[walk.target]);
    (a - b).abs() / (a + b)
}

#[test]
fn between_two_samples_the_boundary_is_where_both_are_equally_probable() {
    let (world, settings) = mnist();
    let mut reached = 0;
    for (i, j) in [(0, 1), (2, 3), (4, 5)] {
        let line = walked(&world, &spec(Subject::Sample(i), Goal::Subject(Subject::Sample(j))), &settings);
        assert_eq!((line.way, line.points.len()), (Way::Latent, 17));
        assert_eq!((line.points[0].position, line.points[16].position), (0.0, 1.0));
        assert!(line.rounding.unwrap() < 0.05, "{:?}", line.rounding);
        if line.start == line.target {
            assert!(!line.boundary.reached && line.boundary.why_not.as_ref().unwrap().contains("both ends"));
            continue;
        }
        reached += 1;
        assert!(line.boundary.reached, "{:?}", line.boundary.why_not);
        let off = again(&world, &settings, &line);
        println!("samples {i} and {j}: at {:.5} off by {off:.1e}", line.boundary.point.position);
        assert!(off <= 1.5 * TOLERANCE);
        assert_eq!(line, walked(&world, &spec(Subject::Sample(i), Goal::Subject(Subject::Sample(j))), &settings));
    }
    assert!(reached > 0);
    // Between two given images only those looked at for the 50/50 point are rounded.
    let ends = WalkSpec { steps: 1, ..spec(Subject::Sample(0), Goal::Subject(Subject::Sample(1))) };
    let line = walked(&world, &ends, &settings);
    assert!(line.boundary.reached && line.points.len() == 2);
    assert!(line.rounding.is_some_and(|moved| moved > 0.0 && moved < 0.05), "{:?}", line.rounding);
}

#[test]
fn towards_a_class_the_log_odds_rise_on_a_straight_line() {
    let (world, mut settings) = mnist();
    settings.tau = Tau::new(1.2).unwrap();
    settings.smoothing = Smoothing::new(2.0).unwrap();
    let start = walked(&world, &spec(Subject::Sample(7), Goal::Subject(Subject::Sample(7))), &settings).start;
    let target = (start + 3) % 10;
    let line = walked(&world, &spec(Subject::Sample(7), Goal::Class(target)), &settings);
    assert_eq!((line.way, line.start, line.target), (Way::Latent, start, target));
    assert!(line.boundary.reached && again(&world, &settings, &line) <= 1.5 * TOLERANCE, "{:?}", line.boundary);
    let odds: Vec<f64> = line
        .points
        .iter()
        .map(|p| p.posterior.log_probabilities[target] - p.posterior.log_probabilities[start])
        .collect();
    let steps: Vec<f64> = odds.windows(2).map(|two| two[1] - two[0]).collect();
    let mean = steps.iter().sum::<f64>() / steps.len() as f64;
    assert!(mean > 0.0 && steps.iter().all(|step| (step / mean - 1.0).abs() < 0.02), "{steps:?}");
    let message = |goal| {
        let walk =
            walk(&world, &spec(Subject::Sample(7), goal), &settings, &mut |_: WalkPoint| ControlFlow::Continue(()));
        walk.unwrap_err().to_string()
    };
    assert!(message(Goal::Class(start)).contains("already"));
    assert!(message(Goal::Class(10)).contains("class 10"));
    assert!(message(Goal::Subject(Subject::Image(vec![0.5; 3]))).contains("3 values"));
    let stopped = walk(&world, &spec(Subject::Sample(7), Goal::Class(target)), &settings, &mut |_: WalkPoint| {
        ControlFlow::Break(())
    });
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn the_gradient_of_the_posterior_is_its_derivative() {
    let (world, mut settings, x) = tarflow(Precision::F64);
    settings.tau = Tau::new(1.3).unwrap();
    settings.smoothing = Smoothing::new(1.7).unwrap();
    let flow = world.flow().differentiable().unwrap();
    let h = 2f32.powi(-10);
    for (image, x) in x.chunks(64).take(2).enumerate() {
        // Few enough digits that x ± h is exact in 32 bits.
        let x: Vec<f32> = x.iter().map(|v| (v * 256.0).round() / 256.0).collect();
        let here = score(&world, &settings, &x);
        for target in 0..4 {
            let gradient = posterior_gradient(flow, &x, &here, target, &settings).unwrap();
            let scale = gradient.iter().fold(0f64, |most, g| most.max(g.abs()));
            for d in (0..64).step_by(5) {
                let at = |step: f32| {
                    let mut moved = x.clone();
                    moved[d] += step;
                    score(&world, &settings, &moved).log_probabilities[target]
                };
                let difference = (at(h) - at(-h)) / (2.0 * f64::from(h));
                assert!(
                    (difference - gradient[d]).abs() < 1e-4 * scale + 1e-7,
                    "image {image}, class {target}, dimension {d}: {} is not {difference}",
                    gradient[d]
                );
            }
        }
    }
}

#[test]
fn every_gradient_step_raises_the_target_until_the_boundary_is_passed() {
    let (world, settings, x) = tarflow(Precision::F32);
    for x in x.chunks(64).take(3) {
        let start = score(&world, &settings, x).decision;
        for target in (0..4).filter(|&class| class != start) {
            let climb = walked(&world, &spec(Subject::Image(x.to_vec()), Goal::Class(target)), &settings);
            assert_eq!((climb.way, climb.start, climb.target), (Way::Gradient, start, target));
            assert_eq!(climb.points[0].x, x);
            let p = |point: &WalkPoint| point.posterior.log_probabilities[target];
            assert!(climb.points.windows(2).all(|two| p(&two[1]) > p(&two[0]) && two[1].position > two[0].position));
            assert!(climb.boundary.reached, "{:?}", climb.boundary.why_not);
            assert!(again(&world, &settings, &climb) <= 1.5 * TOLERANCE);
            let last = climb.points.last().unwrap();
            let at = climb.boundary.point.position;
            println!("{start} → {target}: {} steps, boundary at {at:.4} rms", climb.points.len() - 1);
            assert!(0.0 < at && at <= last.position && last.posterior.probabilities[target] > 0.5);
        }
    }
}

#[test]
fn between_images_of_a_class_map_world_the_line_says_what_it_is_straight_in() {
    let (world, settings, x) = tarflow(Precision::F32);
    let [a, b] = [0, 1].map(|i| Subject::Image(x[i * 64..(i + 1) * 64].to_vec()));
    let line = walked(&world, &spec(a, Goal::Subject(b)), &settings);
    assert_eq!((line.way, line.rounding), (Way::Pixels, None));
    let middle = &line.points[8];
    assert!((0..64).all(|d| (middle.x[d] - 0.5 * (x[d] + x[64 + d])).abs() < 1e-6));
    assert_eq!(line.start != line.target, line.boundary.reached, "{:?}", line.boundary);
    let samples = WalkSpec { class: Some(2), ..spec(Subject::Sample(0), Goal::Subject(Subject::Sample(1))) };
    let line = walked(&world, &samples, &settings);
    assert_eq!((line.way, line.points.len()), (Way::ClassLatent, 17));
    // At the ends the latent way meets the samples it leads between.
    let near = walked(&world, &WalkSpec { steps: 1000, ..samples }, &settings);
    let gap = near.points[1].x.iter().zip(&near.points[0].x).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(gap < 0.05, "{gap}");
}

#[test]
fn the_command_line_saves_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let (sheet, arrays) = (folder.path().join("walk.png"), folder.path().join("walk.npz"));
    let common = ["walk", "mnist", "--from", "sample:0", "--device", "cpu"];
    let go = |extra: &[&str]| json(&[&common[..], extra, &["--steps", "12", "--json"]].concat());
    let start = go(&["--to", "sample:0"])["start"].as_u64().unwrap();
    let target = format!("class:{}", (start + 1) % 10);
    let report = go(&["--to", &target, "--out", text(&arrays)]);
    assert_eq!((&report["way"], &report["boundary"]["reached"]), (&"latent".into(), &true.into()));
    assert!(report["boundary"]["imbalance"].as_f64().unwrap() <= TOLERANCE);
    assert_eq!(report["points"].as_array().unwrap().len(), 13);
    assert_eq!(report["points"][3]["posterior"].as_array().unwrap().len(), 10);
    let Input::World(batch) = read_npz(&arrays).unwrap() else { panic!("pixels") };
    assert_eq!((batch.len(), batch.classes), (14, 10));
    // The saved 50/50 image is one to whoever scores it.
    let posterior = json(&["posterior", "mnist", text(&arrays), "--json", "--device", "cpu"]);
    let p = posterior["images"][13]["posterior"].as_array().unwrap();
    let [a, b] = [start, (start + 1) % 10].map(|class| p[class as usize].as_f64().unwrap());
    assert!((a - b).abs() / (a + b) <= 1.5 * TOLERANCE, "{a} {b}");
    // An image of a file is as good a start as a sample.
    let from = format!("{}#0", text(&arrays));
    let args = ["walk", "mnist", "--from", &from, "--to", &target, "--steps", "4", "--device", "cpu", "--out"];
    let told = succeed(&[&args[..], &[text(&sheet)]].concat());
    assert!(told.contains("50/50 (p within") && told.contains("straight in the latent space"), "{told}");
    assert!(std::fs::metadata(&sheet).unwrap().len() > 100);
    let wrong = |extra: &[&str]| fail(1, &[&common[..], extra].concat());
    assert!(wrong(&["--to", text(&arrays)]).contains("holds 14 images"));
    assert!(wrong(&["--to", &format!("{}#14", text(&arrays))]).contains("there are 14 images"));
    assert!(wrong(&["--to", "class:eleven"]).contains("--to class:eleven"));
    assert!(wrong(&["--to", "/nowhere.png"]).contains("/nowhere.png"));
    assert!(wrong(&["--to", &target, "--steps", "0"]).contains("1 to 10000 steps"));
    assert!(wrong(&["--to", &target, "--tau", "0"]).contains("τ"));
    assert!(wrong(&["--to", &target, "--out", "walk.txt"]).contains(".png or .npz"));
}
