//! Tasks as the worker carries them out, and what it tells of them.

use std::ops::ControlFlow;

use bayescope::device::{DeviceChoice, choose};
use bayescope::events::Progress;
use bayescope::oracle::folder::Oracle;
use bayescope::task::{Done, News, OpenOracle, Task, TaskContext, TaskHost};
use bayescope::worker::protocol::{Event, Job, JobId, Outcome};

use super::fake::Fake;

/// Keeps what it hears of a task, and stops nothing.
#[derive(Default)]
struct Heard(Vec<News>);

impl TaskHost for Heard {
    fn progress(&mut self, _: Progress, _: String) -> bool {
        true
    }

    fn event(&mut self, event: News) {
        self.0.push(event);
    }

    fn check(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What comes of a task where this oracle is open by this name.
pub fn carry_out<T: Task>(task: &T, open: Option<(&str, &Oracle)>) -> Done<T::Report> {
    told(task, open).1
}

/// What a task tells on its way, and what comes of it.
pub fn told<T: Task>(task: &T, open: Option<(&str, &Oracle)>) -> (Vec<News>, Done<T::Report>) {
    let chosen = choose(DeviceChoice::Cpu).unwrap();
    let open = open.map(|(name, Oracle { info, world })| OpenOracle { name, info, world });
    let mut heard = Heard::default();
    let done = task.run(&mut TaskContext::new(open, &chosen, &mut heard)).unwrap();
    (heard.0, done)
}

/// The task of type `T`, if the job is one.
pub fn task_of<T: Task>(job: &Job) -> Option<&T> {
    match job {
        Job::Task(task) => task.get(),
        _ => None,
    }
}

/// The last job that was asked for, which is such a task.
pub fn asked<T: Task + Clone>(fake: &Fake) -> (JobId, T) {
    let jobs = fake.jobs();
    let last = jobs.last().and_then(|(id, job)| Some((*id, task_of::<T>(job)?.clone())));
    last.unwrap_or_else(|| panic!("the last is no such task: {jobs:?}"))
}

/// Tells what came of a task, as the worker does.
pub fn done<T: Task>(fake: &Fake, id: JobId, done: Done<T::Report>) {
    done.made.into_iter().for_each(|made| fake.send(Event::Made(Box::new(made))));
    fake.send(Event::Task { id, news: News::of_report::<T>(done.report) });
    let trouble = done.trouble.map(|error| Outcome::Failed(error.to_string()));
    fake.send(Event::JobEnded { id, outcome: trouble.unwrap_or(Outcome::Done(done.sentence)) });
}
