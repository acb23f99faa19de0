//! Runs stopped at any event and resumed: the same bytes.

use super::{run, spec, stop_everywhere};

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
