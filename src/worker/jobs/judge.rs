//! Classifiers of other programs, judged while the window is served.

use std::ops::ControlFlow;

use super::sink::Sink;
use crate::error::Result;
use crate::events::Events;
use crate::judge::{Candidate, JudgeEvent, assess};
use crate::run::checkpoints;
use crate::units::Seed;
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::protocol::{Event, JobId, JudgeRequest};
use crate::worker::shared::Control;

/// Reads predictions, runs networks, and tells the report.
pub fn carry_out(
    channels: &Channels,
    desk: &Desk,
    id: JobId,
    control: &Control,
    request: &JudgeRequest,
) -> Result<String> {
    let shown = desk.opened.as_ref().map(|opened| &opened.world);
    let mut sink = Sink::new(channels, &desk.interactive, shown, id, control);
    let JudgeRequest { dataset, split, candidates } = request;
    let candidates = candidates.iter().map(unfolded).collect::<Result<Vec<_>>>()?.concat();
    let report = assess(dataset, *split, &candidates, Seed(0), &desk.chosen.device, &mut sink)?;
    let alarms: usize = report.models.iter().map(|model| model.alarms().len()).sum();
    let models = report.models.len();
    channels.send(Event::Judged(id, Box::new(report)));
    let alarms = match alarms {
        0 => String::new(),
        n => format!("; {n} alarm(s)"),
    };
    Ok(format!("{models} model(s) judged on {}{alarms}", dataset.display()))
}

/// The checkpoints in a folder, in its place.
fn unfolded(candidate: &Candidate) -> Result<Vec<Candidate>> {
    let Candidate::Checkpoint { path, options } = candidate else { return Ok(vec![candidate.clone()]) };
    let of = |path| Candidate::Checkpoint { path, options: options.clone() };
    Ok(checkpoints(path)?.into_iter().map(of).collect())
}

impl Events<JudgeEvent> for Sink<'_> {
    fn emit(&mut self, JudgeEvent { stage, progress }: JudgeEvent) -> ControlFlow<()> {
        self.progress(progress, format!("{}: {} of {}", stage.label(), progress.done, progress.total));
        self.check()
    }
}
