//! What a judge needs of an array: a matrix, a vector of whole numbers, one string.

use crate::data::{Array, Values};

/// Shape and type, for messages.
pub(super) fn described(array: &Array) -> String {
    format!("type {} of shape {:?}", array.descr, array.shape)
}

/// Numbers of a matrix [n, K], and K.
pub(super) fn matrix(array: Array) -> Result<(Vec<f64>, usize), String> {
    let described = described(&array);
    match (&array.shape[..], array.values.floats()) {
        (&[_, classes], Some(values)) => Ok((values, classes)),
        _ => Err(format!("{described}; floating-point numbers of shape [images, classes] are needed")),
    }
}

/// Integers of a vector [n] or [n, 1].
pub(super) fn integers(array: Array) -> Result<Vec<i64>, String> {
    let described = described(&array);
    match (&array.shape[..], array.values.integers()) {
        ([_] | [_, 1], Some(values)) => Ok(values),
        _ => Err(format!("{described}; integers of shape [images] are needed")),
    }
}

/// The one string of an array of one element.
pub(super) fn single_text(array: Array) -> Option<String> {
    match array.values {
        Values::Text(texts) if texts.len() == 1 => texts.into_iter().next(),
        _ => None,
    }
}
