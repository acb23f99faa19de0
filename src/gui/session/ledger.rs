//! The exactness ledger: everything made in this session, with its badge and provenance.

use crate::provenance::Made;

/// What was made, oldest first.
#[derive(Debug, Default)]
pub struct Ledger(Vec<Made>);

impl Ledger {
    /// One more line. The same file written again takes the place of the old one, and so does what is in no file: a posterior that is
    /// computed at other knobs is shown in place of the one before.
    pub fn add(&mut self, made: Made) {
        self.0.retain(|old| old.place != made.place || old.what != made.what);
        self.0.push(made);
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Made> + ExactSizeIterator {
        self.0.iter()
    }
}
