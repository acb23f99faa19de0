//! How much strategies want the label of a single image. All in f64 from log q.

use super::Strategy;

impl Strategy {
    /// Returns how much an image's label is wanted, from its H(p), KL(p‖q) (nats) and the answers
    /// `log_q`, [M][K]. In nats, but [`Self::Margin`] is a difference of probabilities. Those that
    /// weigh batches and not images, and [`Self::Random`], want all alike.
    pub(super) fn score(self, aleatoric: f64, epistemic: f64, log_q: &[&[f64]]) -> f64 {
        match self {
            Self::MaxEntropy => log_q.first().map_or(0.0, |log_q| entropy(log_q)),
            Self::MaxEpistemic => epistemic,
            Self::Margin => log_q.first().map_or(0.0, |log_q| -margin(log_q)),
            Self::Bald => disagreement(log_q),
            Self::MaxAleatoric => aleatoric,
            Self::Random | Self::BatchBald | Self::CoreSet | Self::Badge | Self::TypiClust | Self::LookAhead => 0.0,
        }
    }
}

/// H(q), nats.
pub(super) fn entropy(log_q: &[f64]) -> f64 {
    let term = |&log_q: &f64| if log_q == f64::NEG_INFINITY { 0.0 } else { -log_q.exp() * log_q };
    log_q.iter().map(term).sum()
}

/// KL(p‖q) of log p and log q, nats; not below 0 by rounding.
pub(super) fn divergence(log_p: &[f64], log_q: &[f64]) -> f64 {
    let term = |(&log_p, &log_q): (&f64, &f64)| match log_p == f64::NEG_INFINITY {
        true => 0.0,
        false => log_p.exp() * (log_p - log_q),
    };
    log_p.iter().zip(log_q).map(term).sum::<f64>().max(0.0)
}

/// q₁ − q₂ of the two most probable classes; of a single class its q.
fn margin(log_q: &[f64]) -> f64 {
    let (mut first, mut second) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for &value in log_q {
        if value > first {
            (first, second) = (value, first);
        } else if value > second {
            second = value;
        }
    }
    first.exp() - second.exp()
}

/// H(mean q) − mean H(q), nats: the mutual information of label and member (Houlsby et al. 2011,
/// eq. 2).
pub(super) fn disagreement(log_q: &[&[f64]]) -> f64 {
    let members = log_q.len().max(1) as f64;
    let classes = log_q.first().map_or(0, |first| first.len());
    let mean = |class: usize| log_q.iter().map(|log_q| log_q[class].exp()).sum::<f64>() / members;
    let of_mean: Vec<f64> = (0..classes).map(|class| mean(class).ln()).collect();
    entropy(&of_mean) - log_q.iter().map(|log_q| entropy(log_q)).sum::<f64>() / members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(q: &[f64]) -> Vec<f64> {
        q.iter().map(|q| q.ln()).collect()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn scores_by_hand() {
        let (even, sure, split) = (logs(&[0.5, 0.5, 0.0]), logs(&[1.0, 0.0, 0.0]), logs(&[0.25, 0.5, 0.25]));
        let score = |strategy: Strategy, log_q: &[&[f64]]| strategy.score(0.25, 0.75, log_q);
        let ln2 = 2f64.ln();
        assert!(near(score(Strategy::MaxEntropy, &[&even]), ln2) && score(Strategy::MaxEntropy, &[&sure]) == 0.0);
        assert!(near(score(Strategy::MaxEntropy, &[&split]), 1.5 * ln2));
        assert!(near(score(Strategy::Margin, &[&split]), -0.25) && near(score(Strategy::Margin, &[&even]), 0.0));
        assert!(near(score(Strategy::Margin, &[&sure]), -1.0));
        assert_eq!(score(Strategy::MaxEpistemic, &[&even]), 0.75);
        assert_eq!(score(Strategy::MaxAleatoric, &[&even]), 0.25);
        assert_eq!(score(Strategy::Random, &[&even]), 0.0);
        // Two members sure of different classes: all entropy of their mean is disagreement. If they
        // agree: none.
        let other = logs(&[0.0, 1.0, 0.0]);
        assert!(near(score(Strategy::Bald, &[&sure, &other]), ln2));
        assert!(near(score(Strategy::Bald, &[&even, &even]), 0.0));
        // (1/2, 1/2) and (1, 0): the mean is (3/4, 1/4); H = 2 ln 2 − ¾ ln 3, less half of ln 2.
        assert!(near(score(Strategy::Bald, &[&even, &sure]), 1.5 * ln2 - 0.75 * 3f64.ln()));
    }

    #[test]
    fn a_divergence_by_hand() {
        let (p, q) = (logs(&[0.75, 0.25]), logs(&[0.5, 0.5]));
        assert!(near(divergence(&p, &q), 0.75 * 3f64.ln() - 2f64.ln()));
        assert!(near(divergence(&logs(&[1.0, 0.0]), &q), 2f64.ln()) && divergence(&q, &q) == 0.0);
    }
}
