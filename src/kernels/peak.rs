//! The most arithmetic a core can do: what products are compared with.

use super::{kernel, product::unrolled};

/// Sums that do not wait for each other: more than are under way at a time on any core (two units,
/// four or five steps each), and few enough for sixteen registers.
const CHAINS: usize = 12;

kernel! {
    /// `rounds` times [`CHAINS`] fused multiply-adds of registers, sum ← sum·`by` + `more`, which
    /// read no memory. Returns the sum of all numbers at the end, and how many operations (two for
    /// each number and multiply-add) that took.
    pub multiply_adds<T, S, simd>(rounds: usize, by: T, more: T) -> (f64, f64) {
        let (by, more) = (T::splat(simd, by), T::splat(simd, more));
        let mut sums = [T::splat(simd, T::ZERO); CHAINS];
        for _ in 0..rounds {
            unrolled!(i < CHAINS => { sums[i] = T::multiply_add(simd, sums[i], by, more); });
        }
        let total = sums.into_iter().map(|sum| T::total(simd, sum).wide()).sum();
        (total, 2.0 * (rounds * CHAINS * T::lanes::<S>()) as f64)
    }
}
