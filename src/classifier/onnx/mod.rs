//! A user's own classifier, from an ONNX file, in pure Rust (tract).
//!
//! The file may come from any tool. What it takes and gives is found out and checked when it is
//! opened, once:
//!
//! * **Images** enter as NCHW or NHWC, in float32, float64, float16 or bytes, and in one fixed size
//!   of batch or any. How they are scaled is asked for or stands in the file's metadata
//!   ([`Normalisation`]); nothing is guessed. Where an input open in size leaves the order of its axes open,
//!   it is the one in which the network runs, or has to be said.
//! * **Scores** are the only output, or the one named. A last Softmax or LogSoftmax is left out,
//!   because its float32 result loses the small probabilities; other outputs are probabilities if they look
//!   like it on every one of eight noise images, and logits if not. Those of an image may not depend on
//!   the others of its pass.
//! * **What cannot be run** is named: every missing operator with its nodes, not only the first.

#[cfg(feature = "onnx")]
mod file;
#[cfg(feature = "onnx")]
mod image;
#[cfg_attr(not(feature = "onnx"), path = "absent.rs")]
mod network;
mod normalisation;
#[cfg(feature = "onnx")]
mod operators;
mod options;
#[cfg(feature = "onnx")]
mod plain;
#[cfg(feature = "onnx")]
mod plan;
#[cfg(feature = "onnx")]
mod read;
#[cfg(feature = "onnx")]
mod resize;
#[cfg(feature = "onnx")]
mod scores;

#[cfg(feature = "onnx")]
pub use file::{Description, Extent, Port};
pub use network::OnnxClassifier;
#[cfg(feature = "onnx")]
pub use network::describe;
pub use normalisation::{KEY, MEAN_AND_STD, Normalisation};
#[cfg(feature = "onnx")]
pub use operators::Unsupported;
pub use options::{KnownBy, Layout, NetworkInfo, OnnxOptions, Scores};
