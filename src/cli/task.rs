//! Tasks, run under a bar: the same that the window's worker runs.

use std::ops::ControlFlow;

use super::open::Opened;
use super::progress::Bar;
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::task::{Done, ExternalImage, News, OpenOracle, Task, TaskContext, TaskHost};

/// Runs a task under a bar of this title. Returns its report.
pub fn run_task<T: Task>(task: &T, opened: Option<&Opened>, chosen: &OpenDevice, title: &str) -> Result<T::Report> {
    let bar = Bar::new(title);
    run_watched(task, opened, chosen, Watched::<T> { bar: &bar, images: &[], tell: &mut |_, _| Ok(()) })
}

/// The set of the images from outside that a command has read: it reads no others.
pub const SET: u64 = 0;

/// What a command adds to the bar of a task.
pub struct Watched<'a, T: Task> {
    pub bar: &'a Bar,
    /// Images from outside, world space, CHW: all are of [`SET`].
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
    match (done, host.failed) {
        // What kept a task from ending as it was asked to says more than why it was asked.
        (Err(error), Some(_)) if !matches!(error, Error::Cancelled) => Err(error),
        (done, failed) => failed.map_or(done, Err),
    }
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

    fn external_image(&self, ExternalImage { set, index }: ExternalImage, dims: usize) -> Result<Vec<f32>> {
        let image = self.watched.images.get(index).filter(|image| set == SET && image.len() == dims);
        image.cloned().ok_or_else(|| Error::input("that image is not open"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceChoice, choose};

    /// Counts without end, until it is stopped.
    #[derive(Debug, PartialEq)]
    struct Count;

    impl Task for Count {
        type Event = usize;
        type Live = ();
        type Report = ();

        fn title(&self) -> String {
            "Count".into()
        }

        fn run(&self, cx: &mut TaskContext<'_, usize>) -> Result<Done<()>> {
            let read = |set, index, dims| cx.external_image(ExternalImage { set, index }, dims);
            assert_eq!(read(SET, 0, 2)?, [1.0, 2.0]);
            assert!(read(SET, 0, 3).is_err() && read(SET, 1, 2).is_err() && read(SET + 1, 0, 2).is_err());
            for i in 0.. {
                cx.event(i);
                if cx.check().is_break() {
                    return Err(Error::Cancelled);
                }
            }
            Ok(Done::new((), ""))
        }
    }

    #[test]
    fn an_event_that_cannot_be_shown_stops_the_task_with_its_error() {
        let (chosen, bar, mut shown) = (choose(DeviceChoice::Cpu).unwrap(), Bar::new("counting"), Vec::new());
        let mut tell = |_: &Bar, event: &usize| {
            shown.push(*event);
            if *event < 3 { Ok(()) } else { Err(Error::input("stdout is full")) }
        };
        let watched = Watched { bar: &bar, images: &[vec![1.0, 2.0]], tell: &mut tell };
        let failed = run_watched(&Count, None, &chosen, watched);
        assert!(matches!(failed, Err(Error::Input(why)) if why == "stdout is full"));
        assert_eq!(shown, [0, 1, 2, 3]);
    }
}
