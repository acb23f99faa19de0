//! What several flows of a corpus say: which λ was chosen, and how far worlds of one corpus differ.

use serde::{Deserialize, Serialize};

use super::ranking::CorpusResult;
use crate::experiment::repeats::distinct;
use crate::figure::{Axis, Figure, Point, Series, Style, Table, Value};
use crate::measure::{Interval, student_mean};

/// A flow that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The corpus.
    pub corpus: String,
    /// Number of the world, from 0.
    pub world: usize,
    /// λ, where several are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// NLL of the images that were held out of training, nats: what λ is chosen by.
    pub held_out_nll: f64,
    /// Bayes error of the world at τ = 1 and uniform π.
    pub bayes_error: f64,
    /// Whether its λ was chosen.
    pub chosen: bool,
}

/// The worlds of a corpus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worlds {
    /// The corpus.
    pub corpus: String,
    /// Bayes errors of its worlds, in order; that of the corpus as it is first.
    pub bayes_errors: Vec<f64>,
    /// Whether the others were trained on images drawn with replacement.
    pub bootstrap: bool,
    /// Mean Bayes error: of the worlds drawn with replacement where there are some, otherwise of all.
    pub mean: f64,
    /// Where the Bayes error of one more such world lies with 95 % (Student), cut to what an error can be;
    /// absent below two of these worlds.
    pub another: Option<Interval>,
}

impl Tried {
    /// All finished flows, those chosen marked: of each corpus and world the one of least held-out NLL.
    pub fn all(results: &[CorpusResult]) -> Vec<Self> {
        let better = |one: &CorpusResult, than: &CorpusResult| one.held_out_nll() < than.held_out_nll();
        let same = |a: &CorpusResult, b: &CorpusResult| a.name == b.name && a.variant.world == b.variant.world;
        let first = |a: &CorpusResult, b: &CorpusResult| a.held_out_nll() == b.held_out_nll() && a.id < b.id;
        let beaten = |one: &CorpusResult| {
            results.iter().any(|other| same(one, other) && (better(other, one) || first(other, one)))
        };
        let tried = |one: &CorpusResult| Self {
            corpus: one.name.clone(),
            world: one.variant.world,
            lambda: one.variant.lambda,
            held_out_nll: one.held_out_nll(),
            bayes_error: one.truth.bayes_error.value,
            chosen: !beaten(one),
        };
        results.iter().map(tried).collect()
    }
}

impl Worlds {
    /// The worlds of each corpus of which two or more are finished, from the chosen flows.
    pub fn all(tried: &[Tried], bootstrap: bool) -> Vec<Self> {
        let names = distinct(tried.iter().map(|one| one.corpus.as_str()));
        let of = |name: &str| {
            let mut chosen: Vec<&Tried> = tried.iter().filter(|one| one.corpus == name && one.chosen).collect();
            chosen.sort_by_key(|one| one.world);
            let errors: Vec<f64> = chosen.iter().map(|one| one.bayes_error).collect();
            let drawn = chosen.iter().filter(|one| !bootstrap || one.world > 0);
            let drawn: Vec<f64> = drawn.map(|one| one.bayes_error).collect();
            // Of a corpus whose own world is not finished nothing can be said "as it is".
            let begun = chosen.first().is_some_and(|one| one.world == 0);
            (begun && errors.len() > 1 && !drawn.is_empty()).then(|| Self::of(name, errors, &drawn, bootstrap))
        };
        names.into_iter().filter_map(of).collect()
    }

    fn of(corpus: &str, bayes_errors: Vec<f64>, drawn: &[f64], bootstrap: bool) -> Self {
        let (mean, half) = student_mean(drawn);
        // The half width t·s/√m of a mean of m becomes that of one more world, t·s·√(1 + 1/m).
        let half = half * (drawn.len() as f64 + 1.0).sqrt();
        let another = Interval { low: (mean - half).max(0.0), high: (mean + half).min(1.0) };
        let another = half.is_finite().then_some(another);
        Self { corpus: corpus.to_owned(), bayes_errors, bootstrap, mean, another }
    }
}

/// The Bayes errors of all worlds of each corpus.
pub(super) fn figure(worlds: &[Worlds], provenance: Vec<(String, String)>) -> Figure {
    let all =
        worlds.iter().enumerate().flat_map(|(i, one)| one.bayes_errors.iter().map(move |&e| Point::new(i as f64, e)));
    let mean = |(i, one): (usize, &Worlds)| {
        let point = Point::new(i as f64, one.mean);
        match one.another {
            Some(Interval { low, high }) => point.within(low, high),
            None => point,
        }
    };
    let series = |name: &str, colour, points: Vec<Point>, dashed| {
        let (name, style) = (name.to_owned(), Style::Points);
        Series { name, style, colour, points, dashed, ..Series::default() }
    };
    Figure {
        id: "hardness-worlds".into(),
        title: "Bayes errors of several worlds of each corpus, τ = 1".into(),
        caption: "Every point is a flow of the corpus with another seed, and with images drawn with replacement where the run says so. Bars: where \
                  one more such world lies with 95 % (Student). Corpora whose bars overlap are not told apart by one flow each."
            .into(),
        provenance,
        x: Axis::named("corpus", worlds.iter().map(|one| one.corpus.as_str())),
        y: Axis::linear("Bayes error"),
        series: vec![
            series("one world", 0, all.collect(), true),
            series("mean, and one more world", 1, worlds.iter().enumerate().map(mean).collect(), false),
        ],
        ..Figure::default()
    }
}

/// How far the worlds of each corpus differ.
pub(super) fn table(worlds: &[Worlds]) -> Table {
    let caption = "Bayes errors at τ = 1 and uniform π over worlds of one corpus: another seed each, and images drawn with replacement where it says \
                   so. 'One more world': where the Bayes error of a further such world lies with 95 % (Student); with replacement, over those worlds.";
    let percent = |of: f64| 100.0 * of;
    Table::of(worlds)
        .words("corpus", |one| one.corpus.as_str())
        .words("worlds", |one| one.bayes_errors.len())
        .words("images drawn with replacement", |one| if one.bootstrap { "yes" } else { "no" })
        .column("as it is", "%", 4, |one| one.bayes_errors.first().copied().map(percent))
        .column("mean, one more world", "%", 4, |one| match one.another {
            Some(Interval { low, high }) => Value::within(percent(one.mean), percent(low), percent(high)),
            None => Value::from(percent(one.mean)),
        })
        .named("hardness-world-to-world", "World to world", caption)
}

/// Every λ, and which was chosen.
pub(super) fn lambdas(tried: &[Tried]) -> Table {
    let caption = "λ weighs the classification loss beside the NLL. Of each world the flow of least NLL on images held out of training is kept \
                   (EBO §4.1 takes the least NLL on test images). The Bayes error is that of each flow's own world at τ = 1.";
    Table::of(tried)
        .words("corpus", |one| one.corpus.as_str())
        .words("world", |one| one.world + 1)
        .column("λ", "", 3, |one| one.lambda)
        .column("held-out NLL", "nats/image", 2, |one| one.held_out_nll)
        .column("Bayes error", "%", 4, |one| 100.0 * one.bayes_error)
        .words("chosen", |one| if one.chosen { "yes" } else { "" })
        .named("hardness-lambda", "Which λ", caption)
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::result;
    use super::super::repeat::Variant;
    use super::*;
    use crate::data::Split;

    fn flow(name: &str, world: usize, lambda: f64, nll: f64, error: f64) -> CorpusResult {
        let mut one = result(name, error, Split::Test);
        one.id = format!("{name} {world} {lambda}");
        (one.variant, one.chosen_by) = (Variant { lambda: Some(lambda), world }, Some(nll));
        one
    }

    #[test]
    fn the_least_held_out_nll_is_chosen_in_each_world_and_worlds_have_a_spread() {
        let all = [
            flow("a", 0, 0.1, 700.0, 0.01),
            flow("a", 0, 1.0, 690.0, 0.02),
            flow("a", 1, 0.1, 680.0, 0.04),
            flow("a", 1, 1.0, 690.0, 0.9),
            flow("a", 2, 1.0, 700.0, 0.06),
            flow("a", 2, 0.1, 700.0, 0.08),
            flow("b", 0, 0.1, 1.0, 0.5),
        ];
        let tried = Tried::all(&all);
        let chosen: Vec<f64> = tried.iter().filter(|one| one.chosen).map(|one| one.bayes_error).collect();
        // Of equal NLL one is chosen.
        assert_eq!(chosen, [0.02, 0.04, 0.08, 0.5]);
        let [worlds] = &Worlds::all(&tried, false)[..] else { panic!("b has one world") };
        assert_eq!(worlds.bayes_errors, [0.02, 0.04, 0.08]);
        assert!((worlds.mean - 0.14 / 3.0).abs() < 1e-12);
        // s = √(28/3)/100, t of two degrees 4.302653, √(4/3).
        let half = 4.302_652_73 * (28.0f64 / 3.0).sqrt() / 100.0 * (4.0f64 / 3.0).sqrt();
        let another = worlds.another.unwrap();
        assert!((another.high - (worlds.mean + half)).abs() < 1e-8 && another.low == 0.0, "{another:?} {half}");
        // With replacement the first world is no draw.
        let drawn = &Worlds::all(&tried, true)[0];
        assert!((drawn.mean - 0.06).abs() < 1e-12 && drawn.bayes_errors.len() == 3);
        assert_eq!((table(std::slice::from_ref(worlds)).rows.len(), lambdas(&tried).rows.len()), (1, 7));
        let figure = figure(std::slice::from_ref(worlds), Vec::new());
        assert_eq!((figure.series[0].points.len(), figure.series[1].points.len()), (3, 1));
    }
}
