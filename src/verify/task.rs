//! Verification as a task of the window.

use super::{Report, VerifyEvent, VerifySpec, verify};
use crate::error::{Error, Result};
use crate::task::{Done, Task, TaskContext};

/// Computes every reference case on the device in use. Between two cases the window is served.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyDevice;

impl Task for VerifyDevice {
    type Event = ();
    type Live = ();
    type Report = Report;

    fn title(&self) -> String {
        "Verify this device".into()
    }

    fn lets_oracles_open(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Report>> {
        let spec = VerifySpec { device: cx.chosen.report.used.choice, cases: Vec::new() };
        let mut told = |event: VerifyEvent| {
            if let VerifyEvent::Begun(case, progress) = event {
                cx.progress(progress, case);
            }
            cx.check()
        };
        let report = verify(&spec, &mut told)?;
        let sentence = report.sentence.clone();
        let passed = if report.passed { Ok(()) } else { Err(Error::Numeric(sentence.clone())) };
        Ok(Done::new(report, sentence).but(passed))
    }
}
