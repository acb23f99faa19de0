//! Error and gap against τ (EBO figure 3), architectures at one τ (EBO figure 4), and the numbers.

use super::{Sweep, Swept};
use crate::experiment::Truth;
use crate::experiment::bayes_gap::{BayesGap, Who, across, axes, on_test, per_cent};
use crate::experiment::output::{Analysis, Findings};
use crate::experiment::repeats::{SEED_MEAN, only, point, suffix};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Table, Value, Way};
use crate::measure::Interval;

/// EBO §4.2 on its two datasets: its networks are close to the optimum below the first τ; the gap
/// is significant above the second.
const EBO: [(&str, f64, f64); 2] = [("mnist", 1.0, 1.5), ("fashion-mnist", 0.5, 1.0)];

const PAIRED: &str = "All temperatures share their seeds, and so latents and classes: a curve compares the same images made easier or \
                      harder.";

impl Findings for Sweep {
    /// Error and gap against τ, and the architectures at the τ nearest 1; for each number of
    /// training images, the largest first.
    fn figures(&self) -> Vec<Figure> {
        let (_, sizes) = axes(self.all());
        let of = |&n: &usize| {
            let figures = [Some(self.errors(n)), Some(self.gaps(n)), self.architectures_at_one(n)];
            figures.into_iter().flatten().map(move |figure| (figure, n))
        };
        let named = |(figure, n): (Figure, usize)| {
            let end = suffix(&sizes, n);
            let title = format!("{}, {n} training images", figure.title);
            Figure { id: figure.id + &end, title, provenance: only(&figure.provenance, "N", n.to_string()), ..figure }
        };
        sizes.iter().rev().flat_map(of).map(named).collect()
    }

    /// Every temperature and classifier, and the Bayes error of every world.
    fn tables(&self) -> Vec<Table> {
        vec![self.error_table(), self.bayes_table()]
    }

    fn without_gaps_to_the_world(&self) -> Option<Analysis> {
        let mut without = self.clone();
        for world in &mut without.worlds {
            world.classifiers = world.classifiers.iter().map(BayesGap::without_world).collect();
        }
        Some(Analysis::new(without))
    }
}

impl Sweep {
    fn all(&self) -> impl Iterator<Item = &BayesGap> + Clone {
        self.worlds.iter().flat_map(|world| &world.classifiers)
    }

    /// One series a classifier: what it has at each τ.
    fn curves(&self, n: usize, of: impl Fn(&BayesGap, f64) -> Option<Point>) -> Vec<Series> {
        let (names, _) = axes(self.all());
        let curve = |who: Who| {
            let at = |world: &Swept| {
                let here = world.classifiers.iter().find(|one| one.who() == who && one.train_size == n)?;
                of(here, world.tau.get())
            };
            let points: Vec<Point> = self.worlds.iter().filter_map(at).collect();
            let colour = who.colour(&self.architectures);
            Series { name: who.name(), style: Style::LinePoints, colour, points, ..Series::default() }
        };
        names.into_iter().map(curve).filter(|series| !series.points.is_empty()).collect()
    }

    fn errors(&self, n: usize) -> Figure {
        let colour = self.architectures.len();
        let bayes = |world: &Swept| {
            let truth = world.truth.as_ref()?.bayes_error;
            let (low, high) = truth.interval;
            Some(point(world.tau.get(), truth.value, Some(Interval { low, high }), 100.0))
        };
        let on_these = |world: &Swept| {
            let found = world.test_bayes_error?;
            Some(point(world.tau.get(), found.value, Some(found.interval), 100.0))
        };
        let mut series = vec![
            Series {
                name: "Bayes error of the world".into(),
                points: self.worlds.iter().filter_map(bayes).collect(),
                band: true,
                colour,
                ..Series::default()
            },
            Series {
                name: "Bayes error of the test images".into(),
                style: Style::Points,
                points: self.worlds.iter().filter_map(on_these).collect(),
                dashed: true,
                colour,
                ..Series::default()
            },
        ];
        series.extend(self.curves(n, |one, tau| Some(one.error.point(tau, 100.0))));
        let caption = format!(
            "Test error against drawn labels beside the Bayes error of the world at each base temperature τ ({}); hollow markers: the \
             Bayes error of the test images themselves, with its 95 % bootstrap interval over images, in which is what images that were \
             not seen may add. {SEED_MEAN} {PAIRED}",
            self.how()
        );
        Figure {
            id: "temperature-error".into(),
            title: "Test error and Bayes error against temperature".into(),
            caption,
            provenance: self.provenance.clone(),
            x: Axis::linear("base temperature τ"),
            y: Axis::linear("error").in_unit("%"),
            series,
            ..Figure::default()
        }
    }

    fn gaps(&self, n: usize) -> Figure {
        let paired = self.curves(n, |one, tau| Some(one.gap_on_test.point(tau, 100.0)));
        let in_world = self.curves(n, |one, tau| Some(one.gap?.point(tau, 100.0)));
        let zero = Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "Bayes".into() };
        let mut caption = format!(
            "Test error minus the Bayes error of the world ({}); dashed: expected error minus the Bayes error of the same test images, \
             the same gap without the noise of labels and of the choice of images. {SEED_MEAN} The interval of the Bayes error is added \
             to that of the gap. {PAIRED}",
            self.how()
        );
        let marks = EBO.iter().find(|(name, ..)| *name == self.oracle);
        if marks.is_some() {
            caption += " Vertical lines: the temperatures that EBO §4.2 names for its own flow of this dataset.";
        }
        let vertical = |(at, label): (f64, &str)| {
            let label = format!("EBO §4.2: {label} τ = {at}");
            Rule { way: Way::Vertical, at, low: None, high: None, label }
        };
        let said =
            marks.into_iter().flat_map(|&(_, near, far)| [(near, "close to optimal below"), (far, "a gap above")]);
        Figure {
            id: "temperature-gap".into(),
            title: "Gap to the Bayes error against temperature".into(),
            caption,
            provenance: self.provenance.clone(),
            x: Axis::linear("base temperature τ"),
            y: Axis::linear("test error − Bayes error").in_unit("pp"),
            series: paired.into_iter().map(on_test).chain(in_world).collect(),
            rules: [zero].into_iter().chain(said.map(vertical)).collect(),
            ..Figure::default()
        }
    }

    /// EBO figure 4 at the τ nearest 1, where there are architectures to compare.
    fn architectures_at_one(&self, n: usize) -> Option<Figure> {
        let off = |world: &&Swept| (world.tau.get() - 1.0).abs();
        let world = self.worlds.iter().min_by(|a, b| off(a).total_cmp(&off(b)))?;
        let here: Vec<&BayesGap> = world.classifiers.iter().filter(|one| one.train_size == n).collect();
        if here.iter().all(|one| one.architecture == here[0].architecture) {
            return None;
        }
        let bar = |(i, one): (usize, &&BayesGap)| Series {
            name: one.who().name(),
            style: Style::Bars,
            colour: one.who().colour(&self.architectures),
            points: vec![one.error.point(i as f64, 100.0)],
            ..Series::default()
        };
        let tau = world.tau.get();
        let line = |truth: &Truth| {
            let error = truth.bayes_error;
            across(format!("Bayes error of the world, {:.2} %", 100.0 * error.value), error.value, error.interval)
        };
        Some(Figure {
            id: "temperature-architectures".into(),
            title: format!("Test errors at τ = {tau}"),
            caption: format!(
                "Test error of each architecture at τ = {tau}, the temperature of the sweep nearest 1, and the Bayes error of the world \
                 there ({}). {SEED_MEAN}",
                self.how()
            ),
            provenance: only(&self.provenance, "τ", tau.to_string()),
            x: Axis::named("architecture", here.iter().map(|one| one.who().name())),
            y: Axis::linear("test error").in_unit("%"),
            series: here.iter().enumerate().map(bar).collect(),
            rules: world.truth.iter().map(line).collect(),
            ..Figure::default()
        })
    }

    /// How sure the Bayes errors of the worlds are, in words.
    fn how(&self) -> String {
        let badges: Vec<&str> =
            self.worlds.iter().filter_map(|world| Some(world.truth.as_ref()?.badge.name())).collect();
        match badges.split_first() {
            None => "not computed yet".into(),
            Some((first, rest)) if rest.iter().all(|badge| badge == first) => format!("{first}; methods in the table"),
            Some(_) => "how sure each is and by which method: in the table".into(),
        }
    }

    fn error_table(&self) -> Table {
        let of = |world| move |one| -> (&Swept, &BayesGap) { (world, one) };
        Table::of(self.worlds.iter().flat_map(|world| world.classifiers.iter().map(of(world))))
            .column("τ", "", 3, |(world, _)| world.tau.get())
            .words("architecture", |(_, one)| one.architecture.label())
            .words("labels", |(_, one)| one.labels.label())
            .words("N", |(_, one)| one.train_size)
            .words("seeds", |(_, one)| one.error.seeds)
            .column("test error", "%", 2, |(_, one)| one.error.cell(100.0))
            .column("expected error", "%", 2, |(_, one)| one.expected_error.cell(100.0))
            .column("Bayes error of the world", "%", 3, |(world, _)| bayes(world))
            .column("Bayes error of the test images", "%", 2, |(world, _)| {
                world.test_bayes_error.as_ref().map(per_cent)
            })
            .column("gap to the world", "pp", 2, |(_, one)| one.gap.map(|gap| gap.cell(100.0)))
            .column("gap on the test images", "pp", 2, |(_, one)| one.gap_on_test.cell(100.0))
            .named("temperature", "Errors over the temperature", format!("{SEED_MEAN} {PAIRED}"))
    }

    fn bayes_table(&self) -> Table {
        let caption = "95 % intervals; of the test images: bootstrap over images of the mean of 1 − max p(y|x), with what images that were not \
                       seen may add (rule of three) where fewer than 30 are in doubt.";
        Table::of(&self.worlds)
            .column("τ", "", 3, |world| world.tau.get())
            .column("Bayes error of the world", "%", 4, bayes)
            .words("badge", |world| world.truth.as_ref().map(|truth| truth.badge.name()))
            .words("method", |world| world.truth.as_ref().map(|truth| truth.how.as_str()))
            .column("Bayes error of the test images", "%", 2, |world| world.test_bayes_error.as_ref().map(per_cent))
            .named("temperature-bayes", "Bayes error over the temperature", caption)
    }
}

fn bayes(world: &Swept) -> Value {
    let Some(truth) = &world.truth else { return Value::Nothing };
    let (low, high) = truth.bayes_error.interval;
    Value::within(100.0 * truth.bayes_error.value, 100.0 * low, 100.0 * high)
}
