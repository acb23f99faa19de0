//! `bayescope sample`.

use crate::events::silent;
use serde::Serialize;

use super::args::SampleArgs;
use super::open::{Opened, reproducible, with_oracle};
use super::output::print_json;
use super::progress::Bar;
use crate::data::{Input, check_disk_space, read_npz, size_notice};
use crate::error::{Error, Result};
use crate::oracle::export::{least_bytes, save_latents, save_samples};
use crate::oracle::provenance::keep;
use crate::oracle::rounding::Rounding;
use crate::oracle::strategies;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::{ClassId, Seed, Smoothing};

/// From so many samples of a class-map world on, measuring how its blocks are best inverted pays.
const WORTH_MEASURING: usize = 1000;

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    oracle: &'a str,
    weights_sha256: &'a str,
    spec: SampleSpec,
    settings: Settings,
    saved: Rounding,
}

/// Draws and writes.
pub fn run(args: &SampleArgs) -> Result<()> {
    with_oracle(&args.oracle, &args.compute, |opened, _| carry_out(args, opened))
}

fn carry_out(args: &SampleArgs, opened: &Opened) -> Result<()> {
    let names = opened.world.class_names();
    let settings = args.world.settings(names.len())?;
    let class = args.class.as_deref().map(|class| class_of("--class ", class, names)).transpose()?;
    if class.is_some() && settings.smoothing != Smoothing::ONE {
        return Err(Error::input(
            "--class gives every image that label, and --smoothing asks for labels drawn from p_T(y|x): give one of the two",
        ));
    }
    let spec = SampleSpec { class, products: args.products, ..SampleSpec::new(args.n, Seed(args.seed)) };
    take_room(args, opened)?;
    if let Some(look) = args.look.look() {
        return super::look::run(opened, spec, &settings, &look, &args.out, args.json);
    }
    if args.n >= WORTH_MEASURING && args.latents.is_none() && !reproducible() {
        let (flow, sha256) = (opened.world.flow(), &opened.info.weights_sha256);
        let mut bar = Bar::new("measuring the ways of sampling");
        if let Some(measured) = strategies::adopt(flow, sha256, &opened.device, opened.world.batch(), &mut bar)? {
            bar.line(&measured.describe());
        }
    }
    let saved = match &args.latents {
        None => save_samples(&opened.world, &spec, &[], &settings, &args.out, &mut Bar::new("sampling"))?,
        Some(file) => match read_npz(file)? {
            Input::World(latents) => {
                save_latents(&opened.world, &latents, &settings, &args.out, &mut Bar::new("decoding"))?
            }
            Input::Pixels(_) => return Err(Error::file(file, "holds pixels, not an array x of floats")),
        },
    };
    let mut provenance = opened.info.of_samples(&spec, &[], &settings, &saved, &args.out);
    if let Some(latents) = &args.latents {
        provenance = provenance.with("latents", latents.display().to_string());
    }
    keep(&args.out, "samples", provenance, &opened.machine, &mut silent())?;
    let file = args.out.display().to_string();
    if args.json {
        let info = &opened.info;
        return print_json(&Report {
            file,
            oracle: &info.name,
            weights_sha256: &info.weights_sha256,
            spec,
            settings,
            saved,
        });
    }
    let from =
        args.latents.as_ref().map_or_else(|| format!("seed {}", args.seed), |f| format!("latents of {}", f.display()));
    println!("{file}: {} images of {} at τ = {}, {from}", saved.images, opened.info.name, args.world.tau);
    if let Some(rounding) = saved.describe() {
        println!("{rounding}; those stored are of the image before rounding");
    }
    if !args.products.is_wide() {
        println!(
            "drawn with products in {}; log p(x|y) and posteriors of these images in 32 bits",
            args.products.label()
        );
    }
    Ok(())
}

/// Whether the disk holds what is asked for; much is told beforehand. Of given latents there are as many as a file holds.
fn take_room(args: &SampleArgs, opened: &Opened) -> Result<()> {
    if args.latents.is_some() {
        return Ok(());
    }
    let bytes = least_bytes(&opened.world, args.n, &args.out);
    check_disk_space(&args.out, bytes)?;
    if let Some(size) = size_notice(&args.out, bytes) {
        eprintln!("{size}");
    }
    Ok(())
}

/// A class by name or by number; names win. `option` is where it was given.
pub(super) fn class_of(option: &str, class: &str, names: &[String]) -> Result<ClassId> {
    let by_name = names.iter().position(|name| name == class);
    let by_number = || class.parse().ok().filter(|&c: &usize| c < names.len());
    by_name
        .or_else(by_number)
        .ok_or_else(|| Error::input(format!("{option}{class}: this world's classes are {}", names.join(", "))))
}
