//! The data room from outside: files as users have them, whole, damaged, swapped and hostile.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod files;
mod numpy;
mod whole;
