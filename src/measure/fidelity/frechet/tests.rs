use super::super::tests::normal;
use super::*;

/// A random rotation [d, d].
fn rotation(seed: u64, dim: usize) -> DMatrix<f64> {
    DMatrix::from_vec(dim, dim, normal(Seed(seed), dim * dim)).qr().q()
}

fn gaussian(mean: Vec<f64>, covariance: &DMatrix<f64>) -> Gaussian {
    Gaussian::new(mean, covariance.as_slice(), None).unwrap()
}

#[test]
fn commuting_covariances_have_a_closed_form() {
    // Σ (√a − √b)² over the common axes, plus the means: also where variances are 0 and far apart.
    let dim = 40;
    let axes = rotation(1, dim);
    let spectrum = |seed: u64, empty: usize| -> Vec<f64> {
        normal(Seed(seed), dim).iter().enumerate().map(|(i, x)| if i < empty { 0.0 } else { (4.0 * x).exp() }).collect()
    };
    for (empty_a, empty_b) in [(0, 0), (10, 0), (5, 25)] {
        let (a, b) = (spectrum(2, empty_a), spectrum(3, empty_b));
        let matrix = |values: &[f64]| {
            let m = &axes * DMatrix::from_diagonal(&values.to_vec().into()) * axes.transpose();
            (&m + m.transpose()) * 0.5
        };
        let (mean_a, mean_b) = (normal(Seed(4), dim), normal(Seed(5), dim));
        let means: f64 = mean_a.iter().zip(&mean_b).map(|(a, b)| (a - b).powi(2)).sum();
        let expected: f64 = means + a.iter().zip(&b).map(|(a, b)| (a.sqrt() - b.sqrt()).powi(2)).sum::<f64>();
        let found = frechet(&gaussian(mean_a, &matrix(&a)), &gaussian(mean_b, &matrix(&b))).unwrap();
        let scale = a.iter().chain(&b).sum::<f64>();
        assert!((found.value - expected).abs() < 1e-9 * scale, "{empty_a} {empty_b}: {} {expected}", found.value);
        assert!((found.means - means).abs() < 1e-12 * means && found.left_out < 1e-11, "{found:?}");
    }
}

#[test]
fn one_dimension_by_hand() {
    let of = |mean: f64, variance: f64| Gaussian::new(vec![mean], &[variance], None).unwrap();
    let found = frechet(&of(1.0, 4.0), &of(3.0, 9.0)).unwrap();
    assert!((found.value - 5.0).abs() < 1e-14 && (found.means - 4.0).abs() < 1e-15);
    assert!((frechet(&of(1.0, 0.0), &of(1.0, 9.0)).unwrap().value - 9.0).abs() < 1e-14);
    assert_eq!(frechet(&of(2.0, 0.0), &of(2.0, 0.0)).unwrap().value, 0.0);
}

#[test]
fn a_common_rotation_and_shift_change_nothing_and_equals_are_at_zero() {
    // Of 30 images each in 50 dimensions: both covariances are singular.
    let dim = 50;
    let turn = rotation(6, dim);
    let (a, b) = (normal(Seed(7), 30 * dim), normal(Seed(8), 30 * dim));
    let moved = |values: &[f64]| -> Vec<f64> {
        let turned = &turn * DMatrix::from_column_slice(dim, 30, values);
        turned.iter().map(|x| 2.0 * x + 3.0).collect()
    };
    let of = |values: &[f64]| Gaussian::of(&Features::new(values, dim).unwrap()).unwrap();
    let (before, after) =
        (frechet(&of(&a), &of(&b)).unwrap().value, frechet(&of(&moved(&a)), &of(&moved(&b))).unwrap().value);
    assert!((after / before - 4.0).abs() < 1e-11, "{before} {after}");
    assert_eq!(frechet(&of(&b), &of(&a)).unwrap().means, frechet(&of(&a), &of(&b)).unwrap().means);
    assert!((frechet(&of(&b), &of(&a)).unwrap().value / before - 1.0).abs() < 1e-12);
    assert!(frechet(&of(&a), &of(&a)).unwrap().value.abs() < 1e-12 * of(&a).covariance().trace());
}

#[test]
fn rounding_to_f32_is_cut_off_and_reported_and_no_covariance_is_refused() {
    let dim = 50;
    let (a, b) = (normal(Seed(9), 30 * dim), normal(Seed(10), 30 * dim));
    let of = |values: &[f64]| Gaussian::of(&Features::new(values, dim).unwrap()).unwrap();
    let rounded = |g: &Gaussian| {
        let values: Vec<f64> = g.covariance().iter().map(|&x| f64::from(x as f32)).collect();
        Gaussian::new(g.mean().to_vec(), &values, None).unwrap()
    };
    let (exact, found) = (frechet(&of(&a), &of(&b)).unwrap(), frechet(&rounded(&of(&a)), &rounded(&of(&b))).unwrap());
    assert!((found.value / exact.value - 1.0).abs() < 1e-4, "{found:?} {exact:?}");
    assert!(exact.left_out < 1e-13 && found.left_out > exact.left_out && found.left_out < 1e-5, "{found:?}");
    let saddle = Gaussian::new(vec![0.0; 2], &[1.0, 2.0, 2.0, 1.0], None).unwrap();
    assert!(frechet(&saddle, &saddle).unwrap_err().to_string().contains("some direction"));
    assert!(frechet(&saddle, &gaussian(vec![0.0], &DMatrix::identity(1, 1))).is_err());
}

/// Means over draws of `n` images of N(0.1, 1.2² I) in 12 dimensions, against N(0, I) known
/// exactly, whose FID is 0.6: plain FID, jackknifed FID, and the share of its intervals that hold
/// 0.6.
fn draws(n: usize, trials: u64) -> [f64; 3] {
    let dim = 12;
    let real = gaussian(vec![0.0; dim], &DMatrix::identity(dim, dim));
    let mut means = [0.0; 3];
    for trial in 0..trials {
        let values: Vec<f64> = normal(Seed(1000 + trial), n * dim).iter().map(|x| 0.1 + 1.2 * x).collect();
        let found = frechet_unbiased(&real, &Features::new(&values, dim).unwrap(), GROUPS, Seed(trial)).unwrap();
        assert_eq!((found.n, found.groups), (n, GROUPS));
        let inside = f64::from(u8::from(found.estimate.interval.contains(0.6)));
        for (mean, x) in means.iter_mut().zip([found.plain.value, found.estimate.value, inside]) {
            *mean += x / trials as f64;
        }
    }
    means
}

#[test]
fn the_jackknife_takes_the_bias_out_and_its_interval_covers() {
    for (n, trials) in [(150, 200), (1500, 200)] {
        let [plain, corrected, covered] = draws(n, trials);
        println!("{n} images: plain {plain}, corrected {corrected}, covered {covered}");
        // The bias is 65/n; a mean over draws is known to 0.01 and 0.003.
        assert!(((plain - 0.6) * n as f64 - 65.0).abs() < 15.0, "{plain}");
        assert!((corrected - 0.6).abs() < 0.1 * (plain - 0.6).max(0.06), "{corrected}");
        assert!(covered >= 0.92, "{covered}");
    }
}

#[test]
fn a_jackknife_needs_groups_and_images() {
    let real = gaussian(vec![0.0; 2], &DMatrix::identity(2, 2));
    let values = normal(Seed(1), 38);
    let set = Features::new(&values, 2).unwrap();
    assert!(frechet_unbiased(&real, &set, GROUPS, Seed(1)).is_err());
    assert!(frechet_unbiased(&real, &set, 1, Seed(1)).is_err());
    let (a, b) = (frechet_unbiased(&real, &set, 5, Seed(1)), frechet_unbiased(&real, &set, 5, Seed(1)));
    assert_eq!(a.unwrap(), b.unwrap());
}
