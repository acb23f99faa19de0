//! The data room from outside: files as users have them, whole, damaged, swapped and hostile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod files;
mod numpy;
mod whole;
