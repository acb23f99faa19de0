//! The last messages, with time and level.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::worker::protocol::JobId;

/// How severe an entry of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Goes as planned.
    Info,
    /// Should be looked at.
    Warning,
    /// Did not work.
    Error,
}

impl Level {
    /// As the log shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something the user should notice at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub level: Level,
    pub text: String,
    /// The job that it says the failure of: a panel may say the same.
    pub failed: Option<JobId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Seconds since midnight, UTC.
    pub second_of_day: u64,
    pub level: Level,
    pub text: String,
}

impl Entry {
    /// hh:mm:ss.
    pub fn time(&self) -> String {
        let s = self.second_of_day;
        format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    }
}

/// Messages that are kept.
const DEPTH: usize = 2000;

/// The last messages.
#[derive(Debug, Default)]
pub struct Log(VecDeque<Entry>);

impl Log {
    pub fn add(&mut self, level: Level, text: impl Into<String>) {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.0.len() == DEPTH {
            self.0.pop_front();
        }
        self.0.push_back(Entry { second_of_day: seconds % 86_400, level, text: text.into() });
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> + ExactSizeIterator {
        self.0.iter()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn to_text(&self) -> String {
        let line = |entry: &Entry| format!("{} UTC  {:<7}  {}\n", entry.time(), entry.level.name(), entry.text);
        self.0.iter().map(line).collect()
    }
}
