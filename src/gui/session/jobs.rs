//! Jobs as the window knows them.

use std::time::{Duration, Instant};

use crate::events::Progress;
use crate::worker::protocol::{JobId, Outcome};

/// Finished jobs leave the list after this long; failed ones stay.
const LINGER: Duration = Duration::from_secs(12);

/// Where a job stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum State {
    #[default]
    Queued,
    Running,
    /// Held by the user.
    Paused,
    Ended(Outcome),
}

/// One job.
#[derive(Debug, Clone, Default)]
pub struct JobView {
    pub id: JobId,
    pub title: String,
    pub state: State,
    pub progress: Option<Progress>,
    /// A word about the present step.
    pub note: String,
    /// Whether it is to stop.
    pub stopping: bool,
    /// The job that it waits for.
    pub behind: Option<JobId>,
    /// Progress at a moment since which it ran without a pause.
    baseline: Option<(Instant, usize)>,
    /// What the job itself says is left of it, and when it said so.
    told: Option<(Instant, Option<Duration>)>,
    begun: bool,
    ended: Option<Instant>,
}

impl JobView {
    /// Share done, 0 to 1.
    pub fn fraction(&self) -> Option<f32> {
        let Progress { done, total } = self.progress?;
        (total > 0).then(|| done as f32 / total as f32)
    }

    /// Seconds left: what the job says itself, else at the pace since the last pause.
    pub fn eta_secs(&self, now: Instant) -> Option<f64> {
        if self.state != State::Running || self.behind.is_some() {
            return None;
        }
        if let Some((at, left)) = self.told {
            return left.map(|left| left.saturating_sub(now.duration_since(at)).as_secs_f64());
        }
        let Progress { done, total } = self.progress?;
        let (since, before) = self.baseline?;
        let finished = done.checked_sub(before).filter(|&finished| finished > 0)?;
        let elapsed = now.duration_since(since).as_secs_f64();
        Some(elapsed * total.saturating_sub(done) as f64 / finished as f64)
    }

    pub fn ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns whether it ended badly.
    pub fn failed(&self) -> bool {
        matches!(self.state, State::Ended(Outcome::Failed(_)))
    }

    /// 1 while it matters, falling to 0 as a finished job leaves the list.
    pub fn presence(&self, now: Instant) -> f32 {
        match self.ended {
            Some(ended) if !self.failed() => {
                let left = LINGER.saturating_sub(now.duration_since(ended)).as_secs_f32();
                (left / 3.0).min(1.0)
            }
            _ => 1.0,
        }
    }
}

/// The list of jobs, oldest first.
#[derive(Debug, Default)]
pub struct Jobs(Vec<JobView>);

impl Jobs {
    pub fn iter(&self) -> impl Iterator<Item = &JobView> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut JobView> {
        self.0.iter_mut()
    }

    /// Those not over.
    pub fn active(&self) -> impl Iterator<Item = &JobView> {
        self.0.iter().filter(|job| !job.ended())
    }

    pub fn add(&mut self, id: JobId, title: String) {
        self.0.push(JobView { id, title, ..JobView::default() });
    }

    pub fn get(&self, id: JobId) -> Option<&JobView> {
        self.0.iter().find(|job| job.id == id)
    }

    fn get_mut(&mut self, id: JobId) -> Option<&mut JobView> {
        self.0.iter_mut().find(|job| job.id == id)
    }

    pub fn started(&mut self, id: JobId) {
        let Some(job) = self.get_mut(id) else { return };
        (job.begun, job.behind) = (true, None);
        if job.state == State::Queued {
            job.state = State::Running;
        }
    }

    /// A job waits for another, or for none any more. That time counts as a pause.
    pub fn waits(&mut self, id: JobId, behind: Option<JobId>) {
        if let Some(job) = self.get_mut(id).filter(|job| !job.ended()) {
            (job.behind, job.baseline, job.told) = (behind, None, None);
        }
    }

    /// What a job waits for, in words; `None` where it does not wait.
    pub fn waiting(&self, job: &JobView) -> Option<String> {
        let before = job.behind.and_then(|id| self.get(id)).filter(|before| !before.ended());
        match (&job.state, before) {
            (State::Queued | State::Running, Some(before)) => {
                let held = if before.state == State::Paused { ", which is paused" } else { "" };
                Some(format!("waiting for {}{held}", before.title))
            }
            (State::Queued, None) => Some("waiting".into()),
            _ => None,
        }
    }

    /// A job says how long it will take.
    pub fn left(&mut self, id: JobId, left: Option<Duration>, now: Instant) {
        if let Some(job) = self.get_mut(id) {
            job.told = Some((now, left));
        }
    }

    pub fn progressed(&mut self, id: JobId, progress: Progress, note: String, now: Instant) {
        let Some(job) = self.get_mut(id) else { return };
        if job.state == State::Queued {
            job.state = State::Running;
        }
        // Something else is counted from now on.
        let other = job.progress.is_some_and(|before| before.total != progress.total);
        if other || job.baseline.is_none_or(|(_, before)| before > progress.done) {
            job.baseline = Some((now, progress.done));
        }
        job.progress = Some(progress);
        job.note = note;
    }

    pub fn ended(&mut self, id: JobId, outcome: Outcome, now: Instant) {
        if let Some(job) = self.get_mut(id) {
            job.state = State::Ended(outcome);
            job.ended = Some(now);
        }
    }

    pub fn set_paused(&mut self, id: JobId, paused: bool) {
        if let Some(job) = self.get_mut(id).filter(|job| !job.ended()) {
            job.state = match (paused, job.begun) {
                (true, _) => State::Paused,
                (false, true) => State::Running,
                (false, false) => State::Queued,
            };
            (job.baseline, job.told) = (None, None);
        }
    }

    /// Drops what has faded away. Whether something is still fading.
    pub fn tidy(&mut self, now: Instant) -> bool {
        self.0.retain(|job| job.presence(now) > 0.0);
        self.0.iter().any(|job| job.ended() && !job.failed())
    }

    /// Drops all that are over.
    pub fn clear_ended(&mut self) {
        self.0.retain(|job| !job.ended());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_says_for_whom_and_that_time_does_not_count() {
        let mut jobs = Jobs::default();
        jobs.add(1, "Experiment scaling-quick".into());
        jobs.add(2, "Judge 1 model".into());
        let waiting = |jobs: &Jobs, id| jobs.waiting(jobs.get(id).unwrap());
        assert_eq!(waiting(&jobs, 2).as_deref(), Some("waiting"));
        jobs.started(1);
        jobs.waits(2, Some(1));
        let said = [None, Some("waiting for Experiment scaling-quick".to_owned())];
        assert_eq!([1, 2].map(|id| waiting(&jobs, id)), said);
        jobs.set_paused(1, true);
        assert!(waiting(&jobs, 2).unwrap().ends_with(", which is paused"));
        jobs.set_paused(1, false);
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        jobs.progressed(1, Progress { done: 10, total: 100 }, String::new(), at(0));
        // It is carried out above the first one, which waits meanwhile.
        jobs.waits(1, Some(2));
        jobs.started(2);
        let said = [Some("waiting for Judge 1 model".to_owned()), None];
        assert_eq!([1, 2].map(|id| waiting(&jobs, id)), said);
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(500)), None);
        jobs.ended(2, Outcome::Done(String::new()), at(900));
        jobs.waits(1, None);
        jobs.progressed(1, Progress { done: 10, total: 100 }, String::new(), at(1000));
        jobs.progressed(1, Progress { done: 20, total: 100 }, String::new(), at(1010));
        assert_eq!((waiting(&jobs, 1), jobs.get(1).unwrap().eta_secs(at(1010))), (None, Some(80.0)));
    }

    #[test]
    fn time_left_ignores_pauses_and_failures_stay() {
        let mut jobs = Jobs::default();
        jobs.add(1, "a".into());
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        jobs.started(1);
        jobs.progressed(1, Progress { done: 10, total: 100 }, String::new(), at(0));
        jobs.progressed(1, Progress { done: 20, total: 100 }, String::new(), at(10));
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(10)), Some(80.0));
        jobs.set_paused(1, true);
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(500)), None);
        jobs.set_paused(1, false);
        jobs.progressed(1, Progress { done: 20, total: 100 }, String::new(), at(1000));
        jobs.progressed(1, Progress { done: 60, total: 100 }, String::new(), at(1020));
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(1020)), Some(20.0));
        // Images are counted from now on, no steps: 64 of them say nothing of the pace yet.
        jobs.progressed(1, Progress { done: 64, total: 8000 }, String::new(), at(1020));
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(1020)), None);
        jobs.progressed(1, Progress { done: 4032, total: 8000 }, String::new(), at(1030));
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(1030)), Some(10.0));
        // What the job says itself counts for more, and passes.
        jobs.left(1, Some(Duration::from_secs(90)), at(1020));
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(1050)), Some(60.0));
        jobs.left(1, None, at(1050));
        assert_eq!(jobs.get(1).unwrap().eta_secs(at(1050)), None);
        jobs.ended(1, Outcome::Done("fine".into()), at(1030));
        jobs.add(2, "b".into());
        jobs.ended(2, Outcome::Failed("x.png: broken".into()), at(1030));
        assert!(jobs.tidy(at(1035)));
        assert!(!jobs.tidy(at(2000)));
        assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [2]);
    }
}
