//! `bayescope posterior`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::args::{Compute, DeviceArg, PosteriorArgs, PrecisionArg};
use super::open::{Opened, with_oracle};
use super::pictures;
use super::progress::Bar;
use super::scale;
use super::typicality::{Against, reference};
use crate::data::{Home, Split};
use crate::error::{Error, Result, in_line};
use crate::events::silent;
use crate::experiment::Manifest;
use crate::flow::preprocess::Dequantisation;
use crate::measure::typicality::Typicality;
use crate::measure::{Estimate, student_half};
use crate::oracle::cells::CellEstimate;
use crate::oracle::classify::ExternalImages;
use crate::oracle::folder;
use crate::oracle::numbering::from_files;
use crate::oracle::pictures::Picture;
use crate::oracle::posterior::Posterior;
use crate::oracle::precision::{PrecisionReport, compare};
use crate::oracle::world::Settings;
use crate::stats::mean_and_error;
use crate::units::Nats;

#[derive(Serialize)]
struct Report<'a> {
    classes: &'a [String],
    tau: f64,
    smoothing: f64,
    #[serde(skip)]
    settings: String,
    /// Difference of this 32-bit pass from a 64-bit one; absent where the pass was 64-bit.
    precision: Option<PrecisionReport>,
    /// How 8-bit pixels became real numbers; absent where x was given.
    dequantisation: Option<String>,
    #[serde(skip)]
    how: Option<Dequantisation>,
    summary: Summary,
    /// Samples of the world that the images are held against; absent where none were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    typicality: Option<Against>,
    /// What is to be said of what was read, as on stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    images: Vec<Image<'a>>,
}

#[derive(Serialize)]
struct Image<'a> {
    id: &'a str,
    #[serde(flatten)]
    posterior: Posterior,
    bits_per_dim: f64,
    /// log p(x) among those of samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    typicality: Option<Typicality>,
    /// Of several draws in the pixels' cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<CellEstimate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<usize>,
    /// How it got the world's shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a Picture>,
}

/// The images together. Intervals are of 95 %, over images: Student's of the entropy, which one image does not have, Wilson's
/// of the share that is right.
#[derive(Serialize)]
struct Summary {
    images: usize,
    entropy_nats: f64,
    entropy_std_error: Option<f64>,
    entropy_interval: Option<[f64; 2]>,
    /// Over the images that have labels; absent where none has.
    accuracy: Option<f64>,
    accuracy_interval: Option<[f64; 2]>,
    /// Images that have a label, where not all or none of them have.
    #[serde(skip_serializing_if = "Option::is_none")]
    labelled: Option<usize>,
    /// Images whose mean over draws does not converge.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_converged: Option<usize>,
}

fn summary(images: &[Image<'_>]) -> Summary {
    let entropies: Vec<f64> = images.iter().map(|image| image.posterior.entropy_nats).collect();
    let (entropy_nats, error) = mean_and_error(&entropies);
    let known = (images.len() > 1).then_some(error);
    let most = images.first().map_or(f64::INFINITY, |image| (image.posterior.probabilities.len() as f64).ln());
    let around = |half: f64| [(entropy_nats - half).max(0.0), (entropy_nats + half).min(most)];
    let right: Vec<bool> = images.iter().filter_map(|image| Some(image.label? == image.posterior.decision)).collect();
    let hits = right.iter().filter(|right| **right).count();
    let accuracy = (!right.is_empty()).then(|| Estimate::proportion(hits, right.len()));
    let cells = images.iter().filter_map(|image| image.cell.as_ref());
    Summary {
        images: images.len(),
        entropy_nats,
        entropy_std_error: known,
        entropy_interval: known.map(|error| around(student_half(error, images.len()))),
        accuracy: accuracy.map(|accuracy| accuracy.value),
        accuracy_interval: accuracy.map(|Estimate { interval, .. }| [interval.low, interval.high]),
        labelled: (!right.is_empty() && right.len() < images.len()).then_some(right.len()),
        not_converged: cells.clone().next().map(|_| cells.filter(|cell| !cell.converges).count()),
    }
}

/// Computes and prints.
pub fn run(args: PosteriorArgs) -> Result<()> {
    if args.world.tau == 0.0 {
        return Err(Error::input(
            "--tau 0: at τ = 0 every image of a class is the same, no image from outside has a density, and there is no posterior: choose a τ above 0",
        ));
    }
    if let Some(folder) = &args.scale.out {
        return scale::run(&args, folder);
    }
    let device =
        args.device.devices.one().ok_or_else(|| Error::input("several devices share a job of --out; name one"))?;
    let compute = Compute { device: DeviceArg { device }, precision: args.precision };
    with_oracle(&args.oracle, &compute, |opened, _| score(&args, opened))
}

fn score(args: &PosteriorArgs, opened: &Opened) -> Result<()> {
    let settings = args.world.settings(opened.world.class_names().len())?;
    let (read, how) = opened.world.read_files(&args.input, &args.pictures.fits()?)?.settled(args.dequantise)?;
    let classified = opened.world.classify(read, how, &mut Bar::new("scoring"));
    let classified = classified.map_err(|error| from_files(error, &args.input))?;
    let precision = match args.precision {
        PrecisionArg::F64 => None,
        PrecisionArg::F32 => Some(precision(opened, &classified, &settings)?),
    };
    let against = reference(opened, &settings, (args.typicality, args.precision))?;
    let dims = opened.world.shape().dims();
    let log_px = |i: usize| classified.log_px(&opened.world, i, &settings);
    let image = |i: usize| {
        let id = &classified.ids[i];
        let (posterior, cell) = classified.posterior(&opened.world, i, &settings)?;
        let posterior = posterior.defined(id)?;
        Ok(Image {
            id,
            bits_per_dim: opened.world.flow().pixels().bits_per_dim(Nats(posterior.log_px), dims).0,
            posterior,
            typicality: match &against {
                Some(reference) => reference.place(log_px(i)?),
                None => None,
            },
            cell,
            label: classified.label(i),
            picture: classified.pictures.get(i),
        })
    };
    let images: Vec<Image<'_>> = (0..classified.ids.len()).map(image).collect::<Result<_>>()?;
    let typicality = match &against {
        Some(reference) => {
            let all = (0..images.len()).map(log_px).collect::<Result<Vec<f64>>>()?;
            Some(Against::of(reference, &all))
        }
        None => None,
    };
    let report = Report {
        classes: opened.world.class_names(),
        tau: args.world.tau,
        smoothing: args.world.smoothing,
        settings: settings.describe(),
        precision,
        dequantisation: classified.dequantisation.map(|how| how.to_string()),
        how: classified.dequantisation,
        summary: summary(&images),
        typicality,
        note: classified.note.as_deref(),
        images,
    };
    args.output.print(&report, print)?;
    pictures::tell(classified.note.as_ref());
    tell_of_others(&args.input, &opened.world.home(), &settings);
    Ok(())
}

/// Says on stderr which images are samples of this world at other knobs.
fn tell_of_others(input: &[PathBuf], home: &Home<'_>, settings: &Settings) {
    // Of a folder the training images are read.
    let known = |path: &PathBuf| Manifest::of_samples(path, home).or_else(|| Manifest::beside(path, Split::Train));
    let otherwise = |manifest: Manifest| manifest.drawn_otherwise(home, settings);
    // Pictures of one folder have one record.
    let notes: BTreeSet<String> = input.iter().filter_map(known).filter_map(otherwise).collect();
    notes.iter().for_each(|note| eprintln!("note: {}", in_line(note)));
}

fn precision(opened: &Opened, images: &ExternalImages, settings: &Settings) -> Result<PrecisionReport> {
    let scores = images.scores(&opened.world, &mut silent())?;
    let weights = folder::read_again(&opened.name, &opened.info)?;
    compare(&opened.info, weights, &images.x, scores, settings, &mut Bar::new("comparing with 64-bit arithmetic"))
}

fn print(report: &Report<'_>) -> Result<()> {
    println!(
        "{:24} {:12} {:>9} {:>13} {:>14} {:>9}{}",
        "image",
        "decision",
        "p",
        "entropy/nats",
        "log p(x)/nats",
        "bits/dim",
        if report.typicality.is_some() { "  of this world?" } else { "" }
    );
    for image in &report.images {
        let p = &image.posterior;
        let class = &report.classes[p.decision];
        let (probability, bits) = (p.probabilities[p.decision], image.bits_per_dim);
        let place = image.typicality.map_or_else(String::new, |place| {
            let bound = if place.is_beyond() { '≤' } else { '=' };
            format!("  {} (p {bound} {:.3})", place.band.name(), place.p_value)
        });
        println!(
            "{:24} {class:12} {probability:9.6} {:13.4e} {:14.2} {bits:9.4}{place}",
            image.id, p.entropy_nats, p.log_px
        );
        if let Some(cell) = &image.cell {
            let half = |error: f64| student_half(error, cell.draws);
            let (p, entropy) = (half(cell.posterior_std_error[p.decision]), half(cell.entropy_std_error));
            println!("{:24} {:12} ±{p:8.6} ±{entropy:12.4e} {}", "", "", cell.warning.as_deref().unwrap_or_default());
        }
    }
    pictures::print(report.images.iter().filter_map(|image| Some((image.id, image.picture?))));
    println!("posteriors at {}", report.settings);
    if let Some(how) = report.how {
        println!("8-bit pixels {}", how.describe());
    }
    print_summary(&report.summary);
    if let Some(against) = &report.typicality {
        println!("{}", against.describe());
    }
    if let Some(precision) = &report.precision {
        println!("{precision}");
    }
    Ok(())
}

fn print_summary(found: &Summary) {
    let Summary { images, entropy_nats, .. } = found;
    match found.entropy_interval {
        Some([low, high]) => {
            let mut text = format!("mean entropy {entropy_nats:.4} [{low:.4}, {high:.4}] nats over {images} images");
            if let (Some(accuracy), Some(ends)) = (found.accuracy, found.accuracy_interval) {
                let of = found.labelled.map_or_else(String::new, |labelled| format!(" of {labelled} labelled ones"));
                let [low, high] = ends.map(|end| 100.0 * end);
                text += &format!(", {:.2} % [{low:.2}, {high:.2}] right{of}", 100.0 * accuracy);
            }
            println!("{text} (95 % intervals over images)");
        }
        None => println!("entropy {entropy_nats:.4} nats, of one image"),
    }
    if let Some(n) = found.not_converged {
        println!(
            "± of single images: 95 %, over draws of their pixels; means over draws that do not converge: {n} of {images}"
        );
    }
}
