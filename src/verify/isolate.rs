//! Work on a thread of its own, so that what panics or hangs there ends nothing else.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use crate::error::{Error, Result, caught};

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It failed; says why.
    Failed(String),
    /// It gave no answer in time. Its thread is left behind: a thread cannot be ended from outside.
    Silent,
}

impl Trouble {
    /// In words, where the wait was `limit`.
    pub fn told(&self, limit: Duration) -> String {
        match self {
            Self::Failed(why) => why.clone(),
            Self::Silent => format!("no answer within {:.0} s", limit.as_secs_f64()),
        }
    }
}

/// Runs `work` on another thread and waits for it no longer than `limit`.
///
/// # Errors
/// What it failed of, a panic included.
pub fn isolated<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T, Trouble> {
    let (sender, answer) = sync_channel(1);
    let begun = Builder::new().name("verify".into()).spawn(move || {
        let done = caught(work);
        // Where it took too long there is no receiver.
        let _ = sender.send(done);
    });
    begun.map_err(|error| Trouble::Failed(format!("no thread could be started: {error}")))?;
    match answer.recv_timeout(limit) {
        Ok(Ok(Ok(done))) => Ok(done),
        Ok(Ok(Err(error))) => Err(Trouble::Failed(told(&error))),
        Ok(Err(panic)) => Err(Trouble::Failed(format!("it panicked: {panic}"))),
        Err(RecvTimeoutError::Timeout) => Err(Trouble::Silent),
        Err(RecvTimeoutError::Disconnected) => Err(Trouble::Failed("its thread ended without an answer".into())),
    }
}

/// An error for a table: without the way out that it offers a user who wants the work itself done.
fn told(error: &Error) -> String {
    match error {
        Error::OutOfMemory { device, why } => format!("out of memory: {device} has not enough ({why})"),
        other => other.to_string(),
    }
}
