//! EBO's Figure 1, live: two Gaussian classes in 784 dimensions, their means random unit vectors, Σ
//! = τ²I. The exact error (EBO eq. 4) is Φ(−|μ₁ − μ₂|/2τ); beside it the integrators that do not
//! know this, each forced on the same problem.

use std::collections::VecDeque;
use std::time::Duration;

use rand_distr::{Distribution, StandardNormal};

use super::channel::Channel;
use super::protocol::{Answer, Figure1Point};
use crate::bayes::{GaussianClasses, Method, Spec};
use crate::error::Result;
use crate::units::{Seed, Tau};

/// Dimensions D.
pub const DIMS: usize = 784;
/// log₁₀ of the range of τ.
const RANGE: (f64, f64) = (-1.0, 1.0);
/// Points of the exact curve.
const CURVE: usize = 81;
/// Temperatures at which the integrators run; all of them are on the curve.
const MARKS: usize = 17;
/// Time for one of their points.
const BUDGET: Duration = Duration::from_millis(400);
/// Tolerance they are asked for.
const TOLERANCE: f64 = 1e-3;
/// The integrators.
pub const METHODS: [Method; 4] = [Method::Sov, Method::Pair, Method::Hdr, Method::Mc];

/// The figure under way.
pub struct Figure1 {
    generation: u64,
    classes: GaussianClasses,
    waiting: VecDeque<(Option<Method>, Tau)>,
}

/// n temperatures, evenly apart in log τ.
fn grid(n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| 10f64.powf(RANGE.0 + (RANGE.1 - RANGE.0) * i as f64 / (n - 1) as f64))
}

fn unit(index: u64) -> Vec<f64> {
    let mut rng = Seed(0).split("figure 1").rng(index);
    let mean: Vec<f64> = (0..DIMS).map(|_| StandardNormal.sample(&mut rng)).collect();
    let length = mean.iter().map(|x: &f64| x * x).sum::<f64>().sqrt();
    mean.into_iter().map(|x| x / length).collect()
}

impl Figure1 {
    pub fn new(generation: u64) -> Result<Self> {
        let classes = GaussianClasses::new(vec![unit(0), unit(1)], vec![0.5, 0.5])?;
        let exact = grid(CURVE).map(|tau| (None, tau));
        let marks = METHODS.into_iter().flat_map(|method| grid(MARKS).map(move |tau| (Some(method), tau)));
        let waiting = exact.chain(marks).map(|(method, tau)| Ok((method, Tau::new(tau)?)));
        Ok(Self { generation, classes, waiting: waiting.collect::<Result<_>>()? })
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Computes the next point. Returns whether there was one.
    pub fn piece(&mut self, channel: &Channel) -> bool {
        let Some((method, tau)) = self.waiting.pop_front() else { return false };
        let (slots, generation) = (channel.slots(), self.generation);
        let stop = || slots.figure1.is_full() || channel.stopping();
        let forced = method.unwrap_or(Method::Closed);
        let spec = Spec { method: Some(forced), tolerance: TOLERANCE, ..Spec::default() };
        match channel.error_within(&self.classes, tau, &spec, BUDGET, stop) {
            Ok(Some(estimate)) => {
                let point = Figure1Point { tau: tau.get(), method, estimate };
                channel.send(Answer::Figure1 { generation, point });
            }
            Ok(None) => {}
            Err(error) => tracing::warn!("Figure 1 at τ = {}: {error}", tau.get()),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_means_are_unit_vectors_of_one_seed() {
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((length(&unit(0)) - 1.0).abs() < 1e-14 && unit(0) == unit(0) && unit(0) != unit(1));
        let figure = Figure1::new(1).unwrap();
        assert_eq!((figure.classes.dims(), figure.classes.rank()), (784, 1));
        assert_eq!(figure.waiting.len(), CURVE + METHODS.len() * MARKS);
    }
}
