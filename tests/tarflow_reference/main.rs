//! TarFlow against the reference implementation's numbers (apple/ml-tarflow; tests/reference): values on every device, in
//! every precision and with every way of inverting.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod files;
mod shared;
mod values;
