//! Pictures that an export of a world wrote. Their levels stand for values of the world, over a range that
//! `dataset.json` tells, and not for the brightness of a photograph.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::Deserialize;

use super::classes::{listed, places};
use super::json::read_json;
use super::levels::Levels;
use super::reader::Input;
use super::world::WorldBatch;
use super::{DATASET, Dataset};
use crate::error::{Error, Result};

/// Folders around a picture that may be its dataset's: class, split and depth lie between.
const ABOVE: usize = 4;
/// Folder of the pictures of 16 bits.
const DEEP: &str = "png16";
/// Bits of the pictures that are read.
const BITS: u32 = 8;

/// What `dataset.json` says of pictures.
#[derive(Debug, Deserialize)]
struct Exported {
    #[serde(default)]
    oracle: String,
    #[serde(default)]
    weights_sha256: String,
    class_names: Vec<String>,
    splits: BTreeMap<String, Split>,
}

#[derive(Debug, Deserialize)]
struct Split {
    /// By their bits.
    #[serde(default)]
    pictures: BTreeMap<u32, Cost>,
}

#[derive(Debug, Deserialize)]
struct Cost {
    levels: Levels,
}

impl Exported {
    /// Of the exported dataset that `path` is, or whose pictures lie there; a `dataset.json` of others is none.
    fn around(path: &Path) -> Option<(Self, Levels)> {
        let path = std::path::absolute(Path::new(".").join(path)).ok()?;
        path.ancestors().take(ABOVE + 1).find_map(|root| {
            let found: Self = read_json(&root.join(DATASET)).ok()??;
            let first = path.strip_prefix(root).ok()?.components().next();
            let of_pictures = |name: &str| name == DEEP || found.splits.contains_key(name);
            let is_there = match first {
                None => true,
                Some(Component::Normal(name)) => name.to_str().is_some_and(of_pictures),
                Some(_) => false,
            };
            let of =
                |bits: u32| found.splits.values().find_map(|split| split.pictures.get(&bits)).map(|cost| cost.levels);
            let levels = match first {
                None => of(BITS).or_else(|| of(2 * BITS)),
                Some(folder) if folder.as_os_str() == DEEP => of(2 * BITS),
                Some(_) => of(BITS),
            }?;
            is_there.then_some((found, levels))
        })
    }
}

/// Returns whether a path is an exported dataset with pictures of 8 or 16 bits, or lies in one.
pub(super) fn is_exported(path: &Path) -> bool {
    Exported::around(path).is_some()
}

/// A world that images are opened in.
#[derive(Debug, Clone, Copy)]
pub struct Home<'a> {
    /// SHA-256 of its weights; empty where unknown.
    pub weights_sha256: &'a str,
    /// Names of its classes.
    pub class_names: &'a [String],
}

/// What was read, as a world has it.
#[derive(Debug, Clone)]
pub struct InWorld {
    /// The images.
    pub input: Input,
    /// Names of the pictures of an exported dataset; of other images none.
    pub ids: Vec<String>,
    /// What is to be said where pictures were exported from another world. Labels by its class names are those of this one.
    pub note: Option<String>,
}

/// Pixels of an exported dataset's pictures as the values of the world that their levels stand for, the middles of what
/// was rounded to them; other images as they are. `path` is where they were read, `home` the world they are opened in: a
/// picture of another world keeps its label where the names of that world's classes are all among those of this one.
///
/// # Errors
/// When the pictures have 16 bits, of which pixels keep 8, or a folder has the name of no class of the dataset.
pub fn in_world(input: Input, path: &Path, home: Home<'_>) -> Result<InWorld> {
    let as_it_is = |input| InWorld { input, ids: Vec::new(), note: None };
    let Input::Pixels(images) = input else { return Ok(as_it_is(input)) };
    let Some((exported, levels)) = Exported::around(path) else {
        return Ok(as_it_is(Input::Pixels(images)));
    };
    if levels.bits != BITS {
        return Err(Error::file(
            path,
            "holds pictures of an exported dataset with 16 bits, which are not read back: take train.npz or test.npz, or pictures of 8 bits",
        ));
    }
    let Dataset { shape, pixels, labels, class_names: folders, ids, .. } = images;
    let known = &exported.class_names;
    let labels = labels.map(|labels| {
        let numbers = places(&folders, known).ok_or_else(|| {
            let known = known.join(", ");
            Error::file(path, format!("lies in a dataset of the classes {known}, and a folder is none of them"))
        })?;
        Ok(labels.into_iter().map(|label| numbers[label]).collect())
    });
    let labels: Option<Vec<usize>> = labels.transpose()?;
    let x = pixels.into_iter().map(|level| levels.value(level.into())).collect();
    let (labels, classes, note) = exported.labels_in(labels, home);
    let y = labels.map(|labels| labels.into_iter().map(|label| label as i64).collect());
    let input = Input::World(WorldBatch { shape, x, classes, y, posterior: None, logp: None, aleatoric: None });
    Ok(InWorld { input, ids, note: note.map(|note| format!("{}: {note}", path.display())) })
}

impl Exported {
    /// Labels of its classes as those of a world, the number of the classes they are of, and what is to be said where
    /// that is not the world it was exported from.
    fn labels_in(&self, labels: Option<Vec<usize>>, home: Home<'_>) -> (Option<Vec<usize>>, usize, Option<String>) {
        let Self { oracle, weights_sha256, class_names, .. } = self;
        if !weights_sha256.is_empty() && weights_sha256 == home.weights_sha256 {
            return (labels, class_names.len(), None);
        }
        let weights = weights_sha256.get(..12).unwrap_or(weights_sha256);
        let note = format!(
            "pictures of another world, {oracle} (weights {weights}), whose values are taken for values of this one"
        );
        match (labels, places(class_names, home.class_names)) {
            (None, _) => (None, home.class_names.len(), Some(note)),
            (Some(labels), Some(numbers)) => {
                let labels = labels.into_iter().map(|label| numbers[label]).collect();
                (Some(labels), home.class_names.len(), Some(format!("{note}; classes are matched by name")))
            }
            (Some(_), None) => {
                let (theirs, ours) = (listed(class_names), listed(home.class_names));
                let left_out = format!(
                    "{note}; its classes ({theirs}) are not those of this world ({ours}), and its labels are left out"
                );
                (None, home.class_names.len(), Some(left_out))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ImageShape, encode_png, encode_png16, open, open_dataset, open_test, write_named};
    use super::*;

    const WEIGHTS: &str = "0123456789abcdef";

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// The test pictures of an export of the classes dog, Cat, ape: image 0 is a Cat, 1 a dog, 2 a Cat, with the levels 0, 51 and 255
    /// of a range from −1 to 4; folders as `export` calls them, for the names are not sorted.
    fn exported(root: &Path) {
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        for (i, (folder, level)) in [("1 Cat", 0u8), ("0 dog", 51), ("1 Cat", 255)].into_iter().enumerate() {
            let (eight, sixteen) = (root.join("test").join(folder), root.join("png16/test").join(folder));
            [&eight, &sixteen].into_iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
            write_named(&eight, &format!("{i:06}.png"), &encode_png(shape, &[level]).unwrap()).unwrap();
            write_named(&sixteen, &format!("{i:06}.png"), &encode_png16(shape, &[257]).unwrap()).unwrap();
        }
        let levels = |bits: u32| serde_json::json!({ "levels": { "bits": bits, "low": -1.0, "high": 4.0 } });
        let dataset = serde_json::json!({
            "oracle": "zoo", "weights_sha256": WEIGHTS, "class_names": ["dog", "Cat", "ape"],
            "splits": { "test": { "pictures": { "8": levels(8), "16": levels(16) } } },
        });
        write_named(root, DATASET, dataset.to_string().as_bytes()).unwrap();
    }

    /// Values, labels, names of the pictures and the note, as a world of these weights and classes has them.
    fn read(path: &Path, weights: &str, classes: &str) -> Result<(WorldBatch, Vec<String>, Option<String>)> {
        let (input, classes) = (open(path).unwrap(), names(classes));
        match in_world(input, path, Home { weights_sha256: weights, class_names: &classes })? {
            InWorld { input: Input::World(batch), ids, note } => Ok((batch, ids, note)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pictures_of_a_world_come_back_as_its_values() {
        let place = tempfile::tempdir().unwrap();
        exported(place.path());
        let (batch, ids, note) = read(&place.path().join("test"), WEIGHTS, "dog Cat ape").unwrap();
        // Folder by folder: the dog, then both cats. −1 + 5·51/255 = 0.
        assert_eq!((batch.x, batch.y, batch.classes, note), (vec![0.0, -1.0, 4.0], Some(vec![0, 1, 1]), 3, None));
        assert!(ids.iter().zip(["000001", "000000", "000002"]).all(|(id, number)| id.contains(number)), "{ids:?}");
        let (one, ids, _) = read(&place.path().join("test/1 Cat/000002.png"), WEIGHTS, "dog Cat ape").unwrap();
        assert_eq!((one.x, one.y, ids.len()), (vec![4.0], None, 1));
        let why = read(&place.path().join("png16/test"), WEIGHTS, "dog Cat ape").unwrap_err().to_string();
        assert!(why.contains("16 bits, which are not read back"), "{why}");
        std::fs::rename(place.path().join("test/0 dog"), place.path().join("test/fox")).unwrap();
        assert!(
            read(&place.path().join("test"), WEIGHTS, "dog Cat ape").unwrap_err().to_string().contains("none of them")
        );
    }

    #[test]
    fn labels_of_another_world_count_by_their_names_alone() {
        let place = tempfile::tempdir().unwrap();
        exported(place.path());
        let test = place.path().join("test");
        let (batch, _, note) = read(&test, "fedcba", "ape Cat dog elk").unwrap();
        assert_eq!((batch.x, batch.y, batch.classes), (vec![0.0, -1.0, 4.0], Some(vec![2, 1, 1]), 4));
        assert!(note.is_some_and(|note| note.contains("another world, zoo") && note.ends_with("matched by name")));
        // As many classes of other names, or a class too few: a number says nothing.
        for classes in ["0 1 2", "dog Cat"] {
            let (batch, _, note) = read(&test, "", classes).unwrap();
            assert_eq!((batch.len(), batch.y), (3, None));
            assert!(note.is_some_and(|note| note.contains("(dog, Cat, ape)") && note.ends_with("labels are left out")));
        }
        let (batch, _, note) = read(&test.join("0 dog/000001.png"), "fedcba", "dog").unwrap();
        assert!(batch.y.is_none() && note.is_some_and(|note| note.ends_with("values of this one")));
    }

    #[test]
    fn exported_pictures_are_no_photographs() {
        let place = tempfile::tempdir().unwrap();
        exported(place.path());
        for path in ["", "test", "test/0 dog", "png16/test"] {
            let path = place.path().join(path);
            let why = open_dataset(&path, super::super::Split::Test, None).unwrap_err().to_string();
            assert!(why.contains("pictures of an exported dataset"), "{why}");
        }
        assert!(open_test(place.path(), None).unwrap_err().to_string().contains("exported dataset"));
        // The same pictures without their record.
        std::fs::remove_file(place.path().join(DATASET)).unwrap();
        std::fs::remove_dir_all(place.path().join("png16")).unwrap();
        assert_eq!(open_test(place.path(), None).unwrap().map(|images| images.len()), Some(3));
    }
}
