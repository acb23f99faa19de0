//! Differences of means that the rounding of a far mean hides.

use super::GaussianClasses;
use crate::error::{Error, Result};
use crate::units::Tau;

/// Difference of means, in standard deviations, that may be taken for rounding: it moves E by less than half of that.
const HARMLESS: f64 = 1e-6;

/// For every mean the first one that is the same.
pub(super) fn alike(means: &[Vec<f64>]) -> Vec<usize> {
    let first = |k: usize| (0..k).find(|&j| means[j] == means[k]).unwrap_or(k);
    (0..means.len()).map(first).collect()
}

impl GaussianClasses {
    /// Refuses a base temperature at which two classes that differ would be taken for one, though the difference may matter.
    pub(in crate::bayes) fn check_at(&self, tau: Tau) -> Result<()> {
        if self.resolution <= HARMLESS * tau.get() {
            return Ok(());
        }
        self.refuse_hidden(&format!(
            "at τ = {:?}: the rounding of the farthest mean is {:.1e} standard deviations there",
            tau.get(),
            self.resolution / tau.get()
        ))
    }

    /// The same of the limit τ → 0, where every difference matters.
    pub(in crate::bayes) fn check_limit(&self) -> Result<()> {
        self.refuse_hidden(&format!(
            "as τ → 0: the rounding of the farthest mean is {:.1e} standard deviations at τ = 1",
            self.resolution
        ))
    }

    fn refuse_hidden(&self, there: &str) -> Result<()> {
        let occurs = |k: &usize| self.priors[*k] > 0.0;
        let pairs = (0..self.classes()).flat_map(|a| (a + 1..self.classes()).map(move |b| (a, b)));
        let mut hidden = pairs
            .filter(|&(a, b)| self.distance(a, b) <= self.resolution && self.alike[a] != self.alike[b])
            .filter(|(a, b)| occurs(a) && occurs(b));
        match hidden.next() {
            None => Ok(()),
            Some((a, b)) => Err(Error::input(format!(
                "means[{a}] and means[{b}] cannot be told apart {there}. A class so far from all others is never in doubt: \
                 leave it out, or take from all means what they have in common"
            ))),
        }
    }
}
