use super::super::classes::{GaussianClasses, Merge};
use super::super::plane;
use super::super::simd::tests::on_every_set;
use super::*;
use crate::error::Error;
use crate::units::Tau;

/// Classes on a bent line in so many dimensions, with unequal priors.
fn scene(count: usize, dims: usize, tau: f64) -> Scene {
    let mean = |k: usize| (0..dims).map(|i| 1.7 * ((k * (i + 2)) as f64 * 0.9).sin()).collect();
    let weights: Vec<f64> = (0..count).map(|k| 1.0 + (k % 3) as f64).collect();
    let total: f64 = weights.iter().sum();
    let priors = weights.iter().map(|weight| weight / total).collect();
    let classes = GaussianClasses::new((0..count).map(mean).collect(), priors).unwrap();
    classes.scene(Tau::new(tau).unwrap(), Merge::Sum)
}

fn after(scene: &Scene, points: f64, work: f64) -> MiddleSum<Entropy> {
    let mut sum = MiddleSum::new(scene, Entropy, Seed(3), &mut || Ok(())).unwrap();
    while !sum.refine(points, work) {}
    sum
}

#[test]
fn the_entropy_of_a_plane_problem_is_the_one_by_quadrature() {
    for (count, tau) in [(3, 1.0), (5, 0.6), (9, 2.0), (5, 0.15)] {
        let scene = scene(count, 2, tau);
        let exact = plane::entropy(&scene).unwrap();
        let exact = exact.value * (exact.log_scale.exp());
        let found = after(&scene, 60_000.0, f64::INFINITY).sum();
        let (value, half_width) = (found.value * found.log_scale.exp(), found.half_width * found.log_scale.exp());
        assert!((value - exact).abs() <= 2.0 * half_width, "{count}, τ = {tau}: {value} ± {half_width}, not {exact}");
        assert!(half_width < 1e-3 * exact, "{count}, τ = {tau}: {half_width} of {exact}");
    }
}

#[test]
fn small_pairs_that_share_points_count_as_those_that_have_their_own() {
    // 33 classes have 528 pairs: most of them are drawn.
    let scene = scene(33, 2, 1.0);
    let found = after(&scene, 200_000.0, f64::INFINITY);
    assert!(found.strata.last().is_some_and(|stratum| stratum.pairs.len() > 100));
    let (found, exact) = (found.sum(), plane::entropy(&scene).unwrap());
    let ratio = (found.log_scale - exact.log_scale).exp() * found.value / exact.value;
    assert!((ratio - 1.0).abs() < 2.0 * found.half_width / found.value, "{ratio}");
}

#[test]
fn sampling_in_pieces_is_sampling_at_once_and_goes_on_from_there() {
    let scene = scene(7, 5, 0.8);
    let mut once = after(&scene, 3_000.0, f64::INFINITY);
    while !once.refine(20_000.0, f64::INFINITY) {}
    let mut pieces = after(&scene, 3_000.0, 1.0);
    while !pieces.refine(20_000.0, 1.0) {
        assert!(pieces.sum().value.is_finite());
    }
    assert_eq!(once.samples(), pieces.samples());
    assert!((once.sum().value / pieces.sum().value - 1.0).abs() < 1e-12);
}

#[test]
fn many_large_pairs_may_be_stopped_while_they_are_set_up_and_looked_at_first() {
    // 22 classes at equal distances have 231 pairs, each large enough for points of its own.
    let mean = |k: usize| (0..22).map(|i| if i == k { 2.0 } else { 0.0 }).collect();
    let classes = GaussianClasses::new((0..22).map(mean).collect(), vec![1.0 / 22.0; 22]).unwrap();
    let scene = classes.scene(Tau::ONE, Merge::Sum);
    let mut asked = 0;
    let mut count = || {
        asked += 1;
        Ok(())
    };
    let mut once = MiddleSum::new(&scene, Entropy, Seed(3), &mut count).unwrap();
    assert_eq!((once.strata.len(), asked), (231, 231usize.div_ceil(rayon::current_num_threads())));
    let stopped = MiddleSum::new(&scene, Entropy, Seed(3), &mut || Err(Error::Cancelled));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    let points = once.first_points();
    once.refine(points, f64::INFINITY);
    // The same work, a part of it at a time.
    let mut parts = MiddleSum::new(&scene, Entropy, Seed(3), &mut || Ok(())).unwrap();
    assert!(!parts.whole());
    parts.points = points;
    parts.plan();
    parts.lay_out(f64::INFINITY);
    let mut stops = 0;
    while !parts.pending.is_empty() {
        assert!(!parts.whole());
        parts.sample(1.0);
        stops += 1;
    }
    assert!(parts.whole() && stops > 1);
    assert_eq!((once.replicates(), once.samples()), (parts.replicates(), parts.samples()));
}

#[test]
fn intervals_of_the_first_stage_cover_as_often_as_they_say() {
    let uniform = |means: Vec<Vec<f64>>| {
        let priors = vec![1.0 / means.len() as f64; means.len()];
        GaussianClasses::new(means, priors).unwrap().scene(Tau::ONE, Merge::Sum)
    };
    // Rare doubt between neighbours on a ring, and the corners of a cube in six dimensions.
    let angle = |k: usize| k as f64 * std::f64::consts::TAU / 16.0;
    let ring = uniform((0..16).map(|k| vec![15.0 * angle(k).cos(), 15.0 * angle(k).sin()]).collect());
    let corner = |k: usize| (0..6).map(|i| if k >> i & 1 == 1 { 2.5 } else { 0.0 }).collect();
    let cube = uniform((0..64).map(corner).collect());
    let cube_entropy = super::super::product::entropy(&super::super::product::factors(&cube).unwrap()).unwrap();
    for (scene, exact) in [(&ring, 0.009744219526135007), (&cube, cube_entropy.value * cube_entropy.log_scale.exp())] {
        let covers = |seed: usize| {
            let mut sum = MiddleSum::new(scene, Entropy, Seed(seed as u64), &mut || Ok(())).unwrap();
            let points = sum.first_points();
            while !sum.refine(points, f64::INFINITY) {}
            let Scaled { log_scale, value, half_width } = sum.sum();
            (value * log_scale.exp() - exact).abs() <= half_width * log_scale.exp()
        };
        let covered = parallel::map(100, covers).into_iter().filter(|covers| *covers).count();
        assert!(covered >= 89, "{} classes: {covered} of 100", scene.count());
    }
}

#[test]
fn every_instruction_set_gives_the_same_integral() {
    let scene = scene(7, 5, 0.8);
    let of = MiddleSum::new(&scene, Entropy, Seed(1), &mut || Ok(())).unwrap();
    for stratum in 0..of.strata.len() {
        let results = on_every_set(Piece { of: &of, part: Part { stratum, replicate: 2, stream: 1, blocks: [0, 3] } });
        for (name, [sum, _]) in &results {
            assert!((sum / results[0].1[0] - 1.0).abs() < 1e-11, "{name}: {sum} against {}", results[0].1[0]);
        }
    }
}

#[test]
fn entropies_below_the_smallest_double_keep_their_digits() {
    let scene = scene(4, 3, 0.01);
    let found = after(&scene, 20_000.0, f64::INFINITY).sum();
    assert!(found.log_scale < -700.0 && found.value > 0.0 && found.value.is_finite());
    assert!(found.half_width < 0.2 * found.value, "{found:?}");
}
