//! Faults of a device: what its driver reported, how burn's messages about them read, and notes
//! about what was done. This file knows no device.
#![cfg_attr(not(feature = "wgpu"), allow(dead_code, reason = "without adapters nobody reports a fault"))]

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sentences kept for a listener, at most.
const NOTES: usize = 64;

thread_local! {
    static NOTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Notes what was done about a fault: in the log, and in this thread's [`notes`].
pub fn note(text: String) {
    tracing::warn!("{text}");
    take_over(vec![text]);
}

/// Has this thread's [`notes`] hold those of another one, too.
pub fn take_over(notes: Vec<String>) {
    NOTED.with_borrow_mut(|noted| {
        let room = NOTES.saturating_sub(noted.len());
        noted.extend(notes.into_iter().take(room));
    });
}

/// Takes what was noted on this thread since the last call.
pub fn notes() -> Vec<String> {
    NOTED.take()
}

/// Driver errors not yet delivered to a reader, and what they mean for the device.
#[derive(Debug, Default)]
pub struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Why there is no device any more.
    lost: Option<String>,
    refused: Option<Refusal>,
    /// Whether the driver has refused memory before: what was to be written is missing.
    spoilt: bool,
}

/// A call that the driver did not carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// For want of memory.
    Memory(String),
    /// For another reason.
    Other(String),
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver had no memory.
    pub fn out_of_memory(&self, why: String) {
        let mut state = self.state();
        state.refused = Some(Refusal::Memory(why));
        state.spoilt = true;
    }

    /// An array was too large for a buffer: its content is missing, and nothing else.
    pub fn too_large(&self, why: String) {
        self.state().refused = Some(Refusal::Memory(why));
    }

    /// The driver refused a call. Of several refusals a want of memory is the cause of the others.
    pub fn broke(&self, why: String) {
        self.state().refused.get_or_insert(Refusal::Other(why));
    }

    /// The device is gone; the first reason stays.
    pub fn lose(&self, why: &str) {
        self.state().lost.get_or_insert_with(|| why.to_owned());
    }

    /// Why there is no device any more.
    pub fn lost(&self) -> Option<String> {
        self.state().lost.clone()
    }

    /// What was refused since the last question.
    pub fn take_refusal(&self) -> Option<Refusal> {
        self.state().refused.take()
    }

    /// Whether something may be missing that was to be written.
    pub fn spoilt(&self) -> bool {
        self.state().spoilt
    }
}

/// Burn's word for a device that its driver has given up.
pub const POISONED: &str = "The device is poisoned";

/// Whether burn's message says that the device is gone.
pub fn is_loss(said: &str) -> bool {
    said.contains("poisoned")
}

/// Whether burn's message says that it refused an allocation.
pub fn is_memory(said: &str) -> bool {
    ["can't allocate buffer of size", "out of device memory", "Can't allocate"].iter().any(|words| said.contains(words))
}

/// The cause in one line: without headings and traces of the stack.
pub fn cause(said: &str) -> String {
    const HEADINGS: [&str; 6] = [
        POISONED,
        "An error happened during execution",
        "failed to materialize bytes",
        "Caused by",
        "No backtrace available",
        "Backtrace",
    ];
    // Some of burn's errors quote others.
    let said = said.replace("\\n", "\n");
    let below = |line: &str| {
        HEADINGS.iter().fold(line.to_owned(), |line, heading| match line.rsplit_once(*heading) {
            Some((_, rest)) => rest.to_owned(),
            None => line,
        })
    };
    let first = said.lines().map(below).find(|line| line.chars().any(char::is_alphanumeric));
    first.unwrap_or_else(|| said.clone()).trim_matches([':', ' ', '"', ')', '(']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_burn_says_is_told_in_one_line() {
        let said =
            "An error happened during execution\nCaused by:\n  can't allocate buffer of size: 4194304\n   0: a::frame";
        assert_eq!(cause(said), "can't allocate buffer of size: 4194304");
        assert!(is_memory(said) && !is_loss(said));
        let said = "Data(StorageAccess(Read(\"The device is poisoned\\nCaused by:\\n  Destroyed: \\nBacktrace:\\nNo backtrace\")))";
        assert_eq!(cause(said), "Destroyed");
        let said = "The device is poisoned\nCaused by:\n  The device is poisoned: Unknown: the GPU was reset";
        assert_eq!(cause(said), "Unknown: the GPU was reset");
        assert!(is_loss(said) && !is_memory(said));
    }

    #[test]
    fn notes_are_heard_once() {
        note("fewer at once".into());
        take_over(vec!["on another thread".into()]);
        assert_eq!(notes(), ["fewer at once", "on another thread"]);
        assert!(notes().is_empty());
    }
}
