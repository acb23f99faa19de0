//! Images that take the place of those from outside: what was read, mapped in and entered into the ledger; the images of a walk;
//! and posteriors of those on show once more.

use std::ops::ControlFlow;

use super::context::JobContext;
use crate::data::{Dataset, Input, sha256};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::classify::ExternalImages;
use crate::oracle::pictures::{Reading, summary};
use crate::oracle::walk::WalkPoint;
use crate::oracle::world::Settings;
use crate::provenance::{Badge, Made};
use crate::worker::interactive::{Brought, gone};
use crate::worker::protocol::Event;
use crate::worker::walk::Walked;

/// Why images are not shown that were read again.
const OTHERS: &str = "other images were opened meanwhile";
/// Pictures that get a line each in the ledger; more get one together.
const LINES: usize = 8;
/// Digits of a hash behind a name.
const SHORT: usize = 8;

/// Computes the posteriors of what was read and shows the images; a sentence about them.
pub fn classify(cx: &JobContext<'_>, reading: Reading, settings: &Settings) -> Result<String> {
    let (reading, how) = reading.settled(None)?;
    let mut sink = cx.sink();
    // What is opened meanwhile is opened above this job, out of its sink.
    let mut events = |progress: Progress| {
        let flow = sink.emit(progress);
        if cx.others_were_opened() { ControlFlow::Break(()) } else { flow }
    };
    let lines = lines(&reading);
    let images = match cx.opened()?.world.classify(reading, how, &mut events) {
        Ok(_) | Err(Error::Cancelled) if cx.others_were_opened() && !cx.is_stopped() => return Ok(OTHERS.into()),
        images => images?,
    };
    let how = images.dequantisation.map(|how| how.to_string()).unwrap_or_default();
    let sentence = cx.show(images, settings)?;
    for Line { name, done, sha256 } in lines {
        let provenance = cx.opened()?.info.provenance(Badge::Exact, settings);
        let provenance = provenance.with("picture", done).with("pixels SHA-256", sha256);
        let provenance = provenance.with("8-bit pixels dequantised by", &how);
        let made = Made { what: format!("posterior of {name}"), place: None, provenance };
        cx.channels.send(Event::Made(Box::new(made)));
    }
    Ok(sentence)
}

/// What the ledger says of a picture, or of all together.
struct Line {
    /// Its name, and the beginning of its hash: any number of pictures are called alike.
    name: String,
    /// What was done to it.
    done: String,
    /// SHA-256 of its pixels in the world's shape.
    sha256: String,
}

/// The lines about the pictures that were read; none about datasets.
fn lines(Reading { input, pictures, .. }: &Reading) -> Vec<Line> {
    let Input::Pixels(Dataset { name, ids, shape, pixels, .. }) = input else { return Vec::new() };
    let line = |name: &str, pixels: &[u8], done: String| {
        let sha256 = sha256(pixels);
        let begins = sha256.get(..SHORT).unwrap_or(&sha256);
        Line { name: format!("{name} ({begins})"), done, sha256 }
    };
    if pictures.len() > LINES {
        return summary(pictures).map(|done| line(name, pixels, done)).into_iter().collect();
    }
    let each = ids.iter().zip(pictures).zip(pixels.chunks(shape.dims().max(1)));
    each.map(|((id, picture), pixels)| line(id, pixels, picture.treatment.describe())).collect()
}

/// A walk's images take the place of those from outside, the 50/50 point between its neighbours.
pub fn send(cx: &JobContext<'_>, walked: &Walked, settings: &Settings) -> Result<String> {
    let opened = cx.opened()?;
    let (world, walk) = (&opened.world, walked.within(&opened.info.world_id())?);
    let numbered = walk.points.iter().enumerate();
    let mut points: Vec<(String, &WalkPoint)> =
        numbered.map(|(i, point)| (format!("Point {i} at {:.4}", point.position), point)).collect();
    let middle = &walk.boundary.point;
    let name = if walk.boundary.reached { "50/50" } else { "Closest to 50/50" };
    let place = points.partition_point(|(_, point)| point.position <= middle.position);
    points.insert(place, (format!("{name} at {:.4}", middle.position), middle));
    let x: Vec<f32> = points.iter().flat_map(|(_, point)| point.x.iter().copied()).collect();
    let [a, b] = [walk.start, walk.target].map(|class| &world.class_names()[class]);
    let ids = points.into_iter().map(|(id, _)| id).collect();
    let images = ExternalImages::new(format!("walk from {a} to {b}"), ids, None, x);
    images.scores(world, &mut cx.sink())?;
    cx.show(images, settings)
}

/// Posteriors of the images from outside once more, from the statistics that are kept.
pub fn rate_again(cx: &JobContext<'_>, settings: &Settings) -> Result<String> {
    let (world, interactive) = (&cx.opened()?.world, cx.interactive);
    let open = interactive.external().ok_or_else(gone)?;
    open.images.prepare(world, settings, &mut cx.sink())?;
    // Others may have come while these were scored.
    if !interactive.holds(open.set) {
        return Ok(OTHERS.into());
    }
    let brought = Brought { again: cx.channels.shared.opener(), ..Brought::by(cx.entry.id) };
    interactive.show_external(cx.channels, world, (open.images, open.verdicts), settings, brought)
}
