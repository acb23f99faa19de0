//! Lending this machine's devices to others, by burn's own server. Blocks until the process is told to stop.

use std::net::TcpListener;

use burn::server::{RemoteServer, TokenAuthorizer, WebSocketTransport};

use super::Chosen;
use crate::error::{Error, Result};

/// Lends `devices`, numbered in this order, to everyone who connects to `listener` and knows the token, if there is one; returns after
/// Ctrl+C or SIGTERM. Every client computes in a session of its own, which ends with its connection.
///
/// # Errors
/// When the devices are of different kinds (GPUs through wgpu and CUDA go together, the CPU only alone), or the network fails.
pub fn lend(devices: &[Chosen], listener: TcpListener, token: Option<&str>) -> Result<()> {
    let mut server = RemoteServer::new(devices.iter().map(|chosen| chosen.device.clone()));
    if let Some(token) = token {
        let only = TokenAuthorizer::new(token).map_err(|error| Error::input(error.to_string()))?;
        server = server.with_authorizer(only);
    }
    let served = server.serve(WebSocketTransport::from_listener(listener));
    served.map_err(|error| Error::Device(format!("the device cannot be lent: {error}")))
}
