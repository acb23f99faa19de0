//! What shifts cost: every setting against the baseline, paired by seed, and how little the size of
//! a shift says of it (BLC figure 3, tables 7-9).

use serde::{Deserialize, Serialize};

use super::fit::{Fit, Spread};
use super::shift_kind::ShiftKind;
use super::{ShiftSpec, Shifted};
use crate::classifier::{Architecture, Labels};
use crate::experiment::blocks::{Difference, ends_of_unseen, over_images};
use crate::experiment::cell::CellResult;
use crate::experiment::output::Findings;
use crate::experiment::repeats::{NATS, SHARE, classifiers};
use crate::experiment::spec::ExperimentSpec;
use crate::figure::{Figure, Table};
use crate::measure::{Estimate, Interval, Measured};
use crate::oracle::posterior::Prior;

/// What shifts cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShiftEffects {
    /// Name of the run.
    pub run: String,
    /// Name of the world's oracle.
    pub oracle: String,
    /// Base temperature τ.
    pub tau: f64,
    /// Seeds planned.
    pub seeds: Vec<u64>,
    /// Test images, the same for all.
    pub test_images: usize,
    /// One for every network, N and kind of labels.
    pub groups: Vec<Group>,
}

/// The settings as one kind of classifier suffers them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Network.
    pub architecture: Architecture,
    /// Images of a cell, those for validation included.
    pub train_size: usize,
    /// What the classifiers are told.
    pub labels: Labels,
    /// Every setting, the baseline first, whether cells of it are finished or not.
    #[serde(rename = "harms")]
    pub effects: Vec<ShiftEffect>,
    /// Fits of the drop in accuracy on the size of the shift, where there is something to fit.
    pub fits: Vec<Fit>,
}

/// What one setting costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShiftEffect {
    /// Its name.
    pub name: String,
    /// What it shifts.
    pub kind: ShiftKind,
    /// Weights of its class prior; empty where it is the world's.
    pub prior: Vec<f64>,
    /// σ of its pixel noise, units of x.
    pub noise: f64,
    /// KL(π′‖π), nats; absent while the number of classes is not known.
    pub target_kl_y: Option<f64>,
    /// The exact KL(p′(x, y)‖p(x, y)), nats; absent under pixel noise, where it is not known.
    pub joint_kl: Option<f64>,
    /// Its finished cells, one a seed.
    pub runs: Vec<ShiftedRun>,
    /// KL_y of the frequencies drawn (BLC eq. 8), nats.
    pub kl_y: Option<Spread>,
    /// Expected accuracy on the test images, mean p(argmax q|x), a fraction.
    pub accuracy: Option<Spread>,
    /// Accuracy less that of the baseline of the same seed, percentage points.
    pub change: Option<Spread>,
    /// 1 − accuracy.
    pub error: Option<Spread>,
    /// What the Bayes classifier of the shifted world loses on the test images, percentage points:
    /// mean over runs, interval over the test images that all runs share; absent under pixel noise.
    #[serde(default)]
    pub unavoidable_loss: Option<Estimate>,
    /// Accuracy lost beyond that, seed by seed, percentage points.
    #[serde(default)]
    pub excess_loss: Option<Spread>,
    /// Accuracy on the validation images, shifted as the training images are, a fraction.
    pub validation: Option<Spread>,
    /// KL(p‖q) on the test images, nats.
    pub epistemic: Option<Spread>,
    /// What noise takes from the world's log p(x|y), nats an image: no KL, see [`Shifted`].
    pub log_likelihood_drop: Option<Spread>,
}

/// A finished cell of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShiftedRun {
    /// Its seed.
    pub seed: u64,
    /// KL_y of its images, nats.
    pub kl_y: f64,
    /// Expected accuracy on the test images, a fraction, with its interval over them.
    pub accuracy: Estimate,
    /// Accuracy less the baseline's of the same seed, percentage points; absent until that is
    /// finished.
    pub change: Option<f64>,
}

impl ShiftEffect {
    fn of<'a>(own: &ShiftSpec, condition: usize, world: Option<&Prior>, cells: &[&'a CellResult]) -> Option<Self> {
        let (setting, baseline) = (own.settings.get(condition)?, own.settings.first()?);
        let of = |condition: usize| cells.iter().filter(move |result| result.cell.condition == condition);
        let mine: Vec<(&'a CellResult, &Shifted)> =
            of(condition).filter_map(|result| Some((*result, result.output.as_ref()?.get()?))).collect();
        let run = |(result, found): &(&CellResult, &Shifted)| {
            let accuracy = result.measured.expected_accuracy;
            let unshifted = of(0).find(|other| other.cell.seed == result.cell.seed);
            let change = unshifted.map(|other| 100.0 * (accuracy.value - other.measured.expected_accuracy.value));
            ShiftedRun { seed: result.cell.seed, kl_y: found.kl_y, accuracy, change }
        };
        let runs: Vec<ShiftedRun> = mine.iter().map(run).collect();
        let spread = |value: &dyn Fn(&CellResult, &Shifted) -> f64| {
            Spread::of(&mine.iter().map(|(result, found)| value(result, found)).collect::<Vec<_>>())
        };
        let unavoidable: Vec<Estimate> = mine.iter().filter_map(|(_, found)| found.unavoidable_loss).collect();
        let beyond = |((_, found), run): (&(&CellResult, &Shifted), &ShiftedRun)| {
            Some(-run.change? - 100.0 * found.unavoidable_loss?.value)
        };
        let beyond: Vec<f64> = mine.iter().zip(&runs).filter_map(beyond).collect();
        let measured = |figure: fn(&Measured) -> Estimate, range| {
            Spread::on_test_images(&mine.iter().map(|(result, _)| figure(&result.measured)).collect::<Vec<_>>(), range)
        };
        let expected = |result: &'a CellResult| result.paired_share(|m| m.expected_accuracy, |b| &b.expected_accuracy);
        let pair = |(result, _): &(&'a CellResult, &Shifted)| {
            let unshifted = of(0).find(|other| other.cell.seed == result.cell.seed && condition > 0)?;
            Some(expected(result).less(expected(unshifted)))
        };
        let change_over_images = ends_over_images(&mine.iter().filter_map(pair).collect::<Vec<_>>());
        let unavoidable_loss = percentage_points(&unavoidable);
        let beyond_over_images = of_excess(change_over_images, taken_off(unavoidable_loss.as_ref()));
        let drops: Vec<f64> = mine.iter().filter_map(|(_, found)| Some(found.log_likelihood_drop?.value)).collect();
        Some(Self {
            name: setting.name.clone(),
            kind: ShiftKind::of(setting, baseline),
            prior: setting.prior.clone(),
            noise: setting.noise,
            target_kl_y: world.and_then(|world| setting.prior_kl(world).ok()),
            joint_kl: world.and_then(|world| setting.joint_kl(world).ok().flatten()),
            kl_y: spread(&|_, found| found.kl_y).map(|kl| kl.cut(NATS)),
            accuracy: measured(|m| m.expected_accuracy, SHARE),
            change: Spread::of(&runs.iter().filter_map(|run| run.change).collect::<Vec<_>>())
                .map(|change| change.widened(change_over_images)),
            error: measured(|m| m.expected_accuracy.complement(), SHARE),
            unavoidable_loss,
            excess_loss: Spread::of(&beyond).map(|excess| excess.widened(beyond_over_images)),
            validation: validation(own, &mine),
            epistemic: measured(|m| m.epistemic, NATS),
            log_likelihood_drop: Spread::of(&drops),
            runs,
        })
    }
}

/// Accuracy on the validation images, of which every seed has its own.
fn validation(own: &ShiftSpec, cells: &[(&CellResult, &Shifted)]) -> Option<Spread> {
    let images = |result: &CellResult| result.cell.train_size - own.kept(result.cell.train_size);
    let count =
        |(result, found): &(&CellResult, &Shifted)| (found.validation.value * images(result) as f64).round() as usize;
    let (hits, n) = (cells.iter().map(count).sum(), cells.iter().map(|(result, _)| images(result)).sum());
    let shares: Vec<f64> = cells.iter().map(|(_, found)| found.validation.value).collect();
    Some(Spread::of(&shares)?.counted(hits, n))
}

/// How far test images alone put the ends of a mean change below and above it, percentage points: the error of their mean,
/// and what images that were not seen may add where hardly any decision differs. None of the baseline beside itself.
fn ends_over_images(changes: &[Difference]) -> [f64; 2] {
    let error = over_images(changes).unwrap_or_default();
    ends_of_unseen(changes).map(|end| 100.0 * (error + end))
}

/// The same of the excess loss, a change turned round less what is taken off. The classifier and the shifted Bayes decision
/// lose on the same images: the error of the difference is at most both in quadrature.
fn of_excess([down, up]: [f64; 2], [taken_down, taken_up]: [f64; 2]) -> [f64; 2] {
    [up.hypot(taken_down), down.hypot(taken_up)]
}

/// How far what is taken off moves the ends of a difference, the lower one first: its own upper end lowers the lower one.
fn taken_off(of: Option<&Estimate>) -> [f64; 2] {
    of.map_or([0.0; 2], |Estimate { value, interval }| [interval.high - value, value - interval.low])
}

/// The mean of fractions measured on the same images, in percentage points: their errors do not
/// cancel.
fn percentage_points(of: &[Estimate]) -> Option<Estimate> {
    let mean = |part: &dyn Fn(&Estimate) -> f64| 100.0 * of.iter().map(part).sum::<f64>() / of.len() as f64;
    let interval = Interval { low: mean(&|e| e.interval.low), high: mean(&|e| e.interval.high) };
    (!of.is_empty()).then(|| Estimate { value: mean(&|e| e.value), interval })
}

/// Fits over the runs: on KL_y over the paper's settings (class prior, pixel noise, both), as
/// figure 3f, and on the exact joint KL where it is known.
fn fits(effects: &[ShiftEffect]) -> Vec<Fit> {
    let paired = |effect: &ShiftEffect| effect.runs.clone().into_iter().filter_map(|run| Some((run, -run.change?)));
    let of_paper = |kind: ShiftKind| kind as usize <= ShiftKind::PriorAndNoise as usize;
    let by_prior = effects.iter().filter(|effect| of_paper(effect.kind)).flat_map(paired);
    let by_joint = effects.iter().filter_map(|effect| Some((effect, effect.joint_kl?)));
    let joint = by_joint.flat_map(|(effect, kl)| paired(effect).map(move |(_, drop)| [kl, drop])).collect();
    let over = ["KL_y, prior and noise shifts", "exact joint KL, prior and base shifts"];
    let on_prior = Fit::of(over[0], false, by_prior.map(|(run, drop)| [run.kl_y, drop]).collect());
    on_prior.into_iter().chain(Fit::of(over[1], true, joint)).collect()
}

impl ShiftEffects {
    /// From the finished cells.
    pub fn of(spec: &ExperimentSpec, own: &ShiftSpec, cells: &[CellResult]) -> Self {
        let lengths = own.settings.iter().map(|setting| setting.prior.len()).filter(|n| *n > 0);
        let classes = cells.first().map(|result| result.measured.classes).or(lengths.max());
        let world = classes.and_then(|classes| spec.world.settings(classes).ok()?.labels().ok());
        let group = |((architecture, train_size, labels), cells): (_, Vec<&CellResult>)| {
            let effect = |condition: usize| ShiftEffect::of(own, condition, world.as_ref(), &cells);
            let effects: Vec<ShiftEffect> = (0..own.settings.len()).filter_map(effect).collect();
            Group { architecture, train_size, labels, fits: fits(&effects), effects }
        };
        Self {
            run: spec.name.clone(),
            oracle: spec.world.oracle.clone(),
            tau: spec.world.tau.get(),
            seeds: spec.grid.seeds.clone(),
            test_images: spec.test.images,
            groups: classifiers(spec, cells, false).into_iter().map(group).collect(),
        }
    }

    /// What tells a group's figures from those of another; nothing where there is one.
    pub(super) fn suffix(&self, group: &Group) -> String {
        let Group { architecture, train_size, labels, .. } = group;
        match self.groups.len() {
            0 | 1 => String::new(),
            _ => format!("-{}-{train_size}-{}", architecture.name(), labels.name()),
        }
    }
}

impl Findings for ShiftEffects {
    /// Those of one group after those of another.
    fn figures(&self) -> Vec<Figure> {
        self.groups.iter().flat_map(|group| super::figures::of(self, group)).collect()
    }

    fn tables(&self) -> Vec<Table> {
        self.groups.iter().flat_map(|group| super::tables::of(self, group)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Cell;
    use crate::experiment::blocks::{Blocks, TestBlocks};
    use crate::experiment::hand_made::{preset, result, whole};
    use crate::experiment::output::{Analysis, CellOutput};
    use crate::measure::{Bootstrap, measure, wilson};
    use crate::units::Seed;

    fn spec() -> (ExperimentSpec, ShiftSpec) {
        let spec = preset("shift");
        let own: ShiftSpec = spec.experiment.get::<ShiftSpec>().unwrap().clone();
        (spec, own)
    }

    /// A cell that is right on `hits` of 1,000 images.
    fn cell(spec: &ExperimentSpec, condition: usize, seed: u64, hits: usize) -> CellResult {
        // The shipped spec has three of the eight classes of its world.
        let p = [0.98, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0];
        let q = [[0.85f64, 0.01, 0.01, 0.05, 0.01, 0.05, 0.01, 0.01], [0.05, 0.01, 0.01, 0.85, 0.01, 0.05, 0.01, 0.01]];
        let log_q: Vec<f64> = (0..1000).flat_map(|i| q[usize::from(i >= hits)].map(f64::ln)).collect();
        let bootstrap = Bootstrap::with_replicates(Seed(0), 200).unwrap();
        let measured = measure(&p.repeat(1000), &log_q, &[0; 1000], 8, &bootstrap).unwrap();
        let even = Interval { low: 0.9, high: 1.0 };
        let found = Shifted {
            counts: vec![1, 0, 0, 1, 0, 1, 0, 0],
            kl_y: 0.01 * condition as f64 + 0.05 * seed as f64,
            joint_kl: None,
            log_likelihood_drop: None,
            validation: Estimate { value: 0.95, interval: even },
            unavoidable_loss: (condition != 6).then_some(Estimate { value: 0.004, interval: even }),
        };
        let architecture = spec.grid.architectures[0];
        let cell = Cell { architecture, train_size: 5000, labels: Labels::Drawn, seed, condition };
        let output = Some(CellOutput::new(found));
        CellResult { output, ..result(cell, measured) }
    }

    #[test]
    fn changes_are_paired_by_seed() {
        let (spec, own) = spec();
        // Seeds differ much; the shift costs 20 of 1,000 decisions in each, 0.97 of a hit each.
        let cells: Vec<CellResult> = [(0, 950), (1, 850), (2, 900)]
            .into_iter()
            .flat_map(|(seed, hits)| [cell(&spec, 0, seed, hits), cell(&spec, 6, seed, hits - 20)])
            .collect();
        let effects = ShiftEffects::of(&spec, &own, &cells);
        let effect = &effects.groups[0].effects[6];
        let change = effect.change.unwrap();
        assert!((change.mean + 1.94).abs() < 1e-9 && change.std.unwrap() < 1e-9, "{change:?}");
        assert!((effect.accuracy.unwrap().mean - 0.8636).abs() < 1e-9);
        assert!((effect.accuracy.unwrap().std.unwrap() - 0.0485).abs() < 1e-9);
        assert!((effect.error.unwrap().mean - 0.1364).abs() < 1e-9);
        // Seeds scatter by 0.05 around 0.11, and agree on 950 of 1,000 validation images each.
        let (kl_y, validation) = (effect.kl_y.unwrap(), effect.validation.unwrap().interval.unwrap());
        assert!((kl_y.mean - 0.11).abs() < 1e-12 && kl_y.interval.unwrap().low == 0.0, "{kl_y:?}");
        assert_eq!(validation, wilson(2850, 3000));
        assert_eq!(effect.kind, ShiftKind::Noise);
        assert!(effect.unavoidable_loss.is_none() && effect.excess_loss.is_none());
        assert_eq!(effects.groups[0].effects[8].kind, ShiftKind::PriorAndNoise);
        assert_eq!(effects.groups[0].effects[10].kind, ShiftKind::Mean);
    }

    #[test]
    fn classifiers_that_agree_on_all_test_images_may_differ_on_some_that_were_not_seen() {
        let (spec, own) = spec();
        let with_blocks = |condition: usize, seed: u64| {
            let all = Blocks::of(&[0.98; 1000]);
            let (gap, nll) = (all.clone(), all.clone());
            let blocks = TestBlocks { accuracy: all.clone(), expected_accuracy: all.clone(), gap, epistemic: all, nll };
            CellResult { blocks: Some(blocks), ..cell(&spec, condition, seed, 1000) }
        };
        let cells: Vec<CellResult> =
            [0, 6, 10].into_iter().flat_map(|at| [0, 1].map(|seed| with_blocks(at, seed))).collect();
        let effects = &ShiftEffects::of(&spec, &own, &cells).groups[0].effects;
        let change = |at: usize| effects[at].change.unwrap().interval.unwrap();
        // 3 of 1,000 images, either way; the baseline is no other than itself.
        assert!((change(6).low + 0.3).abs() < 1e-9 && (change(6).high - 0.3).abs() < 1e-9, "{:?}", change(6));
        assert_eq!(change(0), Interval { low: 0.0, high: 0.0 });
        // Unavoidable are 0.4 pp [90, 100] by hand: the excess has both.
        let excess = effects[10].excess_loss.unwrap().interval.unwrap();
        assert!((excess.low + 0.4 + 99.6f64.hypot(0.3)).abs() < 1e-9, "{excess:?}");
        assert_eq!(of_excess([1.0, 3.0], [4.0, 0.0]), [5.0, 1.0]);
    }

    #[test]
    fn the_excess_has_the_ends_of_what_is_taken_off_turned_round() {
        let loss = Estimate { value: 0.4, interval: Interval { low: 0.3, high: 0.8 } };
        let excess = Spread::of(&[1.0, 1.0]).unwrap().widened(taken_off(Some(&loss))).interval.unwrap();
        assert!((excess.low - 0.6).abs() < 1e-12 && (excess.high - 1.1).abs() < 1e-12, "{excess:?}");
        assert_eq!(taken_off(None), [0.0, 0.0]);
    }

    #[test]
    fn partial_runs_have_figures_without_gaps_in_their_numbers() {
        let (spec, own) = spec();
        let sets: [&[(usize, u64)]; 4] =
            [&[], &[(3, 0)], &[(0, 0), (3, 0)], &[(0, 0), (3, 0), (3, 1), (6, 1), (11, 0)]];
        for set in sets {
            let cells: Vec<CellResult> = set.iter().map(|&(at, seed)| cell(&spec, at, seed, 900 - at)).collect();
            let effects = ShiftEffects::of(&spec, &own, &cells);
            assert_eq!((effects.figures().len(), effects.tables().len()), (5, 2));
            for figure in effects.figures() {
                assert!(figure.series.iter().all(|series| !series.points.is_empty()), "{}", figure.id);
            }
            for table in effects.tables() {
                assert_eq!(table.rows.len(), own.settings.len());
            }
            whole(Analysis::new(effects));
        }
        let of_two = ShiftEffects::of(&spec, &own, &[cell(&spec, 0, 0, 900), cell(&spec, 3, 0, 890)]);
        let effect = &of_two.groups[0].effects[3];
        // 0.97 lost, 0.4 of it whoever learns.
        assert!((effect.excess_loss.unwrap().mean - 0.57).abs() < 1e-9);
        assert!((effect.change.unwrap().mean + 0.97).abs() < 1e-9 && effect.change.unwrap().interval.is_none());
        assert!(ShiftEffects::of(&spec, &own, &[cell(&spec, 3, 0, 890)]).groups[0].effects[3].change.is_none());
    }

    #[test]
    fn shifts_of_equal_kl_stand_side_by_side_and_the_papers_numbers_at_their_settings() {
        let (spec, own) = spec();
        let cells: Vec<CellResult> = (0..own.settings.len())
            .flat_map(|at| [0, 1].map(|seed| cell(&spec, at, seed, 900 - at - seed as usize)))
            .collect();
        let figures = ShiftEffects::of(&spec, &own, &cells).figures();
        let figure = |id: &str| figures.iter().find(|figure| figure.id == id).unwrap();
        let equal = figure("shift-equal-kl");
        assert_eq!(equal.x.categories, ["0.018 nats", "0.069 nats", "0.161 nats", "0.297 nats"]);
        let places: Vec<Vec<f64>> =
            equal.series.iter().map(|series| series.points.iter().map(|point| point.x).collect()).collect();
        assert_eq!(places, vec![vec![0.0, 1.0, 2.0, 3.0]; 4], "prior, mean, wider and narrower at every level");
        let paper = &figure("shift-settings").series[1];
        assert!(paper.faint && paper.points.len() == 10 && paper.points[7].y == -20.75);
        let last = figure("shift-settings").series.last().unwrap();
        assert!(last.name.contains("unavoidable") && last.points.len() == own.settings.len() - 1);
        assert!(last.points.iter().all(|point| (point.y + 0.4).abs() < 1e-12));
        let noise = figure("shift-noise");
        assert!(noise.series.iter().any(|series| series.faint && series.points.len() == 3));
        let fit = figure("shift-fit");
        // Ten settings of the paper; the baseline, four prior and twelve base shifts; two seeds
        // each.
        assert_eq!((fit.series[0].points.len(), fit.series[2].points.len()), (20, 34));
    }
}
