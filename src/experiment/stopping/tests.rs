use super::*;
use crate::experiment::Cell;
use crate::experiment::hand_made::{measured, near, result, spec, whole};
use crate::experiment::output::Findings;
use crate::experiment::validated::Seen;

const SPEC: &str = "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'convnet']\ntrain_sizes = [100]\nseeds = [0, 1]\n\
                    [experiment]\nkind = 'stopping'\ntaus = [1.0, 1.3]\nlabels = [200, 50]\n";

/// KL is least in epoch 2. Of 200 labels loss finds it, accuracy is best in 2 and 3 alike, ECE in 1;
/// of 50 labels loss is best in 3.
fn epochs(seed: u64) -> Vec<Validated> {
    let more = 0.1 * seed as f64;
    let kl = [0.5, 0.2, 0.3 + more, 0.6];
    let loss = [[1.0, 0.5, 0.7, 0.9], [1.0, 0.5, 0.4, 0.9]];
    let of = |at: usize| {
        let seen = |n, loss| Seen { n, loss, accuracy: [0.5, 0.8, 0.8, 0.7][at], ece: [0.01, 0.02, 0.03, 0.04][at] };
        Validated { epoch: at + 1, epistemic: kl[at], seen: vec![seen(200, loss[0][at]), seen(50, loss[1][at])] }
    };
    (0..4).map(of).collect()
}

fn results(spec: &ExperimentSpec) -> Vec<CellResult> {
    let of = |cell: &Cell| {
        let output = Some(CellOutput::new(Stopped { epochs: epochs(cell.seed) }));
        CellResult { output, ..result(*cell, measured(0.2, 0.2, 0.1)) }
    };
    spec.cells().iter().map(of).collect()
}

#[test]
fn each_rule_gives_away_what_its_epoch_costs() {
    let spec = spec(SPEC);
    let own = spec.experiment.get::<StoppingSpec>().unwrap();
    let found = StoppingRegrets::of(&spec, own, &results(&spec));
    assert_eq!((found.regrets.len(), found.courses.len()), (4 * 7, 4));
    let told = [
        (StoppingRule::Last, 0, 4.0, 0.4),
        (StoppingRule::Loss, 200, 2.0, 0.0),
        // 0.1 and 0.2 under the two seeds.
        (StoppingRule::Loss, 50, 3.0, 0.15),
        (StoppingRule::Accuracy, 200, 2.0, 0.0),
        (StoppingRule::Ece, 50, 1.0, 0.3),
    ];
    for (rule, n, epoch, regret) in told {
        for one in found.regrets.iter().filter(|one| (one.rule, one.n) == (rule, n)) {
            assert!(near(one.epoch.value, epoch) && near(one.regret.value, regret), "{one:?}");
            assert!(near(one.best_epoch.value, 2.0) && near(one.relative.unwrap().value, regret / 0.2));
        }
    }
    let figures = found.figures();
    assert_eq!(figures.len(), 2 * 2);
    let last = figures[0].series.iter().find(|series| series.name == "linear, last epoch").unwrap();
    assert!(last.dashed && last.points.iter().map(|point| point.x).eq([50.0, 200.0]));
}

#[test]
fn what_is_missing_is_left_out() {
    let spec = spec(SPEC);
    let all = results(&spec);
    for finished in 0..=all.len() {
        whole(spec.experiment.analyse(&spec, &all[..finished], &[]).unwrap());
    }
}
