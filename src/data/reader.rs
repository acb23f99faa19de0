//! The interface of a file format: a type that implements [`Reader`], listed in `open.rs`; what a
//! file or folder may hold.

use std::path::{Path, PathBuf};

use super::{Dataset, Split, WorldBatch};
use crate::error::Result;

/// What a file or folder turned out to hold.
#[derive(Debug, Clone)]
pub enum Input {
    /// 8-bit pixels, to be mapped into a world by its documented preprocessing.
    Pixels(Dataset),
    /// Tensors already in world space.
    World(WorldBatch),
}

/// A format of images.
pub(super) trait Reader: Sync {
    /// The format in a list of all that is supported, with the names of its files.
    fn words(&self) -> &'static str;

    /// Its short name in lists of dataset formats; `None` for a format of single images.
    fn label(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether a file has this format by its name, in lower case. Names are asked before
    /// contents, so that a damaged file meets the reader that can say what is wrong with it.
    fn is_named(&self, name: &str) -> bool;

    /// Returns whether a file begins like this format; `start` has its first 16 bytes.
    fn begins(&self, path: &Path, start: &[u8]) -> Result<bool>;

    /// The files of a split among a folder's sorted entries `paths`; none without that split.
    fn files_of(&self, folder: &Path, paths: &[PathBuf], split: Split) -> Result<Vec<PathBuf>>;

    /// Returns whether a file holds test images beside training images.
    fn has_test(&self, _: &Path) -> Result<bool> {
        Ok(false)
    }

    /// Reads files of this format, at least one; an error names the file and the problem. A file
    /// that knows no splits is taken whole. Image files with a side beyond `max_side` are scaled
    /// down.
    fn read(&self, files: &[PathBuf], split: Split, max_side: Option<usize>) -> Result<Input>;
}
