//! The figures and the table of a ranking, EBO's numbers beside the user's.

use super::published::{EBO_TABLE_1, Published, published};
use super::ranking::{CorpusResult, Ranking};
use super::{class_order, worlds};
use crate::bayes;
use crate::figure::{Axis, Figure, Point, Series, Style, Table, Value};
use crate::measure::Interval;
use crate::oracle::train::ModelSpec;

/// Names and colours of the series, the same in every figure.
const OURS: (&str, usize) = ("this run", 0);
const EBO: (&str, usize) = ("EBO table 1", 1);
const SOTA: (&str, usize) = ("best classifier, EBO table 1", 2);

/// What the two columns of EBO table 1 say together.
fn refuted() -> String {
    let rows: Vec<&str> = EBO_TABLE_1.iter().filter(|row| row.is_refuted()).map(|row| row.corpus).collect();
    format!(
        "On {} of EBO's {} corpora ({}) a classifier errs less than EBO's Bayes error, which is therefore none of the corpus.",
        rows.len(),
        EBO_TABLE_1.len(),
        rows.join(", ")
    )
}

/// What EBO §4.3 says about the NLL.
const CAVEAT: &str = "A Bayes error is that of the trained flow's world, and says something about the corpus only as far as the flow fits \
                      it: EBO §4.3 therefore shows the NLL beside it, finds the order exact where the NLL is below 1000 nats, and lays \
                      large ones to too small a model or too few images. Of an under-trained flow it says nothing.";

impl Ranking {
    /// Its figures, those first that answer the question.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![self.errors(), self.errors_by_nll()];
        if !self.worlds.is_empty() {
            figures.push(worlds::figure(&self.worlds, self.provenance()));
        }
        figures
    }

    /// Its tables.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.table()];
        if !self.worlds.is_empty() {
            tables.push(worlds::table(&self.worlds));
        }
        if self.tried.iter().any(|one| one.lambda.is_some()) {
            tables.push(worlds::lambdas(&self.tried));
        }
        tables.extend(class_order::table(&self.corpora));
        tables
    }

    /// EBO's rows of corpora that this run does not have.
    fn others(&self) -> impl Iterator<Item = &'static Published> {
        let ours: Vec<_> = self.corpora.iter().filter_map(|corpus| published(&corpus.name)).collect();
        EBO_TABLE_1.iter().filter(move |row| !ours.contains(row))
    }

    /// Bayes error of every corpus, ranked.
    fn errors(&self) -> Figure {
        let names = self.corpora.iter().map(|corpus| corpus.name.as_str());
        let names: Vec<&str> = names.chain(self.others().map(|row| row.corpus)).collect();
        let ours = self.corpora.iter().enumerate().map(|(i, corpus)| error_point(i as f64, corpus));
        let rows = self.corpora.iter().map(|corpus| published(&corpus.name)).chain(self.others().map(Some));
        let rows: Vec<(f64, &Published)> = rows.enumerate().filter_map(|(i, row)| Some((i as f64, row?))).collect();
        let paper =
            |value: fn(&Published) -> f64| rows.iter().map(move |(i, row)| Point::new(*i, value(row))).collect();
        Figure {
            id: "hardness-bayes-error".into(),
            title: "Dataset hardness: Bayes error of each corpus at τ = 1".into(),
            caption: format!(
                "Left the corpora of this run, easiest first, then those of EBO table 1 that are not in it. Bars: 95 % intervals of the \
                 integral over the trained world, not of the training. Pale: EBO's Bayes errors and the best classifiers' errors of its \
                 time. {} {CAVEAT}",
                refuted()
            ),
            provenance: self.provenance(),
            x: Axis::named("corpus", names),
            y: Axis::log10("error"),
            series: vec![
                series(OURS, ours.collect(), false),
                series(EBO, paper(|row| row.bayes_error), true),
                series(SOTA, paper(|row| row.sota_error), true),
            ],
            ..Figure::default()
        }
    }

    /// Bayes error against NLL.
    fn errors_by_nll(&self) -> Figure {
        let ours = self.corpora.iter().map(|corpus| Point {
            label: Some(format!("{} ({})", corpus.name, corpus.measured_on())),
            ..error_point(corpus.held_out.evaluation.bits_per_dim, corpus)
        });
        let paper = EBO_TABLE_1
            .iter()
            .map(|row| Point { label: Some(row.corpus.into()), ..Point::new(row.bits_per_dim(), row.bayes_error) });
        Figure {
            id: "hardness-nll".into(),
            title: "Bayes error at τ = 1 against NLL".into(),
            caption: format!(
                "NLL of images the flow was not trained on, in the space of 8-bit pixels. Bars: 95 % intervals of the integral. EBO gives \
                 no unit for its NLL: taken for nats per image of 32×32 pixels, as which CIFAR-10 comes to 3.49 bits/dim. It includes \
                 −log π of the class (EBO eq. 17), at most log 100 = 4.6 nats, which ours does not. {CAVEAT}"
            ),
            provenance: self.provenance(),
            x: Axis::linear("NLL").in_unit("bits/dim"),
            y: Axis::log10("Bayes error"),
            series: vec![series(OURS, ours.collect(), false), series(EBO, paper.collect(), true)],
            ..Figure::default()
        }
    }

    fn table(&self) -> Table {
        let missing = match self.troubles.as_slice() {
            [] => String::new(),
            troubles => {
                let each: Vec<String> =
                    troubles.iter().map(|trouble| format!("{} ({})", trouble.corpus, trouble.why)).collect();
                format!(" Not finished: {}.", each.join("; "))
            }
        };
        let caption = format!(
            "Easiest first; EBO's corpora that are not in this run last, without rank. Brackets: 95 % intervals, of the NLL normal and \
             of the accuracy Wilson's, both over images, of the Bayes error of its integral; π uniform, in the column of the corpus' own \
             frequencies as its training part has the classes. Whose Bayes error at these frequencies is above the error of that classifier, or beyond both \
             intervals above that of the flow's own posterior on real images, is none of the corpus: it is refuted. \"Held out\" images \
             chose the epoch, which flatters the flow a little. {CAVEAT}{missing}"
        );
        let ours = self.corpora.iter().enumerate().map(|(i, corpus)| Row {
            name: &corpus.name,
            ours: Some((i + 1, corpus)),
            paper: published(&corpus.name),
        });
        let others = self.others().map(|paper| Row { name: paper.corpus, ours: None, paper: Some(paper) });
        Table::of(ours.chain(others))
            .words("rank", |row| row.ours.map(|(rank, _)| rank))
            .words("corpus", |row| row.name)
            .words("classes", |row| row.our(|corpus| corpus.classes).or(row.paper.map(|paper| paper.classes)))
            .words("training images", |row| row.our(|corpus| corpus.images))
            .words("dimensions", |row| row.our(|corpus| corpus.shape.dims()))
            .column("NLL", "nats/image", 1, |row| row.our(nats))
            .column("NLL", "bits/dim", 3, |row| row.our(bits_per_dim))
            .words("measured on", |row| row.our(CorpusResult::measured_on))
            .column("Bayes error", "%", 4, |row| row.our(bayes_error))
            .words("method", |row| row.our(|corpus| corpus.truth.how.as_str()))
            .column("posterior's accuracy", "%", 2, |row| row.our(accuracy))
            .column("EBO: NLL", "nats/image", 0, |row| row.paper.map(|paper| paper.nll.0))
            .column("EBO: Bayes error", "%", 4, |row| row.paper.map(|paper| 100.0 * paper.bayes_error))
            .column("EBO: best classifier's error", "%", 2, |row| row.paper.map(|paper| 100.0 * paper.sota_error))
            .words("errs less than the Bayes error of", Row::refuted)
            .words("its own posterior refutes it", |row| {
                row.our(|corpus| if corpus.refutes_itself() { "yes" } else { "no" })
            })
            .column("Bayes error, own frequencies", "%", 4, |row| {
                row.ours.and_then(|(_, corpus)| Some(percent(corpus.at_frequencies.as_ref()?.bayes_error)))
            })
            .named("hardness", "Corpora by hardness", caption)
    }

    fn provenance(&self) -> Vec<(String, String)> {
        let ModelSpec { hidden, levels, steps, .. } = self.model;
        let each = |say: &dyn Fn(&CorpusResult) -> String| {
            let said = self.corpora.iter().map(|corpus| format!("{} {}", corpus.name, say(corpus)));
            said.collect::<Vec<_>>().join(", ")
        };
        let said = [
            ("run", self.name.clone()),
            ("experiment", "hardness".into()),
            ("oracle", format!("a Glow for each corpus, K = {steps}, L = {levels}, C = {hidden} unless overridden")),
            ("weights SHA-256", each(&|corpus| corpus.weights_sha256.chars().take(12).collect())),
            ("τ", "1".into()),
            ("class prior π", "uniform".into()),
            ("N", each(&|corpus| corpus.images.to_string())),
            ("test images", each(&|corpus| corpus.measured_on().replace(", ", " "))),
            ("seed", self.seed.to_string()),
            ("corpora", format!("{} of {}", self.corpora.len(), self.planned)),
            ("program", format!("bayescope {}", env!("CARGO_PKG_VERSION"))),
        ];
        said.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn series((name, colour): (&str, usize), points: Vec<Point>, faint: bool) -> Series {
    Series { name: name.into(), style: Style::Points, colour, points, faint, ..Series::default() }
}

fn error_point(x: f64, corpus: &CorpusResult) -> Point {
    let error = corpus.truth.bayes_error;
    Point::new(x, error.value).within(error.interval.0, error.interval.1)
}

/// A row of the table: a corpus of the run with its rank, of the paper, or of both.
#[derive(Clone, Copy)]
struct Row<'a> {
    name: &'a str,
    ours: Option<(usize, &'a CorpusResult)>,
    paper: Option<&'a Published>,
}

impl<'a> Row<'a> {
    /// What the run found.
    fn our<T>(self, of: impl Fn(&'a CorpusResult) -> T) -> Option<T> {
        self.ours.map(|(_, corpus)| of(corpus))
    }

    /// Which Bayes errors EBO's best classifier refutes: EBO's, and ours where it errs less than
    /// the interval.
    fn refuted(self) -> Option<&'static str> {
        let lowest = self.our(CorpusResult::least_bayes_error);
        let ours = self.paper.zip(lowest).is_some_and(|(paper, lowest)| paper.sota_error < lowest);
        match (ours, self.paper.is_some_and(Published::is_refuted)) {
            (true, true) => Some("this run, EBO"),
            (true, false) => Some("this run"),
            (false, true) => Some("EBO"),
            (false, false) => None,
        }
    }
}

fn nats(corpus: &CorpusResult) -> Value {
    let value = corpus.held_out.evaluation.nll_nats;
    corpus.nll_interval().map_or_else(|| value.into(), |Interval { low, high }| Value::within(value, low, high))
}

fn bits_per_dim(corpus: &CorpusResult) -> Value {
    let of = &corpus.held_out.evaluation;
    let (value, per_dim) = (of.bits_per_dim, of.bits_per_dim / of.nll_nats);
    let within = |Interval { low, high }| Value::within(value, low * per_dim, high * per_dim);
    corpus.nll_interval().map_or_else(|| value.into(), within)
}

fn bayes_error(corpus: &CorpusResult) -> Value {
    percent(corpus.truth.bayes_error)
}

fn percent(error: bayes::Figure) -> Value {
    Value::within(100.0 * error.value, 100.0 * error.interval.0, 100.0 * error.interval.1)
}

fn accuracy(corpus: &CorpusResult) -> Value {
    let interval = corpus.accuracy_interval();
    Value::within(100.0 * corpus.held_out.evaluation.accuracy, 100.0 * interval.low, 100.0 * interval.high)
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::ranking;
    use super::*;

    #[test]
    fn corpora_of_the_paper_stand_beside_ours_and_the_others_after_them() {
        let figure = &ranking().figures()[0];
        assert_eq!(figure.x.categories[..4], ["MNIST", "mine, own", "cifar10", "EMNIST (digits)"]);
        assert_eq!(figure.x.categories.len(), 12);
        let [ours, paper, best] = &figure.series[..] else { panic!("three series") };
        assert_eq!((ours.points.len(), paper.points.len(), best.points.len()), (3, 11, 11));
        assert_eq!((paper.points[1].x, paper.points[1].y), (2.0, 2.46e-2));
        assert!(!ours.faint && paper.faint && best.faint);
        assert_eq!((ours.points[2].y, ours.points[2].low), (0.2, Some(0.18)));
        assert!(figure.caption.contains("1000 nats") && figure.caption.contains("6 of EBO's 11 corpora"));
    }

    #[test]
    fn the_nll_is_shown_in_one_unit_for_both() {
        let figure = &ranking().figures()[1];
        assert!((figure.series[0].points[0].x - 900.0 / (1024.0 * 2f64.ln())).abs() < 1e-12);
        let cifar = figure.series[1].points.iter().find(|point| point.label.as_deref() == Some("CIFAR-10")).unwrap();
        assert!((cifar.x - 7430.0 / (3072.0 * 2f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn every_row_of_the_table_is_whole() {
        let table = &ranking().tables()[0];
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        assert_eq!(table.rows.len(), 3 + 9);
        let shown = table.shown();
        assert_eq!((shown[0][0].as_str(), shown[0][12].as_str()), ("1", "0.0107"));
        assert_eq!((shown[1][7].as_str(), shown[1][12].as_str()), ("held out, 400", "–"));
        // Ours of 0.2 is above the 0.3 % of a classifier on CIFAR-10, as EBO's is.
        assert_eq!(
            (shown[2][1].as_str(), shown[2][14].as_str(), shown[3][14].as_str()),
            ("cifar10", "this run, EBO", "–")
        );
        assert_eq!((shown[3][0].as_str(), shown[3][1].as_str()), ("–", "EMNIST (digits)"));
        assert!(table.caption.contains("gone (/gone: not there)"));
    }

    #[test]
    fn nothing_finished_still_shows_the_paper() {
        let empty = Ranking { corpora: Vec::new(), troubles: Vec::new(), ..ranking() };
        assert_eq!(empty.figures()[0].x.categories.len(), 11);
        assert_eq!(empty.tables()[0].rows.len(), 11);
        assert!(empty.csv().lines().count() == 1);
    }
}
