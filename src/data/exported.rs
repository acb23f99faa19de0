//! Pictures and archives that an export of a world wrote. The levels of pictures stand for values of the world, over a
//! range that `dataset.json` tells, and not for the brightness of a photograph; labels are of the classes that it names.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::Deserialize;

use super::Dataset;
use super::classes::{listed, places};
use super::folder_kind::DATASET;
use super::home::{Home, OfWorld};
use super::json::read_json;
use super::levels::Levels;
use super::reader::Input;
use super::world::WorldBatch;
use crate::error::{Error, Result};

/// Folders around a picture that may be its dataset's: class, split and depth lie between.
const ABOVE: usize = 4;
/// Folder of the pictures of 16 bits.
const DEEP: &str = "png16";
/// Bits of the pictures that are read.
const BITS: u32 = 8;

/// What `dataset.json` says of images.
#[derive(Debug, Deserialize)]
struct Exported {
    #[serde(default)]
    oracle: String,
    #[serde(flatten)]
    of: OfWorld,
    class_names: Vec<String>,
    splits: BTreeMap<String, Split>,
    /// SHA-256 of its files, by name.
    #[serde(default)]
    files: BTreeMap<String, String>,
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

    /// Of the exported dataset one of whose archives `path` is, or that has training images in that folder.
    fn listing(path: &Path) -> Option<Self> {
        let archive = if path.is_dir() { path.join("train.npz") } else { path.to_owned() };
        let found: Self = read_json(&archive.with_file_name(DATASET)).ok()??;
        found.files.contains_key(archive.file_name()?.to_str()?).then_some(found)
    }
}

/// Returns whether a path is an exported dataset with pictures of 8 or 16 bits, or lies in one.
pub(super) fn is_exported(path: &Path) -> bool {
    Exported::around(path).is_some()
}

/// Returns whether a folder of this name is one of a class of the exported dataset whose pictures lie in `root`.
pub(super) fn is_exported_class(root: &Path, name: &str) -> bool {
    Exported::around(root).is_some_and(|(exported, _)| places(&[name.to_owned()], &exported.class_names).is_some())
}

/// What was read, as a world has it.
#[derive(Debug, Clone)]
pub struct InWorld {
    /// The images.
    pub input: Input,
    /// Names of the pictures of an exported dataset; of other images none.
    pub ids: Vec<String>,
    /// What is to be said where images were exported from another world. Labels by its class names are those of this one.
    pub note: Option<String>,
}

/// Pixels of an exported dataset's pictures as the values of the world that their levels stand for, the middles of what
/// was rounded to them; other images as they are. `path` is where they were read, `home` the world they are opened in: a
/// picture of another world keeps its label where the names of that world's classes are all among those of this one.
///
/// # Errors
/// When the pictures have 16 bits, of which pixels keep 8, or a folder has the name of no class of the dataset.
pub fn in_world(input: Input, path: &Path, home: &Home<'_>) -> Result<InWorld> {
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

/// [`in_world`] of images that [`super::open`] read, to be looked at. Labels of an exported archive are classes of this world,
/// too, under the same condition. Posteriors beside those of another world are left out.
///
/// # Errors
/// As [`in_world`]; also when a label is none of the dataset's classes.
pub fn labelled_in_world(input: Input, path: &Path, home: &Home<'_>) -> Result<InWorld> {
    let Input::World(batch) = input else { return in_world(input, path, home) };
    let Some(exported) = Exported::listing(path).filter(|exported| !exported.of.is(home)) else {
        return Ok(InWorld { input: Input::World(batch), ids: Vec::new(), note: None });
    };
    let known = exported.class_names.len();
    let class = |&label: &i64| {
        let class = usize::try_from(label).ok().filter(|&label| label < known);
        class.ok_or_else(|| Error::file(path, format!("has the label {label}, and {DATASET} names {known} classes")))
    };
    let labels: Option<Result<Vec<usize>>> = batch.y.as_ref().map(|y| y.iter().map(class).collect());
    let (labels, classes, note) = exported.labels_in(labels.transpose()?, home);
    let y = labels.map(|labels| labels.into_iter().map(|label| label as i64).collect());
    let input = Input::World(WorldBatch { classes, y, posterior: None, logp: None, aleatoric: None, ..batch });
    Ok(InWorld { input, ids: Vec::new(), note: note.map(|note| format!("{}: {note}", path.display())) })
}

impl Exported {
    /// Labels of its classes as those of a world, the number of the classes they are of, and what is to be said where
    /// that is not the world it was exported from.
    fn labels_in(&self, labels: Option<Vec<usize>>, home: &Home<'_>) -> (Option<Vec<usize>>, usize, Option<String>) {
        let Self { oracle, of, class_names, .. } = self;
        if of.is(home) {
            return (labels, class_names.len(), None);
        }
        let weights = of.weights_sha256.get(..12).unwrap_or(&of.weights_sha256);
        let note = format!(
            "images of another world, {oracle} (weights {weights}), whose values are taken for values of this one"
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
    use super::super::{ImageShape, encode_png, encode_png16, open, open_dataset, open_test, write_named, write_npz};
    use super::*;

    const WEIGHTS: &str = "0123456789abcdef";

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn home<'a>(weights_sha256: &'a str, class_names: &'a [String]) -> Home<'a> {
        Home { weights_sha256, pixels: "uniform".into(), assumed: false, pixel_range: [0.0, 1.0], class_names }
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
        match in_world(input, path, &home(weights, &classes))? {
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
    fn a_class_of_an_exported_dataset_may_have_no_picture() {
        let place = tempfile::tempdir().unwrap();
        exported(place.path());
        let test = place.path().join("test");
        std::fs::create_dir(test.join("2 ape")).unwrap();
        std::fs::remove_file(test.join("0 dog/000001.png")).unwrap();
        let (batch, _, note) = read(&test, WEIGHTS, "dog Cat ape").unwrap();
        assert_eq!((batch.x, batch.y, note), (vec![-1.0, 4.0], Some(vec![1, 1]), None));
        // A folder that is none of its classes is a mistake, as it is in datasets of others.
        std::fs::create_dir(test.join("fox")).unwrap();
        assert!(open(&test).unwrap_err().to_string().contains("every folder of a dataset is a class"));
        std::fs::remove_dir(test.join("fox")).unwrap();
        for picture in ["000000.png", "000002.png"] {
            std::fs::remove_file(test.join("1 Cat").join(picture)).unwrap();
        }
        let why = open(&test).unwrap_err().to_string();
        assert!(why.contains("holds no images"), "{why}");
        std::fs::remove_file(place.path().join(DATASET)).unwrap();
        assert!(open(&test).unwrap_err().to_string().contains("every folder of a dataset is a class"));
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

    /// An archive of a Cat, a dog and an ape, beside the record of an export whose archive has the name `file`.
    fn archive(root: &Path, file: &str) -> std::path::PathBuf {
        let (shape, path) = (ImageShape { channels: 1, height: 1, width: 1 }, root.join("train.npz"));
        let posterior = Some([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]].concat());
        let (x, y) = (vec![0.5, -1.0, 4.0], Some(vec![1, 0, 2]));
        write_npz(&path, &WorldBatch { shape, x, classes: 3, y, posterior, logp: None, aleatoric: None }).unwrap();
        let dataset = serde_json::json!({
            "oracle": "zoo", "weights_sha256": WEIGHTS, "class_names": ["dog", "Cat", "ape"],
            "splits": { "train": {} }, "files": { file: "" },
        });
        write_named(root, DATASET, dataset.to_string().as_bytes()).unwrap();
        path
    }

    #[test]
    fn labels_of_an_archive_of_another_world_count_by_their_names_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = archive(place.path(), "train.npz");
        let read = |path: &Path, weights: &str, classes: &str| {
            let (input, classes) = (open(path).unwrap(), names(classes));
            match labelled_in_world(input, path, &home(weights, &classes)).unwrap() {
                InWorld { input: Input::World(batch), note, .. } => (batch, note),
                other => panic!("{other:?}"),
            }
        };
        // The archive, and its folder.
        for path in [path.as_path(), place.path()] {
            let (batch, note) = read(path, "fedcba", "ape Cat dog");
            assert_eq!((batch.x, batch.y), (vec![0.5, -1.0, 4.0], Some(vec![1, 2, 0])));
            assert!(batch.posterior.is_none() && note.is_some_and(|note| note.ends_with("matched by name")));
        }
        // As many classes of other names: T-shirts are no zeros.
        let (batch, note) = read(&path, "fedcba", "0 1 2");
        assert!(batch.y.is_none() && note.is_some_and(|note| note.ends_with("labels are left out")));
        let (batch, note) = read(&path, WEIGHTS, "dog Cat ape");
        assert!(batch.y == Some(vec![1, 0, 2]) && batch.posterior.is_some() && note.is_none());
        // Of another archive it says nothing.
        archive(place.path(), "other.npz");
        let (batch, note) = read(&path, "fedcba", "ape Cat dog");
        assert!(batch.y == Some(vec![1, 0, 2]) && note.is_none());
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
