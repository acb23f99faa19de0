use rand::RngExt;

use super::super::tests::normal;
use super::*;
use crate::units::Seed;

fn set(values: &[f64], dim: usize) -> Features<'_, f64> {
    Features::new(values, dim).unwrap()
}

/// Training, held-out and generated images; every `copies`-th generated one is a noisy copy.
fn scene(seed: u64, copies: usize) -> [Vec<f64>; 3] {
    let dim = 4;
    let (train, test) = (normal(Seed(seed), 300 * dim), normal(Seed(seed + 1), 200 * dim));
    let (fresh, noise) = (normal(Seed(seed + 2), 250 * dim), normal(Seed(seed + 3), 250 * dim));
    let made = (0..250 * dim).map(|at| match (at / dim).is_multiple_of(copies) {
        true => train[at] + 1e-2 * noise[at],
        false => fresh[at],
    });
    let made = made.collect();
    [train, test, made]
}

#[test]
fn copies_are_seen_and_fresh_images_are_not() {
    for (copies, copying) in [(2, true), (1000, false)] {
        let [train, test, made] = scene(10, copies);
        let near = |values: &[f64]| Neighbours::of(&set(values, 4), &set(&train, 4), 1).unwrap().nearest();
        let (made, real) = (near(&made), near(&test));
        let distances = Compared { generated: &made[..], held_out: &real[..] };
        let threshold = percentile(&real, 0.05).unwrap();
        let found = memorisation(&distances, Some(threshold)).unwrap();
        assert!((found.rate.held_out.value - 0.05).abs() < 0.01 && found.quantile.is_none(), "{found:?}");
        assert_eq!(found.rate.generated.interval.low > found.rate.held_out.interval.high, copying, "{found:?}");
        assert_eq!(found.ranks.z < -3.0, copying, "{found:?}");
        assert_eq!(found.ranks.farther.interval.contains(0.5), !copying, "{found:?}");
        assert_eq!(found.median.generated < 0.8 * found.median.held_out, copying);
        let shown = histogram(&distances, 20).unwrap();
        assert_eq!(shown.counts.generated.iter().sum::<usize>(), 250);
        assert_eq!((shown.edges.len(), shown.counts.held_out.iter().sum::<usize>()), (21, 200));
    }
}

#[test]
fn a_share_within_a_quantile_of_held_out_images_has_the_error_of_that_quantile() {
    const SEEDS: u64 = 1000;
    // Held-out images, generated images, and how much more often generated ones are near.
    for (n, m, often) in [(50, 400, 1.0), (200, 400, 1.0), (1000, 2000, 1.0), (200, 400, 3.0)] {
        let level = f64::max(0.01, 1.0 / (n + 1) as f64);
        let (mut covered, mut sum) = (0, 0.0);
        for seed in 0..SEEDS {
            let mut rng = Seed(seed).rng(0);
            let mut uniform = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.random()).collect() };
            let real = uniform(n);
            let made: Vec<f64> = uniform(m).iter().map(|u| u / often).collect();
            let found = memorisation(&Compared { generated: &made[..], held_out: &real[..] }, None).unwrap();
            assert_eq!(found.quantile, Some(found.rate.held_out.value));
            sum += found.rate.generated.value;
            covered += u64::from(found.rate.generated.interval.contains(often * level));
        }
        assert!(covered * 100 >= 92 * SEEDS, "{n} {m}: {covered} of {SEEDS}");
        let mean = sum / SEEDS as f64 / (often * level);
        assert!((0.9..1.1).contains(&mean), "{n} {m}: {mean} times the quantile");
    }
}

#[test]
fn held_out_distances_that_tie_at_the_quantile_are_counted() {
    let real: Vec<f64> = [0.0, 0.0].into_iter().chain((0..98).map(f64::from)).collect();
    let found = memorisation(&Compared { generated: &[0.0, 5.0][..], held_out: &real[..] }, None).unwrap();
    assert_eq!((found.threshold, found.quantile), (0.0, None));
    assert_eq!(found.rate.held_out, Estimate::proportion(3, 100));
    assert_eq!(found.rate.generated, Estimate::proportion(1, 2));
    // Without ties the one image at the threshold of 1 % is what its quantile says.
    let apart: Vec<f64> = (0..100).map(f64::from).collect();
    let found = memorisation(&Compared { generated: &[0.0, 5.0][..], held_out: &apart[..] }, None).unwrap();
    assert_eq!((found.quantile, found.rate.held_out.value), (Some(0.01), 0.01));
}

#[test]
fn copying_in_one_cell_is_seen_where_one_test_over_all_is_not() {
    // Cell 0: copies. Cell 1: far from the training images, as an underfitting generator is.
    let [train, test, mut made] = scene(20, 1);
    let cells = |values: &[f64]| -> Vec<usize> { (0..values.len() / 4).map(|i| i % 2).collect() };
    let fresh = normal(Seed(99), made.len());
    for (at, x) in made.iter_mut().enumerate().filter(|(at, _)| at / 4 % 2 == 1) {
        *x = 4.0 * fresh[at];
    }
    let run = |cells_of: &dyn Fn(&[f64]) -> Vec<usize>, count, least| {
        let labels = [&train, &test, &made].map(|values| cells_of(values));
        let sets = [&train, &test, &made].map(|values| set(values, 4));
        let near = |of: usize| nearest_in_cells((&sets[of], &labels[of]), (&sets[0], &labels[0]), count).unwrap();
        data_copying(&labels[0], (&near(1), &labels[1]), (&near(2), &labels[2]), count, least).unwrap()
    };
    let (one, two) = (run(&|v| vec![0; v.len() / 4], 1, 0.0), run(&cells, 2, 0.01));
    assert!(one.c_t.unwrap().abs() < 3.0, "{one:?}");
    let z = |cell: usize| two.cells[cell].ranks.unwrap().z;
    assert!(z(0) < -5.0 && z(1) > 5.0, "{two:?}");
    let weighted = (two.cells[0].n[1] as f64 * z(0) + two.cells[1].n[1] as f64 * z(1)) / 200.0;
    assert!((two.c_t.unwrap() - weighted).abs() < 1e-12 && two.interval.unwrap().contains(weighted));
    // Cells that the generator leaves out do not count, nor do small ones.
    let none = run(&cells, 2, 0.6);
    assert_eq!((none.c_t, none.interval), (None, None));
}

#[test]
fn cells_without_training_images_are_refused() {
    let values = normal(Seed(1), 8);
    let sets = set(&values, 2);
    let copying = |train: &[usize], real: &[usize], made: &[usize]| {
        let near = |own: &[usize]| nearest_in_cells((&sets, own), (&sets, train), 2).unwrap();
        data_copying(train, (&near(real), real), (&near(made), made), 2, 0.0)
    };
    assert!(copying(&[0; 4], &[0, 1, 0, 0], &[0; 4]).unwrap_err().to_string().contains("cell 1"));
    let missing = copying(&[0, 0, 1, 1], &[0, 0, 1, 1], &[0; 4]).unwrap();
    assert_eq!((missing.cells[1].ranks, missing.cells[1].counts), (None, false));
}

#[test]
fn z_is_standard_normal_and_the_interval_covers_a_half_where_both_are_alike() {
    let (trials, mut squares, mut mean, mut covered) = (2000u64, 0.0, 0.0, 0u32);
    for trial in 0..trials {
        // Rounded: many ties, whose variance is smaller.
        let of = |seed, n| -> Vec<f64> { normal(Seed(seed), n).iter().map(|x| x.round()).collect() };
        let ranks = Ranks::of(&of(trial, 60), &of(trial + 50_000, 45)).unwrap();
        mean += ranks.z / trials as f64;
        squares += ranks.z * ranks.z / trials as f64;
        covered += u32::from(ranks.farther.interval.contains(0.5));
    }
    assert!(mean.abs() < 0.1 && (squares - 1.0).abs() < 0.12, "{mean} {squares}");
    assert!((0.93..=0.97).contains(&(f64::from(covered) / trials as f64)), "{covered}");
}

#[test]
fn the_interval_covers_where_the_sets_hardly_overlap() {
    // Three standard deviations apart: Φ(−3/√2). DeLong's alone covers 84 %.
    let truth = 0.016_947;
    let covers = |trial: &u64| {
        let real: Vec<f64> = normal(Seed(*trial + 50_000), 50).iter().map(|x| x + 3.0).collect();
        Ranks::of(&normal(Seed(*trial), 50), &real).unwrap().farther.interval.contains(truth)
    };
    let covered = (0..300).filter(covers).count();
    assert!(covered >= 279, "{covered} of 300");
    // One pair that overlaps says no more than none.
    let [mut made, real] = [0, 50].map(|first| (first..first + 50).map(f64::from).collect::<Vec<f64>>());
    let apart = Ranks::of(&made, &real).unwrap().farther.interval.high;
    made[49] = 50.5;
    let overlapping = Ranks::of(&made, &real).unwrap().farther.interval.high;
    assert!(overlapping > apart && apart > 0.03, "{apart} {overlapping}");
}

#[test]
fn ranks_at_the_edges() {
    let apart = Ranks::of(&[1.0, 2.0, 3.0], &[4.0, 5.0]).unwrap();
    assert_eq!((apart.farther.value, apart.farther.interval.low), (0.0, 0.0));
    assert!(apart.farther.interval.high > 0.5 && apart.z < 0.0);
    let tied = Ranks::of(&[0.0; 3], &[0.0; 4]).unwrap();
    assert_eq!((tied.farther.value, tied.z), (0.5, 0.0));
    assert!(Ranks::of(&[], &[1.0]).is_err() && Ranks::of(&[f64::NAN], &[1.0]).is_err());
    let empty = Compared { generated: &[][..], held_out: &[1.0][..] };
    assert!(memorisation(&empty, Some(10.0)).is_err() && histogram(&empty, 0).is_err());
    let zeros = Compared { generated: &[0.0][..], held_out: &[0.0][..] };
    assert_eq!(histogram(&zeros, 2).unwrap().counts.generated, [1, 0]);
}
