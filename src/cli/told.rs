//! What `bayes` and `sampling` say alike of Bayes errors and of class hardness.

use crate::bayes::{Agreement, ClassHardness, Figure, RankingAt};

/// A figure and its 95 % interval.
pub(super) fn interval(figure: &Figure) -> String {
    within(figure.value, figure.interval)
}

/// A number and its 95 % interval.
pub(super) fn within(value: f64, (low, high): (f64, f64)) -> String {
    format!("{value:.9} (95 %: {low:.9} to {high:.9})")
}

/// The classes, hardest first.
pub(super) fn tell_one_vs_rest(ranked: &[ClassHardness], names: &[String]) {
    println!("one class against the rest (½ the class, ½ the others), hardest first:");
    for hardness in ranked {
        println!("  {:16} {}", names[hardness.class], interval(&hardness.one_vs_rest));
    }
}

/// Heads the pairs, whose weights are others than those of a class and the rest.
pub(super) fn tell_pairs() {
    println!("hardest pairs (two classes alone, π in proportion):");
}

/// Their order at several τ.
pub(super) fn tell_over_tau(rankings: &[RankingAt], agreement: Option<Agreement>, names: &[String]) {
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
