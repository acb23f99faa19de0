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
    /// Progress at a moment since which it ran without a pause.
    baseline: Option<(Instant, usize)>,
    begun: bool,
    ended: Option<Instant>,
}

impl JobView {
    /// Share done, 0 to 1.
    pub fn fraction(&self) -> Option<f32> {
        let Progress { done, total } = self.progress?;
        (total > 0).then(|| done as f32 / total as f32)
    }

    /// Seconds left at the pace since the last pause.
    pub fn eta_secs(&self, now: Instant) -> Option<f64> {
        if self.state != State::Running {
            return None;
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
        job.begun = true;
        if job.state == State::Queued {
            job.state = State::Running;
        }
    }

    pub fn progressed(&mut self, id: JobId, progress: Progress, note: String, now: Instant) {
        let Some(job) = self.get_mut(id) else { return };
        if job.state == State::Queued {
            job.state = State::Running;
        }
        if job.baseline.is_none_or(|(_, before)| before > progress.done) {
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
            job.baseline = None;
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
        jobs.ended(1, Outcome::Done("fine".into()), at(1030));
        jobs.add(2, "b".into());
        jobs.ended(2, Outcome::Failed("x.png: broken".into()), at(1030));
        assert!(jobs.tidy(at(1035)));
        assert!(!jobs.tidy(at(2000)));
        assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [2]);
    }
}
