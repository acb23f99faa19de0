//! Class names in a text file beside the data, one a line.

use std::io::Read;
use std::path::Path;

use super::source::open_file;
use crate::error::{Error, Result};

/// The file for formats that have no place for names: IDX, and npz.
pub(super) const FILE: &str = "class_names.txt";
/// Bytes that are read of such a file.
const MAX_BYTES: u64 = 1 << 16;

/// The names in a file of this name beside a data file; `None` where there is none.
pub(super) fn beside(data: &Path, names_file: &str) -> Result<Option<Vec<String>>> {
    let path = data.with_file_name(names_file);
    if !path.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    open_file(&path)?.take(MAX_BYTES).read_to_end(&mut text).map_err(|e| Error::io(&path, e))?;
    let lines = String::from_utf8_lossy(&text);
    Ok(Some(lines.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()))
}
