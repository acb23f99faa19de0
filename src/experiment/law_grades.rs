//! Laws of every curve of a grid, and a grade for ways of fitting them.
//!
//! Who sees a loss curve alone fits L = E + a·N^(−α) and takes E for what cannot be learned. Here
//! the exact A stands beside that E, and the exact Bayes error of the test images beside the E of
//! the error curve. Every law is also fitted to the smaller N, and its forecasts are held against
//! what came.

use serde::{Deserialize, Serialize};

use super::bayes_gap::Who;
use super::cell::CellResult;
use super::repeats::distinct;
use super::spec::ExperimentSpec;
use crate::classifier::{Architecture, Labels};
use crate::figure::{Axis, Figure, Point as Mark, Series, Style, Table, Value};
use crate::measure::{Estimate, FitWay, GradedForecast, Interval, Measured, Point, Variant, compare, graded_forecasts};
use crate::units::Seed;

/// A curve over N.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// mean KL(p‖q), nats.
    Kl,
    /// L = mean −Σ p log q, nats.
    Loss,
    /// Share of test images whose drawn label is missed.
    Error,
    /// Expected calibration error against drawn labels.
    Ece,
    /// The same against exact posteriors.
    ExactCalibrationError,
}

/// The law of one curve of one classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantityLaw {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Which curve.
    pub quantity: Quantity,
    /// α of a·N^(−α).
    pub alpha: Estimate,
    /// R² of that.
    pub r_squared: f64,
    /// α of a·N^(−α) + E, E free; absent below four different N.
    pub alpha_above_floor: Option<Estimate>,
    /// E of that, in the unit of the curve: what the curve alone says cannot be removed.
    pub floor: Option<Estimate>,
    /// What cannot be removed, exact on the same test images: A, or the Bayes error; 0 for KL and
    /// the exact calibration error; not known for the ECE, which the noise of labels keeps above 0.
    pub exact_floor: Option<Estimate>,
    /// The law that the points prefer.
    pub preferred: Variant,
}

/// How well one way of fitting forecasts one kind of curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WayGrade {
    /// Which curves.
    pub quantity: Quantity,
    /// How they were fitted.
    pub way: FitWay,
    /// Forecasts of all classifiers that every way of the same curve makes.
    pub forecasts: usize,
    /// Median of |log forecast − log what came|.
    pub median: f64,
    /// Largest of these.
    pub worst: f64,
    /// Mean of log forecast − log what came: above 0 the forecasts are too large.
    pub bias: f64,
}

/// Laws and grades.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LawGrades {
    /// Every curve of every classifier that has a law.
    pub laws: Vec<QuantityLaw>,
    /// Every way of fitting, by curve.
    pub ways: Vec<WayGrade>,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Kl, Self::Loss, Self::Error, Self::Ece, Self::ExactCalibrationError];

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Self::Kl => "KL",
            Self::Loss => "L",
            Self::Error => "error",
            Self::Ece => "ECE",
            Self::ExactCalibrationError => "exact calibration error",
        }
    }

    fn of(self, measured: &Measured) -> Estimate {
        match self {
            Self::Kl => measured.epistemic,
            Self::Loss => measured.cross_entropy,
            Self::Error => measured.error,
            Self::Ece => measured.ece,
            Self::ExactCalibrationError => measured.exact_calibration_error,
        }
    }

    fn exact_floor(self, measured: &Measured) -> Option<Estimate> {
        let none = Estimate { value: 0.0, interval: Interval { low: 0.0, high: 0.0 } };
        match self {
            Self::Kl | Self::ExactCalibrationError => Some(none),
            Self::Loss => Some(measured.aleatoric),
            Self::Error => Some(measured.bayes_accuracy.complement()),
            Self::Ece => None,
        }
    }
}

impl LawGrades {
    /// From the finished cells of a grid that varies nothing but networks, labels, N and seeds; `None`
    /// where there are too few N for any law.
    pub fn of(spec: &ExperimentSpec, cells: &[CellResult]) -> Option<Self> {
        let mut found = Self::default();
        for quantity in Quantity::ALL {
            let mut forecasts: Vec<(usize, GradedForecast)> = Vec::new();
            for (at, who) in classifiers(spec).into_iter().enumerate() {
                let here = cells.iter().filter(|result| of(result) == who);
                let here: Vec<&CellResult> = here.collect();
                let points: Vec<Point> = here.iter().map(|result| point(result, quantity)).collect();
                found.laws.extend(QuantityLaw::of(who, quantity, &here, &points));
                // A curve that reaches 0 has no law, and no forecast.
                forecasts.extend(graded_forecasts(&points).unwrap_or_default().into_iter().map(|one| (at, one)));
            }
            found.ways.extend(WayGrade::all(quantity, &forecasts));
        }
        (found != Self::default()).then_some(found)
    }

    /// The E of each loss curve beside the exact A.
    pub fn figures(&self) -> Vec<Figure> {
        let here: Vec<(&QuantityLaw, Estimate, Estimate)> = self
            .laws
            .iter()
            .filter(|law| law.quantity == Quantity::Loss)
            .filter_map(|law| Some((law, law.floor?, law.exact_floor?)))
            .collect();
        if here.is_empty() {
            return Vec::new();
        }
        let series = |name: &str, colour, of: &dyn Fn(&(&QuantityLaw, Estimate, Estimate)) -> Estimate| {
            let mark = |(i, one): (usize, &(&QuantityLaw, Estimate, Estimate))| {
                let Estimate { value, interval } = of(one);
                Mark::new(i as f64, value).within(interval.low, interval.high)
            };
            let points = here.iter().enumerate().map(mark).collect();
            Series { name: name.into(), style: Style::Points, colour, points, ..Series::default() }
        };
        vec![Figure {
            id: "scaling-irreducible".into(),
            title: "What the loss curve alone would say".into(),
            caption: "E of L = E + a·N^(−α), fitted to the losses alone, beside the exact aleatoric part A of the same test images. Bars are 95 % \
                      intervals: of E over seeds (where several were run), sizes and the test images, whose error counts as one of all runs; of A over the test images."
                .into(),
            x: Axis::named("classifier", here.iter().map(|(law, ..)| law.who().name())),
            y: Axis::linear("loss per image").in_unit("nats"),
            series: vec![series("E, fitted", 0, &|one| one.1), series("A, exact", 1, &|one| one.2)],
            ..Figure::default()
        }]
    }

    /// Laws of all curves, and the grades of ways of fitting.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        if !self.laws.is_empty() {
            tables.push(self.law_table());
        }
        if !self.ways.is_empty() {
            tables.push(self.way_table());
        }
        tables
    }

    fn law_table(&self) -> Table {
        let caption = "Least squares in log-log over all N and seeds, with 95 % intervals over seeds (where several were run), sizes and the test images, whose error \
                       counts as one of all runs. 'E free' is the floor of a·N^(−α) + E, fitted to the curve alone; 'exact' what cannot be removed \
                       from it on the same test images: A for L, the Bayes error for the error. L and KL in nats, the others as shares of 1.";
        let holds = |law: &QuantityLaw| {
            let exact = law.exact_floor?.interval;
            let fitted = law.floor?.interval;
            Some(if fitted.low <= exact.high && exact.low <= fitted.high { "yes" } else { "no" })
        };
        Table::of(&self.laws)
            .words("classifier", |law| law.who().name())
            .words("curve", |law| law.quantity.label())
            .column("α", "", 3, |law| Value::of(law.alpha, 1.0))
            .column("R²", "", 3, |law| law.r_squared)
            .column("α above E", "", 3, |law| Value::of_any(law.alpha_above_floor, 1.0))
            .column("E free", "", 4, |law| Value::of_any(law.floor, 1.0))
            .column("exact", "", 4, |law| Value::of_any(law.exact_floor, 1.0))
            .words("intervals meet", holds)
            .words("preferred", |law| if law.preferred == Variant::Floor { "with E" } else { "without E" })
            .named("scaling-curves", "Laws of every curve", caption)
    }

    fn way_table(&self) -> Table {
        let caption = "Laws fitted to the smaller N forecast each larger N that was run, the mean of its runs; |log forecast − log what came|, 0.1 is about 10 %. \
                       Compared are the forecasts that every way makes, for the same classifiers, of the same N from the same largest N below.";
        Table::of(&self.ways)
            .words("curve", |one| one.quantity.label())
            .words("way of fitting", |one| one.way.label())
            .words("forecasts", |one| one.forecasts)
            .column("median error", "", 3, |one| one.median)
            .column("largest", "", 3, |one| one.worst)
            .column("mean, with sign", "", 3, |one| one.bias)
            .named("scaling-forecasts", "Which way of fitting forecasts best", caption)
    }
}

fn of(result: &CellResult) -> Who {
    Who { architecture: result.cell.architecture, labels: result.cell.labels }
}

fn classifiers(spec: &ExperimentSpec) -> Vec<Who> {
    let grid = &spec.grid;
    let all = grid
        .architectures
        .iter()
        .flat_map(|&architecture| grid.labels.iter().map(move |&labels| Who { architecture, labels }));
    distinct(all)
}

fn point(result: &CellResult, quantity: Quantity) -> Point {
    let Estimate { value, interval } = quantity.of(&result.measured);
    Point { n: result.cell.train_size as f64, seed: result.cell.seed, value, error: interval.log_error(value) }
}

impl QuantityLaw {
    /// `None` where the points have no law.
    fn of(who: Who, quantity: Quantity, cells: &[&CellResult], points: &[Point]) -> Option<Self> {
        let fits = compare(points, None, Seed(0).split("laws of curves")).ok()?;
        Some(Self {
            architecture: who.architecture,
            labels: who.labels,
            quantity,
            alpha: fits.pure.alpha,
            r_squared: fits.pure.r_squared,
            alpha_above_floor: fits.floor.as_ref().map(|law| law.alpha),
            floor: fits.floor.as_ref().and_then(|law| law.floor),
            exact_floor: cells.first().and_then(|result| quantity.exact_floor(&result.measured)),
            preferred: fits.preferred,
        })
    }

    fn who(&self) -> Who {
        Who { architecture: self.architecture, labels: self.labels }
    }
}

impl WayGrade {
    /// Of forecasts, each with the number of its classifier: those that every way makes.
    fn all(quantity: Quantity, forecasts: &[(usize, GradedForecast)]) -> Vec<Self> {
        let task = |(at, one): &(usize, GradedForecast)| (*at, one.fitted[1], one.n);
        let by = |way: FitWay| forecasts.iter().filter(move |(_, one)| one.way == way);
        let ways: Vec<FitWay> = FitWay::all().filter(|way| by(*way).next().is_some()).collect();
        let shared =
            |one: &&(usize, GradedForecast)| ways.iter().all(|way| by(*way).any(|other| task(other) == task(one)));
        let grade = |&way: &FitWay| {
            let errors: Vec<f64> = by(way).filter(shared).map(|(_, one)| one.error()).collect();
            let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
            sizes.sort_by(f64::total_cmp);
            let (forecasts, worst) = (sizes.len(), *sizes.last()?);
            let median = (sizes[(forecasts - 1) / 2] + sizes[forecasts / 2]) / 2.0;
            let bias = errors.iter().sum::<f64>() / forecasts as f64;
            Some(Self { quantity, way, forecasts, median, worst, bias })
        };
        ways.iter().filter_map(grade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Cell;
    use crate::experiment::hand_made::{around, measured, result, spec};

    /// L = 0.3 + 2 N^(−½) with A = 0.3; KL the rest; the other curves without a floor.
    fn cells(spec: &ExperimentSpec) -> Vec<CellResult> {
        let of = |cell: &Cell| {
            let kl = 2.0 / (cell.train_size as f64).sqrt();
            let mut measured = measured(kl, kl, 0.0);
            measured.aleatoric = around(0.3, 0.02);
            (measured.epistemic, measured.cross_entropy) = (around(kl, 1e-3), around(0.3 + kl, 1e-3));
            (measured.ece, measured.exact_calibration_error) = (around(kl / 2.0, 1e-3), around(kl / 4.0, 1e-3));
            result(*cell, measured)
        };
        spec.cells().iter().map(of).collect()
    }

    #[test]
    fn the_loss_curve_has_the_floor_that_is_there_and_forms_without_it_forecast_too_little() {
        let spec = spec(
            "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'convnet']\ntrain_sizes = [100, 200, 400, 800, 1600, 3200]\n\
             seeds = [0, 1]\n",
        );
        let found = LawGrades::of(&spec, &cells(&spec)).unwrap();
        assert_eq!(found.laws.len(), 2 * 5);
        for law in &found.laws {
            let floor = law.floor.unwrap();
            let alpha = law.alpha_above_floor.unwrap();
            let there = if law.quantity == Quantity::Loss { 0.3 } else { 0.0 };
            assert!((floor.value - there).abs() < 1e-3 && (alpha.value - 0.5).abs() < 0.01, "{law:?}");
            assert_eq!(law.exact_floor.map(|exact| exact.value), (law.quantity != Quantity::Ece).then_some(there));
        }
        // Of 6 sizes the half with a floor is fitted from 5 on: each classifier has one forecast that
        // all eight ways make.
        assert_eq!(found.ways.len(), 5 * 8);
        for one in &found.ways {
            assert_eq!(one.forecasts, 2, "{one:?}");
            let short = one.quantity == Quantity::Loss && one.way.form == Variant::Pure;
            assert_eq!(short, one.bias < -0.01, "{one:?}");
            assert!(short || one.worst < 0.01, "{one:?}");
        }
        assert_eq!((found.figures().len(), found.tables().len()), (1, 2));
        assert_eq!(LawGrades::of(&spec, &[]), None);
    }
}
