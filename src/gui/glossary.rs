//! The glossary: meaning and formula of every term, for tooltips and the page *Glossary*. The texts
//! are in `assets/glossary.toml`.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use eframe::egui::{Response, RichText, Ui};
use serde::Deserialize;

const TEXT: &str = include_str!("../../assets/glossary.toml");

/// The file, read at the first request. It is built in, and a test reads it.
static TERMS: LazyLock<Vec<Term>> = LazyLock::new(|| read(TEXT).unwrap_or_default());

/// The entries of a glossary's file.
fn read(text: &str) -> Result<Vec<Term>, toml::de::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        term: Vec<Term>,
    }
    toml::from_str::<File>(text).map(|file| file.term)
}

/// Every entry, in the order of the page *Glossary*.
pub fn terms() -> impl Iterator<Item = &'static Term> {
    TERMS.iter()
}

/// An entry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// As the page *Glossary* lists it.
    pub name: String,
    /// Names in labels, headings and columns. The case of words of up to two letters matters.
    words: Vec<String>,
    /// Unit; empty where it has none.
    #[serde(default)]
    pub unit: String,
    pub meaning: String,
    /// Empty where there is none.
    #[serde(default)]
    pub formula: String,
}

impl Term {
    /// Returns whether a search for `wanted` finds it.
    pub fn mentions(&self, wanted: &str) -> bool {
        let wanted = wanted.trim().to_lowercase();
        let texts = [&self.name, &self.meaning, &self.formula];
        texts.into_iter().chain(&self.words).any(|text| text.to_lowercase().contains(&wanted))
    }

    /// The entry as a tooltip.
    pub fn tip(&self) -> String {
        let Self { name, unit, meaning, formula, .. } = self;
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        let formula = if formula.is_empty() { String::new() } else { format!("\n{formula}") };
        format!("{name}{unit}: {meaning}{formula}")
    }
}

/// Entries that stand beside what a label is about.
const BESIDE: [&str; 3] = ["Nat", "Bits per dimension", "95 % interval"];

/// A name of an entry, as labels are searched for it.
struct Word {
    /// In lower case, unless the case matters.
    text: String,
    case_matters: bool,
    /// Whether the entry is what a label is about, and the number of characters: the largest is meant.
    rank: (bool, usize),
    term: &'static Term,
}

/// All of them, what is meant first.
static WORDS: LazyLock<Vec<Word>> = LazyLock::new(|| {
    let words = terms().flat_map(|term| {
        term.words.iter().map(move |word| {
            let count = word.chars().count();
            let case_matters = count <= 2;
            let text = if case_matters { word.clone() } else { word.to_lowercase() };
            Word { text, case_matters, rank: (!BESIDE.contains(&term.name.as_str()), count), term }
        })
    });
    let mut words: Vec<Word> = words.collect();
    words.sort_by_key(|word| Reverse(word.rank));
    words
});

/// Labels whose entries are remembered. Some change with every frame.
const REMEMBERED: usize = 1_000;

/// Returns the entry of the longest word in a label, units last. Every label of every frame asks: answers are
/// remembered.
pub fn find(label: &str) -> Option<&'static Term> {
    thread_local! {
        static FOUND: RefCell<HashMap<String, Option<&'static Term>>> = RefCell::default();
    }
    FOUND.with_borrow_mut(|found| {
        if let Some(term) = found.get(label) {
            return *term;
        }
        if found.len() >= REMEMBERED {
            found.clear();
        }
        let lower = label.to_lowercase();
        let said = |word: &&Word| says(if word.case_matters { label } else { &lower }, &word.text);
        let term = WORDS.iter().find(said).map(|word| word.term);
        found.insert(label.to_owned(), term);
        term
    })
}

/// Returns whether `word` stands in `label` as a whole word.
fn says(label: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    label
        .match_indices(word)
        .any(|(at, found)| !joins(label[..at].chars().next_back()) && !joins(label[at + found.len()..].chars().next()))
}

/// Adds the entry that `label` is about as a tooltip, if there is one.
pub fn explain(response: Response, label: &str) -> Response {
    match find(label) {
        Some(term) => response.on_hover_text(term.tip()),
        None => response,
    }
}

/// Returns a field's meaning, and below it the entry of its name.
pub fn beside(meaning: &str, name: &str) -> String {
    match find(name) {
        Some(term) if meaning.is_empty() => term.tip(),
        Some(term) => format!("{meaning}\n\n{}", term.tip()),
        None => meaning.to_owned(),
    }
}

/// A label whose tooltip is the entry it is about.
pub fn label(ui: &mut Ui, text: RichText) -> Response {
    let words = text.text().to_owned();
    explain(ui.label(text), &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_find_their_entries() {
        let found = |label| find(label).map(|term| term.name.as_str());
        let pairs = [
            ("KL (nats)", "KL divergence"),
            ("epistemic KL (nats)", "Epistemic uncertainty KL"),
            ("Base temperature τ", "Base temperature τ"),
            ("Exact calibr. error", "Exact calibration error"),
            ("ECE", "Expected calibration error ECE"),
            ("Held-out NLL", "Negative log-likelihood NLL"),
            ("Bayes accuracy of the test images (%)", "Bayes accuracy"),
            ("α", "Scaling law"),
            ("Class hardness: one class against the rest", "Class hardness"),
            ("Dataset hardness", "Dataset hardness"),
        ];
        for (label, name) in pairs {
            assert_eq!(found(label), Some(name), "{label}");
        }
        for label in ["hardness", "classes", "run", "time left", "Entity", "a"] {
            assert_eq!(found(label), None, "{label}");
        }
    }

    #[test]
    fn the_file_is_read_whole() {
        let read = read(TEXT).unwrap();
        assert_eq!(read.len(), TEXT.lines().filter(|line| *line == "[[term]]").count());
        assert!(read.len() > 50);
        let of = |name: &str| read.iter().find(|term| term.name == name).unwrap();
        assert_eq!(
            of("Gap to Bayes").tip(),
            "Gap to Bayes (pp): Error of the classifier beyond the Bayes error.\nerror - E; of one image max p - p(argmax q)"
        );
        assert_eq!(of("Corpus").tip(), "Corpus: A set of real images with their classes.");
    }

    #[test]
    fn no_word_stands_for_two_entries_and_every_entry_is_found_by_its_words() {
        let mut words: Vec<&str> = terms().flat_map(|term| &term.words).map(String::as_str).collect();
        for term in terms() {
            assert!(!term.words.is_empty() && term.meaning.ends_with('.'), "{}", term.name);
            for word in &term.words {
                assert_eq!(find(word).map(|found| &found.name), Some(&term.name), "{word}");
            }
        }
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}
