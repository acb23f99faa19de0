//! `bayescope sample`.

use std::path::PathBuf;

use serde::Serialize;

use super::args::SampleArgs;
use super::open::{Opened, reproducible, with_oracle};
use super::output::Output;
use super::place::is_free;
use super::progress::Bar;
use super::task::run_task;
use crate::data::{check_disk_space, check_folder_kind, class_of, size_notice};
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::sampling::Guidance;
use crate::oracle::export::least_bytes;
use crate::oracle::latents::save_latents;
use crate::oracle::provenance::{Machine, SAMPLES, write_provenance};
use crate::oracle::rounding::Rounding;
use crate::oracle::strategies;
use crate::oracle::world::{SampleSpec, Settings};
use crate::task::{Done, OpenOracle, Task, TaskContext};
use crate::units::{Seed, Smoothing, images};
use crate::worker::save::{SaveSamples, Saved};

/// From so many samples of a class-map world on, measuring how its blocks are best inverted pays.
const WORTH_MEASURING: usize = 1000;

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    oracle: &'a str,
    weights_sha256: &'a str,
    /// Absent where latents are given: none is drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<SampleSpec>,
    settings: Settings,
    saved: Rounding,
}

/// Of pictures that leave the world.
#[derive(Serialize)]
struct PicturesReport {
    file: String,
    badge: &'static str,
    pictures: usize,
    guidance: Option<Guidance>,
    denoise: bool,
    spec: SampleSpec,
    settings: Settings,
}

/// Writes the images that given latents become.
#[derive(Debug, Clone, PartialEq)]
struct SaveLatents {
    /// An `.npz` with noise x and classes y.
    latents: PathBuf,
    settings: Settings,
    path: PathBuf,
}

impl Task for SaveLatents {
    type Event = ();
    type Live = ();
    type Report = Rounding;

    fn title(&self) -> String {
        format!("Save {}", self.path.display())
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Rounding>> {
        let (Self { latents, settings, path }, OpenOracle { info, world, .. }) = (self, cx.oracle()?);
        let saved = save_latents(world, latents, settings, path, cx)?;
        let provenance = info.of_given_latents(latents, settings, &saved, &mut silent())?;
        let made = write_provenance(path, SAMPLES, provenance, &Machine::with(&cx.chosen.report.used), &mut silent())?;
        let sentence = format!("{} of given latents are in {}", images(saved.images), path.display());
        Ok(Done::new(saved, sentence).made([made]))
    }
}

/// Draws and writes.
pub fn run(args: &SampleArgs) -> Result<()> {
    if args.out.is_dir() {
        check_folder_kind(&args.out, None)?;
    }
    if args.sheet && !args.out.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
        return Err(Error::input(format!(
            "{}: --sheet draws one picture, whose name ends in .png",
            args.out.display()
        )));
    }
    is_free(&args.out)?;
    with_oracle(&args.oracle, &args.compute, |opened, chosen| sample(args, opened, chosen))
}

fn sample(args: &SampleArgs, opened: &Opened, chosen: &OpenDevice) -> Result<()> {
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
    let look = args.look.look();
    if look.is_none() && args.n >= WORTH_MEASURING && args.latents.is_none() && !reproducible() {
        let (flow, sha256) = (opened.world.flow(), &opened.info.weights_sha256);
        let mut bar = Bar::new("measuring the ways of sampling");
        if let Some(measured) = strategies::adopt(flow, sha256, &opened.device, opened.world.batch(), &mut bar)? {
            bar.line(&measured.describe());
        }
    }
    let path = args.out.clone();
    let saved = match (&args.latents, look) {
        (Some(latents), None) => {
            let task = SaveLatents { latents: latents.clone(), settings: settings.clone(), path };
            Saved::Samples(run_task(&task, Some(opened), chosen, "decoding")?)
        }
        _ => {
            let task =
                SaveSamples { spec, indices: Vec::new(), settings: settings.clone(), look, sheet: args.sheet, path };
            run_task(&task, Some(opened), chosen, "sampling")?
        }
    };
    let (file, output) = (args.out.display().to_string(), Output { json: args.json });
    match saved {
        Saved::Samples(saved) => {
            let (oracle, weights_sha256) = (&opened.info.name[..], &opened.info.weights_sha256[..]);
            let spec = args.latents.is_none().then_some(spec);
            let report = Report { file, oracle, weights_sha256, spec, settings, saved };
            output.print(&report, |report| print(report, args))
        }
        Saved::Pictures(pictures) => {
            let (guidance, denoise) = look.map_or((None, false), |look| (look.guidance, look.denoise));
            let report = PicturesReport { file, badge: "illustrative", pictures, guidance, denoise, spec, settings };
            output.print(&report, |PicturesReport { file, pictures, .. }| {
                println!("{file}: {pictures} pictures, illustrative: they have left the world and have no posterior");
                Ok(())
            })
        }
    }
}

fn print(Report { file, oracle, saved, .. }: &Report<'_>, args: &SampleArgs) -> Result<()> {
    let from =
        args.latents.as_ref().map_or_else(|| format!("seed {}", args.seed), |f| format!("latents of {}", f.display()));
    println!("{file}: {} of {oracle} at τ = {}, {from}", images(saved.images), args.world.tau);
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

/// Checks that the disk has room for the samples, and prints the size if it is large. Given latents
/// are not checked.
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
