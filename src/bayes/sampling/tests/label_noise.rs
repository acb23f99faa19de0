//! Figures of noisy labels from draws.

use super::*;
use crate::oracle::label_noise::LabelNoise;

#[test]
fn intervals_of_noisy_labels_hold_the_truth() {
    let (tau, noise) = (Tau::new(1.1).unwrap(), LabelNoise::symmetric(0.3).unwrap());
    // Closed forms of E and its slope; a finer interval of A.
    let noisy = classes().with_label_noise(Some(&noise)).unwrap();
    let error = bayes::bayes_error(&noisy, tau, &spec(1e-6), &mut silent()).unwrap().figure.value;
    assert!((error - 0.3 - 0.6 * bayes_error(tau).figure.value).abs() < 1e-12);
    let fine = information(&noisy, tau, &spec(1e-4), &mut silent()).unwrap();
    let slope = derivative(&noisy, tau, &spec(1e-5)).unwrap().value;
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
