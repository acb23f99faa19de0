//! Kinds of experiments from spec to summary, carried out on tiny worlds: against the truth, and stopped at any event.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod label_noise;
mod lost;
mod remains;
mod stopped;
mod temperature;
mod timing;

use std::ops::ControlFlow;
use std::path::Path;

use bayescope::error::{Error, Result};
use bayescope::experiment::{ExperimentSpec, Summary};
use bayescope::flow::Precision;
use bayescope::oracle::world::World;
use bayescope::run::{RunContext, RunEvent, RunFolder, Share, execute};
use burn::tensor::Device;
use common::tiny;

/// A conditional Glow over grey 8×8 images of three classes that overlap.
fn world() -> World {
    let names = ["a", "b", "c"].map(String::from).to_vec();
    World::new(Box::new(tiny::flow(&tiny::config(1, 8, 2, 2), 3, Precision::F32)), names, 64).unwrap()
}

fn spec(rest: &str) -> ExperimentSpec {
    toml::from_str(&format!("name = 'tiny'\n[world]\noracle = 'tiny'\n{rest}")).unwrap()
}

/// Carries out a run in a folder, stopped at its event of a number, from 1; and how many events there were.
fn run(spec: &ExperimentSpec, folder: &Path, stop_at: usize) -> (usize, Result<Summary>) {
    let (world, device) = (world(), Device::flex());
    let folder = RunFolder::create(folder, spec, "0123", None).unwrap();
    let context = RunContext::new(&world, spec.world.settings(3).unwrap(), &device);
    let mut events = 0;
    let done = execute(&folder, Share::ALL, &context, &mut |_: RunEvent| {
        events += 1;
        if events == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (events, done)
}

fn summary(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("summary.json")).unwrap()
}

/// Whatever the event a run is stopped at, what is resumed ends in the same summary. Steps over some events; returns how many stops there
/// were.
fn stop_everywhere(spec: &ExperimentSpec, stride: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let (events, done) = run(spec, &whole, usize::MAX);
    done.unwrap();
    let mut stops = 0;
    for stop_at in (1..events).step_by(stride) {
        let broken = folder.path().join(stop_at.to_string());
        let (_, done) = run(spec, &broken, stop_at);
        // After the last cell there is nothing left to stop.
        stops += usize::from(matches!(done, Err(Error::Cancelled)));
        run(spec, &broken, usize::MAX).1.unwrap();
        assert!(
            summary(&broken) == summary(&whole),
            "stopped at event {stop_at} of {events}, the run ended in another summary"
        );
    }
    stops
}
