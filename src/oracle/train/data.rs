//! The images of a training run: opened, reduced to the wanted classes, padded, split.

use rand::seq::SliceRandom;

use super::spec::{DataSpec, TrainSpec};
use crate::data::{Dataset, Split, open_dataset};
use crate::error::{Error, Result};

/// One part of the corpus a spec describes.
///
/// # Errors
/// When it cannot be read, or lacks a class that is asked for.
pub fn corpus(spec: &DataSpec, split: Split) -> Result<Dataset> {
    let all = open_dataset(&spec.path, split)?;
    let all = if spec.classes.is_empty() { all } else { only(&all, &spec.classes)? };
    let all = all.pad_to(spec.pad_to)?;
    match spec.limit.filter(|_| split == Split::Train) {
        Some(limit) => all.subset(0..limit.min(all.len())),
        None => Ok(all),
    }
}

/// The images of the named classes, numbered in that order.
fn only(all: &Dataset, classes: &[String]) -> Result<Dataset> {
    let find = |name: &String| {
        let found = all.class_names.iter().position(|class| class == name);
        found.ok_or_else(|| {
            Error::input(format!("{} has no class '{name}'; it has {}", all.name, all.class_names.join(", ")))
        })
    };
    let wanted: Vec<usize> = classes.iter().map(find).collect::<Result<_>>()?;
    let labels = all.labels.as_deref().unwrap_or_default();
    let new = |label: usize| wanted.iter().position(|class| *class == label);
    let mut part = all.subset((0..labels.len()).filter(|&i| new(labels[i]).is_some()))?;
    part.class_names = classes.to_vec();
    part.labels = part.labels.map(|labels| labels.into_iter().filter_map(new).collect());
    Ok(part)
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
    if all.labels.as_ref().is_some_and(|labels| labels.is_sorted()) {
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
        let part = only(&dataset(), &["cow".into(), "ape".into()]).unwrap();
        assert_eq!(part.len(), 20);
        assert!(part.pixels.iter().zip(part.labels.unwrap()).all(|(p, label)| label == usize::from(*p < 10)));
        assert!(only(&dataset(), &["elk".into()]).unwrap_err().to_string().contains("ape, bee, cow"));
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
