//! Whether the judged images are such as the world makes: log p(x) beside that of the other split,
//! whose images are samples of the same world, drawn apart from these.

use std::path::Path;

use super::arrays::matrix;
use crate::data::{Archive, Types};
use crate::error::{Error, Result};
use crate::measure::typicality::{Census, Reference, SAMPLES};
use crate::stats::log_sum_exp;

/// log p(x) = log Σ_y π_y p(x|y), nats, of the rows of `logp` [n, K]; an empty prior is uniform.
/// None where the prior is none of K classes.
pub(super) fn log_px(logp: &[f64], classes: usize, prior: &[f64]) -> Option<Vec<f64>> {
    let sum: f64 = prior.iter().sum();
    if !prior.is_empty() && (prior.len() != classes || !sum.is_finite() || sum <= 0.0) {
        return None;
    }
    let log_prior = |y: usize| prior.get(y).map_or(-(classes as f64).ln(), |weight| (weight / sum).ln());
    let of = |row: &[f64]| log_sum_exp(row.iter().enumerate().map(|(y, l)| l + log_prior(y)));
    Some(logp.chunks_exact(classes).map(of).collect())
}

/// How images of these log p(x), nats, stand to the first samples of another archive of the same
/// world; none where it has too few, or no `logp` of K classes. What cannot be read is logged: a
/// judgement needs it not.
pub(super) fn census(images: &[f64], other: &Path, classes: usize, prior: &[f64]) -> Option<Census> {
    let samples = match read(other, classes) {
        Ok(samples) => samples?,
        Err(error) => {
            tracing::warn!("the judged images are held against no samples: {error}");
            return None;
        }
    };
    let samples = log_px(&samples, classes, prior)?;
    Some(Reference::new(samples)?.census(images))
}

/// The first rows of `logp` in an archive.
fn read(path: &Path, classes: usize) -> Result<Option<Vec<f64>>> {
    let Some(array) = Archive::open(path, Types::All)?.read("logp")? else { return Ok(None) };
    let (mut values, found) = matrix(array).map_err(|cause| Error::file(path, format!("array logp: {cause}")))?;
    values.truncate(SAMPLES * classes);
    Ok(Some(values).filter(|_| found == classes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_are_sums_over_classes_by_the_prior() {
        let logp = [0.0, 2f64.ln(), 1e5, f64::NEG_INFINITY];
        let uniform = log_px(&logp, 2, &[]).unwrap();
        assert!((uniform[0] - 1.5f64.ln()).abs() < 1e-12 && (uniform[1] - (1e5 - 2f64.ln())).abs() < 1e-9);
        let weighted = log_px(&logp, 2, &[3.0, 1.0]).unwrap();
        assert!((weighted[0] - 1.25f64.ln()).abs() < 1e-12);
        assert!(log_px(&logp, 2, &[1.0]).is_none() && log_px(&logp, 2, &[0.0, 0.0]).is_none());
    }
}
