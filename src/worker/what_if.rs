//! What if: pinned images side by side, the grid between them, and the latent of an image under every class.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::protocol::{Subject, Tile};
use super::walk::tile;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Evidence;
use crate::oracle::walk::grid::{Grid, GridSpec, grid};
use crate::oracle::walk::{WalkPoint, Way};
use crate::oracle::what_if::{Compared, Comparison, UnderClass};
use crate::oracle::world::{Settings, World};
use crate::task::{Done, OpenOracle, Task, TaskContext};
use crate::units::ClassId;

/// Pinned images at most.
pub const MOST_PINS: usize = 8;
/// Images that are mapped in a few seconds: a job of more waits its turn.
const SOON: usize = 64;

/// An image that stays what it was when it was pinned, whatever becomes of the knobs and of images from
/// outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    /// What it is called.
    pub name: String,
    /// The image.
    pub subject: Subject,
    /// The knobs it was pinned at.
    pub settings: Settings,
    /// Its world-space values, CHW, once the engine has looked at it.
    pub x: Option<Arc<Vec<f32>>>,
}

impl Pin {
    /// The image, and the class it was drawn from where it is a sample that is drawn now.
    fn image<E: Send + Sync + 'static>(&self, cx: &TaskContext<'_, E>) -> Result<(Arc<Vec<f32>>, Option<ClassId>)> {
        let world = cx.oracle()?.world;
        match (&self.x, &self.subject) {
            (Some(x), _) => Ok((x.clone(), None)),
            (None, Subject::Sample { spec, index }) => {
                let drawn = world.sample_indices(spec, &self.settings, &[*index])?.into_iter().next();
                let sample = drawn.ok_or_else(|| Error::input("no such sample"))?;
                Ok((Arc::new(sample.x), Some(sample.source)))
            }
            (None, Subject::External(image)) => Ok((Arc::new(cx.external_image(*image, world.shape().dims())?), None)),
        }
    }
}

/// Looks at pinned images side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareImages {
    /// The images; the others are held against the first.
    pub pins: Vec<Pin>,
    /// Classes the evidence is for and against; by the decisions where none are named.
    pub pair: Option<(ClassId, ClassId)>,
    /// The world's knobs.
    pub settings: Settings,
}

/// Pinned images side by side.
#[derive(Debug, Clone)]
pub struct SideBySide {
    /// Classes the evidence is for and against; none in a world of one class.
    pub pair: Option<(ClassId, ClassId)>,
    /// The images, in order.
    pub images: Vec<Beside>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Beside {
    /// World-space values, CHW.
    pub x: Arc<Vec<f32>>,
    /// Its picture and exact posterior; label and source are the decision.
    pub tile: Tile,
    /// Its evidence for the first class against the second.
    pub evidence: Option<Evidence>,
    /// That of the first image less its own; none of the first image.
    pub difference: Option<Evidence>,
}

impl Task for CompareImages {
    type Event = ();
    type Live = ();
    type Report = SideBySide;

    fn title(&self) -> String {
        "Pinned images side by side".into()
    }

    fn is_short(&self) -> bool {
        true
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<SideBySide>> {
        let world = cx.oracle()?.world;
        let images = self.pins.iter().map(|pin| Ok(pin.image(cx)?.0)).collect::<Result<Vec<_>>>()?;
        let all: Vec<&[f32]> = images.iter().map(|x| x.as_slice()).collect();
        let Comparison { pair, images: found } = world.compare(&all, self.pair, &self.settings, cx)?;
        let beside = images.into_iter().zip(found).enumerate().map(|(i, (x, found))| {
            let Compared { posterior, evidence, difference } = found;
            Beside { tile: tile(world, i, &x, posterior), x, evidence, difference }
        });
        let report = SideBySide { pair, images: beside.collect() };
        let sentence = format!("{} images", report.images.len());
        Ok(Done::new(report, sentence))
    }
}

/// Makes the grid between two or four pinned images.
#[derive(Debug, Clone, PartialEq)]
pub struct GridBetween {
    /// The ends of a row; or upper left, upper right, lower left, lower right.
    pub corners: Vec<Pin>,
    /// Images in a row.
    pub columns: usize,
    /// Rows; between two images there is one.
    pub rows: usize,
    /// The world's knobs.
    pub settings: Settings,
}

/// What a grid follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridFacts {
    /// What it is straight in.
    pub way: Way,
    /// How far rounding x to 32 bits moved a posterior at most, where that is known.
    pub rounding: Option<f64>,
}

impl Task for GridBetween {
    /// The next image, row by row.
    type Event = Tile;
    type Live = Vec<Tile>;
    type Report = GridFacts;

    fn title(&self) -> String {
        format!("Grid between {} images", self.corners.len())
    }

    fn is_short(&self) -> bool {
        self.columns * self.rows <= SOON
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn fold(&self, live: &mut Vec<Tile>, tile: &Tile) {
        // A job that begins again, on another device, makes its images again.
        live.truncate(tile.index);
        live.push(tile.clone());
    }

    fn run(&self, cx: &mut TaskContext<'_, Tile>) -> Result<Done<GridFacts>> {
        let world = cx.oracle()?.world;
        let corner = |pin: &Pin| Ok(pin.image(cx)?.0.to_vec());
        let corners = self.corners.iter().map(corner).collect::<Result<Vec<_>>>()?;
        let spec = GridSpec { corners, columns: self.columns, rows: self.rows };
        let total = spec.size().iter().product();
        let Grid { way, points, rounding, .. } =
            grid(world, &spec, &self.settings, &mut Told { cx, world, done: 0, total })?;
        Ok(Done::new(GridFacts { way, rounding }, format!("{} images", points.len())))
    }
}

/// Maps the latent of an image under every class of the open oracle.
#[derive(Debug, Clone, PartialEq)]
pub struct UnderEveryClass {
    /// The image.
    pub image: Pin,
    /// The world's knobs.
    pub settings: Settings,
}

impl Task for UnderEveryClass {
    /// The image under the next class, which is its label and source.
    type Event = Tile;
    type Live = Vec<Tile>;
    /// The class under which its latent was found: the one it was drawn from, or its decision.
    type Report = ClassId;

    fn title(&self) -> String {
        format!("{} under every class", self.image.name)
    }

    fn is_short(&self) -> bool {
        self.settings.prior.classes() <= SOON
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn fold(&self, live: &mut Vec<Tile>, tile: &Tile) {
        // A job that begins again, on another device, makes its images again.
        live.truncate(tile.index);
        live.push(tile.clone());
    }

    fn run(&self, cx: &mut TaskContext<'_, Tile>) -> Result<Done<ClassId>> {
        let OpenOracle { world, .. } = cx.oracle()?;
        let (x, drawn) = self.image.image(cx)?;
        let decided = || {
            let scores = world.score(&x, &mut silent())?;
            let posterior = self.settings.of_class(scores.log_likelihoods(0, self.settings.tau));
            Ok::<_, Error>(posterior.decision)
        };
        let of = drawn.map_or_else(decided, Ok)?;
        let total = world.class_names().len();
        world.under_every_class(&x, of, &self.settings, &mut Told { cx, world, done: 0, total })?;
        Ok(Done::new(of, format!("{total} classes, from {}", world.class_names()[of])))
    }
}

/// Tells images as they are made.
struct Told<'a, 'b> {
    cx: &'a mut TaskContext<'b, Tile>,
    world: &'a World,
    done: usize,
    total: usize,
}

impl Told<'_, '_> {
    fn tell(&mut self, tile: Tile) -> ControlFlow<()> {
        self.done += 1;
        self.cx.event(tile);
        self.cx.emit(Progress { done: self.done, total: self.total })
    }
}

impl Events<WalkPoint> for Told<'_, '_> {
    fn emit(&mut self, WalkPoint { x, posterior, .. }: WalkPoint) -> ControlFlow<()> {
        let tile = tile(self.world, self.done, &x, posterior);
        self.tell(tile)
    }
}

impl Events<UnderClass> for Told<'_, '_> {
    fn emit(&mut self, UnderClass { class, x, posterior }: UnderClass) -> ControlFlow<()> {
        let tile = Tile { source: class, label: class, ..tile(self.world, class, &x, posterior) };
        self.tell(tile)
    }
}
