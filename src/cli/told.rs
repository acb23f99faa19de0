//! What `bayes` and `sampling` say alike of Bayes errors and of class hardness.

use crate::bayes::{Agreement, ClassHardness, Figure, HardnessReport, RankingAt};

/// Pairs that are told.
const MOST_PAIRS: usize = 10;

/// A figure and its 95 % interval.
pub(super) fn interval(figure: &Figure) -> String {
    let (value, (low, high)) = (figure.value, figure.interval);
    format!("{value:.9} (95 %: {low:.9} to {high:.9})")
}

/// Class hardness: the classes, hardest first, their order at several τ, and the hardest pairs.
pub(super) fn tell_hardness(report: &HardnessReport, names: &[String]) {
    tell_one_vs_rest(&report.one_vs_rest, names);
    tell_over_tau(&report.over_tau, report.agreement, names);
    // Their weights are others than those of a class and the rest.
    println!("hardest pairs (two classes alone, π in proportion):");
    for (i, j, error, interval) in hardest_pairs(report, names.len()) {
        let within = interval.map_or(String::new(), |(low, high)| format!(" (95 %: {low:.6e} to {high:.6e})"));
        println!("  {:33} {error:.6e}{within}", format!("{} – {}", names[i], names[j]));
    }
}

/// Two classes, their Bayes error, and its 95 % interval where it has one.
type Pair = (usize, usize, f64, Option<(f64, f64)>);

/// The pairs of K classes with the largest Bayes errors, largest first. Where errors have intervals, a pair without one is of a
/// class that does not occur, and left out.
fn hardest_pairs(report: &HardnessReport, classes: usize) -> Vec<Pair> {
    let pair = |i: usize, j: usize| -> Option<Pair> {
        let error = report.pairwise[i][j]?;
        match report.pairwise_intervals.get(i) {
            Some(row) => Some((i, j, error, Some(row[j]?))),
            None => Some((i, j, error, None)),
        }
    };
    let mut pairs: Vec<Pair> = (0..classes).flat_map(|j| (0..j).filter_map(move |i| pair(i, j))).collect();
    pairs.sort_by(|a, b| b.2.total_cmp(&a.2));
    pairs.truncate(MOST_PAIRS);
    pairs
}

/// The classes, hardest first.
fn tell_one_vs_rest(ranked: &[ClassHardness], names: &[String]) {
    println!("one class against the rest (½ the class, ½ the others), hardest first:");
    for hardness in ranked {
        println!("  {:16} {}", names[hardness.class], interval(&hardness.one_vs_rest));
    }
}

/// Their order at several τ.
fn tell_over_tau(rankings: &[RankingAt], agreement: Option<Agreement>, names: &[String]) {
    println!("ranking over τ, hardest first (≈: not told apart by their intervals):");
    for RankingAt { tau, order, apart } in rankings {
        let mut text = String::new();
        for (place, &class) in order.iter().enumerate() {
            let sign = apart.get(place).map_or("", |apart| if *apart { " > " } else { " ≈ " });
            text += &format!("{}{sign}", names[class]);
        }
        println!("  τ = {tau:<5} {text}");
    }
    if let Some(agreement) = agreement {
        println!("{}", agreement.words(|class| names[class].as_str()));
    }
}
