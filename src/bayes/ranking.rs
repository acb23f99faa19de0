//! The classes in order of hardness at several τ: EBO §4.3 says that it does not change.

use serde::{Deserialize, Serialize};

use super::classes::GaussianClasses;
use super::compute::Spec;
use super::hardness::{ClassHardness, HardnessNews, one_vs_rest};
use crate::error::Result;
use crate::events::Events;
use crate::units::{ClassId, Tau};

/// Temperatures at which classes are ranked.
pub const RANKED_AT: [f64; 3] = [0.7, 1.0, 1.5];
/// Relative half width that is enough for a ranking.
const ENOUGH: f64 = 1e-2;

/// The classes at one τ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassRanking {
    /// Base temperature τ.
    pub tau: f64,
    /// Hardest first.
    pub classes: Vec<ClassHardness>,
}

/// Ranks the classes at one τ; each is reported when known.
///
/// # Errors
/// As [`one_vs_rest`].
pub fn rank_classes(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<HardnessNews>,
) -> Result<ClassRanking> {
    let spec = Spec { tolerance: spec.tolerance.max(ENOUGH), ..*spec };
    let mut all = one_vs_rest(classes, tau, &spec, events)?;
    all.sort_by(|a, b| b.one_vs_rest.value.total_cmp(&a.one_vs_rest.value));
    Ok(ClassRanking { tau: tau.get(), classes: all })
}

/// Returns whether the interval of one class lies wholly above that of another.
fn above(a: &ClassHardness, b: &ClassHardness) -> bool {
    a.one_vs_rest.interval.0 > b.one_vs_rest.interval.1
}

impl ClassRanking {
    /// The classes, hardest first.
    pub fn order(&self) -> impl Iterator<Item = ClassId> {
        self.classes.iter().map(|one| one.class)
    }

    /// Of each class but the last: whether its interval lies wholly above that of the next.
    pub fn apart(&self) -> impl Iterator<Item = bool> {
        self.classes.windows(2).map(|pair| above(&pair[0], &pair[1]))
    }

    /// Two classes, the first harder here and easier there, beyond their intervals.
    fn reversed(&self, other: &Self) -> Option<(ClassId, ClassId)> {
        let there = |class: ClassId| other.classes.iter().find(|one| one.class == class);
        let both: Vec<_> = self.classes.iter().filter_map(|here| Some((here, there(here.class)?))).collect();
        both.iter().enumerate().find_map(|(i, (harder, easier_there))| {
            let turned = |(easier, harder_there): &&(&ClassHardness, &ClassHardness)| {
                above(harder, easier) && above(harder_there, easier_there)
            };
            both[i + 1..].iter().find(turned).map(|(easier, _)| (harder.class, easier.class))
        })
    }
}

/// Whether the order of the classes is the same at several τ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// It is, and at every τ each class is told apart from the next.
    Same,
    /// No two classes are told apart in one order at one τ and in the other at another; where their
    /// intervals overlap the order is not known.
    Blurred,
    /// It changes.
    Changes {
        /// A class that is harder at one τ…
        first: ClassId,
        /// …than this one,
        second: ClassId,
        /// namely here,
        at: f64,
        /// and easier here; told apart by their intervals both times.
        turned_at: f64,
    },
}

/// The rankings at several τ, and whether they agree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankingsOverTau {
    /// One for each τ.
    pub rankings: Vec<ClassRanking>,
    /// Whether the order is the same; unknown below two τ or two classes.
    pub agreement: Option<Agreement>,
}

impl RankingsOverTau {
    /// Takes the ranking at a further τ in.
    pub fn add(&mut self, ranking: ClassRanking) {
        self.rankings.push(ranking);
        // Fewer than two classes have no order.
        let ordered = self.rankings.len() > 1 && self.rankings.iter().all(|ranking| ranking.classes.len() > 1);
        self.agreement = ordered.then(|| agreement(&self.rankings));
    }
}

fn agreement(rankings: &[ClassRanking]) -> Agreement {
    let apart = rankings.iter().all(|ranking| ranking.apart().all(|apart| apart));
    if apart && rankings.windows(2).all(|pair| pair[0].order().eq(pair[1].order())) {
        return Agreement::Same;
    }
    for (i, one) in rankings.iter().enumerate() {
        for other in &rankings[i + 1..] {
            if let Some((first, second)) = one.reversed(other) {
                return Agreement::Changes { first, second, at: one.tau, turned_at: other.tau };
            }
        }
    }
    Agreement::Blurred
}

impl Agreement {
    /// The same in words; `name` names a class.
    pub fn words<'a>(&self, name: impl Fn(ClassId) -> &'a str) -> String {
        match *self {
            Self::Same => "The order of the classes is the same at each τ, as EBO §4.3 says.".into(),
            Self::Blurred => {
                "No two classes are told apart by their intervals in one order at one τ and in the other at another: nothing here \
                 contradicts EBO §4.3, which says that the order stays the same. Where intervals overlap the order is not known."
                    .into()
            }
            Self::Changes { first, second, at, turned_at } => format!(
                "The order of the classes changes over τ, against EBO §4.3: '{}' is harder than '{}' at τ = {at} and easier at \
                 τ = {turned_at}, told apart by their 95 % intervals both times.",
                name(first),
                name(second)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::Figure;

    /// Classes 0, 1, 2 with these errors, each with the same half width.
    fn ranking(tau: f64, errors: [f64; 3], half: f64) -> ClassRanking {
        let one = |(class, value)| ClassHardness { class, one_vs_rest: Figure::new(value, half, 0.5) };
        let mut classes: Vec<_> = errors.into_iter().enumerate().map(one).collect();
        classes.sort_by(|a, b| b.one_vs_rest.value.total_cmp(&a.one_vs_rest.value));
        ClassRanking { tau, classes }
    }

    fn over(rankings: [ClassRanking; 2]) -> Option<Agreement> {
        let mut all = RankingsOverTau::default();
        for ranking in rankings {
            all.add(ranking);
        }
        all.agreement
    }

    #[test]
    fn an_order_changes_only_where_intervals_tell_classes_apart() {
        let first = ranking(0.7, [0.1, 0.2, 0.3], 0.01);
        assert!(first.order().eq([2, 1, 0]) && first.apart().all(|apart| apart));
        let same = ranking(1.0, [0.2, 0.3, 0.4], 0.01);
        assert_eq!(over([first.clone(), same]), Some(Agreement::Same));
        // The same estimates, of which two are not told apart, say less.
        assert_eq!(over([first.clone(), ranking(1.0, [0.295, 0.3, 0.4], 0.01)]), Some(Agreement::Blurred));
        // 0 and 1 change places within their intervals.
        let blurred = ranking(1.0, [0.301, 0.3, 0.4], 0.01);
        assert_eq!(over([first.clone(), blurred]), Some(Agreement::Blurred));
        let turned = over([first, ranking(1.0, [0.3, 0.2, 0.25], 0.01)]).unwrap();
        assert_eq!(turned, Agreement::Changes { first: 2, second: 0, at: 0.7, turned_at: 1.0 });
        let words = turned.words(|class| ["a", "b", "c"][class]);
        assert!(words.contains("'c' is harder than 'a' at τ = 0.7 and easier at τ = 1"), "{words}");
    }

    #[test]
    fn one_temperature_says_nothing_of_an_order_that_changes() {
        let mut all = RankingsOverTau::default();
        all.add(ranking(0.7, [0.1, 0.2, 0.3], 0.01));
        assert_eq!(all.agreement, None);
    }
}
