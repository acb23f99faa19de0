use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};

use super::*;
use crate::measure::log_softmax;
use crate::units::Seed;

fn bootstrap() -> Bootstrap {
    Bootstrap::new(Seed(11))
}

/// A posterior drawn evenly from all of them.
fn posterior(classes: usize, rng: &mut impl Rng) -> Vec<f64> {
    let weights: Vec<f64> = (0..classes).map(|_| Exp1.sample(rng)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

fn draw(p: &[f64], rng: &mut impl Rng) -> usize {
    let mut left: f64 = rng.random();
    p.iter()
        .position(|p| {
            left -= p;
            left < 0.0
        })
        .unwrap_or(p.len() - 1)
}

/// Posteriors, logits of the given spread and labels drawn from the posteriors.
fn random(n: usize, classes: usize, spread: f32, seed: u64) -> (Vec<f64>, Vec<f32>, Vec<usize>) {
    let rng = &mut Seed(seed).rng(0);
    let (mut p, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row = posterior(classes, rng);
        labels.push(draw(&row, rng));
        p.extend(row);
    }
    let logits = (0..n * classes).map(|_| spread * (2.0 * rng.random::<f32>() - 1.0)).collect();
    (p, logits, labels)
}

#[test]
fn two_images_of_two_classes_by_hand() {
    let p = [0.75, 0.25, 0.5, 0.5];
    let q = [0.5f64, 0.5, 0.2, 0.8].map(f64::ln);
    let m = measure(&p, &q, &[0, 0], 2, &bootstrap()).unwrap();
    let ln = f64::ln;
    let entropy = (2.0 * ln(2.0) - 0.75 * ln(3.0) + ln(2.0)) / 2.0;
    let loss = (ln(2.0) - 0.5 * ln(0.16)) / 2.0;
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
    close(m.cross_entropy.value, loss);
    close(m.aleatoric.value, entropy);
    close(m.epistemic.value, loss - entropy);
    close(m.nll.value, (ln(2.0) + ln(5.0)) / 2.0);
    // Decisions 0 (first of equals) and 1.
    close(m.accuracy.value, 0.5);
    close(m.error.value, 0.5);
    close(m.expected_accuracy.value, 0.625);
    close(m.bayes_accuracy.value, 0.625);
    assert_eq!(m.gap.value, 0.0);
    // Bins of 0.5 and of 0.8: |0.5 − 1| and |0.8 − 0|, then |0.5 − 0.75| and |0.8 − 0.5|.
    close(m.ece.value, 0.65);
    close(m.exact_calibration_error.value, 0.275);
    // Resampled, two values reach no further than themselves: from the mean by Student's t of one degree of freedom over
    // 1.96, and √2, times half their difference; KL ends at 0, A at ln 2.
    let difference = -0.5 * ln(0.16) - 0.75 * ln(3.0);
    let half = 12.706_204_736 / 1.959_963_985 * 2f64.sqrt() * difference / 2.0;
    for kl in [m.epistemic, m.per_class[0].epistemic.unwrap()] {
        assert!(kl.interval.low == 0.0 && (kl.interval.high - kl.value - half).abs() < 1e-7, "{kl:?} {half}");
    }
    for a in [m.aleatoric, m.per_class[0].aleatoric.unwrap()] {
        assert!(a.interval.low == 0.0 && (a.interval.high - ln(2.0)).abs() < 1e-14, "{a:?}");
    }
    assert_eq!((m.per_class[0].count, m.per_class[1].count), (2, 0));
    close(m.per_class[0].epistemic.unwrap().value, loss - entropy);
    assert!(m.per_class[1].accuracy.is_none() && m.per_class[1].epistemic.is_none());
}

#[test]
fn the_exact_posterior_has_no_epistemic_part_and_no_gap() {
    let (p, _, labels) = random(300, 7, 1.0, 1);
    let log_q: Vec<f64> = p.iter().map(|p| p.ln()).collect();
    let m = measure(&p, &log_q, &labels, 7, &bootstrap()).unwrap();
    assert!(m.epistemic.value.abs() < 1e-14 && m.epistemic.interval.high < 1e-14, "{:?}", m.epistemic);
    // The rule of three: a classifier that differs on 1 % of all images may show none in 300.
    assert!(m.gap.value == 0.0 && (m.gap.interval.high - 0.01).abs() < 1e-15, "{:?}", m.gap);
    assert!(m.exact_calibration_error.value < 1e-14);
    assert!((m.cross_entropy.value - m.aleatoric.value).abs() < 1e-14);
}

#[test]
fn doubt_that_is_hardly_ever_seen_is_within_the_intervals() {
    const RUNS: u64 = 200;
    let entropy = |p: f64| -(p * p.ln() + (1.0 - p) * (1.0 - p).ln());
    // One image in a hundred is a toss-up. With noisy labels the others are in doubt, too.
    for sure in [1.0 - 1e-9, 0.8] {
        let best = 0.99 * sure + 0.01 * 0.5;
        let aleatoric = 0.99 * entropy(sure) + 0.01 * entropy(0.5);
        let covers = |run: &u64| {
            let mut rng = Seed(*run).rng(0);
            let max = (0..100).map(|_| if rng.random::<f64>() < 0.01 { 0.5 } else { sure });
            let p: Vec<f64> = max.flat_map(|max| [max, 1.0 - max]).collect();
            let log_q: Vec<f64> = p.iter().map(|p| p.ln()).collect();
            let bootstrap = Bootstrap::with_replicates(Seed(*run), 200).unwrap();
            let m = measure(&p, &log_q, &[0; 100], 2, &bootstrap).unwrap();
            let class = m.per_class[0];
            let accuracies = [m.bayes_accuracy, m.expected_accuracy, class.expected_accuracy.unwrap()];
            accuracies.iter().all(|one| one.interval.contains(best))
                && [m.aleatoric, class.aleatoric.unwrap()].iter().all(|one| one.interval.contains(aleatoric))
        };
        let covered = (0..RUNS).filter(covers).count();
        // In 37 % of all sets no image is a toss-up.
        assert!(covered * 100 >= 92 * RUNS as usize, "{sure}: {covered} of {RUNS}");
    }
}

/// Two classes without doubt, of which the second is one image in a hundred, and a classifier that always decides for it.
#[test]
fn a_classifier_that_is_hardly_ever_right_has_intervals_that_hold_the_truth() {
    const RUNS: u64 = 200;
    let of = |classes: &[usize]| {
        let p: Vec<f64> = classes.iter().flat_map(|class| if *class == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
        let mut images = PerImage::new(2).unwrap();
        images.extend(&p, &[0.1f64.ln(), 0.9f64.ln()].repeat(classes.len()), classes).unwrap();
        let doubt = |class: &usize| ImageDoubt { class: *class, of_class: 0.0, of_decision: 1.0 - *class as f64 };
        images.doubts = classes.iter().map(doubt).collect();
        images
    };
    let covers = |run: &u64| {
        let mut rng = Seed(*run).rng(0);
        let images = of(&(0..100).map(|_| usize::from(rng.random::<f64>() < 0.01)).collect::<Vec<_>>());
        let m = images.measured(&Bootstrap::with_replicates(Seed(*run), 200).unwrap()).unwrap();
        let truths = [(m.expected_accuracy, 0.01), (m.gap, 0.99), (m.exact_calibration_error, 0.89)];
        truths.map(|(found, truth)| found.interval.contains(truth))
    };
    let covered: Vec<[bool; 3]> = (0..RUNS).map(|run| covers(&run)).collect();
    // Without images that are right and were not seen: 64 %.
    for at in 0..3 {
        let count = covered.iter().filter(|one| one[at]).count();
        assert!(count * 100 >= 92 * RUNS as usize, "{at}: {count} of {RUNS}");
    }
    let none = of(&[0; 100]);
    assert_eq!((none.in_doubt(), of(&[[0; 99].as_slice(), &[1]].concat()).in_doubt()), ([0, 0], [0, 1]));
    let accuracy = none.measured(&bootstrap()).unwrap().expected_accuracy;
    assert!(accuracy.value == 0.0 && (accuracy.interval.high - 0.03).abs() < 1e-12, "{accuracy:?}");
}

/// Labels of the first class have no noise, those of the second are wrong in three of ten: no image's class is in doubt.
#[test]
fn noise_of_labels_that_is_known_and_shared_doubt_are_no_doubt_that_was_seen() {
    let p: Vec<f64> = (0..100).flat_map(|i| if i % 2 == 0 { [1.0 - 1e-9, 1e-9] } else { [0.3, 0.7] }).collect();
    let mut images = PerImage::new(2).unwrap();
    images.extend(&p, &p.iter().map(|p| p.ln()).collect::<Vec<_>>(), &[0, 1].repeat(50)).unwrap();
    let above = |images: &PerImage| {
        let Estimate { value, interval } = images.measured(&bootstrap()).unwrap().bayes_accuracy.complement();
        [value - interval.low, interval.high - value]
    };
    assert_eq!(images.in_doubt(), [50; 2]);
    let of_noise = above(&images);
    // Nor is doubt that all images of a likeliest class share, as where classes coincide.
    for shared in [[0.25, 0.6], [0.0; 2]] {
        let doubt = |i: usize| ImageDoubt { class: i % 2, of_class: shared[i % 2], of_decision: 0.0 };
        images.doubts = (0..100).map(doubt).collect();
        assert_eq!(images.in_doubt(), [0; 2]);
    }
    // 3 of 100 may be of another kind: 3 % of the way to either end.
    let wider = above(&images);
    assert!((wider[0] - of_noise[0] - 0.03 * 0.15).abs() < 1e-9, "{wider:?} {of_noise:?}");
    assert!((wider[1] - of_noise[1] - 0.03 * 0.85).abs() < 1e-9, "{wider:?} {of_noise:?}");
}

#[test]
fn a_uniform_classifier_loses_log_k() {
    let (p, _, labels) = random(50, 9, 1.0, 2);
    let m = measure(&p, &log_softmax(&[0.25; 450], 9), &labels, 9, &bootstrap()).unwrap();
    assert!((m.cross_entropy.value - 9f64.ln()).abs() < 1e-13 && (m.nll.value - 9f64.ln()).abs() < 1e-13);
    assert!((m.epistemic.value - (9f64.ln() - m.aleatoric.value)).abs() < 1e-13);
    assert!(m.cross_entropy.interval.high - m.cross_entropy.interval.low < 1e-12);
}

#[test]
fn loss_is_aleatoric_plus_epistemic_whatever_the_logits() {
    for (n, classes, spread) in [(500, 2, 1.0), (200, 10, 50.0), (40, 1000, 5.0), (40, 1000, 1e4), (30, 3, 1e38)] {
        let (p, logits, labels) = random(n, classes, spread, 3);
        let stored: Vec<f32> = p.iter().map(|&p| p as f32).collect();
        let m = measure(&stored, &log_softmax(&logits, classes), &labels, classes, &bootstrap()).unwrap();
        assert!(m.identity_error < 1e-12, "K = {classes}, spread {spread}: {:e}", m.identity_error);
        assert!(m.cross_entropy.value.is_finite() && m.epistemic.value > 0.0);
        assert!(m.gap.interval.low >= 0.0 && m.epistemic.interval.low >= 0.0);
        let sum: usize = m.per_class.iter().map(|class| class.count).sum();
        assert_eq!(sum, n);
    }
}

#[test]
fn a_broken_identity_names_both_sides() {
    let (p, logits, labels) = random(4, 3, 1.0, 4);
    let mut images = PerImage::new(3).unwrap();
    images.extend(&p, &log_softmax(&logits, 3), &labels).unwrap();
    images.kl[2] += 1e-3;
    let message = images.measured(&bootstrap()).unwrap_err().to_string();
    assert!(message.contains("cross-entropy") && message.contains("aleatoric") && message.contains("epistemic"));
    assert!(PerImage::new(3).unwrap().measured(&bootstrap()).is_err());
}

#[test]
fn sharpening_a_wrong_answer_costs_more() {
    let p = [0.9, 0.1];
    let loss = |logit: f32| {
        let m = measure(&p, &log_softmax(&[0.0, logit], 2), &[0], 2, &bootstrap()).unwrap();
        (m.epistemic.value, m.aleatoric.value)
    };
    let steps: Vec<(f64, f64)> = [0.0, 1.0, 10.0, 100.0, 1e4].map(loss).to_vec();
    assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 == pair[1].1), "{steps:?}");
}

#[test]
fn the_same_seed_gives_the_same_figures_on_any_number_of_threads() {
    let (p, logits, labels) = random(100, 4, 2.0, 5);
    let log_q = log_softmax(&logits, 4);
    let run = || measure(&p, &log_q, &labels, 4, &bootstrap()).unwrap();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(run(), one.install(run));
    let other = measure(&p, &log_q, &labels, 4, &Bootstrap::new(Seed(12))).unwrap();
    assert_ne!(run().epistemic.interval, other.epistemic.interval);
    let read: Measured = serde_json::from_str(&serde_json::to_string(&run()).unwrap()).unwrap();
    assert_eq!(read, run());
}

#[test]
fn intervals_cover_the_figures_of_the_population() {
    // One test set of 200 against the mean of all, whose error is 14 times smaller.
    let sets: Vec<Measured> = (0..200u64)
        .map(|set| {
            let (p, logits, labels) = random(150, 3, 2.0, 1000 + set);
            let bootstrap = Bootstrap::with_replicates(Seed(set), 400).unwrap();
            measure(&p, &log_softmax(&logits, 3), &labels, 3, &bootstrap).unwrap()
        })
        .collect();
    type Figure = fn(&Measured) -> Estimate;
    let figures: [(&str, Figure); 7] = [
        ("cross-entropy", |m| m.cross_entropy),
        ("aleatoric", |m| m.aleatoric),
        ("epistemic", |m| m.epistemic),
        ("nll", |m| m.nll),
        ("accuracy", |m| m.accuracy),
        ("gap", |m| m.gap),
        ("epistemic of class 1", |m| m.per_class[1].epistemic.unwrap()),
    ];
    for (name, of) in figures {
        let truth = sets.iter().map(|m| of(m).value).sum::<f64>() / sets.len() as f64;
        let inside = sets.iter().filter(|m| of(m).interval.contains(truth)).count() as f64 / sets.len() as f64;
        println!("{name}: {inside}");
        assert!((0.89..=0.99).contains(&inside), "{name}: {inside}");
    }
}
