//! What `bayes` and `sampling` say alike of Bayes errors and of class hardness.

use serde::Serialize;

use crate::bayes::{Agreement, ClassHardness, ClassRanking, Figure};

/// A figure and its 95 % interval.
pub(super) fn interval(figure: &Figure) -> String {
    format!("{:.9} (95 %: {:.9} to {:.9})", figure.value, figure.interval.0, figure.interval.1)
}

/// How often x is drawn from the classes of the problems that `hardness` reports, in words: of two classes of other priors
/// than ½ the figures of class and pair differ.
#[derive(Serialize)]
pub(super) struct Weights {
    one_vs_rest: &'static str,
    pairwise: &'static str,
}

pub(super) const WEIGHTS: Weights = Weights {
    one_vs_rest: "1/2 the class, 1/2 the others in proportion to their priors",
    pairwise: "the two classes in proportion to their priors",
};

/// The classes at one τ, hardest first.
#[derive(Serialize)]
pub(super) struct RankingAt {
    tau: f64,
    order: Vec<usize>,
    /// Of each class but the last: whether its interval lies wholly above that of the next.
    apart: Vec<bool>,
}

impl RankingAt {
    pub(super) fn new(ranking: &ClassRanking) -> Self {
        Self { tau: ranking.tau, order: ranking.order().collect(), apart: ranking.apart().collect() }
    }
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
