//! Tables of comma-, semicolon-, tab- or space-separated values, with and without a header.

use std::borrow::Cow;
use std::path::Path;

use super::columns::{Layout, Rows, wrong_number};
use super::{Raw, listed, most_bytes};
use crate::data::read_text_bounded;
use crate::error::{Error, Result};
use crate::judge::Truth;

/// Said of a table that seems to have a single column.
const SEPARATORS: &str = "columns are separated by commas, semicolons or tabs, or by spaces where every line has as many fields that are numbers";

/// Reads a table that is no larger than its images need ([`most_bytes`]). Lines that begin with # are comments; the last
/// of those above the numbers may name the columns.
pub(super) fn read(path: &Path, truth: &Truth) -> Result<Raw> {
    let text = read_text_bounded(path, most_bytes(truth)).map_err(|e| Error::io(path, e))?;
    table(text.trim_start_matches('\u{feff}'), truth).map_err(|cause| Error::file(path, cause))
}

fn table(text: &str, truth: &Truth) -> Result<Raw, String> {
    let text = &*by_commas(text);
    let mut said = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let first = said.next().ok_or("is empty")?;
    let lines = 1 + said.count();
    let times = |delimiter: &char| first.matches(*delimiter).count();
    let delimiter = ['\t', ';', ','].into_iter().max_by_key(times).unwrap_or(',');
    let mut builder = ::csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).trim(::csv::Trim::All).comment(Some(b'#')).delimiter(delimiter as u8);
    let mut reader = builder.from_reader(text.as_bytes());
    let mut records = reader.records().peekable();
    let Some(Ok(head)) = records.peek() else { return Err("is no table of text".into()) };
    let head: Vec<String> = head.iter().map(str::to_owned).collect();
    let commented = commented_header(text, delimiter, head.len(), truth);
    let alone = |cause: String| if head.len() == 1 { format!("{cause}; {SEPARATORS}") } else { cause };
    let layout = match (is_header(&head, lines, truth), commented) {
        (Some(true), _) => {
            records.next();
            Layout::of(&head, truth).map_err(alone)?
        }
        (_, Some(layout)) => layout,
        (Some(false), None) => without_header(&head, truth).map_err(alone)?,
        (None, None) => return Err(unclear(&head, truth)),
    };
    let mut rows = Rows::new(layout);
    for (row, record) in records.enumerate() {
        let record = record.map_err(|e| format!("row {row}: {e}"))?;
        if record.len() != head.len() {
            return Err(format!("row {row}: {} fields, the first line has {}", record.len(), head.len()));
        }
        let number = |column: usize| {
            let field = &record[column];
            field.parse::<f64>().map_err(|_| format!("row {row}: column {}: {field:?} is no number", head[column]))
        };
        rows.push(&number, &|column| Ok(record[column].to_owned()))?;
    }
    Ok(rows.finish())
}

/// The table with commas in the place of spaces, where these separate its columns, as `np.savetxt` writes it: no line has
/// another separator, and all have as many fields, of which those of the last line are numbers, but for an id before them.
/// A name with a space leaves it as it is.
fn by_commas(text: &str) -> Cow<'_, str> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let mut said = lines().filter(|line| !line.starts_with('#')).peekable();
    let fields = |line: &str| line.split_whitespace().count();
    let columns = said.peek().map_or(0, |line| fields(line));
    let mut last = "";
    let alike = said.all(|line| {
        last = line;
        !line.trim().contains(['\t', ';', ',', '"']) && fields(line) == columns
    });
    let numbers = last.split_whitespace().skip(1).all(|field| field.parse::<f64>().is_ok());
    if columns < 2 || !alike || !numbers {
        return Cow::Borrowed(text);
    }
    let mut table = String::with_capacity(text.len());
    for line in lines() {
        let (mark, rest) = line.strip_prefix('#').map_or(("", line), |rest| ("#", rest));
        table.push_str(mark);
        // A comment may name the columns with commas between them, as is usual.
        let separator = if rest.contains(',') { ',' } else { ' ' };
        let fields = rest.split(separator).map(str::trim).filter(|field| !field.is_empty());
        table.push_str(&fields.collect::<Vec<_>>().join(","));
        table.push('\n');
    }
    Cow::Owned(table)
}

/// The columns as the comment right above the first line names them, as `np.savetxt` writes a header: a field for each of
/// the `columns` of that line, all of them classes or ids.
fn commented_header(text: &str, delimiter: char, columns: usize, truth: &Truth) -> Option<Layout> {
    let is_said = |line: &&str| line.starts_with('#');
    let comment = text.lines().filter(|line| !line.trim().is_empty()).take_while(is_said).last()?;
    let fields = comment.trim_start_matches('#').split(delimiter).map(|field| field.trim().to_owned());
    let fields: Vec<String> = fields.collect();
    let layout = (fields.len() == columns).then(|| Layout::of(&fields, truth).ok()).flatten();
    layout.filter(|layout| layout.ignored.is_empty())
}

/// Returns whether the first line is a header: not all numbers, or 0, 1, … to K − 1. Written as fractions (0.0, 1.0, …)
/// these are a header above n lines only, for they may be the numbers of the first image. Nobody knows where whole numbers
/// are one of n lines: an image has no line, or the first one has such numbers.
fn is_header(fields: &[String], lines: usize, truth: &Truth) -> Option<bool> {
    let numbers: Option<Vec<f64>> = fields.iter().map(|field| field.parse().ok()).collect();
    let Some(numbers) = numbers else { return Some(true) };
    let counts = numbers.iter().enumerate().all(|(class, number)| class as f64 == *number);
    if numbers.len() != truth.classes || !counts {
        return Some(false);
    }
    let whole = fields.iter().enumerate().all(|(class, field)| *field == class.to_string());
    (!whole || lines != truth.len()).then_some(lines != truth.len())
}

/// What is said of whole numbers 0, 1, … in one of n lines.
fn unclear(fields: &[String], truth: &Truth) -> String {
    let n = truth.len();
    format!(
        "{} rows for {n} images of {}: the first line ({}) gives the numbers of the columns. If it is the first image, put such a line \
         above it",
        n - 1,
        truth.origin.path,
        listed(fields)
    )
}

/// K columns in the order of the classes, or ids before them.
fn without_header(fields: &[String], truth: &Truth) -> Result<Layout, String> {
    let ids = match fields.len() {
        columns if columns == truth.classes => 0,
        // A first column of whole numbers; the rest of the file shows whether they are ids.
        columns if columns == truth.classes + 1 && fields[0].parse::<i64>().is_ok() => 1,
        columns => return Err(format!("{} (the first line has numbers only)", wrong_number(columns, truth))),
    };
    // Not by made-up names such as p0: a class may be called 0, and be another one.
    Ok(Layout {
        id: (ids == 1).then_some(0),
        classes: (ids..fields.len()).collect(),
        called: None,
        ignored: Vec::new(),
    })
}
