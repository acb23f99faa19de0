//! Files of a run folder, of whatever kind.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::data::{FolderKind, check_folder_kind, claim_text, write_atomically, write_json};
use crate::error::{Error, Result};

/// The spec of a run, of whatever kind: its ticket.
pub const SPEC: &str = "run.toml";
/// What all that is finished says.
pub const SUMMARY: [&str; 2] = ["summary.json", "summary.csv"];
/// Said of a file that another run has written.
pub const ANOTHER: &str = "this folder holds a run of another spec or another oracle; choose another folder";

/// Writes the spec of a run into its folder, which is made with it, or finds the same spec there.
pub fn write_spec(run: &Path, spec: &impl Serialize) -> Result<PathBuf> {
    check_folder_kind(run, Some(FolderKind::Run))?;
    std::fs::create_dir_all(run).map_err(|e| Error::io(run, e))?;
    let file = run.join(SPEC);
    let text = toml::to_string_pretty(spec).map_err(|e| Error::file(&file, e.to_string()))?;
    claim_text(&file, &text, ANOTHER)?;
    Ok(file)
}

/// Writes what is finished of a run as JSON and CSV.
pub fn write_summary(run: &Path, found: &impl Serialize, csv: &str) -> Result<()> {
    let [json, table] = SUMMARY.map(|name| run.join(name));
    write_json(&json, found)?;
    write_atomically(&table, |file| file.write_all(csv.as_bytes()))
}
