//! Files of a run folder: read whole or found missing, written whole or not at all.

use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

use crate::data::{read_bytes, read_text, write_atomically};
use crate::error::{Error, Result};

/// What all that is finished says.
pub const SUMMARY: [&str; 2] = ["summary.json", "summary.csv"];

/// Writes a file that, where it is there already, must be the same.
pub fn keep(path: &Path, text: String) -> Result<()> {
    match read_text(path) {
        Ok(old) if old == text => Ok(()),
        Ok(_) => {
            Err(Error::file(path, "this folder holds a run of another spec or another oracle; choose another folder"))
        }
        Err(_) => write_atomically(path, |file| file.write_all(text.as_bytes())),
    }
}

/// Tries to read a file that other machines replace.
const READS: usize = 3;

/// Reads a file. One that was replaced from another machine between opening and reading is opened again.
fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let stale = |e: &std::io::Error| e.kind() == std::io::ErrorKind::StaleNetworkFileHandle;
    let mut read = read_bytes(path);
    for _ in 1..READS {
        if !read.as_ref().is_err_and(stale) {
            break;
        }
        read = read_bytes(path);
    }
    read
}

/// Reads a JSON file, if it is there.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match read_whole(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|e| Error::file(path, format!("cannot be read: {e}")))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, e)),
    }
}

/// Writes a JSON file atomically.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| Error::file(path, e.to_string()))?;
    text.push(b'\n');
    write_atomically(path, |file| file.write_all(&text))
}

/// Writes what is finished of a run as JSON and CSV.
pub fn write_summary(run: &Path, found: &impl Serialize, csv: &str) -> Result<()> {
    let [json, table] = SUMMARY.map(|name| run.join(name));
    write_json(&json, found)?;
    write_atomically(&table, |file| file.write_all(csv.as_bytes()))
}
