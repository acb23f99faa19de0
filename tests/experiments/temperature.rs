//! The temperature sweep: its Bayes errors are those of the world at each τ, and its classifiers lie above them.

use bayescope::bayes::{GaussianClasses, Spec, bayes_error};
use bayescope::experiment::Sweep;
use bayescope::oracle::posterior::Prior;
use bayescope::units::Seed;

use super::{run, spec, world};

#[test]
fn every_temperature_has_the_bayes_error_of_its_world() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(
        "prior = [0.5, 0.3, 0.2]\n[experiment]\nkind = 'temperature'\ntaus = [2.5, 1.2, 1.8]\n[grid]\narchitectures = ['linear', 'mlp-500']\n\
         train_sizes = [400]\nseeds = [0, 1]\n[test]\nimages = 1000\nwatched = 100\n[training]\nepochs = 4\nlearning_rate = 1e-2\n",
    );
    let summary = run(&spec, folder.path(), usize::MAX).1.unwrap();
    let analysis = summary.analysis.as_ref().unwrap();
    let found: &Sweep = analysis.get().unwrap();
    assert_eq!(found.worlds.iter().map(|world| world.tau.get()).collect::<Vec<_>>(), [1.2, 1.8, 2.5]);
    let (world, prior) = (world(), Prior::new(&[0.5, 0.3, 0.2]).unwrap());
    let classes = GaussianClasses::of_base(world.flow().shared_base().unwrap(), &prior).unwrap();
    let mut before = 0.0;
    for swept in &found.worlds {
        let truth = swept.truth.as_ref().unwrap();
        let again = bayes_error(&classes, swept.tau, &Spec { seed: Seed(77), ..Spec::default() }, &mut |_| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        let ((low, high), (least, most)) = (truth.bayes_error.interval, again.figure.interval);
        assert!(low <= most && least <= high, "{truth:?} {again:?}");
        // Monotone in τ (EBO Prop. 2), and neither nothing nor everything.
        assert!(truth.bayes_error.value > before + 0.005 && truth.bayes_error.value < 0.5, "{truth:?}");
        before = truth.bayes_error.value;
        // The test images are of that world: 1,000 independent doubts have a mean within four of their intervals' half widths.
        let on_test = swept.test_bayes_error.unwrap();
        let half = (on_test.interval.high - on_test.interval.low) / 2.0;
        assert!((on_test.value - truth.bayes_error.value).abs() < 2.0 * half, "{on_test:?} {truth:?}");
        assert_eq!(swept.classifiers.len(), 2);
        for beside in &swept.classifiers {
            assert!(beside.gap_on_test.value > 0.0 && beside.error.seeds == 2, "{beside:?}");
            let gap = beside.gap.unwrap();
            assert!((gap.value - (beside.error.value - truth.bayes_error.value)).abs() < 1e-12);
        }
    }
    assert_eq!(analysis.figures().len(), 3);
}
