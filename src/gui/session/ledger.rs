//! The exactness ledger: everything this session gave away or worked out, with its badge and the chain behind it.

use std::path::Path;

use crate::provenance::{Made, Provenance};

/// What was made, oldest first.
#[derive(Debug, Default)]
pub struct Ledger(Vec<Made>);

impl Ledger {
    /// One more line. The same file written again takes the place of the old one.
    pub fn add(&mut self, made: Made) {
        self.0.retain(|old| old.place.is_none() || old.place != made.place || old.what != made.what);
        self.0.push(made);
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Made> + ExactSizeIterator {
        self.0.iter()
    }
}

/// A line about something with the provenance of a figure.
pub fn of_figure(what: impl Into<String>, place: Option<&Path>, said: &[(String, String)]) -> Made {
    let place = place.map(|place| place.display().to_string());
    Made { what: what.into(), place, provenance: Provenance::of_lines(said) }
}
