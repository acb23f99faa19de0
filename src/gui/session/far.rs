//! What is known of the connection to another machine's device.

use std::time::{Duration, Instant};

use crate::device::{DeviceChoice, Latency};
use crate::worker::protocol::{JobId, Outcome, RemoteNews};

/// The next of several tries to connect again.
#[derive(Debug, Clone, PartialEq)]
pub struct Trying {
    /// Why the connection is gone, or why the last try failed.
    pub reason: String,
    /// Which try it is, from 1.
    pub attempt: usize,
    /// Of how many.
    pub of: usize,
    pub at: Instant,
}

/// A connection that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub job: JobId,
    pub device: DeviceChoice,
    pub outcome: Option<Outcome>,
}

/// The connection to another machine's device.
#[derive(Debug, Default)]
pub struct Connection {
    /// Its recent small round trips.
    pub latency: Latency,
    /// Whether it is gone and tried again.
    pub trying: Option<Trying>,
    /// The last one that was asked for.
    pub asked: Option<Asked>,
}

impl Connection {
    /// Takes news in; a line for the log, if they are worth one.
    pub fn take(&mut self, news: RemoteNews, now: Instant) -> Option<String> {
        match news {
            RemoteNews::Latency(latency) => {
                (self.latency, self.trying) = (latency, None);
                None
            }
            RemoteNews::Trying { address, reason, attempt, of, wait } => {
                let line = format!("{address}: try {attempt} of {of} in {} s ({reason})", wait.as_secs());
                self.latency = Latency::default();
                self.trying = Some(Trying { reason, attempt, of, at: now + wait });
                Some(line)
            }
        }
    }

    /// Something computes from now on: the same device again, or another one.
    pub fn settled(&mut self) {
        (self.latency, self.trying) = (Latency::default(), None);
    }

    pub fn asks(&mut self, job: JobId, device: DeviceChoice) {
        let far = matches!(device, DeviceChoice::Remote(_));
        self.asked = far.then_some(Asked { job, device, outcome: None });
    }

    pub fn ended(&mut self, job: JobId, outcome: &Outcome) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.job == job) {
            asked.outcome = Some(outcome.clone());
        }
    }

    /// The device that is being connected now, if one is.
    pub fn connecting(&self) -> Option<DeviceChoice> {
        self.asked.as_ref().filter(|asked| asked.outcome.is_none()).map(|asked| asked.device)
    }
}

impl Trying {
    /// In words, at a time.
    pub fn words(&self, now: Instant) -> String {
        let left = self.at.saturating_duration_since(now);
        let when = match left.as_secs_f64().ceil() as u64 {
            0 => "now".to_owned(),
            secs => format!("in {secs} s"),
        };
        format!("Connecting again {when}, try {} of {}.", self.attempt, self.of)
    }

    /// How often the words change.
    pub const TICK: Duration = Duration::from_millis(500);
}
