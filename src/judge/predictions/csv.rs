//! Tables of comma-, semicolon- or tab-separated values, with and without a header.

use std::path::Path;

use super::Raw;
use super::columns::{Layout, Rows, wrong_number};
use crate::data::{TEXT, read_text_bounded};
use crate::error::{Error, Result};
use crate::judge::Truth;

/// Most bytes of a number with what separates it from the next.
const NUMBER: u64 = 64;

/// Reads a table of at most 64 MiB, and 64 bytes more for each probability and for each value of two
/// further columns. Lines that begin with # are comments.
pub(super) fn read(path: &Path, truth: &Truth) -> Result<Raw> {
    let numbers = (truth.len() as u64).saturating_mul(truth.classes as u64 + 2);
    let text =
        read_text_bounded(path, TEXT.saturating_add(numbers.saturating_mul(NUMBER))).map_err(|e| Error::io(path, e))?;
    table(text.trim_start_matches('\u{feff}'), truth).map_err(|cause| Error::file(path, cause))
}

fn table(text: &str, truth: &Truth) -> Result<Raw, String> {
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
    let layout = match is_header(&head, lines, truth) {
        true => {
            records.next();
            Layout::of(&head, truth)?
        }
        false => without_header(&head, truth)?,
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

/// Returns whether the first line is a header: not all numbers, or 0, 1, … above n lines.
fn is_header(fields: &[String], lines: usize, truth: &Truth) -> bool {
    let numbers: Option<Vec<f64>> = fields.iter().map(|field| field.parse().ok()).collect();
    let Some(numbers) = numbers else { return true };
    let counts = numbers.iter().enumerate().all(|(class, number)| class as f64 == *number);
    numbers.len() == truth.classes && counts && lines != truth.len()
}

/// K columns in the order of the classes, or ids before them.
fn without_header(fields: &[String], truth: &Truth) -> Result<Layout, String> {
    let ids = match fields.len() {
        columns if columns == truth.classes => 0,
        // A first column of whole numbers; the rest of the file shows whether they are ids.
        columns if columns == truth.classes + 1 && fields[0].parse::<i64>().is_ok() => 1,
        columns => return Err(format!("{} (the first line has numbers only)", wrong_number(columns, truth))),
    };
    let names: Vec<String> = (0..fields.len() - ids).map(|class| format!("p{class}")).collect();
    let header = if ids == 1 { [vec!["id".to_owned()], names].concat() } else { names };
    Layout::of(&header, truth).map(|layout| Layout { called: None, ..layout })
}
