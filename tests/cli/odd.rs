//! What is no file where a file is expected: pipes, devices, folders. One line that names it, at once.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{bayescope, fail, text};

/// Makes something at a path that must not be read.
type Odd = fn(&Path);

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn endless(path: &Path) {
    std::os::unix::fs::symlink("/dev/zero", path).unwrap();
}

fn folder(path: &Path) {
    std::fs::create_dir(path).unwrap();
}

/// Runs the program, which must end with code 1 within seconds and name the file in its last line.
fn refused(args: &[&str], name: &str) {
    let begun = Instant::now();
    let mut child = bayescope(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    assert!(said.lines().last().unwrap_or_default().contains(name), "{args:?}: {said}");
    assert!(!said.contains("panicked"), "{args:?}: {said}");
}

/// File in a folder, and how the program is led to it: `@` is the folder, `%` the file.
const READERS: &[(&str, &[&str])] = &[
    ("oracle.json", &["oracle", "info", "@"]),
    ("oracle.json", &["sample", "@", "--n", "1", "--device", "cpu", "--out", "@/x.npz"]),
    ("weights.safetensors", &["oracle", "info", "%"]),
    ("run.toml", &["summary", "@"]),
    ("run.toml", &["resume", "@", "--device", "cpu"]),
    ("run.toml", &["watch", "@", "--once"]),
    ("spec.toml", &["plan", "%"]),
    ("spec.toml", &["run", "%", "--device", "cpu", "--out", "@/run"]),
    ("problem.json", &["bayes-error", "%"]),
    ("a.npz", &["posterior", "mnist", "%", "--device", "cpu"]),
];

#[test]
fn pipes_devices_and_folders_are_no_files() {
    for (name, args) in READERS {
        for (kind, make) in [("pipe", pipe as Odd), ("device", endless), ("folder", folder)] {
            // A folder of images, or of a run, is something that may be there.
            if kind == "folder" && ["a.npz", "spec.toml", "problem.json"].contains(name) {
                continue;
            }
            let place = tempfile::tempdir().unwrap();
            let file = place.path().join(name);
            make(&file);
            let args: Vec<String> =
                args.iter().map(|a| a.replace('%', text(&file)).replace('@', text(place.path()))).collect();
            refused(
                &args.iter().map(String::as_str).collect::<Vec<_>>(),
                place.path().file_name().unwrap().to_str().unwrap(),
            );
        }
    }
}

/// A planned run whose files became pipes.
#[test]
fn what_cannot_be_looked_at_is_not_called_missing() {
    let place = tempfile::tempdir().unwrap();
    let circle = place.path().join("circle.png");
    std::os::unix::fs::symlink("circle.png", &circle).unwrap();
    refused(&["posterior", "mnist", text(&circle), "--device", "cpu"], "circle.png: Too many levels");
    refused(&["posterior", "mnist", text(&place.path().join("a.png")), "--device", "cpu"], "there is no such file");
}

#[test]
fn of_a_line_without_end_no_more_is_quoted_than_can_be_read() {
    let place = tempfile::tempdir().unwrap();
    let spec = place.path().join("spec.toml");
    std::fs::write(&spec, format!("# one\nname = \"{}\n", "é".repeat(1 << 20))).unwrap();
    for args in [&["plan", text(&spec)][..], &["oracle", "train", text(&spec), "--out", text(&place.path().join("x"))]]
    {
        let said = fail(1, args);
        assert!(said.len() < 5000 && said.contains("spec.toml: line 2: "), "{args:?}: {} bytes", said.len());
    }
}

/// A file that outgrows the limit of its process is named, and nothing of it is left.
#[test]
#[cfg(target_os = "linux")]
fn a_file_larger_than_the_limit_is_named() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("samples.npz");
    // 64 images of 4 KiB; in blocks of 512 or 1,024 bytes, as shells have it.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"ulimit -f 64; exec "$0" sample mnist --device cpu --out "$1""#]);
    let output = shell.arg(env!("CARGO_BIN_EXE_bayescope")).arg(&out).env_remove("DISPLAY").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("samples.npz: File too large") && said.contains("ulimit -f"), "{said}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn pipes_in_a_run_folder_are_named() {
    let place = tempfile::tempdir().unwrap();
    let (run, id) = planned(place.path());
    let cell = run.join("cells").join(&id);
    std::fs::create_dir_all(&cell).unwrap();
    pipe(&cell.join("status.json"));
    refused(&["watch", text(&run), "--once"], "status.json");
    std::fs::remove_file(cell.join("status.json")).unwrap();
    pipe(&cell.join("result.json"));
    refused(&["summary", text(&run), "--bought", &id], "result.json");
    // The other cells are summarised.
    assert!(crate::run::succeed(&["summary", text(&run)]).contains("result.json"));
    std::fs::remove_file(run.join("plan.jsonl")).unwrap();
    endless(&run.join("plan.jsonl"));
    refused(&["watch", text(&run), "--once"], "plan.jsonl");
}

/// A planned run in a folder, and the ID of its first cell.
fn planned(place: &Path) -> (std::path::PathBuf, String) {
    let run = place.join("run");
    crate::run::succeed(&["plan", "scaling-quick", "--out", text(&run)]);
    let plan = std::fs::read_to_string(run.join("plan.jsonl")).unwrap();
    let cell: serde_json::Value = serde_json::from_str(plan.lines().next().unwrap()).unwrap();
    (run, cell["id"].as_str().unwrap().to_owned())
}

/// IDs are names of folders; none leads out of the run's.
#[test]
fn a_plan_that_leads_elsewhere_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (run, id) = planned(place.path());
    let plan = std::fs::read_to_string(run.join("plan.jsonl")).unwrap();
    std::fs::write(run.join("plan.jsonl"), plan.replacen(&id, "/etc", 1)).unwrap();
    for args in [["watch", text(&run), "--once"].as_slice(), &["summary", text(&run)], &["plan", text(&run)]] {
        refused(args, "plan.jsonl");
    }
}

/// A name would begin a line of its own, turn it around, or fill a screen.
#[test]
fn specs_with_impossible_names_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let (run, _) = planned(place.path());
    let spec = std::fs::read_to_string(run.join("run.toml")).unwrap();
    let name = spec.lines().find(|line| line.starts_with("name = ")).unwrap();
    let long = format!("name = \"{}\"", "x".repeat(300));
    for other in ["name = \"a\\nbayescope: all is done\"", "name = \"a\\u202eb\"", &long] {
        let changed = spec.replacen(name, other, 1);
        std::fs::write(run.join("run.toml"), &changed).unwrap();
        for args in [["watch", text(&run), "--once"].as_slice(), &["summary", text(&run)], &["plan", text(&run)]] {
            refused(args, "run.toml");
        }
        let file = place.path().join("changed.toml");
        std::fs::write(&file, &changed).unwrap();
        refused(&["plan", text(&file)], "changed.toml");
    }
}

/// The bundled world in a folder, its description changed.
fn described(place: &Path, change: impl Fn(&mut serde_json::Value)) -> std::path::PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/oracles/mnist");
    let folder = place.join("world");
    std::fs::create_dir_all(&folder).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let path = folder.join("oracle.json");
    let mut info = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut info);
    std::fs::write(&path, serde_json::to_vec(&info).unwrap()).unwrap();
    folder
}

/// What would command a terminal, take two classes for one, or fail only after all is drawn.
#[test]
fn descriptions_with_impossible_names_are_refused() {
    let place = tempfile::tempdir().unwrap();
    type Change = fn(&mut serde_json::Value);
    let changes: [(Change, &str); 6] = [
        (|info| info["class_names"][8] = "9".into(), "two classes are called \"9\""),
        (|info| info["format"] = 999.into(), "format 999"),
        (|info| info["class_names"][0] = "x".repeat(300).into(), "longer than"),
        (|info| info["name"] = "\u{1b}]0;x\u{7}".into(), "control signs"),
        (|info| info["class_names"][0] = "\u{202e}x".into(), "control signs"),
        (|info| info["preprocessing"] = "none\nSHA-256: as published".into(), "ends of lines"),
    ];
    for (change, why) in changes {
        let world = described(place.path(), change);
        let said = crate::run::fail(1, &["oracle", "info", text(&world)]);
        assert!(said.contains("oracle.json") && said.contains(why), "{said:?}");
        assert!(!said.chars().any(|c| c == '\u{1b}' || c == '\u{202e}'), "{said:?}");
    }
    crate::run::succeed(&["oracle", "info", text(&described(place.path(), |_| ()))]);
}

#[test]
fn what_cannot_be_meant_is_said() {
    let output = bayescope(&["oracle", "info", "mnist"]).env("BAYESCOPE_SIMD", "scalar").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("BAYESCOPE_SIMD=scalar is not known"));
    let said = crate::run::fail(1, &["bayes-error", "mnist", "--tolerance", "1e-300"]);
    assert!(said.contains("at least 1e-12, not 1e-300"), "{said}");
    let large = ["1e308"; 10].join(",");
    let said = crate::run::fail(1, &["bayes-error", "mnist", "--prior", &large]);
    assert!(said.contains("too large"), "{said}");
    let said = crate::run::fail(1, &["oracle", "info", "no\u{1b}[2Jworld"]);
    assert!(said.contains("\\u{1b}[2J"), "{said}");
}

/// A signal ends `sample` in the middle of its archive. What is left goes with the next one.
#[test]
fn what_an_ended_sample_leaves_goes_with_the_next() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("n.npz");
    let parts = || {
        let names = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".part")).count()
    };
    let args = ["sample", "mnist", "--n", "200000", "--device", "cpu", "--out", text(&out)];
    let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while parts() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The shell's own: a clean Debian has no program of that name.
    assert!(Command::new("sh").args(["-c", "kill -TERM $0", &child.id().to_string()]).status().unwrap().success());
    child.wait().unwrap();
    crate::run::succeed(&["sample", "mnist", "--n", "1", "--device", "cpu", "--out", text(&out)]);
    assert_eq!(parts(), 0);
    assert!(out.is_file());
}

/// Results are not written into a folder that is something else, nor into the one that is read.
#[test]
fn folders_that_are_something_else_stay_as_they_are() {
    let place = tempfile::tempdir().unwrap();
    let names = |folder: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let pictures = place.path().join("pictures");
    crate::run::succeed(&["sample", "mnist", "--n", "3", "--device", "cpu", "--out", text(&pictures)]);
    let into = |mark: &str, command: &[&str]| {
        // A dot in the name would ask `sample` for a file.
        let folder = place.path().join(mark.replace('.', "-"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(mark), "{}").unwrap();
        let args = [command, &["--device", "cpu", "--out", text(&folder)]].concat();
        let said = crate::run::fail(1, &args);
        assert!(said.contains("holds a") && said.contains(mark) && said.contains("another folder"), "{args:?}: {said}");
        assert_eq!(names(&folder), [mark], "{args:?}");
    };
    let sample: &[&str] = &["sample", "mnist", "--n", "3"];
    let posterior: &[&str] = &["posterior", "mnist", text(&pictures), "--no-compare"];
    let run: &[&str] = &["run", "scaling-quick"];
    let export: &[&str] = &["export", "mnist", "--train", "3", "--test", "3"];
    let strangers: [(&str, &[&[&str]]); 6] = [
        ("dataset.json", &[sample, posterior, run]),
        ("oracle.json", &[sample, posterior, run, export]),
        ("flows.json", &[sample, posterior, run, export]),
        ("run.toml", &[sample, posterior, export]),
        ("job.json", &[sample, run, export]),
        ("export.json", &[sample, posterior, run]),
    ];
    for (mark, commands) in strangers {
        commands.iter().for_each(|command| into(mark, command));
    }
    let before = names(&pictures);
    let args = [posterior, &["--device", "cpu", "--out", text(&pictures)]].concat();
    let said = crate::run::fail(1, &args);
    assert!(said.contains("read from"), "{said}");
    assert_eq!(names(&pictures), before);
}

/// Every file goes through the same door, which takes away what killed processes of this machine have left in its folder.
#[test]
#[cfg(target_os = "linux")]
fn what_killed_processes_leave_goes_with_the_next_file() {
    let place = tempfile::tempdir().unwrap();
    let dataset = place.path().join("dataset");
    std::fs::create_dir(&dataset).unwrap();
    let dead = |folder: &Path| {
        // Larger than any process can be called.
        let name = format!(".w.npz.{}.{}.Xy12Zq.part", bayescope::data::machine(), u32::MAX);
        std::fs::write(folder.join(&name), "half").unwrap();
        folder.join(name)
    };
    let (out, begun) = (place.path().join("w.npz"), dead(place.path()));
    let theirs = place.path().join(".download.part");
    std::fs::write(&theirs, "of another program").unwrap();
    let walk = ["walk", "mnist", "--from", "sample:0", "--to", "sample:1", "--steps", "3", "--device", "cpu", "--out"];
    crate::run::succeed(&[walk.as_slice(), &[text(&out)]].concat());
    assert!(out.is_file() && !begun.exists() && theirs.exists());
    let begun = dead(&dataset);
    let export = ["export", "mnist", "--train", "2", "--test", "2", "--format", "npz", "--device", "cpu", "--out"];
    crate::run::succeed(&[export.as_slice(), &[text(&dataset)]].concat());
    assert!(dataset.join("dataset.json").is_file() && !begun.exists());
}
