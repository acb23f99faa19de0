//! `bayescope export`.

use super::args::ExportArgs;
use super::open::{Opened, with_oracle};
use super::output::Output;
use super::target::{remembers, settings};
use super::task::run_task;
use crate::data::size_notice;
use crate::device::OpenDevice;
use crate::error::Result;
use crate::export::{ExportDataset, ExportSpec, Format, Manifest};
use crate::measure::Estimate;
use crate::units::{Seed, counted, images};

/// What counts the images.
const IMAGES: &str = "--train and --test are the images";

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
        settings: settings((&args.world, &args.target), args.compute.precision, opened, IMAGES)?,
        precision: args.compute.precision.into(),
        seed: Seed(args.seed),
        formats,
    };
    let bytes = spec.least_bytes(opened.world.shape().dims(), opened.world.class_names().len());
    if let Some(size) = size_notice(&args.out, bytes) {
        eprintln!("{size} while it is made");
    }
    let remembers = remembers(args.compute.precision);
    run_task(&ExportDataset { spec, folder: args.out.clone(), remembers }, Some(opened), chosen, "exporting")
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
            "{name}: {}, Bayes error {} %, mean H(p) {} nats",
            images(split.images),
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
    for sentence in manifest.rounding_remedy().map(str::to_owned).into_iter().chain(manifest.picture_sentences()) {
        println!("{sentence}");
    }
    println!("{}, listed with their SHA-256 in dataset.json", counted(manifest.files.len(), "file"));
    Ok(())
}
