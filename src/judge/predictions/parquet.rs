//! Parquet files: the columns of a table, or one column of lists.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};

use super::columns::{Layout, Rows, id_column, wrong_number};
use super::{NAMES, Note, Raw, most_bytes, pages};
use crate::data::open_file;
use crate::error::{Error, Result, caught};
use crate::judge::Truth;

/// Bytes behind the footer: its length and "PAR1".
const TAIL: u8 = 8;

/// Reads a file of plain or snappy-compressed columns.
pub(super) fn read(path: &Path, truth: &Truth) -> Result<Raw> {
    let inside = |said| Error::file(path, format!("damaged: reading it failed inside ({said}); write it again"));
    caught(|| table(path, truth)).unwrap_or_else(|said| Err(inside(said)))
}

/// The footer, where the file ends as a parquet file does.
fn footer(file: &mut File) -> std::io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let Some(tail) = length.checked_sub(TAIL.into()) else { return Ok(None) };
    let mut last = [0; TAIL as usize];
    file.seek(SeekFrom::Start(tail))?;
    file.read_exact(&mut last)?;
    let [a, b, c, d, magic @ ..] = last;
    let begin = tail.checked_sub(u32::from_le_bytes([a, b, c, d]).into()).filter(|_| magic == *b"PAR1");
    let Some(begin) = begin else { return Ok(None) };
    let mut footer = Vec::new();
    file.seek(SeekFrom::Start(begin))?;
    file.take(tail - begin).read_to_end(&mut footer)?;
    Ok(Some(footer))
}

/// What a file of columns is.
#[derive(Debug, PartialEq, Eq)]
enum Columns {
    Sound,
    /// They do not lie within the file, or their pages cannot be as large as they say or are larger than all that is read.
    Damaged,
    /// There are more values than are read.
    TooMany,
}

/// Looks at every column of a file of which at most so many rows, and values of all columns, are read.
fn columns(file: &mut File, meta: &ParquetMetaData, most: u64) -> std::io::Result<Columns> {
    let length = file.metadata()?.len();
    let mut rows = meta.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let Some(rows) = rows.try_fold(0u64, |all, rows| Some(all.saturating_add(rows?))) else {
        return Ok(Columns::Damaged);
    };
    if rows > most {
        return Ok(Columns::TooMany);
    }
    // Bytes of a page, were it of all that is read.
    let largest = i64::try_from(most.saturating_mul(8)).unwrap_or(i64::MAX);
    let mut all = 0u64;
    for column in meta.row_groups().iter().flat_map(|group| group.columns()) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size()).filter(|end| *end >= start);
        let range = u64::try_from(start).ok().zip(end.and_then(|end| u64::try_from(end).ok()));
        let Some((start, end)) = range.filter(|(_, end)| *end <= length) else { return Ok(Columns::Damaged) };
        let Some(values) = pages::values(file, start..end, largest)? else { return Ok(Columns::Damaged) };
        all = all.saturating_add(values);
        if all > most {
            return Ok(Columns::TooMany);
        }
    }
    Ok(Columns::Sound)
}

/// Whether its columns are sound, and hold no more than predictions of these images.
fn check(path: &Path, file: &mut File, meta: &ParquetMetaData, truth: &Truth) -> Result<()> {
    let most = most_bytes(truth) / 8;
    let why = match columns(file, meta, most).map_err(|e| Error::io(path, e))? {
        Columns::Sound => return Ok(()),
        Columns::Damaged => {
            "its columns do not lie where they should, or their pages are too large: it is damaged or was cut short"
                .into()
        }
        Columns::TooMany => {
            let (n, k) = (truth.len(), truth.classes);
            format!("has more rows or values than {n} images of {k} classes need: at most {most} are read")
        }
    };
    Err(Error::file(path, why))
}

fn table(path: &Path, truth: &Truth) -> Result<Raw> {
    let bad = |cause: String| Error::file(path, cause);
    let file: File = open_file(path)?.into_inner();
    let damaged = |e: ::parquet::errors::ParquetError| {
        bad(format!("{e} (damaged, or compressed otherwise: write it with compression=\"snappy\")"))
    };
    let mut same = file.try_clone().map_err(|e| Error::io(path, e))?;
    if footer(&mut same).map_err(|e| Error::io(path, e))?.is_some_and(|footer| !pages::is_bounded(&footer)) {
        return Err(bad("its footer is no list of columns: it is damaged".into()));
    }
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    check(path, &mut same, reader.metadata(), truth)?;
    let meta = reader.metadata().file_metadata().clone();
    let fields = meta.schema().get_fields();
    let header: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
    let groups: Vec<usize> = (0..fields.len()).filter(|&at| fields[at].is_group()).collect();
    let (mut rows, mut lists) = match list_column(&header, &groups) {
        Some(column) => (None, Some(Lists::new(column, &header))),
        None => match (Layout::of(&header, truth), &groups[..]) {
            (Ok(layout), _) => (Some(Rows::new(layout)), None),
            (Err(_), &[column]) => (None, Some(Lists::new(column, &header))),
            (Err(cause), _) => return Err(bad(cause)),
        },
    };
    // A dictionary gives one long name to any number of rows.
    let room = Cell::new(most_bytes(truth));
    let id = |field: &Field| {
        let id = text(field)?;
        let left = room.get().checked_sub(id.len() as u64);
        room.set(left.ok_or_else(|| format!("the ids have more than {} bytes in all", most_bytes(truth)))?);
        Ok(id)
    };
    for (at, row) in reader.get_row_iter(None).map_err(damaged)?.enumerate() {
        let cells = cells(row.map_err(damaged)?);
        let named = |cause: String| bad(format!("row {at}: {cause}"));
        if let Some(rows) = &mut rows {
            let number = |column: usize| number(&cells[column]).map_err(|e| format!("column {}: {e}", header[column]));
            rows.push(&number, &|column| id(&cells[column])).map_err(named)?;
        }
        if let Some(lists) = &mut lists {
            lists.push(&cells, truth, &id).map_err(named)?;
        }
    }
    let mut raw = rows.map(Rows::finish).or(lists.map(|lists| lists.raw)).unwrap_or_default();
    let said = |name: &str| {
        let pairs = meta.key_value_metadata().into_iter().flatten();
        pairs.filter(|pair| pair.key == name).find_map(|pair| pair.value.clone())
    };
    raw.weights_sha256 = said("weights_sha256");
    raw.dataset_sha256 = said("dataset_sha256");
    Ok(raw)
}

/// The column of lists with a name of predictions.
fn list_column(header: &[String], groups: &[usize]) -> Option<usize> {
    NAMES.iter().find_map(|name| groups.iter().copied().find(|&at| header[at].eq_ignore_ascii_case(name)))
}

fn cells(row: Row) -> Vec<Field> {
    row.into_columns().into_iter().map(|(_, field)| field).collect()
}

fn number(field: &Field) -> Result<f64, String> {
    Ok(match field {
        Field::Float16(v) => v.to_f64(),
        Field::Float(v) => f64::from(*v),
        Field::Double(v) => *v,
        Field::Byte(v) => f64::from(*v),
        Field::Short(v) => f64::from(*v),
        Field::Int(v) => f64::from(*v),
        Field::Long(v) => *v as f64,
        Field::Null => return Err("is empty".into()),
        other => return Err(format!("{other} is no number")),
    })
}

fn text(field: &Field) -> Result<String, String> {
    Ok(match field {
        Field::Str(text) => text.clone(),
        Field::Null => return Err("has no id".into()),
        Field::UByte(v) => v.to_string(),
        Field::UShort(v) => v.to_string(),
        Field::UInt(v) => v.to_string(),
        Field::ULong(v) => v.to_string(),
        Field::Long(v) => v.to_string(),
        other => number(other)?.to_string(),
    })
}

/// A column of lists on its way.
struct Lists {
    column: usize,
    id: Option<usize>,
    raw: Raw,
}

impl Lists {
    fn new(column: usize, header: &[String]) -> Self {
        let id = id_column(header).filter(|&id| id != column);
        let rest = (0..header.len()).filter(|&at| at != column && Some(at) != id);
        let names: Vec<String> = rest.map(|at| header[at].clone()).collect();
        let notes = if names.is_empty() { Vec::new() } else { vec![Note::ColumnsIgnored { names }] };
        let ids = id.map(|_| Vec::new());
        Self { column, id, raw: Raw { called: Some(header[column].clone()), ids, notes, ..Raw::default() } }
    }

    fn push(
        &mut self,
        cells: &[Field],
        truth: &Truth,
        text: &dyn Fn(&Field) -> Result<String, String>,
    ) -> Result<(), String> {
        let Field::ListInternal(list) = &cells[self.column] else {
            return Err(format!("column {} is no list of numbers", self.raw.called.as_deref().unwrap_or("")));
        };
        if list.len() != truth.classes {
            return Err(format!("a list of {}", wrong_number(list.len(), truth)));
        }
        for element in list.elements() {
            self.raw.values.push(number(element)?);
        }
        if let (Some(ids), Some(id)) = (&mut self.raw.ids, self.id) {
            ids.push(text(&cells[id])?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_and_values_are_read_as_predictions_need() {
        let of = |name: &str, most: &dyn Fn(u64, u64) -> u64| {
            let path = Path::new("tests/reference/judge").join(name);
            let file = File::open(&path).unwrap();
            let mut same = file.try_clone().unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            let meta = reader.metadata().file_metadata();
            let rows = u64::try_from(meta.num_rows()).unwrap();
            let wide = meta.schema_descr().num_columns() as u64;
            columns(&mut same, reader.metadata(), most(rows, wide)).unwrap()
        };
        assert_eq!(of("columns.parquet", &|rows, wide| rows * wide), Columns::Sound);
        assert_eq!(of("columns.parquet", &|rows, wide| rows * wide - 1), Columns::TooMany);
        assert_eq!(of("columns.parquet", &|rows, _| rows - 1), Columns::TooMany);
        // A list has a value for each class.
        assert_eq!(of("list.parquet", &|rows, wide| rows * wide), Columns::TooMany);
        assert_eq!(of("list.parquet", &|rows, _| 100 * rows), Columns::Sound);
    }
}
