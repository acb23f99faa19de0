//! A flow of no family that this crate has: it is asked for what it can do, and nothing else.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use super::export::save_samples;
use super::label_noise::LabelNoise;
use super::posterior::Prior;
use super::running::CLASS_BATCH;
use super::walk::grid::{Grid, GridSpec, grid};
use super::walk::{Goal, Subject, TOLERANCE, Walk, WalkPoint, WalkSpec, Way, walk};
use super::what_if::UnderClass;
use super::world::{Sample, SampleSpec, Settings, World};
use super::{look, strategies};
use crate::data::{ImageShape, open};
use crate::device::MatmulPrecision;
use crate::error::Result;
use crate::events::{Events, silent};
use crate::flow::preprocess::{Dequantisation, Preprocessing};
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
fn samples_of_classes_with_similar_names_go_into_folders_of_their_own_and_are_read_back() {
    let names = ["a/b", "a_b", "A_B", "a b", "dog", "cat"].map(str::to_owned).to_vec();
    let (world, settings) = (World::new(Box::new(Affine::default()), names, 32).unwrap(), world().1);
    let place = tempfile::tempdir().unwrap();
    let (folder, spec) = (place.path().join("samples"), SampleSpec::new(120, Seed(1)));
    save_samples(&world, &spec, &[], &settings, &folder, &mut silent()).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), CLASSES);
    let read = world.read(open(&folder).unwrap(), Dequantisation::default()).unwrap();
    assert_eq!((read.ids.len(), read.note.as_ref()), (120, None));
    let drawn = world.sample_indices(&spec, &settings, &(0..120).collect::<Vec<_>>()).unwrap();
    for (i, id) in read.ids.iter().enumerate() {
        let number: usize = Path::new(id).file_stem().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!(read.label(i), Some(drawn[number].label), "{id}");
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

/// An image near the mean of a class.
fn near(class: ClassId, by: f32) -> Vec<f32> {
    (0..DIMS).map(|d| mean(class, d) as f32 + by * (d as f32 - 1.25)).collect()
}

fn gridded(corners: &[Vec<f32>], [columns, rows]: [usize; 2]) -> Grid {
    let (world, settings) = world();
    let mut told = Vec::new();
    let mut tell = |point: WalkPoint| {
        told.push(point);
        ControlFlow::Continue(())
    };
    let grid = grid(&world, &GridSpec { corners: corners.to_vec(), columns, rows }, &settings, &mut tell).unwrap();
    assert_eq!((grid.columns, &told), (columns, &grid.points), "images are told in order");
    grid
}

fn between(from: Subject, to: Subject, class: Option<ClassId>, steps: usize) -> Walk {
    let (world, settings) = world();
    let (to, seed, products, tolerance) = (Goal::Subject(to), Seed(3), MatmulPrecision::F32, TOLERANCE);
    let spec = WalkSpec { from, to, steps, class, seed, products, tolerance };
    walk(&world, &spec, &settings, &mut silent()).unwrap()
}

/// Largest |difference| of two images.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn a_grid_has_the_images_in_its_corners_and_is_bilinear_between_them() {
    let (world, settings) = world();
    // Of several classes: pixel by pixel. Of one: in its latent space, where this flow is straight as well.
    let several = [near(0, 0.1), near(3, -0.1), near(5, 0.05), near(1, 0.0)];
    let one = [near(2, 0.1), near(2, -0.1), near(2, 0.15), near(2, -0.02)];
    for (corners, way) in [(several, Way::Pixels), (one, Way::ClassLatent)] {
        let (columns, rows) = (5, 4);
        let grid = gridded(&corners, [columns, rows]);
        assert_eq!((grid.way, grid.points.len(), grid.rounding), (way, columns * rows, None));
        for (corner, at) in [(0, 0), (1, columns - 1), (2, columns * (rows - 1)), (3, columns * rows - 1)] {
            assert_eq!(grid.points[at].x, corners[corner]);
        }
        for (i, point) in grid.points.iter().enumerate() {
            let (s, t) = ((i % columns) as f32 / 4.0, (i / columns) as f32 / 3.0);
            let weights = [(1.0 - s) * (1.0 - t), s * (1.0 - t), (1.0 - s) * t, s * t];
            let mixed: Vec<f32> = (0..DIMS).map(|d| (0..4).map(|c| weights[c] * corners[c][d]).sum()).collect();
            assert!(apart(&point.x, &mixed) < 1e-5, "{way:?} {i}");
            let scores = world.score(&point.x, &mut silent()).unwrap();
            assert_eq!(point.posterior, world.posterior(&scores, 0, &settings));
        }
    }
}

#[test]
fn a_grid_between_two_images_is_the_walk_between_them() {
    let (from, to) = (near(0, 0.1), near(3, -0.1));
    let walked = between(Subject::Image(from.clone()), Subject::Image(to.clone()), None, 9);
    // However many rows are asked for.
    let grid = gridded(&[from, to], [10, 7]);
    assert_eq!((grid.way, &grid.points), (walked.way, &walked.points));
    // Between samples of one class, too, whose noise the walk knows and the grid finds.
    let (world, settings) = world();
    let spec = SampleSpec { class: Some(4), ..SampleSpec::new(20, Seed(3)) };
    let samples = world.sample_indices(&spec, &settings, &(0..20).collect::<Vec<_>>()).unwrap();
    let ends: Vec<&Sample> = samples.iter().filter(|sample| sample.posterior.decision == 4).take(2).collect();
    let walked = between(Subject::Sample(ends[0].index), Subject::Sample(ends[1].index), Some(4), 9);
    let grid = gridded(&[ends[0].x.clone(), ends[1].x.clone()], [10, 1]);
    assert_eq!((grid.way, walked.way), (Way::ClassLatent, Way::ClassLatent));
    assert!(grid.points.iter().zip(&walked.points).all(|(a, b)| apart(&a.x, &b.x) < 1e-5));
    let refused = |corners: usize, columns| {
        let spec = GridSpec { corners: vec![near(0, 0.0); corners], columns, rows: 4 };
        grid_error(&world, &spec, &settings)
    };
    assert!(refused(3, 4).contains("between 2 or 4 images") && refused(4, 33).contains("33×4"));
    assert!(refused(2, 1).contains("2 to 32"));
    let frozen = Settings { tau: Tau::new(0.0).unwrap(), ..settings.clone() };
    let spec = GridSpec { corners: vec![near(0, 0.0); 2], columns: 3, rows: 1 };
    assert!(grid_error(&world, &spec, &frozen).contains("τ = 0"));
}

fn grid_error(world: &World, spec: &GridSpec, settings: &Settings) -> String {
    grid(world, spec, settings, &mut silent()).unwrap_err().to_string()
}

#[test]
fn under_every_class_the_noise_stays_and_the_way_back_leads_home() {
    let (world, settings) = world();
    let settings = Settings { tau: Tau::new(0.7).unwrap(), ..settings };
    let strip = |x: &[f32], of| {
        let mut all: Vec<UnderClass> = Vec::new();
        let mut tell = |one: UnderClass| {
            all.push(one);
            ControlFlow::Continue(())
        };
        world.under_every_class(x, of, &settings, &mut tell).unwrap();
        all
    };
    let x = near(2, 0.2);
    let all = strip(&x, 2);
    assert!(all.iter().map(|one| one.class).eq(0..CLASSES) && all[2].x == x);
    let noise = |x: &[f32], class| world.flow().noise(x, &[class], settings.tau).unwrap();
    for one in &all {
        let (here, there) = (noise(&one.x, one.class), noise(&x, 2));
        assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-5), "class {}", one.class);
        let scores = world.score(&one.x, &mut silent()).unwrap();
        assert!(one.posterior.distance(&world.posterior(&scores, 0, &settings)) < 1e-9);
        assert!(apart(&strip(&one.x, one.class)[2].x, &x) < 1e-5, "back from class {}", one.class);
    }
    let frozen = Settings { tau: Tau::new(0.0).unwrap(), ..settings.clone() };
    assert!(world.under_every_class(&x, 2, &frozen, &mut silent()).is_err());
    assert!(world.under_every_class(&x, CLASSES, &settings, &mut silent()).is_err());
}

#[test]
fn the_evidence_of_a_difference_adds_up_to_that_of_the_log_odds() {
    let (world, settings) = world();
    let images = [near(0, 0.1), near(0, -0.2), near(3, 0.1)];
    let all: Vec<&[f32]> = images.iter().map(Vec::as_slice).collect();
    let compare = |all: &[&[f32]], pair| world.compare(all, pair, &settings, &mut silent()).unwrap();
    let found = compare(&all, None);
    assert_eq!(found.pair, Some((0, 3)), "the decision of the first, and the next that differs");
    let odds = |i: usize| {
        let p = &found.images[i].posterior.log_probabilities;
        p[0] - p[3]
    };
    assert!(found.images[0].difference.is_none());
    for i in 1..3 {
        let difference = found.images[i].difference.as_ref().unwrap();
        assert!((difference.sum() - difference.total).abs() < 1e-6, "{i}");
        assert!((difference.total - (odds(0) - odds(i))).abs() < 1e-9, "{i}");
        // The other way round every cell speaks for the other.
        let back = compare(&[all[i], all[0]], found.pair);
        let back = back.images[1].difference.as_ref().unwrap();
        assert!(back.cells.iter().zip(&difference.cells).all(|(a, b)| (a + b).abs() < 1e-12));
    }
    let same = compare(&[all[0], all[0]], None);
    assert!(same.images[1].difference.as_ref().unwrap().cells.iter().all(|cell| *cell == 0.0));
    assert_eq!(same.pair.map(|(a, _)| a), Some(0), "where all agree, against the runner-up");
    assert!(world.compare(&[], None, &settings, &mut silent()).is_err());
}
