//! Checks the memory of many classes before it is allocated: it grows with their pairs.

use crate::data::check_memory;
use crate::error::Result;

/// Bytes a pair of classes in every method: distances at τ = 1 and at τ, union bound.
const PLAIN: u64 = 24;
/// More bytes a pair in pair importance sampling: pairs, logarithms, distances, products.
const PAIRS: u64 = 72;
/// The same where the pairs of one class alone are drawn from.
const OF_ONE: u64 = 16;
/// Bytes a coordinate of a mean.
const COORDINATE: u64 = 8;
/// Bytes a mean: its place in the order, and its extent.
const MEAN: u64 = 16;
/// Bytes over K⁴ of the triangular factors of all terms, at most: K³/6 numbers a class.
const FACTORS: f64 = 8.0 / 6.0;

/// Room for the distances of `count` classes in `dims` dimensions, and their coordinates.
pub(super) fn for_distances(count: usize, dims: usize) -> Result<()> {
    let (k, rank) = (count as u64, dims.min(count) as u64);
    let needed = square(k).saturating_mul(PLAIN).saturating_add(k.saturating_mul(rank).saturating_mul(16));
    check_memory(&format!("the distances of all pairs of {count} classes"), needed, "take fewer classes")
}

/// Room for pair importance sampling over all pairs of `count` classes, or those of one of them.
pub(super) fn for_pairs(count: usize, of_one: bool) -> Result<()> {
    let needed = square(count as u64).saturating_mul(if of_one { OF_ONE } else { PAIRS });
    let otherwise =
        if of_one { "take fewer classes" } else { "choose the method mc, which keeps no pairs, or take fewer classes" };
    check_memory(&format!("the pairs of {count} classes"), needed, otherwise)
}

/// Room for the means of `count` classes in coordinates of so many pairs; while those of a pair are made, its axes and a copy
/// of the means are there, too.
pub(super) fn for_coordinates(count: usize, rank: usize, pairs: usize) -> Result<()> {
    let (count, rank, pairs) = (count as u64, rank as u64, pairs as u64);
    let at_work = pairs.min(rayon::current_num_threads() as u64);
    let means = count.saturating_mul(rank.saturating_mul(COORDINATE).saturating_add(MEAN));
    check_memory(
        &format!("the means of {count} classes in coordinates of {pairs} pairs"),
        means.saturating_mul(pairs.saturating_add(2 * at_work)),
        "take fewer classes",
    )
}

/// Room for separation of variables of `count` classes.
pub(super) fn for_factors(count: usize) -> Result<()> {
    let needed = (count as f64).powi(4) * FACTORS;
    check_memory(
        &format!("the factors of {count} classes"),
        needed as u64,
        "choose the method pair, or take fewer classes",
    )
}

fn square(count: u64) -> u64 {
    count.saturating_mul(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_of_many_pairs_are_refused_where_those_of_one_are_not() {
        for_coordinates(1000, 999, 1).unwrap();
        let why = for_coordinates(1_000_000, 999_999, 256).unwrap_err().to_string();
        assert!(why.contains("1000000 classes in coordinates of 256 pairs") && why.contains("fewer classes"), "{why}");
    }
}
