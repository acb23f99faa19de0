//! Writes one array as a `.npy` file, piece by piece.

use std::io::{self, Write};
use std::path::Path;

use super::world::{write_header, write_values};
use super::write::write_whole;
use crate::error::{Error, Result};

/// A type of numbers that NumPy knows.
pub trait NpyElement: Copy {
    /// NumPy's name of it, little-endian.
    const DESCR: &'static str;

    /// Writes numbers.
    ///
    /// # Errors
    /// The system's.
    fn write(out: &mut dyn Write, values: &[Self]) -> io::Result<()>;
}

impl NpyElement for f32 {
    const DESCR: &'static str = "<f4";

    fn write(out: &mut dyn Write, values: &[Self]) -> io::Result<()> {
        write_values(out, values, Self::to_le_bytes)
    }
}

impl NpyElement for f64 {
    const DESCR: &'static str = "<f8";

    fn write(out: &mut dyn Write, values: &[Self]) -> io::Result<()> {
        write_values(out, values, Self::to_le_bytes)
    }
}

impl NpyElement for i64 {
    const DESCR: &'static str = "<i8";

    fn write(out: &mut dyn Write, values: &[Self]) -> io::Result<()> {
        write_values(out, values, Self::to_le_bytes)
    }
}

/// Writes an array of a shape in C order, atomically. `produce` passes its numbers on, piece by
/// piece.
///
/// # Errors
/// The system's error, what `produce` returns, or another number of numbers than the shape has; the
/// file is unchanged.
pub fn write_npy<T: NpyElement>(
    path: &Path,
    shape: &[usize],
    produce: impl FnOnce(&mut dyn FnMut(&[T]) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let io = |e: io::Error| Error::io(path, e);
    let announced: usize = shape.iter().product();
    write_whole(path, |file| {
        write_header(file, T::DESCR, shape).map_err(io)?;
        let mut written = 0;
        produce(&mut |values| {
            written += values.len();
            T::write(file, values).map_err(io)
        })?;
        if written != announced {
            return Err(Error::file(path, format!("{written} numbers came, its shape {shape:?} has {announced}")));
        }
        Ok(())
    })
}

/// Writes an array of a shape in C order into a file that holds more than it.
///
/// # Errors
/// The system's.
pub fn put_npy<T: NpyElement>(out: &mut dyn Write, shape: &[usize], values: &[T]) -> io::Result<()> {
    write_header(out, T::DESCR, shape)?;
    T::write(out, values)
}

#[cfg(test)]
mod tests {
    use super::super::npy::{Types, Values, read_npy_file};
    use super::*;

    #[test]
    fn what_is_written_in_pieces_is_read_as_a_whole_and_a_wrong_number_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let refused = write_npy::<f64>(&path, &[2, 2], |put| put(&[1.0, 2.0, 3.0])).unwrap_err().to_string();
        assert!(refused.contains("3 numbers came") && !path.exists(), "{refused}");
        write_npy::<f64>(&path, &[2, 2], |put| put(&[1.0, 2.0]).and_then(|()| put(&[3.0, -0.0]))).unwrap();
        let read = read_npy_file(&path, Types::Numbers).unwrap();
        assert_eq!((read.shape, read.values), (vec![2, 2], Values::F64(vec![1.0, 2.0, 3.0, -0.0])));
        write_npy::<i64>(&path, &[3], |put| put(&[-1, 0, i64::MAX])).unwrap();
        assert_eq!(read_npy_file(&path, Types::Numbers).unwrap().values, Values::I64(vec![-1, 0, i64::MAX]));
    }
}
