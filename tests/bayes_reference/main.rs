//! Bayes errors against the reference: 206 problems of known error and 15 inverse problems (`tests/reference/bayes`), recorded
//! runs of LinConGauss (`tests/reference/hdr`), and the coverage of every interval.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod coverage;
mod hdr;
mod hdr_rules;
mod laws;
mod rules;
mod values;

use common::reference::path;
