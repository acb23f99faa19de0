//! Tasks of any type, run while the window is served.

use std::ops::ControlFlow;
use std::time::Duration;

use super::context::{JobContext, Sink};
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::task::{AnyTask, Done, ExternalImage, News, OpenOracle, TaskHost};
use crate::worker::device_thread::Opened;
use crate::worker::protocol::Event;

/// Runs a task and sends its report.
pub fn run(cx: &mut JobContext<'_>, task: &AnyTask) -> Result<String> {
    let mut sink = cx.sink();
    let done = task.run(cx.opened.map(Opened::for_task), cx.chosen, &mut sink);
    // On the next device it begins again in the world that it was asked for in.
    let lost = cx.interactive.lost() || matches!(done, Err(Error::DeviceLost { .. }));
    if !lost || task.lets_oracles_open() {
        cx.replaced = sink.replaced;
    }
    let Done { report, sentence, made, trouble } = done?;
    made.into_iter().for_each(|made| cx.channels.send(Event::Made(Box::new(made))));
    cx.channels.send(Event::Task { id: cx.entry.id, news: report });
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

    fn left(&mut self, left: Option<Duration>) {
        self.channels.send(Event::JobLeft { id: self.entry.id, left });
    }

    fn event(&mut self, event: News) {
        self.channels.send(Event::Task { id: self.entry.id, news: event });
    }

    fn check(&mut self) -> ControlFlow<()> {
        Sink::check(self)
    }

    fn check_in_turns(&mut self) -> ControlFlow<()> {
        Sink::check_in_turns(self)
    }

    fn external_image(&self, image: ExternalImage, dims: usize) -> Result<Vec<f32>> {
        self.interactive.external_image(image, dims)
    }
}
