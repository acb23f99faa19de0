//! `bayescope export`.

use super::args::{ExportArgs, PrecisionArg};
use super::open::{Opened, reproducible, with_oracle};
use super::output::Output;
use super::progress::{Bar, Refining};
use super::task::run_task;
use crate::bayes::sampling::{Cache, Pool, WorldDraws, tau_by_sampling};
use crate::bayes::{GaussianClasses, Spec, tau_of_error};
use crate::data::size_notice;
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::experiment::WORLD_SEED;
use crate::export::{ExportDataset, ExportSpec, Format, Manifest};
use crate::measure::Estimate;
use crate::oracle::world::Settings;
use crate::units::{Seed, Tau};

/// Makes a dataset, or resumes one.
pub fn run(args: &ExportArgs) -> Result<()> {
    let manifest = with_oracle(&args.oracle, &args.compute, |opened, chosen| make(args, opened, chosen))?;
    Output { json: args.json }.print(&manifest, |manifest| tell(args, manifest))
}

fn make(args: &ExportArgs, opened: &Opened, chosen: &OpenDevice) -> Result<Manifest> {
    let mut formats: Vec<Format> = Vec::new();
    for format in args.format.iter().map(|&format| Format::from(format)) {
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    let spec = ExportSpec {
        oracle: args.oracle.clone(),
        train: args.train,
        test: args.test,
        settings: settings(args, opened)?,
        precision: args.compute.precision.into(),
        seed: Seed(args.seed),
        formats,
    };
    let bytes = spec.least_bytes(opened.world.shape().dims(), opened.world.class_names().len());
    if let Some(size) = size_notice(&args.out, bytes) {
        eprintln!("{size} while it is made");
    }
    let remembers = remembers(args);
    run_task(&ExportDataset { spec, folder: args.out.clone(), remembers }, Some(opened), chosen, "exporting")
}

/// Whether the user's cache serves: its draws are of 32 bits, those of 64 round otherwise.
fn remembers(args: &ExportArgs) -> bool {
    args.compute.precision == PrecisionArg::F32 && !reproducible()
}

/// The world's knobs; τ by the Bayes error where that is asked for.
fn settings(args: &ExportArgs, opened: &Opened) -> Result<Settings> {
    let settings = args.world.settings(opened.world.class_names().len())?;
    let Some(target) = args.target else {
        return match args.limits.samples.is_none() && args.limits.budget.is_none() {
            true => Ok(settings),
            false => Err(Error::input(
                "--samples and --budget limit the search for --target; --train and --test are the images",
            )),
        };
    };
    let found = match opened.world.flow().shared_base() {
        Some(_) if args.tolerance.is_some() || args.limits.samples.is_some() || args.limits.budget.is_some() => {
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
            // Without a limit of time, so that the same export finds the same τ again and goes on.
            let limits = args.limits.limits(args.tolerance, true);
            // τ is the world's, whatever the seed of the images: the next export has the draws of this one.
            let (seed, mut bar) = (WORLD_SEED, Bar::new("tau"));
            let (world_id, device) = (opened.info.world_id(), &opened.device);
            let cache = if remembers(args) { Cache::of_user() } else { Cache::none() };
            let mut source =
                WorldDraws::new(&opened.world, seed).remembered(&cache, &world_id, &settings.prior, device);
            let pool = Pool::new(&mut source, settings.prior.clone(), settings.smoothing, seed)?;
            let mut pool = pool.with_label_noise(settings.label_noise.as_ref())?;
            tau_by_sampling(&mut pool, target, None, &limits, &mut bar)?.found
        }
    };
    Ok(Settings { tau: Tau::new(found.tau.value)?, ..settings })
}

fn tell(args: &ExportArgs, manifest: &Manifest) -> Result<()> {
    let within = |e: &Estimate, scale: f64| {
        format!("{:.4} [{:.4}, {:.4}]", scale * e.value, scale * e.interval.low, scale * e.interval.high)
    };
    let truth = &manifest.world.truth;
    let (low, high) = truth.bayes_error.interval;
    println!("{}: {} at τ = {}", args.out.display(), manifest.oracle, manifest.tau.get());
    println!(
        "Bayes error of the world: {:.4} % [{:.4}, {:.4}] ({})",
        100.0 * truth.bayes_error.value,
        100.0 * low,
        100.0 * high,
        truth.how
    );
    for (name, split) in &manifest.splits {
        println!(
            "{name}: {} images, Bayes error {} %, mean H(p) {} nats",
            split.images,
            within(&split.bayes_error, 100.0),
            within(&split.aleatoric_nats, 1.0)
        );
        if let Some(rounding) = split.rounding.describe() {
            println!("  {rounding}");
        }
        for (bits, cost) in &split.pictures {
            println!(
                "  {bits} bits: KL of their posteriors {} nats, at most {:.3}; {} % of Bayes decisions changed",
                within(&cost.kl_nats, 1.0),
                cost.largest_kl_nats,
                within(&cost.decisions_changed, 100.0)
            );
        }
    }
    for sentence in manifest.picture_sentences() {
        println!("{sentence}");
    }
    println!("{} files, listed with their SHA-256 in dataset.json", manifest.files.len());
    Ok(())
}
