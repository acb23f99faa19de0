//! What the commands print and write, beside what they printed and wrote when it was recorded: a change of structure must not change
//! an answer. Words, keys, counts and lists of files are compared exactly, numbers within a tolerance of the case (instruction sets
//! round differently), arrays and pictures by their shape and four figures.
//!
//! `BAYESCOPE_RECORD=1 cargo test --release --features bundle,lend --test golden` records anew. Read the difference in git before you commit it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod cases;
mod compare;
mod digest;
mod documented;
mod prepare;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use cases::{Case, cases};
use digest::Digest;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The recording of a case.
fn recorded(name: &str) -> PathBuf {
    Path::new("tests/golden/recorded").join(format!("{name}.json"))
}

/// Runs the program in a folder, without a display, without settings of the user, and with none of our variables but `BAYESCOPE_SIMD`.
fn run(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bayescope"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("BAYESCOPE_") && text != "BAYESCOPE_SIMD" {
            command.env_remove(&name);
        }
    }
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(name);
    }
    for name in ["HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, folder.join("home"));
    }
    command.output().unwrap()
}

/// What a command printed and wrote; what it said if it ended otherwise than it should.
fn answer(case: &Case, folder: &Path) -> Result<Value, String> {
    let output = run(&case.args(), folder);
    let printed = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (printed(&output.stdout), printed(&output.stderr));
    if output.status.code() != Some(case.code) {
        return Err(format!("{}: `{}` ended with {}: {stderr}", case.name, case.line, output.status));
    }
    let digest = Digest::new(folder);
    let files: Map<String, Value> =
        case.files.iter().map(|name| ((*name).to_owned(), digest.file(&folder.join(name)))).collect();
    let told: Vec<&str> = stderr.lines().filter(|line| case.code != 0 || !digest.is_progress(line)).collect();
    let stderr = told.join("\n");
    Ok(json!({ "command": case.line, "stdout": digest.text(&stdout), "stderr": digest.text(&stderr), "files": files }))
}

/// Records what was found, or compares it with what is recorded: differences, a line each.
fn settle(name: &str, found: &Value, tolerance: compare::Tolerance) -> Vec<String> {
    let path = recorded(name);
    if std::env::var_os("BAYESCOPE_RECORD").is_some() {
        let mut text = Vec::new();
        let narrow = serde_json::ser::PrettyFormatter::with_indent(b" ");
        found.serialize(&mut serde_json::Serializer::with_formatter(&mut text, narrow)).unwrap();
        text.push(b'\n');
        std::fs::write(&path, text).unwrap();
        return Vec::new();
    }
    let Ok(text) = std::fs::read(&path) else { return vec![format!("{name}: {} is not there", path.display())] };
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let differences = compare::differences(&expected, found, tolerance);
    differences.into_iter().map(|difference| format!("{name}: {difference}")).collect()
}

#[test]
fn commands_answer_as_recorded() {
    let place = tempfile::tempdir().unwrap();
    prepare::inputs(place.path());
    let mut differences = Vec::new();
    for case in cases() {
        let began = Instant::now();
        let found = answer(&case, place.path());
        println!("{:6.2} s  {}", began.elapsed().as_secs_f64(), case.name);
        differences.extend(found.map_or_else(|error| vec![error], |found| settle(case.name, &found, case.tolerance)));
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// The commands of a help text, and with them those of each.
fn helps(path: &[&str], folder: &Path, all: &mut Map<String, Value>) {
    let output = run(&[path, &["--help"]].concat(), folder);
    assert!(output.status.success(), "{path:?} has no help");
    let text = String::from_utf8(output.stdout).unwrap();
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        helps(&[path, &[name]].concat(), folder, all);
    }
    all.insert(
        ["bayescope"].iter().chain(path).copied().collect::<Vec<_>>().join(" "),
        Digest::new(folder).text(&text),
    );
}

#[test]
fn help_reads_as_recorded() {
    if !cfg!(all(feature = "gui", feature = "wgpu", feature = "onnx", feature = "lend")) {
        println!("skipped: the help of a build with fewer features is another one");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut all = Map::new();
    helps(&[], place.path(), &mut all);
    let differences = settle("help", &Value::Object(all), compare::EXACT);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn every_recording_has_a_case() {
    let mut names: Vec<String> = cases().iter().map(|case| format!("{}.json", case.name)).collect();
    names.push("help.json".to_owned());
    for entry in std::fs::read_dir("tests/golden/recorded").unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(names.contains(&name), "{name} belongs to no case: delete it");
    }
}
