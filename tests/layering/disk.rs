//! The window's thread asks no disk.

use super::{code, mentions, sources};

/// Ways of asking what lies on a disk.
const ASKING: &[&str] = &[
    ".exists()",
    ".try_exists()",
    ".is_file()",
    ".is_dir()",
    ".is_symlink()",
    ".metadata()",
    ".canonicalize()",
    ".read_dir()",
    "fs::",
    "AnyRun::is",
    "HardnessFolder::is",
    "ExternalFolder::is",
    "taken(&",
    "read_text(",
    "read_json(",
    "write_json(",
];

/// Which of them stands in a line of code.
fn asks(code: &str) -> Option<&'static str> {
    let word = |way: &str| mentions(code, way.trim_end_matches(['(', '&']));
    ASKING.iter().copied().find(|way| code.contains(way) && (way.starts_with('.') || word(way)))
}

/// A network drive may be gone, and whoever asks it waits: a thread does (`src/gui/disk.rs`).
#[test]
fn no_frame_asks_a_disk() {
    const MAY: &[(&str, &str)] = &[
        ("src/gui/disk.rs", "threads ask"),
        ("src/gui/command.rs", "what threads of disk.rs ask"),
        ("src/gui/prefs/settings_file.rs", "the window's own settings, before it is painted"),
        ("src/gui/shared_lists.rs", "the window's own settings"),
        ("src/gui/frame_times/core_wait.rs", "/proc"),
    ];
    let (mut broken, mut seen) = (Vec::new(), Vec::new());
    for (file, text) in sources() {
        if !file.starts_with("src/gui/") || file.ends_with("tests.rs") || file.contains("/tests/") {
            continue;
        }
        let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        // What is imported is asked where it is called.
        let lines = code(before_tests).filter(|(_, code)| !code.trim_start().starts_with("use "));
        let asking: Vec<String> =
            lines.filter_map(|(line, code)| asks(code).map(|way| format!("{file}:{line}: {way}"))).collect();
        match MAY.iter().find(|(may, _)| *may == file) {
            Some((may, _)) if !asking.is_empty() => seen.push(*may),
            Some(_) => {}
            None => broken.extend(asking),
        }
    }
    assert!(broken.is_empty(), "let a thread of src/gui/disk.rs ask:\n{}", broken.join("\n"));
    assert_eq!(
        seen.len(),
        MAY.len(),
        "of the files that may, only {seen:?} do: the scan no longer sees them, or they need not"
    );
}

#[test]
fn questions_to_a_disk_are_told_from_other_words() {
    assert_eq!(asks("let there = path.is_dir();"), Some(".is_dir()"));
    assert_eq!(asks("std::fs::read(path)"), Some("fs::"));
    assert_eq!(asks("Some(folder) if HardnessFolder::is(&folder) => {"), Some("HardnessFolder::is"));
    assert_eq!((asks("super::prefs::saved(x)"), asks("self.is_taken()")), (None, None));
}
