//! The fill formula of the reference values: every tensor follows from its name and a seed.

#[allow(unused_imports)] // Each target uses its part.
pub use bayescope::verify::filled::{Filled, uniform};

/// Values in f64.
pub fn to_f64(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}
