//! What several test targets share: the reference values of other implementations, and small flows.
#![allow(dead_code)] // Each target uses its part.

pub mod fill;
pub mod lender;
pub mod npz;
pub mod pictures;
pub mod reference;
pub mod table;
pub mod tarflow;
pub mod tiny;
pub mod tunnel;

/// Largest |a − b|.
pub fn max_abs(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, nan_is_infinite)
}

/// `max` that does not hide NaN.
pub fn nan_is_infinite(a: f64, b: f64) -> f64 {
    if b.is_nan() { f64::INFINITY } else { a.max(b) }
}
