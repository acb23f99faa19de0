//! Walks: their points as they are found, the file, and the way to the gallery.

use crate::oracle::provenance::{Machine, keep};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::sink::{Sink, opened_of, world_of};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::oracle::classify::Classified;
use crate::oracle::posterior::Posterior;
use crate::oracle::walk::{self, Goal, TOLERANCE, Walk, WalkPoint, WalkSpec};
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::interactive::{Interactive, gone};
use crate::worker::protocol::{Event, JobId, Subject, Tile};
use crate::worker::shared::Control;
use crate::worker::walk::{Arrival, Destination, WalkDot, WalkNews, WalkRequest};

/// Walks, and keeps the walk.
pub fn set_out(
    channels: &Channels,
    desk: &Desk,
    id: JobId,
    control: &Control,
    request: &WalkRequest,
) -> Result<String> {
    let (world, interactive) = (world_of(desk)?, &desk.interactive);
    interactive.keep_walk(None);
    let spec = spec(world, interactive, request)?;
    let mut sink = Sink::new(channels, interactive, Some(world), id, control);
    let mut told = Told { sink: &mut sink, world, total: request.steps + 1, points: 0 };
    let walked = walk::walk(world, &spec, &request.settings, &mut told)?;
    let arrival = arrival(world, &walked);
    let [a, b] = [walked.start, walked.target].map(|class| &world.class_names()[class]);
    let sentence = match &arrival.why_not {
        None => format!("{} points from {a} to {b}, 50/50 at {:.4}", walked.points.len(), arrival.middle.position),
        Some(why) => format!("{} points from {a} to {b}, 50/50 not reached: {why}", walked.points.len()),
    };
    interactive.keep_walk(Some(walked));
    channels.send(Event::Walk { id, news: Box::new(WalkNews::Arrived(Box::new(arrival))) });
    Ok(sentence)
}

/// Writes the kept walk.
pub fn save(channels: &Channels, desk: &Desk, path: &Path, settings: &Settings) -> Result<String> {
    let walk = desk.interactive.walk().ok_or_else(no_walk)?;
    let opened = opened_of(desk)?;
    walk::save(&opened.world, &walk, path)?;
    let machine = Machine::with(&desk.chosen.report.used);
    let made = keep(path, "points of a walk", opened.info.of_walk(settings, path), &machine, &mut silent())?;
    channels.send(Event::Made(Box::new(made)));
    Ok(format!("{} images, the 50/50 point last, are in {}", walk.points.len() + 1, path.display()))
}

/// The kept walk's images take the place of those from outside, the 50/50 point between its neighbours.
pub fn send(channels: &Channels, desk: &Desk, id: JobId, control: &Control, settings: &Settings) -> Result<String> {
    let (world, interactive) = (world_of(desk)?, &desk.interactive);
    let walk = interactive.walk().ok_or_else(no_walk)?;
    let numbered = walk.points.iter().enumerate();
    let mut points: Vec<(String, &WalkPoint)> =
        numbered.map(|(i, point)| (format!("Point {i} at {:.4}", point.position), point)).collect();
    let middle = &walk.boundary.point;
    let name = if walk.boundary.reached { "50/50" } else { "Closest to 50/50" };
    let place = points.partition_point(|(_, point)| point.position <= middle.position);
    points.insert(place, (format!("{name} at {:.4}", middle.position), middle));
    let x: Vec<f32> = points.iter().flat_map(|(_, point)| point.x.iter().copied()).collect();
    let mut sink = Sink::new(channels, interactive, Some(world), id, control);
    let scores = world.score(&x, &mut sink)?;
    let [a, b] = [walk.start, walk.target].map(|class| &world.class_names()[class]);
    let ids = points.into_iter().map(|(id, _)| id).collect();
    let classified = Classified {
        name: format!("walk from {a} to {b}"),
        ids,
        labels: None,
        x,
        scores,
        further: Vec::new(),
        dequantisation: None,
    };
    interactive.tell(channels, world, classified.into(), settings, false)
}

/// Posteriors of the images from outside once more, from the statistics that are kept.
pub fn rate_again(
    channels: &Channels,
    desk: &Desk,
    id: JobId,
    control: &Control,
    settings: &Settings,
) -> Result<String> {
    let (world, interactive) = (world_of(desk)?, &desk.interactive);
    let mut images = interactive.external().ok_or_else(gone)?;
    images.prepare(world, settings, &mut Sink::new(channels, interactive, Some(world), id, control))?;
    // Others may have come while these were scored.
    if !interactive.holds(&images) {
        return Ok("other images were opened meanwhile".into());
    }
    interactive.tell(channels, world, images, settings, false)
}

fn no_walk() -> Error {
    Error::input("that walk is no longer open: walk again")
}

fn spec(world: &World, interactive: &Interactive, request: &WalkRequest) -> Result<WalkSpec> {
    let (from, samples) = match &request.from {
        Subject::Sample { spec, index } => (walk::Subject::Sample(*index), spec),
        Subject::External(index) => {
            let x = interactive.external_image(*index, world.shape().dims()).ok_or_else(gone)?;
            (walk::Subject::Image(x), &request.samples)
        }
    };
    let to = match request.to {
        Destination::Sample(index) => Goal::Subject(walk::Subject::Sample(index)),
        Destination::Class(class) => Goal::Class(class),
    };
    let SampleSpec { class, seed, products, .. } = *samples;
    Ok(WalkSpec { from, to, steps: request.steps, class, seed, products, tolerance: TOLERANCE })
}

fn dot(world: &World, index: usize, position: f64, x: &[f32], posterior: Posterior) -> WalkDot {
    let decision = posterior.decision;
    let pixels = world.flow().pixels().picture(x).into();
    let tile = Tile { index, source: decision, label: decision, pixels, posterior: Arc::new(posterior), look: None };
    WalkDot { position, tile }
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
    sink: &'a mut Sink<'b>,
    world: &'a World,
    total: usize,
    points: usize,
}

impl Events<WalkPoint> for Told<'_, '_> {
    fn emit(&mut self, WalkPoint { position, x, posterior }: WalkPoint) -> ControlFlow<()> {
        let dot = dot(self.world, self.points, position, &x, posterior);
        self.points += 1;
        let news = Box::new(WalkNews::Point { shape: self.world.shape(), dot });
        self.sink.channels.send(Event::Walk { id: self.sink.id, news });
        let progress = Progress { done: self.points, total: self.total };
        self.sink.progress(progress, format!("{} of at most {} points", self.points, self.total));
        self.sink.check()
    }
}
