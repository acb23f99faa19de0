//! A task that the program does not know, carried out by its worker.

use bayescope::error::{Error, Result};
use bayescope::events::Progress;
use bayescope::provenance::{Badge, Made, Provenance};
use bayescope::task::{Done, Task, TaskContext};
use bayescope::worker::protocol::{Event, Job, JobId, Outcome};

use super::Bench;

/// Counts to a number.
#[derive(Debug, PartialEq)]
struct Count {
    to: usize,
    /// What goes wrong when all is counted.
    trouble: Option<&'static str>,
}

impl Task for Count {
    type Event = usize;
    type Live = ();
    type Report = String;

    fn title(&self) -> String {
        format!("Count to {}", self.to)
    }

    fn run(&self, cx: &mut TaskContext<'_, usize>) -> Result<Done<String>> {
        let oracle = cx.oracle()?.name.to_owned();
        for i in 1..=self.to {
            cx.event(i);
            if cx.stage(Progress { done: i, total: self.to }, "counting").is_break() {
                return Err(Error::Cancelled);
            }
        }
        let made = Made { what: "a number".into(), place: None, provenance: Provenance::new(Badge::Exact) };
        let last = self.trouble.map_or(Ok(()), |why| Err(Error::input(why)));
        Ok(Done::new(format!("{} beside {oracle}", self.to), "counted").made([made]).but(last))
    }
}

/// Events and reports that were told of a job.
fn told(bench: &Bench, job: JobId) -> (Vec<usize>, Vec<String>) {
    let news = bench.seen.iter().filter_map(|event| match event {
        Event::Task { id, news } if *id == job => Some(news),
        _ => None,
    });
    let events = news.clone().filter_map(|news| news.event::<Count>().copied()).collect();
    (events, news.filter_map(|news| news.report::<Count>()).map(|report| report.to_string()).collect())
}

#[test]
fn events_report_and_ledger_come_before_the_end_whatever_goes_wrong_last() {
    let mut bench = Bench::new();
    for trouble in [None, Some("the disk is full")] {
        bench.seen.clear();
        let job = bench.worker.submit(Job::task(Count { to: 3, trouble }));
        let outcome = bench.outcome(job);
        assert_eq!(told(&bench, job), (vec![1, 2, 3], vec!["3 beside mnist".to_owned()]));
        assert!(bench.seen.iter().any(|event| matches!(event, Event::Made(made) if made.what == "a number")));
        let noted = |event: &Event| matches!(event, Event::JobProgress { note, .. } if note == "counting: 3 of 3");
        assert!(bench.seen.iter().any(noted), "the last step is told, however soon it comes");
        match trouble {
            None => assert_eq!(outcome, Outcome::Done("counted".into())),
            Some(why) => assert!(matches!(&outcome, Outcome::Failed(said) if said.contains(why)), "{outcome:?}"),
        }
    }
}

#[test]
fn a_cancelled_task_has_no_report() {
    let mut bench = Bench::new();
    let job = bench.worker.submit(Job::task(Count { to: usize::MAX, trouble: None }));
    bench.until(|event| matches!(event, Event::Task { .. }).then_some(()));
    bench.worker.cancel(job);
    assert_eq!(bench.outcome(job), Outcome::Cancelled);
    let (events, reports) = told(&bench, job);
    assert!(!events.is_empty() && events.iter().enumerate().all(|(i, event)| *event == i + 1) && reports.is_empty());
}
