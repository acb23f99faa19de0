//! Self-validation (BLC table 1): whether classifiers come near the Bayes accuracy at all.

use serde::{Deserialize, Serialize};

use super::bayes_gap::{BayesGap, Who, across, axes, on_test, per_cent};
use super::bayes_reference::Truth;
use super::cell::CellResult;
use super::kind::{About, Kind};
use super::output::{Analysis, Findings};
use super::presets::preset;
use super::repeats::{SEED_MEAN, only, provenance, repeats, suffix};
use super::spec::ExperimentSpec;
use crate::classifier::{Architecture, Labels};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Table};
use crate::measure::Estimate;

/// BLC table 1 (50,000 samples of its AFHQ world of 3 classes): accuracy and gap to the Bayes
/// accuracy, per cent. The Bayes accuracy is 99.77 % (BLC §2.3). The table's "ResNet-18" is
/// "ResNet" in the text.
const TABLE_1: [(Architecture, f64, f64); 5] = [
    (Architecture::ConvNext, 98.03, 1.75),
    (Architecture::ResNet18, 97.73, 2.05),
    (Architecture::SwinT, 97.68, 2.10),
    (Architecture::MobileNet, 97.65, 2.12),
    (Architecture::VitB16, 96.98, 2.80),
];

const PAPER: &str = "BLC table 1 (AFHQ)";
const ANOTHER_WORLD: &str = "Pale: BLC table 1, in another world (its AFHQ oracle, Bayes accuracy 99.77 %, 50,000 images): to be \
                             compared by its gaps, not by its accuracies.";

pub(super) const ABOUT: About = About {
    name: "self-validation",
    label: "Self-validation",
    question: "Do classifiers trained on samples of this world come near its Bayes accuracy?",
    presets: &[preset!("self-validation-quick"), preset!("self-validation")],
};

/// Self-validation varies nothing of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfValidationSpec {}

impl Kind for SelfValidationSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn wants_bayes_error(&self) -> bool {
        true
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(Nearness::of(spec, cells, truths)))
    }
}

/// Errors beside the Bayes error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearness {
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// The networks of the plan.
    pub architectures: Vec<Architecture>,
    /// The Bayes error of the world, once it is computed.
    pub truth: Option<Truth>,
    /// Bayes accuracy of the test images, mean max p(y|x); absent until a cell is finished.
    pub test_bayes_accuracy: Option<Estimate>,
    /// The classifiers that are finished, in the order of the plan.
    pub classifiers: Vec<BayesGap>,
}

impl Nearness {
    /// From the finished cells, and the Bayes error of the world where it is known.
    pub fn of(spec: &ExperimentSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Self {
        let truth = truths.first().cloned().flatten();
        Self {
            provenance: provenance(spec, cells.len()),
            architectures: spec.grid.architectures.clone(),
            test_bayes_accuracy: cells.first().map(|result| result.measured.bayes_accuracy),
            classifiers: repeats(cells).iter().filter_map(|group| BayesGap::of(group, truth.as_ref())).collect(),
            truth,
        }
    }

    /// What both figures share: classifiers of N images on the horizontal axis, then the paper's
    /// others.
    fn figure(&self, id: &str, n: usize, names: &[Who], sizes: &[usize]) -> Figure {
        let absent =
            TABLE_1.iter().map(|row| row.0).filter(|paper| !names.iter().any(|who| who.architecture == *paper));
        let categories = names.iter().map(Who::name).chain(absent.map(|paper| paper.label().to_owned()));
        Figure {
            id: format!("self-validation-{id}{}", suffix(sizes, n)),
            provenance: only(&self.provenance, "N", n.to_string()),
            x: Axis::named("architecture", categories),
            ..Figure::default()
        }
    }

    /// One series a classifier of N images, at its place.
    fn series(
        &self,
        n: usize,
        names: &[Who],
        style: Style,
        of: impl Fn(&BayesGap, f64) -> Option<Point>,
    ) -> Vec<Series> {
        let series = |one: &BayesGap| {
            let who = one.who();
            let place = names.iter().position(|other| *other == who)?;
            let (points, colour) = (vec![of(one, place as f64)?], who.colour(&self.architectures));
            Some(Series { name: who.name(), style, colour, points, ..Series::default() })
        };
        self.classifiers.iter().filter(|one| one.train_size == n).filter_map(series).collect()
    }

    fn accuracies(&self, n: usize, names: &[Who], sizes: &[usize]) -> Figure {
        let mut series = vec![self.paper(names, |row| row.1)];
        series.extend(self.series(n, names, Style::Points, |one, place| {
            let Point { x, y, low, high, .. } = one.error.point(place, 100.0);
            Some(Point { low: high.map(|e| 100.0 - e), high: low.map(|e| 100.0 - e), ..Point::new(x, 100.0 - y) })
        }));
        let on_test = self.test_bayes_accuracy.map(|found| {
            let label = format!("Bayes accuracy of the test images, {:.2} %", 100.0 * found.value);
            across(label, found.value, (found.interval.low, found.interval.high))
        });
        Figure {
            title: format!("Accuracy beside the Bayes accuracy, {n} training images"),
            caption: format!(
                "Accuracy against drawn labels; lines: the Bayes accuracy of the world ({}) and of the test images themselves, with \
                 their 95 % intervals. {SEED_MEAN} {ANOTHER_WORLD}",
                self.how()
            ),
            y: Axis::linear("accuracy").in_unit("%"),
            series,
            rules: self.bayes_line().into_iter().chain(on_test).collect(),
            ..self.figure("accuracy", n, names, sizes)
        }
    }

    fn gaps(&self, n: usize, names: &[Who], sizes: &[usize]) -> Figure {
        let mut series = self.series(n, names, Style::Bars, |one, place| Some(one.gap?.point(place, 100.0)));
        let paired = self.series(n, names, Style::Points, |one, place| Some(one.gap_on_test.point(place, 100.0)));
        series.extend(paired.into_iter().map(on_test));
        series.push(self.paper(names, |row| row.2));
        Figure {
            title: format!("Gap to the Bayes accuracy, {n} training images"),
            caption: format!(
                "Bars: test error minus the Bayes error of the world ({}), whose interval is added to theirs. Points: expected error \
                 minus the Bayes error of the same test images, the same gap without the noise of labels and of the choice of images. \
                 {SEED_MEAN} {ANOTHER_WORLD}",
                self.how()
            ),
            y: Axis::linear("gap to the Bayes accuracy").in_unit("pp"),
            series,
            ..self.figure("gap", n, names, sizes)
        }
    }

    /// The paper's numbers at the places of their architectures.
    fn paper(&self, names: &[Who], of: impl Fn(&(Architecture, f64, f64)) -> f64) -> Series {
        let mut absent = names.len();
        let mut place = |architecture: Architecture| {
            names.iter().position(|who| who.architecture == architecture).unwrap_or_else(|| {
                absent += 1;
                absent - 1
            })
        };
        let point = |row: &(Architecture, f64, f64)| Point::new(place(row.0) as f64, of(row));
        let points = TABLE_1.iter().map(point).collect();
        let colour = self.architectures.len() + 1;
        Series { name: PAPER.into(), style: Style::Points, colour, points, faint: true, ..Series::default() }
    }

    fn bayes_line(&self) -> Option<Rule> {
        let error = self.truth.as_ref()?.bayes_error;
        let (low, high) = error.interval;
        let label = format!("Bayes accuracy of the world, {:.2} %", 100.0 - 100.0 * error.value);
        Some(across(label, 1.0 - error.value, (1.0 - high, 1.0 - low)))
    }

    /// How sure the Bayes error is, in words.
    fn how(&self) -> String {
        let words = |truth: &Truth| format!("{}: {}", truth.badge.name(), truth.how);
        self.truth.as_ref().map_or("not computed yet".into(), words)
    }

    fn table(&self) -> Table {
        let caption = format!(
            "{SEED_MEAN} Bayes error of the world {}{}. The columns of BLC are its table 1, of another world (AFHQ, Bayes accuracy 99.77 %, 50,000 images).",
            self.truth.as_ref().map_or(String::new(), |truth| {
                let (low, high) = truth.bayes_error.interval;
                let value = truth.bayes_error.value;
                format!("{:.4} % [{:.4}, {:.4}], ", 100.0 * value, 100.0 * low, 100.0 * high)
            }),
            self.how()
        );
        let rows = self.classifiers.iter().map(|one| {
            let drawn = one.labels == Labels::Drawn;
            (one, TABLE_1.iter().find(|row| row.0 == one.architecture && drawn))
        });
        Table::of(rows)
            .words("architecture", |(one, _)| one.architecture.label())
            .words("labels", |(one, _)| one.labels.label())
            .words("N", |(one, _)| one.train_size)
            .words("seeds", |(one, _)| one.error.seeds)
            .column("accuracy", "%", 2, |(one, _)| 100.0 - 100.0 * one.error.value)
            .column("error", "%", 2, |(one, _)| one.error.cell(100.0))
            .column("expected error", "%", 2, |(one, _)| one.expected_error.cell(100.0))
            .column("gap to the world", "pp", 2, |(one, _)| one.gap.map(|gap| gap.cell(100.0)))
            .column("gap on the test images", "pp", 2, |(one, _)| one.gap_on_test.cell(100.0))
            .column("Bayes accuracy of the test images", "%", 2, |_| self.test_bayes_accuracy.as_ref().map(per_cent))
            .column("accuracy, BLC (AFHQ)", "%", 2, |(_, printed)| printed.map(|row| row.1))
            .column("gap, BLC (AFHQ)", "pp", 2, |(_, printed)| printed.map(|row| row.2))
            .named("self-validation", "Accuracy, error and gap to Bayes", caption)
    }
}

impl Findings for Nearness {
    /// Accuracy beside the Bayes accuracy, and the gap between them; for each number of training
    /// images, the largest first.
    fn figures(&self) -> Vec<Figure> {
        let (names, sizes) = axes(self.classifiers.iter());
        sizes.iter().rev().flat_map(|&n| [self.accuracies(n, &names, &sizes), self.gaps(n, &names, &sizes)]).collect()
    }

    /// Every classifier, and what the paper has of its architecture.
    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }

    fn without_gaps_to_the_world(&self) -> Option<Analysis> {
        let classifiers = self.classifiers.iter().map(BayesGap::without_world).collect();
        Some(Analysis::new(Self { classifiers, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::experiment::hand_made::{measured, near, result, spec, truth, whole};
    use crate::experiment::{DataRecord, Mapped, PartRecord, Summary};

    const SPEC: &str = "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['convnet', 'resnet-18']\ntrain_sizes = [100]\n\
                        seeds = [0, 1]\n[experiment]\nkind = 'self-validation'\n";

    fn results(spec: &ExperimentSpec) -> Vec<CellResult> {
        let cells = spec.cells();
        let of = |cell: &super::super::cell::Cell| {
            let error = if cell.architecture == Architecture::Convnet { 0.08 } else { 0.05 } + 0.002 * cell.seed as f64;
            result(*cell, measured(error, error, 0.03))
        };
        cells.iter().map(of).collect()
    }

    #[test]
    fn classifiers_stand_beside_the_bayes_accuracy_and_the_paper() {
        let spec = spec(SPEC);
        let found = Nearness::of(&spec, &results(&spec), &[truth(1.0, 0.04)]);
        let net = &found.classifiers[0];
        assert!(
            near(net.error.value, 0.081) && near(net.gap.unwrap().value, 0.041) && near(net.gap_on_test.value, 0.051)
        );
        let figures = found.figures();
        let [accuracy, gap] = &figures[..] else { panic!("{} figures", figures.len()) };
        // Its own two, then the four that only the paper has.
        assert_eq!(accuracy.x.categories[..3], ["ConvNet", "ResNet-18", "ConvNeXt-Tiny"]);
        assert_eq!(accuracy.x.categories.len(), 6);
        assert!(near(accuracy.rules[0].at, 96.0) && near(accuracy.rules[1].at, 97.0));
        let paper = &accuracy.series[0];
        assert!(paper.faint && paper.name.contains("AFHQ") && accuracy.caption.contains("another world"));
        // ResNet-18 over ResNet-18, ConvNeXt where there is nothing of ours.
        assert_eq!((paper.points[1].x, paper.points[1].y), (1.0, 97.73));
        assert_eq!((paper.points[0].x, paper.points[0].y), (2.0, 98.03));
        let own = &accuracy.series[1].points[0];
        assert!(near(own.y, 91.9) && own.low.unwrap() < 91.9 && own.high.unwrap() > 91.9);
        assert!(near(gap.series[0].points[0].y, 4.1) && near(gap.series[2].points[0].y, 5.1));
        assert_eq!(gap.series.last().unwrap().points[1].y, 2.05);
        let table = &found.tables()[0];
        assert_eq!(table.shown()[1][10..], ["97.73", "2.05"]);
        assert_eq!(table.shown()[0][10..], ["–", "–"]);
    }

    #[test]
    fn images_of_another_origin_are_told_everywhere_and_are_in_no_gap_to_the_world() {
        let spec = spec(SPEC);
        let part = |of_this_world| {
            let (path, sha256, note, classes) = ("photographs".into(), String::new(), None, Mapped::ByName);
            let (dequantisation, noise_from) = (None, 0);
            PartRecord { path, images: 20, sha256, dequantisation, noise_from, note, classes, of_this_world }
        };
        for of_this_world in [true, false] {
            let data = DataRecord { train: part(true), test: Some(part(of_this_world)), both: false };
            let summary = Summary::of(&spec, &Default::default(), results(&spec), &[truth(1.0, 0.04)]).unwrap();
            let summary = summary.with_images(Some(data), BTreeMap::new());
            let found: &Nearness = summary.analysis.as_ref().unwrap().get().unwrap();
            assert!(found.classifiers.iter().all(|one| one.gap.is_some() == of_this_world));
            let said = |text: &str| text.contains("photographs") && text.contains("not of nature") != of_this_world;
            assert!(summary.tables().iter().all(|table| said(&table.caption)));
            for figure in summary.figures() {
                assert!(figure.provenance.iter().any(|(name, text)| name == "images" && said(text)), "{}", figure.id);
            }
        }
    }

    #[test]
    fn the_papers_gaps_are_those_of_its_accuracies() {
        // 99.78 − accuracy, as printed; the text rounds the Bayes accuracy to 99.77.
        assert!(TABLE_1.iter().all(|(_, accuracy, gap)| (99.78 - accuracy - gap).abs() < 0.0101));
    }

    #[test]
    fn a_run_that_has_just_begun_says_so() {
        let spec = spec(SPEC);
        for (finished, truths) in [(0, vec![]), (1, vec![None]), (3, vec![truth(1.0, 0.04)])] {
            let found = spec.experiment.analyse(&spec, &results(&spec)[..finished], &truths).unwrap();
            whole(found.clone());
            assert_eq!(found.figures().is_empty(), finished == 0);
            assert_eq!(
                found.tables()[0].caption.contains("not computed yet"),
                truths.iter().flatten().next().is_none()
            );
        }
        let one = Nearness::of(&spec, &results(&spec)[..1], &[]);
        assert_eq!((one.classifiers[0].error.interval, one.classifiers[0].gap), (None, None));
    }
}
