//! `bayescope posterior`.

use serde::Serialize;

use super::args::{Compute, DeviceArg, PosteriorArgs, PrecisionArg};
use super::progress::Bar;
use super::{Opened, print_json, scale, with_oracle};
use crate::data::Split;
use crate::error::{Error, Result};
use crate::experiment::Manifest;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::classify::{Classified, read_input};
use crate::oracle::folder;
use crate::oracle::posterior::Posterior;
use crate::oracle::precision::{PrecisionReport, compare};
use crate::oracle::world::Settings;
use crate::units::{Nats, Seed};

#[derive(Serialize)]
struct Report<'a> {
    classes: &'a [String],
    tau: f64,
    smoothing: f64,
    #[serde(skip)]
    settings: String,
    /// Difference of this 32-bit pass from a 64-bit one; absent where the pass was 64-bit.
    precision: Option<PrecisionReport>,
    images: Vec<Image<'a>>,
}

#[derive(Serialize)]
struct Image<'a> {
    id: &'a str,
    #[serde(flatten)]
    posterior: Posterior,
    bits_per_dim: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<usize>,
}

/// Computes and prints.
pub fn run(args: PosteriorArgs) -> Result<()> {
    if let Some(folder) = &args.scale.out {
        return scale::run(&args, folder);
    }
    let device =
        args.device.devices.one().ok_or_else(|| Error::input("several devices share a job of --out; name one"))?;
    let compute = Compute { device: DeviceArg { device }, precision: args.precision };
    with_oracle(&args.oracle, &compute, |opened, _| carry_out(&args, opened))
}

fn carry_out(args: &PosteriorArgs, opened: &Opened) -> Result<()> {
    let settings = args.world.settings(opened.world.class_names().len())?;
    let how = args.dequantise.map(|seed| Dequantisation::Seeded(Seed(seed)));
    let classified = opened.world.classify(read_input(&args.input)?, how, &mut Bar::new("scoring"))?;
    let precision = match args.precision {
        PrecisionArg::F64 => None,
        PrecisionArg::F32 => Some(precision(opened, &classified, &settings)?),
    };
    let dims = opened.world.shape().dims();
    let image = |i: usize| {
        let id = &classified.ids[i];
        let posterior = opened.world.posterior(&classified.scores, i, &settings).defined(id)?;
        Ok(Image {
            id,
            bits_per_dim: opened.world.flow().pixels().bits_per_dim(Nats(posterior.log_px), dims).0,
            posterior,
            label: classified.labels.as_ref().map(|labels| labels[i]),
        })
    };
    let report = Report {
        classes: opened.world.class_names(),
        tau: args.world.tau,
        smoothing: args.world.smoothing,
        settings: settings.describe(),
        precision,
        images: (0..classified.ids.len()).map(image).collect::<Result<_>>()?,
    };
    if args.json {
        print_json(&report)?
    } else {
        print(&report)?
    }
    for manifest in args.input.iter().filter_map(|path| Manifest::beside(path, Split::Test)) {
        if let Some(otherwise) = manifest.drawn_otherwise(&opened.info.weights_sha256, &settings) {
            eprintln!("note: {otherwise}");
        }
    }
    Ok(())
}

fn precision(opened: &Opened, classified: &Classified, settings: &Settings) -> Result<PrecisionReport> {
    compare(&opened.info, folder::read(&opened.name)?.1, &classified.x, &classified.scores, settings)
}

fn print(report: &Report<'_>) -> Result<()> {
    println!(
        "{:24} {:12} {:>9} {:>13} {:>14} {:>9}",
        "image", "decision", "p", "entropy/nats", "log p(x)/nats", "bits/dim"
    );
    for image in &report.images {
        let p = &image.posterior;
        let class = &report.classes[p.decision];
        let (probability, bits) = (p.probabilities[p.decision], image.bits_per_dim);
        println!("{:24} {class:12} {probability:9.6} {:13.4e} {:14.2} {bits:9.4}", image.id, p.entropy_nats, p.log_px);
    }
    println!("posteriors at {}", report.settings);
    if let Some(precision) = &report.precision {
        println!("{precision}");
    }
    Ok(())
}
