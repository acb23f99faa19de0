//! Mean and covariance of features, image by image or from the sums that others stored.

use nalgebra::{DMatrix, DMatrixView, DMatrixViewMut};

use super::features::{Features, Real};
use super::pairs::centred;
use crate::error::{Error, Result};
use crate::parallel;

/// Images taken at a time.
const CHUNK: usize = 512;

/// Columns of the scatter matrix that are computed together.
const PANEL: usize = 64;

/// Largest |σ_ij − σ_ji| of a covariance, relative to its largest entry.
const ASYMMETRY: f64 = 1e-5;

/// Mean and scatter of the images seen so far, in f64: 8 d² bytes. Each chunk of images is centred
/// at its own mean and then merged (Chan, Golub & LeVeque 1983), so that no sum of squares cancels.
/// The cut into chunks changes rounding only.
#[derive(Debug, Clone)]
pub struct Moments {
    n: usize,
    mean: Vec<f64>,
    /// Σ (x − mean)(x − mean)ᵀ [d, d]; what is on and above the diagonal counts.
    scatter: DMatrix<f64>,
}

impl Moments {
    /// No images yet, of `dim` features each.
    pub fn new(dim: usize) -> Self {
        Self { n: 0, mean: vec![0.0; dim], scatter: DMatrix::zeros(dim, dim) }
    }

    /// Adds images.
    ///
    /// # Errors
    /// When they have another number of features.
    pub fn add<T: Real>(&mut self, features: &Features<'_, T>) -> Result<()> {
        self.same_dim(features.dim())?;
        for from in (0..features.n()).step_by(CHUNK) {
            let rows = features.rows(from, CHUNK);
            let chunk = Features::new(rows, features.dim())?;
            let mean = chunk.mean();
            let mut deviations = centred(rows, &mean);
            deviations.extend(self.shift(chunk.n(), &mean));
            add_products(&mut self.scatter, &deviations);
        }
        Ok(())
    }

    /// Adds the images that `other` has seen.
    ///
    /// # Errors
    /// When they have another number of features.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.same_dim(other.mean.len())?;
        if other.n > 0 {
            let deviation = self.shift(other.n, &other.mean);
            self.scatter += &other.scatter;
            add_products(&mut self.scatter, &deviation);
        }
        Ok(())
    }

    /// Takes `n` more images of this mean into n and mean; returns the deviation √(n_a n_b / n)
    /// (mean_b − mean_a) whose product with itself the scatter then lacks.
    fn shift(&mut self, n: usize, mean: &[f64]) -> Vec<f64> {
        let (before, added) = (self.n as f64, n as f64);
        let (share, weight) = (added / (before + added), (before * added / (before + added)).sqrt());
        self.n += n;
        let step = |(own, new): (&mut f64, &f64)| {
            let difference = new - *own;
            *own += share * difference;
            weight * difference
        };
        self.mean.iter_mut().zip(mean).map(step).collect()
    }

    fn same_dim(&self, dim: usize) -> Result<()> {
        if self.mean.len() == dim {
            return Ok(());
        }
        Err(Error::input(format!("moments of {} features cannot take images of {dim}", self.mean.len())))
    }

    /// The Gaussian of these images: mean, and Σ (x − mean)(x − mean)ᵀ / (n − 1) as `numpy.cov`.
    ///
    /// # Errors
    /// When there are fewer than two images, or numbers overflowed.
    pub fn gaussian(&self) -> Result<Gaussian> {
        if self.n < 2 {
            return Err(Error::input(format!("a covariance needs at least two images, not {}", self.n)));
        }
        let scale = ((self.n - 1) as f64).recip();
        let at = |i: usize, j: usize| self.scatter[(i.min(j), i.max(j))] * scale;
        let dim = self.mean.len();
        Gaussian::checked(self.mean.clone(), DMatrix::from_fn(dim, dim, at), Some(self.n))
    }
}

/// Adds Σ xxᵀ of rows x [r, d] to the upper triangle of `scatter`.
fn add_products(scatter: &mut DMatrix<f64>, rows: &[f64]) {
    let dim = scatter.nrows();
    let count = rows.len() / dim;
    let across = DMatrixView::from_slice(rows, dim, count);
    let down = across.transpose();
    parallel::chunks_mut(scatter.as_mut_slice(), PANEL * dim, |panel, columns| {
        let (first, width) = (panel * PANEL, columns.len() / dim);
        let mut columns = DMatrixViewMut::from_slice(columns, dim, width);
        columns.rows_mut(0, first + width).gemm(1.0, &across.rows(0, first + width), &down.columns(first, width), 1.0);
    });
}

/// A Gaussian in feature space: what FID compares.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    mean: Vec<f64>,
    covariance: DMatrix<f64>,
    n: Option<usize>,
}

impl Gaussian {
    /// Mean and unbiased covariance of these images.
    ///
    /// # Errors
    /// Those of [`Moments::gaussian`].
    pub fn of<T: Real>(features: &Features<'_, T>) -> Result<Self> {
        let mut moments = Moments::new(features.dim());
        moments.add(features)?;
        moments.gaussian()
    }

    /// `mean` [d] and `covariance` [d, d] as pytorch-fid stores them (`mu`, `sigma`), and of how
    /// many images where that is known. The covariance is symmetrised.
    ///
    /// # Errors
    /// When shapes differ, a number is not finite, or the covariance is none.
    pub fn new(mean: Vec<f64>, covariance: &[f64], n: Option<usize>) -> Result<Self> {
        let dim = mean.len();
        if dim == 0 || covariance.len() != dim * dim {
            return Err(Error::input(format!(
                "a mean of {dim} features needs a covariance of {}, not {} numbers",
                dim * dim,
                covariance.len()
            )));
        }
        let matrix = DMatrix::from_row_slice(dim, dim, covariance);
        let (largest, off) = (matrix.amax(), (&matrix - matrix.transpose()).amax());
        if off > ASYMMETRY * largest {
            let cause = format!("a covariance is symmetric, this one is off by {off:.1e} of {largest:.1e}");
            return Err(Error::input(cause));
        }
        Self::checked(mean, (&matrix + matrix.transpose()) * 0.5, n)
    }

    /// From the sums that torchmetrics' `FrechetInceptionDistance` keeps: Σ x [d], Σ xxᵀ [d, d] and
    /// n. The mean is Σ x / n, the covariance (Σ xxᵀ − n mean meanᵀ) / (n − 1); it loses digits
    /// where means are large against deviations.
    ///
    /// # Errors
    /// When there are fewer than two images, and those of [`Gaussian::new`].
    pub fn from_sums(sum: &[f64], products: &[f64], n: usize) -> Result<Self> {
        if n < 2 {
            return Err(Error::input(format!("a covariance needs at least two images, not {n}")));
        }
        let count = n as f64;
        let mean: Vec<f64> = sum.iter().map(|s| s / count).collect();
        let outer = mean.iter().flat_map(|a| mean.iter().map(move |b| a * b));
        if products.len() != sum.len() * sum.len() {
            return Self::new(mean, products, Some(n));
        }
        let covariance: Vec<f64> = products.iter().zip(outer).map(|(p, m)| (p - count * m) / (count - 1.0)).collect();
        Self::new(mean, &covariance, Some(n))
    }

    fn checked(mean: Vec<f64>, covariance: DMatrix<f64>, n: Option<usize>) -> Result<Self> {
        if !mean.iter().chain(covariance.iter()).all(|x| x.is_finite()) {
            return Err(Error::Numeric("a mean or covariance of features is not finite".into()));
        }
        let least = -ASYMMETRY * covariance.amax();
        if let Some(at) = covariance.diagonal().iter().position(|&v| v < least) {
            let variance = covariance[(at, at)];
            return Err(Error::Numeric(format!("feature {at} has the variance {variance:e}: this is no covariance")));
        }
        Ok(Self { mean, covariance, n })
    }

    /// Mean [d].
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Covariance [d, d], symmetric.
    pub fn covariance(&self) -> &DMatrix<f64> {
        &self.covariance
    }

    /// Of how many images, where that is known.
    pub fn n(&self) -> Option<usize> {
        self.n
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::units::Seed;

    /// Two passes in f64, entry by entry.
    fn plain(values: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
        let n = (values.len() / dim) as f64;
        let mean: Vec<f64> = (0..dim).map(|k| values.iter().skip(k).step_by(dim).sum::<f64>() / n).collect();
        let entry = |i: usize, j: usize| {
            values.chunks(dim).map(|x| (x[i] - mean[i]) * (x[j] - mean[j])).sum::<f64>() / (n - 1.0)
        };
        let covariance = (0..dim * dim).map(|at| entry(at / dim, at % dim)).collect();
        (mean, covariance)
    }

    fn largest_difference(gaussian: &Gaussian, mean: &[f64], covariance: &[f64]) -> f64 {
        let means = gaussian.mean().iter().zip(mean).map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
        let entries = gaussian.covariance().iter().zip(covariance).map(|(a, b)| (a - b).abs());
        means.chain(entries).fold(0.0, f64::max)
    }

    #[test]
    fn batches_and_merged_parts_give_the_covariance_of_two_passes() {
        for dim in [1, 3, 70] {
            // A mean of 1,000 deviations: sums of squares would lose six digits.
            let values: Vec<f64> = normal(Seed(7), 1300 * dim).iter().map(|x| 1e3 + x).collect();
            let (mean, covariance) = plain(&values, dim);
            let all = Gaussian::of(&Features::new(&values, dim).unwrap()).unwrap();
            let mut parts = Moments::new(dim);
            for batch in [&values[..dim], &values[dim..5 * dim], &values[5 * dim..700 * dim]] {
                parts.add(&Features::new(batch, dim).unwrap()).unwrap();
            }
            let mut rest = Moments::new(dim);
            rest.add(&Features::new(&values[700 * dim..], dim).unwrap()).unwrap();
            parts.merge(&rest).unwrap();
            parts.merge(&Moments::new(dim)).unwrap();
            for gaussian in [&all, &parts.gaussian().unwrap()] {
                assert_eq!(gaussian.n(), Some(1300));
                let off = largest_difference(gaussian, &mean, &covariance);
                assert!(off < 1e-12, "{dim}: {off}");
            }
        }
    }

    #[test]
    fn sums_of_torchmetrics_give_the_same() {
        let dim = 4;
        let values = normal(Seed(8), 60 * dim);
        let sum: Vec<f64> = (0..dim).map(|k| values.iter().skip(k).step_by(dim).sum()).collect();
        let products: Vec<f64> =
            (0..dim * dim).map(|at| values.chunks(dim).map(|x| x[at / dim] * x[at % dim]).sum()).collect();
        let (mean, covariance) = plain(&values, dim);
        let gaussian = Gaussian::from_sums(&sum, &products, 60).unwrap();
        assert!(largest_difference(&gaussian, &mean, &covariance) < 1e-13);
        assert!(Gaussian::from_sums(&sum, &products, 1).is_err());
        assert!(Gaussian::from_sums(&sum, &products[1..], 60).is_err());
    }

    #[test]
    fn what_is_no_covariance_is_refused() {
        assert!(
            Gaussian::new(vec![0.0; 2], &[1.0, 0.5, 0.4, 1.0], None).unwrap_err().to_string().contains("symmetric")
        );
        assert!(
            Gaussian::new(vec![0.0; 2], &[1.0, 0.0, 0.0, -1.0], None).unwrap_err().to_string().contains("feature 1")
        );
        assert!(Gaussian::new(vec![0.0; 2], &[1.0, 0.0, 0.0, f64::NAN], None).is_err());
        assert!(Gaussian::new(vec![0.0; 2], &[1.0; 3], None).is_err());
        assert!(Moments::new(3).gaussian().is_err());
        assert!(Moments::new(3).add(&Features::new(&[1.0, 2.0], 2).unwrap()).is_err());
    }
}
