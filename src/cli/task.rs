//! Tasks, carried out under a bar: the same that the window's worker carries out.

use std::ops::ControlFlow;

use super::open::Opened;
use super::progress::Bar;
use crate::device::OpenDevice;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::task::{Done, News, OpenOracle, Task, TaskContext, TaskHost};

/// Carries a task out under a bar of this title.
pub fn run_task<T: Task>(task: &T, opened: Option<&Opened>, chosen: &OpenDevice, title: &str) -> Result<T::Report> {
    let oracle = opened.map(|Opened { name, info, world, .. }| OpenOracle { name, info, world });
    let mut bar = Bar::new(title);
    let Done { report, trouble, .. } = task.run(&mut TaskContext::new(oracle, chosen, &mut bar))?;
    trouble.map_or(Ok(report), Err)
}

impl TaskHost for Bar {
    fn progress(&mut self, progress: Progress, note: String) -> bool {
        self.set(progress, note);
        true
    }

    /// The bar itself counts.
    fn stage(&mut self, progress: Progress, name: &str) -> bool {
        self.progress(progress, name.to_owned())
    }

    fn images(&mut self, progress: Progress) -> bool {
        self.emit(progress).is_continue()
    }

    fn event(&mut self, _: News) {}

    fn check(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
