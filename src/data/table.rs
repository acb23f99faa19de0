//! Writes npz archives of arrays with one row per item, block by block.

use std::io;
use std::ops::Range;
use std::path::Path;

use zip::ZipWriter;

use super::world::{Zip, start_array, write_values};
use super::write::{IfPresent, place_file};
use crate::error::{Error, Result};

/// Rows asked for at a time, at least one.
const VALUES: usize = 1 << 18;

/// How the numbers of an array are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// float32, rounded to nearest.
    F32,
    /// float64.
    F64,
    /// int64; the numbers are whole.
    I64,
}

/// One array of a table: a row for each item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a str,
    /// Type of its numbers.
    pub stored: Stored,
    /// Shape of one row; empty for one number.
    pub shape: Vec<usize>,
}

/// Writes arrays of `rows` rows each; `values(column, rows)` returns the numbers of a range, column
/// after column. Uncompressed, without timestamps: same numbers, same bytes. Atomic.
///
/// # Errors
/// The system's error, one of `values`, or a block of the wrong size; the file is unchanged.
pub fn write_table(
    path: &Path,
    rows: usize,
    columns: &[Column<'_>],
    values: &mut dyn FnMut(usize, Range<usize>) -> Result<Vec<f64>>,
) -> Result<()> {
    let io = |e: io::Error| Error::io(path, e);
    place_file(path, IfPresent::Replace, |file| {
        let mut zip = ZipWriter::new(file);
        for (c, column) in columns.iter().enumerate() {
            let each: usize = column.shape.iter().product();
            let descr = match column.stored {
                Stored::F32 => "<f4",
                Stored::F64 => "<f8",
                Stored::I64 => "<i8",
            };
            start_array(&mut zip, column.name, descr, &[&[rows], &column.shape[..]].concat()).map_err(io)?;
            let step = (VALUES / each.max(1)).max(1);
            for first in (0..rows).step_by(step) {
                let range = first..rows.min(first + step);
                let expected = range.len() * each;
                let block = values(c, range)?;
                if block.len() != expected {
                    return Err(Error::input(format!("array {}: {} values, not {expected}", column.name, block.len())));
                }
                write_block(&mut zip, &block, column.stored).map_err(io)?;
            }
        }
        zip.finish().map(drop).map_err(|e| io(e.into()))
    })
}

fn write_block(zip: &mut Zip<'_, '_>, block: &[f64], stored: Stored) -> io::Result<()> {
    match stored {
        Stored::F64 => write_values(zip, block, f64::to_le_bytes),
        Stored::F32 => write_values(zip, &block.iter().map(|&v| v as f32).collect::<Vec<_>>(), f32::to_le_bytes),
        Stored::I64 => write_values(zip, &block.iter().map(|&v| v as i64).collect::<Vec<_>>(), i64::to_le_bytes),
    }
}
