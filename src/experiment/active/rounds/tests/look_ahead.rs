//! Rounds that try every purchase before they make it.

use super::*;

#[test]
fn the_look_ahead_of_one_label_buys_the_best_of_all_that_could_be_bought() {
    let mut bench = Bench::new(30);
    // What all others want, the gradient's choice, and each of the 20 that are left.
    (bench.spec.initial, bench.spec.batch, bench.spec.tries) = (10, 1, 31);
    let folder = tempfile::tempdir().unwrap();
    let cell = Bench::cell(Strategy::LookAhead, 11);
    let result = bench.run(cell, &folder.path().join("cell"), &mut silent()).unwrap();
    let [start, step] = bought(&result) else { panic!("two rounds") };
    let own = &start.bought.images;
    let after = |image: usize| {
        let folder = folder.path().join(image.to_string());
        let (apart, _) = bench.trained_apart(cell, &[&own[..], &[image]].concat(), &folder);
        apart.measured.epistemic.value
    };
    let all: Vec<(usize, f64)> =
        (0..30).filter(|image| !own.contains(image)).map(|image| (image, after(image))).collect();
    let best = all.iter().map(|(_, kl)| *kl).fold(f64::INFINITY, f64::min);
    assert!((step.measured.epistemic.value - best).abs() < 1e-12, "{} {best}", step.measured.epistemic.value);
    assert!(all.iter().any(|(image, kl)| [*image] == step.bought.images[..] && (kl - best).abs() < 1e-12));
    assert_eq!(step.bought.tried.len(), 31);
    // It is a choice: others would have been much worse.
    assert!(all.iter().filter(|(_, kl)| *kl > best + 1e-6).count() > 10, "{all:?}");
}

#[test]
fn no_strategy_gains_more_in_a_step_than_the_look_ahead_and_each_is_tried_as_it_buys() {
    let bench = Bench::new(120);
    let ahead = bench.whole(Strategy::LookAhead, 20);
    let step = &bought(&ahead)[1];
    let least = step.bought.tried.iter().map(|tried| tried.epistemic).fold(f64::INFINITY, f64::min);
    assert!((step.measured.epistemic.value - least).abs() < 1e-12);
    for other in Strategy::others() {
        let result = bench.whole(other, 20);
        let after = bought(&result)[1].measured.epistemic.value;
        let tried = step.bought.tried.iter().find(|tried| tried.strategy == Some(other)).unwrap();
        assert!((tried.epistemic - after).abs() < 1e-12, "{other:?}: {} {after}", tried.epistemic);
        assert!(least <= after + 1e-12, "{other:?}");
    }
}

#[test]
fn a_look_ahead_cancelled_between_its_tries_goes_on_to_the_same_bits() {
    let (bench, folder) = (Bench::new(120), tempfile::tempdir().unwrap());
    let cell = Bench::cell(Strategy::LookAhead, 20);
    // Three members of 6 steps, then tries of 9.
    bench.cancelled_at(40, cell, folder.path());
    assert!(folder.path().join("round-0/try-1").join(TRIED).exists());
    assert!(!folder.path().join("round-0").join(SETTLED).exists());
    let resumed = bench.run(cell, folder.path(), &mut silent()).unwrap();
    assert_eq!(resumed, bench.whole(Strategy::LookAhead, 20));
}

#[test]
fn a_checkpoint_of_other_images_is_not_what_a_try_goes_on_from() {
    let (bench, cell) = (Bench::new(60), Bench::cell(Strategy::LookAhead, 20));
    let whole = bench.whole(Strategy::LookAhead, 20);
    let folder = tempfile::tempdir().unwrap();
    // Three members of 6 steps, then tries of 9: this is in the middle of the second one.
    bench.cancelled_at(31, cell, folder.path());
    let [first, second] = [0, 1].map(|at| folder.path().join(format!("round-0/try-{at}")));
    assert!(first.join(TRIED).exists() && second.join(LAST).exists());
    for name in [LAST, TRYING] {
        std::fs::rename(second.join(name), first.join(name)).unwrap();
    }
    std::fs::remove_file(first.join(TRIED)).unwrap();
    assert_eq!(bench.run(cell, folder.path(), &mut silent()).unwrap(), whole);
}
