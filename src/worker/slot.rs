//! A place for the newest value of something.

use std::sync::{Mutex, PoisonError};

/// Holds at most one value; putting replaces.
#[derive(Debug)]
pub struct Slot<T>(Mutex<Option<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Slot<T> {
    /// Replaces what is there.
    pub fn put(&self, value: T) {
        *self.lock() = Some(value);
    }

    /// Puts a value where nothing is. Returns it where something is.
    pub fn offer(&self, value: T) -> Option<T> {
        let mut slot = self.lock();
        if slot.is_some() { Some(value) } else { slot.replace(value) }
    }

    /// Replaces what is there and returns it.
    pub fn swap(&self, value: T) -> Option<T> {
        self.lock().replace(value)
    }

    /// Joins `value` to what is there, if anything is.
    pub fn merge(&self, value: T, join: impl FnOnce(T, T) -> T) {
        let mut slot = self.lock();
        *slot = Some(match slot.take() {
            Some(old) => join(old, value),
            None => value,
        });
    }

    /// Takes what is there.
    pub fn take(&self) -> Option<T> {
        self.lock().take()
    }

    /// Takes what is there, where it is as wanted.
    pub fn take_if(&self, wanted: impl FnOnce(&mut T) -> bool) -> Option<T> {
        self.lock().take_if(wanted)
    }

    /// Whether something is there that is as wanted.
    pub fn has(&self, wanted: impl FnOnce(&T) -> bool) -> bool {
        self.lock().as_ref().is_some_and(wanted)
    }

    /// Whether something is there.
    pub fn is_full(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
