//! Kernels of the host, in f32 and f64, for the widest registers of the machine: what flows and classifiers are computed with on the
//! CPU. Every number is a sum in one fixed order, whatever is computed beside it and on however many threads.
//!
//! | file | what |
//! |---|---|
//! | `registers`, `real` | the instruction set this machine has; the two precisions |
//! | `product`, `outer` | matrix products with packed weights; of a transposed factor |
//! | `rows`, `functions` | what happens between products; e^x and GELU as polynomials |
//! | `buffer`, `pool` | aligned memory; room used again |

mod buffer;
mod functions;
mod outer;
mod pool;
mod product;
mod real;
mod registers;
pub mod rows;

pub use buffer::Buffer;
pub use outer::add_transposed_product;
pub use pool::Pool;
pub use product::{Panels, Strides, Term, WORTH_A_THREAD, multiply};
pub use real::Real;
pub use registers::{instruction_set, instructions, settle_on_portable, unknown_request, vectorise};
