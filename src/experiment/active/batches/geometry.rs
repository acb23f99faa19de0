//! Rows of numbers, their distances and products.

use crate::measure::argmax;
use crate::parallel;

/// Sums kept side by side, so that the machine adds several at once.
const LANES: usize = 16;

/// Rows of `dim` numbers each, [N, D].
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Rows<'a> {
    values: &'a [f32],
    dim: usize,
}

impl<'a> Rows<'a> {
    /// Of [N, D] numbers.
    pub fn new(values: &'a [f32], dim: usize) -> Self {
        Self { values, dim: dim.max(1) }
    }

    /// How many.
    pub fn len(self) -> usize {
        self.values.len() / self.dim
    }

    /// Numbers D of a row.
    pub fn dim(self) -> usize {
        self.dim
    }

    /// A row, [D].
    pub fn row(self, i: usize) -> &'a [f32] {
        &self.values[i * self.dim..(i + 1) * self.dim]
    }

    /// Something of each row, in order; the same on any number of threads.
    pub fn each<T: Send>(self, of: impl Fn(&[f32]) -> T + Sync) -> Vec<T> {
        parallel::map(self.len(), |i| of(self.row(i)))
    }
}

/// Σ of a function of two numbers over two rows, in f32 by lanes and in pieces that are added in f64.
#[inline]
fn sum(a: &[f32], b: &[f32], of: impl Fn(f32, f32) -> f32) -> f64 {
    let piece = |a: &[f32], b: &[f32]| {
        let mut sums = [0f32; LANES];
        let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let rest: f32 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| of(*a, *b)).sum();
        for (a, b) in left.zip(right) {
            for lane in 0..LANES {
                sums[lane] += of(a[lane], b[lane]);
            }
        }
        f64::from(sums.iter().sum::<f32>() + rest)
    };
    const PIECE: usize = 64 * LANES;
    a.chunks(PIECE).zip(b.chunks(PIECE)).map(|(a, b)| piece(a, b)).sum()
}

/// ‖a − b‖².
pub(super) fn squared(a: &[f32], b: &[f32]) -> f64 {
    sum(a, b, |a, b| (a - b) * (a - b))
}

/// a·b.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    sum(a, b, |a, b| a * b)
}

/// The place of the largest; of equals the first. `None` of none.
pub(super) fn largest(values: &[f64]) -> Option<usize> {
    (!values.is_empty()).then(|| argmax(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_and_products_are_those_of_f64() {
        for dim in [1, 15, 16, 17, 1023, 3001] {
            let values = |by: f32| (0..dim).map(|i| (i as f32 * by).sin()).collect::<Vec<f32>>();
            let (a, b) = (values(0.7), values(1.3));
            let exact = |of: fn(f64, f64) -> f64| -> f64 {
                a.iter().zip(&b).map(|(a, b)| of(f64::from(*a), f64::from(*b))).sum()
            };
            let close = |found: f64, exact: f64| (found - exact).abs() < 1e-6 * dim as f64;
            assert!(close(squared(&a, &b), exact(|a, b| (a - b).powi(2))), "{dim}");
            assert!(close(dot(&a, &b), exact(|a, b| a * b)), "{dim}");
            assert_eq!(squared(&a, &a), 0.0);
        }
        assert_eq!((largest(&[1.0, 3.0, 3.0]), largest(&[])), (Some(1), None));
    }
}
