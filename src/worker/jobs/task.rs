//! Tasks of any type, carried out while the window is served.

use std::ops::ControlFlow;

use super::sink::Sink;
use crate::error::Result;
use crate::events::Progress;
use crate::task::{AnyTask, Done, News, OpenOracle, TaskHost};
use crate::worker::channels::Channels;
use crate::worker::desk::{Desk, Opened};
use crate::worker::interactive::gone;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Carries a task out, and tells what came of it.
pub fn carry_out(channels: &Channels, desk: &mut Desk, id: JobId, control: &Control, task: &AnyTask) -> Result<String> {
    let shown = desk.opened.as_ref();
    let mut sink = Sink::new(channels, &desk.interactive, shown.map(|opened| &opened.world), id, control);
    sink.stands_aside = task.lets_oracles_open().then_some(&desk.chosen);
    let done = task.run(shown.map(Opened::for_task), &desk.chosen, &mut sink);
    if let Some(opened) = sink.opened {
        desk.opened = Some(opened);
    }
    let Done { report, sentence, made, trouble } = done?;
    made.into_iter().for_each(|made| channels.send(Event::Made(Box::new(made))));
    channels.send(Event::Task { id, news: report });
    trouble.map_or(Ok(sentence), Err)
}

impl Opened {
    fn for_task(&self) -> OpenOracle<'_> {
        OpenOracle { name: &self.name, info: &self.info, world: &self.world }
    }
}

impl TaskHost for Sink<'_> {
    fn progress(&mut self, progress: Progress, note: String) -> bool {
        Sink::progress(self, progress, note)
    }

    fn event(&mut self, event: News) {
        self.channels.send(Event::Task { id: self.id, news: event });
    }

    fn check(&mut self) -> ControlFlow<()> {
        Sink::check(self)
    }

    fn image_from_outside(&self, index: usize, dims: usize) -> Result<Vec<f32>> {
        self.interactive.external_image(index, dims).ok_or_else(gone)
    }
}
