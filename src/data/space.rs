//! Checks of free memory and free disk space.

use std::path::{Path, PathBuf};

use super::source::read_text;
use crate::error::{Error, Result};

/// Taken for the memory available where the system does not tell.
const UNTOLD_MEMORY: u64 = 16 << 30;
/// Size from which a file is announced before it is written.
const WORTH_TELLING: u64 = 1 << 30;
/// Bytes of the frame of a PNG file.
const FRAME: u64 = 64;

/// Refuses work that needs too much memory. `what` needs it; `otherwise` is the remedy.
///
/// # Errors
/// Says how much is needed and how much there is.
pub fn check_memory(what: &str, needed: u64, otherwise: &str) -> Result<()> {
    let available = available_memory().unwrap_or(UNTOLD_MEMORY);
    if needed <= available {
        return Ok(());
    }
    Err(Error::input(format!(
        "{what} need {} of memory, and {} are available; {otherwise}",
        in_words(needed),
        in_words(available)
    )))
}

/// Bytes of memory that can be taken without swapping, where the system tells (Linux).
fn available_memory() -> Option<u64> {
    let text = read_text("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Refuses a file or folder `path` of at least `needed` bytes where the disk has less.
///
/// # Errors
/// Names it and the folder whose file system is too full, how much is needed, and how much is free.
pub fn check_disk_space(path: &Path, needed: u64) -> Result<()> {
    let folder = nearest_folder(path);
    match free(&folder) {
        Some(free) if free < needed => Err(Error::file(
            path,
            format!(
                "No space left for it in {}: it takes at least {}, and {} are free (free some space, choose a folder on another disk, or \
                 ask for fewer images)",
                folder.display(),
                in_words(needed),
                in_words(free)
            ),
        )),
        _ => Ok(()),
    }
}

/// The message before so large a file or folder is written; `None` for a small one.
pub fn size_notice(path: &Path, bytes: u64) -> Option<String> {
    (bytes >= WORTH_TELLING).then(|| format!("{} takes at least {}", path.display(), in_words(bytes)))
}

/// Bytes of all files in a folder and below. Unreadable entries and link targets are not counted.
pub fn folder_size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let entries = entries.filter_map(|entry| Some((entry.as_ref().ok()?.metadata().ok()?, entry.ok()?.path())));
    entries.map(|(about, path)| if about.is_dir() { folder_size(&path) } else { about.len() }).sum()
}

/// Bytes that a picture of so many values takes as a PNG file, at least.
pub fn least_png_size(values: usize, bits: u32) -> u64 {
    // An eighth of its bits.
    values as u64 * u64::from(bits) / 64 + FRAME
}

/// The folder in which a path will be made: the nearest one that is there.
fn nearest_folder(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|place| place.is_dir());
    there.filter(|place| !place.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Bytes free to this user on the file system of a folder, where the system tells.
#[cfg(target_os = "linux")]
fn free(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    // File systems that count nothing have no blocks.
    (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Unknown elsewhere: a full disk is reported when it is full.
#[cfg(not(target_os = "linux"))]
fn free(_: &Path) -> Option<u64> {
    None
}

/// A number of bytes in words.
fn in_words(bytes: u64) -> String {
    let (unit, name) = match bytes {
        b if b >= 1 << 30 => (1u32 << 30, "GiB"),
        b if b >= 1 << 20 => (1 << 20, "MiB"),
        _ => (1 << 10, "KiB"),
    };
    format!("{:.1} {name}", bytes as f64 / f64::from(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        check_memory("a few numbers", 1 << 10, "take fewer").unwrap();
        let said = check_memory("too many numbers", u64::MAX, "take fewer").unwrap_err().to_string();
        assert!(said.contains("too many numbers need 17179869184.0 GiB") && said.contains("take fewer"), "{said}");
        #[cfg(target_os = "linux")]
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn what_no_disk_holds_is_refused_where_it_would_lie() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("not/yet/there.npz");
        check_disk_space(&file, 1).unwrap();
        assert_eq!(nearest_folder(Path::new("nowhere-at-all.npz")), Path::new("."));
        assert_eq!(nearest_folder(&file), place.path());
        #[cfg(target_os = "linux")]
        {
            let said = check_disk_space(&file, u64::MAX).unwrap_err().to_string();
            let named = said.contains("there.npz") && said.contains(&format!("in {}", place.path().display()));
            assert!(named && said.contains("at least 17179869184.0 GiB"), "{said}");
        }
        std::fs::create_dir(place.path().join("inner")).unwrap();
        std::fs::write(place.path().join("inner/a"), [0; 30]).unwrap();
        std::fs::write(place.path().join("b"), [0; 4]).unwrap();
        assert_eq!(folder_size(place.path()), 34);
        assert_eq!((in_words(1536), in_words(3 << 20)), ("1.5 KiB".into(), "3.0 MiB".into()));
        assert!(size_notice(&file, 1 << 20).is_none() && size_notice(&file, 1 << 40).is_some());
    }
}
