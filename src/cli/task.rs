//! Tasks, run under a bar: the same that the window's worker runs.

use std::ops::ControlFlow;

use super::open::Opened;
use super::progress::Bar;
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::task::{Done, News, OpenOracle, Task, TaskContext, TaskHost};

/// Runs a task under a bar of this title. Returns its report.
pub fn run_task<T: Task>(task: &T, opened: Option<&Opened>, chosen: &OpenDevice, title: &str) -> Result<T::Report> {
    let bar = Bar::new(title);
    run_watched(task, opened, chosen, Watched::<T> { bar: &bar, images: &[], tell: &mut |_, _| Ok(()) })
}

/// What a command adds to the bar of a task.
pub struct Watched<'a, T: Task> {
    pub bar: &'a Bar,
    /// Images from outside, world space, CHW.
    pub images: &'a [Vec<f32>],
    /// Shows an event. An error stops the task.
    pub tell: &'a mut dyn FnMut(&Bar, &T::Event) -> Result<()>,
}

/// [`run_task`] with events that are shown and images from outside.
pub fn run_watched<T: Task>(
    task: &T,
    opened: Option<&Opened>,
    chosen: &OpenDevice,
    watched: Watched<'_, T>,
) -> Result<T::Report> {
    let mut host = Host { watched, failed: None };
    let done = run_task_for(task, opened, chosen, &mut host);
    host.failed.map_or(done, Err)
}

/// Runs a task for a host of its own. Returns its report.
pub fn run_task_for<T: Task>(
    task: &T,
    opened: Option<&Opened>,
    chosen: &OpenDevice,
    host: &mut dyn TaskHost,
) -> Result<T::Report> {
    let oracle = opened.map(|Opened { name, info, world, .. }| OpenOracle { name, info, world });
    let Done { report, trouble, .. } = task.run(&mut TaskContext::new(oracle, chosen, host))?;
    trouble.map_or(Ok(report), Err)
}

struct Host<'a, T: Task> {
    watched: Watched<'a, T>,
    failed: Option<Error>,
}

impl<T: Task> TaskHost for Host<'_, T> {
    fn progress(&mut self, progress: Progress, note: String) -> bool {
        self.watched.bar.set(progress, note);
        true
    }

    /// The bar itself counts.
    fn stage(&mut self, progress: Progress, name: &str) -> bool {
        self.progress(progress, name.to_owned())
    }

    fn images(&mut self, progress: Progress) -> bool {
        self.watched.bar.count(progress);
        true
    }

    fn event(&mut self, news: News) {
        if let (Some(event), None) = (news.event::<T>(), &self.failed) {
            self.failed = (self.watched.tell)(self.watched.bar, event).err();
        }
    }

    fn check(&mut self) -> ControlFlow<()> {
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn image_from_outside(&self, index: usize, dims: usize) -> Result<Vec<f32>> {
        let image = self.watched.images.get(index).filter(|image| image.len() == dims);
        image.cloned().ok_or_else(|| Error::input("that image is not open"))
    }
}
