//! Core-set: the k-center problem, greedily (Sener & Savarese 2018, algorithm 1). No image of the pool should
//! lie far from a labelled one. Greedy choice leaves at most twice the smallest radius possible (Gonzalez 1985).

use super::geometry::{Rows, largest, squared};
use crate::parallel;

/// Returns `count` places in `open` [N, D], each the farthest from what is in `labelled` [L, D] and from those
/// before it; of equals the first.
pub(in super::super) fn core_set(open: Rows<'_>, labelled: Rows<'_>, count: usize) -> Vec<usize> {
    let nearest =
        |row: &[f32]| (0..labelled.len()).map(|i| squared(row, labelled.row(i))).fold(f64::INFINITY, f64::min);
    let mut distances = open.each(nearest);
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count.min(open.len()) {
        let Some(next) = largest(&distances) else { break };
        chosen.push(next);
        let centre = open.row(next);
        parallel::each_mut(&mut distances, |i, distance| {
            *distance = distance.min(squared(open.row(i), centre));
        });
        // Below every distance: a chosen one is not chosen again, where all others coincide with a centre.
        distances[next] = f64::NEG_INFINITY;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    fn radius(open: Rows<'_>, labelled: Rows<'_>, chosen: &[usize]) -> f64 {
        let of = |i: usize| {
            let to_chosen = chosen.iter().map(|&c| squared(open.row(i), open.row(c)));
            let to_labelled = (0..labelled.len()).map(|l| squared(open.row(i), labelled.row(l)));
            to_chosen.chain(to_labelled).fold(f64::INFINITY, f64::min).sqrt()
        };
        (0..open.len()).map(of).fold(0.0, f64::max)
    }

    /// Choices of three of so many places.
    fn triples(n: usize) -> impl Iterator<Item = [usize; 3]> {
        (0..n).flat_map(move |a| (a + 1..n).flat_map(move |b| (b + 1..n).map(move |c| [a, b, c])))
    }

    #[test]
    fn the_greedy_radius_is_at_most_twice_the_best_of_all() {
        let mut twice = 0;
        for seed in 0..40 {
            let mut rng = Seed(seed).rng(0);
            let values: Vec<f32> = (0..28).map(|_| rng.random::<f32>()).collect();
            let (open, labelled) = (Rows::new(&values[..24], 2), Rows::new(&values[24..], 2));
            let found = radius(open, labelled, &core_set(open, labelled, 3));
            let best = triples(12).map(|three| radius(open, labelled, &three)).fold(f64::INFINITY, f64::min);
            assert!(found >= best - 1e-9 && found <= 2.0 * best + 1e-9, "seed {seed}: {found}, best {best}");
            twice += usize::from(found > best + 1e-9);
        }
        // The bound is put to the test: greedy choice is not always the best.
        assert!(twice > 5, "{twice}");
    }

    #[test]
    fn the_farthest_comes_first_and_no_place_twice() {
        let (open, labelled) = ([0.5f32, 9.0, 4.0, 9.5, 0.5], [0.0f32]);
        let (open, labelled) = (Rows::new(&open, 1), Rows::new(&labelled, 1));
        assert_eq!(core_set(open, labelled, 3), [3, 2, 0]);
        let mut all = core_set(open, labelled, 9);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }
}
