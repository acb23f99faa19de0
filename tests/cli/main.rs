//! The command line, end to end, on the bundled oracle and on a small one it trains itself. All on the CPU.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod active;
mod bayes;
mod checkpoints;
#[path = "../common/mod.rs"]
mod common;
mod datasets;
mod evaluate;
mod experiments;
mod export;
mod export_stopped;
mod exported;
mod external;
mod extremes;
mod faults;
mod graded;
mod graders;
#[allow(dead_code)]
#[path = "../onnx_reference/graph.rs"]
mod graph;
mod hardness;
mod label_noise;
mod looking;
mod notes;
mod odd;
mod pictures;
mod reference;
mod reproducible;
mod run;
mod sampling;
mod scale;
mod several;
mod shift;
mod slurm;
mod training;
mod typicality;
mod uncertainty;
mod validate;
mod verify;
mod walk;
mod words;
mod world;
