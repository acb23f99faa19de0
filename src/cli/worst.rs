//! `bayescope summary RUN --worst CELL`: the test images a classifier knows least of.

use serde::Serialize;

use super::output::{print_json, print_text};
use crate::error::Result;
use crate::experiment::{Cell, Worst, WorstImage};
use crate::oracle::folder::glance;
use crate::run::RunFolder;

/// Classes named of each image, at most.
const CLASSES: usize = 3;

#[derive(Serialize)]
struct Report<'a> {
    cell: &'a Cell,
    /// In the order of p and q; absent where the oracle is not at hand.
    classes: Option<&'a [String]>,
    #[serde(flatten)]
    worst: &'a Worst,
}

/// Prints the test images of cell `id` with the largest KL(p‖q), as a table or as JSON.
pub fn worst(folder: &RunFolder, id: &str, json: bool) -> Result<()> {
    let (worst, planned) = (folder.worst(id)?, folder.planned(id)?);
    let classes = glance(&folder.oracle()).map(|info| info.class_names);
    if json {
        return print_json(&Report { cell: &planned.cell, classes: classes.as_deref(), worst: &worst });
    }
    let name = |class: usize| match classes.as_ref().and_then(|names| names.get(class)) {
        Some(name) => name.clone(),
        None => format!("class {class}"),
    };
    let (label, n) = (planned.label(), worst.images.len());
    let mut text = format!("{label}: the {n} of {} test images with the largest KL(p || q)\n", worst.tested);
    text += &format!("{:>7} {:>9}  {:<12} exact p and the classifier's q\n", "image", "KL nats", "drawn label");
    for one in &worst.images {
        text += &format!("{:>7} {:>9.4}  {:<12} {}\n", one.image, one.kl, name(one.label), beliefs(one, &name));
    }
    print_text(&text)
}

/// p and q of the classes that matter most.
pub(super) fn beliefs(one: &WorstImage, name: &dyn Fn(usize) -> String) -> String {
    let belief = |class: usize| format!("{}: p={:.4} q={:.4}", name(class), one.p[class], one.q[class]);
    one.leading(CLASSES).into_iter().map(belief).collect::<Vec<_>>().join("  ")
}
