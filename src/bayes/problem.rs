//! The class problem as a file gives it: K Gaussians with one covariance.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::classes::GaussianClasses;
use crate::data::read_bytes;
use crate::error::{Error, Result};

/// Largest part by which priors may miss a sum of 1.
const PRIOR_SUM_TOLERANCE: f64 = 1e-9;

/// PROBLEM.json: class means, one covariance for all classes, and class priors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Class means μ_k, [K][D].
    pub means: Vec<Vec<f64>>,
    /// Diagonal of the covariance Σ at τ = 1, [D]. Not together with `cov`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cov_diag: Option<Vec<f64>>,
    /// The whole covariance Σ at τ = 1, [D][D].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cov: Option<Vec<Vec<f64>>>,
    /// Class priors π, [K]; uniform if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priors: Option<Vec<f64>>,
    /// Names of the classes, [K]; numbers if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_names: Option<Vec<String>>,
}

impl Problem {
    /// Reads PROBLEM.json.
    ///
    /// # Errors
    /// When the file cannot be read or is no such problem; names the file and the field.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_bytes(path).map_err(|error| Error::io(path, error))?;
        let problem: Self = serde_json::from_slice(&text)
            .map_err(|error| Error::file(path, format!("not a class problem (means, cov_diag, priors): {error}")))?;
        problem.check().map_err(|error| Error::file(path, error.to_string()))?;
        Ok(problem)
    }

    /// Names of the classes.
    pub fn class_names(&self) -> Vec<String> {
        self.class_names.clone().unwrap_or_else(|| (0..self.means.len()).map(|k| k.to_string()).collect())
    }

    /// The reduced problem.
    ///
    /// # Errors
    /// When a field cannot be used; the message names it.
    pub fn classes(&self) -> Result<GaussianClasses> {
        self.check()?;
        let count = self.means.len();
        let priors = self.priors.clone().unwrap_or_else(|| vec![1.0 / count as f64; count]);
        let whitened = match &self.cov {
            Some(cov) => whiten_fully(&self.means, cov)?,
            None => {
                let std: Vec<f64> = self.cov_diag.iter().flatten().map(|v| v.sqrt()).collect();
                self.means.iter().map(|mean| mean.iter().zip(&std).map(|(m, s)| m / s).collect()).collect()
            }
        };
        GaussianClasses::new(whitened, priors)
    }

    fn check(&self) -> Result<()> {
        let dims = self.means.first().map_or(0, Vec::len);
        if self.means.is_empty() {
            return Err(Error::input("means: empty; at least one class mean is needed"));
        }
        if dims == 0 {
            return Err(Error::input("means[0]: empty; a mean needs at least one dimension"));
        }
        for (k, mean) in self.means.iter().enumerate() {
            if mean.len() != dims {
                let n = mean.len();
                return Err(Error::input(format!("means[{k}]: {n} entries, but means[0] has {dims}")));
            }
            all_finite(&format!("means[{k}]"), mean)?;
        }
        match (&self.cov_diag, &self.cov) {
            (Some(diagonal), None) => check_diagonal(diagonal, dims)?,
            (None, Some(cov)) => check_square(cov, dims)?,
            (None, None) => return Err(Error::input("cov_diag: missing; give the variances, one per dimension")),
            (Some(_), Some(_)) => return Err(Error::input("cov: given beside cov_diag; give one of the two")),
        }
        if let Some(priors) = &self.priors {
            check_priors(priors, self.means.len())?;
        }
        match &self.class_names {
            Some(names) if names.len() != self.means.len() => {
                Err(Error::input(format!("class_names: {} entries for {} classes", names.len(), self.means.len())))
            }
            _ => Ok(()),
        }
    }
}

fn all_finite(field: &str, values: &[f64]) -> Result<()> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::input(format!("{field}[{i}]: {} is not a finite number", values[i]))),
    }
}

fn check_diagonal(diagonal: &[f64], dims: usize) -> Result<()> {
    if diagonal.len() != dims {
        return Err(Error::input(format!("cov_diag: {} entries for means of {dims} dimensions", diagonal.len())));
    }
    all_finite("cov_diag", diagonal)?;
    match diagonal.iter().position(|&v| v <= 0.0) {
        None => Ok(()),
        Some(i) => Err(Error::input(format!("cov_diag[{i}]: {} is not a positive variance", diagonal[i]))),
    }
}

fn check_square(cov: &[Vec<f64>], dims: usize) -> Result<()> {
    if cov.len() != dims {
        return Err(Error::input(format!("cov: {} rows for means of {dims} dimensions", cov.len())));
    }
    for (i, row) in cov.iter().enumerate() {
        if row.len() != dims {
            return Err(Error::input(format!("cov[{i}]: {} entries, not {dims}", row.len())));
        }
        all_finite(&format!("cov[{i}]"), row)?;
        for (j, value) in row.iter().enumerate().take(i) {
            if (value - cov[j][i]).abs() > 1e-9 * (value.abs() + cov[j][i].abs()) {
                let cause = format!("cov: not symmetric, [{i}][{j}] is {value} and [{j}][{i}] {}", cov[j][i]);
                return Err(Error::input(cause));
            }
        }
    }
    Ok(())
}

fn check_priors(priors: &[f64], classes: usize) -> Result<()> {
    if priors.len() != classes {
        return Err(Error::input(format!("priors: {} entries for {classes} classes", priors.len())));
    }
    all_finite("priors", priors)?;
    if let Some(k) = priors.iter().position(|&p| p < 0.0) {
        return Err(Error::input(format!("priors[{k}]: {} is negative", priors[k])));
    }
    let sum: f64 = priors.iter().sum();
    if (sum - 1.0).abs() > PRIOR_SUM_TOLERANCE {
        return Err(Error::input(format!("priors: they sum to {sum}, not to 1")));
    }
    Ok(())
}

/// L⁻¹μ_k with Σ = LLᵀ.
fn whiten_fully(means: &[Vec<f64>], cov: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
    let dims = cov.len();
    let matrix = nalgebra::DMatrix::from_fn(dims, dims, |i, j| cov[i.max(j)][i.min(j)]);
    let factor = nalgebra::Cholesky::new(matrix)
        .ok_or_else(|| Error::input("cov: not positive definite (a Cholesky factorisation fails)"))?;
    let lower = factor.l();
    let whitened = means.iter().map(|mean| {
        let solved = lower.solve_lower_triangular(&nalgebra::DVector::from_column_slice(mean));
        solved.map(|x| x.as_slice().to_vec()).ok_or_else(|| Error::input("cov: singular"))
    });
    whitened.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let problem: Problem = serde_json::from_str(text).unwrap();
        problem.classes().map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        for (text, field) in [
            (r#"{"means":[],"cov_diag":[1]}"#, "means: empty"),
            (r#"{"means":[[]],"cov_diag":[]}"#, "means[0]: empty"),
            (r#"{"means":[[0,1],[1]],"cov_diag":[1,1]}"#, "means[1]: 1 entries"),
            (r#"{"means":[[0],[1]],"cov_diag":[-1]}"#, "cov_diag[0]: -1 is not a positive variance"),
            (r#"{"means":[[0],[1]],"cov_diag":[1,2]}"#, "cov_diag: 2 entries"),
            (r#"{"means":[[0],[1]]}"#, "cov_diag: missing"),
            (r#"{"means":[[0],[1]],"cov_diag":[1],"cov":[[1]]}"#, "cov: given beside"),
            (r#"{"means":[[0],[1]],"cov_diag":[1],"priors":[0.5,0.6]}"#, "priors: they sum to 1.1"),
            (r#"{"means":[[0],[1]],"cov_diag":[1],"priors":[1.5,-0.5]}"#, "priors[1]: -0.5 is negative"),
            (r#"{"means":[[0],[1]],"cov_diag":[1],"priors":[1]}"#, "priors: 1 entries for 2 classes"),
            (r#"{"means":[[0],[1]],"cov_diag":[1],"class_names":["a"]}"#, "class_names: 1 entries"),
            (r#"{"means":[[0,0],[1,0]],"cov":[[1,2],[2,1]]}"#, "cov: not positive definite"),
            (r#"{"means":[[0,0],[1,0]],"cov":[[1,0.5],[0.4,1]]}"#, "cov: not symmetric"),
        ] {
            assert!(message(text).contains(field), "{text}: {}", message(text));
        }
        let nan = Problem {
            means: vec![vec![0.0], vec![f64::NAN]],
            cov_diag: Some(vec![1.0]),
            cov: None,
            priors: None,
            class_names: None,
        };
        assert!(nan.classes().map(|_| ()).unwrap_err().to_string().contains("means[1][0]: NaN"));
    }
}
