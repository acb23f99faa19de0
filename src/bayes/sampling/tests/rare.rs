//! Many classes that are hardly ever in doubt, as the digits are: few draws say nearly all.

use super::*;

/// Ten classes at one distance from each other, with an error of about 2 %.
fn digits() -> GaussianClasses {
    let means = (0..10).map(|y| (0..10).map(|d| if d == y { 4.0 } else { 0.0 }).collect());
    GaussianClasses::new(means.collect(), vec![0.1; 10]).unwrap()
}

#[test]
fn control_variates_do_not_bias_what_few_draws_say() {
    let classes = digits();
    let truth = bayes::bayes_error(&classes, Tau::ONE, &spec(1e-4), &mut silent()).unwrap().figure.value;
    assert!((0.015..0.03).contains(&truth), "{truth}");
    let aleatoric = information(&classes, Tau::ONE, &spec(1e-4), &mut silent()).unwrap().aleatoric_nats.value;
    for n in [512, 1024, 4096] {
        let mut coverage = Coverage::of([("E".to_owned(), truth), ("A".to_owned(), aleatoric)]);
        let mut values = Vec::new();
        for seed in 0..SEEDS {
            let mut source = GaussianDraws::new(&classes, Seed(9000 + seed));
            let prior = Prior::new(&[0.1; 10]).unwrap();
            let mut pool = Pool::new(&mut source, prior, Smoothing::ONE, Seed(9000 + seed)).unwrap();
            let found = figures_at(&mut pool, Tau::ONE, false, &exactly(n), &mut silent()).unwrap();
            coverage.add("E", &found.estimate.figure);
            coverage.add("A", &found.information.aleatoric_nats);
            values.push(found.estimate.figure.value);
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>().sqrt() / values.len() as f64;
        println!("{n} draws: {mean} of {truth}, ± {spread}");
        assert!((mean - truth).abs() < 3.5 * spread, "{n} draws: {mean} of {truth}, standard error {spread}");
        // The rule of three makes intervals of few draws wider than 95 % asks for.
        println!("{:?}", coverage.0);
        assert!(coverage.0.iter().all(|(.., held)| *held >= SEEDS * 90 / 100), "{n} draws: {:?}", coverage.0);
    }
}
