//! Figures of noisy labels from draws.

use super::*;
use crate::bayes::normal::tail;
use crate::oracle::label_noise::LabelNoise;

#[test]
fn intervals_of_noisy_labels_hold_the_truth() {
    let (tau, noise) = (Tau::new(1.1).unwrap(), LabelNoise::symmetric(0.3).unwrap());
    // Closed forms of E and its slope; a finer interval of A.
    let noisy = classes().with_label_noise(Some(&noise)).unwrap();
    let error = bayes::bayes_error(&noisy, tau, &spec(1e-6), &mut silent()).unwrap().figure.value;
    assert!((error - 0.3 - 0.6 * bayes_error(tau).figure.value).abs() < 1e-12);
    let fine = information(&noisy, tau, &spec(1e-4), &mut silent()).unwrap();
    let slope = derivative(&noisy, tau, &spec(1e-5), &mut silent()).unwrap().value;
    let truths = [("E", error), ("slope", slope), ("A", fine.aleatoric_nats.value)];
    let mut coverage = Coverage::of(truths.map(|(name, truth)| (name.to_owned(), truth)));
    for seed in 0..SEEDS {
        let mut source = source(7000 + seed);
        let mut pool = pool(&mut source, 1.0).with_label_noise(Some(&noise)).unwrap();
        let found = figures_at(&mut pool, tau, true, &exactly(512), &mut silent()).unwrap();
        coverage.add("E", &found.estimate.figure);
        coverage.add("slope", &found.slope.unwrap());
        coverage.add("A", &found.information.aleatoric_nats);
    }
    coverage.check();
}

/// Doubt between two classes says nothing of two others, nor of labels that both of them have.
#[test]
fn doubt_that_a_figure_does_not_know_is_not_doubt_that_was_seen() {
    const FEW_SEEDS: usize = 24;
    // The first two overlap; the others are 6 apart, and far from those.
    let means = [[0.0, 0.0, 0.0], [0.9, 0.0, 0.0], [0.0, 40.0, 0.0], [0.0, 40.0, 6.0]];
    let (rate, kept) = (0.1, 1.0 - 0.1 * 4.0 / 3.0);
    let other = rate / 3.0;
    // E[min(p~_C, p~_D)]/½, where p~ = η/3 + a p.
    let pair = 2.0 * (other + kept * 0.5 * tail(3.0));
    // ½ E[min(4 p~_C, (4/3)(1 − p~_C))], which changes sides where f_D = 3 f_C.
    let (turned, lost) = (tail((18.0 + 3f64.ln()) / 6.0), tail((18.0 - 3f64.ln()) / 6.0));
    let below = other * (turned + 1.0 - lost) + kept * turned;
    let above = (1.0 - other) * (1.0 - turned + lost) - kept * (1.0 - turned);
    let rest = other + 0.5 * below + above / 6.0;
    let merged = LabelNoise::parse("[[1,0,0,0],[1,0,0,0],[0,0,1,0],[0,0,0,1]]").unwrap();
    let mut held = [0; 3];
    let mut add = |at: usize, truth: f64, figure: &Figure| {
        held[at] += usize::from((figure.interval.0..=figure.interval.1).contains(&truth));
    };
    for seed in 0..FEW_SEEDS as u64 {
        let mut source = Gaussians { means, ..source(12_000 + seed) };
        let seed = source.seed;
        let mut noisy = |noise: &LabelNoise, ask: &mut dyn FnMut(&mut Pool<'_>)| {
            let pool = Pool::new(&mut source, Prior::uniform(4), Smoothing::ONE, seed).unwrap();
            ask(&mut pool.with_label_noise(Some(noise)).unwrap());
        };
        noisy(&LabelNoise::symmetric(rate).unwrap(), &mut |pool| {
            let found = hardness_at(pool, Tau::ONE, &exactly(256), &mut silent()).unwrap();
            add(0, pair, &found.pairs[2][3].unwrap());
            add(1, rest, &found.one_vs_rest.iter().find(|one| one.class == 2).unwrap().one_vs_rest);
        });
        noisy(&merged, &mut |pool| {
            let found = figures_at(pool, Tau::ONE, false, &exactly(256), &mut silent()).unwrap();
            add(2, 0.5 * tail(3.0), &found.estimate.figure);
        });
    }
    assert!(held.iter().all(|held| *held >= FEW_SEEDS - 2), "{held:?}");
}

#[test]
fn labels_of_one_class_have_no_order() {
    let one = LabelNoise::matrix(vec![vec![1.0, 0.0, 0.0, 0.0]; 4]).unwrap();
    let mut source = source(5);
    let mut pool = pool(&mut source, 1.0).with_label_noise(Some(&one)).unwrap();
    let why = hardness_at(&mut pool, Tau::ONE, &exactly(64), &mut silent()).unwrap_err();
    assert!(why.to_string().contains("labels of two classes"), "{why}");
}

#[test]
fn symmetric_noise_scales_the_slope_and_leaves_the_temperature() {
    let (tau, target) = (Tau::new(0.6).unwrap(), 0.05);
    let near = tau_of_error(&classes(), target, &spec(1e-5), &mut silent()).unwrap().tau.value;
    let near = Tau::new(0.93 * near).unwrap();
    let same = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    let ask = |noise: Option<&LabelNoise>, target: f64| {
        let mut source = source(11);
        let mut pool = pool(&mut source, 1.0).with_label_noise(noise).unwrap();
        assert!(same(pool.error_of_classes(target), 0.05));
        let slope = figures_at(&mut pool, tau, true, &exactly(512), &mut silent()).unwrap().slope.unwrap();
        let found = tau_by_sampling(&mut pool, target, Some(near), &exactly(1024), &mut silent()).unwrap();
        (slope, found.found.tau)
    };
    let (slope, temperature) = ask(None, target);
    for rate in [0.2, 0.5] {
        // E~ = rate + kept·E of every draw.
        let kept = 1.0 - rate * 4.0 / 3.0;
        let (noisy, found) = ask(Some(&LabelNoise::symmetric(rate).unwrap()), rate + kept * target);
        assert!(same(noisy.value, kept * slope.value), "{noisy:?}, {slope:?}");
        assert!(same(noisy.std_error, kept * slope.std_error), "{noisy:?}, {slope:?}");
        let ends = [(found.interval.0, temperature.interval.0), (found.interval.1, temperature.interval.1)];
        assert!(same(found.value, temperature.value) && ends.iter().all(|(a, b)| same(*a, *b)), "{found:?}");
    }
}

#[test]
fn slopes_of_rare_errors_under_much_noise_hold_the_truth() {
    const FEW_SEEDS: u64 = 8;
    // Six apart from each other.
    let side = 6.0 / 8.0f64.sqrt();
    let means = [[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]];
    let means = means.map(|mean: [f64; 3]| mean.map(|x| side * x));
    let noise = LabelNoise::symmetric(0.5).unwrap();
    let classes = GaussianClasses::new(means.iter().map(|mean| mean.to_vec()).collect(), PRIORS.to_vec()).unwrap();
    let truth = derivative(&classes, Tau::ONE, &spec(1e-5), &mut silent()).unwrap().value / 3.0;
    let mut held = 0;
    for seed in 0..FEW_SEEDS {
        let mut source = Gaussians { means, ..source(9000 + seed) };
        let mut pool = pool(&mut source, 1.0).with_label_noise(Some(&noise)).unwrap();
        let found = figures_at(&mut pool, Tau::ONE, true, &exactly(32_768), &mut silent()).unwrap();
        let slope = found.slope.unwrap();
        assert!((0.49..0.51).contains(&found.estimate.figure.value) && slope.std_error < 0.2 * truth, "{slope:?}");
        held += u64::from((slope.interval.0..=slope.interval.1).contains(&truth));
    }
    // At 95 % each, fewer than six hold it once in 170 times; with the step of the noisy error most would not.
    assert!(held >= 6, "{held} of {FEW_SEEDS}");
}
