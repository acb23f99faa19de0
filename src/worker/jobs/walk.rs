//! The images of a walk on their way to the gallery, and posteriors of images from outside once more.

use super::sink::{Sink, opened_of, world_of};
use crate::error::Result;
use crate::oracle::classify::Classified;
use crate::oracle::walk::WalkPoint;
use crate::oracle::world::Settings;
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::interactive::gone;
use crate::worker::protocol::JobId;
use crate::worker::shared::Control;
use crate::worker::walk::Walked;

/// A walk's images take the place of those from outside, the 50/50 point between its neighbours.
pub fn send(
    (channels, desk, id, control): (&Channels, &Desk, JobId, &Control),
    walked: &Walked,
    settings: &Settings,
) -> Result<String> {
    let (opened, interactive) = (opened_of(desk)?, &desk.interactive);
    let (world, walk) = (&opened.world, walked.within(&opened.info.weights_sha256)?);
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
