//! Mistakes put in on purpose are found and named; what panics or hangs is a row.

use std::ops::ControlFlow;

use super::*;
use crate::events::silent;

fn named(name: &str) -> Vec<Case> {
    CASES.iter().filter(|case| case.name == name).copied().collect()
}

fn on_the_cpu(cases: &[Case], terms: Terms) -> Report {
    run_cases(DeviceChoice::Cpu, cases, terms, &mut silent()).unwrap()
}

fn failed(report: &Report) -> Vec<&Row> {
    report.rows.iter().filter(|row| row.verdict == Verdict::Failed).collect()
}

#[test]
fn weights_a_thousandth_off_are_found_and_named() {
    let off = |mut weights: Weights| {
        let arrays = weights.0.iter_mut().filter(|(name, _)| name.ends_with("weight"));
        arrays.for_each(|(_, array)| array.values.iter_mut().for_each(|v| *v *= 1.001));
        weights
    };
    let trained = ["resnet-training", "vit-training"];
    let answers = ["glow-reference", "tarflow-reference", "convnet-logits", "glow", "tarflow", "shared-tarflow"];
    for name in answers.into_iter().chain(trained) {
        let right = on_the_cpu(&named(name), TERMS);
        assert!(right.passed, "{name}: {:?}", failed(&right));
        let wrong = on_the_cpu(&named(name), Terms { weights: off, ..TERMS });
        let first = failed(&wrong)[0];
        assert!(!wrong.passed && first.case == name && first.error > first.bound, "{first:?}");
        assert!(wrong.sentence.contains(name) && wrong.sentence.contains("bayescope-verify-cpu.json"));
    }
}

#[test]
fn what_panics_fails_or_hangs_is_a_row_and_the_others_go_on() {
    let cases = [
        Case {
            name: "panics",
            work: |_, checks| {
                checks.done("its beginning");
                panic!("an index of ours")
            },
        },
        Case { name: "fails", work: |_, _| Err(Error::OutOfMemory { device: "a card".into(), why: "256 MB".into() }) },
        Case {
            name: "hangs",
            work: |_, checks| {
                checks.done("its beginning");
                std::thread::sleep(Duration::from_secs(600));
                Ok(())
            },
        },
        Case {
            name: "works",
            work: |_, checks| {
                checks.within("one", &[1.0], &[1.0], 0.0);
                Ok(())
            },
        },
    ];
    let report = on_the_cpu(&cases, Terms { limit: Duration::from_secs(5), ..TERMS });
    let told: Vec<(&str, Verdict, Option<&str>)> =
        report.rows[1..].iter().map(|row| (row.case, row.verdict, row.reason.as_deref())).collect();
    use Verdict::{Failed, Passed};
    let expected = [
        ("panics", Passed, None),
        ("panics", Failed, Some("it panicked: an index of ours")),
        ("fails", Failed, Some("out of memory: a card has not enough (256 MB)")),
        ("hangs", Passed, None),
        ("hangs", Failed, Some("no answer within 5 s")),
        ("works", Passed, None),
    ];
    assert_eq!(told, expected);
    assert!(!report.passed && report.sentence.starts_with("3 of 7 checks failed on CPU"), "{}", report.sentence);
}

#[test]
fn a_device_that_is_not_there_is_a_row() {
    let report = run_cases(DeviceChoice::Cuda(97), &named("glow"), TERMS, &mut silent()).unwrap();
    assert!(report.used.is_none() && !report.passed && report.rows.len() == 1);
    assert!(report.rows[0].reason.as_ref().unwrap().contains("cuda:97"), "{:?}", report.rows);
    assert!(report.sentence.contains("bayescope-verify-cuda-97.json"), "{}", report.sentence);
}

#[test]
fn cases_come_in_order_and_stop_when_asked() {
    let spec = VerifySpec { device: DeviceChoice::Cpu, cases: vec!["glow".into(), "glow-reference".into()] };
    let mut begun = Vec::new();
    let mut sink = |event: VerifyEvent| {
        if let VerifyEvent::Begun(name, progress) = event {
            begun.push((name, progress.done, progress.total));
        }
        if begun.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(matches!(verify(&spec, &mut sink), Err(Error::Cancelled)));
    assert_eq!(begun, [(DEVICE, 0, 3), ("glow-reference", 1, 3), ("glow", 2, 3)]);
    let unknown = VerifySpec { cases: vec!["glwo".into()], ..spec };
    assert!(verify(&unknown, &mut silent()).unwrap_err().to_string().contains("glow-reference"));
}
