//! One Bayes error by every method: value, interval, cost.

use std::collections::VecDeque;
use std::time::Duration;

use super::channel::Channel;
use super::protocol::{Answer, At};
use crate::bayes::{GaussianClasses, Method, Spec};

/// The tolerance every method is asked for.
pub const TOLERANCE: f64 = 1e-4;
/// Time for one method.
const BUDGET: Duration = Duration::from_secs(3);

/// A comparison under way.
pub struct Comparison {
    at: At,
    classes: GaussianClasses,
    waiting: VecDeque<Method>,
}

impl Comparison {
    pub fn new(at: At, classes: GaussianClasses) -> Self {
        Self { at, classes, waiting: Method::ALL.into() }
    }

    pub fn generation(&self) -> u64 {
        self.at.generation
    }

    /// Computes the next method. Returns whether there was one.
    pub fn piece(&mut self, channel: &Channel) -> bool {
        let Some(method) = self.waiting.pop_front() else { return false };
        let (slots, epoch) = (channel.slots(), channel.epoch());
        let stop = || slots.compare.is_full() || channel.stopping() || channel.epoch() != epoch;
        let spec = Spec { method: Some(method), tolerance: TOLERANCE, ..Spec::default() };
        let outcome = channel.error_within(&self.classes, self.at.tau, &spec, BUDGET, stop);
        let outcome = match outcome {
            Ok(None) => return true,
            // Where there is no closed form, `bayes_error` takes quadrature, which has its own row.
            Ok(Some(found)) if method == Method::Closed && found.method != Method::Closed => {
                Err("this problem has no closed form".to_owned())
            }
            Ok(Some(found)) => Ok(found),
            Err(error) => Err(error.to_string()),
        };
        channel.send(Answer::Compared { generation: self.generation(), method, outcome });
        true
    }
}
