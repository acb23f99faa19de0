//! Tasks whose type is known and whose type is not; the same told by both.

use super::*;
use crate::device::{DeviceChoice, choose};

/// Counts to a number.
#[derive(Debug, PartialEq)]
struct Count(usize);

impl Task for Count {
    type Event = usize;
    type Live = Vec<usize>;
    type Report = String;

    fn title(&self) -> String {
        format!("Count to {}", self.0)
    }

    fn fold(&self, live: &mut Vec<usize>, event: &usize) {
        live.push(*event);
    }

    fn run(&self, cx: &mut TaskContext<'_, usize>) -> Result<Done<String>> {
        for i in 1..=self.0 {
            cx.event(i);
            if cx.stage(Progress { done: i, total: self.0 }, "counting").is_break() {
                return Err(Error::Cancelled);
            }
        }
        Ok(Done::new(format!("{}", self.0), "counted"))
    }
}

/// Adds events up, and stops the task after so many steps.
struct Listener {
    task: AnyTask,
    live: Box<dyn Any + Send>,
    steps: usize,
    note: String,
}

impl TaskHost for Listener {
    fn progress(&mut self, _: Progress, note: String) -> bool {
        self.note = note;
        true
    }

    fn event(&mut self, event: News) {
        let News::Event(event) = event else { panic!("{event:?} is no event") };
        self.task.fold(self.live.as_mut(), event.as_ref());
    }

    fn check(&mut self) -> ControlFlow<()> {
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_task_of_any_type_tells_the_same_as_one_whose_type_is_known() {
    let chosen = choose(DeviceChoice::Cpu).unwrap();
    let task = AnyTask::from(Count(3));
    let mut listener = Listener { live: task.live(), task: task.clone(), steps: 9, note: String::new() };
    let done = task.run(None, &chosen, &mut listener).unwrap();
    assert_eq!(done.report.report::<Count>().unwrap().as_str(), "3");
    assert_eq!(listener.live.downcast_ref::<Vec<usize>>(), Some(&vec![1, 2, 3]));
    assert_eq!(listener.note, "counting: 3 of 3");
    listener.steps = 2;
    assert!(matches!(task.run(None, &chosen, &mut listener), Err(Error::Cancelled)));
    assert_eq!(listener.live.downcast_ref::<Vec<usize>>(), Some(&vec![1, 2, 3, 1, 2]));
}

#[test]
fn tasks_are_equal_where_type_and_spec_are() {
    #[derive(Debug, PartialEq)]
    struct Other;
    impl Task for Other {
        type Event = ();
        type Live = ();
        type Report = ();
        fn title(&self) -> String {
            String::new()
        }
        fn run(&self, _: &mut TaskContext<'_, ()>) -> Result<Done<()>> {
            Ok(Done::new((), ""))
        }
    }
    let (three, other) = (AnyTask::from(Count(3)), AnyTask::from(Other));
    assert!(three == AnyTask::from(Count(3)) && three != AnyTask::from(Count(4)) && three != other);
    assert!(three.is_like(&AnyTask::from(Count(4))) && !three.is_like(&other));
    assert!(three.get::<Count>().is_some() && three.get::<Other>().is_none());
    assert!(News::of_report::<Count>("3".into()).report::<Other>().is_none());
}
