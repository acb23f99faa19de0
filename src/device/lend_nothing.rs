//! Lending devices, in a build without the network.

use std::net::TcpListener;

use super::Chosen;
use crate::error::{Error, Result};

/// Lends nothing.
///
/// # Errors
/// Always.
pub fn lend(_: &[Chosen], _: TcpListener, _: Option<&str>) -> Result<()> {
    Err(Error::Device("this build lends no devices (build with --features remote)".into()))
}
