//! Tables: for the eye, for papers, for other programs.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::csv::{comment, records};
use crate::measure::Estimate;

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Stem of its files.
    pub id: String,
    /// Title.
    pub title: String,
    /// What its rows are and how to read them.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, as long as there are columns.
    pub rows: Vec<Vec<Value>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Title.
    pub title: String,
    /// Unit, where there is one.
    pub unit: Option<String>,
    /// Digits behind the point.
    pub decimals: usize,
}

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Words.
    Text(String),
    /// A number, with the ends of its 95 % interval where it has one.
    Number {
        /// The number.
        value: f64,
        /// Lower end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<f64>,
        /// Upper end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
    },
    /// Nothing.
    Nothing,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number { value, low: None, high: None }
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::from(count as f64)
    }
}

impl<V: Into<Self>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Nothing, V::into)
    }
}

impl Column {
    /// Title and unit.
    pub fn heading(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.title),
            None => self.title.clone(),
        }
    }
}

impl Value {
    /// With its interval.
    pub fn within(value: f64, low: f64, high: f64) -> Self {
        Self::Number { value, low: Some(low), high: Some(high) }
    }

    /// An estimate with its interval, times `unit` (100 for per cent).
    pub fn of(Estimate { value, interval }: Estimate, unit: f64) -> Self {
        Self::within(unit * value, unit * interval.low, unit * interval.high)
    }

    /// [`Self::of`] what may be missing.
    pub fn of_any(estimate: Option<Estimate>, unit: f64) -> Self {
        estimate.map(|estimate| Self::of(estimate, unit)).into()
    }

    /// As it is read, with so many digits behind the point.
    pub fn show(&self, decimals: usize) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Nothing => "–".into(),
            Self::Number { value, low: Some(low), high: Some(high) } => {
                let [value, low, high] = [value, low, high].map(|number| fixed(*number, decimals));
                format!("{value} [{low}, {high}]")
            }
            Self::Number { value, .. } => fixed(*value, decimals),
        }
    }
}

/// A number with so many digits behind the point. What rounds to zero has no sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|sign| matches!(sign, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// A table in the making: the things its rows are about, and its columns.
#[derive(Debug)]
pub struct TableOf<R> {
    things: Vec<R>,
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl<R: Copy> TableOf<R> {
    /// Adds a column: title, unit ("" for none), digits behind the point, value of a row's thing.
    #[must_use]
    pub fn column<V: Into<Value>>(mut self, title: &str, unit: &str, decimals: usize, shows: impl Fn(R) -> V) -> Self {
        let unit = (!unit.is_empty()).then(|| unit.to_owned());
        self.columns.push(Column { title: title.to_owned(), unit, decimals });
        for (row, thing) in self.rows.iter_mut().zip(&self.things) {
            row.push(shows(*thing).into());
        }
        self
    }

    /// Adds a column of words, or of whole numbers without a unit.
    #[must_use]
    pub fn words<V: Into<Value>>(self, title: &str, shows: impl Fn(R) -> V) -> Self {
        self.column(title, "", 0, shows)
    }

    /// The table, by its names.
    pub fn named(self, id: impl Into<String>, title: impl Into<String>, caption: impl Into<String>) -> Table {
        let (id, title, caption) = (id.into(), title.into(), caption.into());
        Table { id, title, caption, columns: self.columns, rows: self.rows }
    }
}

impl Table {
    /// Begins a table with a row for each of `things`.
    pub fn of<R: Copy>(things: impl IntoIterator<Item = R>) -> TableOf<R> {
        let things: Vec<R> = things.into_iter().collect();
        TableOf { columns: Vec::new(), rows: vec![Vec::new(); things.len()], things }
    }

    /// Every cell as it is read.
    pub fn shown(&self) -> Vec<Vec<String>> {
        let row = |row: &Vec<Value>| row.iter().zip(&self.columns).map(|(v, column)| v.show(column.decimals)).collect();
        self.rows.iter().map(row).collect()
    }

    /// Lines of aligned columns.
    pub fn text(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(Column::heading).collect();
        let rows = self.shown();
        let length = |text: &String| text.chars().count();
        let width = |c: usize| rows.iter().map(|row| length(&row[c])).chain([length(&headings[c])]).max().unwrap_or(0);
        let widths: Vec<usize> = (0..headings.len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for row in std::iter::once(&headings).chain(&rows) {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        text
    }

    /// CSV: title and caption as comments, then a line a row; an interval adds two fields. Numbers
    /// are the shortest that read back to the same f64.
    pub fn csv(&self) -> String {
        let wide =
            |c: usize| self.rows.iter().any(|row| matches!(row.get(c), Some(Value::Number { low: Some(_), .. })));
        let ends = |c: usize, fields: [String; 3]| fields.into_iter().take(if wide(c) { 3 } else { 1 });
        let headings = self.columns.iter().map(Column::heading).enumerate();
        let headings =
            headings.flat_map(|(c, name)| ends(c, [name.clone(), format!("{name} low"), format!("{name} high")]));
        let end = |end: &Option<f64>| end.map_or_else(String::new, |end| end.to_string());
        let fields = |(c, value): (usize, &Value)| match value {
            Value::Text(text) => ends(c, [text.clone(), String::new(), String::new()]),
            Value::Number { value, low, high } => ends(c, [value.to_string(), end(low), end(high)]),
            Value::Nothing => ends(c, Default::default()),
        };
        let rows = self.rows.iter().map(|row| row.iter().enumerate().flat_map(fields).collect());
        let all: Vec<Vec<String>> = std::iter::once(headings.collect()).chain(rows).collect();
        comment(&self.title) + &comment(&self.caption) + &records(all)
    }

    /// A Markdown table with its caption.
    pub fn markdown(&self) -> String {
        let escape = |text: &String| text.replace('|', "\\|");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("**{}**\n\n", self.title);
        text += &line(self.columns.iter().map(|column| escape(&column.heading())).collect());
        text += &line(self.columns.iter().map(|_| "---".to_owned()).collect());
        for row in self.shown() {
            text += &line(row.iter().map(escape).collect());
        }
        text + &format!("\n{}\n", self.caption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::of([("a, b", Value::within(1.25, 1.0, 1.5), None), ("c|d", 0.1.into(), Some(2.0))].iter())
            .words("network", |(name, ..)| *name)
            .column("error", "%", 1, |(_, error, _)| error.clone())
            .column("note", "", 2, |(.., note)| *note)
            .named("t", "Errors", "Of two networks.")
    }

    #[test]
    fn every_column_is_as_long_as_the_table_and_begins_with_its_title() {
        let table = table();
        let headings: Vec<String> = table.columns.iter().map(Column::heading).collect();
        assert_eq!(headings, ["network", "error (%)", "note"]);
        assert_eq!(table.rows[1], ["c|d".into(), 0.1.into(), Value::from(2.0)]);
        let empty = Table::of(Vec::<usize>::new()).words("n", |n| n).named("e", "E", "");
        assert_eq!((empty.columns.len(), empty.rows.len()), (1, 0));
        assert_eq!(Table::of([3usize]).words("n", |n| n).named("c", "C", "").rows, [[Value::from(3.0)]]);
    }

    #[test]
    fn text_is_aligned_and_shows_intervals() {
        let text = table().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "  network  error (%)       note");
        assert_eq!(lines[2], "  a, b     1.2 [1.0, 1.5]  –");
        assert_eq!(lines[3], "  c|d      0.1             2.00");
    }

    #[test]
    fn what_rounds_to_zero_has_no_sign() {
        for (value, shown) in
            [(-0.004, "0.00"), (-0.0, "0.00"), (-0.006, "-0.01"), (-10.0, "-10.00"), (f64::NAN, "NaN")]
        {
            assert_eq!(Value::from(value).show(2), shown);
        }
        assert_eq!(Value::within(-0.1, -0.6, -0.2).show(0), "0 [-1, 0]");
        assert_eq!(Value::from(f64::NEG_INFINITY).show(2), "-inf");
    }

    #[test]
    fn comma_separated_values_keep_every_digit_and_every_field() {
        let text = table().csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "network,error (%),error (%) low,error (%) high,note");
        assert_eq!(lines[3..], ["\"a, b\",1.25,1,1.5,", "c|d,0.1,,,2"]);
    }

    #[test]
    fn markdown_escapes_its_own_marks() {
        assert!(table().markdown().contains("| c\\|d | 0.1 | 2.00 |"));
    }
}
