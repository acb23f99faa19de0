use super::*;
use crate::experiment::hand_made::{around, measured, near, result, spec, whole_at_any_time};
use crate::experiment::output::Findings;
use crate::experiment::{Cell, WatchedIntervals};
use crate::measure::Measured;

const SPEC: &str = "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['convnet']\ntrain_sizes = [100, 200, 400, 800]\nseeds = [0, 1]\n\
                    labels = ['posterior', 'argmax', 'drawn', 'smoothed']\n[experiment]\nkind = 'soft-labels'\n";

fn watched(epoch: usize, expected_accuracy: f64) -> Watched {
    let interval = |value: f64, half: f64| around(value, half).interval;
    let (step, train_loss, [cross_entropy, aleatoric, epistemic]) = (4 * epoch, 1.0, [0.5, 0.2, 0.3]);
    let intervals = Some(WatchedIntervals {
        cross_entropy: interval(cross_entropy, 0.1),
        aleatoric: interval(aleatoric, 0.1),
        epistemic: interval(epistemic, 0.1),
        expected_accuracy: interval(expected_accuracy, 0.02),
    });
    Watched { step, epoch, train_loss, cross_entropy, aleatoric, epistemic, expected_accuracy, intervals }
}

/// Soft leads hard by 0.01 and 0.03 under the two seeds, trails at N = 200; drawn is 0.05 behind
/// soft.
fn results(spec: &ExperimentSpec) -> Vec<CellResult> {
    let of = |cell: &Cell| {
        let soft = 0.7 + 0.0001 * cell.train_size as f64 + 0.1 * cell.seed as f64;
        let lead = (0.01 + 0.02 * cell.seed as f64) * if cell.train_size == 200 { -1.0 } else { 1.0 };
        let accuracy = match cell.labels {
            Labels::Posterior => soft,
            Labels::Argmax => soft - lead,
            _ => soft - 0.05,
        };
        let figures = measured(1.0 - accuracy - 0.002, 1.0 - accuracy, 0.05);
        let figures = Measured { ece: around(0.03, 0.01), epistemic: around(0.2, 0.05), ..figures };
        let course = Course { watched: vec![watched(1, accuracy - 0.1), watched(2, accuracy)] };
        CellResult { output: Some(CellOutput::new(course)), ..result(*cell, figures) }
    };
    spec.cells().iter().map(of).collect()
}

#[test]
fn gains_are_those_over_each_other_kind_paired_by_seed() {
    let spec = spec(SPEC);
    let found = Gains::of(&spec, &results(&spec));
    assert_eq!((found.told.len(), found.gains.len(), found.courses.len()), (16, 12, 16));
    let gain = |n: usize, over: Labels| found.gains.iter().find(|g| g.train_size == n && g.over == over).unwrap();
    let hard = gain(100, Labels::Argmax).expected_accuracy;
    // 0.02 ± 12.706·0.01: the spread of the differences, not of the accuracies (0.1 between seeds).
    assert!(near(hard.value, 0.02) && hard.seeds == 2);
    assert!((hard.interval.unwrap().high - (0.02 + 0.127_062)).abs() < 1e-6);
    assert!(near(gain(200, Labels::Argmax).expected_accuracy.value, -0.02));
    let drawn = gain(800, Labels::Drawn).accuracy;
    assert!(near(drawn.value, 0.05) && drawn.interval.unwrap().low > 0.049_999);
    let told = &found.told[0];
    assert!(near(told.accuracy.value, told.expected_accuracy.value + 0.002) && near(told.ece.value, 0.03));
    assert!(found.provenance.contains(&("ε of smoothed labels".into(), "0.1".into())));
}

#[test]
fn figures_have_the_papers_two_numbers_and_curves_at_three_sizes() {
    let spec = spec(SPEC);
    let found = Gains::of(&spec, &results(&spec));
    let figures = found.figures();
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id.trim_start_matches("soft-labels-")).collect();
    let expected =
        ["gain", "accuracy", "epistemic", "ece", "exact-calibration", "course-n100", "course-n200", "course-n800"];
    assert_eq!(ids, expected);
    let faint = |i: usize| figures[i].series.iter().find(|series| series.faint).unwrap();
    assert!(faint(0).points.iter().all(|p| p.y == 1.0) && faint(3).points.iter().all(|p| p.y == 0.018));
    assert!(figures.iter().filter(|f| f.series.iter().any(|s| s.faint)).all(|f| f.caption.contains("AFHQ")));
    assert!(figures[0].caption.contains("ahead of hard labels at 3 of 4 sizes, by more than the interval at 0"));
    let over_hard = figures[0].series.iter().find(|s| s.name == "over most probable classes (hard)").unwrap();
    let ys: Vec<f64> = over_hard.points.iter().map(|p| p.y).collect();
    assert!(ys.iter().zip([2.0, -2.0, 2.0, 2.0]).all(|(a, b)| near(*a, b)), "{ys:?}");
    // The same kind has the same colour everywhere.
    let colours = |name: &str| {
        let all = figures.iter().flat_map(|f| &f.series).filter(|s| s.name.ends_with(name));
        distinct(all.map(|s| s.colour))
    };
    assert!(["(soft)", "(hard)", "drawn labels", "smoothed labels"].iter().all(|name| colours(name).len() == 1));
    let curve = &figures[5].series[0];
    assert!(near(curve.points[0].y, 66.0) && near(curve.points[1].y, 76.0) && curve.band);
}

#[test]
fn partial_runs_have_what_is_there() {
    let spec = spec(SPEC);
    let all = results(&spec);
    whole_at_any_time(&spec, &all);
    // Soft labels of seed 0 and 1, hard ones of seed 0: one pair, and no interval of it.
    let found = Gains::of(&spec, &all[..3]);
    assert_eq!((found.gains.len(), found.gains[0].accuracy.seeds, found.gains[0].accuracy.interval), (1, 1, None));
    let one = found.courses.iter().find(|curve| curve.labels == Labels::Argmax).unwrap();
    assert_eq!(one.points[0].expected_accuracy.interval, None);
    // Results of older versions have no course.
    let old: Vec<CellResult> = all.iter().map(|r| CellResult { output: None, ..r.clone() }).collect();
    assert!(Gains::of(&spec, &old).courses.is_empty() && Gains::of(&spec, &old).figures().len() == 5);
}
