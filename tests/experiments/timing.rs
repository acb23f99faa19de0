//! How long a run will take: timed on steps as training makes them, told step by step, and stopped at any of them.

use std::ops::ControlFlow;

use bayescope::error::{Error, Result};
use bayescope::events::Progress;
use bayescope::run::{Estimate, RunContext, RunFolder, estimate};
use burn::tensor::Device;

use super::{run, spec, world};

/// The estimate of the run in a folder, stopped at its word of a number, from 1; and the words.
fn timed(folder: &RunFolder, stop_at: usize) -> (Vec<(usize, usize)>, Result<Vec<Estimate>>) {
    let (world, device) = (world(), Device::flex());
    let context = RunContext::new(&world, folder.spec.world.settings(3).unwrap(), &device);
    let mut words = Vec::new();
    let done = estimate(folder, &context, &mut |Progress { done, total }: Progress| {
        words.push((done, total));
        if words.len() == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (words, done)
}

#[test]
fn steps_are_timed_as_training_makes_them_and_every_one_is_told() {
    // A batch of 10¹² images is not one of 40 when there are 40: nothing of that size is made.
    let spec = spec(
        "[grid]\narchitectures = ['linear', 'mlp-500']\ntrain_sizes = [40, 20]\nseeds = [0]\n[test]\nimages = 20\nwatched = 20\n\
         [training]\nepochs = 2\nbatch = 1000000000000\n",
    );
    let place = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(place.path(), &spec, "0123", None).unwrap();
    let (words, found) = timed(&folder, usize::MAX);
    assert_eq!(words, (1..=6).map(|done| (done, 6)).collect::<Vec<_>>());
    for of in found.unwrap() {
        assert_eq!((of.cells, of.steps), (2, 4));
        assert!(of.step_secs > 0.0 && of.seconds == 4.0 * of.step_secs && of.parameters > 0, "{of:?}");
    }
    for stop_at in 1..=6 {
        let (words, found) = timed(&folder, stop_at);
        assert!(words.len() == stop_at && matches!(found, Err(Error::Cancelled)), "{words:?} {found:?}");
    }
    // Nothing is timed of which nothing is left.
    run(&spec, place.path(), usize::MAX).1.unwrap();
    let (words, found) = timed(&folder, usize::MAX);
    assert!(words.is_empty() && found.unwrap().is_empty());
}
