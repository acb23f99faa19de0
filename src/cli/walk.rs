//! `bayescope walk`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::args::WalkArgs;
use super::open::{Opened, with_oracle};
use super::pictures;
use super::place::is_free;
use super::progress::Bar;
use super::task::{SET, Watched, run_task, run_watched};
use crate::data::{Input, class_of};
use crate::device::OpenDevice;
use crate::error::{Error, Result, did_you_mean};
use crate::oracle::pictures::{Fits, Picture, Reading};
use crate::oracle::walk::{Walk, WalkPoint, Way};
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::task::ExternalImage;
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
    /// How those of its ends that are pictures got the world's shape.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pictures: Vec<End<'a>>,
}

/// An end of the walk that is a picture.
#[derive(Serialize)]
struct End<'a> {
    end: &'a str,
    #[serde(flatten)]
    picture: Picture,
}

/// Walks, saves and prints.
pub fn run(args: &WalkArgs) -> Result<()> {
    args.out.as_deref().map_or(Ok(()), is_free)?;
    with_oracle(&args.oracle, &args.compute, |opened, chosen| walk_in(opened, chosen, args))
}

fn walk_in(opened: &Opened, chosen: &OpenDevice, args: &WalkArgs) -> Result<()> {
    let names = opened.world.class_names();
    let settings = args.world.settings(names.len())?;
    let mut ends = Ends { world: &opened.world, fits: args.pictures.fits()?, images: Vec::new(), pictures: Vec::new() };
    let to = match args.to.strip_prefix("class:") {
        Some(class) => Destination::Class(class_of("--to class:", class, names)?),
        None => match ends.read("--to", &args.to)? {
            Point::Sample(index) => Destination::Sample(index),
            Point::Image(image) => Destination::External(image),
        },
    };
    let from = ends.read("--from", &args.from)?;
    let Ends { images, pictures, .. } = ends;
    let class = args.class.as_deref().map(|class| class_of("--class ", class, names)).transpose()?;
    let samples = SampleSpec { class, ..SampleSpec::new(0, Seed(args.seed)) };
    let from = match from {
        Point::Sample(index) => Subject::Sample { spec: samples, index },
        Point::Image(image) => Subject::External(image),
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
        pictures,
    };
    args.output.print(&report, print)
}

/// Where a walk begins or ends.
enum Point {
    /// The sample of this running number.
    Sample(usize),
    /// An image that was read.
    Image(ExternalImage),
}

/// Reads the ends of a walk.
struct Ends<'a> {
    world: &'a World,
    fits: Fits,
    /// World-space images, CHW.
    images: Vec<Vec<f32>>,
    pictures: Vec<End<'a>>,
}

impl<'a> Ends<'a> {
    /// `sample:3`, a file with one image, or `FILE#3`.
    fn read(&mut self, option: &str, text: &'a str) -> Result<Point> {
        if let Some(index) = text.strip_prefix("sample:") {
            let index =
                index.parse().map_err(|_| Error::input(format!("{option} sample:{index}: no running number")))?;
            return Ok(Point::Sample(index));
        }
        let numbered = text.rsplit_once('#').and_then(|(file, i)| Some((file, i.parse::<usize>().ok()?)));
        let (file, index) = match numbered {
            Some((file, index)) if !Path::new(text).exists() => (file, Some(index)),
            _ => (text, None),
        };
        if !Path::new(file).exists() {
            return Err(nothing(option, text, self.world.class_names()));
        }
        let (read, how) = self.world.read_files(&[PathBuf::from(file)], &self.fits)?.settled(None)?;
        let Reading { input, mut pictures, note, .. } = read;
        pictures::tell(note.as_ref());
        let x = match input {
            Input::Pixels(dataset) => self.world.map_in(dataset, how)?,
            Input::World(batch) => batch.x,
        };
        let dims = self.world.shape().dims();
        if !x.len().is_multiple_of(dims) {
            return Err(Error::input(format!("{option} {file}: no images of this world's {}", self.world.shape())));
        }
        let images = x.len() / dims;
        let place = match index {
            None if images > 1 => {
                let cause = format!("{option} {file}: holds {images} images; say which: '{file}#0' is the first");
                return Err(Error::input(cause));
            }
            Some(index) if index >= images => {
                let cause = format!("{option} {file}#{index}: there are {images} images, counted from 0");
                return Err(Error::input(cause));
            }
            index => index.unwrap_or(0),
        };
        if place < pictures.len() {
            if self.fits.usual.frame.is_some() && !self.pictures.is_empty() {
                return Err(Error::input("a frame is of one picture, and both ends of the walk are pictures"));
            }
            self.pictures.push(End { end: text, picture: pictures.swap_remove(place) });
        }
        self.images.push(x[place * dims..(place + 1) * dims].to_vec());
        Ok(Point::Image(ExternalImage { set: SET, index: self.images.len() - 1 }))
    }
}

/// What is said of an end that is no file.
fn nothing(option: &str, text: &str, classes: &[String]) -> Error {
    let class = match classes.iter().find(|class| *class == text) {
        Some(class) => format!(" (is class:{class} meant?)"),
        None => did_you_mean(text, classes.iter().map(|class| format!("class:{class}"))),
    };
    let class = if option == "--to" { class } else { String::new() };
    let also =
        if option == "--to" { "class:NAME, sample:INDEX or an image file" } else { "sample:INDEX or an image file" };
    Error::input(format!("{option} {text}: there is no such file; give {also}{class}"))
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
    pictures::print(report.pictures.iter().map(|End { end, picture }| (*end, picture)));
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
