//! The closed forms of base shifts against Monte Carlo through real flows.

use bayescope::events::silent;
use bayescope::experiment::BaseShift;
use bayescope::flow::base::latents;
use bayescope::flow::{Flow, Precision};
use bayescope::measure::student_mean;
use bayescope::units::{Seed, Tau};

use crate::common::tiny;

const IMAGES: usize = 3000;

/// log p′(x|y) − log p(x|y) of images drawn from p′, nats. p and p′ share the map and its log-det, so that only the base samples differ:
/// under p the distance that the flow finds for the decoded image, under p′ the noise it was drawn with.
fn log_ratios(flow: &dyn Flow, shift: BaseShift, tau: Tau) -> Vec<f64> {
    let (dims, classes) = (flow.shape().dims(), flow.classes());
    let labels: Vec<usize> = (0..IMAGES).map(|i| i % classes).collect();
    let noise = latents(Seed(11), 0, IMAGES, dims);
    let map = shift.of_flow(flow, tau, Seed(12)).unwrap();
    let mut moved = noise.clone();
    map.apply(&mut moved, dims);
    let x = flow.decode(&moved, &labels, tau, &mut silent()).unwrap().x;
    let scores = flow.score(&x).unwrap();
    let ratio = |(i, noise): (usize, &[f32])| {
        let own: f64 = noise.iter().map(|&e| f64::from(e).powi(2)).sum();
        let found = scores.quad[i * classes + labels[i]] / tau.get().powi(2);
        let ratio = 0.5 * (found - own) - dims as f64 * map.ratio.ln();
        if map.offset.is_empty() {
            // A wider or narrower base is that of another temperature, at which the flow itself can be asked.
            let at = |tau: Tau| scores.log_likelihoods(i, tau)[labels[i]];
            let asked = at(Tau::new(tau.get() * map.ratio).unwrap()) - at(tau);
            assert!((asked - ratio).abs() < 1e-2 * (1.0 + ratio.abs()), "{shift:?}, image {i}: {asked} for {ratio}");
        }
        ratio
    };
    noise.chunks_exact(dims).enumerate().map(ratio).collect()
}

fn check(flow: &dyn Flow, shifts: &[BaseShift]) {
    for &shift in shifts {
        for tau in [1.0, 0.7] {
            let (value, half) = student_mean(&log_ratios(flow, shift, Tau::new(tau).unwrap()));
            // Twice the 95 % interval: four standard errors.
            assert!((value - shift.kl()).abs() < 2.0 * half, "{shift:?} at τ = {tau}: {value} ± {half}");
            assert!(half < 0.1 * shift.kl(), "{shift:?}: {half} tells nothing");
        }
    }
}

#[test]
fn base_shifts_have_the_kl_they_are_given_in_both_families() {
    let all = [BaseShift::Mean { kl: 0.6 }, BaseShift::Wider { kl: 0.6 }, BaseShift::Narrower { kl: 0.6 }];
    check(&tiny::tarflow(&tiny::tarflow_config(1, 4, 2, 3), 71, Precision::F64), &all);
    let glow = tiny::flow(&tiny::config(1, 4, 2, 2), 72, Precision::F64);
    check(&glow, &all);
    check(&glow, &[BaseShift::Towards { kl: 0.6, from: 2, to: 0 }]);
}

#[test]
fn means_move_along_the_line_between_two_classes_as_far_as_told() {
    let glow = tiny::flow(&tiny::config(1, 4, 2, 2), 72, Precision::F64);
    let (base, tau) = (glow.shared_base().unwrap(), Tau::new(0.7).unwrap());
    // The whole way has the KL of the two classes: ½ Σ (μ_to − μ_from)²/(τσ)².
    let pairs = base.mean(2).iter().zip(base.mean(0)).zip(base.std());
    let whole: f64 = pairs.map(|((a, b), std)| 0.5 * ((b - a) / (0.7 * std)).powi(2)).sum();
    let map = BaseShift::Towards { kl: whole, from: 2, to: 0 }.of_flow(&glow, tau, Seed(0)).unwrap();
    for d in 0..base.dims() {
        let moved = base.mean(2)[d] + 0.7 * base.std()[d] * map.offset[d];
        assert!((moved - base.mean(0)[d]).abs() < 1e-12);
    }
}

#[test]
fn what_has_no_direction_says_so() {
    let tarflow = tiny::tarflow(&tiny::tarflow_config(1, 4, 2, 3), 71, Precision::F64);
    let glow = tiny::flow(&tiny::config(1, 4, 2, 2), 72, Precision::F64);
    let refused = |flow: &dyn Flow, from, to| {
        BaseShift::Towards { kl: 0.1, from, to }.of_flow(flow, Tau::ONE, Seed(0)).unwrap_err().to_string()
    };
    assert!(refused(&tarflow, 0, 1).contains("share one map"));
    assert!(refused(&glow, 0, 3).contains("class 3"));
    assert!(refused(&glow, 1, 1).contains("same mean"));
}
