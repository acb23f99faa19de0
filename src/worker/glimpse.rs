//! Glimpses of the bundled worlds: a few samples of each and its Bayes error at τ = 1, by the world
//! itself. They need no device but the CPU, and have a thread of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::Sender;

use super::priority::lower_priority;
use super::protocol::{Event, Glimpse};
use super::shared::Shared;
use crate::bayes::{GaussianClasses, Spec, bayes_error};
use crate::data::contact_sheet;
use crate::device::{DeviceChoice, choose};
use crate::error::{Result, caught};
use crate::events::silent;
use crate::flow::Precision;
use crate::oracle::folder;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::{Seed, Tau};

/// Samples of a glimpse, and how many lie side by side.
const SAMPLES: usize = 12;
const COLUMNS: usize = 6;
/// Screen pixels along a side of a sample's pixel.
const SCALE: usize = 2;
/// Relative half width of the Bayes error: a card has four digits.
const TOLERANCE: f64 = 1e-4;

/// Looks at a world on the CPU.
///
/// # Errors
/// When it cannot be opened, or the device fails.
pub fn glimpse(oracle: &str) -> Result<Glimpse> {
    let chosen = choose(DeviceChoice::Cpu)?;
    let world = folder::open(oracle, &chosen.device, Precision::F32, SAMPLES)?.world;
    let settings = Settings::default_for(world.class_names().len());
    let indices: Vec<usize> = (0..SAMPLES).collect();
    let samples = world.sample_indices(&SampleSpec::new(SAMPLES, Seed(0)), &settings, &indices)?;
    let levels = world.flow().pixels();
    let pixels: Vec<u8> = samples.iter().flat_map(|sample| levels.picture(&sample.x)).collect();
    let (shape, picture) = contact_sheet(world.shape(), &pixels, COLUMNS, SCALE)?;
    let error = world.flow().shared_base().map(|base| {
        let classes = GaussianClasses::of_base(base, &Prior::uniform(base.classes()))?;
        bayes_error(&classes, Tau::ONE, &Spec { tolerance: TOLERANCE, ..Spec::default() }, &mut silent())
    });
    Ok(Glimpse { shape, picture, bayes_error: error.transpose()? })
}

/// Looks at these worlds one after the other, on a thread that ends with the last.
pub(super) fn start(shared: &Arc<Shared>, worlds: Vec<&'static str>, events: &Sender<Event>) {
    let (shared, sender) = (shared.clone(), events.clone());
    let look = move || {
        lower_priority();
        for world in worlds {
            if shared.stopping.load(Ordering::Relaxed) {
                return;
            }
            let outcome = match caught(|| glimpse(world)) {
                Ok(Ok(glimpse)) => Ok(Arc::new(glimpse)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(panic) => Err(format!("looking at it failed inside: {panic}")),
            };
            // A vanished reader is no error.
            let _ = sender.send(Event::Glimpsed { world, outcome });
            (shared.wake)();
        }
    };
    if let Err(error) = std::thread::Builder::new().name("glimpses".into()).spawn(look) {
        let _ = events.try_send(Event::Failed(format!("the system gave no thread to look at worlds on: {error}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::library;

    #[test]
    fn a_glimpse_has_the_samples_and_the_bayes_error_of_the_world() {
        for name in library::names() {
            let info = library::find(name).unwrap().info().unwrap();
            let found = glimpse(name).unwrap();
            let (image, columns) = (info.architecture.shape(), COLUMNS.min(SAMPLES));
            assert!(found.shape.width >= SCALE * columns * image.width && found.shape.channels == image.channels);
            assert_eq!(found.picture.len(), found.shape.dims());
            let cut = image.width * SCALE;
            let row = |column: usize| {
                let left = column * (found.shape.width - cut) / (columns - 1);
                let middle = image.height;
                found.picture[middle * found.shape.width..][left..left + cut].to_vec()
            };
            assert!((1..columns).any(|column| row(column) != row(0)), "{name}: all samples look alike");
            let error = found.bayes_error.unwrap().figure;
            assert!(error.value > 0.0 && error.value < 0.5 && error.relative_half_width() <= TOLERANCE, "{name}");
        }
    }
}
