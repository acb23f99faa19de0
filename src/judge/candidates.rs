//! Models as a user names them, on the images of a dataset.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use burn::tensor::Device;

use super::progress::{JudgeEvent, Stage};
use super::{Note, Predictions, ReadOptions, Report, Truth, judge};
use crate::classifier::onnx::{OnnxClassifier, OnnxOptions};
use crate::classifier::{CheckpointClassifier, CheckpointOptions, ExpectedImages};
use crate::data::{ImageShape, NpzImages, Split, sha256_of_file};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::units::Seed;

/// Images read at a time, at most, and their bytes, about.
const PIECE: usize = 1024;
const PIECE_BYTES: usize = 64 << 20;

/// A model to be judged.
#[derive(Debug, Clone, PartialEq)]
pub enum Candidate {
    /// What it said of the images, in a file.
    Predictions {
        /// The file.
        path: PathBuf,
        /// What is known about it.
        options: ReadOptions,
    },
    /// A network of any framework that is run here.
    Onnx {
        /// The file.
        path: PathBuf,
        /// What is known about it.
        options: OnnxOptions,
    },
    /// A network of the zoo that is run here.
    Checkpoint {
        /// The file: a cell's checkpoint, or a state dict.
        path: PathBuf,
        /// What is known about it, where it does not say it itself.
        options: CheckpointOptions,
    },
}

/// Answers of a network, log q [n, K], on images (NCHW), which begin with that of a number.
type Network<'a> = dyn Fn(&[f32], usize, &mut dyn Events<Progress>) -> Result<Vec<f64>> + 'a;

/// Judges models on a split of a dataset; runs networks on its images, the zoo's on `device`.
///
/// # Errors
/// When the dataset has no truth, a model does not fit it, or the caller stops; names the file.
pub fn assess(
    dataset: &Path,
    split: Split,
    candidates: &[Candidate],
    seed: Seed,
    device: &Device,
    events: &mut dyn Events<JudgeEvent>,
) -> Result<Report> {
    let mut hashing = |progress| events.emit(JudgeEvent { stage: Stage::Truth, progress });
    let truth = Truth::open(dataset, split, &mut hashing)?;
    let mut models = Vec::with_capacity(candidates.len());
    for (done, candidate) in candidates.iter().enumerate() {
        let stage = Stage::Reading(stem(candidate.path()));
        events.report(JudgeEvent { stage, progress: Progress { done, total: candidates.len() } })?;
        models.push(candidate.answers(&truth, device, events)?);
    }
    make_names_unique(&mut models, candidates);
    judge(&truth, &models, seed, events)
}

impl Candidate {
    /// Its file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Predictions { path, .. } | Self::Onnx { path, .. } | Self::Checkpoint { path, .. } => path,
        }
    }

    fn answers(&self, truth: &Truth, device: &Device, events: &mut dyn Events<JudgeEvent>) -> Result<Predictions> {
        match self {
            Self::Predictions { path, options } => Predictions::read(path, truth, options),
            Self::Onnx { path, options } => {
                let images = images(truth)?;
                let options = OnnxOptions { range: truth.pixel_range, ..options.clone() };
                let network = OnnxClassifier::open(path, Some(images.shape()), truth.classes, &options)?;
                let sha256 = sha256_of_file(path, &mut silent())?;
                let name = stem(path);
                let answers = |x: &[f32], first: usize, events: &mut dyn Events<Progress>| {
                    network.log_probabilities(x, first, events)
                };
                let mut found = run(&name, &answers, &images, truth, events)?;
                found.notes.insert(0, Note::Network(network.info()));
                found.network_sha256 = Some(sha256);
                Ok(found)
            }
            Self::Checkpoint { path, options } => {
                let images = images(truth)?;
                let asked = ExpectedImages { shape: images.shape(), classes: truth.classes, range: truth.pixel_range };
                let network = CheckpointClassifier::open(path, &asked, options, device)?;
                let sha256 = sha256_of_file(path, &mut silent())?;
                let name = network.name.clone().unwrap_or_else(|| stem(path));
                let mut found =
                    run(&name, &|x, _, events| network.log_probabilities(x, events), &images, truth, events)?;
                let unfinished = network.steps.filter(|[step, steps]| step < steps);
                found.notes.extend(unfinished.map(|[step, steps]| Note::Unfinished { step, steps }));
                let other = network.world.as_ref().zip(truth.origin.weights_sha256.as_ref());
                let other = other.filter(|(theirs, ours)| !theirs.eq_ignore_ascii_case(ours));
                found.notes.extend(other.map(|(theirs, _)| Note::OtherWorld { weights_sha256: theirs.clone() }));
                found.network_sha256 = Some(sha256);
                Ok(found)
            }
        }
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The float images of a truth.
fn images(truth: &Truth) -> Result<NpzImages> {
    let archive = truth.archive();
    NpzImages::open(&archive)?
        .ok_or_else(|| Error::file(&archive, "has 8-bit images: a network is judged on the float images of an export"))
}

/// Images of a shape that are read at a time.
fn piece(shape: ImageShape) -> usize {
    let bytes = shape.dims().saturating_mul(4).max(1);
    (PIECE_BYTES / bytes).clamp(1, PIECE)
}

/// What a network says of the images of a truth, read piece by piece.
fn run(
    name: &str,
    network: &Network<'_>,
    images: &NpzImages,
    truth: &Truth,
    events: &mut dyn Events<JudgeEvent>,
) -> Result<Predictions> {
    let (total, mut log_q) = (images.len(), Vec::new());
    let step = piece(images.shape());
    for first in (0..total).step_by(step) {
        let range = first..total.min(first + step);
        let mut forward = |piece: Progress| {
            let progress = Progress { done: first + piece.done, total };
            events.emit(JudgeEvent { stage: Stage::Running(name.to_owned()), progress })
        };
        log_q.extend(network(&images.read(range)?, first, &mut forward)?);
    }
    Predictions::of_logits(name, &log_q, truth)
}

/// Models of the same name get folders of their files too, as many as tell them apart (cells of one run differ by the last
/// one), and a number where no folder does: a name that is there twice would be refused once all networks have run.
fn make_names_unique(models: &mut [Predictions], candidates: &[Candidate]) {
    let names: Vec<String> = models.iter().map(|model| model.name.clone()).collect();
    for (i, (model, candidate)) in models.iter_mut().zip(candidates).enumerate() {
        let alike = (0..names.len()).filter(|&other| other != i && names[other] == names[i]);
        let alike: Vec<&Path> = alike.map(|other| candidates[other].path()).collect();
        let folders = folders_apart(candidate.path(), &alike);
        if !alike.is_empty() && !folders.is_empty() {
            model.name = format!("{} ({folders})", names[i]);
        }
    }
    let mut taken: HashSet<String> = HashSet::new();
    for model in models {
        let name = model.name.clone();
        let numbered = (2..).map(|number: usize| format!("{name} {number}"));
        if let Some(free) = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)) {
            taken.insert(free.clone());
            model.name = free;
        }
    }
}

/// As few of the last folders of a file as tell it from `others`; the last one where these lie in the same folder.
fn folders_apart(path: &Path, others: &[&Path]) -> String {
    let elsewhere = || others.iter().filter(move |other| other.parent() != path.parent());
    let tells = |count: &usize| elsewhere().all(|other| folders(other, *count) != folders(path, *count));
    folders(path, (1..=path.components().count()).find(tells).unwrap_or(1))
}

/// The last `count` folders that a file is said to lie in: `a/run`.
fn folders(path: &Path, count: usize) -> String {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    let names: Vec<String> = path.parent().into_iter().flat_map(Path::components).filter_map(name).collect();
    names[names.len().saturating_sub(count)..].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::toy;

    #[test]
    fn models_of_one_name_are_told_apart_by_their_folders_or_a_number() {
        let truth = toy(2, 3, 1.0, Seed(1));
        let named = |paths: &[&str]| -> Vec<String> {
            let candidate = |path: &&str| Candidate::Predictions { path: path.into(), options: ReadOptions::default() };
            let candidates: Vec<Candidate> = paths.iter().map(candidate).collect();
            let model = |one: &Candidate| Predictions::of_logits(stem(one.path()), &[0.0; 6], &truth).unwrap();
            let mut models: Vec<Predictions> = candidates.iter().map(model).collect();
            make_names_unique(&mut models, &candidates);
            models.into_iter().map(|model| model.name).collect()
        };
        assert_eq!(named(&["x/run/m.csv", "z/run/m.csv"]), ["m (x/run)", "m (z/run)"]);
        assert_eq!(named(&["run/a/m.csv", "run/b/m.csv", "n.csv"]), ["m (a)", "m (b)", "n"]);
        assert_eq!(named(&["m.csv", "run/m.csv", "a/run/m.csv"]), ["m", "m (run)", "m (a/run)"]);
        assert_eq!(named(&["x/run/m.csv", "x/run/m.csv"]), ["m (run)", "m (run) 2"]);
        assert_eq!(named(&["m.csv", "m.onnx", "m 2.csv"]), ["m", "m 2", "m 2 2"]);
    }

    #[test]
    fn pieces_take_the_same_room_whatever_the_size_of_images() {
        let of = |side: usize| piece(ImageShape { channels: 3, height: side, width: side });
        assert_eq!([of(28), of(64), of(256), of(2048), of(1 << 20)], [1024, 1024, 85, 1, 1]);
    }
}
