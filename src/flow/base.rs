//! The base distribution of a shared-map world: N(μ_y, τ²Σ), Σ diagonal and shared by all classes
//! (EBO §3, eq. 14).

mod loss;

pub use loss::{BaseLoss, PointLoss};

use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use crate::units::{ClassId, Seed, Tau};

/// K Gaussians with one diagonal covariance, in f64 on the host.
#[derive(Debug, Clone)]
pub struct GaussianBase {
    /// Number of dimensions D.
    dims: usize,
    /// Class means, row-major [K, D].
    means: Vec<f64>,
    /// Standard deviations σ_d at τ = 1, [D].
    std: Vec<f64>,
    /// ½ Σ_d log(2πσ_d²), nats.
    log_norm: f64,
}

impl GaussianBase {
    /// From class means [K, D] and the stored diagonal [D], of which the absolute value counts:
    /// public checkpoints hold negative entries.
    pub fn new(means: Vec<f64>, cov_diag: &[f64]) -> Self {
        let std: Vec<f64> = cov_diag.iter().map(|c| c.abs().sqrt()).collect();
        let log_norm = cov_diag.iter().map(|c| 0.5 * (2.0 * std::f64::consts::PI * c.abs()).ln()).sum();
        Self { dims: cov_diag.len(), means, std, log_norm }
    }

    /// Number of classes K.
    pub fn classes(&self) -> usize {
        self.means.len() / self.dims
    }

    /// Number of dimensions D.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Mean of one class, [D].
    pub fn mean(&self, class: ClassId) -> &[f64] {
        &self.means[class * self.dims..(class + 1) * self.dims]
    }

    /// Standard deviations at τ = 1, [D].
    pub fn std(&self) -> &[f64] {
        &self.std
    }

    /// ½ Σ_d log(2πσ_d²), nats.
    pub fn log_norm(&self) -> f64 {
        self.log_norm
    }

    /// z = μ_y + τ σ·noise for each image, [N, D] in f64.
    pub fn place(&self, noise: &[f32], classes: &[ClassId], tau: Tau) -> Vec<f64> {
        let tau = tau.get();
        noise
            .par_chunks(self.dims)
            .zip(classes)
            .flat_map_iter(|(noise, &class)| {
                let moments = self.mean(class).iter().zip(&self.std);
                noise.iter().zip(moments).map(move |(&e, (m, s))| m + tau * s * f64::from(e))
            })
            .collect()
    }

    /// The noise (z − μ_y)/(τ σ) of each image, [N, D]: the inverse of [`Self::place`] at τ > 0.
    pub fn unplace(&self, z: &[f64], classes: &[ClassId], tau: Tau) -> Vec<f64> {
        let tau = tau.get();
        let images = z.chunks(self.dims).zip(classes);
        let noise = images.flat_map(|(z, &class)| {
            let moments = self.mean(class).iter().zip(&self.std);
            z.iter().zip(moments).map(move |(z, (m, s))| (z - m) / (tau * s))
        });
        noise.collect()
    }

    /// log N(z; μ_a, τ²σ²) − log N(z; μ_b, τ²σ²) of one point, dimension by dimension, [D], nats.
    pub fn evidence_terms(&self, z: &[f64], a: ClassId, b: ClassId, tau: Tau) -> Vec<f64> {
        let (slopes, centres) = self.evidence_lines(a, b, tau);
        z.iter().zip(slopes).zip(centres).map(|((z, slope), centre)| slope * (z - centre)).collect()
    }

    /// (μ_a − μ_b)/(τσ)² and ½ (μ_a + μ_b), [D] each: log N(z; μ_a, τ²σ²) − log N(z; μ_b, τ²σ²) is
    /// linear in z, with this slope, and 0 at this centre.
    pub fn evidence_lines(&self, a: ClassId, b: ClassId, tau: Tau) -> (Vec<f64>, Vec<f64>) {
        let means = self.mean(a).iter().zip(self.mean(b));
        let of = |((a, b), std): ((&f64, &f64), &f64)| ((a - b) / (tau.get() * std).powi(2), 0.5 * (a + b));
        means.zip(self.std()).map(of).unzip()
    }

    /// Σ_d (z_d − μ_yd)²/σ_d² of N points under every class, row-major [N, K].
    pub fn distances(&self, z: &[f64]) -> Vec<f64> {
        let inverse_std: Vec<f64> = self.std.iter().map(|s| s.recip()).collect();
        z.par_chunks(self.dims)
            .flat_map_iter(|z| {
                self.means.chunks(self.dims).map(|mean| squared_distance(z, mean, &inverse_std)).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Σ_d ((z_d − μ_d) w_d)², eight partial sums wide so that the compiler can vectorise it.
fn squared_distance(z: &[f64], mean: &[f64], weight: &[f64]) -> f64 {
    let mut partial = [0f64; 8];
    let triples = z.chunks(8).zip(mean.chunks(8)).zip(weight.chunks(8));
    for ((z, mean), weight) in triples {
        for (sum, ((z, m), w)) in partial.iter_mut().zip(z.iter().zip(mean).zip(weight)) {
            let scaled = (z - m) * w;
            *sum += scaled * scaled;
        }
    }
    partial.iter().sum()
}

/// Standard normal latents of images `first..first + n`, NCHW.
pub fn latents(seed: Seed, first: usize, n: usize, dims: usize) -> Vec<f32> {
    let mut noise = vec![0f32; n * dims];
    noise.par_chunks_mut(dims).enumerate().for_each(|(i, noise)| {
        let mut rng = seed.rng((first + i) as u64);
        noise.fill_with(|| StandardNormal.sample(&mut rng));
    });
    noise
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_and_norm_equal_the_written_out_gaussian() {
        let base = GaussianBase::new(vec![0.0, 1.0, 2.0, -1.0, 0.5, 3.0], &[1.0, -4.0, 0.25]);
        let z = [0.5f64, -1.0, 2.0];
        let written: Vec<f64> = [[0.0, 1.0, 2.0], [-1.0, 0.5, 3.0]]
            .iter()
            .map(|m| (0..3).map(|d| (z[d] - m[d]).powi(2) / [1.0, 4.0, 0.25][d]).sum())
            .collect();
        assert_eq!(base.distances(&z), written);
        let norm = 0.5 * ((2.0 * std::f64::consts::PI).powi(3) * 1.0 * 4.0 * 0.25).ln();
        assert!((base.log_norm() - norm).abs() < 1e-14);
    }

    #[test]
    fn a_placed_point_is_tau_times_its_noise_away_from_its_mean() {
        let base = GaussianBase::new(vec![0.0, 1.0, 5.0, -5.0], &[2.0, 3.0]);
        let noise = [0.3, -0.7];
        let z = base.place(&noise, &[1], Tau::new(1.5).unwrap());
        let expected = 2.25 * f64::from(0.3f32).mul_add(f64::from(0.3f32), f64::from(0.7f32).powi(2));
        assert!((base.distances(&z)[1] - expected).abs() < 1e-12);
    }
}
