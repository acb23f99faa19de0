//! Converts SVHN's cropped digits (Netzer et al. 2011): `X` uint8 [32, 32, 3, N] and `y` [N, 1] of
//! a MATLAB file become `x` [N, 3, 32, 32] and `y` [N] of an npz, one image at a time.
//!
//! The digit 0 has label 10 there, and gets label 0, as everywhere else.

use std::io::{BufReader, Write};
use std::path::Path;

use zip::ZipWriter;

use super::FetchEvent;
use super::emnist::transpose;
use super::mat::{self, Matrix};
use crate::data::source::open_regular;
use crate::data::world::{Zip, start_array, write_values};
use crate::data::write::{IfPresent, place_file};
use crate::error::{Error, Result};
use crate::events::Events;

/// Images between two checks for cancellation.
const EVERY: usize = 1000;

/// What ends the reading of the MATLAB file.
enum Stop {
    /// Something is wrong with it.
    File(String),
    Ours(Error),
}

impl From<String> for Stop {
    fn from(cause: String) -> Self {
        Self::File(cause)
    }
}

/// Writes the npz of one MATLAB file.
pub(super) fn convert(from: &Path, to: &Path, events: &mut dyn Events<FetchEvent>) -> Result<()> {
    let file = open_regular(from).map_err(|e| Error::io(from, e))?;
    place_file(to, IfPresent::Replace, |out| {
        let mut zip = ZipWriter::new(out);
        let (mut images, mut labels) = (None, None);
        let read = mat::read(BufReader::new(file), |matrix| match matrix.name.as_str() {
            "X" => {
                images = Some(write_images(matrix, &mut zip, to, events)?);
                Ok(())
            }
            "y" => {
                labels = Some(classes(matrix.integers()?)?);
                Ok(())
            }
            _ => Ok::<(), Stop>(()),
        });
        read.map_err(|stop| match stop {
            Stop::File(cause) => Error::file(from, cause),
            Stop::Ours(error) => error,
        })?;
        let (Some(images), Some(labels)) = (images, labels) else {
            return Err(Error::file(from, "lacks the images `X` or the labels `y`"));
        };
        if labels.len() != images {
            return Err(Error::file(from, format!("{} labels for {images} images", labels.len())));
        }
        start_array(&mut zip, "y", "<i8", &[images])
            .and_then(|()| write_values(&mut zip, &labels, i64::to_le_bytes))
            .and_then(|()| Ok(zip.finish().map(drop)?))
            .map_err(|e| Error::io(to, e))
    })
}

/// Writes array `x`. Returns the number of images.
fn write_images(
    mut matrix: Matrix<'_>,
    zip: &mut Zip<'_, '_>,
    to: &Path,
    events: &mut dyn Events<FetchEvent>,
) -> Result<usize, Stop> {
    let [height, width, 3, images] = matrix.dims[..] else {
        return Err(format!("array X: sizes {:?}; SVHN's are 32, 32, 3 and the number of images", matrix.dims).into());
    };
    if !matrix.is_bytes() {
        return Err("array X: is not of unsigned bytes".to_owned().into());
    }
    let written = |e| Stop::Ours(Error::io(to, e));
    start_array(zip, "x", "|u1", &[images, 3, height, width]).map_err(written)?;
    let plane = height * width;
    let (mut stored, mut image) = (vec![0; 3 * plane], vec![0; 3 * plane]);
    let file = crate::data::source::file_name(to);
    for i in 0..images {
        if i % EVERY == 0 {
            let (done, total) = (i as u64, images as u64);
            events.report(FetchEvent::Unpacking { file: file.clone(), done, total }).map_err(Stop::Ours)?;
        }
        matrix.bytes(&mut stored)?;
        // MATLAB stores column by column.
        for (columns, rows) in stored.chunks_exact(plane.max(1)).zip(image.chunks_exact_mut(plane.max(1))) {
            transpose(columns, height, rows);
        }
        zip.write_all(&image).map_err(written)?;
    }
    Ok(images)
}

/// Labels 1 to 10, of which 10 is the digit 0.
fn classes(labels: Vec<i64>) -> Result<Vec<i64>, String> {
    match labels.iter().position(|label| !(0..=10).contains(label)) {
        Some(i) => Err(format!("array y: image {i} has label {}; SVHN's are 1 to 10", labels[i])),
        None => Ok(labels.into_iter().map(|label| label % 10).collect()),
    }
}
