//! Against numbers worked by hand, a count over all pairs, and worlds where the answer is known.

use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::measure::student_mean;
use crate::units::Seed;

const ONCE: [u16; 10] = [1; 10];

/// Values with and without ties.
const X: [f64; 10] = [1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0, 6.0, 7.0];
const Y: [f64; 10] = [2.0, 1.0, 3.0, 3.0, 5.0, 4.0, 4.0, 7.0, 6.0, 6.0];

fn normals(seed: u64, count: usize) -> Vec<f64> {
    let mut rng = Seed(seed).rng(0);
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// τ_b by its definition, over all pairs of a list with every image as often as drawn.
fn kendall_of_pairs(x: &[f64], y: &[f64], counts: &[u16]) -> f64 {
    let list: Vec<usize> = (0..x.len()).flat_map(|i| std::iter::repeat_n(i, usize::from(counts[i]))).collect();
    let sign = |d: f64| if d == 0.0 { 0.0 } else { d.signum() };
    let (mut net, mut of_x, mut of_y) = (0.0, 0.0, 0.0);
    for (at, &i) in list.iter().enumerate() {
        for &j in &list[..at] {
            let (a, b) = (sign(x[i] - x[j]), sign(y[i] - y[j]));
            net += a * b;
            of_x += a * a;
            of_y += b * b;
        }
    }
    net / f64::sqrt(of_x * of_y)
}

/// Pearson's correlation of mean ranks, each counted over the whole list.
fn spearman_of_pairs(x: &[f64], y: &[f64], counts: &[u16]) -> f64 {
    let list: Vec<usize> = (0..x.len()).flat_map(|i| std::iter::repeat_n(i, usize::from(counts[i]))).collect();
    let ranks = |v: &[f64]| -> Vec<f64> {
        let below = |i: usize| list.iter().filter(|&&j| v[j] < v[i]).count() as f64;
        let equal = |i: usize| list.iter().filter(|&&j| v[j] == v[i]).count() as f64;
        list.iter().map(|&i| below(i) + (equal(i) + 1.0) / 2.0).collect()
    };
    let (a, b) = (ranks(x), ranks(y));
    let centre = (list.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - centre) * (b - centre)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

#[test]
fn ranks_by_hand() {
    // Without ties: ρ = 1 − 6 Σ d² / n(n² − 1) = 1 − 6·4/(5·24); of ten pairs two are discordant.
    let ranks = Ranks::new(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    let pair = Pair::new(&ranks, Ranks::new(&[2.0, 1.0, 4.0, 3.0, 5.0]));
    assert!((pair.spearman(&[1; 5]) - 0.8).abs() < 1e-15);
    assert!((pair.kendall(&[1; 5]) - 0.6).abs() < 1e-15);
    // Ties in x: ranks 1.5, 1.5, 3 against 1, 2, 3: ρ = 1.5/√(1.5·2); τ_b = 2/√(2·3).
    let ranks = Ranks::new(&[0.0, -0.0, 3.0]);
    let pair = Pair::new(&ranks, Ranks::new(&[1.0, 2.0, 3.0]));
    assert!((pair.spearman(&[1; 3]) - 0.75f64.sqrt()).abs() < 1e-15);
    assert!((pair.kendall(&[1; 3]) - 2.0 / 6f64.sqrt()).abs() < 1e-15);
    // Positives 3 and 2 against 1, 2, 0: five pairs won, one tied, of six.
    let ranks = Ranks::new(&[3.0, 2.0, 1.0, 2.0, 0.0]);
    let positive = [true, true, false, false, false];
    assert!((ranks.auroc(&positive, &[1; 5]) - 5.5 / 6.0).abs() < 1e-15);
    // The first drawn twice, the last not at all: 3 3 2 against 1 2: five won, one tied, of six.
    assert!((ranks.auroc(&positive, &[2, 1, 1, 1, 0]) - 5.5 / 6.0).abs() < 1e-15);
}

#[test]
fn ranks_of_drawn_images_are_those_of_the_drawn_list() {
    let ranks = Ranks::new(&X);
    let pair = Pair::new(&ranks, Ranks::new(&Y));
    for counts in [ONCE, [2, 0, 1, 1, 0, 3, 1, 0, 1, 1], [0, 0, 0, 5, 0, 0, 4, 0, 0, 1]] {
        assert!((pair.kendall(&counts) - kendall_of_pairs(&X, &Y, &counts)).abs() < 1e-14, "{counts:?}");
        assert!((pair.spearman(&counts) - spearman_of_pairs(&X, &Y, &counts)).abs() < 1e-14, "{counts:?}");
    }
    let rounded = |seed| normals(seed, 300).iter().map(|x| (x * 5.0).round()).collect::<Vec<f64>>();
    let (x, y) = (rounded(1), rounded(2));
    let ranks = Ranks::new(&x);
    let kendall = Pair::new(&ranks, Ranks::new(&y)).kendall(&[1; 300]);
    assert!((kendall - kendall_of_pairs(&x, &y, &[1; 300])).abs() < 1e-14);
}

#[test]
fn correlated_normals_have_their_known_rank_correlations() {
    // ρ_S = 6/π asin(r/2), τ = 2/π asin(r) (Kruskal 1958): within three standard errors.
    let (n, r) = (4000, 0.6f64);
    let (x, noise) = (normals(3, n), normals(4, n));
    let y: Vec<f64> = x.iter().zip(noise).map(|(x, e)| r * x + (1.0 - r * r).sqrt() * e).collect();
    let truth = Truth { aleatoric: &y, epistemic: &y };
    let scored = grade_score(Score::VariationRatio, &x, truth, &Bootstrap::new(Seed(5))).unwrap();
    let pi = std::f64::consts::PI;
    for (got, exact) in
        [(scored.epistemic.spearman, 6.0 / pi * (r / 2.0).asin()), (scored.epistemic.kendall, 2.0 / pi * r.asin())]
    {
        let got = got.unwrap();
        let width = got.interval.high - got.interval.low;
        assert!((got.value - exact).abs() < 0.77 * width && width < 0.05, "{got:?} {exact}");
    }
    assert_eq!(scored.aleatoric, scored.epistemic);
    assert_eq!(scored.signed_error, None);
}

#[test]
fn intervals_of_rank_correlations_cover_them() {
    let (n, trials, r) = (100, 200u64, 0.7f64);
    let exact = 6.0 / std::f64::consts::PI * (r / 2.0).asin();
    let covered = |trial: &u64| {
        let (x, noise) = (normals(1000 + trial, n), normals(9000 + trial, n));
        let y: Vec<f64> = x.iter().zip(noise).map(|(x, e)| r * x + (1.0 - r * r).sqrt() * e).collect();
        let truth = Truth { aleatoric: &y, epistemic: &y };
        let bootstrap = Bootstrap::with_replicates(Seed(*trial), 400).unwrap();
        let scored = grade_score(Score::OneMinusConfidence, &x, truth, &bootstrap).unwrap();
        scored.aleatoric.spearman.unwrap().interval.contains(exact)
    };
    let share = (0..trials).filter(covered).count() as f64 / trials as f64;
    println!("coverage {share}");
    assert!(share >= 0.90, "{share}");
}

#[test]
fn few_images_in_perfect_order_leave_room_for_others() {
    let scored = |n: usize, r: f64, trial: u64| {
        let (x, noise) = (normals(3000 + trial, n), normals(5000 + trial, n));
        let y: Vec<f64> = x.iter().zip(noise).map(|(x, e)| r * x + (1.0 - r * r).sqrt() * e).collect();
        let bootstrap = Bootstrap::with_replicates(Seed(trial), 200).unwrap();
        grade_score(Score::Given, &x, Truth { aleatoric: &y, epistemic: &y }, &bootstrap).unwrap().epistemic
    };
    let two = scored(2, 0.9, 1);
    for found in [two.spearman, two.kendall] {
        assert_eq!(found.unwrap().interval, Interval { low: -1.0, high: 1.0 });
    }
    // BC alone covers half of Spearman's and Kendall's of five images, and four fifths of eight.
    let (trials, r, pi) = (100u64, 0.98f64, std::f64::consts::PI);
    let exact = [6.0 / pi * (r / 2.0).asin(), 2.0 / pi * r.asin()];
    for n in [5, 8] {
        let covers = |trial: &u64| {
            let found = scored(n, r, *trial);
            [found.spearman, found.kendall].iter().zip(exact).all(|(one, exact)| one.unwrap().interval.contains(exact))
        };
        let covered = (0..trials).filter(covers).count();
        assert!(covered >= 93, "{n} images: {covered} of {trials}");
    }
}

#[test]
fn intervals_of_areas_hold_them_although_few_are_positive() {
    // Scores of correlation 0.97 with log KL: the area for the top tenth is 0.989 (of 400,000 images). BC alone: 73 %.
    let (n, trials, r, exact) = (50, 100u64, 0.97f64, 0.989);
    let covered = |trial: &u64| {
        let (x, noise) = (normals(2000 + trial, n), normals(7000 + trial, n));
        let y: Vec<f64> = x.iter().zip(noise).map(|(x, e)| r * x + (1.0 - r * r).sqrt() * e).collect();
        let kl: Vec<f64> = x.iter().map(|x| x.exp()).collect();
        let truth = Truth { aleatoric: &kl, epistemic: &kl };
        let bootstrap = Bootstrap::with_replicates(Seed(*trial), 200).unwrap();
        let area = grade_score(Score::Given, &y, truth, &bootstrap).unwrap().auroc.unwrap();
        area.interval.contains(exact) && area.interval.high <= 1.0
    };
    let share = (0..trials).filter(covered).count() as f64 / trials as f64;
    println!("coverage {share}");
    assert!(share >= 0.95, "{share}");
}

#[test]
fn a_perfect_score_is_perfect_and_its_offset_is_found() {
    let kl: Vec<f64> = normals(6, 500).iter().map(|x| x * x).collect();
    let aleatoric = vec![0.5; 500];
    let values: Vec<f64> = kl.iter().map(|k| k + 0.25).collect();
    let truth = Truth { aleatoric: &aleatoric, epistemic: &kl };
    let scored = grade_score(Score::MutualInformation, &values, truth, &Bootstrap::new(Seed(7))).unwrap();
    for perfect in [scored.epistemic.spearman, scored.epistemic.kendall] {
        let perfect = perfect.unwrap();
        // Of all images hardly any can be out of order.
        assert!((perfect.value - 1.0).abs() < 1e-12 && perfect.interval.high >= perfect.value, "{perfect:?}");
        assert!((0.997..0.998).contains(&perfect.interval.low), "{perfect:?}");
    }
    // Fifty positives above all others leave room for some that are not.
    let auroc = scored.auroc.unwrap();
    assert!(
        auroc.value == 1.0 && (auroc.interval.low - 0.97838).abs() < 1e-5 && auroc.interval.high == 1.0,
        "{auroc:?}"
    );
    assert!((scored.signed_error.unwrap().value - 0.25).abs() < 1e-12);
    // All images are equally aleatoric: nothing to correlate with.
    assert_eq!(scored.aleatoric, Agreement { spearman: None, kendall: None });
    let total = grade_score(Score::PredictiveEntropy, &values, truth, &Bootstrap::new(Seed(7))).unwrap();
    assert!((total.signed_error.unwrap().value + 0.25).abs() < 1e-12);
}

#[test]
fn a_score_that_knows_nothing_finds_nothing() {
    let (kl, values) = (normals(8, 3000), normals(9, 3000));
    let truth = Truth { aleatoric: &kl, epistemic: &kl };
    let scored = grade_score(Score::SoftmaxEntropy, &values, truth, &Bootstrap::new(Seed(10))).unwrap();
    let auroc = scored.auroc.unwrap();
    // σ of the AUROC of 300 among 2,700: √((n + 1) / 12 n₁ n₀) = 0.0176.
    assert!((auroc.value - 0.5).abs() < 3.0 * 0.0176, "{auroc:?}");
    let half = (auroc.interval.high - auroc.interval.low) / 2.0;
    assert!((half / (1.96 * 0.0176) - 1.0).abs() < 0.15, "{auroc:?}");
    let errors: Vec<f64> = values.iter().zip(&kl).map(|(v, k)| v - k).collect();
    let (error, width) = student_mean(&errors);
    let signed = scored.signed_error.unwrap();
    assert!((signed.value - error).abs() < 1e-12 && (signed.interval.high - error - width).abs() < 0.1 * width);
}

#[test]
fn the_top_holds_a_tenth_and_its_ties() {
    assert_eq!(top(&X).iter().filter(|t| **t).count(), 1);
    assert_eq!(top(&[0.0, 1.0, 1.0]), [false, true, true]);
    assert_eq!(top(&[1.0; 4]), [true; 4]);
    // 21 images: a tenth is 2.1, and 3 are taken.
    let rising: Vec<f64> = (0..21).map(f64::from).collect();
    assert_eq!(top(&rising).iter().filter(|t| **t).count(), 3);
}

#[test]
fn a_kl_that_is_rounding_has_no_order() {
    // q = p but for the last bits, the more of them the larger the doubt.
    let doubt: Vec<f64> = normals(12, 100).iter().map(|x| x.abs()).collect();
    let kl: Vec<f64> = doubt.iter().map(|doubt| 1e-15 * doubt).collect();
    let truth = Truth { aleatoric: &doubt, epistemic: &kl };
    let scored = grade_score(Score::SoftmaxEntropy, &doubt, truth, &Bootstrap::new(Seed(13))).unwrap();
    assert_eq!((scored.epistemic.spearman, scored.epistemic.kendall, scored.auroc), (None, None, None));
    assert!(scored.aleatoric.spearman.is_some());
}

#[test]
fn what_cannot_be_graded_says_why() {
    let bootstrap = Bootstrap::new(Seed(11));
    let refused = |values: &[f64], aleatoric: &[f64], epistemic: &[f64]| {
        let truth = Truth { aleatoric, epistemic };
        grade_score(Score::VariationRatio, values, truth, &bootstrap).unwrap_err().to_string()
    };
    assert!(refused(&[0.0; 3], &[0.0; 2], &[0.0; 3]).contains("3 scores, 2 aleatoric"));
    assert!(refused(&[0.0], &[0.0], &[0.0]).contains("two or more"));
    assert!(refused(&[0.0, f64::NAN], &[0.0; 2], &[0.0; 2]).contains("image 1: its variation-ratio is NaN"));
    // Everything equal: no statistic, and no error.
    let truth = Truth { aleatoric: &[1.0; 5], epistemic: &[0.0; 5] };
    let scored = grade_score(Score::MutualInformation, &[0.5; 5], truth, &bootstrap).unwrap();
    assert_eq!((scored.epistemic.kendall, scored.auroc), (None, None));
    assert!((scored.signed_error.unwrap().value - 0.5).abs() < 1e-15);
}

#[test]
fn names_are_what_serde_writes() {
    for score in Score::ALL {
        assert_eq!(serde_json::to_string(&score).unwrap(), format!("\"{}\"", score.name()));
    }
}
