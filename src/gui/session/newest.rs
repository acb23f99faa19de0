//! A value that follows knobs: the newest there is, and whether it is of now.

use std::time::{Duration, Instant};

/// An old value is greyed after this long: shorter gaps would only flicker.
const PATIENCE: Duration = Duration::from_millis(150);

/// A value and whether it is of now.
#[derive(Debug, Clone)]
pub struct Newest<T> {
    shown: Option<(u64, T)>,
    wanted: u64,
    /// Answers before this are of another world.
    least: u64,
    stale_since: Option<Instant>,
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self { shown: None, wanted: 0, least: 0, stale_since: None }
    }
}

impl<T> Newest<T> {
    /// Another one was asked for.
    pub fn expect(&mut self, generation: u64, now: Instant) {
        self.wanted = generation;
        self.stale_since.get_or_insert(now);
    }

    /// Takes a value in. Older ones than that on show are dropped.
    pub fn take(&mut self, generation: u64, value: T) {
        if generation >= self.least && self.shown.as_ref().is_none_or(|(shown, _)| *shown <= generation) {
            self.shown = Some((generation, value));
            if generation == self.wanted {
                self.stale_since = None;
            }
        }
    }

    /// As nothing known, for another world.
    pub fn of_another_world(&self) -> Self {
        Self { least: self.wanted + 1, ..Self::default() }
    }

    /// The newest there is.
    pub fn get(&self) -> Option<&T> {
        self.shown.as_ref().map(|(_, value)| value)
    }

    /// Returns whether it is the one that was asked for.
    pub fn current(&self) -> bool {
        self.shown.as_ref().is_some_and(|(shown, _)| *shown == self.wanted)
    }

    /// The one that was asked for, once it is there.
    pub fn fresh(&self) -> Option<&T> {
        self.get().filter(|_| self.current())
    }

    /// When to look again whether it is out of date long enough to say so.
    pub fn stale_in(&self, now: Instant) -> Option<Duration> {
        let since = self.stale_since.filter(|_| !self.current())?;
        PATIENCE.checked_sub(now.duration_since(since)).map(|left| left + Duration::from_millis(5))
    }

    /// Returns whether it has been out of date long enough to say so.
    pub fn stale(&self, now: Instant) -> bool {
        !self.current() && self.stale_since.is_some_and(|since| now.duration_since(since) > PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_value_stays_and_is_called_old_only_after_a_while() {
        let mut newest = Newest::default();
        let start = Instant::now();
        newest.expect(1, start);
        newest.take(1, 'a');
        assert!(newest.current() && !newest.stale(start + Duration::from_secs(9)));
        newest.expect(2, start);
        newest.expect(3, start + PATIENCE);
        assert_eq!((newest.get(), newest.stale(start)), (Some(&'a'), false));
        assert!(newest.stale(start + 2 * PATIENCE));
        newest.take(2, 'b');
        newest.take(1, 'a');
        assert_eq!((newest.get(), newest.current()), (Some(&'b'), false));
        newest.take(3, 'c');
        assert!(newest.current() && !newest.stale(start + 9 * PATIENCE));
    }
}
