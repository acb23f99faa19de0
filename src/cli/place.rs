//! Places where results go: nothing that is there is written over unasked.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::check_free;
use crate::error::Result;

/// Whether `--force` was given.
pub static FORCE: AtomicBool = AtomicBool::new(false);

/// Whether something may be written at a path: nothing is there, or `--force` was given.
///
/// # Errors
/// Names the file, or the folder that is not empty; with `--force`, too, what is no file but a device.
pub fn is_free(path: &Path) -> Result<()> {
    check_free(path, FORCE.load(Ordering::Relaxed), "--force")
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_there_is_seen_behind_links_too() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let why = |path: &Path| is_free(path).unwrap_err().to_string();
        is_free(&at("new")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        assert!(why(&at("dangling")).contains("--force"));
        is_free(&at(&"a".repeat(239))).unwrap();
        assert!(why(&at(&"a".repeat(240))).contains("a shorter one"));
        assert!(why(Path::new("/dev/null")).contains("is a device"));
        std::fs::create_dir(at("folder")).unwrap();
        symlink("folder", at("link")).unwrap();
        is_free(&at("link")).unwrap();
        symlink("nowhere", at("folder/inner")).unwrap();
        assert!(why(&at("link")).contains("not empty"));
    }
}
