//! Runs stopped at any event and resumed: the same bytes.

use super::{spec, stop_everywhere};

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
