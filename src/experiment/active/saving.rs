//! How many queries a strategy saves: where its learning curve comes up to what another one's reaches half way. Curves are
//! given by seed: what two strategies share cancels.

use serde::{Deserialize, Serialize};

use super::apart::not_told_apart;
use super::curves::{Spread, Stated};
use crate::experiment::blocks::Difference;
use crate::measure::Interval;

/// How many queries strategy A saves to reach strategy B at half its budget. Queries are labels
/// bought after the random start, which both have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    /// Labels half way between start and budget: the middle regime.
    pub middle: f64,
    /// What B's mean curve is there.
    pub target: f64,
    /// Labels at which A's mean curve first is as high, linear between rounds; absent where it
    /// never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<f64>,
    /// 1 − (reached − start)/(middle − start): below 0 where A needs more. Its 95 % interval is from the
    /// places at which A's curve is not told from the target, over seeds and test images. It ends at 1,
    /// the start, and at −1, the budget, beyond which A may be there as well.
    pub saved: Stated,
}

/// Labels and a figure at each, labels rising.
type Line = [(f64, f64)];

/// The smallest place at which a line is at least as high as `target`.
fn first_reaches(line: &Line, target: f64) -> Option<f64> {
    let start = line.first().filter(|(_, y)| *y >= target).map(|(x, _)| *x);
    let crossing = |pair: &[(f64, f64)]| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        (y0 < target && y1 >= target).then(|| x0 + (x1 - x0) * (target - y0) / (y1 - y0))
    };
    start.or_else(|| line.windows(2).find_map(crossing))
}

/// The height of a line at a place between its ends.
fn height(line: &Line, at: f64) -> Option<f64> {
    let between = |pair: &[(f64, f64)]| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        (x0..=x1).contains(&at).then(|| if x1 > x0 { y0 + (y1 - y0) * (at - x0) / (x1 - x0) } else { y0 })
    };
    line.windows(2).find_map(between)
}

/// The mean over seeds of curves [seed][round] at `labels`.
fn mean_curve(labels: &[f64], curves: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let mean = |round: usize| curves.iter().map(|curve| curve[round]).sum::<f64>() / curves.len().max(1) as f64;
    labels.iter().enumerate().map(|(round, &labels)| (labels, mean(round))).collect()
}

/// A saving without its interval.
struct Point {
    target: f64,
    reached: Option<f64>,
    saved: Result<f64, &'static str>,
}

/// The saving of mean curves.
fn saving(start: f64, middle: f64, [a, b]: [&Line; 2]) -> Option<Point> {
    let target = height(b, middle)?;
    if target <= b.first()?.1 {
        let saved = Err("half the budget brought the other strategy nothing");
        return Some(Point { target, reached: None, saved });
    }
    let reached = first_reaches(a, target);
    let saved = reached.map(|reached| saved_at(reached, start, middle)).ok_or("not reached within the budget");
    Some(Point { target, reached, saved })
}

/// What is saved by who is there at so many labels.
fn saved_at(reached: f64, start: f64, middle: f64) -> f64 {
    1.0 - (reached - start) / (middle - start)
}

/// The accuracy of A at a round less that of B at another, under a seed of both.
pub(super) type Less<'a> = dyn Fn(usize, [usize; 2]) -> Difference + 'a;

/// The least and the largest place at which A's curve is not told from B's at the middle, paired by seed.
fn places(labels: &[f64], seeds: usize, middle: f64, less: &Less<'_>) -> Option<[f64; 2]> {
    let before = labels.windows(2).position(|pair| (pair[0]..=pair[1]).contains(&middle))?;
    let share = (middle - labels[before]) / (labels[before + 1] - labels[before]);
    let apart = |round: usize| -> Vec<Difference> {
        let of_seed = |seed: usize| {
            let from = less(seed, [round, before]);
            let rise = from.plus(-1.0, &less(seed, [round, before + 1]));
            from.plus(-share, &rise)
        };
        (0..seeds).map(of_seed).collect()
    };
    not_told_apart(labels, &(0..labels.len()).map(apart).collect::<Vec<_>>())
}

impl Saving {
    /// Compares curves A and B by seed, [seed][round], paired, at `labels` of each round, rising; `less`
    /// are their differences. `None` without a seed or a second round.
    pub(super) fn of(labels: &[f64], a: &[Vec<f64>], b: &[Vec<f64>], less: &Less<'_>) -> Option<Self> {
        let seeds = a.len().min(b.len());
        if seeds == 0 {
            return None;
        }
        let (start, budget) = (*labels.first()?, *labels.last()?);
        let middle = (start + budget) / 2.0;
        let [a, b] = [a, b].map(|curves| mean_curve(labels, &curves[..seeds]));
        let Point { target, reached, saved } = saving(start, middle, [&a, &b])?;
        let saved = match saved {
            Err(why) => Stated::none(why),
            Ok(value) => {
                let ends = places(labels, seeds, middle, less);
                let interval = ends.map(|ends| ends.map(|place| saved_at(place, start, middle)));
                let holding = |[high, low]: [f64; 2]| Interval { low: low.min(value), high: high.max(value) };
                Stated::number(Spread { value, interval: interval.map(holding) })
            }
        };
        Some(Self { middle, target, reached, saved })
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::measure::student_mean;
    use crate::units::Seed;

    const LABELS: [f64; 5] = [100.0, 200.0, 300.0, 400.0, 500.0];

    /// The saving of curves of which no blocks are known.
    fn saving_by_seed(labels: &[f64], a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<Saving> {
        Saving::of(labels, a, b, &|seed, [one, other]| Difference::bare(a[seed][one] - b[seed][other]))
    }

    /// The saving of a single seed.
    fn saving_of(a: &[f64], b: &[f64]) -> Saving {
        saving_by_seed(&LABELS, &[a.to_vec()], &[b.to_vec()]).unwrap()
    }

    #[test]
    fn queries_saved_on_curves_of_known_shape() {
        // B rises evenly to 0.9; at 300 labels it is 0.7. A is there at 150 labels: 50 queries for
        // 200.
        let (a, b) = (vec![0.5, 0.9, 0.9, 0.9, 0.9], vec![0.5, 0.6, 0.7, 0.8, 0.9]);
        let saving = saving_of(&a, &b);
        assert_eq!((saving.middle, saving.target, saving.reached), (300.0, 0.7, Some(150.0)));
        let saved = saving.saved.number.unwrap();
        assert!((saved.value - 0.75).abs() < 1e-12 && saved.interval.is_none());
        // The other way round B needs 400 queries for A's 0.9 of half its budget: 100 % more.
        let back = saving_of(&b, &a);
        assert!((back.saved.number.unwrap().value + 1.0).abs() < 1e-12);
        // Itself: nothing is saved.
        assert_eq!(saving_of(&b, &b).saved.number.unwrap().value, 0.0);
    }

    #[test]
    fn a_dip_before_the_rise_counts_from_where_the_curve_first_is_high_enough() {
        let line: Vec<(f64, f64)> = LABELS.into_iter().zip([0.5, 0.4, 0.8, 0.6, 0.9]).collect();
        assert_eq!(first_reaches(&line, 0.6), Some(250.0));
        assert_eq!((first_reaches(&line, 0.5), first_reaches(&line, 0.95)), (Some(100.0), None));
        assert_eq!((height(&line, 350.0), height(&line, 99.0)), (Some(0.7), None));
    }

    #[test]
    fn a_saving_that_does_not_exist_says_why() {
        let (low, high) = (vec![0.5; 5], vec![0.5, 0.6, 0.7, 0.8, 0.9]);
        let never = saving_of(&low, &high);
        assert!(never.reached.is_none() && never.saved.why_not.unwrap().contains("not reached"));
        let nothing = saving_of(&high, &low);
        assert!(nothing.saved.why_not.unwrap().contains("brought the other strategy nothing"));
        assert_eq!(saving_by_seed(&LABELS, &[], &[]), None);
        assert_eq!(saving_by_seed(&[100.0], &[vec![0.5]], &[vec![0.5]]), None);
    }

    #[test]
    fn the_interval_of_a_saving_that_is_a_mean_is_students() {
        // B is the same in every seed. A reaches 0.7 within its first step, where the inverse of
        // its height is averaged. The heights are so near that the place is linear in them: its
        // interval is Student's of their image.
        let b = vec![0.5, 0.6, 0.7, 0.8, 0.9];
        let heights = [0.8999, 0.9000, 0.9001];
        let a: Vec<Vec<f64>> = heights.iter().map(|h| vec![0.5, *h, 0.9, 0.9, 0.9]).collect();
        let saved = saving_by_seed(&LABELS, &a, &[b.clone(), b.clone(), b]).unwrap().saved.number.unwrap();
        let of_height: Vec<f64> = heights.iter().map(|h| 1.0 - 100.0 * 0.2 / (h - 0.5) / 200.0).collect();
        let (mean, half) = student_mean(&of_height);
        let found = saved.interval.unwrap();
        assert!((saved.value - mean).abs() < 1e-6, "{} {mean}", saved.value);
        assert!(((found.high - found.low) / 2.0 / half - 1.0).abs() < 1e-3, "{found:?} {half}");
    }

    #[test]
    fn a_saving_ends_at_the_start_and_at_the_budget() {
        let b = vec![0.5, 0.6, 0.7, 0.8, 0.9];
        let saved = |a: [f64; 2], last: [f64; 2]| {
            let of = |seed: usize| vec![0.5, a[seed], last[seed], last[seed], last[seed]];
            let saving = saving_by_seed(&LABELS, &[of(0), of(1)], &[b.clone(), b.clone()]);
            saving.unwrap().saved.number.unwrap()
        };
        // Two seeds, t = 12.706, half of it for each unit apart: from |0.25u − 0.2| = 0.3 t/2 u in the first step
        // on, up to 0.05 + 0.15v = 0.3 t/2 (1 − v) in the second.
        let (found, half) = (saved([0.9, 0.6], [0.9; 2]), 0.3 * 6.353_102_37);
        let (first, last) = (0.2 / (0.25 + half), 1.0 + (half - 0.05) / (half + 0.15));
        let Interval { low, high } = found.interval.unwrap();
        assert!((high - 1.0 + first / 2.0).abs() < 1e-6 && (low - 1.0 + last / 2.0).abs() < 1e-6, "{found:?}");
        assert!((found.value - 0.6).abs() < 1e-12);
        // Not told from the target up to the budget.
        assert_eq!(saved([0.9, 0.6], [0.9, 0.6]).interval.unwrap().low, -1.0);
        // Nor at the start, where seeds are apart.
        let (a, b) = ([[0.4, 0.9], [0.6, 0.9]], [[0.4, 0.7], [0.6, 0.7]]);
        let both = saving_by_seed(&LABELS[..2], &a.map(|one| one.to_vec()), &b.map(|one| one.to_vec()))
            .unwrap()
            .saved
            .number
            .unwrap();
        assert_eq!(both.interval.unwrap().high, 1.0);
    }

    #[test]
    fn the_interval_of_a_saving_holds_it_although_curves_are_noisy() {
        const RUNS: u64 = 300;
        // Two strategies alike: nothing is saved. Five seeds, 21 rounds that scatter by 2 pp.
        let labels: Vec<f64> = (0..21).map(|round| 100.0 + 45.0 * f64::from(round)).collect();
        let covers = |run: &u64| {
            let mut rng = Seed(*run).rng(0);
            let mut curve = |_: usize| -> Vec<f64> {
                let mut at = |labels: &f64| {
                    let scatter: f64 = StandardNormal.sample(&mut rng);
                    0.95 - 0.35 * (labels / 100.0).powf(-0.6) + 0.02 * scatter
                };
                labels.iter().map(&mut at).collect()
            };
            let (a, b): (Vec<_>, Vec<_>) = ((0..5).map(&mut curve).collect(), (0..5).map(&mut curve).collect());
            let number = saving_by_seed(&labels, &a, &b)?.saved.number?;
            Some(number.interval?.contains(0.0))
        };
        let known: Vec<bool> = (0..RUNS).filter_map(|run| covers(&run)).collect();
        let covered = known.iter().filter(|covers| **covers).count();
        // By the jackknife over seeds 86 %.
        assert!(
            known.len() * 100 >= 90 * RUNS as usize && covered * 100 >= 94 * known.len(),
            "{covered} of {}",
            known.len()
        );
    }
}
