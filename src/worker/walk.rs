//! Walks to the boundary between two classes: the task, its events, and the walk written to a file.

mod history;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use super::protocol::{Subject, Tile};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::oracle::posterior::Posterior;
use crate::oracle::provenance::{Machine, write_provenance};
use crate::oracle::walk::{self, Goal, TOLERANCE, Walk, WalkPoint, WalkSpec, Way};
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::task::{Done, ExternalImage, OpenOracle, Task, TaskContext};
use crate::units::ClassId;

pub use history::{Mark, WalkHistory};

/// Walks from an image to the boundary between two classes of the open oracle.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkToBoundary {
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

/// A walk that has come to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Walked {
    /// The walk.
    pub walk: Walk,
    /// The knobs it was walked at.
    pub settings: Settings,
    /// Its world (`OracleInfo::world_id`).
    pub world: String,
}

/// Writes a walk to a `.npz` file or a `.png` contact sheet.
#[derive(Debug, Clone, PartialEq)]
pub struct SaveWalk {
    /// The walk.
    pub walked: Arc<Walked>,
    /// Where to.
    pub path: PathBuf,
}

/// Where a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Another sample, by its running number under the same seed.
    Sample(usize),
    /// An image from outside.
    External(ExternalImage),
    /// A class.
    Class(ClassId),
}

/// A point of a walk.
#[derive(Debug, Clone)]
pub struct WalkDot {
    /// Share of a straight way; along a gradient the way so far in units of x, root mean square
    /// over dimensions.
    pub position: f64,
    /// Its picture and the exact posterior of its float tensor; `index` counts points, label and
    /// source are the decision.
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

impl Task for WalkToBoundary {
    type Event = WalkNews;
    type Live = WalkHistory;
    type Report = Walked;

    fn title(&self) -> String {
        "Walk to the boundary".into()
    }

    fn is_short(&self) -> bool {
        true
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn fold(&self, live: &mut WalkHistory, news: &WalkNews) {
        live.take(news);
    }

    fn run(&self, cx: &mut TaskContext<'_, WalkNews>) -> Result<Done<Walked>> {
        let OpenOracle { info, world, .. } = cx.oracle()?;
        let spec = self.spec(world, cx)?;
        let mut told = Told { cx, world, total: self.steps + 1, points: 0 };
        let walk = walk::walk(world, &spec, &self.settings, &mut told)?;
        let arrival = arrival(world, &walk);
        let [a, b] = [walk.start, walk.target].map(|class| &world.class_names()[class]);
        let sentence = match &arrival.why_not {
            None => format!("{} points from {a} to {b}, 50/50 at {:.4}", walk.points.len(), arrival.middle.position),
            Some(why) => format!("{} points from {a} to {b}, 50/50 not reached: {why}", walk.points.len()),
        };
        cx.event(WalkNews::Arrived(Box::new(arrival)));
        let (settings, world) = (self.settings.clone(), info.world_id());
        Ok(Done::new(Walked { walk, settings, world }, sentence))
    }
}

impl WalkToBoundary {
    fn spec(&self, world: &World, cx: &TaskContext<'_, WalkNews>) -> Result<WalkSpec> {
        let (from, samples) = match &self.from {
            Subject::Sample { spec, index } => (walk::Subject::Sample(*index), spec),
            Subject::External(image) => {
                let x = cx.external_image(*image, world.shape().dims())?;
                (walk::Subject::Image(x), &self.samples)
            }
        };
        let to = match self.to {
            Destination::Sample(index) => Goal::Subject(walk::Subject::Sample(index)),
            Destination::External(image) => {
                Goal::Subject(walk::Subject::Image(cx.external_image(image, world.shape().dims())?))
            }
            Destination::Class(class) => Goal::Class(class),
        };
        let SampleSpec { class, seed, products, .. } = *samples;
        Ok(WalkSpec { from, to, steps: self.steps, class, seed, products, tolerance: TOLERANCE })
    }
}

impl Walked {
    /// The walk, if it is one in this world.
    ///
    /// # Errors
    /// When another oracle is open.
    pub fn within(&self, world: &str) -> Result<&Walk> {
        let here = self.world == world;
        here.then_some(&self.walk).ok_or_else(|| Error::input("that walk is no longer open: walk again"))
    }
}

impl Task for SaveWalk {
    type Event = ();
    type Live = ();
    type Report = ();

    fn title(&self) -> String {
        format!("Save the walk to {}", self.path.display())
    }

    fn is_short(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<()>> {
        let (path, OpenOracle { info, world, .. }) = (&self.path, cx.oracle()?);
        let walk = self.walked.within(&info.world_id())?;
        walk::save(world, walk, path)?;
        let (provenance, machine) = (info.of_walk(&self.walked.settings, path), Machine::with(&cx.chosen.report.used));
        let made = write_provenance(path, "points of a walk", provenance, &machine, &mut silent())?;
        let images = walk.points.len() + 1;
        let sentence = format!("{images} images, the 50/50 point last, are in {}", path.display());
        Ok(Done::new((), sentence).made([made]))
    }
}

/// An image that is no sample as a tile: label and source are its decision.
pub(super) fn tile(world: &World, index: usize, x: &[f32], posterior: Posterior) -> Tile {
    let decision = posterior.decision;
    let pixels = world.flow().pixels().picture(x).into();
    Tile { index, source: decision, label: decision, pixels, posterior: Arc::new(posterior), look: None }
}

fn dot(world: &World, index: usize, position: f64, x: &[f32], posterior: Posterior) -> WalkDot {
    WalkDot { position, tile: tile(world, index, x, posterior) }
}

fn arrival(world: &World, walk: &Walk) -> Arrival {
    let boundary = &walk.boundary;
    let WalkPoint { position, x, posterior } = &boundary.point;
    Arrival {
        way: walk.way,
        start: walk.start,
        target: walk.target,
        middle: dot(world, walk.points.len(), *position, x, posterior.clone()),
        imbalance: boundary.imbalance,
        third: boundary.third,
        why_not: boundary.why_not.clone(),
        rounding: walk.rounding,
    }
}

/// Tells points as they are found.
struct Told<'a, 'b> {
    cx: &'a mut TaskContext<'b, WalkNews>,
    world: &'a World,
    total: usize,
    points: usize,
}

impl Events<WalkPoint> for Told<'_, '_> {
    fn emit(&mut self, WalkPoint { position, x, posterior }: WalkPoint) -> ControlFlow<()> {
        let dot = dot(self.world, self.points, position, &x, posterior);
        self.points += 1;
        self.cx.event(WalkNews::Point { shape: self.world.shape(), dot });
        let progress = Progress { done: self.points, total: self.total };
        self.cx.progress(progress, format!("{} of at most {} points", self.points, self.total));
        self.cx.check()
    }
}
