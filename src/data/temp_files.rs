//! Temporary files: which process owns one, and which of them are abandoned.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::error::{Error, Result};

/// What their names end in.
const SUFFIX: &str = ".part";
/// A temporary file that is older was left by a process that is gone, wherever it ran.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// Characters of a machine's name in a file name.
const HOST: usize = 32;

/// Bytes of a file's name in that of its temporary file: file systems take 255, and machine, process and signs by chance need
/// up to 90.
const KEPT: usize = 160;

/// Prefix and suffix of a temporary file for `name`: hidden, with its beginning, machine and process.
pub(super) fn affixes(name: &str) -> (String, &'static str) {
    let kept = &name[..name.floor_char_boundary(KEPT)];
    (format!(".{kept}.{}.{}.", machine(), std::process::id()), SUFFIX)
}

/// This machine's name, as its system tells it.
pub fn host_name() -> Option<String> {
    // Linux tells it in a file.
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The name of this machine and its process namespace, since containers share a name.
pub fn machine() -> String {
    let plain = |text: &str, most: usize| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(most).collect()
    };
    let name = plain(&host_name().unwrap_or_else(|| "unknown".into()), HOST);
    let space = std::fs::read_link("/proc/self/ns/pid").map(|link| plain(&link.to_string_lossy(), HOST));
    space.map_or_else(|_| name.clone(), |space| format!("{name}-{space}"))
}

/// Removes temporary files in a folder that a killed process of this machine left, or older than a
/// day. Files that cannot be examined or removed stay. Returns how many were removed.
pub fn sweep_temp_files(folder: &Path) -> usize {
    sweep(folder, |name, entry| {
        let old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        has_no_writer(name) || old().is_some_and(|age| age > ABANDONED)
    })
}

/// [`sweep_temp_files`] of all temporary files, for the only process that writes in a folder.
pub fn sweep_all_temp_files(folder: &Path) -> usize {
    sweep(folder, |_, _| true)
}

/// Removes what killed processes of this machine left directly in a folder, once in the life of
/// this process: in folders of many pictures a search for each file would take longer than writing
/// it. Names contain machine and process, so other programs' files are safe.
pub(super) fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if folder.canonicalize().is_ok_and(|folder| SWEPT.lock().is_ok_and(|mut swept| swept.insert(folder))) {
        sweep(folder, |name, _| has_no_writer(name));
    }
}

fn sweep(folder: &Path, goes: impl Fn(&str, &DirEntry) -> bool) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let parts = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        is_part(&name) && goes(&name, entry)
    });
    parts.filter(|entry| std::fs::remove_file(entry.path()).is_ok()).count()
}

/// Returns whether work may begin in a folder: it has only hidden files, as killed processes and
/// desktops leave. The hidden folder `pieces` counts as content: its ticket is gone.
///
/// # Errors
/// Names a folder that cannot be read.
pub fn is_vacant(folder: &Path, pieces: &str) -> Result<bool> {
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let name = entry.map_err(|e| Error::io(folder, e))?.file_name();
        if name == pieces || !name.as_encoded_bytes().starts_with(b".") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_part(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(SUFFIX)
}

/// Returns whether the process in a name ran on this machine and has ended. False where the system
/// does not list its processes.
fn has_no_writer(name: &str) -> bool {
    let mut words = name.trim_end_matches(SUFFIX).rsplit('.').skip(1);
    let process = words.next().and_then(|word| word.parse::<u32>().ok());
    let (Some(process), Some(name_of_machine)) = (process, words.next()) else { return false };
    let processes = Path::new("/proc");
    name_of_machine == machine() && processes.join("self").exists() && !processes.join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::SystemTime;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_what_nobody_will_finish_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, here) = (std::process::id(), machine());
        // Larger than any process can be called.
        let gone = u32::MAX;
        let of = |machine: &str, process: u32| format!(".a.b.npz.{machine}.{process}.Xy12Zq.part");
        let old = of("elsewhere", 7);
        let kept = [of(&here, mine), of("elsewhere", gone), ".a.npz.Xy12Zq.part".into(), "a.npz".into()];
        for name in kept.iter().chain([&of(&here, gone), &old]) {
            File::create(folder.path().join(name)).unwrap();
        }
        let long_ago = FileTimes::new().set_modified(SystemTime::now() - 2 * ABANDONED);
        File::options().write(true).open(folder.path().join(&old)).unwrap().set_times(long_ago).unwrap();
        assert_eq!(sweep_temp_files(folder.path()), 2);
        let mut left: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        let mut kept = kept.to_vec();
        left.sort();
        kept.sort();
        assert_eq!(left, kept);
        assert_eq!(sweep_temp_files(&folder.path().join("nowhere")), 0);
        assert_eq!(sweep_all_temp_files(folder.path()), 3);
        assert!(folder.path().join("a.npz").exists());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_folder_of_the_users_loses_only_what_is_ours() {
        let folder = tempfile::tempdir().unwrap();
        let dead = folder.path().join(format!(".a.npz.{}.{}.Xy12Zq.part", machine(), u32::MAX));
        let theirs = folder.path().join(".download.part");
        for path in [&dead, &theirs] {
            File::create(path).unwrap();
        }
        let long_ago = FileTimes::new().set_modified(SystemTime::now() - 2 * ABANDONED);
        File::options().write(true).open(&theirs).unwrap().set_times(long_ago).unwrap();
        sweep_once(folder.path());
        assert!(!dead.exists() && theirs.exists());
        File::create(&dead).unwrap();
        sweep_once(folder.path());
        assert!(dead.exists());
        sweep_once(&folder.path().join("nowhere"));
    }

    #[test]
    fn a_name_tells_its_writer() {
        let (prefix, suffix) = affixes("test.npz");
        let name = format!("{prefix}Xy12Zq{suffix}");
        assert!(is_part(&name) && !has_no_writer(&name), "{name}");
    }
}
