//! Generalised Henze-Penrose bounds (Sekeh, Oselio & Hero 2020): R_ij edges of one minimum spanning
//! tree over all classes join samples of classes i and j (the Friedman-Rafsky statistic), and R_ij
//! / 2N tends to δ_ij = ∫ π_i p_i π_j p_j / p:
//!
//! (K−1)/K · (1 − √(1 − 2K/(K−1) · Σ_{i<j} δ_ij)) ≤ E* ≤ 2 Σ_{i<j} δ_ij.
//!
//! 2 Σ δ_ij = E[1 − Σ p_y²] is the asymptotic 1-NN error, and the lower bound is Cover and Hart's
//! of it. With two classes, 4 π₀π₁ D + (π₀ − π₁)² = 1 − 4δ of the Henze-Penrose divergence D, and
//! the bounds are those of Berisha et al. 2016: ½ − ½ √(1 − 4δ) and ½ − ½ (1 − 4δ). Priors are the
//! class frequencies of the sample.

use super::geometry::Geometry;
use super::nearest::bounded_by_one_nn;
use super::{Estimator, Graded};

/// Both bounds; the estimate is the upper one.
pub fn ghp(geometry: &Geometry<'_>) -> Graded {
    let upper = dichotomous(geometry).iter().sum::<usize>() as f64 / geometry.sample.n() as f64;
    bounded_by_one_nn(geometry, Estimator::Ghp, None, upper)
}

/// R_ij, edges of the tree between classes i < j, in the order (0,1), (0,2), …, (1,2), …; δ̂_ij =
/// R_ij / 2N.
pub fn dichotomous(geometry: &Geometry<'_>) -> Vec<usize> {
    let (classes, labels) = (geometry.sample.classes(), geometry.sample.labels);
    let mut edges = vec![0; classes * (classes - 1) / 2];
    for edge in &geometry.tree {
        let (low, high) = (labels[edge.a].min(labels[edge.b]), labels[edge.a].max(labels[edge.b]));
        if low < high {
            // Rows before `low` hold K−1, K−2, … pairs.
            edges[low * (2 * classes - low - 1) / 2 + high - low - 1] += 1;
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::grade::Sample;

    #[test]
    fn a_line_of_three_classes_by_hand() {
        let line = [0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0];
        let geometry = Geometry::new(Sample::new(&line, 1, &[0, 0, 2, 1, 2, 0], 3).unwrap()).unwrap();
        // Edges 0-0, 0-2, 2-1, 1-2, 2-0.
        assert_eq!(dichotomous(&geometry), [0, 2, 2]);
        let bounds = ghp(&geometry);
        assert!((bounds.estimate - 4.0 / 6.0).abs() < 1e-15);
        assert!((bounds.lower.unwrap() - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn two_classes_give_the_bounds_of_berisha() {
        // Unequal classes on a line: 0 0 1 0 0 1 0 0 0 0: four edges differ.
        let line: Vec<f32> = (0..10u8).map(f32::from).collect();
        let geometry = Geometry::new(Sample::new(&line, 1, &[0, 0, 1, 0, 0, 1, 0, 0, 0, 0], 2).unwrap()).unwrap();
        let (p, q, r, n) = (0.8, 0.2, 4.0, 10.0);
        // Friedman and Rafsky's estimate of D with 8 and 2 samples, as Berisha et al. state it.
        let divergence = 1.0 - r * n / (2.0 * 8.0 * 2.0);
        let u: f64 = 4.0 * p * q * divergence + (p - q) * (p - q);
        let bounds = ghp(&geometry);
        assert!((bounds.upper.unwrap() - (0.5 - 0.5 * u)).abs() < 1e-15);
        assert!((bounds.lower.unwrap() - (0.5 - 0.5 * u.sqrt())).abs() < 1e-15);
    }
}
