//! Room that is used again: fresh memory costs a page fault for every 4 KiB, as long as the work of
//! a small pass.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Rooms nobody is using.
pub struct Pool<R>(Mutex<Vec<R>>);

impl<R> Pool<R> {
    /// A room that fits, or a new one. Those too small are let go.
    pub fn take(&self, fits: impl Fn(&R) -> bool, new: impl FnOnce() -> R) -> R {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.filter(fits).unwrap_or_else(new)
    }

    /// Gives a room back.
    pub fn give(&self, room: R) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(room);
    }
}

impl<R> Default for Pool<R> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<R> fmt::Debug for Pool<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}
