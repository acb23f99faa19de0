//! Rankings of corpora: flows trained one after another while the window is served between two steps.

use std::ops::ControlFlow;

use super::sink::Sink;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::oracle::train::TrainEvent;
use crate::run::Share;
use crate::run::hardness::{HardnessEvent, HardnessFolder, rank};
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::hardness::RankRequest;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Parts of a corpus in the job's progress: how many steps it takes is known only once it is read.
const PARTS: usize = 1000;

/// Plans the ranking, or finds its plan, and trains what is not finished.
pub fn carry_out(
    channels: &Channels,
    desk: &mut Desk,
    id: JobId,
    control: &Control,
    request: &RankRequest,
) -> Result<String> {
    let folder = match &request.spec {
        Some(spec) => HardnessFolder::create(&request.folder, spec)?,
        None => HardnessFolder::open(&request.folder)?,
    };
    let shown = desk.opened.as_ref().map(|opened| &opened.world);
    let mut sink = Sink::new(channels, &desk.interactive, shown, id, control);
    sink.stands_aside = Some(&desk.chosen);
    let mut told = Told { sink: &mut sink, corpora: Progress { done: 0, total: 0 } };
    let done = rank(&folder, Share::ALL, &desk.chosen, &mut told);
    if let Some(opened) = sink.opened {
        desk.opened = Some(opened);
    }
    let found = done?;
    let failed = match found.troubles.len() {
        0 => String::new(),
        n => format!(", {n} failed (resuming tries them again)"),
    };
    let (finished, place) = (found.corpora.len(), folder.path.display());
    Ok(format!("{finished} of {} corpora are ranked{failed} in {place}", found.planned))
}

/// Tells what a ranking says: of its steps a few, of everything else all.
struct Told<'a, 'b> {
    sink: &'a mut Sink<'b>,
    /// Corpora done with, of how many.
    corpora: Progress,
}

impl Told<'_, '_> {
    /// Says how far all is, being so far in the present corpus; whether it was time to.
    fn progress(&mut self, Progress { done, total }: Progress, note: &str) -> bool {
        let within = PARTS * done / total.max(1);
        let Progress { done, total } = self.corpora;
        let note = format!("{done} of {total} corpora · {note}");
        // The last step is not the end: the Bayes error is yet to come.
        let done = (PARTS * done + within).min((PARTS * total).saturating_sub(1));
        self.sink.progress(Progress { done, total: PARTS * total }, note)
    }

    fn pass_on(&self, event: HardnessEvent) {
        self.sink.channels.send(Event::Hardness(self.sink.id, Box::new(event)));
    }
}

impl Events<HardnessEvent> for Told<'_, '_> {
    fn emit(&mut self, event: HardnessEvent) -> ControlFlow<()> {
        match &event {
            HardnessEvent::Planned { corpora, finished } => {
                self.corpora = Progress { done: *finished, total: *corpora };
                self.pass_on(event);
            }
            HardnessEvent::Training { corpus, said, .. } => match &**said {
                TrainEvent::Step { epoch, epochs, step, steps, loss, .. } => {
                    let at = Progress { done: (epoch - 1) * steps + step, total: epochs * steps };
                    let note = format!("{corpus}: epoch {epoch} of {epochs}, NLL {:.0} nats", loss.nll);
                    if self.progress(at, &note) {
                        self.pass_on(event);
                    }
                }
                // Pictures are for the panel Oracle training.
                TrainEvent::Samples { .. } | TrainEvent::NoSamples { .. } => {}
                _ => self.pass_on(event),
            },
            HardnessEvent::Reading { corpus } => {
                self.progress(Progress { done: 0, total: 1 }, &format!("reading {corpus}"));
                self.pass_on(event);
            }
            HardnessEvent::Integrating { corpus } => {
                self.progress(Progress { done: 1, total: 1 }, &format!("Bayes error of {corpus}"));
            }
            HardnessEvent::Finished(_) | HardnessEvent::Failed { .. } => {
                self.corpora.done += 1;
                self.pass_on(event);
            }
            HardnessEvent::Ranking(_) => self.pass_on(event),
        }
        self.sink.check()
    }
}
