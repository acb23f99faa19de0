//! Figures of labels are stopped by whoever listens.

use std::ops::ControlFlow;

use super::tests::{at, four, noisy, spec};
use super::*;

#[test]
fn a_caller_stops_an_error_by_points_or_draws() {
    for method in [None, Some(Method::Mc)] {
        let mut told = 0;
        let mut stop = |_: Estimate| {
            told += 1;
            ControlFlow::Break(())
        };
        let spec = Spec { method, ..spec() };
        let stopped = bayes_error(&noisy(&four(), "pair:0.2"), Tau::ONE, &spec, &mut stop);
        assert!(matches!(stopped, Err(Error::Cancelled)) && told == 1, "{method:?}");
    }
}

#[test]
fn a_caller_stops_the_search_for_tau_wherever_it_is_told() {
    for classes in [four().with_smoothing(at(2.0)), noisy(&four(), "pair:0.2")] {
        let ask = |stop: usize| {
            let mut told = 0;
            let mut until = |_: Estimate| {
                told += 1;
                if told == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let found = tau_of_error(&classes, 0.35, &spec(), &mut until);
            (found, told)
        };
        let (found, all) = ask(usize::MAX);
        assert!(found.is_ok() && all > 4, "told {all} times");
        for stop in [1, 2, all / 2, all] {
            let (stopped, told) = ask(stop);
            assert!(matches!(stopped, Err(Error::Cancelled)) && told == stop, "{stopped:?}, told {told} times");
        }
    }
}

#[test]
fn a_caller_stops_class_hardness_by_draws_long_before_a_class_is_known() {
    for classes in [four().with_smoothing(at(2.0)), noisy(&four(), "pair:0.2")] {
        let mut told = Vec::new();
        let mut stop = |news: HardnessNews| {
            told.push(news);
            if told.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = one_vs_rest(&classes, Tau::ONE, &spec(), &mut stop);
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
        assert!(matches!(told[..], [HardnessNews::Drawing(_), HardnessNews::Drawing(_)]), "{told:?}");
        let ranked = rank_classes(&classes, Tau::ONE, &spec(), &mut |_| ControlFlow::Break(()));
        assert!(matches!(ranked, Err(Error::Cancelled)), "{ranked:?}");
        let pairs = pairwise(&classes, Tau::ONE, &spec(), &mut |_| ControlFlow::Break(()));
        assert!(matches!(pairs, Err(Error::Cancelled)), "{pairs:?}");
    }
}

#[test]
fn a_caller_stops_a_slope_in_its_error_and_in_the_levels_beside() {
    for classes in [four().with_smoothing(at(2.0)), noisy(&four(), "pair:0.2")] {
        let errors = |stop: usize| {
            let mut told = 0;
            let mut until = |_: Estimate| {
                told += 1;
                if told == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let stopped = derivative(&classes, Tau::ONE, &spec(), &mut until).is_err();
            (stopped, told)
        };
        let (stopped, all) = errors(usize::MAX);
        assert!(!stopped && all > 5, "told {all} times");
        for stop in [1, all - 4, all] {
            assert_eq!(errors(stop), (true, stop), "of {all}");
        }
    }
}
