//! Classifiers of other programs, judged while the window is served.

use super::Sink;
use crate::error::Result;
use crate::judge::assess;
use crate::units::Seed;
use crate::worker::Control;
use crate::worker::desk::{Desk, Line};
use crate::worker::protocol::{Event, JobId, JudgeRequest};

/// Reads predictions, runs networks, and tells the report.
pub fn carry_out(line: &Line, desk: &Desk, id: JobId, control: &Control, request: &JudgeRequest) -> Result<String> {
    let shown = desk.opened.as_ref().map(|opened| &opened.world);
    let mut sink = Sink::new(line, &desk.interactive, shown, id, control);
    let JudgeRequest { dataset, split, candidates } = request;
    let report = assess(dataset, *split, candidates, Seed(0), &mut sink)?;
    let alarms: usize = report.models.iter().map(|model| model.alarms().len()).sum();
    let models = report.models.len();
    line.send(Event::Judged(id, Box::new(report)));
    let alarms = match alarms {
        0 => String::new(),
        n => format!("; {n} alarm(s)"),
    };
    Ok(format!("{models} model(s) judged on {}{alarms}", dataset.display()))
}
