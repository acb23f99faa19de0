//! Which column of a table is which class, by its name.

use super::{ID_NAMES, Note, Raw, listed};
use crate::data::DATASET;
use crate::judge::Truth;

/// Prefixes of a class in column names. The first complete set counts: logits first.
const PREFIXES: [&str; 17] = [
    "",
    "logits",
    "logit",
    "log_probabilities",
    "log_probability",
    "log_probs",
    "log_prob",
    "logprobs",
    "logprob",
    "probabilities",
    "probability",
    "probs",
    "prob",
    "pred",
    "class",
    "p",
    "q",
];

/// Said of a classifier of the classes that occur alone.
const NEVER: &str = "give those that never occur probability 0, or minus infinity as logits";

/// Where ids and classes stand in a table.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    /// Column of the ids.
    pub(super) id: Option<usize>,
    /// Column of each class, [K].
    pub(super) classes: Vec<usize>,
    /// What the columns are called before the class, e.g. `logits`.
    pub(super) called: Option<String>,
    /// Names of what is not read.
    pub(super) ignored: Vec<String>,
}

impl Layout {
    /// Finds them among the names of the columns.
    pub(super) fn of(header: &[String], truth: &Truth) -> Result<Self, String> {
        let class = |at: &usize| truth.class_names.iter().any(|name| name == header[*at].trim());
        let id = id_column(header).filter(|at| !class(at));
        let others: Vec<usize> = (0..header.len()).filter(|&at| Some(at) != id).collect();
        let by_name = PREFIXES.iter().find_map(|prefix| by_names(header, &others, prefix, truth));
        let complete = match by_name {
            Some(found) => Some(found),
            None => by_numbers(header, &others, truth)?,
        };
        let Some((classes, prefix)) = complete else { return Err(none(header, &others, truth)) };
        let rest = others.into_iter().filter(|at| !classes.contains(at));
        let ignored: Vec<String> = rest.map(|at| header[at].clone()).collect();
        Ok(Self { id, classes, called: (!prefix.is_empty()).then(|| prefix.to_owned()), ignored })
    }

    /// What has to be said about it.
    pub(super) fn add_notes(&self, notes: &mut Vec<Note>) {
        let mut sorted = self.classes.clone();
        sorted.sort_unstable();
        let moved = self.classes.iter().zip(&sorted).filter(|(at, place)| at != place).count();
        if moved > 0 {
            notes.push(Note::ColumnsSorted { moved });
        }
        if !self.ignored.is_empty() {
            notes.push(Note::ColumnsIgnored { names: self.ignored.clone() });
        }
    }
}

/// The column of ids: the most telling name.
pub(super) fn id_column(header: &[String]) -> Option<usize> {
    ID_NAMES.iter().find_map(|name| header.iter().position(|column| column.trim().eq_ignore_ascii_case(name)))
}

/// What stands behind a prefix and its separator.
fn suffix_after<'a>(column: &'a str, prefix: &str) -> Option<&'a str> {
    let column = column.trim();
    let head = column.get(..prefix.len())?;
    let rest = &column[prefix.len()..];
    head.eq_ignore_ascii_case(prefix).then(|| rest.trim_matches(['_', '-', '.', ':', ' ', '[', ']', '(', ')']))
}

type Found<'a> = (Vec<usize>, &'a str);

/// Columns called by all class names, each once.
fn by_names<'a>(header: &[String], others: &[usize], prefix: &'a str, truth: &Truth) -> Option<Found<'a>> {
    let of = |name: &String| {
        let is = |column: &str| match prefix {
            "" => column.trim() == name.trim(),
            _ => suffix_after(column, prefix) == Some(name.trim()),
        };
        let mut at = others.iter().copied().filter(|&at| is(&header[at]));
        at.next().filter(|_| at.next().is_none())
    };
    truth.class_names.iter().map(of).collect::<Option<Vec<_>>>().map(|classes| (classes, prefix))
}

/// Columns called by all numbers from 0 to K − 1.
fn by_numbers(header: &[String], others: &[usize], truth: &Truth) -> Result<Option<Found<'static>>, String> {
    for prefix in PREFIXES {
        let numbered: Vec<(usize, usize)> = others
            .iter()
            .filter_map(|&at| Some((at, suffix_after(&header[at], prefix)?.parse::<usize>().ok()?)))
            .collect();
        let column = |class: usize| {
            let mut at = numbered.iter().filter(|(_, number)| *number == class);
            at.next().map(|found| found.0).filter(|_| at.next().is_none())
        };
        let Some(classes) = (0..truth.classes).map(column).collect::<Option<Vec<_>>>() else { continue };
        if numbered.len() > truth.classes {
            return Err(wrong_number(numbered.len(), truth));
        }
        return Ok(Some((classes, prefix)));
    }
    Ok(None)
}

/// The number of classes does not fit.
pub(super) fn wrong_number(found: usize, truth: &Truth) -> String {
    let occurs = |class: &usize| truth.posterior.chunks_exact(truth.classes).any(|p| p[*class] > 0.0);
    let told = format!("{found} classes; this world has {} ({})", truth.classes, listed(&truth.class_names));
    if (0..truth.classes).filter(occurs).count() == found { format!("{told}; {NEVER}") } else { told }
}

/// Why no column is a class.
fn none(header: &[String], others: &[usize], truth: &Truth) -> String {
    let names = || others.iter().map(move |&at| header[at].trim());
    let numbers: Vec<usize> = PREFIXES
        .iter()
        .map(|prefix| names().filter_map(|name| suffix_after(name, prefix)?.parse().ok()).collect::<Vec<usize>>())
        .max_by_key(Vec::len)
        .unwrap_or_default();
    let known = |name: &&str| truth.class_names.iter().any(|class| class == name);
    let (strangers, missing): (Vec<&str>, Vec<&String>) = (
        names().filter(|name| !known(name)).collect(),
        truth.class_names.iter().filter(|class| !names().any(|name| name == class.as_str())).collect(),
    );
    if numbers.len() == truth.classes && numbers.iter().min() == Some(&1) {
        return format!("columns count classes from 1; call them 0 to {} or by their names", truth.classes - 1);
    }
    if !numbers.is_empty() && numbers.len() != truth.classes {
        return format!("columns of {}", wrong_number(numbers.len(), truth));
    }
    if missing.len() == truth.classes && others.len() != truth.classes {
        return format!(
            "{} columns ({}) are not {} classes; call them by the names of the classes ({}), 0 to {}, or p0 to p{}",
            others.len(),
            listed(names()),
            truth.classes,
            listed(&truth.class_names),
            truth.classes - 1,
            truth.classes - 1
        );
    }
    let never = |name: &str| {
        let class = truth.class_names.iter().position(|class| class == name);
        class.is_some_and(|class| truth.posterior.chunks_exact(truth.classes).all(|p| p[class] <= 0.0))
    };
    if strangers.is_empty() && !missing.is_empty() && missing.iter().all(|name| never(name)) {
        return format!("no column for {}; {NEVER}", listed(&missing));
    }
    let otherwise = |name: &&String| strangers.iter().any(|stranger| is_composed_otherwise(name, stranger));
    let why = match missing.iter().find(|name| otherwise(name)) {
        Some(name) => format!(
            "Some differ in how letters such as ö are composed: write them as {DATASET} does, in Python by \
             unicodedata.normalize('{}', name)",
            if name.contains(is_mark) { "NFD" } else { "NFC" }
        ),
        None => "Is this of another world?".into(),
    };
    format!(
        "columns do not name the classes of this world: no column for {}; not known: {}. {why}",
        listed(&missing),
        if strangers.is_empty() { "none".into() } else { listed(&strangers) }
    )
}

/// Whether a sign changes the letter before it (Unicode's combining diacritical marks).
fn is_mark(sign: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&sign)
}

/// Whether two names look the same but for letters that are one sign in one of them, and a letter with its marks in the other,
/// as file names of macOS are. Which sign is which letter is not looked up: this is for a hint, not for pairing columns.
fn is_composed_otherwise(a: &str, b: &str) -> bool {
    let letters = |name: &str| {
        let mut letters: Vec<(char, String)> = Vec::new();
        for sign in name.chars() {
            match letters.last_mut().filter(|_| is_mark(sign)) {
                Some((_, marks)) => marks.push(sign),
                None => letters.push((sign, String::new())),
            }
        }
        letters
    };
    let composed =
        |one: &(char, String), parts: &(char, String)| one.1.is_empty() && !one.0.is_ascii() && !parts.1.is_empty();
    let (a, b) = (letters(a), letters(b));
    a != b && a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a == b || composed(a, b) || composed(b, a))
}

/// Rows of a table by a layout, one cell after the other.
pub(super) struct Rows {
    layout: Layout,
    raw: Raw,
}

impl Rows {
    pub(super) fn new(layout: Layout) -> Self {
        let mut raw = Raw { called: layout.called.clone(), ids: layout.id.map(|_| Vec::new()), ..Raw::default() };
        layout.add_notes(&mut raw.notes);
        Self { layout, raw }
    }

    /// Adds a row: `number` and `text` read a column of it.
    pub(super) fn push(
        &mut self,
        number: &dyn Fn(usize) -> Result<f64, String>,
        text: &dyn Fn(usize) -> Result<String, String>,
    ) -> Result<(), String> {
        if let (Some(ids), Some(column)) = (&mut self.raw.ids, self.layout.id) {
            ids.push(text(column)?);
        }
        for &column in &self.layout.classes {
            self.raw.values.push(number(column)?);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Raw {
        self.raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::toy;
    use crate::units::Seed;

    #[test]
    fn names_whose_letters_are_composed_otherwise_are_told() {
        let why = |known: &str, column: &str| {
            let mut truth = toy(3, 2, 1.0, Seed(1));
            truth.class_names = [known, "b"].map(str::to_owned).to_vec();
            Layout::of(&[column, "b"].map(str::to_owned), &truth).unwrap_err()
        };
        let [one, parts] = ["Gr\u{f6}\u{df}e", "Gro\u{308}\u{df}e"];
        assert!(
            why(one, parts).contains("normalize('NFC', name)") && why(parts, one).contains("normalize('NFD', name)")
        );
        for other in ["Grosse", "Gr\u{f6}\u{df}en", "Gro\u{df}e"] {
            assert!(why(one, other).contains("another world?"), "{other}");
        }
    }
}
