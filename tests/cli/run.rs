//! Running the built program.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Digits without noise: 8 bits lose their posteriors, 32 bits do at a large τ, and values outside of what a pixel can be are refused.
pub const SHARP_DIGITS: &str = "mnist@9b44f254";

/// The program with arguments, to be run without a display.
pub fn bayescope(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bayescope"));
    command.args(args).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET");
    // What other builds have drawn is not to answer here, and what fails here is not to be remembered.
    static CACHE: LazyLock<tempfile::TempDir> =
        LazyLock::new(|| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    command.env("XDG_CACHE_HOME", CACHE.path()).env("XDG_DATA_HOME", CACHE.path());
    // What is computed on the CPU needs no graphics driver: none is to be found.
    if args.windows(2).any(|pair| pair == ["--device", "cpu"]) {
        for names in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "__EGL_VENDOR_LIBRARY_FILENAMES"] {
            command.env(names, "/nowhere");
        }
    }
    command
}

/// Runs it.
pub fn output(args: &[&str]) -> Output {
    bayescope(args).output().unwrap()
}

/// Runs it; it must succeed. Returns stdout.
pub fn succeed(args: &[&str]) -> String {
    let output = output(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} failed: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs it; it must succeed and print one JSON document.
pub fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&succeed(args)).unwrap()
}

/// Runs it; it must fail with exit code `code`, without a panic. Returns stderr.
pub fn fail(code: i32, args: &[&str]) -> String {
    let output = output(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    stderr
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
