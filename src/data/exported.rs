//! Pictures that an export of a world wrote. Their levels stand for values of the world, over a range that
//! `dataset.json` tells, and not for the brightness of a photograph.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::Deserialize;

use super::classes::places;
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

/// Pixels of an exported dataset's pictures as the values of the world that their levels stand for, the middles of what
/// was rounded to them; other images as they are. `path` is where they were read.
///
/// # Errors
/// When the pictures have 16 bits, of which pixels keep 8, or a folder has the name of no class of the dataset.
pub fn in_world(input: Input, path: &Path) -> Result<Input> {
    let Input::Pixels(images) = input else { return Ok(input) };
    let Some((Exported { class_names, .. }, levels)) = Exported::around(path) else {
        return Ok(Input::Pixels(images));
    };
    if levels.bits != BITS {
        return Err(Error::file(
            path,
            "holds pictures of an exported dataset with 16 bits, which are not read back: take train.npz or test.npz, or pictures of 8 bits",
        ));
    }
    let Dataset { shape, pixels, labels, class_names: folders, .. } = images;
    let y = labels.map(|labels| {
        let numbers = places(&folders, &class_names).ok_or_else(|| {
            Error::file(
                path,
                format!("lies in a dataset of the classes {}, and a folder is none of them", class_names.join(", ")),
            )
        })?;
        Ok(labels.into_iter().map(|label| numbers[label] as i64).collect())
    });
    let y: Option<Vec<i64>> = y.transpose()?;
    let x = pixels.into_iter().map(|level| levels.value(level.into())).collect();
    let classes = class_names.len();
    Ok(Input::World(WorldBatch { shape, x, classes, y, posterior: None, logp: None, aleatoric: None }))
}
