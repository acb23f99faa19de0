//! Kernels of the host, in f32 and f64, for the widest registers of the machine: what flows and
//! classifiers are computed with on the CPU. Every number is a sum in one fixed order, whatever is
//! computed beside it and on however many threads.
//!
//! | file | what |
//! |---|---|
//! | `registers`, `real`, `kernel` | the instruction set this machine has; the two precisions; how kernels are written |
//! | `product`, `outer` | matrix products with packed weights; of a transposed factor |
//! | `rows`, `functions` | what happens between products; e^x and GELU as polynomials |
//! | `linear`, `attention`, `transformer` | layers forward and back; the Transformer layer made of them |
//! | `buffer`, `pool` | aligned memory; memory used again |
//! | `peak` | the most arithmetic a core can do |

mod attention;
mod buffer;
mod functions;
mod kernel;
mod linear;
mod outer;
mod peak;
mod pool;
mod product;
mod real;
mod registers;
pub mod rows;
#[cfg(test)]
mod tests;
pub mod transformer;

pub use attention::{Cache, HEAD};
pub use buffer::Buffer;
pub(crate) use kernel::kernel;
pub use linear::{Linear, LinearGradient, Norm, Normalised};
pub use outer::{add_outer_products, add_transposed_product};
pub use peak::multiply_adds;
pub use pool::Pool;
pub use product::{Panels, Threads, multiply_all};
pub use real::Real;
pub use registers::{instruction_set, instructions, settle_on_portable, unknown_request, vectorise};
