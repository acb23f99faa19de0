//! Does the world only repeat its training images? How near the nearest training images are to generated and, just so, to
//! held-out images.
//!
//! Training may mirror, turn and move images anew in every epoch, and a generator that copies then gives back any of these
//! forms, which in the features of a network lie far from the image as it was. So every training image is compared in all
//! forms that the oracle's record names: made by training's own code, with the world's noise as all other images, and put
//! through the feature net. What is changed is the training image, never the image that is compared with it: so a copy
//! is at the distance of the noise also where zeros have come in, and in features that themselves are not turned or moved
//! with an image.
//!
//! Training images go by blocks, form after form; of a block only the distances are kept.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

use super::embedded::{AllEmbedded, BATCH};
use super::generated::Generated;
use super::pieces::{fingerprint, table};
use super::real::{Real, name_of};
use super::spot::unit;
use super::{Stage, ValidateEvent, Work};
use crate::data::{ImageShape, listed};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::measure::fidelity::{
    Compared, DataCopying, Features, Histogram, Memorisation, Neighbours, data_copying, histogram, memorisation,
    nearest_in_cells,
};
use crate::oracle::folder::OracleInfo;
use crate::oracle::train::Form;
use crate::units::ClassId;

/// Pairs shown of each set, nearest first.
const PAIRS: usize = 48;
/// Bins of the histogram of distances.
const BINS: usize = 40;
/// Least generated images in a cell that counts in C_T (the τ of Meehan et al.).
const CELL: f64 = 20.0;
/// Training images whose distances are computed together, and kept as a piece.
const BLOCK: usize = 2048;

/// How near the nearest training images are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// Forms in which every training image was compared, where copies are looked for.
    pub forms: usize,
    /// What they are, and from where that is known: "Training images are compared …".
    pub forms_from: String,
    /// The figures.
    pub memory: Memorisation,
    /// Where its threshold comes from.
    pub threshold_from: String,
    /// Distances to the nearest training image.
    pub histogram: Histogram,
    /// C_T over the classes; none without labels.
    pub copying: Option<DataCopying>,
    /// The images nearest to a training image.
    pub closest: Compared<Vec<Close>>,
}

/// An image and the training image nearest to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Close {
    /// Running number of the image in its set.
    pub image: usize,
    /// Running number of the training image.
    pub neighbour: usize,
    /// The form of it that is nearest.
    pub form: Form,
    /// Euclidean distance of their features.
    pub distance: f64,
}

/// An image and the training image nearest to it, for eyes.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Euclidean distance of their features.
    pub distance: f64,
    /// Running number of the image in its set.
    pub image: usize,
    /// Name of the training image.
    pub neighbour: String,
    /// The form of it that is nearest, and shown.
    pub form: Form,
    /// 8-bit pixels, CHW, of both.
    pub pixels: [Vec<u8>; 2],
}

/// The nearest pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// Shape of every image.
    pub shape: ImageShape,
    /// Of generated and of held-out images, nearest first.
    pub pairs: Compared<Vec<Pair>>,
}

/// What is nearest to an image.
#[derive(Debug, Clone, Copy)]
struct Found {
    distance: f64,
    /// To the nearest of its own class; ∞ where there is none.
    in_class: f64,
    neighbour: usize,
    form: Form,
}

/// Compares generated and held-out images with the training images in all their forms. `real` are the images as they are,
/// `alike` the same as the world has them, of which the features are.
///
/// # Errors
/// When the record asks for turned images that are no squares, features are no finite numbers, the device or the disk
/// fails, or the caller stops.
pub fn nearest(
    work: &Work<'_>,
    (real, alike): (&Real, &Real),
    made: &Generated,
    embedded: &AllEmbedded,
    events: &mut dyn Events<ValidateEvent>,
) -> Result<(Near, Pairs)> {
    let forms = forms(work.info, real.train.shape)?;
    let classes = match (&alike.train.labels, &alike.held_out.labels) {
        (Some(train), Some(held_out)) => Some((&train[..], [&made.labels[..], held_out].concat())),
        _ => None,
    };
    let labels: Vec<u8> = made.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
    let names = [&embedded.identity[..], &name_of(&alike.train), &name_of(&alike.held_out)].concat();
    let search = Search {
        work,
        real,
        embedded,
        queries: [&embedded.generated.features[..], &embedded.held_out.features].concat(),
        classes,
        name: fingerprint(&[names.as_bytes(), &made.pixels, &labels]),
    };
    let found = search.all(&forms, &mut work.stage(Stage::Nearest, events))?;
    let (of_made, of_real) = found.split_at(made.labels.len());
    let near = search.near(&forms, of_made, of_real)?;
    let pairs = Pairs {
        shape: real.train.shape,
        pairs: Compared {
            generated: search.pairs(&made.pixels, &near.closest.generated),
            held_out: search.pairs(&alike.held_out.pixels, &near.closest.held_out),
        },
    };
    Ok((near, pairs))
}

/// The forms in which training showed its images, by its record; as they are where there is none.
fn forms(info: &OracleInfo, shape: ImageShape) -> Result<Vec<Form>> {
    info.training.as_ref().map_or_else(|| Ok(vec![Form::default()]), |record| Form::all(&record.spec.data, shape))
}

/// Which forms they are, after "Training images are compared".
fn described(info: &OracleInfo, forms: usize) -> String {
    let Some(record) = &info.training else {
        return "as they are: the oracle has no record of its training, so whether that mirrored, turned or moved them \
                is not known"
            .into();
    };
    let data = &record.spec.data;
    let ways = [
        data.mirror.then(|| "mirrored or not".to_owned()),
        data.turn.then(|| "turned by every quarter turn".to_owned()),
        (data.shift > 0).then(|| format!("moved by up to {} px in each direction", data.shift)),
    ];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    if ways.is_empty() {
        return "as they are: by the oracle's record its training showed them so".into();
    }
    format!(
        "in all {forms} forms in which the oracle's training showed its images, by its record: {}. Features are those of every form; \
         images compared with them stay as they are, generated and held-out ones alike",
        listed(&ways)
    )
}

/// A search for the nearest training images.
struct Search<'a> {
    work: &'a Work<'a>,
    real: &'a Real,
    embedded: &'a AllEmbedded,
    /// Features of generated images, then of held-out ones, [n, d].
    queries: Vec<f32>,
    /// Classes of the training images and of the queries; none where some have none.
    classes: Option<(&'a [ClassId], Vec<ClassId>)>,
    /// A name for all that distances depend on beside the training images of a block.
    name: String,
}

impl Search<'_> {
    /// The nearest training image of every query; of equally near ones that of the earlier form, then the earlier one.
    fn all(&self, forms: &[Form], events: &mut dyn Events<Progress>) -> Result<Vec<Found>> {
        let n = self.real.train.len();
        let (total, mut done) = (forms.len() * n, 0);
        let mut found: Vec<Found> = Vec::new();
        for &form in forms {
            for first in (0..n).step_by(BLOCK) {
                events.report(Progress { done, total })?;
                let range = first..n.min(first + BLOCK);
                let mut forward = |p: Progress| events.emit(Progress { done: done + p.done, total });
                let near = self.block(form, range.clone(), &mut forward)?;
                done += range.len();
                if found.is_empty() {
                    found = near;
                    continue;
                }
                for (best, other) in found.iter_mut().zip(near) {
                    let in_class = best.in_class.min(other.in_class);
                    *best = Found { in_class, ..if other.distance < best.distance { other } else { *best } };
                }
            }
        }
        events.report(Progress { done, total })?;
        Ok(found)
    }

    /// The nearest of some of the training images in one form.
    fn block(&self, form: Form, range: Range<usize>, events: &mut dyn Events<Progress>) -> Result<Vec<Found>> {
        let dim = self.embedded.record.dims;
        let queries = Features::new(&self.queries, dim)?;
        let pixels = self.real.in_form(self.work, form, range.clone());
        let name = format!("nearest-{}.npz", fingerprint(&[self.name.as_bytes(), &pixels]));
        let (neighbours, distances) = table(&self.work.store, &name, (queries.n(), [1, 2]), || {
            let features = match form == Form::default() {
                // Those are known already.
                true => Cow::Borrowed(&self.embedded.train.features[range.start * dim..range.end * dim]),
                false => {
                    let x: Vec<f32> = unit(&pixels).collect();
                    self.embedded.net.embed(&x, self.real.train.shape, BATCH, events)?.features.into()
                }
            };
            let references = Features::new(&features, dim)?;
            let near = Neighbours::of(&queries, &references, 1)?;
            let in_class = match &self.classes {
                None => vec![f64::INFINITY; queries.n()],
                Some((train, asked)) => {
                    let classes = self.work.world.class_names().len();
                    nearest_in_cells((&queries, asked), (&references, &train[range.clone()]), classes)?
                }
            };
            let (distances, neighbours): (Vec<f64>, Vec<usize>) = (0..queries.n()).flat_map(|i| near.list(i)).unzip();
            let both = distances.into_iter().zip(in_class).flat_map(|(distance, in_class)| [distance, in_class]);
            Ok((neighbours.into_iter().map(|neighbour| neighbour as f32).collect(), both.collect()))
        })?;
        let found = |(neighbour, distances): (&f32, &[f64; 2])| {
            let [distance, in_class] = *distances;
            Found { distance, in_class, neighbour: range.start + *neighbour as usize, form }
        };
        Ok(neighbours.iter().zip(distances.as_chunks::<2>().0).map(found).collect())
    }

    /// The figures of the distances.
    fn near(&self, forms: &[Form], made: &[Found], real: &[Found]) -> Result<Near> {
        let [to_made, to_real] = [made, real].map(|set| set.iter().map(|found| found.distance).collect::<Vec<f64>>());
        let distances = Compared { generated: &to_made[..], held_out: &to_real[..] };
        let memory = memorisation(&distances, self.work.spec.threshold)?;
        let threshold_from = match self.work.spec.threshold {
            Some(_) => "given".to_owned(),
            None => {
                let share = memory.quantile.unwrap_or(memory.rate.held_out.value);
                let percent = (1e4 * share).round() / 1e2;
                format!("the distance within which {percent} % of held-out images lie")
            }
        };
        let copying = self.classes.as_ref().and_then(|(train, asked)| {
            let [to_made, to_real] =
                [made, real].map(|set| set.iter().map(|found| found.in_class).collect::<Vec<f64>>());
            let (of_made, of_real) = asked.split_at(made.len());
            let (classes, least) = (self.work.world.class_names().len(), CELL / made.len() as f64);
            // A class that only the held-out images have is no cell to compare in.
            data_copying(train, (&to_real, of_real), (&to_made, of_made), classes, least).ok()
        });
        Ok(Near {
            forms: forms.len(),
            forms_from: described(self.work.info, forms.len()),
            memory,
            threshold_from,
            histogram: histogram(&distances, BINS)?,
            copying,
            closest: Compared { generated: closest(made), held_out: closest(real) },
        })
    }

    /// Images of a set beside their nearest training images.
    fn pairs(&self, pixels: &[u8], closest: &[Close]) -> Vec<Pair> {
        let dims = self.real.train.shape.dims();
        let pair = |&Close { image, neighbour, form, distance }: &Close| Pair {
            distance,
            image,
            neighbour: self.real.train.ids[neighbour].clone(),
            form,
            pixels: [
                pixels[image * dims..(image + 1) * dims].to_vec(),
                self.real.in_form(self.work, form, neighbour..neighbour + 1),
            ],
        };
        closest.iter().map(pair).collect()
    }
}

/// The images nearest to a training image, nearest first; of equals the earlier first.
fn closest(found: &[Found]) -> Vec<Close> {
    let close =
        |(image, &Found { distance, neighbour, form, .. }): (usize, &Found)| Close { image, neighbour, form, distance };
    let mut pairs: Vec<Close> = found.iter().enumerate().map(close).collect();
    pairs.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    pairs.truncate(PAIRS);
    pairs
}
