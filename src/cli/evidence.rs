//! `bayescope evidence`: where in an image the evidence for one class and against another lies.

use crate::oracle::provenance::keep;
use crate::provenance::Badge;

use serde::Serialize;

use super::args::EvidenceArgs;
use super::open::{Opened, with_oracle};
use super::output::print_json;
use super::progress::Bar;
use super::sample::class_of;
use crate::data::write_png;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Evidence;
use crate::oracle::classify::read_input;
use crate::oracle::posterior::Prior;
use crate::oracle::world::Settings;
use crate::units::{Smoothing, Tau};

#[derive(Serialize)]
struct Report<'a> {
    classes: &'a [String],
    #[serde(rename = "for")]
    a: usize,
    against: usize,
    tau: f64,
    images: Vec<Image<'a>>,
}

/// Nats throughout.
#[derive(Serialize)]
struct Image<'a> {
    id: &'a str,
    rows: usize,
    columns: usize,
    /// Row by row.
    cells: &'a [Vec<f64>],
    sum: f64,
    total: f64,
}

/// Computes and prints.
pub fn run(args: &EvidenceArgs) -> Result<()> {
    if let Some(path) =
        args.out.as_ref().filter(|path| !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")))
    {
        return Err(Error::input(format!("{}: maps are drawn into a .png", path.display())));
    }
    with_oracle(&args.oracle, &args.compute, |opened, _| explain(opened, args))
}

fn explain(opened: &Opened, args: &EvidenceArgs) -> Result<()> {
    let world = &opened.world;
    // Likelihoods know of no prior, and T smooths posteriors.
    let prior = Prior::uniform(world.class_names().len());
    let settings = Settings { tau: Tau::new(args.tau)?, smoothing: Smoothing::ONE, prior };
    let (a, b) =
        (class_of("--for ", &args.a, world.class_names())?, class_of("--against ", &args.b, world.class_names())?);
    if a == b {
        return Err(Error::input(format!("--for and --against are both {}: evidence is between two classes", args.a)));
    }
    let how = args.dequantise.single("a map of evidence")?;
    let read = world.read(read_input(&args.input)?, how)?;
    let mut bar = Bar::new("explaining");
    let dims = world.shape().dims();
    let total = read.x.len() / dims;
    let mut maps: Vec<Evidence> = Vec::with_capacity(total);
    for x in read.x.chunks(dims) {
        maps.push(world.evidence(x, a, b, settings.tau)?);
        bar.report(Progress { done: maps.len(), total })?;
    }
    drop(bar);
    if let Some(path) = &args.out {
        let (shape, pixels) = world.evidence_sheet(&read.x, &maps)?;
        write_png(path, shape, &pixels)?;
        let classes = format!("for {}, against {}", world.class_names()[a], world.class_names()[b]);
        let provenance = opened.info.provenance(Badge::Exact, &settings).with("evidence", classes);
        keep(
            path,
            "evidence maps",
            provenance.for_the_eye("colours scaled to the strongest cell of each"),
            &opened.machine,
            &mut silent(),
        )?;
    }
    let rows: Vec<Vec<Vec<f64>>> =
        maps.iter().map(|map| map.cells.chunks(map.columns).map(<[f64]>::to_vec).collect()).collect();
    let images = maps.iter().zip(&rows).zip(&read.ids).map(|((map, cells), id)| Image {
        id,
        rows: map.rows,
        columns: map.columns,
        cells,
        sum: map.sum(),
        total: map.total,
    });
    let report =
        Report { classes: world.class_names(), a, against: b, tau: settings.tau.get(), images: images.collect() };
    if args.json { print_json(&report) } else { print(&report, args) }
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
    if let Some(path) = &args.out {
        println!(
            "maps are in {} (blue speaks for {b}, orange for {a}; each scaled to its strongest cell)",
            path.display()
        );
    }
    Ok(())
}
