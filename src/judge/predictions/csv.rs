//! Tables of comma-, semicolon-, tab- or space-separated values, with and without a header.

use std::borrow::Cow;
use std::path::Path;

use super::columns::{Layout, Rows, wrong_number};
use super::ids::counted;
use super::{DECISIONS, ID_NAMES, Raw, listed, most_bytes};
use crate::data::read_text_bounded;
use crate::error::{Error, Result};
use crate::judge::Truth;

/// Said of a table that seems to have a single column.
const SEPARATORS: &str = "columns are separated by commas, semicolons or tabs, or by spaces where every line has as many fields that are numbers";

/// Said of numbers such as 0,5.
const DECIMALS: &str = "numbers must have a decimal point, not a comma";

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
    let hollow = is_hollow(text, delimiter)
        .then(|| format!("each line ends with an empty column: leave out the {delimiter:?} at its end"));
    let explained = |cause: String| match &hollow {
        Some(hollow) => hollow.clone(),
        None if are_decisions(text, delimiter, truth) => DECISIONS.into(),
        None if has_decimal_commas(first) => DECIMALS.into(),
        None if are_split_decimals(head.iter().map(String::as_str), truth) => format!("{cause}; {DECIMALS}"),
        None if head.len() == 1 => format!("{cause}; {SEPARATORS}"),
        None => cause,
    };
    let header = is_header(&head, lines, truth);
    let layout = match (header, commented) {
        (Some(true), _) => {
            records.next();
            Layout::of(&head, truth).map_err(explained)?
        }
        (_, Some(layout)) => layout,
        (Some(false), None) => without_header(&head, truth).map_err(explained)?,
        (None, None) => return Err(unclear(&head, truth)),
    };
    // The name of a column of ids may be empty, but not the ids.
    if let Some(hollow) = hollow.filter(|_| layout.id == Some(head.len() - 1)) {
        return Err(hollow);
    }
    let called = |column: usize| match header {
        Some(true) => head[column].clone(),
        _ => format!("{column} of 0 to {}", head.len() - 1),
    };
    let mut rows = Rows::new(layout);
    for (row, record) in records.enumerate() {
        let record = record.map_err(|e| format!("row {row}: {e}"))?;
        if record.len() != head.len() {
            let why = if are_split_decimals(record.iter(), truth) { format!("; {DECIMALS}") } else { String::new() };
            return Err(format!("row {row}: {} fields, the first line has {}{why}", record.len(), head.len()));
        }
        let number = |column: usize| {
            let field = &record[column];
            let why = if is_decimal_comma(field) { format!("; {DECIMALS}") } else { String::new() };
            field
                .parse::<f64>()
                .map_err(|_| format!("row {row}: column {}: {field:?} is no number{why}", called(column)))
        };
        rows.push(&number, &|column| Ok(record[column].to_owned()))?;
    }
    Ok(rows.finish())
}

/// Whether every line ends with a separator, and so with an empty column.
fn is_hollow(text: &str, delimiter: char) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.all(|line| line.trim_end_matches([' ', '\r']).ends_with(delimiter))
}

/// Whether a table has a class for each image, by its number or name, and nothing else but ids. The first line may
/// name the columns.
fn are_decisions(text: &str, delimiter: char, truth: &Truth) -> bool {
    let is_class = |field: &str| match field.parse::<f64>() {
        Ok(number) => number.fract() == 0.0 && (0.0..truth.classes as f64).contains(&number),
        Err(_) => truth.class_names.iter().any(|name| name == field),
    };
    let said = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let mut lines =
        said.map(|line| line.split(delimiter).map(|field| field.trim().trim_matches('"')).collect::<Vec<_>>());
    let Some(first) = lines.next() else { return false };
    let alone = |fields: &Vec<&str>| fields.len() == first.len() && fields.last().is_some_and(|last| is_class(last));
    let mut others = lines.peekable();
    let ids = |column: &str| counted(column).is_some() || ID_NAMES.iter().any(|name| column.eq_ignore_ascii_case(name));
    let columns = match first[..] {
        [_] => true,
        [column, _] => ids(column),
        _ => false,
    };
    columns && others.peek().is_some() && others.all(|fields| alone(&fields))
}

/// Whether a field is a number but for a comma in the place of the decimal point.
fn is_decimal_comma(field: &str) -> bool {
    field.contains(',') && field.replacen(',', ".", 1).parse::<f64>().is_ok()
}

/// Whether a line of numbers has such ones, between semicolons or tabs.
fn has_decimal_commas(line: &str) -> bool {
    let is_number = |field: &str| field.parse::<f64>().is_ok() || is_decimal_comma(field);
    [';', '\t'].into_iter().any(|separator| {
        let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
        fields.len() > 1
            && fields.iter().all(|field| is_number(field))
            && fields.iter().any(|field| is_decimal_comma(field))
    })
}

/// Whether a line, of ids or without, has two fields for each class, which are a number each with a comma between them: such
/// numbers are cut in two where commas separate the columns.
fn are_split_decimals<'a>(fields: impl Iterator<Item = &'a str>, truth: &Truth) -> bool {
    let fields: Vec<&str> = fields.collect();
    let Some(ids) = fields.len().checked_sub(2 * truth.classes).filter(|ids| *ids <= 1) else { return false };
    fields[ids..].chunks(2).all(|pair| {
        let begins = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        pair[0].parse::<i64>().is_ok() && begins(pair[1]) && is_decimal_comma(&pair.join(","))
    })
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

/// Returns whether the first line is a header: not all numbers, or 0, 1, … to K − 1, in another order (or from 1 on) above n
/// lines only. Written as fractions (0.0, 1.0, …) these are a header above n lines only, for they may be the numbers of the
/// first image. Nobody knows where whole numbers are one of n lines: an image has no line, or the first one has such numbers.
fn is_header(fields: &[String], lines: usize, truth: &Truth) -> Option<bool> {
    let numbers: Option<Vec<f64>> = fields.iter().map(|field| field.parse().ok()).collect();
    let Some(numbers) = numbers else { return Some(true) };
    let counts = numbers.iter().enumerate().all(|(class, number)| class as f64 == *number);
    if numbers.len() != truth.classes || !counts {
        return Some(lines == truth.len() + 1 && is_permutation(fields, truth.classes));
    }
    let whole = fields.iter().enumerate().all(|(class, field)| *field == class.to_string());
    (!whole || lines != truth.len()).then_some(lines != truth.len())
}

/// Whether these are all whole numbers from 0 to K − 1, each once; or from 1 to K, which a header is told not to be.
fn is_permutation(fields: &[String], classes: usize) -> bool {
    let numbers: Option<Vec<usize>> = fields.iter().map(|field| field.parse().ok()).collect();
    numbers.is_some_and(|mut numbers| {
        numbers.sort_unstable();
        let first = numbers.first().map_or(0, |&first| first.min(1));
        numbers.into_iter().eq(first..first + classes)
    })
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
        columns if columns == truth.classes + 1 && counted(&fields[0]).is_some() => 1,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::toy;
    use crate::units::Seed;

    #[test]
    fn a_class_for_each_image_is_no_prediction_in_any_table() {
        let mut truth = toy(3, 3, 1.0, Seed(1));
        truth.class_names = ["cat", "dog", "horse"].map(str::to_owned).to_vec();
        let why = |text: &str| table(text, &truth).unwrap_err();
        for text in
            ["2\n0\n1\n", "label\n2\n0\n1\n", "id,label\n0,2\n1,0\n2,1\n", "0;horse\n1;cat\n2;dog\n", "2.0\n0.0\n1.0\n"]
        {
            assert_eq!(why(text), DECISIONS, "{text}");
        }
        for text in ["0.5,0.5\n1,0.4\n0,1\n", "3\n0\n4\n", "p0,p1\n1,2\n1,1\n0,1\n"] {
            assert!(!why(text).contains(DECISIONS), "{text}");
        }
    }

    #[test]
    fn ids_may_be_written_as_np_savetxt_writes_every_number() {
        let truth = toy(3, 3, 1.0, Seed(1));
        let text = "1.000000e+00,0.2,0.3,0.5\n0.000000e+00,0.1,0.1,0.8\n2.000000e+00,0.3,0.3,0.4\n";
        for head in ["", "id,0,1,2\n"] {
            let ids = table(&format!("{head}{text}"), &truth).unwrap().ids.unwrap();
            assert_eq!(ids.iter().map(|id| counted(id)).collect::<Vec<_>>(), [Some(1), Some(0), Some(2)], "{head}");
        }
    }
}
