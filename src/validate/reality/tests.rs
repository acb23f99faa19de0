//! A world of two Gaussians, E = Φ(-d/2), on images of itself and of natures that are easier or
//! harder to tell apart.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use statrs::distribution::{ContinuousCDF, Normal};

use super::contrast::contradicted;
use super::*;
use crate::data::{Dataset, ImageShape};
use crate::events::silent;
use crate::flow::base::GaussianBase;
use crate::flow::preprocess::{Dequantisation, Preprocessing};
use crate::flow::{Decoded, Decoding, Evidence, Flow, Scores};
use crate::units::{ClassId, Tau};

const SHAPE: ImageShape = ImageShape { channels: 1, height: 1, width: 2 };
const DIMS: usize = 2;
/// Distance of the means in standard deviations: E is about 10 %.
const APART: f64 = 2.56;
/// A standard deviation in units of x: many levels of a pixel, and no image leaves its range.
const SCALE: f64 = 0.06;

/// z = (x - ½)/s, N(±d/2, 1) in the first value and N(0, 1) in the second.
struct Two(GaussianBase, Preprocessing);

impl Two {
    fn z(x: &[f32]) -> impl Iterator<Item = f64> + '_ {
        x.iter().map(|&x| (f64::from(x) - 0.5) / SCALE)
    }

    fn whitened(&self, x: &[f32], classes: &[ClassId]) -> Vec<f64> {
        let images = x.chunks(DIMS).zip(classes);
        images.flat_map(|(x, &class)| Self::z(x).zip(self.0.mean(class)).map(|(z, mean)| z - mean)).collect()
    }
}

impl Flow for Two {
    fn shape(&self) -> ImageShape {
        SHAPE
    }

    fn classes(&self) -> usize {
        2
    }

    fn pixels(&self) -> Preprocessing {
        self.1
    }

    fn shared_base(&self) -> Option<&GaussianBase> {
        Some(&self.0)
    }

    fn score_classes(&self, x: &[f32], classes: std::ops::Range<ClassId>) -> Result<Scores> {
        let pairs = x.chunks(DIMS).flat_map(|x| classes.clone().map(move |class| (x, class)));
        let quad = pairs.map(|(x, class)| self.whitened(x, &[class]).iter().map(|e| e * e).sum()).collect();
        let log_det = vec![-(DIMS as f64) * SCALE.ln(); x.len() / DIMS];
        let log_norm = vec![0.5 * DIMS as f64 * (2.0 * std::f64::consts::PI).ln()];
        Ok(Scores { classes: classes.len(), dims: DIMS, quad, log_det, log_norm })
    }

    fn decode(&self, noise: &[f32], of: &[ClassId], tau: Tau, _: &mut dyn Events<Decoding>) -> Result<Decoded> {
        let images = noise.chunks(DIMS).zip(of);
        let x = images.flat_map(|(noise, &class)| {
            let z = noise.iter().zip(self.0.mean(class)).map(move |(&e, mean)| mean + tau.get() * f64::from(e));
            z.map(|z| (0.5 + SCALE * z) as f32)
        });
        Ok(Decoded { x: x.collect(), scores: None })
    }

    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        Ok(self.whitened(x, classes).into_iter().map(|e| e / tau.get()).collect())
    }

    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        let squares = |class| self.noise(x, &[class], tau).map(|e| e.into_iter().map(|e| e * e).collect::<Vec<f64>>());
        let cells: Vec<f64> = squares(a)?.iter().zip(squares(b)?).map(|(a, b)| 0.5 * (b - a)).collect();
        Ok(Evidence { rows: 1, columns: DIMS, total: cells.iter().sum(), cells })
    }
}

fn world(pixels: Preprocessing) -> World {
    let base = GaussianBase::new(vec![-0.5 * APART, 0.0, 0.5 * APART, 0.0], &[1.0; DIMS]);
    World::new(Box::new(Two(base, pixels)), vec!["left".into(), "right".into()], 64).unwrap()
}

fn nature(n: usize, apart: f64, share: f64, seed: u64) -> Dataset {
    nature_in(Preprocessing::Uniform, n, apart, share, seed)
}

/// `n` images whose classes are `apart`, in 8 bits; `share` of them from the second class.
fn nature_in(pixels: Preprocessing, n: usize, apart: f64, share: f64, seed: u64) -> Dataset {
    let mut rng = Seed(seed).split("nature").rng(0);
    let labels: Vec<usize> = (0..n).map(|_| usize::from(rng.random::<f64>() < share)).collect();
    let mut x = Vec::with_capacity(n * DIMS);
    for &label in &labels {
        for mean in [(label as f64 - 0.5) * apart, 0.0] {
            let e: f64 = StandardNormal.sample(&mut rng);
            x.push((0.5 + SCALE * (mean + e)) as f32);
        }
    }
    Dataset {
        name: "nature".into(),
        shape: SHAPE,
        pixels: pixels.picture(&x),
        labels: Some(labels),
        class_names: vec!["left".into(), "right".into()],
        ids: (0..n).map(|i| i.to_string()).collect(),
        noises: Default::default(),
    }
}

fn spec(seed: u64, published: Option<f64>) -> RealitySpec {
    RealitySpec {
        oracle: "two".into(),
        data: "nature".into(),
        prior: Prior::uniform(2),
        published: published.map(|error| Published { name: "Net".into(), error }),
        seed: Seed(seed),
    }
}

fn found(images: Dataset, held_out: bool, spec: &RealitySpec) -> Result<Reality> {
    let part = TestPart { images, is_part: held_out, how: Dequantisation::Seeded(spec.seed) };
    compare(&world(Preprocessing::Uniform), "no weights", Taken { part, notes: Vec::new() }, spec, &mut silent())
}

fn kinds(reality: &Reality) -> Vec<Kind> {
    reality.findings.iter().map(|finding| finding.kind).collect()
}

/// Φ(-d/2): how often the midpoint between two normal distributions `apart` decides wrongly.
fn midpoint_error(apart: f64) -> f64 {
    Normal::standard().cdf(-0.5 * apart)
}

/// Whether the error of decisions is within four standard errors of the truth.
fn four_errors(found: &Reality, truth: f64) -> bool {
    let error = (truth * (1.0 - truth) / found.images as f64).sqrt();
    (found.decision_error.value - truth).abs() < 4.0 * error
}

#[test]
fn on_its_own_images_a_world_errs_and_doubts_as_often_as_its_bayes_error_says() {
    let (truth, repeats) = (midpoint_error(APART), 20);
    let (mut decided, mut doubted, mut paired, mut against) = (0, 0, 0, 0);
    for seed in 0..repeats {
        let one = found(nature(1500, APART, 0.5, seed), true, &spec(seed, None)).unwrap();
        assert!((one.of_the_world().value - truth).abs() < 1e-6, "{:?}", one.world);
        decided += usize::from(one.decision_error.interval.contains(truth));
        doubted += usize::from(one.doubt.interval.contains(truth));
        paired += usize::from(one.surplus.interval.contains(0.0));
        against += usize::from(contradicted(&one.findings));
        // Chance alone leaves about 0.015 of 1,500 images.
        assert!(one.ece.value < 0.05 && one.prior_distance < 0.06, "{one:?}");
        assert_eq!(one.reliability.iter().map(|bin| bin.count).sum::<usize>(), 1500);
        let by_bins: f64 = one.reliability.iter().map(|bin| bin.count as f64 * bin.right.value / 1500.0).sum();
        assert!((by_bins + one.decision_error.value - 1.0).abs() < 1e-12);
    }
    // Of 20 intervals of 95 %, fewer than 15 hold the truth in 3 of 10,000 trials.
    assert!([decided, doubted, paired].iter().all(|&held| held >= 15), "{decided} {doubted} {paired}");
    assert!(against <= 8, "{against}");
}

#[test]
fn pictures_that_hold_the_noise_of_a_world_are_decided_as_its_own_images_are() {
    let noisy = Preprocessing::Gaussian { std: SCALE };
    let error = |how| {
        let part = TestPart { images: nature_in(noisy, 4000, APART, 0.5, 6), is_part: true, how };
        compare(&world(noisy), "no weights", Taken { part, notes: Vec::new() }, &spec(6, None), &mut silent()).unwrap()
    };
    let once = error(Dequantisation::Levels);
    assert!(four_errors(&once, midpoint_error(APART)), "{:?}", once.decision_error);
    // As much noise again as the classes are wide.
    let twice = error(Dequantisation::Seeded(Seed(6)));
    assert!(four_errors(&twice, midpoint_error(APART / 2f64.sqrt())), "{:?}", twice.decision_error);
}

#[test]
fn images_that_show_no_doubt_do_not_contradict_a_world_with_some() {
    let one = found(nature(100, 4.0 * APART, 0.5, 1), true, &spec(1, None)).unwrap();
    // The rule of three: 3 of 100 images may be in doubt, or missed, and none be seen.
    let Estimate { value, interval } = one.surplus;
    assert!(value.abs() < 1e-3 && (interval.low + 0.03).abs() < 2e-3 && interval.high < 0.035, "{:?}", one.surplus);
    assert!(!kinds(&one).contains(&Kind::DoubtsTooMuch), "{:?}", one.findings);
}

#[test]
fn a_world_harder_than_nature_is_told_that_its_error_is_none_of_nature() {
    let one = found(nature(3000, 2.0 * APART, 0.5, 1), true, &spec(1, Some(0.004))).unwrap();
    // The midpoint stays nature's best rule: what it errs is nature's Bayes error.
    assert!(four_errors(&one, midpoint_error(2.0 * APART)), "{:?}", one.decision_error);
    assert!(one.decision_error.interval.high < 0.2 * one.of_the_world().value);
    let kinds = kinds(&one);
    for kind in [Kind::WorldAboveDecision, Kind::DoubtsTooMuch, Kind::PublishedBelowWorld] {
        assert!(kinds.contains(&kind), "{kind:?} is not among {kinds:?}");
    }
    assert!(contradicted(&one.findings) && one.ece.interval.low > 0.0);
    let last = one.findings.last().unwrap();
    assert!(last.kind == Kind::Verdict && last.sentence.contains("no Bayes error of nature"), "{last:?}");
}

#[test]
fn a_world_easier_than_nature_is_told_so_and_other_class_shares_are_named() {
    let one = found(nature(3000, 0.5 * APART, 0.5, 2), true, &spec(2, Some(0.3))).unwrap();
    assert!(four_errors(&one, midpoint_error(0.5 * APART)), "{:?}", one.decision_error);
    let of_easier = kinds(&one);
    for kind in [Kind::WorldBelowDecision, Kind::DoubtsTooLittle] {
        assert!(of_easier.contains(&kind), "{kind:?} is not among {of_easier:?}");
    }
    assert!(!of_easier.contains(&Kind::PublishedBelowWorld) && !of_easier.contains(&Kind::OtherClasses));
    let skewed = nature(3000, APART, 0.8, 3);
    let uniform = found(skewed.clone(), true, &spec(3, None)).unwrap();
    assert!((uniform.prior_distance - 0.3).abs() < 0.04 && kinds(&uniform).contains(&Kind::OtherClasses));
    // Shares alone make E and the errors of a perfect world differ: its verdict does not blame what tells classes apart.
    let verdict = &uniform.findings.last().unwrap().sentence;
    assert!(!contradicted(&uniform.findings) || verdict.contains("can be all that makes"), "{verdict}");
    // The prior of the images makes the decisions better, and the bound sharper.
    let asked = RealitySpec { prior: Prior::new(&[0.2, 0.8]).unwrap(), ..spec(3, None) };
    let fitting = found(skewed, true, &asked).unwrap();
    assert!(fitting.decision_error.value < uniform.decision_error.value && fitting.prior_distance < 0.04);
}

#[test]
fn shares_of_classes_are_told_by_a_test_that_knows_how_many_images_there_are() {
    // R: chisq.test(c(30, 20, 50), p = c(.3, .3, .4)): X² = 5.8333, p = 0.05411.
    assert!((chi_squared(&[30, 20, 50], &[0.3, 0.3, 0.4]) - 0.054_114).abs() < 1e-5);
    assert_eq!((chi_squared(&[3, 1], &[1.0, 0.0]), chi_squared(&[4, 0], &[1.0, 0.0])), (0.0, 1.0));
    // Ten classes, a hundred images: a total variation of 0.12 is what chance gives, of a million 0.02 is not.
    assert!(chi_squared(&[13, 7, 12, 8, 13, 7, 12, 8, 13, 7], &[0.1; 10]) > 0.5);
    assert!(
        chi_squared(&[104_000, 96_000, 104_000, 96_000, 104_000, 96_000, 104_000, 96_000, 104_000, 96_000], &[0.1; 10])
            < 1e-9
    );
}

#[test]
fn no_bound_follows_from_training_images_and_nothing_from_images_without_labels() {
    let one = found(nature(200, APART, 0.5, 4), false, &spec(4, None)).unwrap();
    assert!(one.findings[0].sentence.contains("no bound"), "{:?}", one.findings);
    assert!(found(nature(200, APART, 0.5, 4), true, &spec(4, None)).unwrap().findings[0].sentence.contains("at most"));
    // A published classifier is worse, or better, than the decision: no sentence names a bound that was not given.
    let beside = |held_out: bool, published: f64| {
        let one = found(nature(200, APART, 0.5, 4), held_out, &spec(4, Some(published))).unwrap();
        one.findings.into_iter().find(|one| one.kind == Kind::PublishedBesideDecision).unwrap().sentence
    };
    assert!(beside(true, 0.9).contains("the bound above") && !beside(false, 0.9).contains("above"));
    assert!(beside(true, 1e-6).contains("sharper") && !beside(false, 1e-6).contains("sharper"));
    let bare = Dataset { labels: None, ..nature(10, APART, 0.5, 4) };
    assert!(found(bare, true, &spec(4, None)).unwrap_err().to_string().contains("no labels"));
    let three = RealitySpec { prior: Prior::uniform(3), ..spec(4, None) };
    assert!(found(nature(10, APART, 0.5, 4), true, &three).unwrap_err().to_string().contains("3 entries"));
    assert!(spec(4, Some(1.2)).validate().is_err());
}
