//! `bayescope bench`.

use super::args::Runs;
use super::print_json;
use crate::bayes;
use crate::device::{DeviceChoice, choose};
use crate::error::Result;
use crate::flow::Precision;
use crate::oracle::bench;
use crate::oracle::folder;

/// Measures and prints.
pub fn run(oracle: &str, device: DeviceChoice, Runs { runs, json }: Runs) -> Result<()> {
    let chosen = choose(device)?;
    let oracle = folder::open(oracle, &chosen.device, Precision::F32, chosen.batch)?;
    let report = bench::run(&oracle, &chosen, runs)?;
    if json {
        return print_json(&report);
    }
    println!("{}: matrix products reach {:.0} GFLOP/s", report.device, report.matmul_gflops);
    for b in &report.benches {
        let (t, share) = (&b.timing, 100.0 * b.roofline_share);
        println!(
            "{}: {:.1} {} (median of {}; {:.1} to {:.1}), {share:.0} % of that",
            t.name, t.median, t.unit, t.runs, t.min, t.max
        );
    }
    Ok(())
}

/// Times Bayes errors and prints.
pub fn bayes_error(Runs { runs, json }: Runs) -> Result<()> {
    let report = bayes::bench::run(runs)?;
    if json {
        return print_json(&report);
    }
    println!(
        "{}: at best {:.0} million variables (Φ and Φ⁻¹) a second",
        report.device,
        report.variables_per_second / 1e6
    );
    for b in &report.benches {
        let t = &b.timing;
        let share = b.roofline_share.map(|share| format!(", {:.0} % of that", 100.0 * share)).unwrap_or_default();
        println!(
            "{:46} {:9.3} {} (median of {}; {:.3} to {:.3}; aim {}){share}; claimed {:.1e}, off by {:.1e}",
            t.name, t.median, t.unit, t.runs, t.min, t.max, b.aim, b.claimed, b.off
        );
    }
    Ok(())
}
