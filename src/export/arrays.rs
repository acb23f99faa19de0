//! `train.npz` and `test.npz`: float images, labels and posteriors; the numbers beside pictures.

use std::ops::Range;

use super::pieces::SplitImages;
use super::rounded::{columns, name_of};
use super::{ExportEvent, Format, Stage};
use crate::data::{Column, Stored, read_array, write_table};
use crate::error::Result;
use crate::events::{Events, Progress};

/// Writes `SPLIT.npz`; returns its name.
pub(super) fn write(pieces: &SplitImages<'_>, events: &mut dyn Events<ExportEvent>) -> Result<Vec<String>> {
    let name = format!("{}.npz", pieces.split);
    let path = pieces.work.folder.join(&name);
    if path.is_file() {
        return Ok(vec![name]);
    }
    let (shape, k) = (pieces.work.world.shape(), pieces.classes());
    let column = |name, stored, shape| Column { name, stored, shape };
    let columns = [
        column("x", Stored::F32, vec![shape.channels, shape.height, shape.width]),
        column("y", Stored::I64, vec![]),
        column("posterior", Stored::F32, vec![k]),
        column("logp", Stored::F64, vec![k]),
        column("aleatoric", Stored::F64, vec![]),
    ];
    let total = pieces.images();
    let mut open = Open::default();
    write_table(&path, total, &columns, &mut |c, rows| {
        if c == 0 {
            let progress = Progress { done: rows.end, total };
            events.report(ExportEvent { stage: Stage::Writing(pieces.split, Format::Npz), progress })?;
        }
        open.rows(pieces, c, rows, &mut |range| match c {
            0 => Ok(pieces.x(range)?.into_iter().map(f64::from).collect()),
            _ => pieces.numbers(range, columns[c].name),
        })
    })?;
    Ok(vec![name])
}

/// Writes `SPLIT.8bit.npz` or `SPLIT.16bit.npz`; returns its name.
pub(super) fn write_rounded(pieces: &SplitImages<'_>, bits: u32, costly: bool) -> Result<String> {
    let name = format!("{}.{bits}bit.npz", pieces.split);
    let path = pieces.work.folder.join(&name);
    if path.is_file() {
        return Ok(name);
    }
    let kept = columns(pieces.classes());
    let names: Vec<String> = kept.iter().map(|column| name_of(column.name, costly)).collect();
    let written: Vec<Column> =
        kept.iter().zip(&names).map(|(column, name)| Column { name, ..column.clone() }).collect();
    let mut open = Open::default();
    write_table(&path, pieces.images(), &written, &mut |c, rows| {
        open.rows(pieces, c, rows, &mut |range| read_array(&pieces.rounded(range, bits), kept[c].name))
    })?;
    Ok(name)
}

/// The piece that was read last: rows are asked for in order.
#[derive(Default)]
struct Open {
    column: usize,
    range: Range<usize>,
    values: Vec<f64>,
}

impl Open {
    /// Rows of a column, out of as many pieces as they lie in.
    fn rows(
        &mut self,
        pieces: &SplitImages<'_>,
        column: usize,
        rows: Range<usize>,
        read: &mut dyn FnMut(&Range<usize>) -> Result<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        let mut all = Vec::new();
        for range in pieces.ranges().filter(|range| range.start < rows.end && rows.start < range.end) {
            if (self.column, &self.range) != (column, &range) {
                *self = Self { column, values: read(&range)?, range: range.clone() };
            }
            let each = self.values.len() / range.len();
            let at = |row: usize| (row.clamp(range.start, range.end) - range.start) * each;
            all.extend_from_slice(&self.values[at(rows.start)..at(rows.end)]);
        }
        Ok(all)
    }
}
