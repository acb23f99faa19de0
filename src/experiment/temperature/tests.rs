use super::*;
use crate::experiment::hand_made::{measured, near, result, spec, truth, whole};
use crate::experiment::output::Findings;
use crate::figure::{Figure, Way};

const SPEC: &str = "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'convnet']\ntrain_sizes = [100]\nseeds = [0, 1]\n\
                    [experiment]\nkind = 'temperature'\ntaus = [1.5, 0.5, 1.1]\n";

/// τ = 1.5, 0.5, 1.1 in the order of the spec.
const BAYES: [f64; 3] = [0.2, 0.01, 0.05];

/// The linear classifier is 0.1 above Bayes, the ConvNet 0.02; the second seed has 0.004 more.
fn results(spec: &ExperimentSpec) -> Vec<CellResult> {
    let of = |cell: &crate::experiment::Cell| {
        let bayes = BAYES[cell.condition];
        let gap = if cell.architecture == Architecture::Linear { 0.1 } else { 0.02 };
        let error = bayes + gap + 0.004 * cell.seed as f64;
        result(*cell, measured(error, error + 0.001, bayes + 0.003))
    };
    spec.cells().iter().map(of).collect()
}

fn truths() -> Vec<Option<Truth>> {
    vec![truth(1.5, BAYES[0]), truth(0.5, BAYES[1]), truth(1.1, BAYES[2])]
}

fn sweep(spec: &ExperimentSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Sweep {
    Sweep::of(spec, spec.experiment.get().unwrap(), cells, truths)
}

fn series<'a>(figure: &'a Figure, name: &str) -> &'a crate::figure::Series {
    figure.series.iter().find(|series| series.name == name).unwrap()
}

#[test]
fn errors_and_gaps_are_those_of_the_cells_by_temperature() {
    let spec = spec(SPEC);
    let found = sweep(&spec, &results(&spec), &truths());
    let taus: Vec<f64> = found.worlds.iter().map(|world| world.tau.get()).collect();
    assert_eq!(taus, [0.5, 1.1, 1.5]);
    let hot = &found.worlds[2];
    assert!(near(hot.test_bayes_error.unwrap().value, 0.203));
    let linear = &hot.classifiers[0];
    assert_eq!((linear.architecture, linear.error.seeds), (Architecture::Linear, 2));
    assert!(near(linear.error.value, 0.302) && near(linear.expected_error.value, 0.303));
    assert!(near(linear.gap_on_test.value, 0.1));
    // The world's Bayes error is 0.2 ± 0.002; its ends move those of the gap outward.
    let (gap, error) = (linear.gap.unwrap(), linear.error.interval.unwrap());
    assert!(near(gap.value, 0.102));
    let interval = gap.interval.unwrap();
    assert!(near(interval.low, error.low - 0.202) && near(interval.high, error.high - 0.198), "{interval:?}");
}

#[test]
fn figures_show_every_temperature_and_bars_at_the_one_nearest_1() {
    let spec = spec(SPEC);
    let figures = sweep(&spec, &results(&spec), &truths()).figures();
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, ["temperature-error", "temperature-gap", "temperature-architectures"]);
    let bayes = series(&figures[0], "Bayes error of the world");
    let places: Vec<(f64, f64)> = bayes.points.iter().map(|point| (point.x, point.y)).collect();
    assert!(places.iter().zip([(0.5, 1.0), (1.1, 5.0), (1.5, 20.0)]).all(|(a, b)| a.0 == b.0 && near(a.1, b.1)));
    let net = series(&figures[0], "ConvNet");
    assert!(near(net.points[1].y, 7.2) && net.points[1].low.unwrap() < 7.2);
    let (gap, paired) = (series(&figures[1], "ConvNet"), series(&figures[1], "ConvNet, on the test images"));
    assert!(near(gap.points[2].y, 2.2) && near(paired.points[2].y, 2.0) && paired.dashed && !gap.dashed);
    assert!(gap.colour == net.colour && paired.colour == net.colour);
    // EBO names temperatures for MNIST; for a world of one's own it says nothing.
    let marked = |figure: &Figure| {
        figure.rules.iter().filter(|rule| rule.way == Way::Vertical).map(|r| r.at).collect::<Vec<_>>()
    };
    assert_eq!(marked(&figures[1]), [1.0, 1.5]);
    let mut other = spec.clone();
    other.world.oracle = "animals".into();
    assert!(marked(&sweep(&other, &results(&other), &truths()).figures()[1]).is_empty());
    let bars = &figures[2];
    assert_eq!(bars.x.categories, ["linear", "ConvNet"]);
    assert!(near(series(bars, "linear").points[0].y, 15.2) && near(bars.rules[0].at, 5.0));
    assert!(bars.provenance.contains(&("τ".into(), "1.1".into())));
}

#[test]
fn what_is_missing_is_left_out() {
    let spec = spec(SPEC);
    let all = results(&spec);
    for finished in 0..=all.len() {
        for known in [Vec::new(), vec![None; 3], vec![truth(1.5, 0.2), None, None], truths()] {
            let found = spec.experiment.analyse(&spec, &all[..finished], &known).unwrap();
            assert_eq!(found.tables()[1].rows.len(), 3);
            whole(found);
        }
    }
    // One seed at the first temperature, no Bayes error: a point without an interval, and no gap.
    let found = sweep(&spec, &all[..1], &[]);
    let linear = &found.worlds[2].classifiers[0];
    assert_eq!((linear.error.interval, linear.gap), (None, None));
    assert!(found.figures().len() == 2, "one architecture is no comparison");
}

#[test]
fn several_sizes_have_figures_of_their_own_the_largest_first() {
    let spec = spec(&SPEC.replace("[100]", "[100, 400]"));
    let figures = sweep(&spec, &results(&spec), &truths()).figures();
    assert_eq!(figures.len(), 6);
    assert!(figures[0].id == "temperature-error-n400" && figures[5].id == "temperature-architectures-n100");
    assert!(figures[0].title.contains("400") && figures[0].provenance.contains(&("N".into(), "400".into())));
}

#[test]
fn temperatures_are_checked() {
    let wrong = |taus: &str| {
        let text = SPEC.replace("[1.5, 0.5, 1.1]", taus);
        let spec: ExperimentSpec = toml::from_str(&format!("name = 'x'\n{text}")).unwrap();
        spec.validate().unwrap_err().to_string()
    };
    assert!(
        wrong("[]").contains("empty")
            && wrong("[1.0, 0.0]").contains("above 0")
            && wrong("[1.0, 1.0]").contains("twice")
    );
}
