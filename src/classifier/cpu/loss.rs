//! The loss at the end of a pass.

use super::{Maps, Tape};
use crate::kernels::Real;

impl<T: Real> Tape<T> {
    /// Σ over images of −Σ_y t_y log q_y for logits of one position and `targets` [N, K], nats; and
    /// `scale` times its gradient by the logits.
    pub fn cross_entropy(&self, logits: Maps, targets: &[f32], scale: f64) -> (f64, Vec<T>) {
        let (mut loss, mut slope) = (0.0, Vec::with_capacity(logits.len()));
        let rows = self.values(logits).chunks_exact(logits.channels).zip(targets.chunks_exact(logits.channels));
        for (logits, targets) in rows {
            let most = logits.iter().fold(f64::NEG_INFINITY, |most, logit| most.max(logit.wide()));
            let sum: f64 = logits.iter().map(|logit| (logit.wide() - most).exp()).sum();
            let told: f64 = targets.iter().map(|target| f64::from(*target)).sum();
            for (logit, target) in logits.iter().zip(targets) {
                let (log_q, target) = (logit.wide() - most - sum.ln(), f64::from(*target));
                // 0·∞ is 0: a class that nobody was told of costs nothing.
                loss -= if target == 0.0 { 0.0 } else { target * log_q };
                slope.push(T::of(scale * (told * log_q.exp() - target)));
            }
        }
        (loss, slope)
    }
}
