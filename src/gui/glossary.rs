//! Every word that is not everyday English, once: what it means and its formula. Tooltips and the page *Glossary* read from here.

use eframe::egui::{Response, RichText, Ui};

mod forms;
mod terms;

/// Every entry, in the order of the page *Glossary*.
pub fn terms() -> impl Iterator<Item = &'static Term> {
    terms::TERMS.iter().chain(forms::TERMS)
}

/// An entry.
#[derive(Debug)]
pub struct Term {
    /// As the page *Glossary* lists it.
    pub name: &'static str,
    /// What it is called in labels, headings and columns. Words of up to two letters are symbols: their case matters.
    words: &'static [&'static str],
    /// Unit; empty where it has none.
    pub unit: &'static str,
    /// A sentence or two.
    pub meaning: &'static str,
    /// Empty where there is none.
    pub formula: &'static str,
}

impl Term {
    /// Whether a search for `wanted` finds it.
    pub fn mentions(&self, wanted: &str) -> bool {
        let wanted = wanted.trim().to_lowercase();
        let texts = [self.name, self.meaning, self.formula];
        texts.iter().chain(self.words).any(|text| text.to_lowercase().contains(&wanted))
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

/// The entry that a label is about: that of its longest word which has one, units last.
pub fn find(label: &str) -> Option<&'static Term> {
    let named = terms().flat_map(|term| term.words.iter().map(move |word| (word.chars().count(), *word, term)));
    let said = named.filter(|(_, word, _)| says(label, word));
    said.max_by_key(|(length, _, term)| (!BESIDE.contains(&term.name), *length)).map(|(.., term)| term)
}

/// Whether `word` stands in `label` as a whole word.
fn says(label: &str, word: &str) -> bool {
    let symbol = word.chars().count() <= 2;
    let (label, word) =
        if symbol { (label.to_owned(), word.to_owned()) } else { (label.to_lowercase(), word.to_lowercase()) };
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    label
        .match_indices(&word)
        .any(|(at, found)| !joins(label[..at].chars().next_back()) && !joins(label[at + found.len()..].chars().next()))
}

/// Adds the entry that `label` is about as a tooltip, if there is one.
pub fn explain(response: Response, label: &str) -> Response {
    match find(label) {
        Some(term) => response.on_hover_text(term.tip()),
        None => response,
    }
}

/// What is said of a field, and below it the entry that its name is about.
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
        let found = |label| find(label).map(|term| term.name);
        let pairs = [
            ("KL (nats)", "KL divergence"),
            ("epistemic KL (nats)", "Epistemic uncertainty KL"),
            ("Base temperature τ", "Base temperature τ"),
            ("Exact calibr. error", "Exact calibration error"),
            ("ECE", "Expected calibration error ECE"),
            ("Held-out NLL", "Negative log-likelihood NLL"),
            ("Bayes accuracy of the test images (%)", "Bayes accuracy"),
            ("α", "Scaling law"),
        ];
        for (label, name) in pairs {
            assert_eq!(found(label), Some(name), "{label}");
        }
        for label in ["classes", "run", "time left", "Entity", "a"] {
            assert_eq!(found(label), None, "{label}");
        }
    }

    #[test]
    fn no_word_stands_for_two_entries_and_every_entry_is_found_by_its_words() {
        let mut words: Vec<&str> = terms().flat_map(|term| term.words).copied().collect();
        for term in terms() {
            assert!(!term.words.is_empty() && term.meaning.ends_with('.'), "{}", term.name);
            for word in term.words {
                assert_eq!(find(word).map(|found| found.name), Some(term.name), "{word}");
            }
        }
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}
