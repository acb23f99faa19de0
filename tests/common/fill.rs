//! The fill formula of the reference values: every tensor follows from its name and a seed.

#[allow(unused_imports)] // Each target uses its part.
pub use bayescope::verify::filled::{Filled, uniform};
