//! Arguments of `verify`.

use std::path::PathBuf;

use clap::Args;

use super::DeviceArg;

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub device: DeviceArg,
    /// Cases to carry out, separated by commas; all of them if not given.
    #[arg(long, value_delimiter = ',', value_name = "CASE,CASE,…")]
    pub cases: Vec<String>,
    /// Request no more of a graphics device than a small card has (buffers of 128 MiB, 256 threads in a workgroup, no 16-bit floats,
    /// no subgroups), so that kernels which need more fail here by name. With --device wgpu or wgpu:N.
    #[arg(long)]
    pub small_device: bool,
    /// Write device, driver, instruction set, version and every comparison to this file, to be attached to a bug report.
    #[arg(long, value_name = "FILE.json")]
    pub report: Option<PathBuf>,
    /// Print the same as one JSON document.
    #[arg(long)]
    pub json: bool,
}
