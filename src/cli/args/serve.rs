//! The arguments of `serve`.

use clap::Args;

use crate::device::DeviceChoice;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Devices to lend, numbered in this order: auto, wgpu:N, cuda:N or cpu (see `bayescope doctor`).
    #[arg(long, value_delimiter = ',', default_value = "auto", value_name = "DEVICE,…")]
    pub device: Vec<DeviceChoice>,
    /// Where to listen. Port 0 is any free one; 0.0.0.0 is reached from everywhere.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "HOST:PORT")]
    pub bind: String,
    /// Want no token: everyone on this machine may compute. Without this, the token is that of BAYESCOPE_TOKEN, or a new one that is
    /// printed.
    #[arg(long)]
    pub without_token: bool,
    /// Print one line of JSON about what is lent, instead of the explanation.
    #[arg(long)]
    pub json: bool,
    /// Host memory that one session may take, in GiB (Linux); half of the machine's unless given.
    #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub session_memory: Option<u64>,
    /// Lend to one client, on behalf of another process of this program.
    #[arg(long, hide = true)]
    pub one_session: bool,
}
