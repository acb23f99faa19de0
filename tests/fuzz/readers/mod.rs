//! The readers, and the whole files of which their inputs are made.

mod data;
mod given;
mod judge;
#[cfg(feature = "onnx")]
mod networks;
mod runs;
mod weights;

use std::path::{Path, PathBuf};

/// A file of the reference values of other programs.
fn reference(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/reference").join(name)).unwrap()
}

/// What a writer that wants a path has written.
fn written(name: &str, write: impl FnOnce(&Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write(&path);
    std::fs::read(path).unwrap()
}

/// The folder of an input.
fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap().to_owned()
}
