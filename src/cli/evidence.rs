//! `bayescope evidence`: where in an image the evidence for one class and against another lies.

use std::path::PathBuf;

use serde::Serialize;

use super::args::EvidenceArgs;
use super::open::{Opened, with_oracle};
use super::pictures;
use super::place::is_free;
use super::task::run_task;
use crate::data::{class_of, write_png};
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Evidence;
use crate::oracle::evidence::leaders;
use crate::oracle::pictures::Picture;
use crate::oracle::provenance::{Machine, write_provenance};
use crate::oracle::world::Settings;
use crate::provenance::Badge;
use crate::task::{Done, OpenOracle, Task, TaskContext};
use crate::units::{ClassId, Tau};

#[derive(Serialize)]
struct Report<'a> {
    classes: &'a [String],
    #[serde(rename = "for")]
    a: usize,
    against: usize,
    tau: f64,
    images: Vec<Image>,
}

/// Nats throughout.
#[derive(Serialize)]
struct Image {
    id: String,
    rows: usize,
    columns: usize,
    /// Row by row.
    cells: Vec<Vec<f64>>,
    sum: f64,
    total: f64,
    /// How it got the world's shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<Picture>,
}

/// Maps of the evidence for class `a` against class `b` in images of the open oracle's world.
#[derive(Debug, Clone, PartialEq)]
struct MapEvidence {
    /// Names of the images.
    ids: Vec<String>,
    /// World-space images, NCHW.
    x: Vec<f32>,
    /// What was done to pictures, by their names.
    treated: Vec<(String, String)>,
    a: ClassId,
    b: ClassId,
    settings: Settings,
    /// Where the maps are drawn.
    out: Option<PathBuf>,
}

impl Task for MapEvidence {
    type Event = ();
    type Live = ();
    type Report = Vec<Evidence>;

    fn title(&self) -> String {
        "Map the evidence".into()
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Vec<Evidence>>> {
        let OpenOracle { info, world, .. } = cx.oracle()?;
        let mut maps = Vec::with_capacity(self.ids.len());
        for x in self.x.chunks(world.shape().dims()) {
            maps.push(world.evidence(x, self.a, self.b, self.settings.tau)?);
            cx.report(Progress { done: maps.len(), total: self.ids.len() })?;
        }
        let sentence = format!("{} maps of the evidence", maps.len());
        let Some(path) = &self.out else { return Ok(Done::new(maps, sentence)) };
        let (shape, pixels) = world.evidence_sheet(&self.x, &maps)?;
        write_png(path, shape, &pixels)?;
        let names = world.class_names();
        let classes = format!("for {}, against {}", names[self.a], names[self.b]);
        let provenance = info.provenance(Badge::Exact, &self.settings).with("evidence", classes);
        let provenance = self.treated.iter().fold(provenance, |chain, (id, done)| chain.with(id, done));
        let provenance = provenance.for_the_eye("colours scaled to the strongest cell of each");
        let machine = Machine::with(&cx.chosen.report.used);
        let made = write_provenance(path, "evidence maps", provenance, &machine, &mut silent())?;
        Ok(Done::new(maps, sentence).made([made]))
    }
}

/// Computes and prints.
pub fn run(args: &EvidenceArgs) -> Result<()> {
    if let Some(path) =
        args.out.as_ref().filter(|path| !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")))
    {
        return Err(Error::input(format!("{}: maps are drawn into a .png", path.display())));
    }
    args.out.as_deref().map_or(Ok(()), is_free)?;
    with_oracle(&args.oracle, &args.compute, |opened, chosen| explain(opened, chosen, args))
}

fn explain(opened: &Opened, chosen: &OpenDevice, args: &EvidenceArgs) -> Result<()> {
    let (world, names) = (&opened.world, opened.world.class_names());
    // Likelihoods know of no prior, and T smooths posteriors.
    let settings = Settings { tau: Tau::new(args.tau)?, ..Settings::default_for(names.len()) };
    let given = match (&args.a, &args.b) {
        (Some(a), Some(b)) if class_of("--for ", a, names)? == class_of("--against ", b, names)? => {
            return Err(Error::input(format!("--for and --against are both {a}: evidence is between two classes")));
        }
        (Some(a), Some(b)) => Some((class_of("--for ", a, names)?, class_of("--against ", b, names)?)),
        _ => None,
    };
    let asked = args.dequantise.map(|how| how.single("a map of evidence")).transpose()?;
    let (read, how) = world.read_files(&args.input, &args.pictures.fits()?)?.settled(asked)?;
    pictures::tell(read.note.as_ref());
    let read = world.read(read, how)?;
    let (a, b) = match given {
        Some(classes) => classes,
        None if read.ids.len() == 1 => leaders(&read.posterior(world, 0, &settings)?.0)
            .ok_or_else(|| Error::input("a world of one class has no evidence between classes"))?,
        None => {
            let why = format!("{} images have no two classes in common: say --for and --against", read.ids.len());
            return Err(Error::input(why));
        }
    };
    let done = |(id, picture): (&String, &Picture)| (format!("picture {id}"), picture.treatment.describe());
    let treated = read.ids.iter().zip(&read.pictures).map(done).collect();
    let task = MapEvidence { ids: read.ids, x: read.x, treated, a, b, settings, out: args.out.clone() };
    let maps = run_task(&task, Some(opened), chosen, "explaining")?;
    let image = |(i, (map, id)): (usize, (&Evidence, &String))| Image {
        id: id.clone(),
        rows: map.rows,
        columns: map.columns,
        cells: map.cells.chunks(map.columns).map(<[f64]>::to_vec).collect(),
        sum: map.sum(),
        total: map.total,
        picture: read.pictures.get(i).cloned(),
    };
    let images = maps.iter().zip(&task.ids).enumerate().map(image).collect();
    let report = Report { classes: names, a, against: b, tau: args.tau, images };
    args.output.print(&report, |report| print(report, args))
}

fn print(report: &Report<'_>, args: &EvidenceArgs) -> Result<()> {
    let [a, b] = [report.a, report.against].map(|class| &report.classes[class]);
    println!("log p(x|{a}) - log p(x|{b}) at τ = {}", report.tau);
    println!("{:24} {:>12} {:>12} {:>14}  strongest cell", "image", "total/nats", "sum/nats", "cells");
    for image in &report.images {
        let cells =
            image.cells.iter().enumerate().flat_map(|(r, row)| row.iter().enumerate().map(move |(c, v)| (r, c, *v)));
        let strongest = cells.max_by(|x, y| x.2.abs().total_cmp(&y.2.abs()));
        let place = strongest.map(|(r, c, v)| format!("{v:+.3} nats at row {} column {}", r + 1, c + 1));
        let size = format!("{}×{}", image.rows, image.columns);
        println!("{:24} {:12.4} {:12.4} {size:>14}  {}", image.id, image.total, image.sum, place.unwrap_or_default());
    }
    pictures::print(report.images.iter().filter_map(|image| Some((image.id.as_str(), image.picture.as_ref()?))));
    if let Some(path) = &args.out {
        println!(
            "maps are in {} (blue speaks for {b}, orange for {a}; each scaled to its strongest cell)",
            path.display()
        );
    }
    Ok(())
}
