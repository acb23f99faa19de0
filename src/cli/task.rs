//! Tasks, carried out under a bar: the same that the window's worker carries out.

use std::ops::ControlFlow;

use super::open::Opened;
use super::progress::Bar;
use crate::device::Chosen;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::task::{Done, News, OpenOracle, Task, TaskContext, TaskHost};

/// Runs a task under a bar of this title.
pub fn run_task<T: Task>(task: &T, opened: Option<&Opened>, chosen: &Chosen, title: &str) -> Result<T::Report> {
    run_task_for(task, opened, chosen, &mut Bar::new(title))
}

/// Runs a task for a host that shows its events, too.
pub fn run_task_for<T: Task>(
    task: &T,
    opened: Option<&Opened>,
    chosen: &Chosen,
    host: &mut dyn TaskHost,
) -> Result<T::Report> {
    let oracle = opened.map(|Opened { name, info, world, .. }| OpenOracle { name, info, world });
    let Done { report, trouble, .. } = task.run(&mut TaskContext::new(oracle, chosen, host))?;
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
