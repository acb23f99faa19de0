//! A flow of no family that this crate has: it is asked for what it can do, and nothing else.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};

use super::label_noise::LabelNoise;
use super::posterior::Prior;
use super::running::CLASS_BATCH;
use super::walk::{Goal, Subject, TOLERANCE, WalkPoint, WalkSpec, Way, walk};
use super::world::{Sample, SampleSpec, Settings, World};
use super::{look, strategies};
use crate::data::ImageShape;
use crate::device::MatmulPrecision;
use crate::error::Result;
use crate::events::{Events, silent};
use crate::flow::preprocess::Preprocessing;
use crate::flow::sampling::SamplerOptions;
use crate::flow::{Decoded, Decoding, DifferentiableFlow, Evidence, Flow, Scores};
use crate::units::{ClassId, Seed, Smoothing, Tau};

const SHAPE: ImageShape = ImageShape { channels: 1, height: 2, width: 2 };
const DIMS: usize = 4;
const CLASSES: usize = 6;

/// Every class has a map of its own: x = μ_y + σ_y z, with the μ at corners of the unit cube.
#[derive(Default)]
struct Affine {
    /// The classes it was asked for, call by call.
    asked: RefCell<Vec<Range<ClassId>>>,
}

fn mean(class: ClassId, d: usize) -> f64 {
    f64::from(u8::from((class >> d) & 1 == 1))
}

fn scale(class: ClassId) -> f64 {
    0.3 + 0.02 * class as f64
}

/// z of each value of one image under a class.
fn standardised(x: &[f32], class: ClassId) -> impl Iterator<Item = f64> {
    x.iter().enumerate().map(move |(d, &x)| (f64::from(x) - mean(class, d)) / scale(class))
}

impl Flow for Affine {
    fn shape(&self) -> ImageShape {
        SHAPE
    }

    fn classes(&self) -> usize {
        CLASSES
    }

    fn pixels(&self) -> Preprocessing {
        Preprocessing::Gaussian { std: 0.1 }
    }

    fn pairs_per_pass(&self) -> Option<usize> {
        Some(8)
    }

    fn differentiable(&self) -> Option<&dyn DifferentiableFlow> {
        Some(self)
    }

    fn score_classes(&self, x: &[f32], classes: Range<ClassId>) -> Result<Scores> {
        self.asked.borrow_mut().push(classes.clone());
        let pairs = x.chunks(DIMS).flat_map(|x| classes.clone().map(move |class| (x, class)));
        let quad = pairs.clone().map(|(x, class)| standardised(x, class).map(|z| z * z).sum()).collect();
        let log_det = pairs.map(|(_, class)| -(DIMS as f64) * scale(class).ln()).collect();
        let log_norm = vec![0.5 * DIMS as f64 * (2.0 * std::f64::consts::PI).ln(); classes.len()];
        Ok(Scores { classes: classes.len(), dims: DIMS, quad, log_det, log_norm })
    }

    fn decode(&self, noise: &[f32], of: &[ClassId], tau: Tau, _: &mut dyn Events<Decoding>) -> Result<Decoded> {
        let images = noise.chunks(DIMS).zip(of).flat_map(|(noise, &class)| {
            let x = move |(d, e): (usize, &f32)| mean(class, d) + tau.get() * scale(class) * f64::from(*e);
            noise.iter().enumerate().map(x)
        });
        Ok(Decoded { x: images.map(|x| x as f32).collect(), scores: None })
    }

    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        let images = x.chunks(DIMS).zip(classes);
        Ok(images.flat_map(|(x, &class)| standardised(x, class).map(move |z| z / tau.get())).collect())
    }

    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        let of = |class| standardised(x, class).map(move |z| -0.5 * (z / tau.get()).powi(2) - scale(class).ln());
        let cells: Vec<f64> = of(a).zip(of(b)).map(|(a, b)| a - b).collect();
        let total = cells.iter().sum();
        Ok(Evidence { rows: SHAPE.height, columns: SHAPE.width, cells, total })
    }
}

impl DifferentiableFlow for Affine {
    fn log_likelihood_gradient(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        let images = x.chunks(DIMS).zip(classes);
        let slope = |z: f64, class| -z / (tau.get().powi(2) * scale(class));
        Ok(images.flat_map(|(x, &class)| standardised(x, class).map(move |z| slope(z, class))).collect())
    }
}

fn world() -> (World, Settings) {
    let names = (0..CLASSES).map(|class| format!("class {class}")).collect();
    (World::new(Box::new(Affine::default()), names, 32).unwrap(), Settings::default_for(CLASSES))
}

#[test]
fn a_flow_of_another_family_has_exact_posteriors_class_batch_by_class_batch() {
    let flow = Affine::default();
    let (world, settings) = world();
    let samples = world.sample_indices(&SampleSpec::new(5, Seed(1)), &settings, &[0, 1, 2, 3, 4]).unwrap();
    let x: Vec<f32> = samples.iter().flat_map(|sample| sample.x.clone()).collect();
    super::running::score_by_classes(&flow, &x, &mut |_| Ok(())).unwrap();
    assert_eq!(*flow.asked.borrow(), [0..CLASS_BATCH, CLASS_BATCH..CLASSES]);
    for sample in &samples {
        // N(x; μ_y, σ_y²) over all classes.
        let density = |class| {
            let exponent: f64 = standardised(&sample.x, class).map(|z| -0.5 * z * z).sum();
            exponent.exp() / scale(class).powi(DIMS as i32)
        };
        let all: f64 = (0..CLASSES).map(density).sum();
        for class in 0..CLASSES {
            let found = sample.posterior.probabilities[class];
            assert!((found - density(class) / all).abs() < 1e-12, "{class}: {found}");
        }
    }
}

#[test]
fn a_flow_of_another_family_walks_by_what_it_can_do() {
    let (world, settings) = world();
    let image = |class| Subject::Image((0..DIMS).map(|d| mean(class, d) as f32).collect());
    let walked = |to| {
        let (seed, products, tolerance) = (Seed(0), MatmulPrecision::F32, TOLERANCE);
        let spec = WalkSpec { from: image(0), to, steps: 100, class: None, seed, products, tolerance };
        walk(&world, &spec, &settings, &mut |_: WalkPoint| ControlFlow::Continue(())).unwrap()
    };
    let climb = walked(Goal::Class(5));
    let towards: Vec<f64> = climb.points.iter().map(|point| point.posterior.probabilities[5]).collect();
    assert_eq!((climb.way, climb.start), (Way::Gradient, 0));
    assert!(towards.windows(2).all(|two| two[1] > two[0]) && towards[towards.len() - 1] > 0.9, "{towards:?}");
    // No latent space is common to its classes.
    assert_eq!(walked(Goal::Subject(image(3))).way, Way::Pixels);
}

#[test]
fn what_a_flow_cannot_do_is_refused_or_left_out() {
    let (world, settings) = world();
    assert_eq!(strategies::adopt(world.flow(), "0123", "here", 4, &mut silent()).unwrap(), None);
    let spec = SampleSpec::new(1, Seed(0));
    let options = SamplerOptions { guidance: None, denoise: true };
    let path = std::path::Path::new("never-written.png");
    let refused = look::save_pictures_with(&world, &spec, &[0], &settings, &options, path, &mut silent());
    assert!(refused.unwrap_err().to_string().contains("denoising"));
    assert!(world.flow().shared_base().is_none() && !path.exists());
}

/// Samples of a world at these knobs, classes from an uneven prior.
fn drawn(world: &World, settings: &Settings, n: usize) -> Vec<Sample> {
    world.sample_indices(&SampleSpec::new(n, Seed(5)), settings, &(0..n).collect::<Vec<_>>()).unwrap()
}

/// Whether a count of n trials of probability p is within 4.5 standard deviations of what is expected.
fn expected(count: usize, n: usize, p: f64) -> bool {
    (count as f64 - n as f64 * p).abs() <= 4.5 * (n as f64 * p * (1.0 - p)).sqrt() + 1e-9
}

#[test]
fn label_noise_draws_labels_by_its_rows_and_leaves_images_and_classes() {
    const N: usize = 4000;
    let (world, settings) = world();
    let noise = LabelNoise::by_class(vec![0.0, 0.6, 0.2, 0.3, 1.0, 0.1]).unwrap();
    let prior = Prior::new(&[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]).unwrap();
    for smoothing in [1.0, 3.0] {
        let smoothing = Smoothing::new(smoothing).unwrap();
        let clean = Settings { prior: prior.clone(), smoothing, ..settings.clone() };
        let noisy = Settings { label_noise: Some(noise.clone()), ..clean.clone() };
        let (before, after) = (drawn(&world, &clean, N), drawn(&world, &noisy, N));
        let (mut pairs, mut labels, mut of_label) = ([[0usize; CLASSES]; CLASSES], [0usize; CLASSES], [0.0; CLASSES]);
        let mut spread = [0.0; CLASSES];
        for (clean, noisy) in before.iter().zip(&after) {
            assert_eq!((&clean.x, clean.source), (&noisy.x, noisy.source));
            assert_eq!(noisy.posterior, noise.posterior(clean.posterior.clone()));
            pairs[clean.label][noisy.label] += 1;
            labels[noisy.label] += 1;
            for (j, p) in noisy.posterior.probabilities.iter().enumerate() {
                of_label[j] += p;
                spread[j] += p * (1.0 - p);
            }
        }
        for (class, row) in pairs.iter().enumerate() {
            let of_class = row.iter().sum();
            let law = noise.row(class, CLASSES);
            assert!(row.iter().zip(law).all(|(&count, p)| expected(count, of_class, p)), "class {class}: {row:?}");
        }
        // Labels are as frequent as their posteriors say.
        for j in 0..CLASSES {
            assert!((labels[j] as f64 - of_label[j]).abs() < 4.5 * spread[j].sqrt(), "{labels:?}, {of_label:?}");
        }
    }
}

#[test]
fn label_noise_of_other_classes_and_walks_under_it_are_refused() {
    let (world, settings) = world();
    let of = |text: &str| Settings { label_noise: Some(LabelNoise::parse(text).unwrap()), ..settings.clone() };
    let wrong = world.sample_indices(&SampleSpec::new(1, Seed(0)), &of("by-class:0.1,0.2"), &[0]).unwrap_err();
    assert!(wrong.to_string().contains("of 2 classes, this world has 6"), "{wrong}");
    let image = Subject::Image(vec![0.5; DIMS]);
    let (seed, products, tolerance) = (Seed(0), MatmulPrecision::F32, TOLERANCE);
    let spec = WalkSpec { from: image, to: Goal::Class(5), steps: 3, class: None, seed, products, tolerance };
    let mut on = |_: WalkPoint| ControlFlow::Continue(());
    let refused = walk(&world, &spec, &of("pair:0.1"), &mut on).unwrap_err().to_string();
    assert!(refused.contains("label noise"), "{refused}");
}

#[test]
fn knobs_without_label_noise_are_written_as_they_always_were() {
    let settings = Settings::default_for(2);
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(text, r#"{"tau":1.0,"smoothing":1.0,"prior":[0.5,0.5]}"#);
    let noisy = Settings { label_noise: Some(LabelNoise::pair(0.25).unwrap()), ..settings };
    let text = serde_json::to_string(&noisy).unwrap();
    assert!(text.contains(r#""label_noise":"pair:0.25""#), "{text}");
    assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), noisy);
    assert_eq!(noisy.labels().unwrap().probabilities(), [0.5, 0.5]);
}
