//! What the window looks at.

use crate::oracle::world::SampleSpec;

/// What the inspector shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A sample of the world.
    Sample {
        /// Which samples it is one of.
        spec: SampleSpec,
        /// Its running number.
        index: usize,
    },
    /// An image from outside, by its running number in the last `Event::External`.
    External(usize),
}
