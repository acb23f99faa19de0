//! `bayescope bench`.

use serde::Serialize;
use serde_json::Value;

use super::args::Runs;
use super::progress::Bar;
use crate::bayes;
use crate::classifier::Architecture;
use crate::device::{DeviceChoice, choose};
use crate::error::{Error, Result};
use crate::experiment::{TrainTask, bench_training};
use crate::flow::Precision;
use crate::oracle::bench::{self, Peak};
use crate::oracle::folder;
use crate::oracle::train::bench_steps;

/// Of the worlds that come with the program, one of each family.
const BUNDLED: [&str; 2] = ["mnist", "cells"];
/// The networks timed in training, and their batch.
const TRAINED: [Architecture; 2] = [Architecture::ResNet18, Architecture::VitSmall];
const BATCH: usize = 128;

/// Measures everything and prints: posterior and sampling of `oracle` or of the bundled worlds,
/// training, Bayes errors and, on a graphics adapter, pictures brought to the screen.
pub fn all(oracle: Option<&str>, device: DeviceChoice, Runs { runs, output }: Runs) -> Result<()> {
    let chosen = choose(device)?;
    let peak = Peak::measure(&chosen, runs)?;
    let mut benches = Vec::new();
    let mut add = |bench: serde_json::Result<Value>| -> Result<()> {
        benches.push(bench.map_err(|e| Error::input(e.to_string()))?);
        Ok(())
    };
    for oracle in oracle.map_or(BUNDLED.to_vec(), |oracle| vec![oracle]) {
        let oracle = folder::open(oracle, &chosen.device, Precision::F32, chosen.batch)?;
        bench::world(&oracle, peak, runs)?.iter().try_for_each(|bench| add(serde_json::to_value(bench)))?;
    }
    for architecture in TRAINED {
        let task = TrainTask { architecture, side: 32, batch: BATCH, shards: 1, runs };
        add(serde_json::to_value(bench_training(task, &chosen.device, Some(peak))?))?;
    }
    for mut bench in bayes::bench::run(runs)?.benches {
        bench.timing.name = format!("Bayes error, one thread: {}", bench.timing.name);
        add(serde_json::to_value(&bench))?;
    }
    #[cfg(all(feature = "gui", feature = "wgpu"))]
    if matches!(chosen.report.used.choice, DeviceChoice::Wgpu(_)) {
        let painted = crate::gui::bench_paint(oracle.unwrap_or(BUNDLED[0]), chosen.report.used.choice, runs)?.1;
        painted.iter().try_for_each(|timing| add(without_roofline(timing)))?;
    }
    let device = chosen.report.used.label();
    output.print(&Figures { device: &device, peak, benches: &benches }, |_| {
        println!("{device}: {peak}");
        benches.iter().for_each(print_row);
        Ok(())
    })
}

/// Figures of one device, as JSON.
#[derive(Serialize)]
struct Figures<'a, B> {
    device: &'a str,
    #[serde(flatten)]
    peak: Peak,
    benches: &'a [B],
}

/// A task that no measured limit bounds.
#[cfg(all(feature = "gui", feature = "wgpu"))]
fn without_roofline(timing: &bench::Timing) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(timing)?;
    value["roofline_share"] = Value::Null;
    Ok(value)
}

/// Times both ways of bringing pictures to the screen and prints.
#[cfg(all(feature = "gui", feature = "wgpu"))]
pub fn paint(oracle: &str, device: DeviceChoice, Runs { runs, output }: Runs) -> Result<()> {
    let (chosen, timings) = crate::gui::bench_paint(oracle, device, runs)?;
    let device = chosen.report.used.label();
    let benches = timings.iter().map(without_roofline).collect::<serde_json::Result<Vec<Value>>>();
    let benches = benches.map_err(|e| Error::input(e.to_string()))?;
    output.print(&serde_json::json!({ "device": device, "benches": benches }), |_| {
        println!("{device}");
        benches.iter().for_each(print_row);
        Ok(())
    })
}

/// One line of the table of everything.
fn print_row(bench: &Value) {
    let number = |key: &str| bench[key].as_f64().unwrap_or(f64::NAN);
    let text = |key: &str| bench[key].as_str().unwrap_or_default();
    let share = bench["roofline_share"].as_f64();
    let share = share.map(|share| format!(", {:.0} % of {}", 100.0 * share, text("roofline"))).unwrap_or_default();
    println!(
        "{:66} {:9.2} {} (median of {}; {:.2} to {:.2}){share}",
        text("name"),
        number("median"),
        text("unit"),
        number("runs"),
        number("min"),
        number("max"),
    );
}

/// Times a world and prints.
pub fn run(oracle: &str, device: DeviceChoice, Runs { runs, output }: Runs) -> Result<()> {
    let chosen = choose(device)?;
    let oracle = folder::open(oracle, &chosen.device, Precision::F32, chosen.batch)?;
    let report = bench::run(&oracle, &chosen, runs)?;
    output.print(&report, |_| {
        println!("{}: {}", report.device, report.peak);
        for b in &report.benches {
            let (t, share) = (&b.timing, 100.0 * b.roofline_share);
            println!(
                "{}: {:.1} {} (median of {}; {:.1} to {:.1}), {:.0} images × classes a second, {share:.0} % of that",
                t.name, t.median, t.unit, t.runs, t.min, t.max, b.images_times_classes_per_second
            );
        }
        Ok(())
    })
}

/// Times training steps and prints. `sizes`: side of the images, images in a step, shards.
pub fn training(
    architectures: &[String],
    sizes: [usize; 3],
    device: DeviceChoice,
    Runs { runs, output }: Runs,
) -> Result<()> {
    let architectures =
        architectures.iter().cloned().map(Architecture::try_from).collect::<Result<Vec<Architecture>>>()?;
    let chosen = choose(device)?;
    let [side, batch, shards] = sizes;
    let peak = Peak::measure(&chosen, runs)?;
    let benches = architectures
        .into_iter()
        .map(|architecture| {
            let task = TrainTask { architecture, side, batch: batch.max(1), shards: shards.max(1), runs };
            bench_training(task, &chosen.device, Some(peak))
        })
        .collect::<Result<Vec<_>>>()?;
    let device = chosen.report.used.label();
    output.print(&Figures { device: &device, peak, benches: &benches }, |_| {
        println!("{device}: {peak}");
        benches.iter().for_each(|b| print_step(&b.timing, b.images_per_second, b.roofline_share));
        Ok(())
    })
}

/// Times training steps of worlds and prints.
pub fn training_of_oracles(
    oracles: &[String],
    batch: usize,
    device: DeviceChoice,
    Runs { runs, output }: Runs,
) -> Result<()> {
    let chosen = choose(device)?;
    let peak = Peak::measure(&chosen, runs)?;
    let bench = |oracle: &String| bench_steps(oracle, batch.max(1), &chosen, peak, runs);
    let benches = oracles.iter().map(bench).collect::<Result<Vec<_>>>()?;
    let device = chosen.report.used.label();
    output.print(&Figures { device: &device, peak, benches: &benches }, |_| {
        println!("{device}: {peak}");
        benches.iter().for_each(|b| print_step(&b.timing, b.images_per_second, Some(b.roofline_share)));
        Ok(())
    })
}

/// One line of the table of training steps.
fn print_step(t: &bench::Timing, images_per_second: f64, share: Option<f64>) {
    let share = share.map(|share| format!(", {:.0} % of that", 100.0 * share)).unwrap_or_default();
    println!(
        "{}: {:.1} ms a step (median of {}; {:.1} to {:.1}), {images_per_second:.0} images a second{share}",
        t.name, t.median, t.runs, t.min, t.max
    );
}

/// Times every way of sampling a TarFlow and prints.
pub fn sampling(oracle: &str, images: usize, device: DeviceChoice, Runs { runs, output }: Runs) -> Result<()> {
    let chosen = choose(device)?;
    let oracle = folder::open(oracle, &chosen.device, Precision::F32, chosen.batch)?;
    let s = bench::sampling::run(&oracle, &chosen, images.max(1), runs, &mut Bar::new("measuring blocks"))?;
    output.print(&s, |_| {
        println!("{}: {} images of {} at once", s.device, s.images, oracle.info.name);
        println!("passes over a rest: {:9.1} ms", s.sequential_ms);
        println!(
            "token by token:     {:9.1} ms, {:.0} % of the {:.0} GFLOP/s of {}",
            s.cached_ms,
            100.0 * s.cached_roofline_share,
            s.peak.roofline_gflops(),
            s.peak.roofline()
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
    })
}

/// Times Bayes errors and prints.
pub fn bayes_error(Runs { runs, output }: Runs) -> Result<()> {
    let report = bayes::bench::run(runs)?;
    output.print(&report, |_| {
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
    })
}
