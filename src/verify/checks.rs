//! What a case finds: a row for everything that is compared.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;

use crate::oracle::precision::{difference, largest};

/// What is said of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within its bound.
    Passed,
    /// Outside, or there is no result.
    Failed,
    /// There is no such thing on this device.
    Skipped,
}

impl Verdict {
    /// Returns whether it is no failure.
    pub fn is_fine(self) -> bool {
        self != Self::Failed
    }

    /// The verdict as printed in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the case, as `--cases` takes it.
    pub case: &'static str,
    /// What was compared.
    pub check: String,
    /// Largest difference of any number, absolute unless `check` says otherwise; infinite (null in
    /// JSON) where one is missing or not finite, `None` where nothing was compared.
    pub error: Option<f64>,
    /// What it may be.
    pub bound: Option<f64>,
    /// Whether it is.
    pub verdict: Verdict,
    /// Whether tensor cores round the factors of what was compared (TF32), and the bound allows for it: a
    /// failure is then no verdict on the device.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rounded: bool,
    /// Why it is not, or why there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds since the row before of the same case.
    pub seconds: f64,
}

impl Row {
    /// The verdict, with its reason where it has one.
    pub fn judgement(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{}: {reason}", self.verdict.word()),
            None => self.verdict.word().to_owned(),
        }
    }

    /// Case, check and judgement in one line.
    pub fn sentence(&self) -> String {
        format!("{}, {}: {}", self.case, self.check, self.judgement())
    }
}

/// Takes the comparisons of one case. Others can read them even if the case never ends.
#[derive(Debug, Clone)]
pub struct Checks {
    case: &'static str,
    begun: Instant,
    rounded: bool,
    rows: Arc<Mutex<Vec<Row>>>,
}

impl Checks {
    /// Of a case that begins now.
    pub fn of(case: &'static str) -> Self {
        Self { case, begun: Instant::now(), rounded: false, rows: Arc::default() }
    }

    /// From here on, whether tensor cores round the factors of what is compared.
    pub fn rounded(&mut self, rounded: bool) {
        self.rounded = rounded;
    }

    /// What was found so far.
    pub fn rows(&self) -> Vec<Row> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every number of `found` is to be within `bound` of that of `expected`.
    pub fn within(&mut self, check: &str, found: &[f64], expected: &[f64], bound: f64) {
        let error = match found.len() == expected.len() {
            true => largest(found.iter().zip(expected).map(|(a, b)| difference(*a, *b))),
            false => f64::INFINITY,
        };
        self.at_most(check, error, bound);
    }

    /// A number is to be within `bound` times the expected one.
    pub fn relative(&mut self, check: &str, found: f64, expected: f64, bound: f64) {
        self.at_most(&format!("{check}, relative"), difference(found, expected) / expected.abs(), bound);
    }

    /// Every number of `found` is to be within `bound` times the largest of `expected`.
    pub fn within_scale(&mut self, check: &str, found: &[f64], expected: &[f64], bound: f64) {
        let scale = largest(expected.iter().map(|v| v.abs()));
        let over = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| v / scale).collect() };
        self.within(&format!("{check}, relative to the largest"), &over(found), &over(expected), bound);
    }

    /// An error that is known is to be at most `bound`.
    pub fn at_most(&mut self, check: &str, error: f64, bound: f64) {
        let error = if error.is_nan() { f64::INFINITY } else { error };
        let (verdict, reason) = match error {
            _ if error <= bound => (Verdict::Passed, None),
            _ if error.is_finite() => (Verdict::Failed, Some(format!("off by {error:.1e}, {bound:.1e} is allowed"))),
            _ => (Verdict::Failed, Some("numbers are missing or not finite".to_owned())),
        };
        self.add(check, (Some(error), Some(bound)), verdict, reason);
    }

    /// There is nothing to compare here.
    pub fn skip(&mut self, check: &str, why: &str) {
        self.add(check, (None, None), Verdict::Skipped, Some(why.to_owned()));
    }

    /// What was asked for was done.
    pub fn done(&mut self, check: &str) {
        self.add(check, (None, None), Verdict::Passed, None);
    }

    /// The case ends here, for that reason.
    pub fn fail(&mut self, check: &str, why: String) {
        self.add(check, (None, None), Verdict::Failed, Some(why));
    }

    fn add(
        &mut self,
        check: &str,
        (error, bound): (Option<f64>, Option<f64>),
        verdict: Verdict,
        reason: Option<String>,
    ) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.begun = Instant::now();
        let (case, rounded) = (self.case, self.rounded && bound.is_some());
        let row = Row { case, check: check.to_owned(), error, bound, verdict, rounded, reason, seconds };
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_missing_or_no_number_passes() {
        let mut checks = Checks::of("a case");
        checks.within("near", &[1.0, f64::NEG_INFINITY], &[1.0 + 1e-6, f64::NEG_INFINITY], 1e-5);
        checks.within("far", &[1.0, 2.0], &[1.0, 2.1], 1e-5);
        checks.within("too few", &[1.0], &[1.0, 2.0], 1e9);
        checks.within("no number", &[1.0, f64::NAN, 1.0], &[1.0, 1.0, 1.0], 1e9);
        checks.relative("half", 0.5, 1.0, 0.4);
        checks.rounded(true);
        checks.within_scale("near its scale", &[100.5, 0.0], &[100.0, 1.0], 1e-2);
        checks.skip("nothing", "there is none here");
        let verdicts: Vec<Verdict> = checks.rows().iter().map(|row| row.verdict).collect();
        use Verdict::{Failed, Passed, Skipped};
        assert_eq!(verdicts, [Passed, Failed, Failed, Failed, Failed, Passed, Skipped]);
        assert_eq!(checks.rows().iter().filter(|row| row.rounded).count(), 1);
        assert!(checks.rows()[1].reason.as_ref().unwrap().contains("off by 1.0e-1, 1.0e-5 is allowed"));
    }
}
