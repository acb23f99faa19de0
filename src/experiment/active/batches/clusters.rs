//! k-means (Lloyd 1982), seeded as k-means++ (Arthur & Vassilvitskii 2007).

use rand::{Rng, RngExt};

use super::badge::drawn;
use super::geometry::{Rows, squared};
use crate::parallel;

/// Rounds of moving the centres, at most.
const ROUNDS: usize = 25;

/// Returns the cluster of each row, below `k`; a cluster may be empty.
pub(super) fn clusters(rows: Rows<'_>, k: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut centres = seeds(rows, k.min(rows.len()), rng);
    let mut of = Vec::new();
    for _ in 0..ROUNDS {
        let nearest = Rows::new(&centres, rows.dim());
        let next = rows.each(|row| nearest_of(row, nearest));
        if next == of {
            break;
        }
        of = next;
        move_centres(rows, &of, &mut centres);
    }
    of
}

/// The place of the nearest centre; of equals the first.
fn nearest_of(row: &[f32], centres: Rows<'_>) -> usize {
    let mut best = (0, f64::INFINITY);
    for i in 0..centres.len() {
        let distance = squared(row, centres.row(i));
        if distance < best.1 {
            best = (i, distance);
        }
    }
    best.0
}

/// Rows drawn by chance: the first evenly, each further in proportion to its squared distance from the nearest before.
fn seeds(rows: Rows<'_>, k: usize, rng: &mut impl Rng) -> Vec<f32> {
    let mut centres = Vec::with_capacity(k * rows.dim());
    let mut distances = vec![1.0; rows.len()];
    for i in 0..k {
        // Where all coincide with a centre, one more changes nothing.
        let Some(next) = drawn(&distances, rng.random()) else { break };
        let centre = rows.row(next);
        centres.extend(centre);
        let first = i == 0;
        parallel::each_mut(&mut distances, |j, distance| {
            let new = squared(rows.row(j), centre);
            *distance = if first { new } else { distance.min(new) };
        });
    }
    centres
}

/// Moves each centre to the mean of its rows; one without rows stays.
fn move_centres(rows: Rows<'_>, of: &[usize], centres: &mut [f32]) {
    let dim = rows.dim();
    let mut members = vec![Vec::new(); centres.len() / dim];
    of.iter().enumerate().for_each(|(row, &cluster)| members[cluster].push(row));
    parallel::chunks_mut(centres, dim, |cluster, centre| {
        let members = &members[cluster];
        if members.is_empty() {
            return;
        }
        let mut sums = vec![0f64; dim];
        for &row in members {
            sums.iter_mut().zip(rows.row(row)).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let n = members.len() as f64;
        centre.iter_mut().zip(sums).for_each(|(centre, sum)| *centre = (sum / n) as f32);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn heaps_far_apart_are_found_and_the_result_is_a_fixed_point() {
        let mut rng = Seed(4).rng(0);
        let heap = |i: usize| [10.0 * (i % 3) as f32, if i % 3 == 1 { 10.0 } else { 0.0 }];
        let values: Vec<f32> = (0..90).flat_map(|i| heap(i).map(|v| v + rng.random::<f32>())).collect();
        let rows = Rows::new(&values, 2);
        let of = clusters(rows, 3, &mut rng);
        for i in 0..90 {
            assert_eq!(of[i], of[i % 3], "{i}");
        }
        assert!(of[0] != of[1] && of[1] != of[2] && of[0] != of[2]);
        // No more clusters than there are rows; copies need but one.
        assert!(clusters(Rows::new(&[1.0; 6], 2), 5, &mut rng).iter().all(|cluster| *cluster == 0));
        assert!(clusters(Rows::new(&[], 2), 5, &mut rng).is_empty());
    }
}
