//! Tasks as the window knows them: the last one of each type, found by its type.

use std::any::Any;
use std::sync::Arc;

use crate::task::{AnyTask, News, Task};
use crate::worker::protocol::{JobId, Outcome};

/// Of every type of task the one that was asked for last.
#[derive(Debug, Default)]
pub struct Tasks(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    job: JobId,
    task: AnyTask,
    live: Box<dyn Any + Send>,
    report: Option<News>,
    /// The report of the task before, until this one has its own.
    earlier: Option<News>,
    outcome: Option<Outcome>,
}

/// A task as far as it has come.
#[derive(Debug)]
pub struct TaskView<'a, T: Task> {
    pub job: JobId,
    /// What was asked for.
    pub task: &'a T,
    /// What its events add up to.
    pub live: &'a T::Live,
    /// What came of it.
    pub report: Option<Arc<T::Report>>,
    /// The report, or that of the task of this type before it.
    pub last_report: Option<Arc<T::Report>>,
    /// How its job ended.
    pub outcome: Option<&'a Outcome>,
}

impl<T: Task> TaskView<'_, T> {
    /// Returns whether its job has not ended.
    pub fn under_way(&self) -> bool {
        self.outcome.is_none()
    }

    /// What the job failed of.
    pub fn trouble(&self) -> Option<&str> {
        match self.outcome {
            Some(Outcome::Failed(why)) => Some(why),
            _ => None,
        }
    }
}

impl Tasks {
    /// A task was submitted.
    pub fn begin(&mut self, job: JobId, task: AnyTask) {
        let before = self.0.iter().position(|entry| entry.task.is_like(&task)).map(|i| self.0.swap_remove(i));
        let earlier = before.and_then(|entry| entry.report.or(entry.earlier));
        self.0.push(Entry { job, live: task.live(), task, report: None, earlier, outcome: None });
    }

    /// A job tells something of its task.
    pub fn take(&mut self, job: JobId, news: News) {
        let Some(entry) = self.0.iter_mut().find(|entry| entry.job == job) else { return };
        match &news {
            News::Event(event) => entry.task.fold(entry.live.as_mut(), event.as_ref()),
            News::Report(_) => (entry.report, entry.earlier) = (Some(news), None),
        }
    }

    pub fn ended(&mut self, job: JobId, outcome: &Outcome) {
        if let Some(entry) = self.0.iter_mut().find(|entry| entry.job == job) {
            entry.outcome = Some(outcome.clone());
        }
    }

    /// Another oracle is open: what was found of the one before is forgotten.
    pub fn forget_world(&mut self) {
        self.0.retain(|entry| !entry.task.is_of_open_oracle() || entry.outcome.is_none());
        for entry in self.0.iter_mut().filter(|entry| entry.task.is_of_open_oracle()) {
            (entry.report, entry.earlier) = (None, None);
        }
    }

    /// The task of this type that was asked for last.
    pub fn get<T: Task>(&self) -> Option<TaskView<'_, T>> {
        self.0.iter().find_map(|entry| {
            let Entry { job, task, live, report, earlier, outcome } = entry;
            let of = |news: &News| news.report::<T>();
            let report = report.as_ref().and_then(of);
            Some(TaskView {
                job: *job,
                task: task.get()?,
                live: live.downcast_ref()?,
                last_report: report.clone().or_else(|| earlier.as_ref().and_then(of)),
                report,
                outcome: outcome.as_ref(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::task::{Done, TaskContext};

    /// Adds numbers up.
    #[derive(Debug, PartialEq)]
    struct Add<const OF_WORLD: bool>(u32);

    impl<const OF_WORLD: bool> Task for Add<OF_WORLD> {
        type Event = u32;
        type Live = u32;
        type Report = u32;

        fn title(&self) -> String {
            "Add".into()
        }

        fn is_of_open_oracle(&self) -> bool {
            OF_WORLD
        }

        fn fold(&self, live: &mut u32, event: &u32) {
            *live += self.0 * event;
        }

        fn run(&self, _: &mut TaskContext<'_, u32>) -> Result<Done<u32>> {
            Ok(Done::new(0, ""))
        }
    }

    type Here = Add<true>;
    type Anywhere = Add<false>;

    #[test]
    fn of_every_type_the_newest_is_known_and_hears_its_own_job_alone() {
        let mut tasks = Tasks::default();
        tasks.begin(1, Add::<true>(10).into());
        tasks.begin(2, Add::<false>(1).into());
        for (job, event) in [(1, 2), (1, 3), (2, 7), (9, 100)] {
            tasks.take(job, News::of_event::<Here>(event));
        }
        assert_eq!((*tasks.get::<Here>().unwrap().live, *tasks.get::<Anywhere>().unwrap().live), (50, 7));
        tasks.take(1, News::of_report::<Here>(60));
        tasks.ended(1, &Outcome::Failed("the disk is full".into()));
        let view = tasks.get::<Here>().unwrap();
        assert_eq!(
            (view.report.as_deref(), view.trouble(), view.under_way()),
            (Some(&60), Some("the disk is full"), false)
        );
        // The next one takes its place; what was found before stays until it has its own.
        tasks.begin(3, Add::<true>(1).into());
        let view = tasks.get::<Here>().unwrap();
        assert_eq!(
            (view.job, *view.live, view.report.as_deref(), view.last_report.as_deref()),
            (3, 0, None, Some(&60))
        );
        assert!(view.under_way());
    }

    #[test]
    fn what_was_found_of_a_world_goes_with_it() {
        let mut tasks = Tasks::default();
        for (job, report) in [(1, 5), (2, 6)] {
            let task: AnyTask = if job == 1 { Add::<true>(0).into() } else { Add::<false>(0).into() };
            tasks.begin(job, task);
            tasks.take(job, News::of_report::<Here>(report));
        }
        tasks.ended(2, &Outcome::Done(String::new()));
        tasks.forget_world();
        assert_eq!(tasks.get::<Anywhere>().unwrap().last_report.as_deref(), Some(&6));
        assert!(tasks.get::<Here>().is_some_and(|view| view.last_report.is_none() && view.under_way()));
        tasks.ended(1, &Outcome::Cancelled);
        tasks.forget_world();
        assert!(tasks.get::<Here>().is_none());
    }
}
