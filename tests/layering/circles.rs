//! No large circle of files inside a room: who wants to change one file of a circle must read all of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::imports::{Graph, Sources};
use super::{room, sources};

/// Files that may import each other in one circle.
const MOST: usize = 4;

/// Room → sizes of its circles above [`MOST`] today, largest first. A number may fall, never rise.
const STANDING: &[(&str, &[usize])] = &[];

/// Counts as an import: every name that a file brings in by `use crate::…`, `use super::…`, `use self::…` or `use child::…`, and
/// every path in its code that begins so or with a module that the file knows by name (`child::f()`). A child that imports from
/// its own parent counts as all others do.
///
/// The import is one of the file that *defines* the name: where the path leads through files that only bring the name in by a `use`
/// of their own (`pub use` in a `mod.rs`, above all), those are followed. A file that re-exports a name imports it only if its own code uses
/// it as well. Names behind a glob (`use x::*`) count as the file's whose glob it is.
///
/// Does not count: comments, what stands under `#[cfg(test)]`, `mod child;`, methods called on values, other rooms (the room
/// test has those).
#[test]
fn no_large_circle_of_files_inside_a_room() {
    let graph = Sources::new(sources()).graph();
    let (mut found, mut broken) = (BTreeMap::<&str, Vec<usize>>::new(), Vec::new());
    for circle in circles(&graph) {
        let Some(room) = room(circle[0]).filter(|_| circle.len() > MOST) else { continue };
        let sizes = found.entry(room).or_default();
        let allowed = standing(room).get(sizes.len()).copied().unwrap_or(MOST);
        sizes.push(circle.len());
        if circle.len() > allowed {
            let told = told(&circle, &graph);
            broken.push(format!("{} files of {room} import each other, {allowed} may:\n{told}", circle.len()));
        }
    }
    for (room, sizes) in STANDING {
        let now = found.get(room).cloned().unwrap_or_default();
        let lower = sizes.iter().enumerate().any(|(i, size)| now.get(i).is_none_or(|now| now < size));
        broken.extend(lower.then(|| {
            format!("the circles of {room} have become smaller: write those of {now:?} above {MOST} into STANDING")
        }));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn standing(room: &str) -> &'static [usize] {
    STANDING.iter().find(|(name, _)| *name == room).map_or(&[], |(_, sizes)| sizes)
}

/// The imports inside a circle, a line for each.
fn told(circle: &[&str], graph: &Graph) -> String {
    let all = circle.iter().flat_map(|file| graph[*file].iter().map(move |(other, paths)| (file, other, paths)));
    let inside = all.filter(|(_, other, _)| circle.contains(&other.as_str()));
    let line = |paths: &BTreeSet<String>| paths.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    inside.map(|(file, other, paths)| format!("    {file} → {other} ({})", line(paths))).collect::<Vec<_>>().join("\n")
}

/// Sets of files each of which reaches each other (strongly connected components), largest first.
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reach(graph, file))).collect();
    let mut circles = BTreeSet::new();
    for (file, far) in &reached {
        let circle: Vec<&str> = far.iter().filter(|other| reached[*other].contains(file)).copied().collect();
        circles.extend((circle.len() > 1).then_some(circle));
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

fn reach<'g>(graph: &'g Graph, from: &str) -> BTreeSet<&'g str> {
    let (mut seen, mut next) = (BTreeSet::new(), VecDeque::from([from]));
    while let Some(file) = next.pop_front() {
        let new = graph[file].keys().map(String::as_str).filter(|file| seen.insert(*file)).collect::<Vec<_>>();
        next.extend(new);
    }
    seen
}

#[test]
fn imports_are_those_of_the_file_that_defines_the_name() {
    let files = [
        ("src/lib.rs", "pub mod a;\nmod b;"),
        (
            "src/a/mod.rs",
            "mod fetch;\nmod one;\npub mod two;\n#[cfg(test)]\nmod hand;\npub use one::{One, Other as Second};\npub struct Own;\nfn f() -> One { two::run() }",
        ),
        (
            "src/a/one.rs",
            "use super::{Own, two};\nuse crate::b::B;\nfn f(x: &'static str, c: char) { two::g(x, '\"') }",
        ),
        (
            "src/a/two.rs",
            "use super::Second;\n#[cfg(test)]\nuse super::Own;\n// use super::Own;\nconst S: &str = r#\"super::Own\"#;",
        ),
        (
            "src/a/fetch.rs",
            "use super::{fetch};\nuse std::path::Path;\npub fn fetch() { super::two::run(); a.b::<C>() }",
        ),
        ("src/a/hand.rs", "use super::Own;"),
        ("src/b.rs", "use crate::a::{self, Own};"),
    ];
    let graph = Sources::new(files.map(|(file, text)| (file.to_string(), text.to_string()))).graph();
    let of = |file: &str| graph[file].keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("src/a/mod.rs"), ["src/a/one.rs", "src/a/two.rs"]);
    assert_eq!(of("src/a/one.rs"), ["src/a/mod.rs", "src/a/two.rs"]);
    assert_eq!(of("src/a/two.rs"), ["src/a/one.rs"]);
    assert_eq!((of("src/a/fetch.rs"), of("src/b.rs")), (vec!["src/a/two.rs"], vec![]));
    assert!(!graph.contains_key("src/a/hand.rs"));
    assert_eq!(circles(&graph), [["src/a/mod.rs", "src/a/one.rs", "src/a/two.rs"]]);
}
