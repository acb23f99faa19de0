//! Findings from cells made by hand, whose accuracies and divergences are known.

use super::*;
use crate::experiment::blocks::{Blocks, TestBlocks};
use crate::experiment::hand_made::{self, near, whole};
use crate::experiment::output::{CellOutput, Findings};
use crate::figure::Value;
use crate::measure::{Bootstrap, Interval, Measured, measure, wilson};
use crate::units::Seed;

const SPEC: &str = "[experiment]\nkind = 'active-learning'\npool = 100\ninitial = 10\nbatch = 10\n\
                    strategies = ['random', 'max-entropy', 'max-epistemic']\n[world]\noracle = 'mnist'\n[grid]\n\
                    architectures = ['linear']\ntrain_sizes = [30]\nseeds = [0, 1, 2]\n[test]\nimages = 4\n";

fn spec() -> (ExperimentSpec, ActiveSpec) {
    let spec = hand_made::spec(SPEC);
    let own: &ActiveSpec = spec.experiment.get().unwrap();
    (spec.clone(), own.clone())
}

/// What four images say, its accuracy and KL replaced.
fn measured(accuracy: f64, kl: f64) -> Measured {
    let (p, q) = ([0.9, 0.1, 0.2, 0.8, 0.7, 0.3, 0.4, 0.6], [0.8, 0.2, 0.5, 0.5, 0.6, 0.4, 0.7, 0.3]);
    let log_q: Vec<f64> = q.iter().map(|q: &f64| q.ln()).collect();
    let mut measured = measure(&p, &log_q, &[0, 1, 0, 1], 2, &Bootstrap::new(Seed(0))).unwrap();
    measured.expected_accuracy.value = accuracy;
    measured.epistemic.value = kl;
    measured
}

fn cell(condition: usize, seed: u64, courses: [(f64, f64); 3]) -> CellResult {
    let round = |(i, (accuracy, kl)): (usize, (f64, f64))| {
        let first = 10 * i;
        let asked = (i > 0).then_some(0.5 + seed as f64);
        let bought = Purchase {
            images: (first..first + 10).collect(),
            drawn: vec![0; 10],
            aleatoric: 0.1 * condition as f64,
            epistemic: asked,
            entropy: asked,
            noise: 0.1 * i as f64,
            certainty: vec![0.95; 10],
            tried: Vec::new(),
        };
        Round { labels: first + 10, bought, measured: measured(accuracy, kl), blocks: None }
    };
    let rounds: Vec<Round> = courses.into_iter().enumerate().map(round).collect();
    let (spec, _) = spec();
    let cell = *spec.cells().iter().find(|cell| (cell.condition, cell.seed) == (condition, seed)).unwrap();
    let (id, measured) = (format!("{condition}-{seed}"), rounds[2].measured.clone());
    let output = Some(CellOutput::new(Bought { rounds }));
    CellResult { id, output, ..hand_made::result(cell, measured) }
}

/// Seeds differ in their start; gains are 0.10, 0.20 and 0.32 of random, max entropy, max
/// epistemic.
fn all() -> Vec<CellResult> {
    let mut cells = Vec::new();
    for seed in 0..3 {
        let start = 0.5 + 0.01 * seed as f64;
        for (condition, gain, kl) in [(0, 0.10, 0.5), (1, 0.20, 0.4), (2, 0.32, 0.2)] {
            cells.push(cell(condition, seed, [(start, 1.0), (start + gain / 2.0, 0.8), (start + gain, kl)]));
        }
    }
    cells
}

#[test]
fn gains_ratios_and_savings_by_hand() {
    let (spec, own) = spec();
    let found = StrategyComparison::of(&spec, &own, &all());
    let [group] = &found.groups[..] else { panic!("one network, one budget") };
    let [random, entropy, best] = &group.curves[..] else { panic!("three strategies") };
    assert!(near(random.gain.value, 0.10) && near(entropy.gain.value, 0.20) && near(best.gain.value, 0.32));
    assert!(near(best.reduction.value, 0.8) && near(best.reduction_share.unwrap().value, 0.8));
    assert_eq!(best.seeds, [0, 1, 2]);
    // The differences between seeds are gone from what is paired.
    let lead = best.stages[2].lead.unwrap().accuracy;
    assert!(near(lead.value, 0.22) && near(lead.interval.unwrap().low, 0.22));
    let spread = best.stages[2].accuracy.interval.unwrap();
    assert!(spread.high - spread.low > 0.04 && random.stages[2].lead.is_none());
    let [chance, pair] = &group.pairs[..] else { panic!("two others") };
    assert_eq!((chance.against, pair.against), (Strategy::Random, Strategy::MaxEntropy));
    let ratio = pair.gain_ratio.number.unwrap();
    assert!(near(ratio.value, 1.6) && (ratio.interval.unwrap().high - 1.6).abs() < 1e-6);
    // At 20 labels max entropy has gained 0.10; max epistemic, 0.016 a label, needs 6.25 queries,
    // not 10.
    let saving = pair.saving.as_ref().unwrap();
    assert!(near(saving.middle, 20.0) && near(saving.reached.unwrap(), 16.25));
    let saved = saving.saved.number.unwrap();
    assert!(near(saved.value, 0.375) && (saved.interval.unwrap().low - 0.375).abs() < 1e-9);
    assert!(near(pair.lead.epistemic.value, -0.2));
    // 9 of 60 labels, as many under every seed.
    let noise = best.noise.unwrap();
    assert!(near(noise.value, 0.15) && noise.interval.unwrap() == wilson(9, 60), "{noise:?}");
    assert!(near(best.stages[1].bought_epistemic.unwrap().value, 1.5) && best.stages[0].bought_epistemic.is_none());
}

/// The same with what 4,000 test images say in forty blocks, which make the larger a difference the
/// more labels a strategy has.
fn on_images() -> Vec<CellResult> {
    let with_images = |mut result: CellResult| {
        let mut bought = result.output.take().unwrap().get::<Bought>().unwrap().clone();
        for (i, round) in bought.rounds.iter_mut().enumerate() {
            let by = 0.01 * (i * (result.cell.condition + 1)) as f64;
            let measured = &mut round.measured;
            measured.n = 4000;
            let blocks = |at: f64| Blocks::of(&[at - by, at + by].repeat(20));
            let [accuracy, epistemic] = [measured.expected_accuracy.value, measured.epistemic.value].map(blocks);
            let interval = Interval {
                low: measured.expected_accuracy.value - 0.02,
                high: measured.expected_accuracy.value + 0.02,
            };
            measured.expected_accuracy.interval = interval;
            let (gap, nll) = (accuracy.clone(), epistemic.clone());
            round.blocks = Some(TestBlocks { accuracy: gap.clone(), expected_accuracy: accuracy, gap, epistemic, nll });
        }
        result.output = Some(CellOutput::new(bought));
        result
    };
    all().into_iter().map(with_images).collect()
}

#[test]
fn what_is_measured_on_the_test_images_has_their_error_in_its_interval() {
    let (spec, own) = spec();
    let found = StrategyComparison::of(&spec, &own, &on_images());
    let [random, _, best] = &found.groups[0].curves[..] else { panic!("three strategies") };
    // t of 39 degrees of freedom times s/√n of ±1.
    let half = 2.022_690_920 / 39f64.sqrt();
    let off = |found: Spread, value: f64, half: f64| {
        let interval = found.interval.unwrap();
        ((found.value - value).abs()).max((interval.low - value + half).abs()).max((interval.high - value - half).abs())
    };
    // Three seeds alike: all that is left is that of the images, of the difference of ±0.06 and ±0.02.
    let lead = best.stages[2].lead.unwrap();
    assert!(off(lead.accuracy, 0.22, 0.04 * half) < 1e-5 && off(lead.epistemic, -0.3, 0.04 * half) < 1e-5, "{lead:?}");
    assert!(off(best.gain, 0.32, 0.06 * half) < 1e-5 && off(best.reduction, 0.8, 0.06 * half) < 1e-5);
    assert!(off(random.gain, 0.10, 0.02 * half) < 1e-5);
    let seeds = 4.302_652_73 * 0.01 / 3f64.sqrt();
    assert!(off(best.stages[2].accuracy, 0.83, seeds.hypot(0.02)) < 1e-6, "{:?}", best.stages[2].accuracy);
    // Fieller: 0.32 − 0.2ρ = ± half (0.06 − 0.04ρ).
    let ratio = found.groups[0].pairs[1].gain_ratio.number.unwrap();
    let end = |sign: f64| (0.32 - sign * 0.06 * half) / (0.2 - sign * 0.04 * half);
    let interval = ratio.interval.unwrap();
    assert!((interval.low - end(-1.0)).abs() < 1e-4 && (interval.high - end(1.0)).abs() < 1e-4, "{ratio:?}");
}

#[test]
fn unfinished_runs_tell_what_they_can() {
    let (spec, own) = spec();
    let all = all();
    let none = StrategyComparison::of(&spec, &own, &[]);
    assert!(none.groups.is_empty() && none.figures().is_empty() && none.tables().is_empty());
    for finished in 1..=all.len() {
        whole(spec.experiment.analyse(&spec, &all[..finished], &[]).unwrap());
    }
    // One seed of each: means without intervals.
    let one = StrategyComparison::of(&spec, &own, &all[..3]);
    let pair = &one.groups[0].pairs[1];
    assert!(pair.gain_ratio.number.unwrap().interval.is_none() && near(pair.gain_ratio.number.unwrap().value, 1.6));
    assert!(one.groups[0].curves.iter().all(|curve| curve.gain.interval.is_none()));
    // Different seeds of two strategies: nothing is paired.
    let apart = StrategyComparison::of(&spec, &own, &[all[2].clone(), all[4].clone()]);
    assert!(apart.groups[0].pairs.is_empty() && apart.groups[0].curves.len() == 2);
    // A cell whose rounds are not those of the spec is no part of it.
    let mut short = all[0].clone();
    let mut bought: Bought = short.output.unwrap().get::<Bought>().unwrap().clone();
    bought.rounds.pop();
    short.output = Some(CellOutput::new(bought));
    assert!(StrategyComparison::of(&spec, &own, &[short]).groups[0].curves.is_empty());
}

#[test]
fn a_strategy_has_one_colour_and_figures_have_names_of_their_own() {
    let (spec, own) = spec();
    let found = StrategyComparison::of(&spec, &own, &all());
    let figures = found.figures();
    assert_eq!(figures.len(), 7);
    for figure in &figures {
        assert!(
            figure.caption.contains("95 %")
                && figure.provenance.iter().any(|(name, value)| name == "seeds" && value == "0, 1, 2")
        );
        for series in &figure.series {
            assert_eq!(Strategy::ALL[series.colour].label(), series.name);
        }
        assert_eq!(figures.iter().filter(|other| other.id == figure.id).count(), 1);
    }
    assert_eq!(figures[2].series.len(), 2, "random has no lead over itself");
    let [strategies, pairs, baskets, by_class] = &found.tables()[..] else { panic!("four tables") };
    assert_eq!((strategies.rows.len(), pairs.rows.len()), (3, 2));
    assert_eq!((baskets.rows.len(), by_class.rows.len()), (3, 6));
    // All labels are of class 0; all images have an own Bayes error of 5 %.
    assert!(matches!(by_class.rows[0][2], Value::Number { value, .. } if near(value, 100.0)));
    assert!(matches!(baskets.rows[0][4], Value::Number { value, .. } if near(value, 100.0)));
    assert!(matches!(pairs.rows[1][2], Value::Number { value, .. } if near(value, 1.6)));
    assert!(pairs.caption.contains("1.6×") && pairs.caption.contains("47.8 %"));
}
