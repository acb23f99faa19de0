//! Results of a validation, kept piece by piece in its folder. A piece that depends on more than
//! the ticket (the corpus, a file of weights) has the hash of that in its name: pieces of a corpus
//! that has changed are not used.

use std::path::Path;

use super::ValidateSpec;
use crate::data::{Column, Store, StoreKind, Stored, Ticket, read_array, sha256, write_table};
use crate::error::Result;

/// The kind of its store.
pub const VALIDATION: StoreKind =
    StoreKind { ticket: "validate.json", work: "validation", result: "validation", folder: None };

/// Takes the folder of a validation, if any: a new one, or one where this one was begun. `world`: its
/// `OracleInfo::world_id`.
///
/// # Errors
/// When it holds something else, or cannot be written.
pub fn begin(folder: Option<&Path>, spec: &ValidateSpec, world: &str) -> Result<Store> {
    let Some(folder) = folder else { return Ok(Store::of(None, &VALIDATION)) };
    Store::begin(folder, &VALIDATION, &Ticket { world: world.to_owned(), spec: spec.clone() })
}

/// Returns a piece of `rows` rows with two arrays of these widths, float32 and float64. A piece
/// that is missing, damaged or of another size is computed.
///
/// # Errors
/// What `compute` returns, and those of the disk.
pub fn table(
    store: &Store,
    name: &str,
    (rows, [wide_a, wide_b]): (usize, [usize; 2]),
    compute: impl FnOnce() -> Result<(Vec<f32>, Vec<f64>)>,
) -> Result<(Vec<f32>, Vec<f64>)> {
    let read = |path: &Path| {
        let (a, b) = (read_array(path, "a").ok()?, read_array(path, "b").ok()?);
        let fits = (a.len(), b.len()) == (rows * wide_a, rows * wide_b);
        fits.then(|| (a.into_iter().map(|v| v as f32).collect(), b))
    };
    let column = |name, stored, width: usize| Column { name, stored, shape: vec![width] };
    let columns = [column("a", Stored::F32, wide_a), column("b", Stored::F64, wide_b)];
    store.piece(name, read, compute, |path, (a, b)| {
        write_table(path, rows, &columns, &mut |column, rows| {
            Ok(match column {
                0 => a[rows.start * wide_a..rows.end * wide_a].iter().map(|&v| f64::from(v)).collect(),
                _ => b[rows.start * wide_b..rows.end * wide_b].to_vec(),
            })
        })
    })
}

/// A name for what follows from these bytes.
pub fn fingerprint(of: &[&[u8]]) -> String {
    sha256(&of.concat())[..16].to_owned()
}
