//! KL over N, compute and parameters under each training, the frontier, and what longer training
//! closes.

use super::{AxisPoint, Longer, TrainingAxes};
use crate::classifier::{Architecture, Labels};
use crate::experiment::bayes_gap::Who;
use crate::experiment::output::Findings;
use crate::experiment::repeats::{SEED_GAIN, SEED_MEAN, SeedGain, distinct, only};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Table, Way};

/// BLC table 2: epistemic KL on AFHQ, nats.
const PAPER: [(Architecture, [(f64, f64); 5]); 2] = [
    (Architecture::ResNet18, [(100.0, 0.160), (1000.0, 0.090), (5000.0, 0.058), (10_000.0, 0.033), (40_000.0, 0.026)]),
    (Architecture::VitB16, [(100.0, 0.131), (1000.0, 0.141), (5000.0, 0.099), (10_000.0, 0.117), (40_000.0, 0.117)]),
];

const COMPUTE: &str = "Compute of a training is 2 · 3 · multiply-accumulates of one forward pass · images seen: products forward and backward, \
                       without normalisation, activation and optimiser.";

const KL: &str = "KL(p || q)";

fn who(architecture: Architecture, labels: Labels) -> Who {
    Who { architecture, labels }
}

impl AxisPoint {
    fn who(&self) -> Who {
        who(self.architecture, self.labels)
    }
}

impl Longer {
    fn who(&self) -> Who {
        who(self.architecture, self.labels)
    }
}

impl Findings for TrainingAxes {
    /// KL over N for each classifier, over compute with the frontier, over parameters; then what the
    /// longest training changes.
    fn figures(&self) -> Vec<Figure> {
        let all = distinct(self.points.iter().map(AxisPoint::who));
        let mut figures: Vec<Figure> = all.iter().map(|who| self.over_n(*who, all.len() > 1)).collect();
        figures.extend([self.over_compute(&all)]);
        figures.extend(self.over_parameters());
        figures.extend([self.closed(), self.closed_gap()]);
        figures
    }

    /// Every classifier, the frontier, and the longest trainings beside the shortest.
    fn tables(&self) -> Vec<Table> {
        vec![self.all_table(), self.frontier_table(), self.longer_table()]
    }
}

impl TrainingAxes {
    fn name(&self, training: usize) -> String {
        self.trainings.get(training).cloned().unwrap_or_default()
    }

    fn colour(&self, who: Who) -> usize {
        who.colour(&distinct(self.points.iter().map(|point| point.architecture)))
    }

    fn figure(&self, [id, title]: [&str; 2], caption: String, [x, y]: [Axis; 2], series: Vec<Series>) -> Figure {
        let (id, title) = (format!("axes-{id}"), title.to_owned());
        Figure { id, title, caption, provenance: self.provenance.clone(), x, y, series, ..Figure::default() }
    }

    /// One series a training.
    fn over_n(&self, who: Who, several: bool) -> Figure {
        let here = || self.points.iter().filter(move |point| point.who() == who);
        let series = |training: usize| Series {
            name: self.name(training),
            style: Style::LinePoints,
            colour: training,
            points: here()
                .filter(|point| point.training == training)
                .map(|point| point.epistemic.point(point.train_size as f64, 1.0))
                .collect(),
            ..Series::default()
        };
        let printed =
            PAPER.iter().filter(|(architecture, _)| *architecture == who.architecture).map(|(_, points)| Series {
                name: "BLC table 2 (AFHQ)".into(),
                colour: self.trainings.len(),
                points: points.iter().map(|&(n, kl)| Point::new(n, kl)).collect(),
                faint: true,
                ..Series::default()
            });
        let all: Vec<Series> =
            printed.chain(distinct(here().map(|point| point.training)).into_iter().map(series)).collect();
        let paper = if all.iter().any(|series| series.faint) { " Pale: the paper's, in another world." } else { "" };
        let caption = format!(
            "Mean KL from the exact posterior of the test images to the classifier's, under each training. {SEED_MEAN}{paper}"
        );
        let end = if several { format!("-{}-{}", who.architecture.name(), who.labels.name()) } else { String::new() };
        let (id, title) = (format!("kl{end}"), format!("{KL} over N by training, {}", who.name()));
        let axes = [Axis::log10("training images N"), Axis::log10(KL).in_unit("nats")];
        self.figure([&id, &title], caption, axes, all)
    }

    /// One series a classifier, all N and trainings; the frontier of each kind of labels as a staircase.
    fn over_compute(&self, all: &[Who]) -> Figure {
        let counted = || self.points.iter().filter_map(|point| Some((point, point.flops?)));
        let mark = |(point, flops): (&AxisPoint, f64)| {
            let label = Some(format!("N = {}, {}", point.train_size, self.name(point.training)));
            Point { label, ..point.epistemic.point(flops, 1.0) }
        };
        let series = |&who: &Who| Series {
            name: who.name(),
            style: Style::Points,
            colour: self.colour(who),
            points: counted().filter(|(point, _)| point.who() == who).map(mark).collect(),
            ..Series::default()
        };
        let mut series: Vec<Series> = all.iter().map(series).filter(|series| !series.points.is_empty()).collect();
        let kinds = distinct(self.points.iter().map(|point| point.labels));
        for (i, &labels) in kinds.iter().enumerate() {
            let told = if kinds.len() > 1 { format!(", {}", labels.label()) } else { String::new() };
            let points = self.frontier(labels).map(|(point, flops)| Point::new(flops, point.epistemic.value)).collect();
            let colour = distinct(all.iter().map(|who| who.architecture)).len() + i;
            let name = format!("frontier{told}");
            series.push(Series { name, style: Style::Steps, colour, points, dashed: true, ..Series::default() });
        }
        let others = distinct(self.points.iter().filter(|point| point.flops.is_none()).map(|point| point.architecture));
        let left_out = if others.is_empty() {
            String::new()
        } else {
            let names: Vec<&str> = others.iter().map(|architecture| architecture.label()).collect();
            format!(" Products of {} are not counted: left out.", names.join(", "))
        };
        let caption = format!(
            "Every N and training of each classifier. The staircase is the least mean KL at no more compute: the least of several noisy means \
             is a little too low, and points whose intervals overlap it cannot be told from it. {COMPUTE}{left_out} {SEED_MEAN}"
        );
        let axes = [Axis::log10("training compute").in_unit("FLOP"), Axis::log10(KL).in_unit("nats")];
        self.figure(["compute", "KL(p || q) over training compute, and the frontier"], caption, axes, series)
    }

    /// The points that nothing beats, least compute first.
    fn frontier(&self, labels: Labels) -> impl Iterator<Item = (&AxisPoint, f64)> {
        let on = self.points.iter().filter(|point| point.on_frontier && point.labels == labels);
        let mut found: Vec<(&AxisPoint, f64)> = on.filter_map(|point| Some((point, point.flops?))).collect();
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found.into_iter()
    }

    /// One series a training and kind of labels, at the largest N; nothing of a single network.
    fn over_parameters(&self) -> Option<Figure> {
        let n = self.points.iter().map(|point| point.train_size).max()?;
        let mut here: Vec<&AxisPoint> = self.points.iter().filter(|point| point.train_size == n).collect();
        here.sort_by_key(|point| point.parameters);
        if distinct(here.iter().map(|point| point.architecture)).len() < 2 {
            return None;
        }
        let mark = |point: &AxisPoint| {
            let label = Some(point.architecture.label().to_owned());
            Point { label, ..point.epistemic.point(point.parameters as f64, 1.0) }
        };
        let series = |(training, labels): (usize, Labels)| Series {
            name: match labels {
                Labels::Drawn => self.name(training),
                told => format!("{}, {}", self.name(training), told.label()),
            },
            style: Style::LinePoints,
            colour: training,
            points: here.iter().filter(|p| (p.training, p.labels) == (training, labels)).map(|p| mark(p)).collect(),
            dashed: labels != Labels::Drawn,
            ..Series::default()
        };
        let all = distinct(here.iter().map(|point| (point.training, point.labels))).into_iter().map(series).collect();
        let title = format!("{KL} over parameters, {n} training images");
        let caption = format!(
            "Each network at its number of trained parameters, under each training. Networks differ in more than their size. {SEED_MEAN}"
        );
        let axes = [Axis::log10("trained parameters"), Axis::log10(KL).in_unit("nats")];
        let figure = self.figure(["parameters", &title], caption, axes, all);
        Some(Figure { provenance: only(&self.provenance, "N", n.to_string()), ..figure })
    }

    /// What the longest training changes of a figure, over N: one series a classifier and pair of trainings.
    fn change(&self, of: fn(&Longer) -> SeedGain, times: f64) -> Vec<Series> {
        let each = distinct(self.longer.iter().map(|longer| (longer.who(), longer.trainings)));
        let pairs = distinct(self.longer.iter().map(|longer| longer.trainings));
        let series = |(who, trainings): (Who, [usize; 2])| {
            let here = self.longer.iter().filter(|longer| (longer.who(), longer.trainings) == (who, trainings));
            Series {
                name: format!("{}, {}", who.name(), self.pair(trainings)),
                style: Style::LinePoints,
                colour: self.colour(who),
                points: here.map(|longer| of(longer).point(longer.train_size as f64, times)).collect(),
                dashed: pairs.first() != Some(&trainings),
                ..Series::default()
            }
        };
        each.into_iter().map(series).collect()
    }

    fn pair(&self, [short, long]: [usize; 2]) -> String {
        format!("{} − {}", self.name(long), self.name(short))
    }

    fn closed(&self) -> Figure {
        let surely = |below: bool| {
            let side = move |longer: &&Longer| {
                longer.epistemic.interval.is_some_and(|i| if below { i.high < 0.0 } else { i.low > 0.0 })
            };
            self.longer.iter().filter(side).count()
        };
        let caption = format!(
            "KL after the longest training minus KL after the shortest of those that differ in length alone: below 0 longer training comes \
             nearer to the truth, above 0 it goes away from it. It is nearer by more than the interval in {} of {} cases, farther in {}. {SEED_GAIN}",
            surely(true),
            self.longer.len(),
            surely(false),
        );
        let axes = [Axis::log10("training images N"), Axis::linear("change of KL(p || q)").in_unit("nats")];
        let series = self.change(|longer| longer.epistemic, 1.0);
        let figure = self.figure(["longer", "What longer training changes of KL(p || q)"], caption, axes, series);
        Figure { rules: vec![no_change()], ..figure }
    }

    fn closed_gap(&self) -> Figure {
        let caption = format!(
            "The gap between Bayes accuracy and expected accuracy on the same test images, after the longest training minus after the \
             shortest: below 0 the gap closes. BLC §2.3 says of a gap of 1.8 to 2.8 pp (AFHQ, N = 50,000) that it closes with longer \
             training, without a number. {SEED_GAIN}"
        );
        let axes = [Axis::log10("training images N"), Axis::linear("change of the gap").in_unit("pp")];
        let series = self.change(|longer| longer.gap, 100.0);
        let title = "What longer training changes of the gap to the Bayes accuracy";
        let figure = self.figure(["longer-gap", title], caption, axes, series);
        Figure { rules: vec![no_change()], ..figure }
    }

    fn all_table(&self) -> Table {
        Table::of(&self.points)
            .words("classifier", |point| point.who().name())
            .words("N", |point| point.train_size)
            .words("training", |point| self.name(point.training))
            .words("parameters", |point| point.parameters)
            .words("steps", |point| point.steps)
            .words("seeds", |point| point.epistemic.seeds)
            .column("compute", "GFLOP", 3, |point| point.flops.map(|flops| flops / 1e9))
            .column(KL, "nats", 4, |point| point.epistemic.cell(1.0))
            .column("gap to Bayes accuracy", "pp", 2, |point| point.gap.cell(100.0))
            .named("axes", "Classifiers under each training", format!("{SEED_MEAN} {COMPUTE}"))
    }

    fn frontier_table(&self) -> Table {
        let kinds = distinct(self.points.iter().map(|point| point.labels));
        let rows: Vec<(&AxisPoint, f64)> = kinds.into_iter().flat_map(|labels| self.frontier(labels)).collect();
        Table::of(&rows)
            .column("compute", "GFLOP", 3, |(_, flops)| flops / 1e9)
            .words("classifier", |(point, _)| point.who().name())
            .words("N", |(point, _)| point.train_size)
            .words("training", |(point, _)| self.name(point.training))
            .column(KL, "nats", 4, |(point, _)| point.epistemic.cell(1.0))
            .named("axes-frontier", "The frontier: least KL at a compute", COMPUTE)
    }

    fn longer_table(&self) -> Table {
        Table::of(&self.longer)
            .words("classifier", |longer| longer.who().name())
            .words("N", |longer| longer.train_size)
            .words("trainings", |longer| self.pair(longer.trainings))
            .column("steps", "times", 1, |longer| longer.times)
            .words("seeds", |longer| longer.epistemic.seeds)
            .column("change of KL(p || q)", "nats", 4, |longer| longer.epistemic.cell(1.0))
            .column("change of the gap to Bayes accuracy", "pp", 2, |longer| longer.gap.cell(100.0))
            .named("axes-longer", "The longest training beside the shortest", SEED_GAIN)
    }
}

fn no_change() -> Rule {
    Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "no change".into() }
}
