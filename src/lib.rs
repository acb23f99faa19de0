//! # Bayescope
//!
//! Worlds in which the truth is known: a class-conditional normalizing flow trained on real images and frozen *is* a
//! data distribution, whose exact posterior and Bayes error can be computed instead of estimated.
//!
//! The rooms of this crate; the left may be imported by the right, never back (`tests/layering.rs`):
//!
//! `units, error → data → flow → oracle → {bayes, measure, classifier} → experiment → run → worker → {cli, gui}`
//!
//! `amounts`, `events`, `provenance`, `parallel` and `stats` stand beside `error`, `device`, `kernels` and `gradients` beside `data`, `task` behind `oracle`, `figure` beside `measure`. What is
//! taken away, brought back and compared with nature stands between `classifier` and `worker`: `export`, `judge`, `validate`; `verify` beside
//! them compares a device with what is right. `measure`
//! computes without a device: of the crate it imports `units`, `error`, `events`, `parallel`, `stats` and `kernels` alone, and `classifier` names one function
//! of it, `log_softmax`. What lives in each room, and how to add to it: docs/architecture.md.
//!
//! Comments cite *theory §n*, which is docs/theory.md, and the two papers: BLC, Khorasani et al., "Beyond the Loss Curve", and EBO,
//! Theisen et al., "Evaluating State-of-the-Art Classification Models Against Bayes Optimality".

// Tests may unwrap, panic, wait and write files as they like; those in tests/ say so at their top.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

mod amounts;
pub mod bayes;
pub mod classifier;
pub mod cli;
pub mod data;
pub mod device;
pub mod error;
pub mod events;
pub mod experiment;
pub mod export;
pub mod figure;
pub mod flow;
mod gradients;
#[cfg(feature = "gui")]
pub mod gui;
pub mod judge;
mod kernels;
pub mod measure;
pub mod oracle;
mod parallel;
pub mod provenance;
pub mod run;
pub mod stats;
pub mod task;
pub mod units;
pub mod validate;
pub mod verify;
pub mod worker;
