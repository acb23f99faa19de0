//! Reference cases on the device in use, while the window is served between them.

use std::ops::ControlFlow;

use super::sink::Sink;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::verify::{VerifyEvent, VerifySpec, verify};
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Carries out every case and tells the report.
pub fn carry_out(channels: &Channels, desk: &Desk, id: JobId, control: &Control) -> Result<String> {
    let shown = desk.opened.as_ref().map(|opened| &opened.world);
    let mut sink = Sink::new(channels, &desk.interactive, shown, id, control);
    let spec = VerifySpec { device: desk.chosen.report.used.choice, cases: Vec::new() };
    let report = verify(&spec, &mut sink)?;
    let (passed, sentence) = (report.passed, report.sentence.clone());
    channels.send(Event::Verified(Box::new(report)));
    if passed { Ok(sentence) } else { Err(Error::Numeric(sentence)) }
}

impl Events<VerifyEvent> for Sink<'_> {
    fn emit(&mut self, event: VerifyEvent) -> ControlFlow<()> {
        if let VerifyEvent::Begun(case, progress) = event {
            self.progress(progress, case.to_owned());
        }
        self.check()
    }
}
