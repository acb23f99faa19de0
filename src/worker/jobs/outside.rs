//! Images that take the place of those from outside: what was read, mapped in and entered into the ledger; the images of a walk;
//! and posteriors of those on show once more.

use super::context::JobContext;
use crate::error::Result;
use crate::oracle::classify::ExternalImages;
use crate::oracle::pictures::{Picture, Reading, summary};
use crate::oracle::walk::WalkPoint;
use crate::oracle::world::Settings;
use crate::provenance::{Badge, Made};
use crate::worker::interactive::gone;
use crate::worker::protocol::Event;
use crate::worker::walk::Walked;

/// Pictures that get a line each in the ledger; more get one together.
const LINES: usize = 8;

/// Computes the posteriors of what was read and shows the images; a sentence about them.
pub fn classify(cx: &JobContext<'_>, reading: Reading, settings: &Settings) -> Result<String> {
    let (reading, how) = reading.settled(None)?;
    let images = cx.opened()?.world.classify(reading, how, &mut cx.sink())?;
    let done = lines(&images.name, &images.ids, &images.pictures);
    let how = images.dequantisation.map(|how| how.to_string()).unwrap_or_default();
    let sentence = cx.show(images, settings)?;
    for (name, what) in done {
        let provenance = cx.opened()?.info.provenance(Badge::Exact, settings);
        let provenance = provenance.with("picture", what).with("8-bit pixels dequantised by", &how);
        let made = Made { what: format!("posterior of {name}"), place: None, provenance };
        cx.channels.send(Event::Made(Box::new(made)));
    }
    Ok(sentence)
}

/// What was done, with the name of the picture or of all together.
fn lines(name: &str, ids: &[String], pictures: &[Picture]) -> Vec<(String, String)> {
    if pictures.len() > LINES {
        return summary(pictures).map(|done| (name.to_owned(), done)).into_iter().collect();
    }
    ids.iter().zip(pictures).map(|(id, picture)| (id.clone(), picture.treatment.describe())).collect()
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
        return Ok("other images were opened meanwhile".into());
    }
    interactive.show_external((cx.channels, cx.entry.id), world, (open.images, open.verdicts), settings, false)
}
