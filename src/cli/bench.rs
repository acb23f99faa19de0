//! `bayescope bench`.

use super::print_json;
use crate::device::{DeviceChoice, choose};
use crate::error::Result;
use crate::flow::Precision;
use crate::oracle::bench;
use crate::oracle::folder;

/// Measures and prints.
pub fn run(oracle: &str, device: DeviceChoice, runs: usize, json: bool) -> Result<()> {
    let chosen = choose(device)?;
    let oracle = folder::open(oracle, &chosen.device, Precision::F32, chosen.batch)?;
    let report = bench::run(&oracle, &chosen, runs)?;
    if json {
        return print_json(&report);
    }
    println!("{}: matrix products reach {:.0} GFLOP/s", report.device, report.matmul_gflops);
    for b in &report.benches {
        let share = 100.0 * b.roofline_share;
        println!(
            "{}: {:.1} {} (median of {}; {:.1} to {:.1}), {share:.0} % of that",
            b.name, b.median, b.unit, b.runs, b.min, b.max
        );
    }
    Ok(())
}
