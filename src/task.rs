//! A long job as one type: its spec, its events, its report, and how it runs. The window's worker
//! and the commands run all tasks alike: queue, cancel, pause, progress, outcome and ledger are
//! implemented once, in the [`TaskHost`]. A new task is one file: a spec that is a [`Task`].
//!
//! The worker and the window hold tasks of any type ([`AnyTask`]); their events and reports travel
//! as [`News`].

use std::any::Any;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use std::time::Duration;

use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::folder::OracleInfo;
use crate::oracle::world::World;
use crate::provenance::Made;

/// A long job. The value is its spec.
pub trait Task: Debug + PartialEq + Send + Sync + 'static {
    /// Its events, besides progress; `()` where there are none.
    type Event: Send + Sync + 'static;
    /// The state its events add up to while it runs; `()` where that is not needed.
    type Live: Default + Send + Debug + 'static;
    /// What comes of it.
    type Report: Send + Sync + 'static;

    /// A short name for the list of jobs.
    fn title(&self) -> String;

    /// Adds an event to what is known of the task under way.
    fn fold(&self, _live: &mut Self::Live, _event: &Self::Event) {}

    /// Whether its report says something of the open oracle alone, so that the window forgets it
    /// when another opens.
    fn is_of_open_oracle(&self) -> bool {
        false
    }

    /// Whether it has nothing to do with the open oracle: it may begin in any world, and begins again
    /// in any after its device was lost.
    fn lets_oracles_open(&self) -> bool {
        false
    }

    /// Whether it says which oracle it is of, and refuses another by itself. Every other task that does
    /// not let oracles open is of the one that is open when it is submitted.
    fn names_its_oracle(&self) -> bool {
        false
    }

    /// Whether it takes a few seconds at most, so that it need not wait behind a long one.
    fn is_short(&self) -> bool {
        false
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when it was stopped; otherwise what it failed of.
    fn run(&self, cx: &mut TaskContext<'_, Self::Event>) -> Result<Done<Self::Report>>;
}

/// How a task ended well.
#[derive(Debug)]
pub struct Done<R> {
    /// What came of it.
    pub report: R,
    /// A sentence about it for the log.
    pub sentence: String,
    /// Files and figures that were made: lines for the exactness ledger.
    pub made: Vec<Made>,
    /// What failed after all was computed: the report stands, yet the task has failed.
    pub trouble: Option<Error>,
}

impl<R> Done<R> {
    /// Done, with a sentence about it.
    pub fn new(report: R, sentence: impl Into<String>) -> Self {
        Self { report, sentence: sentence.into(), made: Vec::new(), trouble: None }
    }

    /// With a line for the exactness ledger.
    #[must_use]
    pub fn made(mut self, made: impl IntoIterator<Item = Made>) -> Self {
        self.made.extend(made);
        self
    }

    /// With what went wrong after all was computed, if anything did.
    #[must_use]
    pub fn but(mut self, last: Result<()>) -> Self {
        self.trouble = last.err();
        self
    }
}

/// The open oracle.
#[derive(Clone, Copy)]
pub struct OpenOracle<'a> {
    /// As it was asked for.
    pub name: &'a str,
    /// Its description.
    pub info: &'a OracleInfo,
    /// Its world, on the device in use.
    pub world: &'a World,
}

/// An image from outside, as it is named where it is not at hand itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalImage {
    /// The set that it is one of: another may be open by the time that the image is looked for.
    pub set: u64,
    /// Its running number there.
    pub index: usize,
}

/// What runs tasks: it takes progress and events, and decides whether to go on.
pub trait TaskHost {
    /// Takes progress and a note about the present step. Returns whether it was shown.
    fn progress(&mut self, progress: Progress, note: String) -> bool;

    /// Takes the time that is left of the whole task, where the task knows better than the pace of its
    /// progress says; `None` while it cannot be known.
    fn left(&mut self, _left: Option<Duration>) {}

    /// [`Self::progress`] of a step that has a name: "drawing images".
    fn stage(&mut self, progress: Progress, name: &str) -> bool {
        self.progress(progress, format!("{name}: {} of {}", progress.done, progress.total))
    }

    /// [`Self::progress`] of a step that has no name and counts images.
    fn images(&mut self, progress: Progress) -> bool {
        self.progress(progress, format!("{} of {} images", progress.done, progress.total))
    }

    /// Takes an event of the task.
    fn event(&mut self, event: News);

    /// Returns whether to go on. May block while the task is paused.
    fn check(&mut self) -> ControlFlow<()>;

    /// [`Self::check`] of a task that is looked at while it runs: what else the host shows meanwhile
    /// gets as much time as the task, not all of it.
    fn check_in_turns(&mut self) -> ControlFlow<()> {
        self.check()
    }

    /// An image from outside that the window shows: world space, CHW, so many numbers.
    ///
    /// # Errors
    /// When it is not open, or there is no window.
    fn external_image(&self, _image: ExternalImage, _dims: usize) -> Result<Vec<f32>> {
        Err(Error::input("there is no window whose images could be meant"))
    }
}

/// What a task is given: the open oracle, the device, and its host.
pub struct TaskContext<'a, E> {
    oracle: Option<OpenOracle<'a>>,
    /// The device in use.
    pub chosen: &'a OpenDevice,
    host: &'a mut dyn TaskHost,
    events: PhantomData<fn(E)>,
}

impl<'a, E: Send + Sync + 'static> TaskContext<'a, E> {
    /// All that a task is given.
    pub fn new(oracle: Option<OpenOracle<'a>>, chosen: &'a OpenDevice, host: &'a mut dyn TaskHost) -> Self {
        Self { oracle, chosen, host, events: PhantomData }
    }

    /// The open oracle.
    ///
    /// # Errors
    /// When none is open.
    pub fn oracle(&self) -> Result<OpenOracle<'a>> {
        self.oracle.ok_or_else(|| Error::input("no oracle is open; open one first"))
    }

    /// The open oracle, where it is the one of this name.
    pub fn oracle_named(&self, name: &str) -> Option<OpenOracle<'a>> {
        self.oracle.filter(|open| open.name == name)
    }

    /// Sends the progress of a named step. Returns whether to go on.
    pub fn stage(&mut self, progress: Progress, name: &str) -> ControlFlow<()> {
        self.host.stage(progress, name);
        self.check()
    }

    /// Sends progress and a note about the present step. Returns whether it was shown.
    pub fn progress(&mut self, progress: Progress, note: impl Into<String>) -> bool {
        self.host.progress(progress, note.into())
    }

    /// [`TaskHost::left`].
    pub fn left(&mut self, left: Option<Duration>) {
        self.host.left(left);
    }

    /// Sends an event.
    pub fn event(&mut self, event: E) {
        self.host.event(News::Event(Arc::new(event)));
    }

    /// Whether to go on.
    pub fn check(&mut self) -> ControlFlow<()> {
        self.host.check()
    }

    /// Sends progress in images, and takes turns: [`TaskHost::check_in_turns`]. Returns whether to go
    /// on.
    pub fn images_in_turns(&mut self, progress: Progress) -> ControlFlow<()> {
        self.host.images(progress);
        self.host.check_in_turns()
    }

    /// [`TaskHost::external_image`].
    ///
    /// # Errors
    /// As there.
    pub fn external_image(&self, image: ExternalImage, dims: usize) -> Result<Vec<f32>> {
        self.host.external_image(image, dims)
    }
}

impl<E: Send + Sync + 'static> Events<Progress> for TaskContext<'_, E> {
    fn emit(&mut self, progress: Progress) -> ControlFlow<()> {
        self.host.images(progress);
        self.check()
    }
}

/// News of a task of any type.
#[derive(Debug, Clone)]
pub enum News {
    /// Its [`Task::Event`].
    Event(Arc<dyn Any + Send + Sync>),
    /// Its [`Task::Report`].
    Report(Arc<dyn Any + Send + Sync>),
}

impl News {
    /// An event of a task of type `T`.
    pub fn of_event<T: Task>(event: T::Event) -> Self {
        Self::Event(Arc::new(event))
    }

    /// The report of a task of type `T`.
    pub fn of_report<T: Task>(report: T::Report) -> Self {
        Self::Report(Arc::new(report))
    }

    /// The event, where it is one of a task of type `T`.
    pub fn event<T: Task>(&self) -> Option<&T::Event> {
        match self {
            Self::Event(event) => event.downcast_ref(),
            Self::Report(_) => None,
        }
    }

    /// The report, where it is that of a task of type `T`.
    pub fn report<T: Task>(&self) -> Option<Arc<T::Report>> {
        match self {
            Self::Report(report) => report.clone().downcast().ok(),
            Self::Event(_) => None,
        }
    }
}

/// A task of any type; clones share it.
#[derive(Debug, Clone)]
pub struct AnyTask(Arc<dyn DynTask>);

impl<T: Task> From<T> for AnyTask {
    fn from(task: T) -> Self {
        Self(Arc::new(task))
    }
}

impl Deref for AnyTask {
    type Target = dyn DynTask;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for AnyTask {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other.as_any())
    }
}

impl AnyTask {
    /// The task, where it is of type `T`.
    pub fn get<T: Task>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }

    /// Whether both are of one type.
    pub fn is_like(&self, other: &Self) -> bool {
        self.as_any().type_id() == other.as_any().type_id()
    }
}

/// [`Task`] without its types.
pub trait DynTask: Debug + Send + Sync {
    /// The task.
    fn as_any(&self) -> &dyn Any;

    /// Whether `other` is the same task.
    fn equals(&self, other: &dyn Any) -> bool;

    /// [`Task::title`].
    fn title(&self) -> String;

    /// [`Task::is_of_open_oracle`].
    fn is_of_open_oracle(&self) -> bool;

    /// [`Task::lets_oracles_open`].
    fn lets_oracles_open(&self) -> bool;

    /// [`Task::names_its_oracle`].
    fn names_its_oracle(&self) -> bool;

    /// [`Task::is_short`].
    fn is_short(&self) -> bool;

    /// A [`Task::Live`] to which no event was added yet.
    fn live(&self) -> Box<dyn Any + Send>;

    /// [`Task::fold`]; an event of another type changes nothing.
    fn fold(&self, live: &mut (dyn Any + Send), event: &(dyn Any + Send + Sync));

    /// [`Task::run`]; the report is that of [`News::Report`].
    ///
    /// # Errors
    /// As [`Task::run`].
    fn run(&self, oracle: Option<OpenOracle<'_>>, chosen: &OpenDevice, host: &mut dyn TaskHost) -> Result<Done<News>>;
}

impl<T: Task> DynTask for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref().is_some_and(|other: &T| other == self)
    }

    fn title(&self) -> String {
        Task::title(self)
    }

    fn is_of_open_oracle(&self) -> bool {
        Task::is_of_open_oracle(self)
    }

    fn lets_oracles_open(&self) -> bool {
        Task::lets_oracles_open(self)
    }

    fn names_its_oracle(&self) -> bool {
        Task::names_its_oracle(self)
    }

    fn is_short(&self) -> bool {
        Task::is_short(self)
    }

    fn live(&self) -> Box<dyn Any + Send> {
        Box::<T::Live>::default()
    }

    fn fold(&self, live: &mut (dyn Any + Send), event: &(dyn Any + Send + Sync)) {
        if let (Some(live), Some(event)) = (live.downcast_mut(), event.downcast_ref()) {
            Task::fold(self, live, event);
        }
    }

    fn run(&self, oracle: Option<OpenOracle<'_>>, chosen: &OpenDevice, host: &mut dyn TaskHost) -> Result<Done<News>> {
        let Done { report, sentence, made, trouble } = Task::run(self, &mut TaskContext::new(oracle, chosen, host))?;
        Ok(Done { report: News::of_report::<T>(report), sentence, made, trouble })
    }
}

#[cfg(test)]
mod tests;
