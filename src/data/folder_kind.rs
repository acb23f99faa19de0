//! Identifies a folder by its typical file, so that no result is written into another kind.

use std::path::Path;

use crate::error::{Error, Result};

/// The file of a dataset folder that describes its world.
pub const DATASET: &str = "dataset.json";

/// The kinds of folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderKind {
    /// Of `export`, complete or begun.
    Dataset,
    /// A world, or one flow per class.
    Oracle,
    /// Of `run`.
    Run,
    /// Of `posterior --out`.
    Posteriors,
}

/// Files by which a folder is known, with the words for its kind.
const MARKS: [(&str, FolderKind, &str); 6] = [
    (DATASET, FolderKind::Dataset, "a dataset"),
    ("export.json", FolderKind::Dataset, "a dataset"),
    ("oracle.json", FolderKind::Oracle, "an oracle"),
    ("flows.json", FolderKind::Oracle, "an oracle"),
    ("run.toml", FolderKind::Run, "a run"),
    ("job.json", FolderKind::Posteriors, "a job of posteriors"),
];

/// The kind of a folder, by the first file that tells; `None` where none does.
pub fn folder_kind(folder: &Path) -> Option<FolderKind> {
    MARKS.into_iter().find(|(name, ..)| folder.join(name).exists()).map(|(_, kind, _)| kind)
}

/// Refuses a folder of another kind than `own`, or of any kind where that is `None`. A folder that
/// does not exist or has no such file is accepted.
///
/// # Errors
/// Names the folder, what it is, and the file that tells.
pub fn check_folder_kind(folder: &Path, own: Option<FolderKind>) -> Result<()> {
    let marks = || MARKS.into_iter().filter(|(name, ..)| folder.join(name).exists());
    match marks().next() {
        Some((name, _, words)) if !marks().any(|(_, kind, _)| Some(kind) == own) => {
            Err(Error::file(folder, format!("holds {words} ({name}); choose another folder")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_what_its_file_says() {
        let place = tempfile::tempdir().unwrap();
        check_folder_kind(place.path(), None).unwrap();
        check_folder_kind(&place.path().join("nowhere"), Some(FolderKind::Run)).unwrap();
        std::fs::write(place.path().join("oracle.json"), "").unwrap();
        let said = check_folder_kind(place.path(), Some(FolderKind::Run)).unwrap_err().to_string();
        assert!(said.contains("holds an oracle (oracle.json)"), "{said}");
        assert!(check_folder_kind(place.path(), None).is_err());
        check_folder_kind(place.path(), Some(FolderKind::Oracle)).unwrap();
        // Work begun there before continues.
        std::fs::write(place.path().join("run.toml"), "").unwrap();
        check_folder_kind(place.path(), Some(FolderKind::Run)).unwrap();
    }
}
