//! Lending devices, in a build without the network.

use std::net::TcpListener;
use std::process::Command;

use super::choice::OpenDevice;
use crate::error::{Error, Result};

/// Lets nobody in.
///
/// # Errors
/// Always.
pub fn open_door(_: &TcpListener, _: impl Fn() -> Result<Command> + Sync) -> Result<()> {
    Err(Error::Device("this build lends no devices (build with --features remote)".into()))
}

/// Lends nothing.
///
/// # Errors
/// Always.
pub fn lend_to_one(_: &[OpenDevice], _: Option<&str>, _: Option<u64>, _: impl FnOnce(u16) -> Result<()>) -> Result<()> {
    Err(Error::Device("this build lends no devices (build with --features remote)".into()))
}
