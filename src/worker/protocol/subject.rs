//! What the window looks at.

use crate::oracle::world::SampleSpec;
use crate::task::ExternalImage;

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
    /// An image from outside, of the set that an `Event::External` brought.
    External(ExternalImage),
}

impl Subject {
    /// Whether it can be had while this set of images from outside is open: samples always can.
    pub fn is_open(&self, set: Option<u64>) -> bool {
        match self {
            Self::Sample { .. } => true,
            Self::External(image) => set == Some(image.set),
        }
    }
}
