//! Laws of runs whose KL follow a known law.

use super::*;
use crate::flow::Precision;
use crate::measure::{Interval, Variant};

/// A run of N images, as a file says it.
fn spec(train_images: Option<u64>, seed: u64) -> ExternalSpec {
    let trained = train_images.map_or_else(String::new, |images| format!("train_images = {images}\n"));
    let text = format!(
        "name = 'theirs'\n[external]\nformat = 1\npredictions = 'logits'\n{trained}[world]\noracle = 'mnist'\nweights_sha256 = '0123'\n\
         tau = 1.0\nsmoothing = 1.0\nprior = [0.5, 0.5]\n[test]\nimages = 3\nseed = {seed}\nclasses = ['cat', 'dog']\n\
         shape = {{ channels = 1, height = 2, width = 2 }}\n[test.files]\n"
    );
    toml::from_str(&text).unwrap()
}

fn about(value: f64, relative: f64) -> Estimate {
    Estimate { value, interval: Interval { low: value * (1.0 - relative), high: value * (1.0 + relative) } }
}

fn step(step: u64, kl: f64, relative: f64) -> StepFigures {
    let zero = about(0.25, 0.1);
    let (cross_entropy, epistemic) = (about(0.25 + kl, relative), about(kl, relative));
    StepFigures {
        step,
        epoch: None,
        images: None,
        seconds: None,
        train_loss: None,
        cross_entropy,
        aleatoric: zero,
        epistemic,
        nll: cross_entropy,
        error: zero,
        expected_error: zero,
        bayes_error: zero,
        ece: 0.1,
        exact_calibration_error: 0.1,
        zeros: 0,
        label_chance: 1.0,
    }
}

/// The law of runs: N, and KL of their best step.
fn law(runs: &[(u64, f64)]) -> Result<RunLaw> {
    let specs: Vec<ExternalSpec> = runs.iter().map(|(n, _)| spec(Some(*n), 0)).collect();
    let best: Vec<StepFigures> = runs.iter().map(|(n, kl)| step(*n, *kl, 0.05)).collect();
    let place = Path::new("run");
    let runs = specs.iter().zip(&best).map(|(spec, best)| LawRun { folder: place, spec, best: Some(best) });
    RunLaw::of(&runs.collect::<Vec<_>>(), None)
}

#[test]
fn the_exponent_of_a_known_law_is_recovered_in_whatever_order() {
    for alpha in [0.2, 0.5, 1.1] {
        let mut runs: Vec<(u64, f64)> = [3200, 100, 800, 400].map(|n| (n, 3.0 * (n as f64).powf(-alpha))).to_vec();
        for _ in 0..2 {
            let law = law(&runs).unwrap();
            let fit = law.fits.law();
            assert_eq!(fit.variant, Variant::Pure);
            assert!((fit.alpha.value - alpha).abs() < 1e-6 && (fit.a.value - 3.0).abs() < 1e-4, "{alpha}: {fit:?}");
            // Nothing scatters, and errors that all runs share leave α alone.
            let Interval { low, high } = fit.alpha.interval;
            assert!(low <= alpha + 1e-9 && high >= alpha - 1e-9 && high - low < 1e-6, "{low} to {high}");
            // The test images move all runs together: a and the band have their error, 5 % or so.
            let band = law.fits.band(400.0);
            assert!(band.low < 0.97 * fit.value(400.0) && band.high > 1.03 * fit.value(400.0), "{band:?}");
            let held = law.hold_out.unwrap();
            let off = held.forecast.value / held.came.value - 1.0;
            assert!(held.n == 3200.0 && off.abs() < 1e-6, "{held:?}");
            runs.reverse();
        }
    }
}

#[test]
fn scatter_over_seeds_widens_the_interval_which_holds_the_exponent() {
    // Six runs of each N, whose noise has mean 0 at each and is another one at the next.
    let noise = [-0.15, 0.15, -0.05, 0.05, 0.1, -0.1_f64];
    let runs = |scale: f64| -> Vec<(u64, f64)> {
        let of = |(turn, n): (usize, u64)| {
            let mut turned = noise;
            turned.rotate_left(turn);
            turned.map(|noise| (n, 2.0 * (n as f64).powf(-0.7) * (scale * noise).exp()))
        };
        [100, 300, 1000, 3000].into_iter().enumerate().flat_map(of).collect()
    };
    let [little, much] = [0.1, 2.0].map(|scale| law(&runs(scale)).unwrap());
    let width = |law: &RunLaw| law.fits.pure.alpha.interval.high - law.fits.pure.alpha.interval.low;
    assert!((much.fits.pure.alpha.value - 0.7).abs() < 1e-6 && much.fits.pure.alpha.interval.contains(0.7));
    assert!(width(&much) > 5.0 * width(&little), "{} {}", width(&much), width(&little));
    assert_eq!((much.fits.pure.n_seeds, much.fits.pure.n_sizes), (6, 4));
    assert_eq!(much.points.iter().map(|p| p.seed).take(7).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 0]);
}

#[test]
fn what_makes_no_law_is_refused_in_words() {
    let said = |found: Result<RunLaw>| found.map(drop).unwrap_err().to_string();
    assert!(said(law(&[(10, 0.5), (20, 0.4), (20, 0.3)])).contains("at least 3 different numbers"));
    let (one, other, best) = (spec(Some(10), 0), spec(Some(20), 1), step(1, 0.5, 0.1));
    let run = |folder: &'static str, spec, best| LawRun { folder: Path::new(folder), spec, best };
    let why = said(RunLaw::of(&[run("first", &one, Some(&best)), run("second", &other, Some(&best))], None));
    assert!(["first", "second", "the seed of the test images"].iter().all(|words| why.contains(words)), "{why}");
    let mut exacter = spec(Some(20), 0);
    exacter.world.precision = Precision::F64;
    let why = said(RunLaw::of(&[run("first", &one, Some(&best)), run("exacter", &exacter, Some(&best))], None));
    assert!(why.contains("exacter") && why.ends_with("they differ in precision"), "{why}");
    let stream = spec(None, 0);
    let why = said(RunLaw::of(&[run("first", &one, Some(&best)), run("endless", &stream, Some(&best))], None));
    assert!(why.contains("endless") && why.contains("external.train_images"), "{why}");
    let why = said(RunLaw::of(&[run("empty", &one, None)], None));
    assert!(why.contains("empty") && why.contains("no record"), "{why}");
}

#[test]
fn the_figure_has_the_law_and_every_run() {
    let runs: Vec<(u64, f64)> = [100, 200, 400, 800].map(|n| (n, 3.0 / n as f64)).to_vec();
    let law = law(&runs).unwrap();
    let figure = law.figure();
    let points = |name: &str| figure.series.iter().find(|one| one.name == name).map(|one| one.points.len());
    assert_eq!((points("KL"), points("L"), figure.rules.len(), law.tables().len()), (Some(4), Some(4), 1, 2));
    assert!(points("law of KL").is_some() && points("law without the largest N").is_some());
    assert_eq!(law.csv().lines().count(), 5);
}

#[test]
fn a_file_without_a_number_of_training_images_stays_as_it_is() {
    let (stream, counted) = (spec(None, 0), spec(Some(500), 0));
    assert!(!toml::to_string(&stream).unwrap().contains("train_images"));
    assert!(toml::to_string(&counted).unwrap().contains("train_images = 500"));
    let none = spec(Some(0), 0);
    assert!(stream.check().is_ok() && counted.check().is_ok() && none.check().unwrap_err().contains("train_images"));
}
