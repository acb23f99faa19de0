//! What an exported dataset says of itself, and folders that are none.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::data::{DATASET, FolderKind, Split, folder_kind, read_bytes};
use crate::error::{Error, Result, check_name};
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::rounding::Rounding;

/// What of `dataset.json` matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Manifest {
    pub(super) weights_sha256: Option<String>,
    pub(super) tau: Option<f64>,
    pub(super) prior: Option<Vec<f64>>,
    pub(super) smoothing: Option<f64>,
    pub(super) label_noise: Option<LabelNoise>,
    pub(super) class_names: Vec<String>,
    pub(super) pixel_range: Option<[f32; 2]>,
    pub(super) splits: BTreeMap<String, SplitFacts>,
    pub(super) files: BTreeMap<String, String>,
}

/// What of a split in it matters here.
#[derive(Debug, Deserialize)]
pub(super) struct SplitFacts {
    pub(super) rounding: Option<Rounding>,
}

impl Manifest {
    /// Of the archive's folder; nothing is known where there is none.
    ///
    /// # Errors
    /// Names the file where it is no manifest.
    pub(super) fn read_beside(archive: &Path) -> Result<Self> {
        let path = archive.with_file_name(DATASET);
        let bytes = match read_bytes(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(Error::io(path, e)),
        };
        let wrong = |cause| Error::file(&path, cause);
        let read = serde_json::from_slice(&bytes);
        let manifest: Self = read.map_err(|e| wrong(format!("is no manifest of a dataset: {e}")))?;
        manifest.class_names.iter().try_for_each(|name| check_name(name)).map_err(wrong)?;
        Ok(manifest)
    }

    /// Whether the archive of a split was exported, where the manifest lists files.
    ///
    /// # Errors
    /// Says without what the dataset was exported.
    pub(super) fn has(&self, archive: &str, split: Split) -> Result<(), String> {
        let other = format!("{}.npz", split.other());
        if self.files.is_empty() || self.files.contains_key(archive) {
            return Ok(());
        }
        Err(match self.files.contains_key(&other) {
            true => format!(
                "is not there: the dataset was exported without {split} images (--split {} judges on the others)",
                split.other()
            ),
            false => format!(
                "is not there: the dataset was exported without npz; export it with --format npz, from the same seed into \
                 another folder{}",
                self.of_pictures(split)
            ),
        })
    }

    /// How what was trained on the pictures of a split is judged, where there are such.
    fn of_pictures(&self, split: Split) -> String {
        let beside = ["16bit", "8bit"].map(|bits| format!("{split}.{bits}.npz"));
        let found = beside.into_iter().find(|name| self.files.contains_key(name));
        found.map_or_else(String::new, |name| {
            format!("; a classifier of its pictures is judged on {name}, where they keep the posteriors")
        })
    }
}

/// Whether a folder without images to judge on is an exported dataset for all that is known.
///
/// # Errors
/// Says what it is instead, and what makes a dataset of it.
pub(super) fn check_is_dataset(folder: &Path) -> Result<()> {
    let place = folder.display();
    let why = match folder_kind(folder) {
        Some(FolderKind::Oracle) => {
            format!("is an oracle and no exported dataset: `bayescope export {place} --out DATASET` makes one")
        }
        Some(FolderKind::Run) => "is a run and no exported dataset".to_owned(),
        Some(FolderKind::Posteriors) => "holds a job of posteriors and no exported dataset".to_owned(),
        Some(FolderKind::Dataset) if !folder.join(DATASET).exists() => {
            "is an export that is not complete: the same `bayescope export` again goes on with it".to_owned()
        }
        Some(FolderKind::Dataset) | None => return Ok(()),
    };
    Err(Error::file(folder, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::silent;
    use crate::judge::Truth;

    #[test]
    fn a_folder_that_is_no_dataset_is_told_what_it_is() {
        for (file, told) in [
            ("oracle.json", "is an oracle and no exported dataset: `bayescope export"),
            ("export.json", "is an export that is not complete"),
            ("job.json", "holds a job of posteriors"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(file), "{}").unwrap();
            let why = Truth::open(folder.path(), Split::Test, &mut silent()).unwrap_err().to_string();
            assert!(why.contains(told), "{file}: {why}");
        }
    }
}
