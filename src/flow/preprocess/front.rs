//! What lies between a Glow's world space and the space its couplings work in: the bounded logit
//! map of EBO's code (`_pre_process`; Dinh et al. 2017 §4.1), or nothing where the world's images
//! have Gaussian noise.
//!
//! y = logit(p), p = ((2v − 1)b + 1)/2 with b = 0.9. Its log-determinant is part of the density and
//! is computed in f64 on the host: no gradient ever flows through it.

use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;
use rayon::prelude::*;

use super::Preprocessing;

/// The map in front of a Glow's couplings.
#[derive(Debug, Clone, Copy)]
pub enum Front {
    /// Uniformly dequantised pixels v pass the bounded logit map.
    Logit(BoundedLogit),
    /// Pixels with Gaussian noise stay as they are: their density has no bounds.
    Identity,
}

impl Front {
    /// That of a world with such pixels; `bounds` is b of the logit map.
    pub fn new(pixels: Preprocessing, bounds: f64) -> Self {
        match pixels {
            Preprocessing::Uniform => Self::Logit(BoundedLogit { bounds }),
            Preprocessing::UniformSymmetric | Preprocessing::Gaussian { .. } => Self::Identity,
        }
    }

    /// y and the log-determinant Σ_d log |dy/dx| of each image of D = `dims` dimensions, [N]. An x
    /// outside the support gives non-finite numbers, which the caller reports.
    pub fn forward<T: Copy + Into<f64> + Sync>(self, x: &[T], dims: usize) -> (Vec<f64>, Vec<f64>) {
        match self {
            Self::Logit(logit) => logit.forward(x, dims),
            Self::Identity => (x.iter().map(|&x| x.into()).collect(), vec![0.0; x.len() / dims.max(1)]),
        }
    }

    /// x and the log-determinant Σ_d log |dy/dx| of each image at that y, [N].
    pub fn inverse(self, y: Vec<f64>, dims: usize) -> (Vec<f64>, Vec<f64>) {
        match self {
            Self::Logit(logit) => logit.inverse(&y, dims),
            Self::Identity => {
                let images = y.len() / dims.max(1);
                (y, vec![0.0; images])
            }
        }
    }

    /// x as a world stores it.
    pub fn round(self, x: &[f64]) -> Vec<f32> {
        match self {
            Self::Logit(logit) => logit.round(x),
            Self::Identity => x.iter().map(|&x| x as f32).collect(),
        }
    }

    /// x of y on its device, the log-determinants Σ_w of every row [N, C·H] less a constant of
    /// every pixel, and that constant.
    pub fn inverse_resident(self, y: &Tensor<4>) -> (Tensor<4>, Tensor<2>, f64) {
        match self {
            Self::Logit(logit) => {
                let (v, rows) = logit.inverse_resident(y);
                (v, rows, logit.bounds.ln())
            }
            Self::Identity => {
                let [n, c, h, _] = y.dims();
                (y.clone(), Tensor::zeros([n, c * h], (&y.device(), y.dtype())), 0.0)
            }
        }
    }

    /// The open interval in which x has a density, where it is not the whole line.
    pub fn support(self) -> Option<[f64; 2]> {
        match self {
            Self::Logit(BoundedLogit { bounds }) => Some([0.5 - 0.5 / bounds, 0.5 + 0.5 / bounds]),
            Self::Identity => None,
        }
    }
}

/// The bounded logit map; `bounds` is b.
#[derive(Debug, Clone, Copy)]
pub struct BoundedLogit {
    /// b, the share of (0, 1) that pixels fill.
    pub bounds: f64,
}

impl BoundedLogit {
    /// y and the log-determinant Σ_d log |dy/dv| of each image of D = `dims` dimensions, [N].
    ///
    /// v outside the open interval on which the map is defined gives non-finite numbers, which the
    /// caller reports.
    pub fn forward<T: Copy + Into<f64> + Sync>(self, v: &[T], dims: usize) -> (Vec<f64>, Vec<f64>) {
        let mut y = vec![0f64; v.len()];
        let log_det = y
            .par_chunks_mut(dims)
            .zip(v.par_chunks(dims))
            .map(|(y, v)| y.iter_mut().zip(v).map(|(y, &v)| self.point(v.into(), y)).sum())
            .collect();
        (y, log_det)
    }

    /// One dimension: writes y, returns log |dy/dv| = log b − log p − log(1 − p).
    fn point(self, v: f64, y: &mut f64) -> f64 {
        let p = ((2.0 * v - 1.0) * self.bounds + 1.0) / 2.0;
        let (log_p, log_q) = (p.ln(), (-p).ln_1p());
        *y = log_p - log_q;
        self.bounds.ln() - log_p - log_q
    }

    /// The smallest and the largest f32 strictly inside the interval on which the map is defined.
    fn support(self) -> (f32, f32) {
        let half = 0.5 / self.bounds;
        let (low, high) = (0.5 - half, 0.5 + half);
        let inside = |v: f32| f64::from(v) > low && f64::from(v) < high;
        let (mut least, mut most) = (low as f32, high as f32);
        while !inside(least) {
            least = least.next_up();
        }
        while !inside(most) {
            most = most.next_down();
        }
        (least, most)
    }

    /// v as a world stores it. Where |y| was so large (beyond about 16) that the nearest f32 would
    /// be the end of the interval, the last f32 before it: such a v still has a density, that of
    /// its own y.
    pub fn round(self, v: &[f64]) -> Vec<f32> {
        let (least, most) = self.support();
        v.iter().map(|&v| (v as f32).clamp(least, most)).collect()
    }

    /// v of y on its device, and the log-determinants Σ_w log |dy/dv| of every row [N, C·H]: log b
    /// + |y| + 2 log(1 + e^−|y|) a pixel, without log b.
    pub fn inverse_resident(self, y: &Tensor<4>) -> (Tensor<4>, Tensor<2>) {
        let [n, c, h, _] = y.dims();
        let size = y.clone().abs();
        let log_det = size.clone() + (-size).exp().log1p() * 2.0;
        let v = (sigmoid(y.clone()) * 2.0 - 1.0) / (2.0 * self.bounds) + 0.5;
        (v, log_det.sum_dim(3).reshape([n, c * h]))
    }

    /// v and the log-determinant Σ_d log |dy/dv| of each image at that y, [N]. Undoes the bounds,
    /// so v may lie a little outside [0, 1] and is kept as it is.
    pub fn inverse(self, y: &[f64], dims: usize) -> (Vec<f64>, Vec<f64>) {
        let mut v = vec![0f64; y.len()];
        let log_det = v
            .par_chunks_mut(dims)
            .zip(y.par_chunks(dims))
            .map(|(v, y)| {
                let pairs = v.iter_mut().zip(y);
                pairs
                    .map(|(v, &y)| {
                        // p = σ(y): log p = −softplus(−y), log(1 − p) = −softplus(y), exact in both
                        // tails.
                        let (log_p, log_q) = (-softplus(-y), -softplus(y));
                        *v = ((2.0 * log_p.exp() - 1.0) / self.bounds + 1.0) / 2.0;
                        self.bounds.ln() - log_p - log_q
                    })
                    .sum()
            })
            .collect();
        (v, log_det)
    }
}

/// log(1 + e^y) without overflow.
fn softplus(y: f64) -> f64 {
    y.max(0.0) + (-y.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIT: BoundedLogit = BoundedLogit { bounds: 0.9 };

    #[test]
    fn the_inverse_undoes_the_map_and_agrees_on_the_log_det() {
        let v: Vec<f64> = (0..=64).map(|i| -0.02 + 1.04 * f64::from(i) / 64.0).collect();
        let (y, forward) = LOGIT.forward(&v, v.len());
        let (back, inverse) = LOGIT.inverse(&y, v.len());
        assert!(v.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-15));
        assert!((forward[0] - inverse[0]).abs() < 1e-10);
    }

    #[test]
    fn saturated_values_stay_inside_the_support() {
        for bounds in [0.9, f64::from(0.9f32), 0.5] {
            let logit = BoundedLogit { bounds };
            let (v, _) = logit.inverse(&[-800.0, -30.0, 30.0, 800.0], 4);
            let (y, log_det) = logit.forward(&logit.round(&v), 4);
            assert!(y.iter().chain(&log_det).all(|value| value.is_finite()), "{v:?} → {y:?}");
            assert!(y[0] < -14.0 && y[3] > 14.0);
        }
    }

    #[test]
    fn the_log_det_is_the_derivative() {
        let h = 1e-6;
        for v in [0.003, 0.2, 0.5, 0.97] {
            let mut y = [0.0; 3];
            let log_det = LOGIT.point(v, &mut y[0]);
            LOGIT.point(v - h, &mut y[1]);
            LOGIT.point(v + h, &mut y[2]);
            assert!((((y[2] - y[1]) / (2.0 * h)).ln() - log_det).abs() < 1e-8);
        }
    }
}
