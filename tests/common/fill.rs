//! The fill formula of the reference values: every tensor follows from its name and a seed.

pub use bayescope::verify::filled::{Filled, uniform};
