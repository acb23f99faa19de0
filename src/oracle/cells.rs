//! What 8-bit pixels themselves have for a posterior: densities averaged over the cell of each
//! pixel (theory §1).
//!
//! P(pixels|y) = ∫ p(v|y) dv over the cell is estimated by the mean density of R draws times the
//! volume of the cell, the same for all classes. Densities in one cell differ by hundreds of nats,
//! so that one draw may hold all the weight: then nothing has converged, whatever the error says.

use serde::Serialize;

use crate::oracle::posterior::Posterior;
use crate::oracle::world::Settings;
use crate::stats::log_sum_exp;

/// A draw that holds more of the weight of the class decided for is all there is to see.
const MOST: f64 = 0.5;

/// How far the mean over R draws in a pixel's cell is to be trusted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellEstimate {
    /// R.
    pub draws: usize,
    /// Standard error of p_T(y|pixels) of every class, by the jackknife over draws.
    pub posterior_std_error: Vec<f64>,
    /// That of its entropy, nats.
    pub entropy_std_error: f64,
    /// Share of the largest draw in the mean density of the class decided for.
    pub largest_share: f64,
    /// Whether no draw holds more than half of it. Necessary, not sufficient.
    pub converges: bool,
    /// What has to be said where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// log of the mean of exp over draws [R][K], for every class.
pub fn log_means(draws: &[Vec<f64>]) -> Vec<f64> {
    without(draws, None)
}

/// The same without draw `left`.
fn without(draws: &[Vec<f64>], left: Option<usize>) -> Vec<f64> {
    let classes = draws.first().map_or(0, Vec::len);
    let used = draws.len() - usize::from(left.is_some());
    let of = |class: usize| {
        let kept = draws.iter().enumerate().filter(|(draw, _)| Some(*draw) != left);
        log_sum_exp(kept.map(|(_, logp)| logp[class])) - (used as f64).ln()
    };
    (0..classes).map(of).collect()
}

/// The posterior of an image's pixels from log p(x_r|y) of R ≥ 2 draws x_r in their cells, [R][K],
/// and how far it holds.
pub fn estimate(draws: &[Vec<f64>], settings: &Settings) -> (Posterior, CellEstimate) {
    let posterior = |logp| settings.posterior(logp);
    let whole = posterior(log_means(draws));
    let parts: Vec<Posterior> = (0..draws.len()).map(|left| posterior(without(draws, Some(left)))).collect();
    let error = |of: &dyn Fn(&Posterior) -> f64| jackknife(&parts.iter().map(of).collect::<Vec<_>>());
    // The weight of draws is that of a class, whatever its label.
    let class = settings.of_class(whole.log_likelihood.clone()).decision;
    let decided: Vec<f64> = draws.iter().map(|logp| logp[class]).collect();
    let largest_share = largest_share(&decided);
    let converges = largest_share <= MOST;
    let cell = CellEstimate {
        draws: draws.len(),
        posterior_std_error: (0..whole.probabilities.len()).map(|class| error(&|p| p.probabilities[class])).collect(),
        entropy_std_error: error(&|p| p.entropy_nats),
        largest_share,
        converges,
        warning: (!converges)
            .then(|| format!("does not converge: one draw holds {:.0} % of the weight", 100.0 * largest_share)),
    };
    (whole, cell)
}

/// Standard error from estimates that each leave one draw out.
fn jackknife(parts: &[f64]) -> f64 {
    let n = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / n;
    ((n - 1.0) / n * parts.iter().map(|v| (v - mean).powi(2)).sum::<f64>()).sqrt()
}

/// exp(largest)/Σ exp; 1 where the densities are 0 or infinite.
fn largest_share(logp: &[f64]) -> f64 {
    let most = logp.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most.is_finite() { (most - log_sum_exp(logp.iter().copied())).exp() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::units::{Seed, Smoothing};

    fn settings() -> Settings {
        Settings::default_for(2)
    }

    /// Densities 2u and 2(1 − u)·⅓ on a cell u in [0, 1): means 1 and ⅓, posterior ¾ and ¼.
    fn draws(n: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = Seed(seed).rng(0);
        let density = |u: f64| vec![(2.0 * u).ln(), (2.0 * (1.0 - u) / 3.0).ln()];
        (0..n).map(|_| density(rng.random())).collect()
    }

    #[test]
    fn means_of_densities_come_to_the_posterior_of_the_cell_within_their_error() {
        let mut errors = Vec::new();
        for n in [8, 64, 4096] {
            let (posterior, cell) = estimate(&draws(n, 1), &settings());
            let error = cell.posterior_std_error[0];
            assert!((posterior.probabilities[0] - 0.75).abs() < 4.0 * error, "{n}: {posterior:?} {cell:?}");
            assert!(cell.converges && cell.draws == n);
            errors.push(error);
        }
        assert!(errors.is_sorted_by(|a, b| a > b), "{errors:?}");
        // The mid-point says ⅓ : 1 of the same cell, i.e. ¾; one draw at its edge does not.
        let (first, _) = estimate(&draws(2, 3), &settings());
        assert!((first.probabilities[0] - 0.75).abs() > 1e-3);
    }

    #[test]
    fn jackknife_errors_cover_the_truth() {
        let inside = |seed: &u64| {
            let (posterior, cell) = estimate(&draws(64, *seed), &settings());
            (posterior.probabilities[0] - 0.75).abs() < 1.96 * cell.posterior_std_error[0]
        };
        let covered = (0..400).filter(inside).count();
        assert!((360..=392).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn one_draw_that_holds_the_weight_is_told() {
        let far = vec![vec![-700.0, -720.0], vec![-500.0, -505.0], vec![-650.0, -600.0]];
        let (posterior, cell) = estimate(&far, &settings());
        assert!(!cell.converges && cell.largest_share > 0.999);
        assert_eq!(cell.warning.as_deref(), Some("does not converge: one draw holds 100 % of the weight"));
        // It is then the posterior of that draw.
        let alone = Posterior::new(far[1].clone(), &settings().prior, Smoothing::ONE);
        assert!(posterior.distance(&alone) < 1e-12);
    }
}
