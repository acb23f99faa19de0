//! What a strategy bought after the random start: labels of which classes, and how ambiguous their images are.

use serde::{Deserialize, Serialize};

use super::curves::Spread;
use super::{Purchase, Round};

/// Ends of the kinds of ambiguity, as an image's own Bayes error 1 − max p(y|x).
const ENDS: [f64; 3] = [0.01, 0.1, 0.3];

/// The kinds of ambiguity, for people.
pub(super) const KINDS: [&str; 4] = ["below 1 %", "1 to 10 %", "10 to 30 %", "30 % and more"];

/// What a strategy bought after the start, means over its finished seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Basket {
    /// Every class, in order.
    pub classes: Vec<ClassBought>,
    /// Entropy of the shares of the classes by ln K: 1 where all are bought as often.
    pub balance: Spread,
    /// Shares of the labels whose image's own Bayes error is below 1 %, 10 %, 30 %, and above.
    pub ambiguity: [Spread; 4],
    /// Mean of 1 − max p(y|x).
    pub own_error: Spread,
}

/// The labels of a class that were bought.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassBought {
    /// Their share in all labels.
    pub share: Spread,
    /// Mean of 1 − max p(y|x) of their images; absent where a seed has none.
    pub own_error: Option<Spread>,
}

/// The labels of one seed: class, and the image's own Bayes error.
type Labels = Vec<(usize, f64)>;

impl Basket {
    /// Of the rounds of each seed, with K classes; `None` where nothing was bought after the start, or
    /// files of older versions do not say how ambiguous it was.
    pub(super) fn of<'a>(seeds: impl Iterator<Item = &'a [Round]>, classes: usize) -> Option<Self> {
        let labels = |rounds: &[Round]| -> Option<Labels> {
            let later = rounds.iter().skip(1).map(|round| &round.bought);
            let all: Option<Vec<Labels>> = later.map(labels).collect();
            all.map(|all| all.concat()).filter(|all| !all.is_empty())
        };
        let seeds: Vec<Labels> = seeds.map(labels).collect::<Option<_>>()?;
        let over = |of: &dyn Fn(&Labels) -> f64| Spread::of(&seeds.iter().map(of).collect::<Vec<_>>());
        let share = |which: &dyn Fn(&(usize, f64)) -> bool| {
            let count = |labels: &Labels| (labels.iter().filter(|label| which(label)).count(), labels.len());
            Spread::counted(&seeds.iter().map(count).collect::<Vec<_>>())
        };
        let kind = |kind: usize| share(&|(_, error)| ENDS.iter().filter(|end| error >= end).count() == kind);
        let of_class = |class: usize| {
            let own_error: Option<Vec<f64>> = seeds.iter().map(|labels| mean_of(labels, class)).collect();
            let own_error = own_error.and_then(|errors| Spread::of(&errors)).map(|spread| spread.within([0.0, 1.0]));
            Some(ClassBought { share: share(&|(of, _)| *of == class)?, own_error })
        };
        Some(Self {
            classes: (0..classes).map(of_class).collect::<Option<_>>()?,
            balance: over(&|labels| balance(labels, classes))?.within([0.0, 1.0]),
            ambiguity: [kind(0)?, kind(1)?, kind(2)?, kind(3)?],
            own_error: over(&|labels| labels.iter().map(|(_, error)| error).sum::<f64>() / labels.len() as f64)?
                .within([0.0, 1.0]),
        })
    }
}

fn labels(bought: &Purchase) -> Option<Labels> {
    let both = bought.drawn.iter().zip(&bought.certainty);
    (bought.certainty.len() == bought.drawn.len())
        .then(|| both.map(|(class, certainty)| (*class, 1.0 - certainty)).collect())
}

/// Mean own Bayes error of the labels of a class.
fn mean_of(labels: &Labels, class: usize) -> Option<f64> {
    let of: Vec<f64> = labels.iter().filter(|(of, _)| *of == class).map(|(_, error)| *error).collect();
    (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
}

/// Entropy of the shares of the classes by ln K.
fn balance(labels: &Labels, classes: usize) -> f64 {
    let share = |class| labels.iter().filter(|(of, _)| *of == class).count() as f64 / labels.len() as f64;
    let term = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    (0..classes).map(|class| term(share(class))).sum::<f64>() / (classes.max(2) as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::hand_made::{measured, near};
    use crate::measure::wilson;

    fn round(drawn: &[usize], certainty: &[f64]) -> Round {
        let bought = Purchase {
            images: (0..drawn.len()).collect(),
            drawn: drawn.to_vec(),
            certainty: certainty.to_vec(),
            aleatoric: 0.0,
            epistemic: None,
            entropy: None,
            noise: 0.0,
            tried: Vec::new(),
        };
        Round { labels: 0, bought, measured: measured(0.1, 0.1, 0.0), blocks: None }
    }

    #[test]
    fn a_basket_counts_what_came_after_the_start() {
        let start = round(&[2, 2, 2], &[0.4; 3]);
        let first = [start.clone(), round(&[0, 1], &[0.995, 0.95]), round(&[0, 0], &[0.9, 0.7])];
        let second = [start, round(&[0, 1], &[0.5, 0.5]), round(&[1, 1], &[1.0, 0.75])];
        let basket = Basket::of([&first[..], &second].into_iter(), 3).unwrap();
        let shares: Vec<f64> = basket.classes.iter().map(|class| class.share.value).collect();
        assert!(near(shares[0], 0.5) && near(shares[1], 0.5) && near(shares[2], 0.0));
        // 1 − 0.9 is at the lower end of its kind, but for rounding: 0.09999….
        let kinds = basket.ambiguity.map(|kind| kind.value);
        assert!(near(kinds.iter().sum(), 1.0) && near(kinds[0], 0.25) && near(kinds[3], 0.375), "{kinds:?}");
        assert!(near(basket.own_error.value, ((0.005 + 0.05 + 0.1 + 0.3) + (0.5 + 0.5 + 0.0 + 0.25)) / 8.0));
        // Three of one and one of another under both seeds.
        let entropy = -(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln()) / 3f64.ln();
        assert!(near(basket.balance.value, entropy) && basket.balance.interval.is_some());
        assert!(near(basket.classes[1].own_error.unwrap().value, (0.05 + 0.75 / 3.0) / 2.0));
        assert_eq!(basket.classes[2].own_error, None);
        // Both seeds agree that no label of four is of the last class, which of eight labels may well be.
        let none = basket.classes[2].share.interval.unwrap();
        assert_eq!(none, wilson(0, 8));
        // Older files do not say it, and a start alone buys nothing after it.
        assert_eq!(Basket::of([&[round(&[0], &[]), round(&[1], &[])][..]].into_iter(), 3), None);
        assert_eq!(Basket::of([&first[..1]].into_iter(), 3), None);
    }
}
