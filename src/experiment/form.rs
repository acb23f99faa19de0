//! Fields of a form as data: an experiment describes what only it has, and a window paints it.

use std::path::PathBuf;

/// A field, or a word between fields.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// A line of text.
    Text(Text),
    /// A number.
    Number(Number),
    /// Some of several.
    Choices(Choices),
    /// Rows of fields that can be added and removed.
    Rows(Rows),
    /// A word to the reader.
    Hint(&'static str),
}

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Its label.
    pub label: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Its content.
    pub text: String,
}

/// A number with its unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// Its label.
    pub label: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Its unit, with a space before it.
    pub unit: &'static str,
    /// Change for each point that the mouse moves, in the unit.
    pub speed: f64,
    /// The largest number, in the unit.
    pub most: f64,
    /// Digits after the point; 0 for a whole number.
    pub decimals: usize,
    /// Units in 1: 100 for a share shown in per cent.
    pub scale: f64,
    /// Its value, not scaled.
    pub value: f64,
}

/// Some of several.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    /// Its label.
    pub label: &'static str,
    /// What it means; empty where the glossary says it.
    pub meaning: &'static str,
    /// What the name of each box begins with.
    pub each: &'static str,
    /// Label of each, and whether it is chosen.
    pub all: Vec<(&'static str, bool)>,
}

/// Rows of fields that can be added and removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// What a row is, in lower case.
    pub row: &'static str,
    /// Titles of the columns.
    pub titles: Vec<&'static str>,
    /// The rows, of as many cells each.
    pub rows: Vec<Vec<Cell>>,
    /// A row as it is added; its first text becomes its name and number.
    pub new: Vec<Cell>,
    /// A word below the rows.
    pub hint: &'static str,
}

/// A field of a row. Its name is completed by the row and its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its name.
    pub name: &'static str,
    /// What it means; where empty, its text says it.
    pub meaning: &'static str,
    /// The word of the glossary that explains it; empty for none.
    pub word: &'static str,
    /// The choices of the last [`Input::Choice`] for which it is shown; always where empty.
    pub only: &'static [usize],
    /// What is entered.
    pub input: Input,
}

/// What is entered in a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Text, and the width of its field, points.
    Text(String, f32),
    /// A number.
    Number {
        /// Its value.
        value: f64,
        /// The range it is kept in.
        range: [f64; 2],
        /// Change for each point that the mouse moves.
        speed: f64,
        /// Digits after the point.
        decimals: usize,
        /// Its unit, with a space before it.
        unit: &'static str,
    },
    /// One of several, by its number.
    Choice(usize, &'static [&'static str]),
}

impl Field {
    /// A line of text.
    pub fn text(label: &'static str, meaning: &'static str, text: String) -> Self {
        Self::Text(Text { label, meaning, text })
    }

    /// A whole number.
    pub fn count(label: &'static str, meaning: &'static str, unit: &'static str, speed: f64, value: usize) -> Self {
        let value = value as f64;
        Self::Number(Number { label, meaning, unit, speed, most: 1e9, decimals: 0, scale: 1.0, value })
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Text(Text { label, .. }) | Self::Number(Number { label, .. }) => label,
            Self::Choices(Choices { label, .. }) | Self::Rows(Rows { row: label, .. }) => label,
            Self::Hint(_) => "",
        }
    }
}

fn find<'a>(fields: &'a [Field], label: &str) -> Option<&'a Field> {
    fields.iter().find(|field| field.label() == label)
}

/// What a line of text says.
pub(super) fn text<'a>(fields: &'a [Field], label: &str) -> &'a str {
    match find(fields, label) {
        Some(Field::Text(field)) => &field.text,
        _ => "",
    }
}

/// A number, not scaled.
pub(super) fn number(fields: &[Field], label: &str) -> f64 {
    match find(fields, label) {
        Some(Field::Number(field)) => field.value,
        _ => 0.0,
    }
}

/// A whole number.
pub(super) fn count(fields: &[Field], label: &str) -> usize {
    number(fields, label) as usize
}

/// Those of `all` whose boxes are ticked: in the order of `before` where they are the same.
pub(super) fn chosen<T: Clone + PartialEq>(fields: &[Field], label: &str, all: &[T], before: &[T]) -> Vec<T> {
    let Some(Field::Choices(field)) = find(fields, label) else { return Vec::new() };
    let ticked = all.iter().zip(&field.all).filter(|(_, (_, ticked))| *ticked);
    let ticked: Vec<T> = ticked.map(|(one, _)| one.clone()).collect();
    let same = ticked.len() == before.len() && ticked.iter().all(|one| before.contains(one));
    if same { before.to_vec() } else { ticked }
}

/// The cells of each row.
pub(super) fn rows<'a>(fields: &'a [Field], row: &str) -> &'a [Vec<Cell>] {
    match find(fields, row) {
        Some(Field::Rows(field)) => &field.rows,
        _ => &[],
    }
}

/// Numbers as a user edits them.
pub fn list<N: ToString>(numbers: &[N]) -> String {
    numbers.iter().map(N::to_string).collect::<Vec<_>>().join(", ")
}

/// The words of a list, apart by commas, semicolons or spaces.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';', ' ', '\n']).map(str::trim).filter(|word| !word.is_empty())
}

/// A path as somebody typed it, made absolute; `~` and `~/` are the home folder.
///
/// # Errors
/// When the present folder is not known.
pub fn typed_path(text: &str) -> Result<PathBuf, String> {
    let text = text.trim();
    let below_home = if text == "~" { Some("") } else { text.strip_prefix("~/") };
    let path = match (below_home, std::env::var_os("HOME")) {
        (Some(""), Some(home)) => home.into(),
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => text.into(),
    };
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Experiment, PRESETS};

    #[test]
    fn fields_as_an_experiment_describes_them_describe_it() {
        for preset in PRESETS.iter() {
            let experiment: Experiment = preset.spec().unwrap().experiment;
            let again = experiment.with_fields(&experiment.fields()).unwrap();
            assert_eq!(again.unwrap_or_else(|| experiment.clone()), experiment, "{}", preset.name);
        }
    }
}
