use rand_distr::{Distribution, StandardNormal};

use super::*;

pub(super) const SIZES: [f64; 8] = [100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0, 45_000.0];

/// Standard deviations of the levels of scatter in log value.
#[derive(Clone, Copy)]
pub(super) struct Noise {
    pub run: f64,
    pub seed: f64,
    pub size: f64,
}

pub(super) const SILENT: Noise = Noise { run: 0.0, seed: 0.0, size: 0.0 };

/// Points of a·N^(−α) + c with log-normal scatter.
pub(super) fn synthetic(law: (f64, f64, f64), sizes: &[f64], seeds: u64, noise: Noise, draw: u64) -> Vec<Point> {
    let (a, alpha, floor) = law;
    let mut rng = Seed(2026).split("synthetic").rng(draw);
    let mut normal = |width: f64| width * Distribution::<f64>::sample(&StandardNormal, &mut rng);
    let by_seed: Vec<f64> = (0..seeds).map(|_| normal(noise.seed)).collect();
    let by_size: Vec<f64> = sizes.iter().map(|_| normal(noise.size)).collect();
    let mut points = Vec::new();
    for (&n, size) in sizes.iter().zip(by_size) {
        for (seed, level) in by_seed.iter().enumerate() {
            let log = (a * n.powf(-alpha) + floor).ln() + level + size + normal(noise.run);
            points.push(Point { n, seed: seed as u64, value: log.exp(), error: 0.0 });
        }
    }
    points
}

/// Shares of intervals with the truth, for a, α and c, and the mean width of α's interval.
fn coverage(
    law: (f64, f64, f64),
    variant: Variant,
    sizes: &[f64],
    seeds: u64,
    noise: Noise,
    trials: u64,
) -> ([f64; 3], f64) {
    let (mut hits, mut width) = ([0.0; 3], 0.0);
    for trial in 0..trials {
        let points = synthetic(law, sizes, seeds, noise, trial);
        let fitted = fit(&points, variant, Seed(trial)).unwrap();
        let floor = fitted.floor.unwrap_or(fitted.a).interval;
        for (hit, inside) in hits.iter_mut().zip([
            fitted.a.interval.contains(law.0),
            fitted.alpha.interval.contains(law.1),
            floor.contains(law.2),
        ]) {
            *hit += f64::from(u8::from(inside)) / trials as f64;
        }
        width += (fitted.alpha.interval.high - fitted.alpha.interval.low) / trials as f64;
    }
    (hits, width)
}

fn runs(width: f64) -> Noise {
    Noise { run: width, ..SILENT }
}

#[test]
fn noise_free_laws_are_recovered() {
    for (a, alpha, floor) in [(1.0, 0.5, 0.02), (0.8, 0.039, 0.3), (30.0, 1.3, 1e-4), (2e-3, 0.25, 5e-5)] {
        for seeds in [1, 3] {
            let pure = fit(&synthetic((a, alpha, 0.0), &SIZES, seeds, SILENT, 0), Variant::Pure, Seed(0)).unwrap();
            assert!((pure.a.value / a - 1.0).abs() < 1e-9 && (pure.alpha.value / alpha - 1.0).abs() < 1e-9);
            assert!((pure.r_squared - 1.0).abs() < 1e-12 && pure.floor.is_none());
            assert!(pure.alpha.interval.high - pure.alpha.interval.low < 1e-9);
            let lifted = fit(&synthetic((a, alpha, floor), &SIZES, seeds, SILENT, 0), Variant::Floor, Seed(0)).unwrap();
            let c = lifted.floor.unwrap();
            let found = [lifted.a.value / a, lifted.alpha.value / alpha, c.value / floor];
            assert!(found.iter().all(|ratio| (ratio - 1.0).abs() < 1e-6), "{a} {alpha} {floor}: {found:?}");
        }
    }
}

#[test]
fn without_a_floor_in_the_data_the_two_laws_agree() {
    let points = synthetic((1.0, 0.4, 0.0), &SIZES, 2, SILENT, 0);
    let lifted = fit(&points, Variant::Floor, Seed(0)).unwrap();
    assert!(lifted.floor.unwrap().value < 1e-9 && (lifted.alpha.value - 0.4).abs() < 1e-6);
}

#[test]
fn two_points_a_decade_apart_by_hand() {
    // Three sizes, values 1, 1/2, 1/4: α = log10 2, a·100^(−α) = 1.
    let points = [(100.0, 1.0), (1e3, 0.5), (1e4, 0.25)].map(|(n, value)| Point { n, seed: 0, value, error: 0.0 });
    let law = fit(&points, Variant::Pure, Seed(0)).unwrap();
    assert!((law.alpha.value - 2f64.log10()).abs() < 1e-12 && (law.a.value - 4.0).abs() < 1e-9);
    assert!((law.value(1e5) - 0.125).abs() < 1e-12);
}

#[test]
fn units_scale_and_exponents_do_not() {
    let points = synthetic((1.0, 0.3, 0.05), &SIZES, 3, runs(0.1), 4);
    let scaled: Vec<Point> = points.iter().map(|p| Point { value: 1e3 * p.value, n: p.n / 50.0, ..*p }).collect();
    for variant in [Variant::Pure, Variant::Floor] {
        let (one, other) = (fit(&points, variant, Seed(1)).unwrap(), fit(&scaled, variant, Seed(1)).unwrap());
        assert!((one.alpha.value - other.alpha.value).abs() < 1e-6);
        assert!((one.r_squared - other.r_squared).abs() < 1e-9);
        assert!((1e3 * one.value(700.0) / other.value(14.0) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn intervals_of_the_pure_law_cover_the_truth() {
    let law = (1.0, 0.3, 0.0);
    for (name, sizes, seeds, noise) in [
        ("independent runs", &SIZES[..], 3, runs(0.1)),
        ("seeds in common", &SIZES[..], 3, Noise { seed: 0.1, ..runs(0.05) }),
        ("sizes in common", &SIZES[..], 3, Noise { size: 0.1, ..runs(0.1) }),
        ("one seed", &SIZES[..], 1, runs(0.1)),
        ("five sizes", &SIZES[..5], 3, runs(0.1)),
        ("three sizes that scatter", &SIZES[..3], 3, Noise { size: 0.1, ..runs(0.1) }),
    ] {
        let ([a, alpha, _], width) = coverage(law, Variant::Pure, sizes, seeds, noise, 200);
        println!("{name}: a {a:.3}, α {alpha:.3}, mean width {width:.4}");
        assert!((0.88..0.995).contains(&alpha) && a >= 0.88, "{name}: {a} {alpha}");
    }
}

/// Which cells of 3 N and 2 seeds the first and the third of three processes compute, of either of two networks.
const PARTS: [[usize; 4]; 2] = [[0, 3, 4, 5], [0, 1, 2, 5]];

#[test]
fn a_run_with_gaps_is_no_surer_of_its_law_than_the_finished_one() {
    // KL of two networks on 50, 100 and 200 images, as they were run.
    let networks = [
        ([2.1914, 2.1939, 2.1508, 2.1569, 2.0929, 2.0892], PARTS[0]),
        ([2.0933, 2.0956, 2.0289, 2.0236, 1.9074, 1.8997], PARTS[1]),
    ];
    for (values, part) in networks {
        let point = |(i, value): (usize, f64)| Point {
            n: [50.0, 100.0, 200.0][i / 2],
            seed: (i % 2) as u64,
            value,
            error: 0.0,
        };
        let all: Vec<Point> = values.into_iter().enumerate().map(point).collect();
        let some: Vec<Point> = part.iter().map(|&i| all[i]).collect();
        let [all, some] = [all, some].map(|points| compare(&points, None, Seed(0)).unwrap());
        let width = |fits: &Comparison| fits.pure.alpha.interval.high - fits.pure.alpha.interval.low;
        // With one degree of freedom an end scatters by a fifth; the narrower one was a quarter as wide.
        assert!(width(&some) > 0.5 * width(&all), "{:?} {:?}", some.pure.alpha, all.pure.alpha);
        assert!(some.sentence.contains("do not fix a law"), "{}", some.sentence);
        assert_eq!((some.pure.resampling, some.pure.error_freedom), (Resampling::SizesAndPoints, 1.0));
    }
}

/// Leaves out points of a grid, or says that they have other seeds.
type Thin<'a> = &'a dyn Fn(Vec<Point>) -> Vec<Point>;

#[test]
fn intervals_of_grids_with_gaps_cover_the_truth() {
    let own_seeds = |points: Vec<Point>| -> Vec<Point> {
        points.iter().map(|p| Point { seed: p.seed + 10 * p.n as u64, ..*p }).collect()
    };
    let kept = |points: Vec<Point>, part: &[usize]| -> Vec<Point> { part.iter().map(|&i| points[i]).collect() };
    let (trials, noise) = (200, Noise { size: 0.03, ..runs(0.01) });
    let grids: [(&str, usize, u64, Thin<'_>); 3] = [
        ("4 of 6", 3, 2, &|points| kept(points, &PARTS[0])),
        ("6 of 8", 4, 2, &|points| kept(points, &[0, 1, 2, 5, 6, 7])),
        ("own seeds at each N", 4, 3, &own_seeds),
    ];
    for (name, sizes, seeds, thin) in grids {
        let holds = |trial: &u64| {
            let points = thin(synthetic((1.0, 0.3, 0.0), &SIZES[..sizes], seeds, noise, *trial));
            fit(&points, Variant::Pure, Seed(*trial)).unwrap().alpha.interval.contains(0.3)
        };
        let share = (0..trials).filter(holds).count() as f64 / trials as f64;
        println!("{name}: α {share:.3}");
        assert!(share >= 0.84, "{name}: {share}");
    }
}

#[test]
fn intervals_of_the_law_with_a_floor_cover_the_truth() {
    for (name, floor, noise) in [("a floor", 0.02, runs(0.1)), ("none", 0.0, runs(0.1))] {
        let ([a, alpha, c], width) = coverage((1.0, 0.5, floor), Variant::Floor, &SIZES, 3, noise, 100);
        println!("{name}: a {a:.3}, α {alpha:.3}, c {c:.3}, mean width {width:.4}");
        assert!(a >= 0.88 && alpha >= 0.88 && c >= 0.88, "{name}: {a} {alpha} {c}");
    }
}

#[test]
fn more_scatter_means_wider_intervals() {
    let width = |run| {
        let law = fit(&synthetic((1.0, 0.3, 0.0), &SIZES, 3, runs(run), 1), Variant::Pure, Seed(1)).unwrap();
        law.alpha.interval.high - law.alpha.interval.low
    };
    assert!(width(0.02) < width(0.1) && width(0.1) < width(0.5));
}

#[test]
fn pure_noise_never_fails_and_never_leaves_the_numbers() {
    for trial in 0..25 {
        let points = synthetic((1.0, 0.0, 0.0), &SIZES[..4 + trial as usize % 5], 1 + trial % 3, runs(2.0), trial);
        let comparison = compare(&points, None, Seed(trial)).unwrap();
        for law in [&comparison.pure, comparison.floor.as_ref().unwrap()] {
            let floor = law.floor.unwrap_or(law.a);
            for estimate in [law.a, law.alpha, floor] {
                let Interval { low, high } = estimate.interval;
                assert!(low <= estimate.value && estimate.value <= high && (high - low).is_finite(), "{estimate:?}");
            }
            assert!((0.0..=1.0).contains(&law.r_squared));
        }
        let (pure, floor) = (&comparison.pure, comparison.floor.as_ref().unwrap());
        assert!(floor.residual_sum <= pure.residual_sum * (1.0 + 1e-12));
        assert!(!comparison.sentence.is_empty() && !comparison.sentence.contains("NaN"));
    }
}

#[test]
fn what_is_no_data_for_a_law_is_refused() {
    let point = |n, value| Point { n, seed: 0, value, error: 0.0 };
    let message = |points: &[Point], variant| fit(points, variant, Seed(0)).unwrap_err().to_string();
    let two = [point(1.0, 1.0), point(1.0, 2.0), point(2.0, 1.0), point(2.0, 3.0)];
    assert!(message(&two, Variant::Pure).contains("at least 3 different numbers of training images, not 2"));
    let three = [point(1.0, 1.0), point(2.0, 0.5), point(4.0, 0.3)];
    assert!(message(&three, Variant::Floor).contains("at least 4"));
    assert!(fit(&[], Variant::Pure, Seed(0)).is_err());
    for bad in [point(3.0, 0.0), point(3.0, -1.0), point(3.0, f64::NAN), point(0.0, 1.0), point(f64::INFINITY, 1.0)] {
        assert!(message(&[three[0], three[1], bad, three[2]], Variant::Pure).contains("point 2"));
    }
}

#[test]
fn intervals_say_what_they_are_drawn_over() {
    let of = |points: &[Point]| fit(points, Variant::Pure, Seed(0)).unwrap().resampling;
    assert_eq!(of(&synthetic((1.0, 0.3, 0.0), &SIZES, 3, runs(0.1), 0)), Resampling::SeedsAndPoints);
    let single = synthetic((1.0, 0.3, 0.0), &SIZES, 1, runs(0.1), 0);
    assert_eq!(of(&single), Resampling::PointsOnly);
    let apart: Vec<Point> = single.iter().enumerate().map(|(i, p)| Point { seed: i as u64, ..*p }).collect();
    assert_eq!(of(&apart), Resampling::PointsOnly);
    // Other seeds at every N: what sizes have in common shows, what seeds have does not.
    let nested: Vec<Point> =
        apart.iter().flat_map(|p| [*p, Point { seed: p.seed + 100, value: 1.01 * p.value, ..*p }]).collect();
    assert_eq!(of(&nested), Resampling::SizesAndPoints);
    // One run is missing: still crossed.
    let all = synthetic((1.0, 0.3, 0.0), &SIZES, 3, runs(0.1), 0);
    assert_eq!(of(&all[1..]), Resampling::SeedsAndPoints);
}

#[test]
fn a_fit_is_reproducible_and_survives_a_file() {
    let points = synthetic((1.0, 0.4, 0.03), &SIZES, 3, runs(0.1), 9);
    let law = fit(&points, Variant::Floor, Seed(5)).unwrap();
    assert_eq!(law, fit(&points, Variant::Floor, Seed(5)).unwrap());
    assert_ne!(law.alpha.interval, fit(&points, Variant::Floor, Seed(6)).unwrap().alpha.interval);
    let read: PowerLaw = serde_json::from_str(&serde_json::to_string(&law).unwrap()).unwrap();
    assert_eq!(read.alpha, law.alpha);
    assert_eq!(read.band(3e4), law.band(3e4));
    let fits = compare(&points, None, Seed(5)).unwrap();
    let again: Comparison = serde_json::from_str(&serde_json::to_string(&fits).unwrap()).unwrap();
    assert_eq!((again.band(3e4), more_data(&again, 0.05).unwrap()), (fits.band(3e4), more_data(&fits, 0.05).unwrap()));
    let (inside, beyond) = (law.band(1e3), law.band(1e7));
    assert!(inside.contains(law.value(1e3)));
    assert!(beyond.high / beyond.low > inside.high / inside.low);
}
