//! The knobs of a world in which a Bayes error may stand in place of τ.

use super::args::{PrecisionArg, TargetArgs, WorldArgs};
use super::open::{Opened, reproducible};
use super::progress::{Bar, Refining};
use crate::bayes::sampling::{Cache, Pool, WorldDraws, tau_by_sampling};
use crate::bayes::{GaussianClasses, Spec, tau_of_error};
use crate::error::{Error, Result};
use crate::experiment::WORLD_SEED;
use crate::oracle::world::Settings;
use crate::units::Tau;

/// Whether the user's cache serves: its draws are of 32 bits, those of 64 round otherwise.
pub fn remembers(precision: PrecisionArg) -> bool {
    precision == PrecisionArg::F32 && !reproducible()
}

/// The world's knobs; τ by the Bayes error where that is asked for. `images` says by which options images are counted, such as
/// "--train and --test are the images".
///
/// # Errors
/// When a number cannot be used, no τ has this error, what limits its search does not belong to the command, or the device fails.
pub fn settings(
    (world, asked): (&WorldArgs, &TargetArgs),
    precision: PrecisionArg,
    opened: &Opened,
    images: &str,
) -> Result<Settings> {
    let settings = world.settings(opened.world.class_names().len())?;
    let Some(target) = asked.target else {
        return match asked.is_limited() {
            false => Ok(settings),
            true => Err(Error::input(format!("--samples and --budget limit the search for --target; {images}"))),
        };
    };
    let found = match opened.world.flow().shared_base() {
        Some(_) if asked.is_limited() || asked.tolerance.is_some() => {
            return Err(Error::input(
                "--tolerance, --samples and --budget limit a search by samples; classes of this world share a map, and its τ is \
                 computed: leave them out",
            ));
        }
        Some(base) => {
            let classes = GaussianClasses::of_world(base, &settings)?;
            tau_of_error(&classes, target, &Spec::default(), &mut Refining::new("tau"))?
        }
        None => {
            // τ is the world's, whatever the seed of the images: the next export has the draws of this one.
            let (seed, mut bar) = (WORLD_SEED, Bar::new("tau"));
            let (world_id, device) = (opened.info.world_id(), &opened.device);
            let cache = if remembers(precision) { Cache::of_user() } else { Cache::none() };
            let mut source =
                WorldDraws::new(&opened.world, seed).remembered(&cache, &world_id, &settings.prior, device);
            let pool = Pool::new(&mut source, settings.prior.clone(), settings.smoothing, seed)?;
            let mut pool = pool.with_label_noise(settings.label_noise.as_ref())?;
            tau_by_sampling(&mut pool, target, None, &asked.limits(), &mut bar)?.found
        }
    };
    Ok(Settings { tau: Tau::new(found.tau.value)?, ..settings })
}
