//! The images of a training run: opened, reduced to the wanted classes, padded, split.

use rand::seq::SliceRandom;

use super::spec::{DataSpec, TrainSpec};
use crate::data::{Dataset, Input, Split, open_dataset_within, open_test_within};
use crate::error::{Error, Result};

/// One part of the corpus a spec describes. Where the corpus knows no parts, all of it, whichever part is asked for.
///
/// # Errors
/// When it cannot be read, or lacks a class that is asked for.
pub fn corpus(spec: &DataSpec, split: Split) -> Result<Dataset> {
    let all = fitted(spec, open_dataset_within(&spec.path, split, spec.resize)?)?;
    match spec.limit.filter(|limit| split == Split::Train && *limit < all.len()) {
        Some(limit) => first(&all, limit),
        None => Ok(all),
    }
}

/// The test part of the corpus a spec describes; `None` where it has none.
///
/// # Errors
/// As [`corpus`].
pub fn test_corpus(spec: &DataSpec) -> Result<Option<Dataset>> {
    match open_test_within(&spec.path, spec.resize)? {
        Some(Input::Pixels(all)) => fitted(spec, all).map(Some),
        Some(Input::World(_)) => {
            Err(Error::file(&spec.path, "its test part holds world-space tensors, not 8-bit images"))
        }
        None => Ok(None),
    }
}

/// The wanted classes, padded.
fn fitted(spec: &DataSpec, all: Dataset) -> Result<Dataset> {
    let all = if spec.classes.is_empty() { all } else { all.of_classes(&spec.classes)? };
    all.pad_to(spec.pad_to)
}

/// The first so many images; where they come class by class (as folders do), evenly from all of them.
fn first(all: &Dataset, limit: usize) -> Result<Dataset> {
    match by_class(all) {
        true => all.subset((0..limit).map(|i| i * all.len() / limit)),
        false => all.subset(0..limit),
    }
}

/// Whether the images come class by class.
fn by_class(all: &Dataset) -> bool {
    all.labels.as_ref().is_some_and(|labels| labels.is_sorted())
}

/// Images to train on, and those the best epoch is chosen by: the last ones of the corpus, or where it comes class by class (as
/// folders do) the last ones of a random order.
///
/// # Errors
/// When holding out leaves nothing.
pub fn split(all: &Dataset, spec: &TrainSpec) -> Result<(Dataset, Dataset)> {
    let held_out = spec.data.held_out;
    let kept = all.len().checked_sub(held_out).filter(|&n| n > 0).ok_or_else(|| {
        Error::input(format!("{} has {} images; holding out {held_out} leaves none to train on", all.name, all.len()))
    })?;
    let mut order: Vec<usize> = (0..all.len()).collect();
    if by_class(all) {
        order.shuffle(&mut spec.training.seed.split("split").rng(0));
    }
    Ok((all.subset(order[..kept].iter().copied())?, all.subset(order[kept..].iter().copied())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;

    fn dataset() -> Dataset {
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        let labels: Vec<usize> = (0..30).map(|i| i / 10).collect();
        let names = ["ape", "bee", "cow"].map(String::from).to_vec();
        let ids = (0..30).map(|i| i.to_string()).collect();
        Dataset { name: "zoo".into(), shape, pixels: (0..30).collect(), labels: Some(labels), class_names: names, ids }
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
}
