//! The numbers behind a plot as a table, read from the CSV that is saved.

/// Widest column, characters.
const WIDEST: usize = 40;

/// The table that is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataTable {
    /// Whose numbers: the plot's title.
    pub title: String,
    /// The name of its file.
    pub(super) file: &'static str,
    pub(super) csv: String,
    /// Lines before the table: what they say of it.
    pub(super) about: Vec<String>,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Characters of each column.
    pub(super) widths: Vec<usize>,
    /// When the numbers are to be looked at again, seconds.
    pub(super) due: f64,
}

impl DataTable {
    /// Reads comma-separated values; lines that begin with `#` say what they are.
    pub(super) fn read(title: &str, file: &'static str, csv: String, due: f64) -> Self {
        let about = csv.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect();
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).flexible(true).from_reader(csv.as_bytes());
        let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
        let columns: Vec<String> = reader.headers().map(fields).unwrap_or_default();
        let rows: Vec<Vec<String>> =
            reader.records().filter_map(|record| record.ok().map(|record| fields(&record))).collect();
        let widths = widths(&columns, &rows);
        Self { title: title.into(), file, about, columns, rows, widths, due, csv }
    }

    /// Returns the table as tab-separated values, for spreadsheets.
    pub(super) fn tsv(&self) -> String {
        let clean = |field: &String| field.replace(['\t', '\n'], " ");
        let line = |fields: &Vec<String>| fields.iter().map(clean).collect::<Vec<_>>().join("\t") + "\n";
        std::iter::once(&self.columns).chain(&self.rows).map(line).collect()
    }
}

/// Characters of each column. Every cell is formatted, which is much of large tables: once for each change, not in every frame.
fn widths(columns: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let longest = |(place, head): (usize, &String)| {
        let cells = rows.iter().filter_map(|row| row.get(place)).map(|cell| shown(cell).chars().count());
        cells.max().unwrap_or(0).max(head.chars().count()).min(WIDEST)
    };
    columns.iter().enumerate().map(longest).collect()
}

/// Numbers with six digits; what is copied and saved has them all.
pub(super) fn shown(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if cell.len() > 9 && number.is_finite() => short(number),
        _ => cell.to_owned(),
    }
}

fn short(number: f64) -> String {
    if number != 0.0 && !(1e-4..1e7).contains(&number.abs()) {
        return format!("{number:.5e}");
    }
    let decimals = (5.0 - number.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_what_is_shown() {
        let csv = "# plot: p, over q\n# world: mnist\nname,value\n\"a, b\",0.123456789012\nc,-3\n";
        let table = DataTable::read("p", "p.csv", csv.into(), 0.0);
        assert_eq!(table.about, ["plot: p, over q", "world: mnist"]);
        assert_eq!(table.columns, ["name", "value"]);
        assert_eq!(table.rows, [["a, b", "0.123456789012"], ["c", "-3"]]);
        assert_eq!(table.tsv(), "name\tvalue\na, b\t0.123456789012\nc\t-3\n");
        assert_eq!(table.widths, [4, 8]);
    }

    #[test]
    fn numbers_are_shortened_for_the_eye_only_where_they_are_long() {
        let pairs = [
            ("0.123456789012", "0.123457"),
            ("1e-300", "1e-300"),
            ("1.2345678901e-30", "1.23457e-30"),
            ("12345.678901", "12345.7"),
            ("100.000000000", "100"),
            ("0", "0"),
            ("linear net", "linear net"),
        ];
        for (cell, expected) in pairs {
            assert_eq!(shown(cell), expected);
        }
    }
}
