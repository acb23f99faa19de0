//! Which file of `src` imports which, read from the text.

use std::collections::{BTreeMap, BTreeSet};

/// The place of a module below the crate, as `["gui", "command", "keys"]`.
pub type Module = Vec<String>;

/// One name that a file brings into its scope by `use`.
#[derive(Debug, PartialEq)]
pub struct Import {
    /// Whether others may import the name from this file (`pub`, `pub(super)`, …).
    pub shown: bool,
    /// The path as written; it ends in `*` for all of a module.
    pub path: Vec<String>,
    /// What the file calls it.
    pub name: String,
}

/// What one file says, without comments, texts in quotes and what is compiled for tests alone.
#[derive(Default)]
pub struct Source {
    pub file: String,
    imports: Vec<Import>,
    /// The code outside `use`.
    rest: Vec<String>,
    children: BTreeSet<String>,
}

impl Source {
    pub fn read(file: &str, text: &str) -> Self {
        let (imports, rest) = imports(&without_tests(tokens(text)));
        let declared = rest.windows(3).filter(|three| three[0] == "mod" && three[2] == ";");
        let children = declared.map(|three| three[1].clone()).collect();
        Self { file: file.into(), imports, rest, children }
    }
}

/// Words, `::` and single signs, without comments, texts and characters in quotes.
pub fn tokens(text: &str) -> Vec<String> {
    let (chars, mut at, mut found) = (text.chars().collect::<Vec<_>>(), 0, Vec::new());
    let is = |at: usize, sign: char| chars.get(at) == Some(&sign);
    while at < chars.len() {
        let word = chars[at..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
        if is(at, '/') && is(at + 1, '/') {
            at += chars[at..].iter().take_while(|c| **c != '\n').count();
        } else if is(at, '"') {
            at = after_text(&chars, at + 1);
        } else if is(at, 'r') && (is(at + 1, '"') || is(at + 1, '#')) {
            at = after_raw_text(&chars, at + 1);
        } else if is(at, '\'') && (is(at + 1, '\\') || is(at + 2, '\'')) {
            let inner = at + if is(at + 1, '\\') { 3 } else { 2 };
            at = inner + 1 + chars[inner..].iter().take_while(|c| **c != '\'').count();
        } else if word > 0 {
            found.push(chars[at..at + word].iter().collect());
            at += word;
        } else if is(at, ':') && is(at + 1, ':') {
            found.push("::".into());
            at += 2;
        } else {
            found.extend((!chars[at].is_whitespace()).then(|| chars[at].to_string()));
            at += 1;
        }
    }
    found
}

fn after_text(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn after_raw_text(chars: &[char], at: usize) -> usize {
    let marks = chars[at..].iter().take_while(|c| **c == '#').count();
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', marks)).collect();
    let inner = at + marks + 1;
    let length = chars[inner..].windows(end.len()).position(|window| window == end);
    inner + length.unwrap_or(chars.len() - inner) + end.len()
}

/// The tokens but for every item under `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    const MARKS: [&[&str]; 2] =
        [&["#", "[", "cfg", "(", "test", ")", "]"], &["#", "[", "cfg", "(", "all", "(", "test", ","]];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let begins = |mark: &[&str]| tokens[at..].iter().map(String::as_str).take(mark.len()).eq(mark.iter().copied());
        if MARKS.into_iter().any(begins) {
            at = after_item(&tokens, at);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The place after the item that begins at `start`, with its attributes.
fn after_item(tokens: &[String], start: usize) -> usize {
    let mut depth = 0;
    let kind =
        tokens[start..].iter().find(|token| ["use", "mod", "fn", "struct", "impl", "const"].contains(&token.as_str()));
    let import = kind.is_some_and(|kind| kind == "use");
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token == ";" || token == "}" && !import) {
            return at + 1;
        }
    }
    tokens.len()
}

/// The imports among the tokens, and all else.
fn imports(tokens: &[String]) -> (Vec<Import>, Vec<String>) {
    let (mut found, mut rest, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        // `use<>` names what a type captures; it imports nothing.
        if tokens[at] == "use" && tokens.get(at + 1).is_some_and(|next| next != "<") {
            let before = at.checked_sub(1).map(|before| tokens[before].as_str());
            let shown = matches!(before, Some("pub" | ")"));
            at += 1;
            tree(tokens, &mut at, &[], &mut |path, name| found.push(Import { shown, path, name }));
        } else {
            rest.push(tokens[at].clone());
            at += 1;
        }
    }
    (found, rest)
}

/// One branch of a `use`, from its first word up to `,`, `}` or `;`.
fn tree(tokens: &[String], at: &mut usize, before: &[String], found: &mut dyn FnMut(Vec<String>, String)) {
    let (mut path, mut name) = (before.to_vec(), None);
    while let Some(token) = tokens.get(*at).filter(|token| !matches!(token.as_str(), "," | "}" | ";")) {
        *at += 1;
        match token.as_str() {
            "{" => {
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    tree(tokens, at, &path, found);
                    *at += usize::from(tokens.get(*at).is_some_and(|token| token == ","));
                }
                *at += 1;
                return;
            }
            "as" => {
                name = tokens.get(*at).cloned();
                *at += 1;
            }
            "::" => {}
            "self" if !path.is_empty() => {}
            word => path.push(word.into()),
        }
    }
    let last = path.last().cloned().unwrap_or_default();
    found(path, name.unwrap_or(last));
}

/// File → files of its own room that it imports → the paths by which it does.
pub type Graph = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// All files by their modules.
pub struct Sources(BTreeMap<Module, Source>);

/// Where a path leads.
enum Place {
    Module(Module),
    /// Something that the file of this module defines, or of which the text does not tell where it comes from.
    Item(Module),
}

impl Sources {
    pub fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let all = files.into_iter().filter(|(file, _)| file != "src/main.rs");
        let all = all.map(|(file, text)| (module(&file), Source::read(&file, &text)));
        let all: BTreeMap<Module, Source> = all.collect();
        // A file that is declared for tests alone is none of the program's.
        let declared = |module: &Module| {
            let steps = (1..=module.len()).map(|length| module[..length].split_last());
            steps.flatten().all(|(name, parent)| all.get(parent).is_some_and(|parent| parent.children.contains(name)))
        };
        let program: BTreeSet<Module> = all.keys().filter(|module| declared(module)).cloned().collect();
        Self(all.into_iter().filter(|(module, _)| program.contains(module)).collect())
    }

    pub fn graph(&self) -> Graph {
        self.0.iter().map(|(module, source)| (source.file.clone(), self.imported(module, source))).collect()
    }

    fn imported(&self, module: &Module, source: &Source) -> BTreeMap<String, BTreeSet<String>> {
        let used = source.imports.iter().filter(|import| !import.shown || source.rest.contains(&import.name));
        let used = used.map(|import| import.path.clone());
        let mut found = BTreeMap::<String, BTreeSet<String>>::new();
        for path in used.chain(self.paths(module, source)) {
            let Some(Place::Item(place)) = self.resolve(module, &path, 0) else { continue };
            if place != *module && place.first() == module.first() {
                found.entry(self.0[&place].file.clone()).or_default().insert(path.join("::"));
            }
        }
        found
    }

    /// Paths in the code outside `use` that begin at the crate or at a module that the file knows by name.
    fn paths(&self, module: &Module, source: &Source) -> Vec<Vec<String>> {
        let (rest, mut found) = (&source.rest, Vec::new());
        let starts = (0..rest.len()).filter(|at| rest.get(at + 1).is_some_and(|next| next == "::"));
        for start in starts.filter(|at| *at == 0 || !matches!(rest[at - 1].as_str(), "::" | ".")) {
            let steps = (start..rest.len()).step_by(2).take_while(|at| *at == start || rest[at - 1] == "::");
            let path: Vec<String> = steps.map(|at| rest[at].clone()).take_while(|step| step != "<").collect();
            let first = &path[0];
            let known = matches!(first.as_str(), "crate" | "super" | "self")
                || matches!(self.resolve(module, &path[..1], 0), Some(Place::Module(_)));
            found.extend(known.then_some(path));
        }
        found
    }

    /// Follows `path` as written in `module`, through the names that the modules on its way bring in from elsewhere. `None`
    /// for what lies in other crates.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Place> {
        let mut here = module.to_vec();
        for (i, step) in path.iter().enumerate() {
            match step.as_str() {
                "crate" => here.clear(),
                "self" => {}
                "super" => drop(here.pop()),
                _ => match self.step(&here, step, i + 1 == path.len(), depth)? {
                    Some(Place::Module(next)) => here = next,
                    Some(item) => return Some(item),
                    None if i == 0 => return None,
                    None => return Some(Place::Item(here)),
                },
            }
        }
        Some(Place::Module(here))
    }

    /// What `name` is in the file of `here`: `Some(None)` where the file itself defines it, `None` for another crate's. A path's
    /// last word may be both a module and a function brought in from it; then it is the function.
    fn step(&self, here: &[String], name: &str, last: bool, depth: usize) -> Option<Option<Place>> {
        let source = self.0.get(here)?;
        let import = source.imports.iter().find(|import| import.name == name);
        let import = import.filter(|import| import.path.last().is_some_and(|word| word != "*") && depth < 16);
        match import {
            Some(import) if last || !source.children.contains(name) => {
                self.resolve(here, &import.path, depth + 1).map(Some)
            }
            _ if source.children.contains(name) => Some(Some(Place::Module([here, &[name.into()]].concat()))),
            _ => Some(None),
        }
    }
}

/// The module of a file: `src/gui/mod.rs` is `gui`, and `src/lib.rs` the crate.
fn module(file: &str) -> Module {
    let inner = file.trim_start_matches("src/").trim_end_matches(".rs");
    let steps = inner.split('/').filter(|step| !["mod", "lib"].contains(step));
    steps.map(String::from).collect()
}
