//! Cells over three Gaussian classes in the plane, whose posteriors are a formula.

mod look_ahead;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use burn::tensor::Device;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::classifier::{Architecture, Labels, TrainingSpec};
use crate::data::ImageShape;
use crate::events::silent;
use crate::experiment::{Batch, Images, Source};

const MEANS: [[f64; 2]; 3] = [[0.0, 1.2], [1.0, -0.6], [-1.0, -0.6]];

fn images(n: usize, seed: u64) -> Images {
    let mut all = Batch { x: Vec::new(), labels: Vec::new(), posterior: Vec::new() };
    for i in 0..n {
        let mut rng = Seed(seed).rng(i as u64);
        let label = rng.random_range(0..3);
        let x = MEANS[label].map(|mean| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            (mean + noise) as f32
        });
        let density = MEANS.map(|mean| {
            let square: f64 = mean.iter().zip(x).map(|(mean, x)| (mean - f64::from(x)).powi(2)).sum();
            (-square / 2.0).exp()
        });
        let sum: f64 = density.iter().sum();
        all.x.extend(x);
        all.labels.push(label);
        all.posterior.extend(density.map(|density| density / sum));
    }
    Images { shape: ImageShape { channels: 1, height: 1, width: 2 }, classes: 3, all }
}

struct Bench {
    spec: ActiveSpec,
    pool: Images,
    test: Images,
    device: Device,
}

impl Bench {
    fn new(pool: usize) -> Self {
        let strategies = Strategy::ALL.to_vec();
        let spec = ActiveSpec { pool, initial: 10, batch: 10, strategies, members: 3, tries: 13 };
        Self { spec, pool: images(pool, 1), test: images(100, 2), device: Device::flex() }
    }

    fn cell(strategy: Strategy, budget: usize) -> Cell {
        let (architecture, labels) = (Architecture::Linear, Labels::Drawn);
        Cell { architecture, train_size: budget, labels, seed: 5, condition: strategy as usize }
    }

    /// A cell that trains on these images.
    fn job<'a>(&'a self, cell: Cell, train: &'a dyn Source, folder: &'a Path) -> CellJob<'a> {
        CellJob {
            cell,
            id: "cell",
            training: TrainingSpec { epochs: 3, batch: 8, learning_rate: 0.05, ..Default::default() },
            pretrained: None,
            train,
            test: &self.test,
            watched: 50,
            range: [0.0, 1.0],
            weights_sha256: None,
            folder,
            every: Duration::ZERO,
            device: &self.device,
        }
    }

    fn run(&self, cell: Cell, folder: &Path, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        run(&self.spec, &self.job(cell, &self.pool, folder), events)
    }

    /// A classifier trained with the labels of some images of the pool, apart from any strategy.
    fn trained_apart(&self, cell: Cell, images: &[usize], folder: &Path) -> (CellResult, Trained) {
        let mut at = images.to_vec();
        at.sort_unstable();
        let cell = Cell { train_size: at.len(), ..cell };
        let view = View { of: &self.pool, at };
        train_cell(&self.job(cell, &view, folder), &mut silent()).unwrap()
    }

    /// Runs a cell, and cancels it at this step of one of its trainings.
    fn cancelled_at(&self, at: usize, cell: Cell, folder: &Path) {
        let mut stop = |event: CellEvent| match event {
            CellEvent::Step { step, .. } if step == at => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        assert!(matches!(self.run(cell, folder, &mut stop), Err(Error::Cancelled)));
    }

    fn whole(&self, strategy: Strategy, budget: usize) -> CellResult {
        let folder = tempfile::tempdir().unwrap();
        self.run(Self::cell(strategy, budget), folder.path(), &mut silent()).unwrap()
    }
}

fn bought(result: &CellResult) -> &[Round] {
    &result.output.as_ref().unwrap().get::<Bought>().unwrap().rounds
}

#[test]
fn all_strategies_start_alike_buy_to_the_budget_and_nothing_twice() {
    let bench = Bench::new(120);
    let cells: Vec<CellResult> = Strategy::ALL.into_iter().map(|strategy| bench.whole(strategy, 45)).collect();
    let start = &bought(&cells[0])[0];
    for (cell, strategy) in cells.iter().zip(Strategy::ALL) {
        let rounds = bought(cell);
        assert_eq!(rounds.iter().map(|round| round.labels).collect::<Vec<_>>(), [10, 20, 30, 40, 45]);
        assert_eq!(&rounds[0], start, "{strategy:?} starts otherwise");
        let images: Vec<usize> = rounds.iter().flat_map(|round| round.bought.images.clone()).collect();
        assert!(images.len() == 45 && images.iter().collect::<BTreeSet<_>>().len() == 45);
        assert!(images.iter().all(|image| *image < 120));
        for round in rounds {
            let drawn: Vec<usize> = round.bought.images.iter().map(|&image| bench.pool.all.labels[image]).collect();
            assert_eq!(drawn, round.bought.drawn);
        }
        assert_eq!((&cell.measured, cell.cell), (&rounds[4].measured, Bench::cell(strategy, 45)));
        let members = if strategy.asks_an_ensemble() { 3 } else { 1 };
        let tries = if strategy == Strategy::LookAhead { 13 } else { 0 };
        assert_eq!(cell.steps, 3 * (members * (2 + 3 + 4 + 5) + tries * (3 + 4 + 5 + 6) + 6));
    }
    // The first purchase is made by the same classifier.
    let first = |strategy: Strategy| &bought(&cells[strategy as usize])[1];
    for other in Strategy::ALL {
        let (of, most) = (&first(other).bought, Strategy::MaxAleatoric);
        assert!(first(most).bought.aleatoric >= of.aleatoric, "{other:?}");
        assert!(first(Strategy::MaxEpistemic).bought.epistemic >= of.epistemic, "{other:?}");
    }
    let second = |strategy: Strategy| &bought(&cells[strategy as usize])[1].bought.images;
    let choices: BTreeSet<&Vec<usize>> = Strategy::ALL.into_iter().map(second).collect();
    // Entropy and margin may agree in one round of three classes, BALD and BatchBALD too, and the look-ahead
    // may agree with any; the others may not.
    assert!(choices.len() >= 8, "{choices:?}");
}

#[test]
fn the_first_choice_is_the_largest_kl_of_the_classifier_of_the_round_before() {
    let (bench, folder) = (Bench::new(120), tempfile::tempdir().unwrap());
    let cell = Bench::cell(Strategy::MaxEpistemic, 20);
    let result = bench.run(cell, folder.path(), &mut silent()).unwrap();
    let [start, chosen] = bought(&result) else { panic!("two rounds") };
    // The classifier of the start, trained apart from it.
    let (_, trained) = bench.trained_apart(cell, &start.bought.images, &folder.path().join("apart"));
    let kl = trained.per_image(&bench.pool, 120).unwrap().kl;
    let mut order: Vec<usize> = (0..120).filter(|image| !start.bought.images.contains(image)).collect();
    order.sort_by(|&a, &b| kl[b].total_cmp(&kl[a]).then(a.cmp(&b)));
    assert_eq!(chosen.bought.images, order[..10]);
}

#[test]
fn who_buys_the_whole_pool_ends_alike() {
    let bench = Bench::new(30);
    let last = |strategy| bench.whole(strategy, 30).measured;
    assert_eq!(last(Strategy::Random), last(Strategy::MaxEntropy));
}

/// Copies what a kill at this moment would leave.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            std::fs::copy(&entry, &target).unwrap();
        }
    }
}

/// Steps told, by a course that must begin once and go on without a gap.
fn steps(events: &[CellEvent], total: usize) -> Vec<usize> {
    let begun: Vec<usize> = events
        .iter()
        .filter_map(|event| match event {
            CellEvent::Started { steps, resumed_at, .. } => {
                assert_eq!(*steps, total);
                Some(*resumed_at)
            }
            _ => None,
        })
        .collect();
    assert_eq!(begun.len(), 1);
    // A round whose trainings were all finished is measured again before one begins.
    let first = events.iter().find(|event| !matches!(event, CellEvent::Measuring { .. }));
    assert!(matches!(first, Some(CellEvent::Started { .. })));
    let mut told = vec![begun[0]];
    for event in events {
        let last = told[told.len() - 1];
        match event {
            CellEvent::Step { step, .. } => told.push(*step),
            CellEvent::Watched(watched) => assert_eq!(watched.step, last),
            CellEvent::Checkpoint { step } => assert!(*step <= last),
            CellEvent::Choosing { step, steps } => assert_eq!((*step, *steps), (last, total)),
            CellEvent::Started { .. } | CellEvent::Drawing(_) | CellEvent::Measuring { .. } => {}
        }
    }
    assert!(told.windows(2).all(|pair| pair[1] == pair[0] + 1), "{told:?}");
    assert_eq!(told.last(), Some(&total));
    told
}

#[test]
fn a_cell_killed_at_any_moment_goes_on_to_the_same_bits() {
    let (bench, folder) = (Bench::new(120), tempfile::tempdir().unwrap());
    let cell = Bench::cell(Strategy::Bald, 30);
    let (whole, snapshot) = (folder.path().join("whole"), |i: usize| folder.path().join(format!("killed-{i}")));
    let (mut told, mut killed) = (Vec::new(), 0);
    let undisturbed = bench.run(cell, &whole, &mut |event: CellEvent| {
        // Measuring writes nothing to go on with.
        if matches!(event, CellEvent::Measuring { .. }) {
            return ControlFlow::Continue(());
        }
        told.push(event);
        // The first moments, then every 17th: training of members, looks at the pool, the last
        // round.
        if told.len() <= 3 || told.len().is_multiple_of(17) {
            copy(&whole, &snapshot(killed));
            killed += 1;
        }
        ControlFlow::Continue(())
    });
    let undisturbed = undisturbed.unwrap();
    let all = steps(&told, undisturbed.steps);
    assert!(all.len() == undisturbed.steps + 1 && killed > 8, "{killed} moments");
    let mut resumed_at = BTreeSet::new();
    for i in 0..killed {
        let mut told = Vec::new();
        let again = bench.run(cell, &snapshot(i), &mut |event: CellEvent| {
            told.push(event);
            ControlFlow::Continue(())
        });
        assert_eq!(again.unwrap(), undisturbed, "killed at moment {i}");
        resumed_at.insert(steps(&told, undisturbed.steps)[0]);
    }
    // They really went on from many places, not from the start.
    assert!(resumed_at.len() > 6, "{resumed_at:?}");
    // Old rounds keep what was found and no states; the last round's are where every cell has them.
    assert!(whole.join("last.safetensors").exists() && whole.join("worst.json").exists());
    for round in ["round-0", "round-1", "round-1/member-2"] {
        let left = std::fs::read_dir(whole.join(round)).unwrap().map(|entry| entry.unwrap().path());
        assert!(left.filter(|path| path.is_file()).all(|path| path.ends_with(SETTLED)), "{round}");
    }
}

#[test]
fn a_stop_at_the_last_step_of_a_member_loses_no_watched_line() {
    let (bench, folder) = (Bench::new(120), tempfile::tempdir().unwrap());
    let cell = Bench::cell(Strategy::Bald, 20);
    // Three members of 6 steps, and the last training of 9.
    bench.cancelled_at(6, cell, folder.path());
    let mut told = Vec::new();
    let resumed = bench.run(cell, folder.path(), &mut |event: CellEvent| {
        told.push(event);
        ControlFlow::Continue(())
    });
    assert_eq!(resumed.unwrap(), bench.whole(Strategy::Bald, 20));
    // A line is written once a start was reported: the course of the cell has no place before.
    assert_eq!(steps(&told, 27)[0], 6);
    assert!(matches!(&told[1], CellEvent::Watched(watched) if watched.step == 6), "{:?}", told[1]);
    let watched = told.iter().filter(|event| matches!(event, CellEvent::Watched(_))).count();
    assert_eq!(watched, 1 + 3 * 3, "of three epochs of each training two were watched before");
}

#[test]
fn a_cell_that_goes_on_buying_says_so() {
    let (bench, folder) = (Bench::new(120), tempfile::tempdir().unwrap());
    let cell = Bench::cell(Strategy::MaxEpistemic, 20);
    let mut stop = |event: CellEvent| match event {
        CellEvent::Choosing { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert!(matches!(bench.run(cell, folder.path(), &mut stop), Err(Error::Cancelled)));
    let mut told = Vec::new();
    let resumed = bench.run(cell, folder.path(), &mut |event: CellEvent| {
        told.push(event);
        ControlFlow::Continue(())
    });
    assert_eq!(resumed.unwrap(), bench.whole(Strategy::MaxEpistemic, 20));
    // 6 of 15 steps are done, and no training goes on before the purchase.
    let first = told.iter().find(|event| !matches!(event, CellEvent::Measuring { .. }));
    assert!(matches!(first, Some(CellEvent::Choosing { step: 6, steps: 15 })), "{first:?}");
    assert!(!told.iter().any(|event| matches!(event, CellEvent::Drawing(_))));
}

#[test]
fn a_cell_cancelled_in_the_middle_of_its_second_round_goes_on_to_the_same_bits() {
    let (bench, folder) = (Bench::new(120), tempfile::tempdir().unwrap());
    let cell = Bench::cell(Strategy::MaxEpistemic, 30);
    // Rounds of 6, 9 and 12 steps.
    bench.cancelled_at(10, cell, folder.path());
    assert!(folder.path().join("round-0").join(SETTLED).exists());
    assert!(folder.path().join("round-1/last.safetensors").exists());
    let resumed = bench.run(cell, folder.path(), &mut silent()).unwrap();
    assert_eq!(resumed, bench.whole(Strategy::MaxEpistemic, 30));
    // A finished cell that is measured again is not trained again.
    let mut told = 0;
    let again = bench.run(cell, folder.path(), &mut |event: CellEvent| {
        told += usize::from(matches!(event, CellEvent::Step { .. }));
        ControlFlow::Continue(())
    });
    assert_eq!((again.unwrap(), told), (resumed, 0));
    let torn = folder.path().join("round-1").join(SETTLED);
    std::fs::write(&torn, "{").unwrap();
    let why = bench.run(cell, folder.path(), &mut silent()).unwrap_err().to_string();
    assert!(why.contains("round.json") && why.contains("remove it"), "{why}");
}
