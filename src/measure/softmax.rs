//! Log-probabilities of logits.

/// log q(y|x) of `logits` [n, K] (f32, as a network gives them, or f64), in f64 and stable: logit −
/// log Σ exp, the largest taken out first. Finite for finite logits, however extreme: a class q all
/// but excludes keeps its finite log-probability, where a softmax in f32 would round it to 0 and
/// make the cross-entropy infinite. A row with a NaN, a +∞, or nothing but −∞ becomes NaN
/// throughout, which `measure` refuses by the number of its image.
pub fn log_softmax<T: Copy + Into<f64>>(logits: &[T], classes: usize) -> Vec<f64> {
    let mut log_q = Vec::with_capacity(logits.len());
    for row in logits.chunks(classes.max(1)) {
        let (largest, rest) = parts(row.iter().map(|&logit| logit.into()));
        // In this order: the largest logit plus a rest of 1e-22 would be the largest logit.
        log_q.extend(row.iter().map(|&logit| (logit.into() - largest) - rest));
    }
    log_q
}

/// The largest term, and log Σ exp less that; NaN for a NaN or +∞, or when all terms are −∞.
fn parts(terms: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (at, largest) =
        terms.clone().enumerate().fold((0, f64::NEG_INFINITY), |best, (i, x)| if x > best.1 { (i, x) } else { best });
    // ln_1p keeps what the other classes add to a probability of almost 1.
    let rest: f64 = terms.enumerate().filter(|&(i, _)| i != at).map(|(_, x)| (x - largest).exp()).sum();
    if largest.is_finite() { (largest, rest.ln_1p()) } else { (f64::NAN, f64::NAN) }
}

/// The index of the largest value, of equals the first: the decision.
pub fn argmax(values: &[f64]) -> usize {
    (1..values.len()).fold(0, |best, y| if values[y] > values[best] { y } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rows_by_hand() {
        let log_q = log_softmax(&[0.0, 0.0, 3.0, 3.0 + 3f32.ln()], 2);
        let expected = [0.5f64, 0.5, 0.25, 0.75].map(f64::ln);
        for (got, want) in log_q.iter().zip(expected) {
            assert!((got - want).abs() < 1e-7, "{got} {want}");
        }
    }

    #[test]
    fn extreme_logits_stay_finite_and_normalised() {
        let log_q = log_softmax(&[3e38, -3e38, 0.0, 1e4, -1e4, 0.0], 3);
        assert!(log_q.iter().all(|x| x.is_finite()), "{log_q:?}");
        assert_eq!(log_q[3..], [0.0, -2e4, -1e4]);
        // 1 − q is kept far below the resolution of q itself.
        let near_one = log_softmax(&[50.0, 0.0], 2);
        assert!((near_one[0] / -(-50f64).exp() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_shift_of_all_logits_changes_nothing() {
        let row = [0.5f32, -1.25, 2.0, 0.0];
        let shifted = row.map(|x| x + 4096.0);
        for (a, b) in log_softmax(&row, 4).iter().zip(log_softmax(&shifted, 4)) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn rows_without_a_distribution_are_nan() {
        for bad in [[f32::NAN, 0.0], [f32::INFINITY, 0.0], [f32::NEG_INFINITY; 2]] {
            assert!(log_softmax(&bad, 2).iter().all(|x| x.is_nan()), "{bad:?}");
        }
        assert_eq!(log_softmax(&[0.0, f32::NEG_INFINITY], 2), [0.0, f64::NEG_INFINITY]);
    }
}
