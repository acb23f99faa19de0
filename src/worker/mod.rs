//! The one named thread that owns the device.

pub mod protocol;
