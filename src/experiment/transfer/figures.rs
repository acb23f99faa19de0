//! Accuracy, NLL, ECE and KL of the four cells over N, and what learning real images changes.

use super::{FourCell, FourCells, Origin, OriginGain};
use crate::experiment::bayes_gap::{Who, across};
use crate::experiment::output::Findings;
use crate::experiment::repeats::{SEED_GAIN_HERE, SEED_GAIN_OF_IMAGES, SEED_MEAN, SeedGain, SeedMean, distinct};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Table, Way};

const LABELS: &str =
    "Against labels on both kinds of test images: drawn ones of samples of the world, the dataset's of real images.";

const BOTH: &str = "Real and world images differ in themselves: compare what was learned on one kind of test images, not two kinds of test images.";

impl FourCell {
    fn who(&self) -> Who {
        Who { architecture: self.architecture, labels: self.labels }
    }
}

impl OriginGain {
    fn who(&self) -> Who {
        Who { architecture: self.architecture, labels: self.labels }
    }
}

/// A colour for what is learned; test images of the world are dashed.
fn colour(learned: Origin) -> usize {
    match learned {
        Origin::World => 0,
        Origin::Real => 1,
    }
}

fn sizes() -> Axis {
    Axis::log10("training images N")
}

impl Findings for FourCells {
    /// Four lines over N for each classifier: accuracy, NLL, ECE; KL on samples of the world; then what
    /// learning real images changes.
    fn figures(&self) -> Vec<Figure> {
        let all = distinct(self.cells.iter().map(FourCell::who));
        let several = all.len() > 1;
        let of = |&who: &Who| {
            let figures = [
                self.accuracy(who),
                self.figure(
                    ["nll", "Negative log-likelihood"],
                    LABELS,
                    Axis::log10("NLL").in_unit("nats"),
                    self.four(who, |cell| Some(cell.nll), 1.0),
                ),
                self.figure(
                    ["ece", "Expected calibration error"],
                    "15 bins of equal width, against labels.",
                    Axis::linear("ECE"),
                    self.four(who, |cell| Some(cell.ece), 1.0),
                ),
                self.figure(
                    ["epistemic", "Epistemic part KL(p || q)"],
                    "Mean KL from the exact posterior of the world's test images to the classifier's. Real images have no exact posterior.",
                    Axis::log10("KL(p || q)").in_unit("nats"),
                    self.four(who, |cell| cell.epistemic, 1.0),
                ),
            ];
            let end =
                if several { format!("-{}-{}", who.architecture.name(), who.labels.name()) } else { String::new() };
            figures.map(|figure| Figure {
                id: format!("{}{end}", figure.id),
                title: format!("{}, {}", figure.title, who.name()),
                ..figure
            })
        };
        let gains = [
            self.gain(
                "accuracy",
                "accuracy",
                Axis::linear("gain of accuracy").in_unit("pp"),
                |gain| gain.accuracy,
                100.0,
            ),
            self.gain("nll", "NLL", Axis::linear("change of NLL").in_unit("nats"), |gain| gain.nll, 1.0),
        ];
        all.iter().flat_map(of).chain(gains).collect()
    }

    /// The four cells at every N, and what learning real images changes.
    fn tables(&self) -> Vec<Table> {
        vec![self.cell_table(), self.gain_table()]
    }
}

impl FourCells {
    fn figure(&self, [id, title]: [&str; 2], what: &str, y: Axis, series: Vec<Series>) -> Figure {
        let caption = format!("{what} {SEED_MEAN} {BOTH}");
        let (id, title, provenance) = (format!("transfer-{id}"), title.to_owned(), self.provenance.clone());
        Figure { id, title, caption, provenance, x: sizes(), y, series, ..Figure::default() }
    }

    /// One series for each of the four cells of a classifier, over N.
    fn four(&self, who: Who, of: fn(&FourCell) -> Option<SeedMean>, times: f64) -> Vec<Series> {
        let here = || self.cells.iter().filter(move |cell| cell.who() == who);
        let series = |(learned, tested): (Origin, Origin)| {
            let point = |cell: &FourCell| -> Option<Point> { Some(of(cell)?.point(cell.train_size as f64, times)) };
            Series {
                name: format!("trained on {}, tested on {}", learned.label(), tested.label()),
                style: Style::LinePoints,
                colour: colour(learned),
                points: here()
                    .filter(|cell| (cell.learned, cell.tested) == (learned, tested))
                    .filter_map(point)
                    .collect(),
                dashed: tested == Origin::World,
                ..Series::default()
            }
        };
        let all = distinct(here().map(|cell| (cell.learned, cell.tested))).into_iter().map(series);
        all.filter(|series| !series.points.is_empty()).collect()
    }

    fn accuracy(&self, who: Who) -> Figure {
        let y = Axis::linear("accuracy").in_unit("%");
        let series = self.four(who, |cell| Some(cell.accuracy), 100.0);
        let rules = self.bayes_accuracy.map(|bayes| {
            let ends = (bayes.interval.low, bayes.interval.high);
            across("Bayes accuracy of the world's test images".into(), bayes.value, ends)
        });
        let figure = self.figure(["accuracy", "Accuracy"], LABELS, y, series);
        Figure { rules: rules.into_iter().collect(), ..figure }
    }

    /// What learning real images in place of the world changes: one series a classifier and kind of test images.
    fn gain(&self, id: &str, what: &str, y: Axis, of: fn(&OriginGain) -> SeedGain, times: f64) -> Figure {
        let architectures = distinct(self.gains.iter().map(|gain| gain.architecture));
        let series = |(who, tested): (Who, Origin)| {
            let here = self.gains.iter().filter(|gain| (gain.who(), gain.tested) == (who, tested));
            Series {
                name: format!("{}, tested on {}", who.name(), tested.label()),
                style: Style::LinePoints,
                colour: who.colour(&architectures),
                points: here.map(|gain| of(gain).point(gain.train_size as f64, times)).collect(),
                dashed: tested == Origin::World,
                ..Series::default()
            }
        };
        let series =
            distinct(self.gains.iter().map(|gain| (gain.who(), gain.tested))).into_iter().map(series).collect();
        Figure {
            id: format!("transfer-gain-{id}"),
            title: format!("What learning real images changes of {what}"),
            caption: format!(
                "{what} of classifiers that learned real images minus that of those that learned samples of the world, on the same test \
                 images; at the same N, seed and training. {SEED_GAIN_OF_IMAGES}"
            ),
            provenance: self.provenance.clone(),
            x: sizes(),
            y,
            series,
            rules: vec![Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "no change".into() }],
            ..Figure::default()
        }
    }

    fn cell_table(&self) -> Table {
        Table::of(&self.cells)
            .words("classifier", |cell| cell.who().name())
            .words("N", |cell| cell.train_size)
            .words("trained on", |cell| cell.learned.label())
            .words("tested on", |cell| cell.tested.label())
            .words("seeds", |cell| cell.accuracy.seeds)
            .column("accuracy", "%", 2, |cell| cell.accuracy.cell(100.0))
            .column("NLL", "nats", 4, |cell| cell.nll.cell(1.0))
            .column("ECE", "", 4, |cell| cell.ece.cell(1.0))
            .column("KL(p || q)", "nats", 4, |cell| cell.epistemic.map(|kl| kl.cell(1.0)))
            .named("transfer", "Trained and tested on world or real images", format!("{LABELS} {SEED_MEAN} {BOTH}"))
    }

    fn gain_table(&self) -> Table {
        Table::of(&self.gains)
            .words("classifier", |gain| gain.who().name())
            .words("N", |gain| gain.train_size)
            .words("tested on", |gain| gain.tested.label())
            .words("seeds", |gain| gain.accuracy.seeds)
            .column("gain of accuracy", "pp", 2, |gain| gain.accuracy.cell(100.0))
            .column("change of NLL", "nats", 4, |gain| gain.nll.cell(1.0))
            .column("change of ECE", "", 4, |gain| gain.ece.cell(1.0))
            .named(
                "transfer-gain",
                "Real images learned in place of the world's",
                format!("{SEED_GAIN_OF_IMAGES} {SEED_GAIN_HERE}"),
            )
    }
}
