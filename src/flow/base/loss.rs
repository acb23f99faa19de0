//! The training loss of a shared-map flow in the base space: −log N(z; μ_y, Σ) + λ·(−log p(y|z))
//! (EBO §4.1, with the flow's own posterior in place of a linear classifier), and its gradients in
//! closed form.

use super::GaussianBase;
use crate::units::ClassId;

/// λ, the weight of the classification loss, and the base it is taken in. Priors are uniform.
#[derive(Debug, Clone, Copy)]
pub struct BaseLoss<'a> {
    /// The base distribution.
    pub base: &'a GaussianBase,
    /// λ ≥ 0, in nats of the classification loss to nats of the likelihood.
    pub lambda: f64,
}

/// What one point costs, in nats.
#[derive(Debug, Clone, PartialEq)]
pub struct PointLoss {
    /// ½ Σ_d (z_d − μ_yd)²/σ_d².
    pub energy: f64,
    /// −log p(y|z).
    pub cross_entropy: f64,
    /// p(k|z) of every class, [K].
    posterior: Vec<f64>,
}

impl BaseLoss<'_> {
    /// The loss of point `z` [D] of class `class`.
    pub fn of(&self, z: &[f64], class: ClassId) -> PointLoss {
        let quad = self.base.distances(z);
        let least = quad.iter().copied().fold(f64::INFINITY, f64::min);
        let terms: Vec<f64> = quad.iter().map(|q| (-0.5 * (q - least)).exp()).collect();
        let total: f64 = terms.iter().sum();
        PointLoss {
            energy: 0.5 * quad[class],
            cross_entropy: 0.5 * (quad[class] - least) + total.ln(),
            posterior: terms.iter().map(|term| term / total).collect(),
        }
    }

    /// Gradient of energy + λ·cross-entropy by z, [D]: (z − μ_y + λ(Σ_k p_k μ_k − μ_y))/σ².
    pub fn by_point(&self, z: &[f64], class: ClassId) -> Vec<f64> {
        let PointLoss { posterior, .. } = self.of(z, class);
        let mean = self.base.mean(class);
        let mut mixed = vec![0.0; z.len()];
        for (k, p) in posterior.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            mixed.iter_mut().zip(self.base.mean(k)).for_each(|(sum, m)| *sum += p * m);
        }
        let terms = z.iter().zip(mean).zip(mixed).zip(self.base.std());
        terms.map(|(((z, mean), mixed), std)| (z - mean + self.lambda * (mixed - mean)) / (std * std)).collect()
    }

    /// Gradient of the mean of energy + λ·cross-entropy over points `z` [N, D] by the class means,
    /// [K, D]: (λ(p_k − δ_ky) − δ_ky)(z − μ_k)/σ².
    pub fn by_means(&self, z: &[f64], classes: &[ClassId]) -> Vec<f64> {
        let (dims, n) = (self.base.dims(), classes.len() as f64);
        let mut gradient = vec![0.0; self.base.classes() * dims];
        for (z, &class) in z.chunks(dims).zip(classes) {
            let PointLoss { posterior, .. } = self.of(z, class);
            for (k, row) in gradient.chunks_mut(dims).enumerate() {
                let own = if k == class { 1.0 } else { 0.0 };
                let weight = (self.lambda * (posterior[k] - own) - own) / n;
                let terms = z.iter().zip(self.base.mean(k)).zip(self.base.std());
                row.iter_mut().zip(terms).for_each(|(sum, ((z, mean), std))| *sum += weight * (z - mean) / (std * std));
            }
        }
        gradient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: [f64; 6] = [0.0, 1.0, 2.0, -1.0, 0.5, 3.0];
    const POINTS: [f64; 4] = [0.4, 0.3, 1.2, -0.6];

    /// Mean loss of two points of classes 2 and 0.
    fn loss(means: &[f64], points: &[f64]) -> f64 {
        let base = GaussianBase::new(means.to_vec(), &[1.5, 0.5]);
        let loss = BaseLoss { base: &base, lambda: 3.0 };
        let each = points.chunks(2).zip([2, 0]).map(|(z, class)| {
            let found = loss.of(z, class);
            found.energy + 3.0 * found.cross_entropy
        });
        each.sum::<f64>() / 2.0
    }

    #[test]
    fn gradients_are_the_slopes_of_the_loss() {
        let base = GaussianBase::new(MEANS.to_vec(), &[1.5, 0.5]);
        let all = BaseLoss { base: &base, lambda: 3.0 };
        let slope = |at: &dyn Fn(f64) -> f64| (at(1e-5) - at(-1e-5)) / 2e-5;
        let moved = |values: &[f64], i: usize, by: f64| {
            let mut values = values.to_vec();
            values[i] += by;
            values
        };
        for (i, found) in all.by_means(&POINTS, &[2, 0]).iter().enumerate() {
            let slope = slope(&|h| loss(&moved(&MEANS, i, h), &POINTS));
            assert!((found - slope).abs() < 1e-8, "mean {i}: {found} {slope}");
        }
        for (n, class) in [(0, 2), (1, 0)] {
            for (d, found) in all.by_point(&POINTS[2 * n..2 * n + 2], class).iter().enumerate() {
                let slope = slope(&|h| loss(&MEANS, &moved(&POINTS, 2 * n + d, h))) * 2.0;
                assert!((found - slope).abs() < 1e-8, "point {n}.{d}: {found} {slope}");
            }
        }
    }

    #[test]
    fn the_cross_entropy_is_that_of_bayes_rule() {
        let base = GaussianBase::new(vec![0.0, 2.0], &[1.0]);
        let found = BaseLoss { base: &base, lambda: 1.0 }.of(&[0.5], 0);
        let (a, b) = ((-0.125f64).exp(), (-1.125f64).exp());
        assert!((found.cross_entropy + (a / (a + b)).ln()).abs() < 1e-15 && found.energy == 0.125);
    }
}
