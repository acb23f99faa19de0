//! In which order a corpus has its images: in a mixed one, or class by class.

use std::collections::BTreeMap;

use crate::data::Dataset;
use crate::units::ClassId;

/// Whether images of a class stand together: class by class in whatever order of the classes, or in stretches of one class, as
/// where two corpora in order were joined. The last images are then no sample of all, nor are the first.
///
/// Counted are the places at which the label changes. In a random order of n images, n_k of class k, there are
/// n − Σ n_k(n_k − 1)/n − 1 of them in the mean; fewer than half as many are none by chance.
pub fn by_class(all: &Dataset) -> bool {
    let Some(labels) = &all.labels else { return false };
    let mut counts: BTreeMap<ClassId, usize> = BTreeMap::new();
    labels.iter().for_each(|&label| *counts.entry(label).or_default() += 1);
    let stretches = labels.chunk_by(|a, b| a == b).count();
    let n = labels.len() as f64;
    let alike: f64 = counts.values().map(|&count| count as f64 * (count as f64 - 1.0)).sum();
    let by_chance = n - alike / n.max(1.0) - 1.0;
    stretches <= counts.len() || (stretches as f64 - 1.0) < 0.5 * by_chance
}

#[cfg(test)]
mod tests {
    use rand::seq::SliceRandom;

    use super::*;
    use crate::data::ImageShape;
    use crate::units::Seed;

    fn of(labels: Vec<usize>) -> Dataset {
        let n = labels.len();
        let ids = (0..n).map(|i| i.to_string()).collect();
        Dataset {
            name: "zoo".into(),
            shape: ImageShape { channels: 1, height: 1, width: 1 },
            pixels: vec![0; n],
            labels: Some(labels),
            class_names: ["ape", "bee", "cow"].map(String::from).to_vec(),
            ids,
            noises: Default::default(),
        }
    }

    #[test]
    fn classes_one_after_the_other_are_known_in_any_order() {
        for (labels, expected) in
            [(&[1, 1, 0, 0][..], true), (&[0, 0, 1, 1], true), (&[0, 1, 0, 1], false), (&[2], true)]
        {
            assert_eq!(by_class(&of(labels.to_vec())), expected, "{labels:?}");
        }
    }

    #[test]
    fn stretches_of_a_class_are_known_and_no_random_order_is_taken_for_them() {
        // Two corpora in order, one behind the other: more stretches than classes.
        assert!(by_class(&of([vec![0; 20], vec![1; 20], vec![2; 20]].concat().repeat(2))));
        // Even and uneven shares, in random orders.
        for (counts, n) in [([10, 10, 10], 30), ([60, 30, 10], 100), ([500, 300, 200], 1000)] {
            let labels: Vec<usize> = (0..3).flat_map(|class| vec![class; counts[class]]).collect();
            assert_eq!((labels.len(), by_class(&of(labels.clone()))), (n, true));
            for seed in 0..200 {
                let mut mixed = labels.clone();
                mixed.shuffle(&mut Seed(seed).rng(0));
                assert!(!by_class(&of(mixed)), "{counts:?}, seed {seed}");
            }
        }
    }
}
