//! Glow against the reference implementation's numbers (EBO's code; tests/reference): values on every device and in every
//! precision, and public checkpoints opened as they are: whole, damaged, hostile and large.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod checkpoints;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod files;
mod forge;
mod memory;
mod values;
