//! `bayescope sample`.

use serde::Serialize;

use super::args::SampleArgs;
use super::progress::Bar;
use super::{open, print_json};
use crate::error::{Error, Result};
use crate::oracle::export::{Saved, save_samples};
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::{ClassId, Seed};

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    oracle: &'a str,
    weights_sha256: &'a str,
    spec: SampleSpec,
    settings: Settings,
    saved: Saved,
}

/// Draws and writes.
pub fn run(args: &SampleArgs) -> Result<()> {
    let opened = open(&args.oracle, &args.compute)?;
    let names = opened.world.class_names();
    let settings = args.world.settings(names.len())?;
    let class = args.class.as_deref().map(|class| class_of(class, names)).transpose()?;
    let spec = SampleSpec { n: args.n, class, seed: Seed(args.seed) };
    if let Some(look) = args.look.look() {
        return super::look::run(&opened.world, spec, &settings, &look, &args.out, args.json);
    }
    let saved = save_samples(&opened.world, &spec, &[], &settings, &args.out, &mut Bar::new("sampling"))?;
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
    println!("{file}: {} samples of {} at τ = {}, seed {}", args.n, opened.info.name, args.world.tau, args.seed);
    if saved.rounded > 0 {
        println!(
            "posteriors computed again from the stored 32-bit x differ by more than 0.001 for {} of {} images (at most {:.3}), where pixels saturate; those stored are of the image before rounding",
            saved.rounded, saved.images, saved.max_drift
        );
    }
    Ok(())
}

/// A class by name or by number; names win.
pub fn class_of(class: &str, names: &[String]) -> Result<ClassId> {
    let by_name = names.iter().position(|name| name == class);
    let by_number = || class.parse().ok().filter(|&c: &usize| c < names.len());
    by_name
        .or_else(by_number)
        .ok_or_else(|| Error::input(format!("--class {class}: this world's classes are {}", names.join(", "))))
}
