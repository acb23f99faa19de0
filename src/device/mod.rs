//! Which machine computes: a wgpu adapter, CUDA or the CPU. Every device is tried before it is
//! used, and the reason for the choice is kept with it.
//!
//! | file | what |
//! |---|---|
//! | `choice`, `choose`, `avoid` | names of devices and a device in use; choosing one; those that `auto` passes over |
//! | `probe`, `adapters`, `cuda` | whether a device computes; those of wgpu and of CUDA |
//! | `registry` | the devices brought up so far |
//! | `window`, `queue_yield` | the window's own device, and the queue it shares with the engine |
//! | `faults`, `guard`, `failover`, `batches` | faults; failures as errors; work begun again on the next device; halving where memory is short |
//! | `scheduler` | several devices of one machine |
//! | `address`, `remote`, `latency`, `presence`, `lend` | devices of other machines, whether those are still there, and lending ours |
//! | `matmul_precision` | the number format of matrix products, in training and in drawing images |
//! | `full_precision_matmul` | products whose factors keep their 32 bits on cards that would round them |
//! | `gelu` | an activation whose gradient is its own on every device |
//! | `read`, `wait`, `picture` | reading values back, and waiting for them; pictures that stay on the device |
//! | `memory` | host memory that the C library keeps |
//! | `fault_injection` | faults on purpose, for tests |

#[cfg(feature = "wgpu")]
mod adapters;
mod address;
mod avoid;
mod batches;
mod choice;
mod choose;
#[cfg(feature = "cuda")]
pub mod cuda;
mod failover;
pub mod fault_injection;
mod faults;
pub mod full_precision_matmul;
mod gelu;
mod guard;
mod latency;
#[cfg_attr(not(feature = "lend"), path = "lend_nothing.rs")]
pub mod lend;
mod matmul_precision;
pub mod memory;
mod picture;
#[cfg(feature = "remote")]
mod presence;
mod probe;
#[cfg(feature = "wgpu")]
pub mod queue_yield;
mod read;
mod registry;
#[cfg_attr(not(feature = "remote"), path = "remote_none.rs")]
pub mod remote;
mod scheduler;
#[cfg(any(feature = "wgpu", feature = "remote"))]
mod wait;
#[cfg(feature = "wgpu")]
mod window;

#[cfg(feature = "wgpu")]
pub use adapters::{descriptor, open_adapter};
pub use address::{Address, PORT, ssh_tunnel};
pub use avoid::avoid;
pub use batches::{at_most, bounded, fitting, halving, in_batches, is_for_memory};
pub use choice::{Candidate, DeviceChoice, DeviceReport, OpenDevice};
pub use choose::{candidates, choose};
pub use failover::{DeviceFailures, Replacement, on_device, retry_on_next_device};
pub use faults::{note, notes};
pub use gelu::gelu;
pub use guard::{explain, guarded};
pub use latency::Latency;
pub use matmul_precision::MatmulPrecision;
#[cfg(feature = "wgpu")]
pub use picture::DevicePicture;
pub use picture::{ImageSource, in_place, paints, paints_in_software, pictures};
pub use read::{lost, to_host, values_read, yield_to_window};
pub use registry::{is_gpu, largest_buffer};
pub use scheduler::{Devices, WorkQueue, run_on_all};
#[cfg(feature = "wgpu")]
pub use window::{Lender, keep_apart, lend_window, lose_window, spare_window, window_is_spared, window_lost};
