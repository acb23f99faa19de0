//! The images of a training run: opened, reduced to the wanted classes, padded, split.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::order::by_class;
use super::spec::{DataSpec, TrainSpec};
use crate::data::{Dataset, ImageShape, Split, listed, open_dataset, open_test, places, sha256, sha256_of_pieces};
use crate::error::{Error, Result};
use crate::units::{ClassId, Seed};

/// One part of the corpus a spec describes. Where the corpus knows no parts, all of it, whichever
/// part is asked for.
///
/// # Errors
/// When it cannot be read, or lacks a class that is asked for.
pub fn corpus(spec: &DataSpec, split: Split) -> Result<Dataset> {
    corpus_and_shape(spec, split).map(|(all, _)| all)
}

/// [`corpus`], and the shape that its images had before they were padded.
///
/// # Errors
/// As [`corpus`].
pub fn corpus_and_shape(spec: &DataSpec, split: Split) -> Result<(Dataset, ImageShape)> {
    let read = open_dataset(&spec.path, split, spec.resize)?;
    let shape = read.shape;
    let all = fitted(spec, &spec.classes, read)?;
    match spec.limit.filter(|limit| split == Split::Train && *limit < all.len()) {
        Some(limit) => Ok((first(&all, limit)?, shape)),
        None => Ok((all, shape)),
    }
}

/// The test part of the corpus a spec describes, with those of the wanted classes that it has;
/// `None` where there is no such part.
///
/// # Errors
/// When it cannot be read, or has none of the classes that are asked for.
pub fn test_corpus(spec: &DataSpec) -> Result<Option<Dataset>> {
    let Some(all) = open_test(&spec.path, spec.resize)? else { return Ok(None) };
    let there: Vec<String> = spec.classes.iter().filter(|c| all.class_names.contains(c)).cloned().collect();
    fitted(spec, if there.is_empty() { &spec.classes } else { &there }, all).map(Some)
}

/// The test part of the corpus a spec describes as images of the flow that is trained on `train`:
/// of the same shape, with the same classes, found by their names. Not all of them need occur.
///
/// # Errors
/// Names the corpus and what keeps its test part from being tested on: as [`test_corpus`], another
/// shape, no labels, another class.
pub fn test_like(spec: &DataSpec, train: &Dataset) -> Result<Option<Dataset>> {
    let bad = |cause: String| {
        Error::file(&spec.path, format!("{cause}; mend its test part, or give the training part alone as data.path"))
    };
    let found = test_corpus(spec).map_err(|error| match error {
        Error::Input(why) => bad(why),
        error => error,
    });
    let Some(test) = found? else { return Ok(None) };
    if test.shape != train.shape {
        return Err(bad(format!("test images are {}, training images {}", test.shape, train.shape)));
    }
    if test.labels.is_none() {
        return Err(bad("test images have no labels".into()));
    }
    match places(&test.class_names, &train.class_names) {
        Some(numbers) => Ok(Some(test.renumbered(&numbers, &train.class_names))),
        None => {
            let (theirs, known) = (listed(&test.class_names), listed(&train.class_names));
            Err(bad(format!("test images have the classes {theirs}; training images {known}")))
        }
    }
}

/// The images of these classes (all where none is named), padded.
fn fitted(spec: &DataSpec, classes: &[String], all: Dataset) -> Result<Dataset> {
    let all = if classes.is_empty() { all } else { all.of_classes(classes)? };
    let (ImageShape { height, width, .. }, side) = (all.shape, spec.pad_to);
    if height.max(width) <= side {
        return all.pad_to(side);
    }
    Err(Error::input(format!(
        "{}: images of {height}×{width} do not fit into {side}×{side}; give a pad_to of at least {}, or, in the [data] of an \
         oracle's spec, resize = {side}, which scales image files down while they are read",
        all.name,
        height.max(width)
    )))
}

/// The first `limit` images; where they come class by class (as folders do), evenly from all.
fn first(all: &Dataset, limit: usize) -> Result<Dataset> {
    match by_class(all) {
        true => all.spread(limit),
        false => all.subset(0..limit),
    }
}

/// Images to train on, and those the best epoch is chosen by: the last ones of the corpus, or where
/// it comes class by class or in stretches of one class (as folders do) the last ones of a random order. Those to train on may be drawn with
/// replacement.
///
/// # Errors
/// When there is one class only, and when holding out leaves nothing, or nothing of a class: the flow would have learned
/// nothing of it, and its world would have posteriors of it.
pub fn split(all: &Dataset, spec: &TrainSpec) -> Result<(Dataset, Dataset)> {
    check_classes(all, &spec.data)?;
    let (train, held_out) = parts(all, spec)?;
    let Some(class) = missing(&train) else { return Ok((train, held_out)) };
    Err(Error::input(format!(
        "{} has no image of class {class} to train on, with {} of {} images held out; take more images, hold out fewer \
         (data.held_out), or name the other classes under data.classes",
        all.name,
        held_out.len(),
        all.len()
    )))
}

/// Of images without classes.
pub fn without_labels(corpus: &str) -> Error {
    Error::input(format!(
        "{corpus} has no labels: pictures lie in one subfolder for each class, and data.path is the folder around these; an .npz has \
         whole numbers [N] in an array y"
    ))
}

/// Whether there is a second class to tell the first from: every posterior of a world of one class is 1.
fn check_classes(all: &Dataset, spec: &DataSpec) -> Result<()> {
    let ([class], Some(_)) = (&all.class_names[..], &all.labels) else { return Ok(()) };
    let remedy = match spec.classes.is_empty() {
        true => "the subfolders of a folder are its classes: is data.path one level too high?",
        false => "name two or more under data.classes",
    };
    let cause = format!("all images are of one class, {class}, and a world needs two or more; {remedy}");
    Err(Error::file(&spec.path, cause))
}

/// [`split`], whatever classes there are: of a world that was trained already.
fn parts(all: &Dataset, spec: &TrainSpec) -> Result<(Dataset, Dataset)> {
    let held_out = spec.data.held_out;
    let kept = all.len().checked_sub(held_out).filter(|&n| n > 0).ok_or_else(|| {
        let n = all.len();
        Error::input(format!(
            "{} has {n} images; holding out {held_out} leaves none to train on (data.held_out says how many)",
            all.name
        ))
    })?;
    let mut order: Vec<usize> = (0..all.len()).collect();
    if by_class(all) {
        let seed = spec.data.split.unwrap_or(spec.training.seed);
        order.shuffle(&mut seed.split("split").rng(0));
    }
    let train = match spec.data.bootstrap {
        Some(seed) => resampled(&order[..kept], all.labels.as_deref(), seed),
        None => order[..kept].to_vec(),
    };
    Ok((all.subset(train)?, all.subset(order[kept..].iter().copied())?))
}

/// The first class that no image has, where they have labels.
fn missing(images: &Dataset) -> Option<&str> {
    let there: BTreeSet<&ClassId> = images.labels.as_ref()?.iter().collect();
    images.class_names.iter().enumerate().find(|(class, _)| !there.contains(class)).map(|(_, name)| &**name)
}

/// As many images drawn with replacement, at each place one of the class that is there.
fn resampled(images: &[usize], labels: Option<&[ClassId]>, seed: Seed) -> Vec<usize> {
    let class = |image: usize| labels.map_or(0, |labels| labels[image]);
    let mut members: BTreeMap<ClassId, Vec<usize>> = BTreeMap::new();
    images.iter().for_each(|&image| members.entry(class(image)).or_default().push(image));
    let mut rng = seed.rng(0);
    let draw = |&image: &usize| {
        let of_class = members.get(&class(image)).map_or(&[][..], Vec::as_slice);
        of_class.get(rng.random_range(0..of_class.len().max(1))).copied().unwrap_or(image)
    };
    images.iter().map(draw).collect()
}

/// The images that a run of this spec trains on where the corpus lies in `path`, and the SHA-256 by
/// which an oracle's record knows them.
///
/// # Errors
/// When the corpus cannot be read, or lacks what the spec asks for.
pub fn training_images(spec: &TrainSpec, path: &Path) -> Result<(Dataset, String)> {
    let spec = TrainSpec { data: DataSpec { path: path.to_owned(), ..spec.data.clone() }, ..spec.clone() };
    let (train, held_out) = parts(&corpus(&spec.data, Split::Train)?, &spec)?;
    let hash = pixels_sha256(&train, &held_out);
    Ok((train, hash))
}

/// SHA-256 of the training part as padded, held-out images included.
pub fn pixels_sha256(train: &Dataset, held_out: &Dataset) -> String {
    sha256_of_pieces(&[&train.pixels, &held_out.pixels])
}

/// SHA-256 of pixels (by their hash) and labels: a run resumes only with the same.
pub fn images_sha256(pixels_sha256: &str, train: &Dataset, held_out: &Dataset) -> String {
    let labels = [train, held_out].into_iter().flat_map(|part| part.labels.iter().flatten());
    let labels = labels.flat_map(|&label| (label as u64).to_le_bytes());
    sha256(&pixels_sha256.bytes().chain(labels).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset() -> Dataset {
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        let labels: Vec<usize> = (0..30).map(|i| i / 10).collect();
        let names = ["ape", "bee", "cow"].map(String::from).to_vec();
        let ids = (0..30).map(|i| i.to_string()).collect();
        let (name, pixels, labels) = ("zoo".into(), (0..30).collect(), Some(labels));
        Dataset { name, shape, pixels, labels, class_names: names, ids, noises: Default::default() }
    }

    #[test]
    fn wanted_classes_are_numbered_in_the_order_of_the_wish() {
        let part = dataset().of_classes(&["cow".into(), "ape".into()]).unwrap();
        assert_eq!(part.len(), 20);
        assert!(part.pixels.iter().zip(part.labels.unwrap()).all(|(p, label)| label == usize::from(*p < 10)));
        assert!(dataset().of_classes(&["elk".into()]).unwrap_err().to_string().contains("ape, bee, cow"));
    }

    #[test]
    fn a_part_of_a_corpus_in_order_of_classes_has_all_of_them() {
        let labels = |limit| first(&dataset(), limit).unwrap().labels.unwrap();
        assert_eq!(labels(6), [0, 0, 1, 1, 2, 2]);
        assert_eq!(labels(30), dataset().labels.unwrap());
        let mixed = Dataset { labels: Some((0..30).map(|i| i % 3).collect()), ..dataset() };
        assert_eq!(first(&mixed, 4).unwrap().pixels, [0, 1, 2, 3]);
    }

    #[test]
    fn a_corpus_without_a_test_part_is_not_tested_on_what_it_is_trained_on() {
        let folder = tempfile::tempdir().unwrap();
        let shape = ImageShape { channels: 1, height: 2, width: 2 };
        for class in ["a", "b"] {
            let path = folder.path().join("train").join(class);
            std::fs::create_dir_all(&path).unwrap();
            crate::data::write_png(&path.join("0.png"), shape, &[0, 1, 2, 3]).unwrap();
        }
        let spec = |path| -> DataSpec { toml::from_str(&format!("path = '{path}'")).unwrap() };
        let parts = spec(folder.path().display().to_string());
        assert_eq!(test_corpus(&parts).unwrap(), None);
        assert_eq!(test_corpus(&spec(folder.path().join("train").display().to_string())).unwrap(), None);
        std::fs::rename(folder.path().join("train/b"), folder.path().join("test-b")).unwrap();
        std::fs::create_dir_all(folder.path().join("test")).unwrap();
        std::fs::rename(folder.path().join("test-b"), folder.path().join("test/b")).unwrap();
        let test = test_corpus(&parts).unwrap().unwrap();
        assert_eq!((test.class_names, test.shape.width), (vec!["b".to_owned()], 32));
    }

    /// A picture in each of these folders of classes.
    fn folders(root: &Path, classes: &[&str], channels: usize) -> DataSpec {
        for class in classes {
            std::fs::create_dir_all(root.join(class)).unwrap();
            let shape = ImageShape { channels, height: 2, width: 2 };
            crate::data::write_png(&root.join(class).join("0.png"), shape, &vec![9; shape.dims()]).unwrap();
        }
        toml::from_str(&format!("path = '{}'", root.display())).unwrap()
    }

    #[test]
    fn test_images_have_the_classes_of_the_training_images_of_the_same_name() {
        let place = tempfile::tempdir().unwrap();
        let spec = folders(place.path(), &["train/cat", "train/dog", "train/wild", "test/cat", "test/wild"], 1);
        let labels = |spec: &DataSpec| {
            let train = corpus(spec, Split::Train).unwrap();
            let test = test_like(spec, &train).unwrap().unwrap();
            assert_eq!(test.class_names, train.class_names);
            test.labels.unwrap()
        };
        assert_eq!(labels(&spec), [0, 2]);
        let wanted = |names: &[&str]| DataSpec {
            classes: names.iter().map(|name| (*name).to_owned()).collect(),
            ..spec.clone()
        };
        assert_eq!(labels(&wanted(&["dog", "wild", "cat"])), [2, 1]);
        let dogs = wanted(&["dog"]);
        let why = test_like(&dogs, &corpus(&dogs, Split::Train).unwrap()).unwrap_err().to_string();
        assert!(why.contains("'dog'") && why.contains(&place.path().display().to_string()), "{why}");
    }

    #[test]
    fn images_that_do_not_fit_name_the_keys() {
        let place = tempfile::tempdir().unwrap();
        let small = DataSpec { pad_to: 1, ..folders(place.path(), &["cat", "dog"], 1) };
        let why = corpus(&small, Split::Train).unwrap_err().to_string();
        assert!(why.contains("2×2 do not fit into 1×1; give a pad_to of at least 2, or"), "{why}");
    }

    #[test]
    fn what_cannot_be_tested_on_is_said_before_training() {
        let complaint = |test: &[&str], channels| {
            let place = tempfile::tempdir().unwrap();
            let spec = folders(place.path(), &["train/cat", "train/dog"], 1);
            folders(place.path(), test, channels);
            let why = test_like(&spec, &corpus(&spec, Split::Train).unwrap()).unwrap_err().to_string();
            assert!(why.contains(&place.path().display().to_string()) && why.contains("data.path"), "{why}");
            why
        };
        assert!(complaint(&["test/cat", "test/wolf"], 1).contains("the classes cat, wolf; training images cat, dog"));
        assert!(complaint(&["test/cat"], 3).contains("3×32×32, training images 1×32×32"));
        assert!(complaint(&["test"], 1).contains("no labels"));
    }

    #[test]
    fn other_pixels_and_other_labels_are_other_images() {
        let hash = |all: &Dataset| {
            let (train, held_out) = (all.subset(0..20).unwrap(), all.subset(20..30).unwrap());
            images_sha256(&pixels_sha256(&train, &held_out), &train, &held_out)
        };
        let one = dataset();
        let mut pixels = one.clone();
        pixels.pixels[29] = 0;
        let labels = Dataset { labels: Some((0..30).map(|i| usize::from(i != 29) * (i / 10)).collect()), ..dataset() };
        assert_eq!(hash(&one), hash(&dataset()));
        let (train, held_out) = (one.subset(0..20).unwrap(), one.subset(20..30).unwrap());
        assert_eq!(pixels_sha256(&train, &held_out), crate::data::sha256(&one.pixels));
        assert!(hash(&one) != hash(&pixels) && hash(&one) != hash(&labels));
    }

    #[test]
    fn a_corpus_in_order_of_classes_twice_holds_out_all_of_them() {
        let mut spec: TrainSpec = toml::from_str("name = 'x'\n[data]\npath = 'd'").unwrap();
        spec.data.held_out = 20;
        let twice = dataset().subset((0..30).chain(0..30)).unwrap();
        let (train, held_out) = split(&twice, &spec).unwrap();
        for part in [train, held_out] {
            assert_eq!(part.labels.unwrap().iter().collect::<BTreeSet<_>>().len(), 3);
        }
        assert_eq!(first(&twice, 6).unwrap().labels.unwrap(), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_corpus_in_order_of_classes_is_split_at_random_and_wholly() {
        let mut spec: TrainSpec = toml::from_str("name = 'x'\n[data]\npath = 'd'").unwrap();
        spec.data.held_out = 9;
        let (train, held_out) = split(&dataset(), &spec).unwrap();
        let mut all = [train.pixels, held_out.pixels].concat();
        assert!(held_out.labels.unwrap().iter().collect::<std::collections::HashSet<_>>().len() > 1);
        all.sort_unstable();
        assert_eq!(all, (0..30).collect::<Vec<u8>>());
    }

    #[test]
    fn a_class_without_an_image_to_train_on_is_refused_by_name() {
        let mut spec: TrainSpec = toml::from_str("name = 'x'\n[data]\npath = 'd'\nheld_out = 9").unwrap();
        let refusal = |all: &Dataset, spec: &TrainSpec| split(all, spec).unwrap_err().to_string();
        let named = Dataset { class_names: ["ape", "bee", "cow", "elk"].map(String::from).to_vec(), ..dataset() };
        assert!(refusal(&named, &spec).contains("class elk"));
        // The last ones of the corpus are held out, all cows among them.
        let labels = (0..30).map(|i| if i < 21 { i % 2 } else { 2 }).collect();
        let mixed = Dataset { labels: Some(labels), ..dataset() };
        assert!(refusal(&mixed, &spec).contains("class cow"));
        spec.data.held_out = 8;
        split(&mixed, &spec).unwrap();
    }

    #[test]
    fn a_world_of_one_class_is_not_trained() {
        let spec = |classes: &str| -> TrainSpec {
            toml::from_str(&format!("name = 'x'\n[data]\npath = 'd'\nheld_out = 3\nclasses = [{classes}]")).unwrap()
        };
        let refusal = |all: Dataset, classes| split(&all, &spec(classes)).unwrap_err().to_string();
        let bees = dataset().of_classes(&["bee".into()]).unwrap();
        let why = refusal(bees.clone(), "");
        assert!(why.contains("of one class, bee") && why.contains("data.path one level too high"), "{why}");
        assert!(refusal(bees, "'bee'").contains("data.classes"));
        split(&dataset().of_classes(&["bee".into(), "cow".into()]).unwrap(), &spec("")).unwrap();
    }

    #[test]
    fn a_bootstrap_keeps_the_classes_and_what_is_held_out() {
        let mut spec: TrainSpec = toml::from_str("name = 'x'\n[data]\npath = 'd'").unwrap();
        spec.data.held_out = 9;
        let (train, held_out) = split(&dataset(), &spec).unwrap();
        spec.data.bootstrap = Some(Seed(4));
        let (drawn, same) = split(&dataset(), &spec).unwrap();
        assert_eq!((&drawn.labels, &same), (&train.labels, &held_out));
        // Only images that are there, some of them several times.
        let different: std::collections::BTreeSet<&u8> = drawn.pixels.iter().collect();
        assert!(drawn.pixels.iter().all(|pixel| train.pixels.contains(pixel)));
        assert!((8..20).contains(&different.len()), "{} of 21", different.len());
        spec.data.bootstrap = Some(Seed(5));
        assert_ne!(split(&dataset(), &spec).unwrap().0.pixels, drawn.pixels);
        // Another training holds out other images, unless it is told which.
        let kept = spec.training.seed;
        spec.training.seed = kept.split("world");
        assert_ne!(split(&dataset(), &spec).unwrap().1.pixels, held_out.pixels);
        spec.data.split = Some(kept);
        assert_eq!(split(&dataset(), &spec).unwrap().1, held_out);
    }
}
