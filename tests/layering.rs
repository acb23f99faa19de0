//! The rooms of docs/architecture.md: who may import whom, and who may name what, and circles inside a room. Scans the source
//! text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "layering/circles.rs"]
mod circles;
#[path = "layering/disk.rs"]
mod disk;
#[path = "layering/imports.rs"]
mod imports;
#[path = "layering/plots.rs"]
mod plots;
#[path = "layering/recipes.rs"]
mod recipes;
#[path = "layering/words.rs"]
mod words;

use std::path::Path;

/// Room → rooms it may import besides itself. Left may be imported by right, never back.
const ROOMS: &[(&str, &[&str])] = &[
    ("amounts", &[]),
    ("error", &[]),
    ("units", &["error"]),
    ("stats", &[]),
    ("events", &["error"]),
    ("provenance", &[]),
    ("parallel", &[]),
    ("device", &["error", "events"]),
    ("data", &["error", "units", "events", "parallel"]),
    ("kernels", &[]),
    // What a device holds is read back through one door, which counts, and reports the faults of the device.
    ("flow", &["error", "units", "events", "kernels", "device", "data"]),
    ("figure", &["error", "measure"]),
    ("gradients", &["error", "device", "kernels"]),
    // `bench` measures what the kernels of the host can do at most.
    (
        "oracle",
        &[
            "error",
            "units",
            "events",
            "provenance",
            "parallel",
            "stats",
            "device",
            "gradients",
            "data",
            "flow",
            "kernels",
        ],
    ),
    // A long job, whoever carries it out: it is given the open oracle and the device.
    ("task", &["error", "events", "provenance", "device", "oracle"]),
    ("classifier", &["error", "units", "events", "kernels", "device", "gradients", "data", "flow"]),
    ("bayes", &["error", "units", "events", "provenance", "parallel", "stats", "kernels", "data", "flow", "oracle"]),
    ("measure", &["error", "units", "events", "parallel", "stats", "kernels"]),
    (
        "experiment",
        &[
            "error",
            "units",
            "events",
            "parallel",
            "stats",
            "data",
            "flow",
            "oracle",
            "bayes",
            "measure",
            "classifier",
            "figure",
        ],
    ),
    (
        "export",
        &[
            "error",
            "units",
            "events",
            "provenance",
            "parallel",
            "stats",
            "data",
            "flow",
            "oracle",
            "bayes",
            "measure",
            "figure",
            "experiment",
            "task",
        ],
    ),
    ("judge", &["error", "units", "events", "parallel", "stats", "data", "flow", "classifier", "measure", "figure"]),
    (
        "validate",
        &[
            "error",
            "units",
            "events",
            "provenance",
            "data",
            "flow",
            "oracle",
            "classifier",
            "measure",
            "figure",
            // The Bayes error of the world, which its errors on real images are held against.
            "experiment",
            "task",
        ],
    ),
    ("verify", &["error", "units", "events", "device", "data", "flow", "oracle", "classifier", "figure", "task"]),
    // The device's name goes into the record of every oracle that a ranking of corpora trains.
    (
        "run",
        &[
            "error",
            "units",
            "events",
            "provenance",
            "device",
            "data",
            "figure",
            "flow",
            "oracle",
            "classifier",
            // What other programs log is measured step by step.
            "measure",
            "experiment",
            // Among the models that are judged are those of runs.
            "judge",
            "task",
        ],
    ),
];

/// Room → what alone of a room beside it it may name.
const NEIGHBOURS: &[(&str, &[&str])] = &[
    // What a network gives becomes log-probabilities by the same lines, in f64, that `measure` normalises and refuses by.
    // `measure` imports nothing of `classifier`: no ring closes.
    ("classifier", &["measure::log_softmax"]),
    // Posteriors of a dataset with noisy labels come from its log-likelihoods by the one function that knows the noise. What the
    // export found of rounded x is read as it was written, and told in the same sentence.
    ("judge", &["oracle::label_noise", "oracle::rounding::Rounding"]),
    // What BAYESCOPE_SIMD asks for is refused, and --reproducible is settled, before anything computes.
    ("cli", &["kernels::unknown_request", "kernels::settle_on_portable"]),
];

/// Rooms that may import all that compute, and those named with them.
const FACES: &[(&str, &[&str])] = &[("worker", &[]), ("gui", &["worker"]), ("cli", &["worker", "gui"])];
const ENGINE: &[&str] = &[
    "amounts",
    "error",
    "provenance",
    "parallel",
    "units",
    "stats",
    "events",
    "device",
    "data",
    "flow",
    "oracle",
    "task",
    "bayes",
    "measure",
    "classifier",
    "figure",
    "experiment",
    "export",
    "judge",
    "validate",
    "verify",
    "run",
];

fn sources() -> Vec<(String, String)> {
    let root = Path::new(".");
    let mut folders = vec![root.join("src")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let paths = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push((name(root, &path), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 20, "the sources were not found");
    found
}

fn name(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/")
}

/// The room of a file; `None` for main.rs and lib.rs.
fn room(file: &str) -> Option<&str> {
    let inner = file.strip_prefix("src/")?;
    let room = inner.split('/').next()?.trim_end_matches(".rs");
    (!["main", "lib"].contains(&room)).then_some(room)
}

/// Code lines, numbered, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.split("//").next().unwrap_or_default()));
    lines.filter(|(_, line)| !line.trim().is_empty())
}

#[test]
fn rooms_import_only_what_stands_to_their_left() {
    let mut broken = Vec::new();
    for (file, text) in sources() {
        let Some(room) = room(&file) else { continue };
        let named = |rooms: &'static [(&str, &[&'static str])]| rooms.iter().find(|(name, _)| *name == room);
        let allowed = match (named(ROOMS), named(FACES)) {
            (Some((_, allowed)), _) => allowed.to_vec(),
            (None, Some((_, beside))) => [ENGINE, beside].concat(),
            (None, None) => panic!("{file}: room '{room}' is not in the plan"),
        };
        let beside = NEIGHBOURS.iter().filter(|(name, _)| *name == room).flat_map(|(_, items)| *items);
        let beside: Vec<&str> = beside.copied().collect();
        for (line, code) in code(&text) {
            for import in code.split("crate::").skip(1) {
                if beside.iter().any(|item| begins_with(import, item)) {
                    continue;
                }
                let import: String = import.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if !import.is_empty() && import != room && !allowed.contains(&import.as_str()) {
                    broken.push(format!("{file}:{line}: {room} imports {import}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Whether a path names `item`, and not another whose name begins so.
fn begins_with(path: &str, item: &str) -> bool {
    let after = |rest: &str| rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_');
    path.strip_prefix(item).is_some_and(after)
}

/// Whether `word` stands alone in `code`, outside string literals.
fn mentions(code: &str, word: &str) -> bool {
    let outside: String = code.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    outside.match_indices(word).any(|(at, _)| {
        let before = outside[..at].chars().next_back();
        let after = outside[at + word.len()..].chars().next();
        let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !part(before) && (word.ends_with(':') || !part(after))
    })
}

/// Names in the first column of the table `| file | what |` at the top of a file; `None` where there is no such table.
fn tabled(text: &str) -> Option<Vec<&str>> {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("//! | "));
    rows.find(|row| row.starts_with("file | what |"))?;
    let first = rows.filter_map(|row| row.split(" |").next());
    Some(first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect())
}

/// The modules that a file declares, those of tests aside.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    let modules = text.lines().filter_map(|line| line.split_once("mod ").filter(|(before, _)| !before.contains("//")));
    let names = modules.filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
    names.filter_map(|(_, after)| after.strip_suffix(';')).filter(|name| *name != "tests")
}

#[test]
fn tables_of_files_name_every_file() {
    let (mut tables, mut broken) = (0, Vec::new());
    for (file, text) in sources() {
        let Some(tabled) = tabled(&text) else { continue };
        tables += 1;
        let missing = declared(&text).filter(|module| !tabled.contains(module)).map(|module| (module, "is missing in"));
        let gone = tabled.iter().filter(|name| **name != "mod" && !declared(&text).any(|module| module == **name));
        let gone = gone.map(|name| (*name, "has gone from below"));
        broken.extend(missing.chain(gone).map(|(name, how)| format!("{name} {how} the table of {file}")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(tables > 10, "the tables were not found");
}

#[test]
fn the_scan_sees_what_it_should() {
    let text = "//! | file | what |\n//! |---|---|\n//! | `a`, `b` | `not this` |\n\nmod a;\npub(super) mod c;\nmod tests;\n// mod d;";
    assert_eq!(tabled(text), Some(vec!["a", "b"]));
    assert_eq!((declared(text).collect::<Vec<_>>(), tabled("//! | file | figure |")), (vec!["a", "c"], None));
    assert!(mentions("use egui::Ui;", "egui") && !mentions("let begui = 1;", "egui"));
    assert!(!mentions(r#"println!("egui");"#, "egui"));
    assert!(mentions("burn::tensor::x(wgpu::Instance)", "wgpu::"));
    assert!(begins_with("measure::log_softmax;", "measure::log_softmax"));
    assert!(
        !begins_with("measure::log_softmax_of;", "measure::log_softmax") && !begins_with("measure::", "measure::x")
    );
    assert_eq!(code("a // egui\n// b").collect::<Vec<_>>(), [(1, "a ")]);
    assert_eq!((room("src/gui/app.rs"), room("src/units.rs"), room("src/main.rs")), (Some("gui"), Some("units"), None));
}

/// Files of others may be pipes, devices or endless: all are opened by `data::source`, which wants a regular file and bounds what is
/// held. What the system itself keeps is read as it is.
#[test]
fn no_file_is_read_raw() {
    const RAW: &[&str] = &["fs::read(", "fs::read_to_string(", " File::open(", "(File::open(", "read(true)"];
    const MAY: &[(&str, &str)] = &[
        ("src/data/source.rs", "the one place"),
        ("src/data/temp_files.rs", "/proc/sys/kernel/hostname"),
        ("src/oracle/bench.rs", "/proc/self/stat"),
        ("src/cli/serve.rs", "/proc/meminfo and /dev/urandom"),
        ("src/device/cuda.rs", "/proc/driver/nvidia/version"),
        ("src/data/write.rs", "folders are synced"),
        ("src/export/pictures.rs", "file systems are synced"),
        ("src/data/lock.rs", "locks"),
        ("src/oracle/scale/log.rs", "its own log, open to be read and written"),
        ("src/data/fetch/part.rs", "its own part, open to be read and written"),
        ("src/flow/weights/array.rs", "as long as its shape, which its file was found to hold"),
        ("src/data/pickle/batch.rs", "a piece of a storage"),
        ("src/data/fetch/mat.rs", "one element, of which the length is known"),
    ];
    let mut raw = Vec::new();
    for (name, text) in sources() {
        if name.ends_with("tests.rs") || name.contains("tests/") || MAY.iter().any(|(may, _)| *may == name) {
            continue;
        }
        let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        // Whatever opened it: a reader that is read to its end is bounded in the same line.
        let endless = |line: &str| {
            ["read_to_end(", "read_to_string("].iter().any(|read| line.contains(read)) && !line.contains(".take(")
        };
        let lines = before_tests.lines().filter(|line| RAW.iter().any(|raw| line.contains(raw)) || endless(line));
        raw.extend(lines.map(|line| format!("{name}: {line}")));
    }
    assert!(
        raw.is_empty(),
        "read these through data::read_text, read_bytes, read_bounded or open_regular:\n{}",
        raw.join("\n")
    );
}

/// What in a line of code defines a colour: egui's names and makers of colours, hex numbers of 24 bits, three hex bytes in brackets, and hex
/// strings of style sheets.
fn colour_in(code: &str) -> Option<String> {
    const NAMES: &[&str] = &["Color32::", "Rgba::", "Hsva::", "hex_color!"];
    let digits = |text: &str| text.chars().take_while(char::is_ascii_hexdigit).count();
    let ends = |text: &str| text.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let hex = |mark: &str, lengths: &[usize]| {
        let found = code.match_indices(mark).map(|(at, _)| &code[at + mark.len()..]);
        found.filter(|rest| lengths.contains(&digits(rest)) && ends(&rest[digits(rest)..])).map(str::to_owned).next()
    };
    let bytes = |list: &str| {
        let parts: Vec<&str> = list.split(']').next().unwrap_or_default().split(',').map(str::trim).collect();
        parts.len() == 3 && parts.iter().all(|part| part.strip_prefix("0x").is_some_and(|hex| digits(hex) == 2))
    };
    let named = NAMES.iter().find(|name| code.contains(**name)).map(|name| (*name).to_owned());
    let triple = || code.split('[').skip(1).find(|list| bytes(list)).map(str::to_owned);
    named
        .or_else(|| hex("0x", &[6]))
        .or_else(|| hex("\"#", &[3, 6, 8]))
        .or_else(|| hex(":#", &[3, 6, 8]))
        .or_else(triple)
}

/// Every colour of files and of the window lies in the palette of the figures or in the theme of the window, where tests measure contrasts.
#[test]
fn colours_are_defined_in_the_palette_and_the_theme() {
    const PLACES: &[&str] = &["src/figure/palette.rs", "src/gui/theme.rs"];
    let (mut broken, mut seen) = (Vec::new(), 0);
    for (file, text) in sources() {
        if !["src/figure/", "src/gui/"].iter().any(|room| file.starts_with(room)) || file.contains("tests") {
            continue;
        }
        let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (line, code) in code(before_tests) {
            let Some(colour) = colour_in(code) else { continue };
            match PLACES.contains(&file.as_str()) {
                true => seen += 1,
                false => broken.push(format!("{file}:{line}: defines the colour {colour}")),
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(seen > 30, "the scan no longer sees the palette and the theme");
    for colour in ["Color32::WHITE", "x(0x2f6fb0, 1)", "[[0x00, 0x60, 0xa6], y]", "\"#fff\"", "style=\"fill:#e3e6ea\""]
    {
        assert!(colour_in(colour).is_some(), "{colour}");
    }
    for other in ["fn ink() -> Color32 {", "0x1f", "[0x00, 0x3c]", "\"#{r:02x}{g:02x}\"", "#[derive(Debug)]", "\"#42\""]
    {
        assert_eq!(colour_in(other), None, "{other}");
    }
}
