//! Bayes errors against the reference: 206 problems of known error and 15 inverse problems (`tests/reference/bayes`), recorded
//! runs of LinConGauss (`tests/reference/hdr`), and the coverage of every interval.

mod coverage;
mod hdr;
mod hdr_rules;
mod laws;
mod rules;
mod values;

use std::path::PathBuf;

/// A file of the reference: in `tests/reference`, or in the folder named by `BAYESCOPE_REFERENCE`.
fn path(name: &str) -> PathBuf {
    let bundled = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference");
    std::env::var_os("BAYESCOPE_REFERENCE").map_or_else(bundled, PathBuf::from).join(name)
}
