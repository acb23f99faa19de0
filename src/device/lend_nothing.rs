//! Lending devices, in a build without burn's server.

use std::net::TcpListener;
use std::process::Command;

use super::choice::OpenDevice;
use crate::error::{Error, Result};

/// Says that this build lends no devices, and which does.
///
/// # Errors
/// Always.
pub fn is_built_in() -> Result<()> {
    Err(Error::Device(
        "this build lends no devices: take the release bundle without a window (bayescope-headless) or the Python \
         package, or build with `cargo build --release --features lend`"
            .into(),
    ))
}

/// Lets nobody in.
///
/// # Errors
/// Always.
pub fn open_door(_: &TcpListener, _: impl Fn() -> Result<Command> + Sync) -> Result<()> {
    is_built_in()
}

/// Lends nothing.
///
/// # Errors
/// Always.
pub fn lend_to_one(_: &[OpenDevice], _: Option<&str>, _: Option<u64>, _: impl FnOnce(u16) -> Result<()>) -> Result<()> {
    is_built_in()
}
