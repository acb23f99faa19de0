//! `bayescope walk`.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::args::WalkArgs;
use super::open::{Opened, with_oracle};
use super::progress::Bar;
use super::task::{Watched, run_task, run_watched};
use crate::data::{Input, class_of};
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::flow::preprocess::Dequantisation;
use crate::oracle::classify::read_input;
use crate::oracle::walk::{Walk, WalkPoint, Way};
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::units::Seed;
use crate::worker::protocol::Subject;
use crate::worker::walk::{Destination, SaveWalk, WalkToBoundary};

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
    with_oracle(&args.oracle, &args.compute, |opened, chosen| walk_in(opened, chosen, args))
}

fn walk_in(opened: &Opened, chosen: &OpenDevice, args: &WalkArgs) -> Result<()> {
    let names = opened.world.class_names();
    let settings = args.world.settings(names.len())?;
    let mut images = Vec::new();
    let to = match args.to.strip_prefix("class:") {
        Some(class) => Destination::Class(class_of("--to class:", class, names)?),
        None => match end("--to", &args.to, &opened.world)? {
            End::Sample(index) => Destination::Sample(index),
            End::Image(x) => {
                images.push(x);
                Destination::External(0)
            }
        },
    };
    let from = end("--from", &args.from, &opened.world)?;
    let class = args.class.as_deref().map(|class| class_of("--class ", class, names)).transpose()?;
    let samples = SampleSpec { class, ..SampleSpec::new(0, Seed(args.seed)) };
    let from = match from {
        End::Sample(index) => Subject::Sample { spec: samples, index },
        End::Image(x) => {
            images.push(x);
            Subject::External(images.len() - 1)
        }
    };
    let task = WalkToBoundary { from, to, steps: args.steps, samples, settings: settings.clone() };
    let bar = Bar::new("walking");
    let watched = Watched { bar: &bar, images: &images, tell: &mut |_, _| Ok(()) };
    let walked = Arc::new(run_watched(&task, Some(opened), chosen, watched)?);
    drop(bar);
    if let Some(path) = &args.out {
        run_task(&SaveWalk { walked: walked.clone(), path: path.clone() }, Some(opened), chosen, "saving")?;
    }
    let report = Report {
        oracle: &opened.info.name,
        weights_sha256: &opened.info.weights_sha256,
        from: &args.from,
        to: &args.to,
        seed: args.seed,
        settings,
        classes: names,
        walk: &walked.walk,
        file: args.out.as_ref().map(|path| path.display().to_string()),
    };
    args.output.print(&report, print)
}

/// One end of a walk.
enum End {
    /// The sample of this running number.
    Sample(usize),
    /// A world-space image, CHW.
    Image(Vec<f32>),
}

/// `sample:3`, a file with one image, or `FILE#3`.
fn end(option: &str, text: &str, world: &World) -> Result<End> {
    if let Some(index) = text.strip_prefix("sample:") {
        let index = index.parse().map_err(|_| Error::input(format!("{option} sample:{index}: no running number")))?;
        return Ok(End::Sample(index));
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
            Ok(End::Image(x[first..first + dims].to_vec()))
        }
    }
}

fn print(report: &Report<'_>) -> Result<()> {
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
    Ok(())
}

fn line(report: &Report<'_>, point: &WalkPoint) {
    let p = &point.posterior;
    let [a, b] = [report.walk.start, report.walk.target].map(|class| p.probabilities[class]);
    println!("{:12.5} {a:12.5} {b:12.5} {:>12} {:12.2}", point.position, report.classes[p.decision], p.log_px);
}
