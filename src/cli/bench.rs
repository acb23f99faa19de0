//! `bayescope bench`.

use super::args::Runs;
use super::print_json;
use super::progress::Bar;
use crate::bayes;
use crate::classifier::Architecture;
use crate::device::{DeviceChoice, choose};
use crate::error::Result;
use crate::experiment::bench_training;
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
            "{}: {:.1} {} (median of {}; {:.1} to {:.1}), {:.0} images × classes a second, {share:.0} % of that",
            t.name, t.median, t.unit, t.runs, t.min, t.max, b.images_times_classes_per_second
        );
    }
    Ok(())
}

/// Times training steps and prints. `sizes`: side of the images, images in a step, pieces side by side.
pub fn training(
    architectures: &[String],
    sizes: [usize; 3],
    device: DeviceChoice,
    Runs { runs, json }: Runs,
) -> Result<()> {
    let chosen = choose(device)?;
    let [side, batch, shards] = sizes;
    let architectures =
        architectures.iter().cloned().map(Architecture::try_from).collect::<Result<Vec<Architecture>>>()?;
    let benches = architectures
        .into_iter()
        .map(|architecture| bench_training(architecture, side, batch.max(1), shards.max(1), &chosen.device, runs))
        .collect::<Result<Vec<_>>>()?;
    let device = chosen.report.used.label();
    if json {
        return print_json(&serde_json::json!({ "device": device, "benches": benches }));
    }
    println!("{device}");
    for b in &benches {
        println!(
            "{}: {:.1} ms a step (median of {}; {:.1} to {:.1}), {:.0} images a second",
            b.name, b.median, b.runs, b.min, b.max, b.images_per_second
        );
    }
    Ok(())
}

/// Times every way of sampling a TarFlow and prints.
pub fn sampling(oracle: &str, images: usize, device: DeviceChoice, Runs { runs, json }: Runs) -> Result<()> {
    let chosen = choose(device)?;
    let oracle = folder::open(oracle, &chosen.device, Precision::F32, chosen.batch)?;
    let s = bench::sampling::run(&oracle, &chosen, images.max(1), runs, &mut Bar::new("measuring blocks"))?;
    if json {
        return print_json(&s);
    }
    println!("{}: {} images of {} at once", s.device, s.images, oracle.info.name);
    println!("passes over a rest: {:9.1} ms", s.sequential_ms);
    println!(
        "token by token:     {:9.1} ms, {:.0} % of the {:.0} GFLOP/s of matrix products",
        s.cached_ms,
        100.0 * s.cached_roofline_share,
        s.matmul_gflops
    );
    println!("GS-Jacobi:          {:9.1} ms, {:.2} times as fast as token by token", s.jacobi_ms, s.jacobi_speedup);
    println!("auto:               {:9.1} ms, {:.1} images a second", s.auto_ms, s.images_per_second);
    println!("largest difference: {:9.1e}", s.max_abs_difference);
    for (b, block) in s.blocks.iter().enumerate() {
        let jacobi = block.jacobi_ms.map_or_else(|| "none".into(), |ms| format!("{ms:.1} ms"));
        println!(
            "block {b}: CRM {:.2}, IGM of z {:.2} and of 0 {:.2}; loop {:.1} ms, GS-Jacobi {jacobi} in {} rounds: {:?}",
            block.crm,
            block.igm[0],
            block.igm[1],
            block.loop_ms,
            block.rounds.map_or_else(|| "no".into(), |rounds| rounds.to_string()),
            block.strategy
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
