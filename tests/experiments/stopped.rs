//! Runs stopped at any event and resumed: the same bytes.

use std::ops::ControlFlow;

use bayescope::events::Progress;
use bayescope::experiment::{CellEvent, ExperimentSpec};
use bayescope::run::{RunContext, RunEvent, RunFolder, Share, execute};
use burn::tensor::Device;

use super::{run, spec, stop_everywhere, world};

/// What an undisturbed run measures, in order; each is told from nothing done to all, always rising.
fn measured(spec: &ExperimentSpec) -> Vec<String> {
    let (folder, world, device) = (tempfile::tempdir().unwrap(), world(), Device::flex());
    let folder = RunFolder::create(&folder.path().join("run"), spec, "0123", None).unwrap();
    let context = RunContext::new(&world, spec.world.settings(3).unwrap(), &device);
    let (mut stages, mut last): (Vec<String>, _) = (Vec::new(), Progress { done: 0, total: 0 });
    let mut take = |event: RunEvent| {
        if let RunEvent::Cell { said: CellEvent::Measuring { what, progress }, .. } = event {
            if last.done == last.total {
                assert_eq!(progress.done, 0, "{what}");
                stages.push(what);
            } else {
                assert!(stages.last() == Some(&what) && progress.total == last.total && progress.done > last.done);
            }
            last = progress;
        }
        ControlFlow::Continue(())
    };
    execute(&folder, Share::ALL, &context, &mut take).unwrap();
    assert_eq!(last.done, last.total, "{stages:?}");
    stages
}

#[test]
fn what_shifts_cost_is_measured_in_pieces_between_which_a_run_may_stop() {
    let spec = spec(
        "[experiment]\nkind = 'shift'\npool = 200\nlikelihood = 10\nsettings = [{ name = 'none' }, { name = 'noise', noise = 0.3 }, \
         { name = 'mean', base = { kind = 'mean', kl = 1.0 } }]\n[grid]\narchitectures = ['linear']\ntrain_sizes = [40]\nseeds = [0]\n\
         [test]\nimages = 60\nwatched = 20\n[training]\nepochs = 1\nbatch = 20\nlearning_rate = 1e-2\n",
    );
    let (test, validation) = ("the test images", "the validation images");
    assert_eq!(
        measured(&spec),
        [test, validation, test, "the likelihood lost to noise", validation, test, validation, "the unavoidable loss"]
    );
    assert!(stop_everywhere(&spec, 1) > 25);
    // Cells of one epoch look at the whole pool: it is drawn once, seen to be drawn, and kept.
    let folder = tempfile::tempdir().unwrap();
    run(&spec, &folder.path().join("run"), usize::MAX).1.unwrap();
    assert!(folder.path().join("run/pool/train-0.npz").exists());
}

#[test]
fn estimators_are_graded_one_by_one_and_a_run_may_stop_between_any_two() {
    let spec = spec(
        "[experiment]\nkind = 'graders'\ntaus = [1.0]\nmembers = 2\nfeatures = ['pixels', 'trained']\n[grid]\n\
         architectures = ['mlp-500']\ntrain_sizes = [40]\nseeds = [0]\n[test]\nimages = 60\nwatched = 20\n\
         [training]\nepochs = 1\nbatch = 20\nlearning_rate = 1e-2\n",
    );
    let test = "the test images";
    assert_eq!(
        measured(&spec),
        [
            "estimates of the Bayes error from pixels",
            test,
            "estimates of the Bayes error from features of the trained network",
            test,
            "scores of uncertainty",
            "estimates of the Bayes error from labels"
        ]
    );
    // Over a hundred events: the steps of an estimator come round every seven.
    assert!(stop_everywhere(&spec, 5) > 15);
}

#[test]
fn calibrators_are_graded_one_by_one_and_a_run_may_stop_between_any_two() {
    let spec = spec(
        "[experiment]\nkind = 'calibration'\nlabels = [20, 40]\ndraws = 4\n[grid]\narchitectures = ['linear']\ntrain_sizes = [40]\n\
         seeds = [0]\n[test]\nimages = 60\nwatched = 20\n[training]\nepochs = 1\nbatch = 20\nlearning_rate = 1e-2\n",
    );
    assert_eq!(measured(&spec), ["the test images", "calibrated classifiers", "calibration errors by draws of labels"]);
    assert!(stop_everywhere(&spec, 1) > 15);
}

#[test]
fn a_temperature_sweep_may_stop_at_every_event() {
    let spec = spec(
        "[experiment]\nkind = 'temperature'\ntaus = [1.0, 0.5]\n[grid]\narchitectures = ['linear']\ntrain_sizes = [40]\nseeds = [0]\n\
         [test]\nimages = 60\nwatched = 20\n[training]\nepochs = 2\nbatch = 20\nlearning_rate = 1e-2\n",
    );
    assert!(stop_everywhere(&spec, 1) > 15);
}

#[test]
fn training_curves_are_whole_wherever_training_stopped() {
    let spec = spec(
        "[experiment]\nkind = 'soft-labels'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [40]\nseeds = [0]\n\
         labels = ['posterior', 'argmax']\n[test]\nimages = 60\nwatched = 20\n[training]\nepochs = 3\nbatch = 20\nlearning_rate = 1e-2\n",
    );
    assert!(stop_everywhere(&spec, 1) > 20);
}

#[test]
fn a_number_of_steps_is_taken_whatever_the_number_of_images() {
    // 7 steps: three epochs and a half over 40 images in batches of 20, a third of one over 420.
    let spec = spec(
        "[grid]\narchitectures = ['linear']\ntrain_sizes = [40, 420]\nseeds = [0]\n[test]\nimages = 60\nwatched = 20\n\
         [training]\nsteps = 7\nbatch = 20\nlearning_rate = 1e-2\n",
    );
    let folder = tempfile::tempdir().unwrap();
    let summary = run(&spec, &folder.path().join("run"), usize::MAX).1.unwrap();
    assert_eq!(
        summary.cells.iter().map(|cell| (cell.cell.train_size, cell.steps)).collect::<Vec<_>>(),
        [(40, 7), (420, 7)]
    );
    let law = &summary.laws[0];
    assert_eq!(law.training.as_deref(), Some("7 steps at every N"));
    assert!(stop_everywhere(&spec, 1) > 15);
}
