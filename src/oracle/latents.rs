//! The images that given latents become, on their way to a file.

use std::path::Path;

use crate::data::{Input, read_npz, write_npz_in_pieces};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::oracle::export::drawn_anew;
use crate::oracle::numbering::renumber;
use crate::oracle::rounding::Rounding;
use crate::oracle::world::{Sample, Settings, World, to_world_batch};
use crate::units::ClassId;

/// What a file of latents holds, at the end of a refusal.
const WANTED: &str =
    "latents are an array x of floats [N, C, H, W], standard normal noise, and an array y with the class of each";

/// Latents as a world decodes them.
struct Latents {
    /// Standard normal noise, NCHW.
    noise: Vec<f32>,
    /// The class of each.
    classes: Vec<ClassId>,
}

impl Latents {
    /// Those of a `.npz` file.
    fn read(path: &Path, world: &World) -> Result<Self> {
        let bad = |cause: String| Error::file(path, cause);
        let Input::World(batch) = read_npz(path)? else { return Err(bad(format!("holds pixels; {WANTED}"))) };
        let (shape, known) = (world.shape(), world.class_names().len());
        if batch.shape != shape {
            return Err(bad(format!("array x: latents of {}, and this world's images are {shape}", batch.shape)));
        }
        let labels = batch.y.ok_or_else(|| bad(format!("array y: missing; {WANTED}")))?;
        let class = |(i, &label): (usize, &i64)| {
            let class = usize::try_from(label).ok().filter(|class| *class < known);
            class.ok_or_else(|| {
                bad(format!("array y: image {i} has class {label}, and this world {known} classes, counted from 0"))
            })
        };
        let classes = labels.iter().enumerate().map(class).collect::<Result<_>>()?;
        Ok(Self { noise: batch.x, classes })
    }
}

/// Writes the images that the latents of a `.npz` file become to a `.npz` file, as
/// [`save_samples`](crate::oracle::export::save_samples) writes samples: array `x` of the latents is standard normal
/// noise (NCHW), `y` the class of each.
///
/// # Errors
/// Names the file of latents where these are not of this world, have no classes, or leave the finite numbers; when `path`
/// is no `.npz`, τ is 0, or as `save_samples`.
pub fn save_latents(
    world: &World,
    latents: &Path,
    settings: &Settings,
    path: &Path,
    events: &mut dyn Events<Progress>,
) -> Result<Rounding> {
    if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz")) {
        return Err(Error::input(format!("{}: images of given latents are written as .npz", path.display())));
    }
    settings.check_density().map_err(|why| Error::input(format!("{}: {why}", path.display())))?;
    let Latents { noise, classes } = Latents::read(latents, world)?;
    let (shape, total) = (world.shape(), classes.len());
    let of_file = |error: Error, first: usize| match renumber(error, first) {
        error if error.is_numeric() => Error::file(latents, error.to_string()),
        error => error,
    };
    let mut saved = Rounding::default();
    write_npz_in_pieces(path, shape, total, |sink| {
        let pieces = noise.chunks(world.batch() * shape.dims()).zip(classes.chunks(world.batch()));
        for (noise, classes) in pieces {
            let made = world.decode(noise, classes, settings, &mut silent());
            let made = made.map_err(|error| of_file(error, saved.images))?;
            let images = made.into_iter().zip(classes).enumerate();
            let sample = |(i, ((x, posterior), &label))| Sample { index: i, source: label, label, x, posterior };
            let samples: Vec<Sample> = images.map(sample).collect();
            sink(&to_world_batch(shape, world.class_names().len(), &samples))?;
            let drifts = world.rounding(&samples, settings).map_err(|error| of_file(error, saved.images))?;
            saved.add(&drifts);
            events.report(Progress { done: saved.images, total })?;
        }
        Ok(())
    })
    .map_err(drawn_anew)?;
    Ok(saved)
}
