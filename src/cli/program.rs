//! How this program is started: for another process, and for a script.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// A command that starts this program; its arguments follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The file that the system runs.
    pub program: PathBuf,
    /// What comes before the program's own arguments, as `-m bayescope` does where `program` is Python.
    pub leading: Vec<String>,
}

impl From<PathBuf> for Start {
    fn from(program: PathBuf) -> Self {
        Self { program, leading: Vec::new() }
    }
}

/// What [`main_of`](super::main_of) was told.
static TOLD: OnceLock<Start> = OnceLock::new();

/// From now on this program is started so: the file that runs is another's, such as Python's.
pub fn is_started_by(start: Start) {
    // A process is one program: what was told first stays.
    let _ = TOLD.set(start);
}

/// Returns what starts this program again while it runs.
///
/// # Errors
/// When the system does not tell which file runs.
pub fn again() -> Result<Start> {
    match TOLD.get() {
        Some(start) => Ok(start.clone()),
        None => std::env::current_exe().map(Start::from).map_err(|e| Error::io("this program", e)),
    }
}

/// Returns what starts this program when this process has ended: of an AppImage its own file, because the folder in which
/// it is mounted goes with the process.
///
/// # Errors
/// As [`again`].
pub fn later() -> Result<Start> {
    let start = again()?;
    if TOLD.get().is_some() {
        return Ok(start);
    }
    let [image, mounted] = ["APPIMAGE", "APPDIR"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let image = image.zip(mounted).and_then(|(image, mounted)| image_of(&start.program, image, &mounted));
    Ok(image.map_or(start, Start::from))
}

/// The AppImage that is mounted at `mounted`, if it is there and `program` lies in it: whatever is started from an AppImage,
/// a terminal or an editor, inherits the names of both.
fn image_of(program: &Path, image: PathBuf, mounted: &Path) -> Option<PathBuf> {
    let inside = program.canonicalize().ok()?.starts_with(mounted.canonicalize().ok()?);
    (inside && image.is_file()).then_some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_appimage_is_started_by_its_own_file_and_only_by_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let (image, inside, outside) =
            (file("Bayescope.AppImage"), file("mount/usr/bin/bayescope"), file("bin/bayescope"));
        let mounted = folder.path().join("mount");
        assert_eq!(image_of(&inside, image.clone(), &mounted), Some(image.clone()));
        // Started from a terminal that is an AppImage itself.
        assert_eq!(image_of(&outside, image, &mounted), None);
        assert_eq!(image_of(&inside, folder.path().join("moved.AppImage"), &mounted), None);
    }
}
