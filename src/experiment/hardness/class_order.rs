//! The classes of a corpus in order of hardness at several τ: EBO §4.3 says that the order does not change.

use serde::{Deserialize, Serialize};

use super::ranking::CorpusResult;
use crate::bayes::{Agreement, GaussianClasses, HardnessNews, RANKED_AT, RankingsOverTau, Spec, rank_classes};
use crate::error::Result;
use crate::events::Events;
use crate::figure::Table;
use crate::oracle::world::{Settings, World};
use crate::units::{Seed, Tau};

/// Classes that are ranked, at most: beyond, the integrals take longer than they tell.
const MOST: usize = 20;

/// The order of the classes of a trained world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassOrder {
    /// At each τ.
    pub at: Vec<OrderAt>,
    /// Whether the order is the same, in words.
    pub said: String,
    /// Whether it changes beyond the intervals.
    pub changes: bool,
}

/// The order at one τ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderAt {
    /// Base temperature τ.
    pub tau: f64,
    /// The classes, hardest first, between them > where the interval of a class lies wholly above that of the next, else ≈.
    pub classes: String,
}

impl ClassOrder {
    /// Ranks the classes of a world by their one-vs-rest Bayes error. `None` of two classes, which are equally hard,
    /// of more than [`MOST`], and where classes share no map.
    ///
    /// # Errors
    /// As [`rank_classes`].
    pub fn of(
        world: &World,
        settings: &Settings,
        seed: Seed,
        events: &mut dyn Events<HardnessNews>,
    ) -> Result<Option<Self>> {
        let names = world.class_names();
        let Some(base) = world.flow().shared_base().filter(|_| (3..=MOST).contains(&names.len())) else {
            return Ok(None);
        };
        let classes = GaussianClasses::of_world(base, settings)?;
        let (spec, mut found) = (Spec { seed, ..Spec::default() }, RankingsOverTau::default());
        for tau in RANKED_AT {
            found.add(rank_classes(&classes, Tau::new(tau)?, &spec, events)?);
        }
        Ok(Some(Self::told(&found, names)))
    }

    fn told(found: &RankingsOverTau, names: &[String]) -> Self {
        let name = |class: usize| names.get(class).map_or("?", String::as_str);
        let at = found.rankings.iter().map(|ranking| {
            let mut signs = ranking.apart().map(|apart| if apart { " > " } else { " ≈ " });
            let classes = ranking.order().map(|class| name(class).to_owned() + signs.next().unwrap_or_default());
            OrderAt { tau: ranking.tau, classes: classes.collect() }
        });
        let said = found.agreement.map_or_else(String::new, |agreement| agreement.words(name));
        let changes = matches!(found.agreement, Some(Agreement::Changes { .. }));
        Self { at: at.collect(), said, changes }
    }
}

/// The order of the classes of each corpus at each τ; none where no corpus has one.
pub(super) fn table(corpora: &[CorpusResult]) -> Option<Table> {
    let ordered = corpora.iter().filter_map(|corpus| Some((corpus.name.as_str(), corpus.class_order.as_ref()?)));
    let rows: Vec<(&str, &ClassOrder, &OrderAt)> =
        ordered.flat_map(|(name, order)| order.at.iter().map(move |at| (name, order, at))).collect();
    let said =
        corpora.iter().filter_map(|corpus| Some(format!(" {}: {}", corpus.name, corpus.class_order.as_ref()?.said)));
    let caption = format!(
        "Classes of the trained world by their one-vs-rest Bayes error, π uniform, hardest first; ≈ where their 95 % intervals do not tell two \
         neighbours apart. EBO §4.3 says that τ does not change the order.{}",
        said.collect::<String>()
    );
    (!rows.is_empty()).then(|| {
        Table::of(rows)
            .words("corpus", |(name, ..)| name)
            .column("τ", "", 2, |(.., at)| at.tau)
            .words("hardest first", |(.., at)| at.classes.as_str())
            .words("changes over τ", |(_, order, _)| if order.changes { "yes" } else { "no" })
            .named("hardness-classes", "Classes over τ", caption)
    })
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::result;
    use super::*;
    use crate::bayes::{ClassHardness, ClassRanking, Figure};
    use crate::data::Split;

    #[test]
    fn an_order_is_told_with_what_intervals_do_not_tell_apart() {
        let ranking = |tau, errors: [(usize, f64); 3]| {
            let one = |(class, value)| ClassHardness { class, one_vs_rest: Figure::new(value, 0.01, 0.5) };
            ClassRanking { tau, classes: errors.map(one).into() }
        };
        let mut found = RankingsOverTau::default();
        found.add(ranking(0.7, [(2, 0.3), (0, 0.2), (1, 0.195)]));
        found.add(ranking(1.5, [(0, 0.4), (2, 0.35), (1, 0.2)]));
        let names = ["a", "b", "c"].map(str::to_owned);
        let order = ClassOrder::told(&found, &names);
        assert_eq!(order.at.iter().map(|at| at.classes.as_str()).collect::<Vec<_>>(), ["c > a ≈ b", "a > c > b"]);
        assert!(order.changes && order.said.contains("'c' is harder than 'a' at τ = 0.7"), "{}", order.said);
        let mut corpus = result("mine", 0.1, Split::Test);
        assert!(table(std::slice::from_ref(&corpus)).is_none());
        corpus.class_order = Some(order);
        let table = table(&[corpus]).unwrap();
        assert!(table.rows.len() == 2 && table.caption.contains("mine: The order of the classes changes"));
    }
}
