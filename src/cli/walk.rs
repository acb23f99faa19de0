//! `bayescope walk`.

use crate::oracle::provenance::keep;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde::Serialize;

use super::args::WalkArgs;
use super::open::{Opened, with_oracle};
use super::output::print_json;
use super::progress::Bar;
use super::sample::class_of;
use crate::data::Input;
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::events::{Progress, silent};
use crate::flow::preprocess::Dequantisation;
use crate::oracle::classify::read_input;
use crate::oracle::walk::{Goal, Subject, TOLERANCE, Walk, WalkPoint, WalkSpec, Way, save, walk};
use crate::oracle::world::{Settings, World};
use crate::units::Seed;

#[derive(Serialize)]
struct Report<'a> {
    oracle: &'a str,
    weights_sha256: &'a str,
    from: &'a str,
    to: &'a str,
    seed: u64,
    settings: Settings,
    classes: &'a [String],
    #[serde(flatten)]
    walk: &'a Walk,
    file: Option<String>,
}

/// Walks, saves and prints.
pub fn run(args: &WalkArgs) -> Result<()> {
    with_oracle(&args.oracle, &args.compute, |opened, _| walk_in(opened, args))
}

fn walk_in(opened: &Opened, args: &WalkArgs) -> Result<()> {
    let names = opened.world.class_names();
    let settings = args.world.settings(names.len())?;
    let to = match args.to.strip_prefix("class:") {
        Some(class) => Goal::Class(class_of("--to class:", class, names)?),
        None => Goal::Subject(subject("--to", &args.to, &opened.world)?),
    };
    let spec = WalkSpec {
        from: subject("--from", &args.from, &opened.world)?,
        to,
        steps: args.steps,
        class: args.class.as_deref().map(|class| class_of("--class ", class, names)).transpose()?,
        seed: Seed(args.seed),
        products: MatmulPrecision::F32,
        tolerance: TOLERANCE,
    };
    let bar = Bar::new("walking");
    let mut done = 0;
    let walked = walk(&opened.world, &spec, &settings, &mut |_: WalkPoint| {
        done += 1;
        bar.set(Progress { done, total: spec.steps + 1 }, "walking".into());
        ControlFlow::Continue(())
    })?;
    drop(bar);
    if let Some(path) = &args.out {
        save(&opened.world, &walked, path)?;
        let provenance = opened.info.of_walk(&settings, path);
        keep(path, "points of a walk", provenance, &opened.machine, &mut silent())?;
    }
    let file = args.out.as_ref().map(|path| path.display().to_string());
    let info = &opened.info;
    let report = Report {
        oracle: &info.name,
        weights_sha256: &info.weights_sha256,
        from: &args.from,
        to: &args.to,
        seed: args.seed,
        settings,
        classes: names,
        walk: &walked,
        file,
    };
    if args.json {
        return print_json(&report);
    }
    print(&report);
    Ok(())
}

/// `sample:3`, a file with one image, or `FILE#3`.
fn subject(option: &str, text: &str, world: &World) -> Result<Subject> {
    if let Some(index) = text.strip_prefix("sample:") {
        let index = index.parse().map_err(|_| Error::input(format!("{option} sample:{index}: no running number")))?;
        return Ok(Subject::Sample(index));
    }
    let numbered = text.rsplit_once('#').and_then(|(file, i)| Some((file, i.parse::<usize>().ok()?)));
    let (file, index) = match numbered {
        Some((file, index)) if !PathBuf::from(text).exists() => (file, Some(index)),
        _ => (text, None),
    };
    let x = match read_input(&[PathBuf::from(file)])? {
        Input::Pixels(dataset) => world.map_in(dataset, Dequantisation::default())?,
        Input::World(batch) => batch.x,
    };
    let dims = world.shape().dims();
    if !x.len().is_multiple_of(dims) {
        return Err(Error::input(format!("{option} {file}: no images of this world's {}", world.shape())));
    }
    let images = x.len() / dims;
    match index {
        None if images > 1 => {
            Err(Error::input(format!("{option} {file}: holds {images} images; say which: '{file}#0' is the first")))
        }
        Some(index) if index >= images => {
            Err(Error::input(format!("{option} {file}#{index}: there are {images} images, counted from 0")))
        }
        index => {
            let first = index.unwrap_or(0) * dims;
            Ok(Subject::Image(x[first..first + dims].to_vec()))
        }
    }
}

fn print(report: &Report<'_>) {
    let walk = report.walk;
    let [a, b] = [walk.start, walk.target].map(|class| &report.classes[class]);
    let (way, unit) = match walk.way {
        Way::Latent => ("straight in the latent space", "share"),
        Way::ClassLatent => ("straight in the latent space of the class both were drawn from", "share"),
        Way::Pixels => ("straight in x: what lies between need not look like an image", "share"),
        Way::Gradient => ("along the gradient of log p(target|x)", "rms of x"),
    };
    println!("from {a} to {b}, {way}");
    println!("{:>12} {:>12} {:>12} {:>12} {:>12}", unit, "p(start)", "p(target)", "decision", "log p(x)");
    for point in &walk.points {
        line(report, point);
    }
    let boundary = &walk.boundary;
    match &boundary.why_not {
        None => println!("50/50 (p within {:.1e} of each other, relative):", boundary.imbalance),
        Some(why) => println!("50/50 not reached: {why}. Closest:"),
    }
    line(report, &boundary.point);
    if let Some((class, p)) = boundary.third {
        println!("there {} is more probable than both: {p:.4}", report.classes[class]);
    }
    if let Some(rounding) = walk.rounding {
        println!("rounding x to 32 bits moved no posterior by more than {rounding:.1e}");
    }
    if let Some(file) = &report.file {
        println!("{file}: {} images, the last one that point", walk.points.len() + 1);
    }
}

fn line(report: &Report<'_>, point: &WalkPoint) {
    let p = &point.posterior;
    let [a, b] = [report.walk.start, report.walk.target].map(|class| p.probabilities[class]);
    println!("{:12.5} {a:12.5} {b:12.5} {:>12} {:12.2}", point.position, report.classes[p.decision], p.log_px);
}
