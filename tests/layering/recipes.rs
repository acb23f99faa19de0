//! Whether what docs/architecture.md tells to open is there.

use std::path::Path;

use super::sources;

/// Files that a text names between backticks: paths, and bare names of sources.
fn files_named(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| !span.contains([' ', ':', '(', '{', '<']) && (span.contains('/') || span.ends_with(".rs")))
}

/// The recipes of docs/architecture.md name files and folders that exist: a path from the root or from `src/`, or a source's bare name.
#[test]
fn recipes_name_files_that_exist() {
    let text = std::fs::read_to_string("docs/architecture.md").unwrap();
    let recipes = text.split("\n## ").find(|chapter| chapter.starts_with("To add")).expect("the chapter of recipes");
    let sources = sources();
    let exists = |named: &str| {
        let bare = !named.contains('/') && sources.iter().any(|(file, _)| file.ends_with(&format!("/{named}")));
        bare || Path::new(named).exists() || Path::new("src").join(named).exists()
    };
    let named: Vec<&str> = files_named(recipes).collect();
    let gone: Vec<&&str> = named.iter().filter(|named| !exists(named)).collect();
    assert!(gone.is_empty(), "docs/architecture.md tells to open {gone:?}");
    assert!(named.len() > 10, "the recipes were not found");
    assert_eq!(files_named("`a/b`, `Flow`, `c.rs`, `d/ e`, `A::B`, d/f").collect::<Vec<_>>(), ["a/b", "c.rs"]);
}
