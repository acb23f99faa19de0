//! `bayescope summary RUN --bought CELL`: lists or draws the images whose labels a strategy bought
//! first.

use std::path::Path;

use serde::Serialize;

use super::output::{print_json, print_text};
use super::progress::Bar;
use crate::data::write_sheet;
use crate::error::{Error, Result};
use crate::experiment::{Cell, Purchase};
use crate::oracle::folder::{glance, read_watched};
use crate::run::{BOUGHT, BoughtImage, BoughtImages, RunFolder};

/// Images in a row of the sheet.
const COLUMNS: usize = 8;
/// Side to which small images are enlarged, pixels.
const SIDE: usize = 64;

#[derive(Serialize)]
struct Report<'a> {
    cell: &'a Cell,
    /// The strategy.
    under: Option<&'a str>,
    /// In the order of the posteriors; absent where the oracle is not at hand.
    classes: Option<Vec<String>>,
    rounds: &'a [Purchase],
    images: Vec<Shown<'a>>,
    /// The sheet, where one was written.
    sheet: Option<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    bought: BoughtImage,
    /// H(p), nats.
    entropy_nats: f64,
    /// Exact posterior, [K].
    posterior: &'a [f64],
}

/// Lists them, and draws them where a file is given.
pub fn bought(folder: &RunFolder, id: &str, png: Option<&Path>, json: bool) -> Result<()> {
    let (images, rounds) = (folder.bought_images(id, BOUGHT)?, folder.purchases(id)?);
    if let Some(path) = png {
        draw(folder, &images, path)?;
    }
    let classes = glance(&folder.oracle()).map(|info| info.class_names);
    let sheet = png.map(|path| path.display().to_string());
    if !json {
        return print_text(&text(&images, &rounds, classes.as_deref(), sheet));
    }
    let shown = images.found.iter().zip(&images.posteriors).map(|(&bought, posterior)| Shown {
        bought,
        entropy_nats: posterior.entropy_nats,
        posterior: &posterior.probabilities,
    });
    let (cell, under) = (&images.planned.cell, images.planned.under.as_deref());
    print_json(&Report { cell, under, classes, rounds: &rounds, images: shown.collect(), sheet })
}

/// A contact sheet in the order of the purchases, row by row.
fn draw(folder: &RunFolder, images: &BoughtImages, path: &Path) -> Result<()> {
    let oracle = &folder.oracle();
    let info = match glance(oracle) {
        Some(info) => info,
        None => read_watched(oracle, &mut Bar::new("reading"))?.0,
    };
    if images.found.is_empty() {
        return Err(Error::input(format!("{} bought nothing after its start", images.planned.label())));
    }
    let scale = (SIDE / images.shape.width.max(1)).max(1);
    // Where the oracle is another world by now, nobody knows whose images these are.
    let weights = if folder.is_on(&info.world_id()).unwrap_or(false) { &info.weights_sha256[..] } else { "" };
    let held = info.pixels.held_noise(weights);
    write_sheet(path, images.shape, &info.pixels.picture(&images.x), COLUMNS, scale, held.as_ref())
}

fn text(images: &BoughtImages, rounds: &[Purchase], classes: Option<&[String]>, sheet: Option<String>) -> String {
    let name = |class: usize| match classes.and_then(|names| names.get(class)) {
        Some(name) => name.clone(),
        None => format!("class {class}"),
    };
    let mut text = format!("{}: what its rounds bought\n", images.planned.label());
    text += &format!(
        "{:>5} {:>7} {:>10} {:>10} {:>10} {:>8}\n",
        "round", "labels", "H(p) nats", "KL nats", "H(q) nats", "noise %"
    );
    let figure = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.4}"));
    for (round, bought) in rounds.iter().enumerate() {
        let Purchase { images, aleatoric, epistemic, entropy, noise, .. } = bought;
        let (epistemic, entropy, noise) = (figure(*epistemic), figure(*entropy), 100.0 * noise);
        text +=
            &format!("{round:>5} {:>7} {aleatoric:>10.4} {epistemic:>10} {entropy:>10} {noise:>8.1}\n", images.len());
    }
    text += &format!("\nits first {} choices\n", images.found.len());
    text += &format!("{:>7} {:>5}  {:<12} {:<12} {:>10}\n", "image", "round", "drawn label", "Bayes", "H(p) nats");
    for (one, posterior) in images.found.iter().zip(&images.posteriors) {
        let (drawn, bayes) = (name(one.label), name(posterior.decision));
        let entropy = posterior.entropy_nats;
        text += &format!("{:>7} {:>5}  {drawn:<12} {bayes:<12} {entropy:>10.4}\n", one.image, one.round);
    }
    if let Some(sheet) = sheet {
        text += &format!("\n{sheet}: these images row by row\n");
    }
    text
}
