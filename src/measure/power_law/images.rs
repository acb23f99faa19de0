//! How the test images, which all points share, move the points: their own values, drawn anew.

use super::Curve;
use crate::error::{Error, Result};
use crate::measure::bootstrap::Bootstrap;

/// log value of every point with the same test images drawn anew, less the measured one.
#[derive(Debug, Clone, PartialEq)]
pub struct TestImages {
    points: usize,
    /// [replicates, points].
    moves: Vec<f64>,
}

impl TestImages {
    /// From the values of each point, one an image, in the same order for all points. Each
    /// replicate draws one set of images.
    ///
    /// # Errors
    /// When points have different numbers of images, or none, or a value is not a number ≥ 0, or
    /// all values of a point are 0.
    pub fn of(values: &[&[f64]], bootstrap: &Bootstrap) -> Result<Self> {
        let (points, n) = (values.len(), values.first().map_or(0, |first| first.len()));
        let sound = |of: &&[f64]| of.len() == n && of.iter().all(|v| *v >= 0.0 && v.is_finite());
        let means: Vec<f64> = values.iter().map(|of| of.iter().sum::<f64>() / n.max(1) as f64).collect();
        if n == 0 || !values.iter().all(sound) || !means.iter().all(|mean| *mean > 0.0 && mean.is_finite()) {
            let cause = "test images are drawn anew where every point has one number ≥ 0 for each, not all of them 0";
            return Err(Error::input(cause));
        }
        // Image by image, so that one image's values lie side by side.
        let by_image: Vec<f64> = (0..n).flat_map(|i| values.iter().map(move |of| of[i])).collect();
        let moved = |counts: &[u16]| {
            let mut sums = vec![0.0; points];
            for (row, &count) in by_image.chunks_exact(points).zip(counts).filter(|(_, count)| **count > 0) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(count) * value);
            }
            // Where all images that count were missed, an n-th of the mean replaces log 0.
            let log = |(sum, mean): (&f64, &f64)| (sum / (n as f64 * mean)).max(1.0 / n as f64).ln();
            sums.iter().zip(&means).map(log).collect::<Vec<f64>>()
        };
        Ok(Self { points, moves: bootstrap.resample(n, moved).concat() })
    }

    /// How many points it moves.
    pub(super) fn points(&self) -> usize {
        self.points
    }

    /// How far a replicate moves each point.
    pub(super) fn moves(&self, replicate: usize) -> &[f64] {
        let first = replicate * self.points % self.moves.len().max(1);
        &self.moves[first..first + self.points]
    }

    /// Of some of the points alone, in their order.
    pub(super) fn of_points(&self, kept: &[bool]) -> Self {
        let keep = |row: &[f64]| row.iter().zip(kept).filter(|(_, kept)| **kept).map(|(m, _)| *m).collect::<Vec<f64>>();
        let points = kept.iter().filter(|kept| **kept).count();
        Self { points, moves: self.moves.chunks_exact(self.points).flat_map(keep).collect() }
    }

    /// The mean over points of every replicate's moves.
    pub(super) fn means(&self) -> Vec<f64> {
        self.moves.chunks_exact(self.points).map(|row| row.iter().sum::<f64>() / self.points as f64).collect()
    }

    /// Means over replicates of `squares` of the moves less their part along `directions`, in which
    /// the curve follows them: the images' part of the scatter around it.
    pub(super) fn in_residuals<const N: usize>(
        &self,
        directions: &[Vec<f64>],
        squares: impl Fn(&[f64]) -> [f64; N],
    ) -> [f64; N] {
        let mut sums = [0.0; N];
        for row in self.moves.chunks_exact(self.points) {
            let mut left = row.to_vec();
            directions.iter().for_each(|direction| remove(&mut left, direction));
            sums.iter_mut().zip(squares(&left)).for_each(|(sum, square)| *sum += square);
        }
        sums.map(|sum| sum * self.points as f64 / self.moves.len() as f64)
    }
}

/// Orthonormal directions in which log values of a curve move with its parameters.
pub(super) fn directions(curve: &Curve, x: &[f64], with_floor: bool) -> Vec<Vec<f64>> {
    let share = |x: f64| 1.0 - curve.floor * (-curve.log_value(x)).exp();
    let mut raw: Vec<Vec<f64>> = vec![x.iter().map(|&x| share(x)).collect(), x.iter().map(|&x| x * share(x)).collect()];
    if with_floor {
        let lowest = x.iter().map(|&x| curve.log_value(x)).fold(f64::INFINITY, f64::min);
        raw.push(x.iter().map(|&x| (lowest - curve.log_value(x)).exp()).collect());
    }
    let mut found: Vec<Vec<f64>> = Vec::new();
    for mut direction in raw {
        let before = norm(&direction);
        // Twice: once leaves rounding errors of what was removed.
        for _ in 0..2 {
            found.iter().for_each(|other| remove(&mut direction, other));
        }
        let length = norm(&direction);
        if length > 1e-9 * before {
            direction.iter_mut().for_each(|v| *v /= length);
            found.push(direction);
        }
    }
    found
}

/// Removes from a vector its part along a direction of length 1.
fn remove(from: &mut [f64], direction: &[f64]) {
    let along: f64 = from.iter().zip(direction).map(|(a, b)| a * b).sum();
    from.iter_mut().zip(direction).for_each(|(v, d)| *v -= along * d);
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|v| v * v).sum::<f64>().sqrt()
}
