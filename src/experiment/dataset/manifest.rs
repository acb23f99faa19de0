//! `dataset.json` beside exported samples: which world they are of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::data::{DATASET, Split};
use crate::error::Result;
use crate::events::silent;
use crate::flow::weights::sha256;
use crate::units::Tau;

/// What of it matters here, and the archive it is asked about.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// SHA-256 of the weights of the world.
    weights_sha256: String,
    /// Base temperature of the samples.
    tau: f64,
    /// Names of its classes.
    pub class_names: Vec<String>,
    /// SHA-256 of the files beside it, by name.
    files: BTreeMap<String, String>,
    #[serde(skip)]
    archive: PathBuf,
}

impl Manifest {
    /// The one beside the archive of a split in a dataset folder, or beside an archive. One that cannot be read proves nothing.
    pub fn beside(path: &Path, split: Split) -> Option<Self> {
        let archive = if path.is_dir() { path.join(format!("{split}.npz")) } else { path.to_owned() };
        let npz = archive.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"));
        let file = archive.with_file_name(DATASET);
        let text = std::fs::read(&file).ok().filter(|_| npz && archive.is_file())?;
        match serde_json::from_slice::<Self>(&text) {
            Ok(manifest) => Some(Self { archive, ..manifest }),
            Err(error) => {
                tracing::warn!(
                    "{}: {error}; the images beside it are taken as those of no known world",
                    file.display()
                );
                None
            }
        }
    }

    /// Whether it names the world of given weights and τ, and the archive is the very file it was written for.
    ///
    /// # Errors
    /// Names the archive where that cannot be read.
    pub fn proves(&self, weights_sha256: &str, tau: Tau) -> Result<bool> {
        let name = self.archive.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(hash) = self.files.get(&name) else { return Ok(false) };
        if self.weights_sha256 != weights_sha256 || self.tau != tau.get() {
            return Ok(false);
        }
        Ok(*hash == sha256(&self.archive, &mut silent())?)
    }
}
