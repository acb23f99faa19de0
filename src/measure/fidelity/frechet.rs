//! The Fréchet distance of two Gaussians in feature space, FID (Heusel et al. 2017, eq. 6), and
//! what it is without the bias of a finite sample.
//!
//! FID = ‖μ₁ − μ₂‖² + tr Σ₁ + tr Σ₂ − 2 tr (Σ₁Σ₂)^½
//!
//! With any factors Σ = L Lᵀ, tr (Σ₁Σ₂)^½ is the sum of the singular values of L₁ᵀ L₂: these are
//! the roots of the eigenvalues of Σ₁^½ Σ₂ Σ₁^½. The roots are never taken of rounded eigenvalues,
//! which would turn a noise of 1e-16 into 1e-8 for each of the hundreds of directions that a sample
//! leaves empty (n ≤ d), and no eigenvalue comes out negative. Factors come from the Cholesky
//! decomposition with pivots, which ends where a covariance has no variance left: no ε on the
//! diagonal, and a matrix that rounding made indefinite is cut where its first negative variance
//! shows; the variance cut off is reported.
//!
//! **Bias.** FID of n images exceeds that of infinitely many by about a/n, with a different a for
//! every model (Chong & Forsyth 2020). [`frechet_unbiased`] takes that term out on the side of the
//! generated images and gives an interval. The bias that the real images bring remains: read any
//! FID beside the one of held-out real images against the same training images, in equal number.

use nalgebra::DMatrix;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::features::{Features, Real};
use super::moments::{Gaussian, Moments};
use crate::error::{Error, Result};
use crate::measure::{Estimate, Interval, student_mean};
use crate::parallel;
use crate::units::Seed;

/// Groups of a jackknife unless a caller wants others.
pub const GROUPS: usize = 10;

/// Largest negative variance, relative to the largest, that is rounding (f32 matrices: 1e-7).
const INDEFINITE: f64 = 1e-4;

/// Largest relative difference of Σ s² and ‖L₁ᵀL₂‖², the check on the singular values.
const IDENTITY: f64 = 1e-9;

/// FID and its parts, in squared units of the features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Frechet {
    /// The distance. For equal Gaussians rounding can leave −1e-14 of the traces.
    pub value: f64,
    /// ‖μ₁ − μ₂‖².
    pub means: f64,
    /// tr Σ₁ + tr Σ₂ − 2 tr (Σ₁Σ₂)^½.
    pub covariances: f64,
    /// Variance that the factors left out, of both covariances, as a share of their traces: 1e-13
    /// where both have full rank or were computed here; more where a file has them rounded.
    pub left_out: f64,
}

/// The FID of two Gaussians: O(d³), or O(d n²) where samples of n < d made them.
///
/// # Errors
/// When the numbers of features differ, when one is no covariance (a variance clearly below 0 in
/// some direction), or when the singular values do not converge.
pub fn frechet(a: &Gaussian, b: &Gaussian) -> Result<Frechet> {
    distance(&Factored::new(a)?, &Factored::new(b)?)
}

/// FID without its bias in 1/n, and its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unbiased {
    /// FID of all n images, biased upwards.
    pub plain: Frechet,
    /// FID with the term in 1/n taken out, and its 95 % interval over other draws of the generated
    /// images; the real ones are held fixed. Can be negative where the truth is near 0.
    pub estimate: Estimate,
    /// Standard error of the estimate.
    pub std_error: f64,
    /// Generated images.
    pub n: usize,
    /// Groups left out in turn.
    pub groups: usize,
}

/// FID of generated `features` against `real`, with the bias of their number removed by the
/// jackknife: the images are dealt into `groups` at random, each is left out in turn, and G·FID −
/// (G − 1)·FID(without g) has no term in 1/n (Quenouille 1956). That is the line through FID at 1/n
/// and at the next larger 1/n, read at 0, as Chong & Forsyth (2020, FID_∞) fit it through more of
/// them; unlike theirs it has independent parts, whose spread gives Student's interval (Tukey
/// 1958).
///
/// Takes groups + 1 FIDs, run side by side, and 8 d² bytes per group. What is left of the bias is
/// of order 1/n²: n should be several times d (Chong & Forsyth: 5,000 images at least for d =
/// 2,048). The interval is on the wide side where n is not much larger than d (it held the truth in
/// 99 % of draws at n = 12 d), as jackknives are (Efron & Stein 1981).
///
/// # Errors
/// Those of [`frechet`]; fewer than 2 groups, or fewer than 2 images in a group.
pub fn frechet_unbiased<T: Real>(
    real: &Gaussian,
    features: &Features<'_, T>,
    groups: usize,
    seed: Seed,
) -> Result<Unbiased> {
    let n = features.n();
    if groups < 2 || n < 2 * groups {
        let cause = format!("a jackknife needs 2 groups of 2 images at least, not {n} images in {groups}");
        return Err(Error::input(cause));
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut seed.split("groups of a jackknife").rng(0));
    let mut parts = Vec::with_capacity(groups);
    for g in 0..groups {
        let values = features.gather(&order[g * n / groups..(g + 1) * n / groups]);
        let mut moments = Moments::new(features.dim());
        moments.add(&Features::new(&values, features.dim())?)?;
        parts.push(moments);
    }
    let real = Factored::new(real)?;
    let without = |left_out: Option<usize>| {
        let mut rest = Moments::new(features.dim());
        for (g, part) in parts.iter().enumerate() {
            if Some(g) != left_out {
                rest.merge(part)?;
            }
        }
        distance(&real, &Factored::new(&rest.gaussian()?)?)
    };
    let plain = without(None)?;
    let fewer = parallel::try_map(groups, |g| without(Some(g)))?;
    let count = groups as f64;
    let pseudo: Vec<f64> = fewer.iter().map(|f| count * plain.value - (count - 1.0) * f.value).collect();
    let (value, half) = student_mean(&pseudo);
    let spread = pseudo.iter().map(|p| (p - value).powi(2)).sum::<f64>() / (count - 1.0);
    let estimate = Estimate::new(value, Interval { low: value - half, high: value + half });
    Ok(Unbiased { plain, estimate, std_error: (spread / count).sqrt(), n, groups })
}

/// A Gaussian with a factor of its covariance.
struct Factored {
    mean: Vec<f64>,
    /// L [d, rank], Σ = L Lᵀ.
    factor: DMatrix<f64>,
    trace: f64,
    left_out: f64,
}

impl Factored {
    fn new(gaussian: &Gaussian) -> Result<Self> {
        let (factor, left_out) = cholesky(gaussian.covariance())?;
        Ok(Self { mean: gaussian.mean().to_vec(), factor, trace: gaussian.covariance().trace(), left_out })
    }
}

fn distance(a: &Factored, b: &Factored) -> Result<Frechet> {
    if a.mean.len() != b.mean.len() {
        return Err(Error::input(format!(
            "Gaussians of {} and {} features cannot be compared: take both from the same layer of the same network",
            a.mean.len(),
            b.mean.len()
        )));
    }
    let means = a.mean.iter().zip(&b.mean).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let covariances = a.trace + b.trace - 2.0 * nuclear_norm(a.factor.transpose() * &b.factor)?;
    let value = means + covariances;
    if !value.is_finite() {
        return Err(Error::Numeric("the Fréchet distance left the finite numbers: scale the features down".into()));
    }
    let left_out = (a.left_out + b.left_out) / (a.trace + b.trace).max(f64::MIN_POSITIVE);
    Ok(Frechet { value, means, covariances, left_out })
}

/// Cholesky decomposition with diagonal pivots (Higham 1990; LAPACK's `dpstf2`): L with L Lᵀ = Σ up
/// to the variance that it leaves out, which comes second.
fn cholesky(covariance: &DMatrix<f64>) -> Result<(DMatrix<f64>, f64)> {
    let dim = covariance.nrows();
    let mut rest: Vec<f64> = covariance.diagonal().iter().copied().collect();
    let scale = rest.iter().copied().fold(0.0, f64::max);
    let tolerance = dim as f64 * f64::EPSILON * scale;
    let mut open = vec![true; dim];
    let mut columns: Vec<f64> = Vec::new();
    loop {
        let left = || (0..dim).filter(|&i| open[i]).map(|i| (i, rest[i]));
        let lowest = left().map(|x| x.1).fold(0.0, f64::min);
        if lowest < -INDEFINITE * scale {
            return Err(Error::Numeric(format!(
                "a covariance has the variance {lowest:.1e} in some direction, where its largest is {scale:.1e}: it is none"
            )));
        }
        let Some((pivot, largest)) = left().max_by(|x, y| x.1.total_cmp(&y.1)) else { break };
        // Below a negative variance everything is noise, which a small pivot would blow up.
        if largest <= tolerance.max(-lowest) {
            break;
        }
        let mut column: Vec<f64> = covariance.column(pivot).iter().copied().collect();
        for earlier in columns.chunks_exact(dim) {
            let weight = earlier[pivot];
            column.iter_mut().zip(earlier).for_each(|(c, e)| *c -= weight * e);
        }
        let root = largest.sqrt();
        for i in 0..dim {
            column[i] = if open[i] { column[i] / root } else { 0.0 };
            rest[i] -= column[i] * column[i];
        }
        (column[pivot], open[pivot]) = (root, false);
        columns.extend(column);
    }
    // An empty sum is −0 in Rust.
    let left_out = (0..dim).filter(|&i| open[i]).fold(0.0, |sum, i| sum + rest[i].abs());
    Ok((DMatrix::from_vec(dim, columns.len() / dim, columns), left_out))
}

/// Sum of the singular values.
fn nuclear_norm(matrix: DMatrix<f64>) -> Result<f64> {
    if matrix.is_empty() {
        return Ok(0.0);
    }
    let squares = matrix.norm_squared();
    let failed = || Error::Numeric("the singular values of a product of covariances do not converge".into());
    // 30 steps a value is what LAPACK allows; two or three is what they take.
    let steps = 30 * matrix.nrows().min(matrix.ncols()).max(10);
    let values = matrix.try_svd_unordered(false, false, f64::EPSILON, steps).ok_or_else(failed)?.singular_values;
    if (values.norm_squared() - squares).abs() > IDENTITY * squares {
        return Err(failed());
    }
    Ok(values.sum())
}

#[cfg(test)]
#[path = "frechet/tests.rs"]
mod tests;
