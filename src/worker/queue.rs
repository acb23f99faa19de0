//! Jobs that wait, and those under way, one above the other. The uppermost computes. A short job is
//! carried out above a long one, and any job above one that is held: nobody waits for what the user
//! has stopped. A job that cannot go on where it stands gives its place back and waits again; it
//! begins at its last checkpoint then.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::protocol::{Job, JobId};
use super::shared::Control;

/// Jobs that may be under way at once: each has its frames on the stack of the thread.
const DEPTH: usize = 4;

/// A job as it was submitted, and the world it is of (`OracleInfo::world_id`), where that matters.
pub type Submitted = (Job, Option<String>);

/// A job, and what the user wants of it.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: JobId,
    pub job: Job,
    pub control: Arc<Control>,
    /// The world it is of (`OracleInfo::world_id`); any may be open where that is not said.
    pub world: Option<String>,
    /// [`Job::is_short`] when it was submitted.
    short: bool,
}

impl Entry {
    pub fn new(id: JobId, job: Job, control: Arc<Control>) -> Self {
        Self { short: job.is_short(), id, job, control, world: None }
    }

    /// The same of a world, or of any where none is named.
    pub fn within(self, world: Option<String>) -> Self {
        Self { world, ..self }
    }

    pub fn is_cancelled(&self) -> bool {
        self.control.cancelled.load(Ordering::Relaxed)
    }

    pub fn is_held(&self) -> bool {
        self.control.paused.load(Ordering::Relaxed)
    }

    fn opens_an_oracle(&self) -> bool {
        matches!(self.job, Job::OpenOracle(_))
    }
}

/// Jobs that wait, and those under way. Owned by the worker's thread.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: RefCell<VecDeque<Entry>>,
    under_way: RefCell<Vec<Entry>>,
    /// For each job that waits the one it waits for, as it was told last.
    told: RefCell<BTreeMap<JobId, JobId>>,
}

impl Queue {
    /// Takes in a job. A choice of device goes first, after those that wait: the others may fail before it, and the last
    /// choice holds.
    pub fn hold(&self, entry: Entry) {
        let mut waiting = self.waiting.borrow_mut();
        let chooses = |entry: &Entry| matches!(entry.job, Job::UseDevice(_));
        let place = match chooses(&entry) {
            true => waiting.iter().rposition(chooses).map_or(0, |last| last + 1),
            false => waiting.len(),
        };
        waiting.insert(place, entry);
    }

    /// A job that had begun waits again, before all others.
    pub fn set_aside(&self, entry: Entry) {
        entry.control.taken.store(false, Ordering::Release);
        self.waiting.borrow_mut().push_front(entry);
    }

    /// Whether a choice of device waits.
    pub fn switches(&self) -> bool {
        self.waiting.borrow().iter().any(|entry| matches!(entry.job, Job::UseDevice(_)))
    }

    /// Whether a job waits that may begin now.
    pub fn is_ready(&self) -> bool {
        next(&self.waiting.borrow(), &self.under_way.borrow()).is_some()
    }

    /// Takes the next job that may begin now.
    pub fn next(&self) -> Option<Entry> {
        let mut waiting = self.waiting.borrow_mut();
        let at = next(&waiting, &self.under_way.borrow())?;
        waiting.remove(at)
    }

    /// Takes all jobs that wait.
    pub fn drain(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.waiting.borrow_mut()).into()
    }

    /// A job begins, above those under way.
    pub fn begin(&self, entry: Entry) {
        self.under_way.borrow_mut().push(entry);
    }

    /// The uppermost job is no longer under way.
    pub fn end(&self) {
        self.under_way.borrow_mut().pop();
    }

    /// Whether another oracle may be opened under the jobs that are under way.
    pub fn lets_oracles_open(&self) -> bool {
        self.under_way.borrow().iter().all(|entry| entry.job.lets_oracles_open())
    }

    /// Whether the uppermost job, which is held, stands in the way: of one below it that is to go
    /// on, of a choice of device, or of any other where no more fit above.
    pub fn gives_way(&self) -> bool {
        let (waiting, under_way) = (self.waiting.borrow(), self.under_way.borrow());
        let Some((top, below)) = under_way.split_last() else { return false };
        let full = under_way.len() >= DEPTH;
        let stuck = |entry: &Entry| !entry.is_held() && (full || matches!(entry.job, Job::UseDevice(_)));
        top.is_held() && (below.iter().any(|entry| !entry.is_held()) || waiting.iter().any(stuck))
    }

    /// The thread fell. Returns the uppermost job, which is over; those below it wait again.
    pub fn fell(&self) -> Option<JobId> {
        let mut under_way = std::mem::take(&mut *self.under_way.borrow_mut());
        let fallen = under_way.pop()?;
        under_way.into_iter().rev().for_each(|entry| self.set_aside(entry));
        Some(fallen.id)
    }

    /// What has changed since the last call: a job, and the one it waits for now, if any.
    pub fn news(&self) -> Vec<(JobId, Option<JobId>)> {
        let now = waits(&self.waiting.borrow(), &self.under_way.borrow());
        let mut told = self.told.borrow_mut();
        if *told == now {
            return Vec::new();
        }
        let freed = told.keys().filter(|id| !now.contains_key(id)).map(|id| (*id, None));
        let changed = now.iter().filter(|(id, on)| told.get(id) != Some(on)).map(|(id, on)| (*id, Some(*on)));
        let news = freed.chain(changed).collect();
        *told = now;
        news
    }
}

/// The place of the next job that may begin.
fn next(waiting: &VecDeque<Entry>, under_way: &[Entry]) -> Option<usize> {
    let lets = under_way.iter().all(|entry| entry.job.lets_oracles_open());
    let (mut opening, mut needed, mut later) = (false, false, None);
    for (i, entry) in waiting.iter().enumerate() {
        if entry.is_cancelled() {
            // It need only be told.
            return Some(i);
        }
        let (opens, needs) = (entry.opens_an_oracle(), entry.job.needs_open_oracle());
        // Jobs of one oracle and the opening of another keep their order.
        let in_order = !(opens && (needed || !lets) || needs && opening);
        (opening, needed) = (opening || opens, needed || needs);
        if !in_order || entry.is_held() {
            continue;
        }
        let (now, at_all) = match under_way.last() {
            None => (entry.short, true),
            Some(_) if under_way.len() >= DEPTH || matches!(entry.job, Job::UseDevice(_)) => (false, false),
            Some(top) if top.is_held() => (entry.short, true),
            Some(top) => (entry.short && !top.short, false),
        };
        if now {
            return Some(i);
        }
        later = later.or(at_all.then_some(i));
    }
    later
}

/// For each job that cannot go on the one it waits for.
fn waits(waiting: &VecDeque<Entry>, under_way: &[Entry]) -> BTreeMap<JobId, JobId> {
    let mut waits = BTreeMap::new();
    let mut needed = None;
    let top = under_way.last().map(|entry| entry.id);
    for entry in waiting.iter().filter(|entry| !entry.is_cancelled()) {
        let before = needed.filter(|_| entry.opens_an_oracle()).or(top);
        waits.extend(before.map(|before| (entry.id, before)));
        needed = needed.or(entry.job.needs_open_oracle().then_some(entry.id));
    }
    if let Some((top, below)) = under_way.split_last() {
        waits.extend(below.iter().map(|entry| (entry.id, top.id)));
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceChoice;
    use crate::error::Result;
    use crate::task::{Done, Task, TaskContext};

    /// A task that is never run.
    #[derive(Debug, PartialEq)]
    struct Work {
        short: bool,
        of_world: bool,
    }

    impl Task for Work {
        type Event = ();
        type Live = ();
        type Report = ();

        fn title(&self) -> String {
            "Work".into()
        }

        fn is_short(&self) -> bool {
            self.short
        }

        fn is_of_open_oracle(&self) -> bool {
            self.of_world
        }

        fn lets_oracles_open(&self) -> bool {
            !self.of_world
        }

        fn run(&self, _: &mut TaskContext<'_, ()>) -> Result<Done<()>> {
            Ok(Done::new((), ""))
        }
    }

    fn work(short: bool) -> Job {
        Job::task(Work { short, of_world: false })
    }

    fn queue(jobs: Vec<Job>) -> (Queue, Vec<Arc<Control>>) {
        let queue = Queue::default();
        let controls: Vec<Arc<Control>> = jobs.iter().map(|_| Arc::default()).collect();
        for (id, (job, control)) in jobs.into_iter().zip(&controls).enumerate() {
            queue.hold(Entry::new(id as JobId, job, control.clone()));
        }
        (queue, controls)
    }

    /// The next job begins.
    fn begun(queue: &Queue) -> Option<JobId> {
        let entry = queue.next()?;
        queue.begin(entry.clone());
        Some(entry.id)
    }

    #[test]
    fn short_work_overtakes_and_who_waits_is_told_for_whom() {
        let (queue, _) = queue(vec![work(false), work(false), work(true), work(true)]);
        let long = queue.waiting.borrow_mut().pop_front().unwrap();
        queue.begin(long);
        assert_eq!(queue.news(), [(1, Some(0)), (2, Some(0)), (3, Some(0))]);
        // One short job above the long one; the next after it.
        assert_eq!((begun(&queue), begun(&queue)), (Some(2), None));
        assert_eq!(queue.news(), [(2, None), (0, Some(2)), (1, Some(2)), (3, Some(2))]);
        queue.end();
        assert_eq!((begun(&queue), begun(&queue)), (Some(3), None));
        queue.end();
        queue.end();
        assert_eq!((begun(&queue), queue.news()), (Some(1), vec![(0, None), (1, None), (3, None)]));
    }

    #[test]
    fn a_held_job_gives_its_place_back() {
        let (queue, controls) = queue(vec![work(false), work(false), work(false)]);
        let hold = |id: usize, held| controls[id].paused.store(held, Ordering::Relaxed);
        assert_eq!((begun(&queue), begun(&queue)), (Some(0), None));
        hold(0, true);
        hold(1, true);
        // One that is held does not begin.
        assert_eq!((begun(&queue), queue.gives_way()), (Some(2), false));
        hold(0, false);
        assert_eq!(
            (queue.gives_way(), queue.news().contains(&(0, Some(2)))),
            (false, true),
            "the upper one is at work"
        );
        hold(2, true);
        assert!(queue.gives_way());
        let upper = queue.under_way.borrow_mut().pop().unwrap();
        controls[2].take();
        queue.set_aside(upper);
        assert!(controls[2].take(), "it can begin once more");
        assert_eq!(begun(&queue), None);
        hold(0, true);
        hold(2, false);
        assert_eq!(begun(&queue), Some(2));
    }

    #[test]
    fn an_oracle_opens_under_what_does_not_need_the_one_before_and_a_device_waits() {
        let open = || Job::OpenOracle("mnist".into());
        let of_world = || Job::task(Work { short: false, of_world: true });
        for (under, opens) in [(work(false), true), (of_world(), false)] {
            let (queue, controls) = queue(vec![under, open()]);
            let first = queue.waiting.borrow_mut().pop_front().unwrap();
            queue.begin(first);
            assert_eq!(queue.is_ready(), opens);
            queue.hold(Entry::new(9, Job::UseDevice(DeviceChoice::Cpu), Arc::default()));
            assert_eq!((queue.is_ready(), queue.gives_way(), queue.switches()), (opens, false, true));
            controls[0].paused.store(true, Ordering::Relaxed);
            assert!(queue.gives_way());
        }
        // Of two choices of device the last holds, and both come before what waited.
        let (choices, _) = queue(vec![work(false)]);
        for id in [7, 8] {
            choices.hold(Entry::new(id, Job::UseDevice(DeviceChoice::Cpu), Arc::default()));
        }
        for next in [7, 8, 0] {
            assert_eq!(begun(&choices), Some(next));
            choices.end();
        }
        // What is to be found of the open oracle is found before another opens, and what was asked of another after.
        let (queue, _) = queue(vec![of_world(), open(), of_world(), work(true)]);
        assert_eq!(begun(&queue), Some(3));
        queue.end();
        for next in 0..3 {
            assert_eq!(begun(&queue), Some(next));
            queue.end();
        }
    }

    #[test]
    fn of_those_under_way_the_uppermost_alone_falls() {
        let (queue, controls) = queue(vec![work(false), work(true), work(false)]);
        let long = queue.waiting.borrow_mut().pop_front().unwrap();
        queue.begin(long);
        assert_eq!(begun(&queue), Some(1));
        controls[0].take();
        assert_eq!((queue.fell(), queue.fell()), (Some(1), None));
        assert_eq!((begun(&queue), controls[0].take()), (Some(0), true));
        // One that is cancelled is told so at once.
        controls[2].cancelled.store(true, Ordering::Relaxed);
        assert_eq!(queue.next().map(|entry| entry.id), Some(2));
    }
}
