//! Whether docs/json.md names every key that recorded answers have, and no key that the program does not write.

use std::collections::BTreeSet;

use serde_json::Value;

/// Keys whose content is a spec, or named by what it is about: what lies in them is not listed.
const OPEN: [&str; 4] = ["spec", "model", "architecture", "intervals"];
/// What a name in a code span ends in that is a file.
const FILES: [&str; 4] = [".json", ".jsonl", ".toml", ".npz"];

type Names = BTreeSet<String>;

/// The page by headings of the second level: heading and text.
fn sections(page: &str) -> Vec<(&str, &str)> {
    page.split("\n## ").skip(1).filter_map(|section| section.split_once('\n')).collect()
}

/// What stands in code spans.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The keys that code spans name: `a.b[]` are two.
fn names(text: &str) -> Names {
    let sign = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.[]".contains(c);
    let paths = spans(text).filter(|span| span.chars().all(sign) && !FILES.iter().any(|end| span.ends_with(end)));
    let keys = paths.flat_map(|path| path.split('.')).map(|key| key.trim_end_matches("[]"));
    keys.filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

/// The section of a command, whose heading names it.
fn section_of<'a>(sections: &[(&'a str, &'a str)], command: &str) -> Option<&'a str> {
    sections.iter().find(|(heading, _)| spans(heading).any(|span| span == command)).map(|(_, text)| *text)
}

fn page() -> String {
    std::fs::read_to_string("docs/json.md").unwrap()
}

/// Names and content of the recordings.
fn recordings() -> Vec<(String, Value)> {
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let recorded = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), recorded)
    };
    std::fs::read_dir("tests/golden/recorded").unwrap().map(of).collect()
}

/// The keys of an answer, and those so many levels below them. Lists are recorded by columns, lists of lists by their entries.
fn keys(answer: &Value, levels: usize, all: &mut Names) {
    match answer {
        Value::Array(values) => values.iter().for_each(|value| keys(value, levels, all)),
        Value::Object(map) if map.len() == 2 && map.contains_key("lengths") => keys(&map["entries"], levels, all),
        Value::Object(map) => {
            all.extend(map.keys().cloned());
            let inside = map.iter().filter(|(name, _)| levels > 0 && !OPEN.contains(&name.as_str()));
            // The ends of a list of intervals are recorded apart.
            let inside = inside.filter(|(_, value)| !(value.get("low").is_some() && value.get("count").is_none()));
            inside.for_each(|(_, value)| keys(value, levels - 1, all));
        }
        _ => {}
    }
}

#[test]
fn every_recorded_key_stands_in_the_section_of_its_command() {
    let page = page();
    let sections = sections(&page);
    let parts =
        sections.iter().find(|(heading, _)| *heading == "Parts that recur").map(|(_, text)| names(text)).unwrap();
    let (mut missing, mut held) = (Vec::new(), 0);
    for (file, recorded) in recordings() {
        let words: Vec<&str> = recorded["command"].as_str().unwrap_or_default().split_whitespace().collect();
        if !words.contains(&"--json") || recorded["stdout"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let section = section_of(&sections, &words[..2].join(" ")).or_else(|| section_of(&sections, words[0]));
        let named = names(section.unwrap_or_else(|| panic!("{file}: no section for {words:?}")));
        let (mut first, mut second) = (Names::new(), Names::new());
        keys(&recorded["stdout"], 0, &mut first);
        keys(&recorded["stdout"], 1, &mut second);
        held += second.len();
        let of_second = second.iter().filter(|key| !named.contains(*key) && !parts.contains(*key));
        missing.extend(first.difference(&named).chain(of_second).map(|key| format!("{file}: {key}")));
    }
    assert!(held > 300, "only {held} keys are recorded");
    assert!(missing.is_empty(), "docs/json.md does not name {missing:#?}");
}

#[test]
fn every_command_that_prints_json_has_a_section() {
    let (page, help) = (page(), std::fs::read("tests/golden/recorded/help.json").unwrap());
    let help: Value = serde_json::from_slice(&help).unwrap();
    let prints = |text: &Value| text.as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("--json"));
    let commands = help.as_object().unwrap().iter().filter(|(_, text)| prints(text));
    let commands: Vec<&str> = commands.filter_map(|(command, _)| command.strip_prefix("bayescope ")).collect();
    assert!(commands.len() > 25, "{commands:?}");
    let without: Vec<_> = commands.iter().filter(|command| section_of(&sections(&page), command).is_none()).collect();
    assert!(without.is_empty(), "docs/json.md has no section for {without:?}");
}

/// The sources of the program.
fn sources(folder: &std::path::Path, all: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, all),
            false => all.push(std::fs::read_to_string(&path).unwrap()),
        }
    }
}

/// What a source writes: fields and variants of types that are serialised, names that serde gives, keys of `json!`.
fn written(source: &str, all: &mut Names) {
    let (mut serialised, mut end) = (false, None::<String>);
    for line in source.lines() {
        let code = line.trim();
        for given in ["rename = \"", "tag = \""] {
            let name = code.split_once(given).and_then(|(_, rest)| rest.split_once('"'));
            all.extend(name.map(|(name, _)| name.to_owned()));
        }
        // `"key": value` of a macro.
        all.extend(
            code.split('"')
                .collect::<Vec<_>>()
                .windows(2)
                .filter(|pair| pair[1].starts_with(": "))
                .map(|pair| pair[0].to_owned()),
        );
        if let Some(last) = &end {
            match line == last {
                true => end = None,
                false => all.extend(field_or_variant(code)),
            }
        } else if code.starts_with("#[") || code.starts_with("///") {
            serialised |= code.contains("Serialize");
        } else {
            let is_type = code.split_whitespace().any(|word| word == "struct" || word == "enum");
            if serialised && is_type && code.ends_with('{') {
                end = Some(line[..line.len() - line.trim_start().len()].to_owned() + "}");
            }
            serialised = false;
        }
    }
}

/// The name of a field; a variant as serde writes it.
fn field_or_variant(code: &str) -> Option<String> {
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let name: String = code.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let rest = &code[name.len()..];
    let is_variant = name.starts_with(|c: char| c.is_ascii_uppercase()) && rest.starts_with([',', '(', ' ']);
    (rest.starts_with(": ") || is_variant).then(|| name.to_lowercase())
}

#[test]
fn nothing_is_documented_that_is_not_written() {
    let (page, mut sources_of_all, mut known) = (page(), Vec::new(), Names::from(["null".to_owned()]));
    sources(std::path::Path::new("src"), &mut sources_of_all);
    sources_of_all.iter().for_each(|source| written(source, &mut known));
    // Names of commands, beside which others stand.
    known.extend(sections(&page).iter().flat_map(|(heading, _)| names(heading)));
    assert!(known.contains("bits_per_dim") && !known.contains("bits_per_dimension"));
    let unknown: Vec<String> = names(&page).difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "docs/json.md names what nothing writes: {unknown:?}");
}

#[test]
fn keys_are_found_in_spans_and_in_digests() {
    let found = names("| `a`, `b.c[]` | `run.json`, `A`, `x = 1`, `[]` |");
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b", "c"]);
    let mut all = Names::new();
    let digest = serde_json::json!({ "list": { "lengths": "2 2", "entries": { "p": 1 } }, "spec": { "no": 1 },
        "interval": { "low": 1, "high": 2 } });
    keys(&digest, 1, &mut all);
    assert_eq!(all.into_iter().collect::<Vec<_>>(), ["interval", "list", "p", "spec"]);
    let mut all = Names::new();
    let source = "#[derive(Serialize)]\npub struct A {\n    /// x\n    pub b: f64,\n}\nstruct C {\n    d: f64,\n}\njson!({ \"e\": 1, \"f\": 2 })";
    written(source, &mut all);
    assert_eq!(all.into_iter().collect::<Vec<_>>(), ["b", "e", "f"]);
}
