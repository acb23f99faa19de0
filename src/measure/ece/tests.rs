use rand::RngExt;

use super::*;
use crate::measure::{argmax, log_softmax};
use crate::units::Seed;

/// Confidences and hits of 60 made-up images, which netcal, NumPy and SciPy got too.
fn made_up() -> (Vec<f64>, Vec<f64>) {
    let (mut confidence, mut hit) = (Vec::new(), Vec::new());
    for i in 0..60 {
        let at = |a: f64, b: f64| [0.0, 1.0, 2.0].map(|c| (a * f64::from(i) + b * c).sin());
        let (one, other) = (at(1.3, 2.1), at(7.7, 1.9));
        let log_q = log_softmax(&one.map(|x| 3.0 * x), 3);
        let label = argmax(&[0, 1, 2].map(|k| one[k] + 0.8 * other[k]));
        confidence.push(log_q[argmax(&log_q)].exp());
        hit.push(f64::from(u8::from(argmax(&log_q) == label)));
    }
    (confidence, hit)
}

#[test]
fn estimates_are_those_of_other_programs() {
    let (confidence, hit) = made_up();
    let told = [
        // netcal 1.4.0, ECE(bins).measure(confidence, hit).
        (EceEstimator::Width(5), 0.098_801_155_072_376_41),
        (EceEstimator::Width(15), 0.109_522_528_597_054_89),
        (EceEstimator::Width(100), 0.160_767_435_206_812),
        // NumPy and SciPy, line by line after the papers.
        (EceEstimator::Mass(5), 0.108_269_777_272_586_66),
        (EceEstimator::Mass(15), 0.151_449_423_175_214_45),
        (EceEstimator::Debiased(5), 0.089_194_706_743_865_23),
        (EceEstimator::Debiased(15), 0.116_764_319_759_791_57),
        (EceEstimator::Squares(5), 0.001_767_492_615_660_157_3_f64.sqrt()),
        (EceEstimator::Squares(15), 0.003_000_485_619_963_851_f64.sqrt()),
        (EceEstimator::Kernel, 0.084_246_476_575_939_91),
    ];
    for (estimator, value) in told {
        let found = estimator.estimate(&confidence, &hit).unwrap();
        assert!((found - value).abs() < 1e-9, "{}: {found}, not {value}", estimator.label());
    }
    assert!(EceEstimator::Mass(100).estimate(&confidence, &hit).is_err());
    assert!(EceEstimator::Width(5).estimate(&confidence, &hit[1..]).is_err());
}

/// A classifier that is right with probability c − 0.2 (1 − c) at confidence c, uniform in [½, 1]:
/// its error 0.2 (1 − c) is 0.05 on average, and 0.2·√(1/12) in the root of the mean square. The
/// probability of each image scatters around it.
fn overconfident(n: usize, seed: u64) -> [Vec<f64>; 3] {
    let mut rng = Seed(seed).rng(0);
    let mut all = [(); 3].map(|()| Vec::with_capacity(n));
    for i in 0..n {
        let c = 0.5 + 0.5 * (i as f64 + 0.5) / n as f64;
        let right = (c - 0.2 * (1.0 - c)) + 0.1 * (rng.random::<f64>() - 0.5) * (1.0 - c);
        let hit = f64::from(u8::from(rng.random::<f64>() < right));
        all.iter_mut().zip([c, right, hit]).for_each(|(all, value)| all.push(value));
    }
    all
}

#[test]
fn the_exact_value_is_the_closed_form_and_labels_bias_fine_bins_upwards() {
    let [confidence, right, _] = overconfident(4000, 1);
    let exact = exact_calibration_error(&confidence, &right, Norm::Absolute).unwrap();
    let square = exact_calibration_error(&confidence, &right, Norm::Square).unwrap();
    assert!((exact - 0.05).abs() < 5e-4 && (square - 0.2 / 12f64.sqrt()).abs() < 5e-4, "{exact} {square}");
    let draws = 100_u64;
    let mean = |estimator: EceEstimator| {
        let one = |seed| {
            let [confidence, _, hit] = overconfident(300, 100 + seed);
            estimator.estimate(&confidence, &hit).unwrap()
        };
        (0..draws).map(one).sum::<f64>() / draws as f64
    };
    let [coarse, fine, corrected] =
        [EceEstimator::Mass(5), EceEstimator::Mass(100), EceEstimator::Debiased(15)].map(mean);
    let raw = mean(EceEstimator::Mass(15));
    assert!(fine > coarse + 0.1 && fine > exact + 0.1, "{coarse} {fine}");
    assert!((corrected - exact).abs() < 0.5 * (raw - exact), "{raw} {corrected}");
}
