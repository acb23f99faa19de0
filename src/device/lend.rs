//! Lending this machine's devices to others, by burn's own server behind a door of our own. Every
//! connection that passes the door's first check has a process of its own, so that nothing a client
//! does reaches another one's session: burn's server may be ended by one impossible tensor, waits
//! for ever for half a request, and answers web pages.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, exit};

use burn::server::{RemoteServer, TokenAuthorizer, WebSocketTransport};

use super::choice::OpenDevice;
use crate::error::{Error, Result};

mod door;
mod handshake;

/// This build lends devices.
///
/// # Errors
/// None; a build without burn's server has another function of this name.
pub fn is_built_in() -> Result<()> {
    Ok(())
}

/// Lets clients in from `listener`, each to a process of its own that `command` starts, which calls
/// [`lend_to_one`]; returns only when that cannot be. The first Ctrl+C or SIGTERM ends this process
/// at once, with success; its children see their standard input end, and end as well.
///
/// # Errors
/// When signals cannot be caught.
pub fn open_door(listener: &TcpListener, command: impl Fn() -> Result<Command> + Sync) -> Result<()> {
    use signal_hook::{consts, flag};
    let always = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    for signal in [consts::SIGINT, consts::SIGTERM] {
        let caught = flag::register_conditional_shutdown(signal, 0, always.clone());
        caught.map_err(|e| Error::io("signals", e))?;
    }
    door::keep(listener, &command)
}

/// Lends `devices`, numbered in this order, to one client: what listens is told to `tell` as a port
/// of 127.0.0.1. Ends the process when standard input ends, that is with the process that started
/// it. A session may allocate `bytes` of host memory (Linux).
///
/// # Errors
/// When the devices are of different kinds (GPUs through wgpu and CUDA go together, the CPU only
/// alone), or the network fails.
pub fn lend_to_one(
    devices: &[OpenDevice],
    token: Option<&str>,
    bytes: Option<u64>,
    tell: impl FnOnce(u16) -> Result<()>,
) -> Result<()> {
    bound_memory(bytes)?;
    let failed = |error: &dyn std::fmt::Display| Error::Device(format!("the device cannot be lent: {error}"));
    let parent = || {
        let _ = std::io::stdin().read(&mut [0]);
        exit(0)
    };
    std::thread::Builder::new().name("parent".into()).spawn(parent).map_err(|e| failed(&e))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| failed(&e))?;
    let mut server = RemoteServer::new(devices.iter().map(|chosen| chosen.device.clone()));
    if let Some(token) = token {
        let only = TokenAuthorizer::new(token).map_err(|error| Error::input(error.to_string()))?;
        server = server.with_authorizer(only);
    }
    // Last, so that the process that started this one hears of a port or of a failure.
    tell(listener.local_addr().map_err(|e| failed(&e))?.port())?;
    server.serve(WebSocketTransport::from_listener(listener)).map_err(|e| failed(&e))
}

/// Bounds what this process may have written to: private writable pages, that is allocations.
/// Address space that is only reserved, as drivers do by the terabyte, does not count.
#[cfg(target_os = "linux")]
fn bound_memory(bytes: Option<u64>) -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Some(bytes) = bytes else { return Ok(()) };
    let bytes = getrlimit(Resource::Data).maximum.map_or(bytes, |most| most.min(bytes));
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Data, limit).map_err(|e| Error::io("the bound on memory", e.into()))
}

#[cfg(not(target_os = "linux"))]
fn bound_memory(_: Option<u64>) -> Result<()> {
    Ok(())
}
