//! Bayes errors against the reference: 206 problems of known error and 15 inverse problems (`tests/reference/bayes`), recorded
//! runs of LinConGauss (`tests/reference/hdr`), and the coverage of every interval.

#[path = "../common/mod.rs"]
mod common;
mod coverage;
mod hdr;
mod hdr_rules;
mod laws;
mod rules;
mod values;

use common::reference::path;
