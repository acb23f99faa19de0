//! Arrays of an npz file, by another reader than ours.

use std::fs::File;
use std::path::Path;

use npyz::{Deserialize, NpyFile};
use zip::ZipArchive;

/// One array of an npz file.
pub fn npz_array<T: Deserialize>(path: &Path, name: &str) -> Vec<T> {
    let mut archive = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let entry = archive.by_name(&format!("{name}.npy")).unwrap();
    NpyFile::new(entry).unwrap().into_vec().unwrap()
}
