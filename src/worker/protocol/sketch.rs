//! Images that are drawn in the window.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::subject::Subject;
use crate::data::ImageShape;
use crate::flow::Evidence;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::Settings;
use crate::units::ClassId;

/// An image that is drawn on. It is kept as it was when it was chosen, whatever becomes of the knobs
/// and of images from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground {
    /// Tells it from those chosen before.
    pub id: u64,
    /// The image.
    pub subject: Subject,
    /// The knobs at which it was chosen.
    pub settings: Settings,
}

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    /// Running number of its states; every stroke has several.
    pub revision: u64,
    /// What it is drawn on; an empty image is all in `levels`.
    pub ground: Option<Ground>,
    /// 8-bit picture, CHW: ground and ink.
    pub levels: Vec<u8>,
    /// Pixels that ink covers, HW. The others of a ground stay the float values they were.
    pub inked: Vec<bool>,
}

/// Asks for the posterior of a drawing. A newer one takes its place.
#[derive(Debug, Clone, PartialEq)]
pub struct SketchRequest {
    /// Running number of requests; the answer carries it.
    pub generation: u64,
    /// The drawing.
    pub sketch: Arc<Sketch>,
    /// The world's knobs.
    pub settings: Settings,
    /// Whether the evidence for the decision against the runner-up is wanted.
    pub evidence: bool,
    /// When the pen had moved: what the latency counts from.
    pub moved: Instant,
}

/// What is known of a drawing.
#[derive(Debug, Clone)]
pub struct SketchAnswer {
    /// The request this answers.
    pub request: SketchRequest,
    /// Shape of the pictures.
    pub shape: ImageShape,
    /// 8-bit picture of the ground without ink, CHW; none of an empty image.
    pub ground: Option<Arc<Vec<u8>>>,
    /// The exact posterior of the float image.
    pub posterior: Posterior,
    /// The two classes the evidence is for and against, and its map, if it was wanted and there is one.
    pub evidence: Option<([ClassId; 2], Evidence)>,
    /// How long it took to compute.
    pub took: Duration,
}
