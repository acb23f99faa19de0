//! No alarm over honest models; alarms over leaks and mixed-up rows and columns, also small ones.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

use super::order::Rearranged;
use super::*;
use crate::judge::tests::{redraw, toy};
use crate::measure::log_softmax;

fn examined(truth: &Truth, log_q: &[f64]) -> Examined {
    let mut images = PerImage::new(truth.classes).unwrap();
    images.extend(&truth.posterior, log_q, &truth.labels).unwrap();
    examine(truth, &LabelCheck::of(truth), log_q, &images, Seed(3), &mut || Ok(())).unwrap()
}

fn kinds(examined: &Examined) -> Vec<AlarmKind> {
    examined.alarms.iter().map(|alarm| alarm.kind).collect()
}

/// A model that learned: log p at `scale` with normal errors of `noise` and class biases.
fn learned(truth: &Truth, scale: f64, noise: f64, seed: Seed) -> Vec<f64> {
    let (mut rng, k) = (seed.rng(0), truth.classes);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let bias: Vec<f64> = (0..k).map(|_| noise * normal()).collect();
    let off = |(at, p): (usize, &f64)| scale * p.ln() + bias[at % k] + noise * normal();
    log_softmax(&truth.posterior.iter().enumerate().map(off).collect::<Vec<_>>(), k)
}

/// The same images drawn again with replacement, with new labels.
fn resampled(truth: &Truth, seed: Seed) -> Truth {
    let mut rng = seed.rng(0);
    let mut again = truth.clone();
    let k = truth.classes;
    for i in 0..truth.len() {
        let from = rng.random_range(0..truth.len());
        again.posterior[i * k..(i + 1) * k].copy_from_slice(truth.row(from));
    }
    redraw(&mut again, seed.split("labels"));
    again
}

/// A model that memorised the labels of a share of the images.
fn leaked(truth: &Truth, honest: &[f64], share: f64, seed: Seed) -> Vec<f64> {
    let (mut rng, k) = (seed.rng(0), truth.classes);
    let mut log_q = honest.to_vec();
    for (i, &label) in truth.labels.iter().enumerate() {
        if rng.random::<f64>() < share {
            let row = log_q[i * k..(i + 1) * k].iter_mut().enumerate();
            row.for_each(|(y, value)| *value = if y == label { 0.99f64.ln() } else { (0.01 / (k - 1) as f64).ln() });
        }
    }
    log_q
}

/// Classes around −1 and 1 with the deviation τ: the same draws have the same labels at every τ.
#[test]
fn predictions_for_another_export_of_the_same_seed_are_among_the_causes() {
    let (mut truth, mut rng) = (toy(1000, 2, 1.0, Seed(40)), Seed(41).rng(0));
    let mut sharper = Vec::new();
    for i in 0..truth.len() {
        let (label, normal): (usize, f64) = (rng.random_range(0..2), StandardNormal.sample(&mut rng));
        let log_posterior = |tau: f64| {
            let x = [-1.0, 1.0][label] + tau * normal;
            log_softmax(&[-x / tau.powi(2), x / tau.powi(2)], 2)
        };
        truth.labels[i] = label;
        truth.posterior[2 * i..2 * i + 2].iter_mut().zip(log_posterior(1.5)).for_each(|(p, log_p)| *p = log_p.exp());
        sharper.extend(log_posterior(0.5));
    }
    let found = examined(&truth, &sharper);
    for kind in [AlarmKind::TooManyHits, AlarmKind::LabelsTooLikely] {
        let alarm = found.alarms.iter().find(|alarm| alarm.kind == kind).unwrap();
        assert!(alarm.message.contains("another export of the same seed"), "{}", alarm.message);
    }
}

#[test]
fn a_hundred_honest_models_raise_no_alarm() {
    let mut alarms = Vec::new();
    for trial in 0..100u64 {
        let seed = Seed(trial);
        let (n, k) = ([300, 1000, 3000][trial as usize % 3], [2, 5, 10][trial as usize / 3 % 3]);
        let truth = resampled(&toy(n, k, [0.5, 1.0, 2.5][trial as usize / 9 % 3], seed), seed.split("again"));
        // Well trained, under-trained, over-confident, and one that knows next to nothing.
        let (scale, noise) = [(1.0, 0.05), (0.5, 0.3), (3.0, 1.0), (0.1, 0.1), (1.0, 0.5)][trial as usize % 5];
        let log_q = learned(&truth, scale, noise, seed.split("model"));
        alarms.extend(examined(&truth, &log_q).alarms.into_iter().map(|alarm| (trial, alarm.message)));
    }
    assert!(alarms.is_empty(), "{alarms:?}");
}

#[test]
fn constant_and_saturated_models_raise_no_alarm() {
    let truth = toy(2000, 10, 1.5, Seed(5));
    let constant = vec![0.1f64.ln(); 20_000];
    assert_eq!(kinds(&examined(&truth, &constant)), []);
    // Almost one-hot, as a network that was trained for ever.
    let hot = log_softmax(&learned(&truth, 40.0, 5.0, Seed(6)), 10);
    let hot: Vec<f64> = hot.iter().map(|l| l.max(f64::from(f32::MIN_POSITIVE).ln())).collect();
    assert_eq!(kinds(&examined(&truth, &hot)), []);
    // A world that is certain of everything: right answers are no leak.
    let certain = toy(2000, 10, 60.0, Seed(7));
    assert_eq!(kinds(&examined(&certain, &learned(&certain, 0.5, 0.5, Seed(8)))), []);
}

#[test]
fn p_values_of_hits_are_valid() {
    let (mut truth, trials) = (toy(400, 4, 1.5, Seed(11)), 2000u64);
    let log_q = learned(&truth, 0.8, 0.5, Seed(12));
    let mut low = 0;
    for trial in 0..trials {
        redraw(&mut truth, Seed(13 + trial));
        let mut images = PerImage::new(4).unwrap();
        images.extend(&truth.posterior, &log_q, &truth.labels).unwrap();
        let hits = (0..400).filter(|&i| images.hit(i)).count();
        low += u32::from(hits::upper_tail(&images.expected, hits) <= 0.05);
    }
    let share = f64::from(low) / trials as f64;
    println!("p-values of hits at most 0.05: {share}");
    assert!(share < 0.065 && share > 0.02, "{share}");
}

/// Shares of models with leaked labels that their hits and their likelihood give away.
fn found(n: usize, share: f64) -> [f64; 2] {
    let trials = 20u64;
    let mut counts = [0.0; 2];
    for trial in 0..trials {
        let truth = toy(n, 10, 1.5, Seed(trial).split("world"));
        let honest = learned(&truth, 1.2, 0.5, Seed(trial));
        let log_q = leaked(&truth, &honest, share, Seed(trial).split("leak"));
        let mut images = PerImage::new(10).unwrap();
        images.extend(&truth.posterior, &log_q, &truth.labels).unwrap();
        let hit = (0..n).filter(|&i| images.hit(i)).count();
        let p_values = [
            hits::upper_tail(&images.expected, hit),
            likelihood::test(&truth.posterior, &log_q, &truth.labels, 10).p_value,
        ];
        counts.iter_mut().zip(p_values).for_each(|(count, p)| *count += f64::from(u8::from(p < LEVEL)));
    }
    counts.map(|count| count / trials as f64)
}

#[test]
fn leaked_labels_are_found() {
    for (n, shares) in [(1000, [0.0, 0.05, 0.10, 0.15]), (10_000, [0.0, 0.01, 0.02, 0.05])] {
        let all = shares.map(|share| found(n, share));
        for (share, [hits, likelihood]) in shares.iter().zip(all) {
            println!("{n} images, {share} of the labels leaked: found by hits {hits}, by likelihood {likelihood}");
        }
        assert_eq!((all[0], all[3]), ([0.0, 0.0], [1.0, 1.0]), "{n} images");
        assert!(all[2][1] == 1.0, "the smaller leak");
    }
    let truth = toy(2000, 10, 1.5, Seed(61));
    let log_q = leaked(&truth, &learned(&truth, 1.2, 0.5, Seed(62)), 0.15, Seed(63));
    assert_eq!(kinds(&examined(&truth, &log_q)), [AlarmKind::TooManyHits, AlarmKind::LabelsTooLikely]);
    // All of them: both p-values are 0 in 64 bits, and no p-value is.
    let all = examined(&truth, &leaked(&truth, &log_q, 1.0, Seed(64)));
    for alarm in &all.alarms[..2] {
        assert!(alarm.message.contains("p < 1.0e-280"), "{}", alarm.message);
    }
}

#[test]
fn known_posteriors_are_found_whole_and_in_part() {
    let truth = toy(5000, 10, 1.5, Seed(21));
    let exact: Vec<f64> = truth.posterior.iter().map(|p| f64::from(*p as f32).ln()).collect();
    let knows = |log_q: &[f64]| {
        let examined = examined(&truth, &log_softmax(log_q, 10));
        kinds(&examined) == [AlarmKind::KnowsPosteriors]
    };
    assert!(knows(&exact));
    let half: Vec<f64> = truth.posterior.iter().map(|p| half::f16::from_f64(*p).to_f64().max(1e-8).ln()).collect();
    assert!(knows(&half), "rounded to float16");
    let honest = learned(&truth, 1.0, 0.2, Seed(22));
    assert!(!knows(&honest));
    for share in [200, 500] {
        let mixed: Vec<f64> =
            (0..honest.len()).map(|at| if at / 10 % share == 0 { exact[at] } else { honest[at] }).collect();
        println!("1 in {share} posteriors copied: {:?}", examined(&truth, &mixed).copied);
        assert!(knows(&mixed), "1 in {share}");
    }
}

#[test]
fn rows_of_other_images_are_found_and_common_orders_named() {
    let truth = toy(600, 5, 1.5, Seed(31));
    let honest = learned(&truth, 1.5, 0.5, Seed(32));
    let rows =
        |order: &[usize]| -> Vec<f64> { order.iter().flat_map(|&i| honest[i * 5..(i + 1) * 5].to_vec()).collect() };
    let mut shuffled: Vec<usize> = (0..600).collect();
    shuffled.shuffle(&mut Seed(33).rng(0));
    let found = examined(&truth, &rows(&shuffled));
    assert_eq!(kinds(&found), [AlarmKind::WrongOrder], "{found:?}");
    assert_eq!(found.order.suggestion, None);
    let mut folders: Vec<usize> = (0..600).collect();
    folders.sort_by_key(|&i| truth.labels[i]);
    let orders: [(Vec<usize>, Rearranged); 4] = [
        (folders, Rearranged::ByClassFolder),
        ((0..600).rev().collect(), Rearranged::Reversed),
        ((0..600).map(|i| (i + 1) % 600).collect(), Rearranged::OneLate),
        ((0..600).map(|i| (i + 599) % 600).collect(), Rearranged::OneEarly),
    ];
    for (order, name) in orders {
        let found = examined(&truth, &rows(&order));
        assert_eq!((kinds(&found), found.order.suggestion), (vec![AlarmKind::WrongOrder], Some(name)));
        assert!(found.alarms[0].message.contains(name.describe()));
    }
}

#[test]
fn columns_of_other_classes_are_found_and_named() {
    let truth = toy(1000, 6, 1.5, Seed(41));
    let honest = learned(&truth, 1.0, 0.3, Seed(42));
    // Column c of the file is class order[c].
    let order = [2, 0, 1, 3, 5, 4];
    let permuted: Vec<f64> = honest.chunks(6).flat_map(|row| order.map(|class| row[class])).collect();
    let found = examined(&truth, &permuted);
    assert_eq!(kinds(&found), [AlarmKind::WrongClasses]);
    assert_eq!(found.classes.column_of, [1, 2, 0, 3, 5, 4]);
    assert!(found.alarms[0].message.contains("column 1 looks like class 0"), "{}", found.alarms[0].message);
    assert_eq!(examined(&truth, &honest).classes.column_of, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn other_class_weights_are_no_other_order() {
    // It knows little, and learned it where the second class was frequent, as the first is here.
    let k = 4;
    let mut truth = toy(1000, k, 0.3, Seed(43));
    let logits: Vec<f64> = truth.posterior.iter().map(|p| p.ln()).collect();
    let with = |scale: f64, prior: [f64; 4]| {
        log_softmax(&logits.iter().enumerate().map(|(at, l)| scale * l + prior[at % k].ln()).collect::<Vec<_>>(), k)
    };
    truth.posterior = with(1.0, [0.1, 0.7, 0.1, 0.1]).into_iter().map(f64::exp).collect();
    redraw(&mut truth, Seed(44));
    let found = examined(&truth, &with(0.8, [0.7, 0.1, 0.1, 0.1]));
    let reweighted = found.classes.reweighted.unwrap();
    assert!(reweighted < 0.01 && found.classes.permuted < 0.5 * found.classes.given, "{:?}", found.classes);
    assert_eq!(kinds(&found), []);
}

#[test]
fn a_model_that_is_sure_of_noise_is_told_apart_as_far_as_can_be() {
    // Sure of a class of chance: rows of other images would look the same, and no usual order is better.
    let truth = toy(600, 5, 1.5, Seed(34));
    let other = toy(600, 5, 6.0, Seed(35));
    let sure: Vec<f64> = other.posterior.iter().map(|p| p.max(1e-30).ln()).collect();
    let found = examined(&truth, &log_softmax(&sure, 5));
    assert_eq!((kinds(&found), found.order.suggestion), (vec![AlarmKind::WrongOrder], None));
    assert!(found.alarms[0].message.contains("or it is sure of what it does not know"), "{}", found.alarms[0].message);
}

#[test]
fn labels_that_are_not_of_the_world_are_said_instead_of_leaks() {
    let mut truth = toy(2000, 5, 1.0, Seed(51));
    let honest = learned(&truth, 1.0, 0.3, Seed(52));
    assert!(LabelCheck::of(&truth).fits());
    // The argmax in place of a draw.
    for i in 0..truth.len() {
        truth.labels[i] = argmax(truth.row(i));
    }
    assert_eq!(kinds(&examined(&truth, &honest)), [AlarmKind::LabelsDoNotFit]);
    truth.labels.fill(0);
    assert_eq!(kinds(&examined(&truth, &honest)), [AlarmKind::LabelsDoNotFit]);
    // So far from the posteriors that the bound underflows to 0, below which no p-value lies.
    truth.labels = (0..truth.len())
        .map(|i| truth.row(i).iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).unwrap().0)
        .collect();
    let found = examined(&truth, &honest);
    assert_eq!(found.alarms[0].p_value, Some(0.0));
    assert!(found.alarms[0].message.contains("(p < 1.0e-280)"), "{}", found.alarms[0].message);
}

/// Each image is of one class, to which q gives 0.9: KL is −ln 0.9.
#[test]
fn few_images_have_their_kl_beside_an_order_of_columns_that_is_not_tested() {
    for n in [1, classes::FEWEST - 1, classes::FEWEST] {
        let p: Vec<f64> = (0..n).flat_map(|i| [(i % 2) as f64, ((i + 1) % 2) as f64]).collect();
        let log_q: Vec<f64> = p.iter().map(|p| (0.8 * p + 0.1).ln()).collect();
        let found = classes::test(&p, &log_q, 2);
        assert!((found.given + 0.9f64.ln()).abs() < 1e-12 && found.given == found.permuted, "{n}: {found:?}");
        assert_eq!(found.tested_on, if n < classes::FEWEST { 0 } else { n / 2 });
        assert_eq!((found.p_value, found.column_of), (1.0, vec![0, 1]));
    }
}
