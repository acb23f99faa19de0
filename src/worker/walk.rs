//! What is said about walks to the boundary between two classes.

use super::protocol::{Subject, Tile};
use crate::data::ImageShape;
use crate::oracle::walk::Way;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::ClassId;

/// Asks for a walk.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkRequest {
    /// The image it begins at.
    pub from: Subject,
    /// Where it goes.
    pub to: Destination,
    /// Steps between the first point and the last; of a walk along a gradient, at most.
    pub steps: usize,
    /// Which samples the destination is one of, where the first image is none.
    pub samples: SampleSpec,
    /// The world's knobs.
    pub settings: Settings,
}

/// Where a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Another sample, by its running number under the same seed.
    Sample(usize),
    /// A class.
    Class(ClassId),
}

/// A point of a walk.
#[derive(Debug, Clone)]
pub struct WalkDot {
    /// Share of a straight way; along a gradient the way so far in units of x, root mean square over dimensions.
    pub position: f64,
    /// Its picture and the exact posterior of its float tensor; `index` counts points, label and source are the decision.
    pub tile: Tile,
}

/// How a walk went.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// What it followed.
    pub way: Way,
    /// The class the start is decided as.
    pub start: ClassId,
    /// The class it goes to.
    pub target: ClassId,
    /// The 50/50 point, or the one that comes closest.
    pub middle: WalkDot,
    /// |p_a − p_b|/(p_a + p_b) there.
    pub imbalance: f64,
    /// A class more probable there than both, and its probability.
    pub third: Option<(ClassId, f64)>,
    /// Why 50/50 was not reached; nothing where it was.
    pub why_not: Option<String>,
    /// How far rounding x to 32 bits moved a posterior at most, where that is known.
    pub rounding: Option<f64>,
}

/// News of a walk under way.
#[derive(Debug, Clone)]
pub enum WalkNews {
    /// The next point.
    Point {
        /// Shape of its picture.
        shape: ImageShape,
        /// It.
        dot: WalkDot,
    },
    /// It is over.
    Arrived(Box<Arrival>),
}
