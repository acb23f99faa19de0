//! JSON and TOML files: written whole or not at all, read whole or found missing.

use std::io;
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

use super::source::{read_bytes, read_text};
use super::write::write_atomically;
use crate::error::{Error, Result};

/// Reads a JSON file; `None` where there is none.
///
/// # Errors
/// Names a file that is there and cannot be read.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match read_bytes(path) {
        Ok(text) => parse_json(path, &text).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, e)),
    }
}

/// What a JSON file says, read from `path`.
pub(super) fn parse_json<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|e| Error::file(path, format!("cannot be read: {e}")))
}

/// Reads a TOML file.
///
/// # Errors
/// Names the file and what is wrong in it.
pub fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T> {
    parse_toml(path, &read_text(path).map_err(|e| Error::io(path, e))?)
}

/// What a TOML file says, read from `path`.
pub(crate) fn parse_toml<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    toml::from_str(text).map_err(|e| Error::file(path, told(&e, text)))
}

/// Most bytes of what is said of a TOML file. The parser quotes the line, which may be as long as the file.
const SAID: usize = 4096;

/// What a parser says of a text, without the line where that is too long to be read.
fn told(error: &toml::de::Error, text: &str) -> String {
    let said = error.to_string();
    if said.len() <= SAID {
        return said;
    }
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let (line, message) = (1 + before.matches('\n').count(), error.message());
    format!("line {line}: {}", &message[..message.floor_char_boundary(SAID)])
}

/// Writes a JSON file atomically, indented: people read it too. Same value, same bytes.
///
/// # Errors
/// Names the file.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = json_text(path, value)?;
    write_atomically(path, |file| file.write_all(&text))
}

/// The bytes that [`write_json`] writes.
pub(super) fn json_text(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| Error::file(path, e.to_string()))?;
    text.push(b'\n');
    Ok(text)
}
